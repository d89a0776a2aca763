"""Several judges of the same answers: how often each is content, and how far they agree, from recorded scores alone.

The judges may be those of one run (a scorer that asks several at once keeps each one's probability) or of several runs with
the same answers, as scoring a run again gives them. No request is sent.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any

from evalwright.analysis.judge_validation.verdicts import shown_answer
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.runs.scores import cluster_code, hashed
from evalwright.statistics import Estimate, cohen_kappa, gwet_ac1, mean_interval, raw_agreement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_DISPUTED = 10
"""Answers shown on which the judges differ most."""

_NAN = math.nan


@dataclass(frozen=True, slots=True)
class Rater:
    """One judge. name: the model's, with the run's where two have one name. share: of its answers that it passes."""

    name: str
    run: str
    scorer: str
    role: str
    share: Estimate


@dataclass(frozen=True, slots=True)
class RaterPair:
    """Two judges by their names. only_a: answers that a passes and b does not."""

    a: str
    b: str
    raw: Estimate
    kappa: Estimate
    ac1: Estimate
    only_a: int
    only_b: int


@dataclass(frozen=True, slots=True)
class Disputed:
    """An answer on which judges differ: their probabilities (or verdicts), in the order of the raters; nan where none."""

    task: str
    id: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PanelAgreement(Plain):
    """How far judges agree. raw, ac1: of all of them together. n: answers that at least two judged.

    n_left_out: answers with fewer verdicts than two. n_other: answers of further runs that are not those of the first.
    """

    raters: tuple[Rater, ...]
    pairs: tuple[RaterPair, ...]
    raw: Estimate
    ac1: Estimate
    n: int
    n_left_out: int
    n_other: int
    disputed: tuple[Disputed, ...]


def judges_agreement(runs: Sequence[Run], *, scorer: str = "", level: float = 0.95) -> PanelAgreement:
    """The agreement of all judges of some runs on the answers of the first.

    scorer: whose judges; "" takes every scorer that asks a model. Verdicts are a scorer's 0 and 1, or where it asks several
    judges each one's probability against the scorer's threshold. Draws of an item, and items of a cluster, count as one unit.

    Raises ConfigurationError for fewer than two judges and for runs without a common answer, UnknownName for a scorer that
    no run has, RunError for records that cannot be read.
    """
    if not 0 < level < 1:
        raise ConfigurationError(
            f"The confidence level must be between 0 and 1, such as 0.95, not {level:g}."
        )
    sources = [source for run in runs for source in _sources(run, scorer)]
    if len(sources) < 2:
        found = f" ('{sources[0].name}')" if sources else ""
        raise ConfigurationError(
            f"Agreement needs at least two judges, and there {'is one' if sources else 'are none'}{found}: name a run whose "
            f"scorer asks several (`judges: [a, b]`), or several runs with the same answers."
        )
    table = _Table(len(sources))
    for run in runs:
        table.read(run, [(place, source) for place, source in enumerate(sources) if source.run is run])
    return _agreement(runs, sources, table, level)


# -- who judges ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Judge:
    """Where one judge's verdicts stand. part: of the score, "" for its value. threshold: from which a part is a yes."""

    run: Run
    scorer: str
    role: str
    part: str
    threshold: float
    name: str


def _sources(run: Run, wanted: str) -> Iterator[_Judge]:
    """The judges of a run, each scorer once however many tasks have it."""
    from evalwright.scorers.registry import bind

    names = {scorer["name"]: None for task in run.data["tasks"] for scorer in task["scorers"]}
    if wanted and wanted not in names:
        raise UnknownName(f"scorer of the run '{run.id}'", wanted, names)
    seen: set[str] = set()
    for task in run.data["tasks"]:
        for scorer in task["scorers"]:
            name = scorer["name"]
            if name in seen or (wanted and name != wanted):
                continue
            seen.add(name)
            try:
                bound = bind(scorer["kind"], scorer["options"], name)
            except UnknownName:  # of an imported run: its verdicts are all that is known
                if name == wanted or name == "consistency":
                    yield _Judge(run, name, "", "", _NAN, f"{scorer['options'].get('judge') or name}")
                continue
            threshold = float(scorer["options"].get("threshold", 0.5))
            several = len(bound.roles) > 1
            for role in bound.roles:
                model = run.data.get("roles", {}).get(role, {}).get("name", role)
                yield _Judge(run, name, role, role if several else "", threshold, str(model))


def _names(sources: Sequence[_Judge]) -> list[str]:
    """A name for each judge that no other has."""
    plain = [source.name for source in sources]
    out = []
    for source in sources:
        name = source.name
        if plain.count(name) > 1:
            same = [one for one in sources if one.name == name and one.run is source.run]
            name += (
                f" ({source.run.id}{f', {source.scorer} {source.role}'.rstrip() if len(same) > 1 else ''})"
            )
        out.append(name)
    return out


# -- what they said -----------------------------------------------------------------------------------------------------


