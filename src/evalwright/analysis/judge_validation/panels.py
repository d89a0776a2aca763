"""How often several judges of the same answers pass them, and how far they agree.

The judges may be those of one run (a scorer that uses several keeps each one's probability) or
of several runs with the same answers, as from scoring a run again. No request is sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.judge_validation.verdicts import Records
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.scorers.registry import bind
from evalwright.statistics import (
    Estimate,
    cohen_kappa,
    gwet_ac1,
    mean_interval,
    raw_agreement,
)

GRADED = ("judge-rating", "judge-rubric")
"""Scorers with graded values, which count as a pass from the scorer's threshold on."""
MOST_DISPUTED = 10
"""Number of answers shown on which the judges differ most."""

Columns = NDArray[np.float64]
"""A matrix (answers, judges): a row for each answer of the first run, nan without a verdict."""


@dataclass(frozen=True, slots=True)
class Rater:
    """One judge.

    Args:
        name: the model's, with the run's if two share a name.
        run: the run's id.
        scorer: the scorer.
        role: the judge's role.
        share: the share of its answers that it passes.
    """

    name: str
    run: str
    scorer: str
    role: str
    share: Estimate


@dataclass(frozen=True, slots=True)
class RaterPair:
    """The agreement of two judges.

    Args:
        a: name of the first judge.
        b: name of the second judge.
        raw: raw agreement.
        kappa: Cohen's kappa.
        ac1: Gwet's AC1.
        only_a: answers that only a passes.
        only_b: answers that only b passes.
    """

    a: str
    b: str
    raw: Estimate
    kappa: Estimate
    ac1: Estimate
    only_a: int
    only_b: int


@dataclass(frozen=True, slots=True)
class DisputedAnswer:
    """An answer on which judges differ, with their probabilities or verdicts (nan without one)."""

    task: str
    id: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PanelAgreement(Plain):
    """How far judges agree.

    Args:
        raters: the judges.
        pairs: the agreement of each pair.
        raw: raw agreement of all judges together.
        ac1: Gwet's AC1 of all judges together.
        n: answers with at least two verdicts.
        n_left_out: answers with fewer.
        n_other: answers of further runs that differ from those of the first.
        disputed: examples on which judges differ.
    """

    raters: tuple[Rater, ...]
    pairs: tuple[RaterPair, ...]
    raw: Estimate
    ac1: Estimate
    n: int
    n_left_out: int
    n_other: int
    disputed: tuple[DisputedAnswer, ...]


def measure_agreement(
    runs: Sequence[Run], *, scorer: str = "", level: float = 0.95
) -> PanelAgreement:
    """Measure the agreement of all judges of some runs on the answers of the first run.

    Verdicts are a scorer's 0 and 1, or for several judges in one scorer each one's probability
    compared with the scorer's threshold. Draws of an item, and items of a cluster, count as one
    unit.

    Args:
        runs: the runs.
        scorer: the scorer whose judges are used; "" for every scorer that uses a model.
        level: confidence level of the intervals.

    Raises:
        ConfigurationError: there are fewer than two judges, or the runs have no common answer.
        UnknownName: no run has the scorer.
        RunError: records cannot be read.
    """
    if not 0 < level < 1:
        raise ConfigurationError(
            f"The confidence level must be between 0 and 1, not {level:g}."
        )
    judges = [judge for run in runs for judge in list_judges(run, scorer)]
    if len(judges) < 2:
        only_judge = f" ('{judges[0].name}')" if judges else ""
        raise ConfigurationError(
            "Agreement needs at least two judges, and there"
            f" {'is one' if judges else 'are none'}{only_judge}: name a run whose scorer"
            " asks several (`judges: [a, b]`), or several runs with the same answers."
        )
    roles = tuple({"score", *(judge.part for judge in judges)} - {""})
    first, *others = (Records(run, parts=roles) for run in runs)
    shape = (len(first.lengths), len(judges))
    votes = np.full(shape, np.nan)
    numbers = np.full(shape, np.nan)
    n_other = 0
    for run, records in zip(runs, (first, *others), strict=True):
        matching, places = _match_answers(first, records)
        n_other += len(records.lengths) - len(matching)
        for column, judge in enumerate(judges):
            if judge.run is run:
                votes[places, column], numbers[places, column] = (
                    column_values[matching] for column_values in judge.votes(records)
                )
    return _make_agreement(
        runs[0], judges, votes, numbers, first.ints("clusters"), level, n_other
    )


