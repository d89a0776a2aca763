"""Probes for a judge's faults; where the data do not allow one, the reason is given.

Probes that use people's labels take `Evidence`. From recorded scores alone, a bias for long
answers may be justified (longer answers may be better), so the number describes the judge
without calling it wrong; self-preference is separated from quality by other judges of the same
answers. A probe returns a finding with `as_dict`, or raises ValueError with the reason why it
cannot be computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.judge_validation.labels import Evidence
from evalwright.analysis.judge_validation.panels import RecordedJudge, list_judges
from evalwright.analysis.judge_validation.verdicts import (
    ANSWER_FIRST,
    ANSWER_SECOND,
    CONFIDENCE,
    Records,
    log_lengths,
)
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.statistics import (
    AcquiescenceProbe,
    Estimate,
    JudgeAgreement,
    LengthProbe,
    RepeatProbe,
    RoganGladen,
    SwapProbe,
    acquiescence_bias,
    auroc,
    brier_score,
    calibration_error,
    judge_agreement,
    krippendorff_alpha,
    length_bias,
    mean_interval,
    repeat_flips,
    rogan_gladen,
    swap_consistency,
)

_MOST_GRADES = 11
"""Most distinct grades that count as labels.

With more, grades are numbers, whose agreement is measured by distance.
"""


@dataclass(frozen=True, slots=True)
class GradedAgreement(Plain):
    """Krippendorff's alpha for numeric grades: judge with people, and people among themselves.

    Args:
        judge_alpha: judge with people.
        ceiling_alpha: people among themselves; None if no answer has two labels.
    """

    judge_alpha: Estimate
    ceiling_alpha: Estimate | None


def probe_judge(evidence: Evidence) -> tuple[dict[str, Any], dict[str, str]]:
    """Run all probes; returns the findings by name, and for the others why there is none."""
    return run_probes(
        {name: partial(probe, evidence) for name, probe in PROBES.items()}
    )


def run_probes(
    probes: Mapping[str, Callable[[], Any]],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Run some probes; returns the findings by name, and for the others why there is none."""
    findings: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for name, probe in probes.items():
        try:
            findings[name] = probe()
        except ValueError as error:
            unknown[name] = str(error)
    return findings, unknown


def _probe_rogan_gladen(evidence: Evidence) -> RoganGladen:
    _need_equal_chances(evidence)
    _need_binary(evidence)
    clusters = evidence.verdicts.clusters[~np.isnan(evidence.judge)]
    if len(np.unique(clusters)) < len(clusters):
        raise ValueError(
            "its interval assumes independent items, and these are in clusters"
        )
    if ((~np.isnan(evidence.people)).sum(axis=1) > 1).any():
        raise ValueError(
            "it needs one label per item, and several people labelled the same ones"
        )
    judge = evidence.judge
    human = evidence.human
    labelled = ~np.isnan(human) & ~np.isnan(judge)
    unlabelled = judge[~labelled & ~np.isnan(judge)]
    right = labelled & (human == 1)
    wrong = labelled & (human == 0)
    counts = [
        int(np.count_nonzero(rows))
        for rows in (
            unlabelled == 1,
            unlabelled == unlabelled,
            right & (judge == 1),
            right,
            wrong & (judge == 0),
            wrong,
        )
    ]
    estimate = rogan_gladen(*counts)
    if not estimate.useful:
        raise ValueError(estimate.reason)
    return estimate


def _probe_agreement(evidence: Evidence) -> JudgeAgreement | GradedAgreement:
    _need_equal_chances(evidence)
    rows = evidence.labelled
    judge = evidence.judge[rows]
    people = evidence.people[rows]
    clusters = evidence.verdicts.clusters[rows]
    values = np.unique(np.concatenate([judge, people.ravel()]))
    if np.count_nonzero(~np.isnan(values)) <= _MOST_GRADES:
        return judge_agreement(judge, people, clusters=clusters)
    judge_and_human = np.column_stack([judge, evidence.human[rows]])
    lacks_second_label = (~np.isnan(people)).sum(axis=1) < 2
    return GradedAgreement(
        krippendorff_alpha(judge_and_human, clusters=clusters),
        None
        if lacks_second_label.all()
        else krippendorff_alpha(people, clusters=clusters),
    )


def _probe_acquiescence(evidence: Evidence) -> AcquiescenceProbe:
    _need_equal_chances(evidence)
    _need_binary(evidence)
    judge, human, clusters = _single_labels(evidence)
    return acquiescence_bias(judge, human, clusters=clusters)


def _probe_length(evidence: Evidence) -> LengthProbe:
    _need_binary(evidence)
    _need_two_verdicts(evidence.judge)
    return length_bias(
        evidence.judge, _log_lengths(evidence), clusters=evidence.verdicts.clusters
    )