class _Table:
    """A row for each answer of the first run; a column of verdicts and one of shown values for each judge."""

    def __init__(self, size: int) -> None:
        self.places: dict[int, int] = {}
        self.answers = array("q")
        self.clusters = array("q")
        self.votes = [array("d") for _ in range(size)]
        self.values = [array("d") for _ in range(size)]
        self.n_other = 0
        self._first: Run | None = None

    def read(self, run: Run, sources: Sequence[tuple[int, _Judge]]) -> None:
        first = self._first is None
        self._first = self._first or run
        for row in run.rows():
            place = self._place(row, first)
            if place is None:
                continue
            for column, source in sources:
                score = row["scores"].get(source.scorer)
                if score is None:
                    continue
                parts = score.get("parts", {})
                value = parts.get(source.part) if source.part else score["value"]
                if value is None:
                    continue
                self.values[column][place] = value if source.part else parts.get("score", value)
                self.votes[column][place] = float(value >= source.threshold) if source.part else value

    def _place(self, row: Mapping[str, Any], first: bool) -> int | None:
        item = hashed(f"{row['task']}\0{row['id']}")
        key = hashed(f"{row['task']}\0{row['id']}\0{row['draw']}")
        answer = shown_answer(row)
        if first:
            place = self.places[key] = len(self.answers)
            self.answers.append(hashed(answer or ""))
            self.clusters.append(cluster_code(row.get("cluster"), item))
            for column in (*self.votes, *self.values):
                column.append(_NAN)
            return place
        found = self.places.get(key)
        if found is None or self.answers[found] != hashed(answer or ""):
            self.n_other += 1
            return None
        return found


def _agreement(runs: Sequence[Run], sources: Sequence[_Judge], table: _Table, level: float) -> PanelAgreement:
    import numpy as np

    votes = np.column_stack([np.frombuffer(column, np.float64) for column in table.votes])
    shown = np.column_stack([np.frombuffer(column, np.float64) for column in table.values])
    there = ~np.isnan(votes)
    judged = there.sum(axis=1) >= 2
    if not judged.any():
        raise ConfigurationError(
            "No answer has the verdicts of two judges: the runs must have the same answers, as `evalwright score` gives them."
        )
    _check_votes(votes[there], sources)
    clusters = np.frombuffer(table.clusters, np.int64)
    alone = len(np.unique(clusters)) == len(clusters)
    ids = None if alone else clusters
    names = _names(sources)
    raters = tuple(
        Rater(name, source.run.id, source.scorer, source.role, _share(votes[:, place], ids, level))
        for place, (name, source) in enumerate(zip(names, sources, strict=True))
    )
    pairs = tuple(_pair(votes, a, b, names, ids, level) for a, b in combinations(range(len(names)), 2))
    return PanelAgreement(
        raters,
        pairs,
        raw_agreement(votes, clusters=ids, level=level),
        gwet_ac1(votes, labels=2, clusters=ids, level=level),
        int(judged.sum()),
        int((~judged).sum()),
        table.n_other,
        _disputed(runs[0], votes, shown),
    )


def _check_votes(votes: NDArray[np.float64], sources: Sequence[_Judge]) -> None:
    if not ((votes == 0) | (votes == 1)).all():
        names = ", ".join(dict.fromkeys(source.scorer for source in sources))
        raise ConfigurationError(
            f"The scores of {names} are not 0 and 1 throughout, so they are not verdicts."
        )


def _share(votes: NDArray[np.float64], clusters: NDArray[np.int64] | None, level: float) -> Estimate:
    import numpy as np

    there = ~np.isnan(votes)
    return mean_interval(votes[there], clusters=None if clusters is None else clusters[there], level=level)


def _pair(
    votes: NDArray[np.float64],
    a: int,
    b: int,
    names: Sequence[str],
    clusters: NDArray[np.int64] | None,
    level: float,
) -> RaterPair:
    both = votes[:, [a, b]]
    return RaterPair(
        names[a],
        names[b],
        raw_agreement(both, clusters=clusters, level=level),
        cohen_kappa(both[:, 0], both[:, 1], clusters=clusters, level=level),
        gwet_ac1(both, labels=2, clusters=clusters, level=level),
        int(((both[:, 0] == 1) & (both[:, 1] == 0)).sum()),
        int(((both[:, 0] == 0) & (both[:, 1] == 1)).sum()),
    )


def _disputed(run: Run, votes: NDArray[np.float64], shown: NDArray[np.float64]) -> tuple[Disputed, ...]:
    """The answers with both verdicts whose values lie furthest apart."""
    import numpy as np

    differ = np.flatnonzero((votes == 0).any(axis=1) & (votes == 1).any(axis=1))
    if not len(differ):
        return ()
    spread = np.nanmax(shown[differ], axis=1) - np.nanmin(shown[differ], axis=1)
    chosen = differ[np.argsort(-spread, kind="stable")[:MOST_DISPUTED]]
    rows = {
        int(place): row
        for place, row in enumerate(islice(run.rows(), int(chosen.max()) + 1))
        if place in chosen
    }
    return tuple(
        Disputed(str(rows[int(place)]["task"]), str(rows[int(place)]["id"]), tuple(map(float, shown[place])))
        for place in chosen
    )