def _match_answers(
    first: Records, further: Records
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Match the records of a further run with equal answers of the first.

    Returns indices in both.
    """
    keys = first.ints("keys")
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(keys, kind="stable")
    positions = order[
        np.minimum(
            np.searchsorted(keys, further.ints("keys"), sorter=order), len(keys) - 1
        )
    ]
    same = (keys[positions] == further.ints("keys")) & (
        first.ints("answers")[positions] == further.ints("answers")
    )
    return np.flatnonzero(same), positions[same]


@dataclass(frozen=True, slots=True)
class RecordedJudge:
    """Where one judge's verdicts are recorded.

    Args:
        run: the run.
        scorer: the scorer.
        role: the judge's role.
        part: the part of the score, "" for its value.
        threshold: least value of a part (or a graded value) that counts as a pass.
        name: the judge's model.
        graded: whether the scorer's values are grades.
    """

    run: Run
    scorer: str
    role: str
    part: str
    threshold: float
    name: str
    graded: bool = False

    def votes(
        self, records: Records
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the judge's verdicts, and its underlying numbers if there are any.

        Each has the shape (records,).
        """
        values = records.column(self.scorer, self.part)
        if self.part or self.graded:
            return np.where(np.isnan(values), np.nan, values >= self.threshold), values
        judge_scores = records.column(self.scorer, "score")
        return values, np.where(
            np.isnan(judge_scores) | np.isnan(values), values, judge_scores
        )


def list_judges(run: Run, scorer_name: str) -> Iterator[RecordedJudge]:
    """List the judges of a run, each scorer once however many tasks use it."""
    scorers: dict[str, Any] = {}
    for task in run.data["tasks"]:
        for scorer in task["scorers"]:
            scorers.setdefault(scorer["name"], scorer)
    if scorer_name and scorer_name not in scorers:
        raise UnknownName(f"scorer of the run '{run.id}'", scorer_name, scorers)
    for name, scorer in scorers.items():
        if scorer_name and name != scorer_name:
            continue
        try:
            roles = bind(scorer["kind"], scorer["options"], name).roles
        except UnknownName:  # an imported run: only its verdicts are known
            if name == scorer_name or name == "consistency":
                yield RecordedJudge(
                    run,
                    name,
                    "",
                    "",
                    math.nan,
                    f"{scorer['options'].get('judge') or name}",
                )
            continue
        except ConfigurationError:  # it was compared with a run that is elsewhere now
            roles = tuple(run.data.get("roles", {}))
        threshold = float(scorer["options"].get("threshold", 0.5))
        graded = scorer["kind"] in GRADED
        for role in roles:
            model = run.data.get("roles", {}).get(role, {}).get("name", role)
            score_part = role if len(roles) > 1 else ""
            yield RecordedJudge(
                run, name, role, score_part, threshold, str(model), graded
            )


def _distinct_names(judges: Sequence[RecordedJudge]) -> list[str]:
    """Choose a unique name for each judge."""
    plain = [judge.name for judge in judges]
    names_with_runs = [(judge.name, judge.run.id) for judge in judges]
    names = []
    for judge, name, pair in zip(judges, plain, names_with_runs, strict=True):
        further = (
            f", {judge.scorer} {judge.role}".rstrip()
            if names_with_runs.count(pair) > 1
            else ""
        )
        names.append(
            f"{name} ({judge.run.id}{further})" if plain.count(name) > 1 else name
        )
    return names


def _make_agreement(
    run: Run,
    judges: Sequence[RecordedJudge],
    votes: Columns,
    numbers: Columns,
    clusters: NDArray[np.int64],
    level: float,
    n_other: int,
) -> PanelAgreement:
    has_vote = ~np.isnan(votes)
    judged = has_vote.sum(axis=1) >= 2
    if not judged.any():
        raise ConfigurationError(
            "No answer has the verdicts of two judges: the runs must have the same"
            " answers, as `evalwright score` gives them."
        )
    if not np.isin(votes[has_vote], (0.0, 1.0)).all():
        scorers = ", ".join(dict.fromkeys(judge.scorer for judge in judges))
        raise ConfigurationError(
            f"The scores of {scorers} are not 0 and 1 throughout, so they are not"
            " verdicts."
        )
    names = _distinct_names(judges)

    def share(column: int) -> Estimate:
        is_judged = has_vote[:, column]
        return mean_interval(
            votes[is_judged, column], clusters=clusters[is_judged], level=level
        )

    def pair(a: int, b: int) -> RaterPair:
        votes_a = votes[:, a]
        votes_b = votes[:, b]
        return RaterPair(
            names[a],
            names[b],
            raw_agreement(votes[:, [a, b]], clusters=clusters, level=level),
            cohen_kappa(votes_a, votes_b, clusters=clusters, level=level),
            gwet_ac1(votes[:, [a, b]], labels=2, clusters=clusters, level=level),
            int((votes_a > votes_b).sum()),
            int((votes_a < votes_b).sum()),
        )

    return PanelAgreement(
        tuple(
            Rater(names[column], judge.run.id, judge.scorer, judge.role, share(column))
            for column, judge in enumerate(judges)
        ),
        tuple(pair(a, b) for a, b in combinations(range(len(judges)), 2)),
        raw_agreement(votes, clusters=clusters, level=level),
        gwet_ac1(votes, labels=2, clusters=clusters, level=level),
        int(judged.sum()),
        int((~judged).sum()),
        n_other,
        _find_disputed(run, votes, numbers),
    )


def _find_disputed(
    run: Run, votes: Columns, numbers: Columns
) -> tuple[DisputedAnswer, ...]:
    """Find the answers with opposite verdicts whose values are furthest apart."""
    differ = np.flatnonzero((votes == 0).any(axis=1) & (votes == 1).any(axis=1))
    if not len(differ):
        return ()
    spread = np.nanmax(numbers[differ], axis=1) - np.nanmin(numbers[differ], axis=1)
    chosen = differ[np.argsort(-spread, kind="stable")[:MOST_DISPUTED]].tolist()
    rows = {
        row_index: row
        for row_index, row in enumerate(islice(run.rows(), max(chosen) + 1))
        if row_index in chosen
    }
    return tuple(
        DisputedAnswer(
            str(rows[row_index]["task"]),
            str(rows[row_index]["id"]),
            tuple(map(float, numbers[row_index])),
        )
        for row_index in chosen
    )