def _probe_length_of_people(evidence: Evidence) -> LengthProbe:
    _need_binary(evidence)
    _need_equal_chances(evidence)
    rows = _records_of_labels(evidence)
    _, human, clusters = _single_labels(evidence)
    _need_two_verdicts(human)
    return length_bias(human, _log_lengths(evidence)[rows], clusters=clusters)


def _probe_position(evidence: Evidence) -> SwapProbe:
    forth, back = (
        evidence.verdicts.parts[order] for order in (ANSWER_FIRST, ANSWER_SECOND)
    )
    if not (~np.isnan(forth) & ~np.isnan(back)).any():
        raise ValueError(
            f"no score has verdicts in both orders ('{ANSWER_FIRST}' and"
            f" '{ANSWER_SECOND}')"
        )
    return swap_consistency(forth, back, clusters=evidence.verdicts.clusters)


def _probe_repeats(evidence: Evidence) -> RepeatProbe:
    """Measure consistency on identical answers to one item that were judged several times."""
    verdicts = evidence.verdicts
    judged = np.flatnonzero(~np.isnan(verdicts.values))
    order = judged[np.lexsort((verdicts.answers[judged], verdicts.items[judged]))]
    same = (np.diff(verdicts.items[order]) == 0) & (
        np.diff(verdicts.answers[order]) == 0
    )
    group = (
        np.concatenate([[0], np.cumsum(~same)]) if len(order) else np.zeros(0, np.int64)
    )
    sizes = np.bincount(group)
    if not (sizes >= 2).any():
        raise ValueError("no answer was judged more than once")
    starts = np.cumsum(sizes) - sizes
    table = np.full((len(sizes), int(sizes.max())), np.nan)
    table[group, np.arange(len(order)) - starts[group]] = verdicts.values[order]
    is_repeated = sizes >= 2
    return repeat_flips(
        table[is_repeated], clusters=verdicts.clusters[order[starts[is_repeated]]]
    )


def _probe_of_confidence(measure: Callable[..., Any]) -> Callable[[Evidence], Any]:
    """Create a probe of the judge's stated probability that an answer is right."""

    def probe(evidence: Evidence) -> Any:
        probability, human, clusters = _stated_probabilities(evidence)
        measured = measure(probability, human, clusters=clusters)
        if isinstance(measured, Estimate) and measured.value != measured.value:
            raise ValueError(
                "people called all of the labelled answers right, or all wrong"
            )
        return measured

    return probe


PROBES: Mapping[str, Callable[[Evidence], Any]] = {
    "rogan_gladen": _probe_rogan_gladen,
    "agreement": _probe_agreement,
    "acquiescence": _probe_acquiescence,
    "length": _probe_length,
    "length_of_people": _probe_length_of_people,
    "position": _probe_position,
    "repeats": _probe_repeats,
    "brier": _probe_of_confidence(brier_score),
    "calibration_error": _probe_of_confidence(calibration_error),
    "auroc": _probe_of_confidence(auroc),
}
"""All probes, by the names of their results."""


def _need_equal_chances(evidence: Evidence) -> None:
    if not evidence.equal_chances:
        raise ValueError(
            "the labels were drawn with unequal chances; draw a random set for it"
        )


def _need_binary(evidence: Evidence) -> None:
    verdicts_and_labels = np.concatenate([evidence.judge, evidence.people.ravel()])
    if not (
        (verdicts_and_labels == 0)
        | (verdicts_and_labels == 1)
        | np.isnan(verdicts_and_labels)
    ).all():
        raise ValueError(
            "it needs verdicts and labels that say right or wrong, and these are graded"
        )


def _need_two_verdicts(verdicts: NDArray[np.float64]) -> None:
    if len(np.unique(verdicts[~np.isnan(verdicts)])) < 2:
        raise ValueError("all verdicts are the same")


def _records_of_labels(evidence: Evidence) -> NDArray[np.int64]:
    """Return for each label (not each item) the index of its record."""
    rows: NDArray[np.int64] = np.nonzero(~np.isnan(evidence.people))[0]
    return rows


def _single_labels(
    evidence: Evidence,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return verdict, label and cluster for each label; an item with two labels is in it twice."""
    rows = _records_of_labels(evidence)
    labels = evidence.people[~np.isnan(evidence.people)]
    return evidence.judge[rows], labels, evidence.verdicts.clusters[rows]


def _log_lengths(evidence: Evidence) -> NDArray[np.float64]:
    """Compute the logarithm of each answer's length over the median length."""
    lengths = evidence.verdicts.lengths
    if len(np.unique(lengths[lengths > 0])) < 2:
        raise ValueError("all answers have the same length")
    return log_lengths(lengths)


def _stated_probabilities(
    evidence: Evidence,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return, for each label, the judge's probability that the answer is right, and the label.

    The clusters come with them.
    """
    judge, human, clusters = _single_labels(evidence)
    stated = evidence.verdicts.parts[CONFIDENCE][_records_of_labels(evidence)]
    if evidence.verdicts.graded:
        probability = judge
    elif (~np.isnan(stated)).any():
        probability = np.where(
            judge == 1, stated, 1 - stated
        )  # the stated confidence is that the verdict is right
    else:
        raise ValueError("the judge gives no probability, only right or wrong")
    if not ((human == 0) | (human == 1)).all():
        raise ValueError("it needs labels of 0 and 1")
    _need_equal_chances(evidence)
    return probability, human, clusters


# -- from recorded scores alone --------------------------------------------------------


LENGTH_RATIO = "log length ratio"
"""The part of a score of two answers that holds the log ratio of their lengths (`judge-pair`)."""
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SelfPreference(Plain):
    """Self-preference: a judge compared with other judges of the same answers.

    Args:
        own: the judge's score minus that of the others, on answers of its own model.
        others: the same on other models' answers.
        excess: own minus others by item, from -2 to 2 (own alone for scores of two answers).
    """

    own: Estimate
    others: Estimate | None
    excess: Estimate


@dataclass(frozen=True, slots=True)
class JudgeBias(Plain):
    """The biases of one judge in one scorer.

    Args:
        judge: the judge's name.
        scorer: the scorer.
        runs: ids of the runs.
        n: number of its verdicts.
        length: length bias.
        position: position bias.
        self_preference: preference for its own model's answers.
        unknown: for biases that cannot be measured, the reason.
    """

    judge: str
    scorer: str
    runs: tuple[str, ...]
    n: int
    length: LengthProbe | None
    position: SwapProbe | None
    self_preference: SelfPreference | None
    unknown: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _JudgeTable:
    """One judge's verdicts in one run, (records,) each.

    Args:
        is_own_model: whether the run's answers are from the judge's own model.
        pairs: whether the score compares two answers.
        keys: hashed answers.
        clusters: codes of units.
        values: the judge's numbers.
        verdicts: 1 for a pass (or a win), 0 otherwise.
        lengths: log lengths, or log length ratios of pairs.
        first: verdicts with the answer shown first.
        second: verdicts with the answer shown second.
    """

    is_own_model: bool
    pairs: bool
    keys: NDArray[np.int64]
    clusters: NDArray[np.int64]
    values: F64
    verdicts: F64
    lengths: F64
    first: F64
    second: F64


def judge_biases(
    runs: Sequence[Run], *, scorer: str = "", level: float = 0.95
) -> list[JudgeBias]:
    """Measure the biases of every judge of some runs.

    Args:
        runs: the runs.
        scorer: the scorer whose judges are used; "" for every scorer that uses a model.
        level: confidence level of the intervals.

    Raises:
        ConfigurationError: no score is a judge's.
        UnknownName: no run has the scorer.
        RunError: records cannot be read.
    """
    if not 0 < level < 1:
        raise ConfigurationError(
            f"The confidence level must be between 0 and 1, not {level:g}."
        )
    tables_by_judge: dict[tuple[str, str], list[tuple[Run, _JudgeTable]]] = {}
    for run in runs:
        # Scores that are mostly decided by rules are not the judge's.
        scorers = [
            recorded_scorer
            for task in run.data["tasks"]
            for recorded_scorer in task["scorers"]
        ]
        mixed = {
            recorded_scorer["name"]
            for recorded_scorer in scorers
            if not {"unsure", "undecided"}.isdisjoint(recorded_scorer["options"])
        }
        judges = [
            judge for judge in list_judges(run, scorer) if judge.scorer not in mixed
        ]
        roles = [judge.part for judge in judges if judge.part]
        names = (ANSWER_FIRST, ANSWER_SECOND, LENGTH_RATIO)
        of_roles = (f"{role} {name}" for role in roles for name in names)
        records = Records(run, parts=tuple({*names, "score", *roles, *of_roles}))
        for recorded_judge in judges:
            table = _make_table(recorded_judge, records)
            if not np.isnan(table.values).all():
                tables_by_judge.setdefault(
                    (recorded_judge.name, recorded_judge.scorer), []
                ).append((run, table))
    if not tables_by_judge:
        raise ConfigurationError(
            "No score of these runs is a judge's, so there is no bias to look for."
        )
    biases = []
    for (judge, name), judge_tables in tables_by_judge.items():
        others = [
            further_tables
            for (_, further_name), further_tables in tables_by_judge.items()
            if further_name == name and further_tables is not judge_tables
        ]
        biases.append(_measure_bias(judge, name, judge_tables, others, level))
    return biases


def _make_table(judge: RecordedJudge, records: Records) -> _JudgeTable:
    def column_of(name: str) -> F64:
        return records.column(
            judge.scorer, f"{judge.part} {name}" if judge.part else name
        )

    values = records.column(judge.scorer, judge.part)
    ratio = column_of(LENGTH_RATIO)
    lengths = records.lengths
    pairs = not np.isnan(ratio).all() or not np.isnan(column_of(ANSWER_FIRST)).all()
    verdicts = (
        values
        if pairs
        else np.where(np.isnan(values), np.nan, values >= judge.threshold)
    )
    details = (
        ratio if pairs else log_lengths(lengths),
        column_of(ANSWER_FIRST),
        column_of(ANSWER_SECOND),
    )
    keys = records.ints("keys")
    clusters = records.ints("clusters")
    return _JudgeTable(
        judge.run.model == judge.name, pairs, keys, clusters, values, verdicts, *details
    )


def _measure_bias(
    judge: str,
    scorer: str,
    judge_tables: list[tuple[Run, _JudgeTable]],
    others: list[list[tuple[Run, _JudgeTable]]],
    level: float,
) -> JudgeBias:
    tables = [table for _, table in judge_tables]

    def concatenate(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(table, name) for table in tables])

    clusters = concatenate("clusters")

    def length() -> LengthProbe:
        verdicts = concatenate("verdicts")
        if len(np.unique(verdicts[~np.isnan(verdicts)])) < 2:
            raise ValueError("the judge gave one and the same verdict to all answers")
        return length_bias(
            verdicts, concatenate("lengths"), clusters=clusters, level=level
        )

    def position() -> SwapProbe:
        first = concatenate("first")
        second = concatenate("second")
        if not (~np.isnan(first) & ~np.isnan(second)).any():
            raise ValueError(
                "no score has verdicts in both orders, as those of judge-pair do"
            )
        return swap_consistency(first, second, clusters=clusters, level=level)

    preference = partial(_measure_self_preference, judge_tables, others, level)
    findings, unknown = run_probes(
        {"length": length, "position": position, "self_preference": preference}
    )
    probe_findings = (
        findings.get("length"),
        findings.get("position"),
        findings.get("self_preference"),
    )
    n = int((~np.isnan(concatenate("values"))).sum())
    return JudgeBias(
        judge,
        scorer,
        tuple(run.id for run, _ in judge_tables),
        n,
        *probe_findings,
        unknown,
    )


def _measure_self_preference(
    judge_tables: list[tuple[Run, _JudgeTable]],
    others: list[list[tuple[Run, _JudgeTable]]],
    level: float,
) -> SelfPreference:
    if not any(table.is_own_model for _, table in judge_tables):
        raise ValueError("no run is of the judge's own model")
    if not others:
        raise ValueError(
            "one judge alone cannot tell its own answers' quality from its preference:"
            " use several (`judges`)"
        )
    excess = {True: dict[int, list[float]](), False: dict[int, list[float]]()}
    clusters: dict[int, int] = {}
    for run, table in judge_tables:
        beside = [
            further_table
            for judge in others
            for theirs, further_table in judge
            if theirs is run
        ]
        if not beside:
            continue
        for position, key in enumerate(table.keys.tolist()):
            further_scores = [
                further_table.values[position]
                for further_table in beside
                if not math.isnan(further_table.values[position])
            ]
            if further_scores and not math.isnan(table.values[position]):
                excess[table.is_own_model].setdefault(key, []).append(
                    float(table.values[position] - np.mean(further_scores))
                )
                clusters[key] = int(table.clusters[position])
    means = {
        side: {key: float(np.mean(values)) for key, values in scores_by_item.items()}
        for side, scores_by_item in excess.items()
    }
    if not means[True]:
        raise ValueError(
            "no answer of the judge's own model was judged by another judge too"
        )

    def mean(values: Mapping[int, float], most: float = 1.0) -> Estimate:
        codes = np.array([clusters[key] for key in values])
        scores = np.array(list(values.values()))
        return mean_interval(
            scores, clusters=codes, value_range=(-most, most), level=level
        )

    if judge_tables[0][1].pairs:
        return SelfPreference(mean(means[True]), None, mean(means[True]))
    differences = {
        key: score - means[False][key]
        for key, score in means[True].items()
        if key in means[False]
    }
    if not differences:
        raise ValueError(
            "no answer of another model to the same items was judged, so leniency"
            " cannot be told from preference"
        )
    return SelfPreference(mean(means[True]), mean(means[False]), mean(differences, 2.0))
