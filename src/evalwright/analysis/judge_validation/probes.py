"""A judge's faults, each looked for where the data allow it; where they do not, the reason is told.

A probe takes the evidence and returns a result with `as_dict`, or raises ValueError with the reason why nothing can be said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.judge_validation.labels import Evidence
from evalwright.analysis.judge_validation.verdicts import ANSWER_FIRST, ANSWER_SECOND, CONFIDENCE, log_lengths
from evalwright.core.plain import Plain
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
    repeat_flips,
    rogan_gladen,
    swap_consistency,
)

_MOST_GRADES = 11
"""Graded verdicts with more distinct values are numbers, whose agreement with labels is a matter of distance."""


@dataclass(frozen=True, slots=True)
class GradedAgreement(Plain):
    """Krippendorff's alpha for numbers: judge with people, and people among themselves (None where no answer has two labels)."""

    judge_alpha: Estimate
    ceiling_alpha: Estimate | None


def look_for_faults(evidence: Evidence) -> tuple[dict[str, Any], dict[str, str]]:
    """Results of the probes by name, and for the others the reason why there is none."""
    return look_for({name: partial(probe, evidence) for name, probe in PROBES.items()})


def look_for(probes: Mapping[str, Callable[[], Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """The same of any probes."""
    found: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for name, probe in probes.items():
        try:
            found[name] = probe()
        except ValueError as error:
            unknown[name] = str(error)
    return found, unknown


def _rogan_gladen(evidence: Evidence) -> RoganGladen:
    _need_equal_chances(evidence)
    _need_binary(evidence)
    clusters = evidence.verdicts.clusters[~np.isnan(evidence.judge)]
    if len(np.unique(clusters)) < len(clusters):
        raise ValueError("its interval assumes independent items, and these are in clusters")
    if ((~np.isnan(evidence.people)).sum(axis=1) > 1).any():
        raise ValueError("it needs one label per item, and several people labelled the same ones")
    judge, human = evidence.judge, evidence.human
    labelled = ~np.isnan(human) & ~np.isnan(judge)
    rest = judge[~labelled & ~np.isnan(judge)]
    right, wrong = labelled & (human == 1), labelled & (human == 0)
    counts = [
        int(np.count_nonzero(rows))
        for rows in (rest == 1, rest == rest, right & (judge == 1), right, wrong & (judge == 0), wrong)
    ]
    found = rogan_gladen(*counts)
    if not found.useful:
        raise ValueError(found.reason)
    return found


def _agreement(evidence: Evidence) -> JudgeAgreement | GradedAgreement:
    _need_equal_chances(evidence)
    rows = evidence.labelled
    judge, people, clusters = evidence.judge[rows], evidence.people[rows], evidence.verdicts.clusters[rows]
    values = np.unique(np.concatenate([judge, people.ravel()]))
    if np.count_nonzero(~np.isnan(values)) <= _MOST_GRADES:
        return judge_agreement(judge, people, clusters=clusters)
    both = np.column_stack([judge, evidence.human[rows]])
    alone = (~np.isnan(people)).sum(axis=1) < 2
    return GradedAgreement(
        krippendorff_alpha(both, clusters=clusters),
        None if alone.all() else krippendorff_alpha(people, clusters=clusters),
    )


def _acquiescence(evidence: Evidence) -> AcquiescenceProbe:
    _need_equal_chances(evidence)
    _need_binary(evidence)
    judge, human, clusters = _single_labels(evidence)
    return acquiescence_bias(judge, human, clusters=clusters)


def _length(evidence: Evidence) -> LengthProbe:
    _need_binary(evidence)
    _need_both(evidence.judge)
    return length_bias(evidence.judge, _log_lengths(evidence), clusters=evidence.verdicts.clusters)


def _length_of_people(evidence: Evidence) -> LengthProbe:
    _need_binary(evidence)
    _need_equal_chances(evidence)
    rows = _rows_of_labels(evidence)
    _, human, clusters = _single_labels(evidence)
    _need_both(human)
    return length_bias(human, _log_lengths(evidence)[rows], clusters=clusters)


def _position(evidence: Evidence) -> SwapProbe:
    forth, back = (evidence.verdicts.parts[part] for part in (ANSWER_FIRST, ANSWER_SECOND))
    if not (~np.isnan(forth) & ~np.isnan(back)).any():
        raise ValueError(f"no score has verdicts in both orders ('{ANSWER_FIRST}' and '{ANSWER_SECOND}')")
    return swap_consistency(forth, back, clusters=evidence.verdicts.clusters)


def _repeats(evidence: Evidence) -> RepeatProbe:
    """Draws of one item that gave the same answer word for word were judged again."""
    verdicts = evidence.verdicts
    judged = np.flatnonzero(~np.isnan(verdicts.values))
    order = judged[np.lexsort((verdicts.answers[judged], verdicts.items[judged]))]
    same = (np.diff(verdicts.items[order]) == 0) & (np.diff(verdicts.answers[order]) == 0)
    group = np.concatenate([[0], np.cumsum(~same)]) if len(order) else np.zeros(0, np.int64)
    sizes = np.bincount(group)
    if not (sizes >= 2).any():
        raise ValueError("no answer was judged more than once")
    starts = np.cumsum(sizes) - sizes
    table = np.full((len(sizes), int(sizes.max())), np.nan)
    table[group, np.arange(len(order)) - starts[group]] = verdicts.values[order]
    several = sizes >= 2
    return repeat_flips(table[several], clusters=verdicts.clusters[order[starts[several]]])


def _stated(measure: Callable[..., Any]) -> Callable[[Evidence], Any]:
    """A probe that measures what the judge takes for the chance that an answer is right."""

    def probe(evidence: Evidence) -> Any:
        sure, human, clusters = _probabilities(evidence)
        found = measure(sure, human, clusters=clusters)
        if isinstance(found, Estimate) and found.value != found.value:
            raise ValueError("people called all of the labelled answers right, or all wrong")
        return found

    return probe


PROBES: Mapping[str, Callable[[Evidence], Any]] = {
    "rogan_gladen": _rogan_gladen,
    "agreement": _agreement,
    "acquiescence": _acquiescence,
    "length": _length,
    "length_of_people": _length_of_people,
    "position": _position,
    "repeats": _repeats,
    "brier": _stated(brier_score),
    "calibration_error": _stated(calibration_error),
    "auroc": _stated(auroc),
}
"""What is looked for, by the names of the results."""


def _need_equal_chances(evidence: Evidence) -> None:
    if not evidence.equal_chances:
        raise ValueError("the labels were drawn with unequal chances; draw a random set for it")


def _need_binary(evidence: Evidence) -> None:
    said = np.concatenate([evidence.judge, evidence.people.ravel()])
    if not ((said == 0) | (said == 1) | np.isnan(said)).all():
        raise ValueError("it needs verdicts and labels that say right or wrong, and these are graded")


def _need_both(verdicts: NDArray[np.float64]) -> None:
    if len(np.unique(verdicts[~np.isnan(verdicts)])) < 2:
        raise ValueError("all verdicts are the same")


def _rows_of_labels(evidence: Evidence) -> NDArray[np.int64]:
    """For each label (not each item) the record it is about."""
    rows: NDArray[np.int64] = np.nonzero(~np.isnan(evidence.people))[0]
    return rows


def _single_labels(evidence: Evidence) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Verdict, label and cluster for each label: an item that two people saw stands there twice, in one cluster."""
    rows = _rows_of_labels(evidence)
    labels = evidence.people[~np.isnan(evidence.people)]
    return evidence.judge[rows], labels, evidence.verdicts.clusters[rows]


def _log_lengths(evidence: Evidence) -> NDArray[np.float64]:
    """The logarithm of an answer's length over the middle one's."""
    lengths = evidence.verdicts.lengths
    if len(np.unique(lengths[lengths > 0])) < 2:
        raise ValueError("all answers have the same length")
    return log_lengths(lengths)


def _probabilities(evidence: Evidence) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """What the judge takes for the chance that an answer is right, and whether a person called it right, by label."""
    judge, human, clusters = _single_labels(evidence)
    stated = evidence.verdicts.parts[CONFIDENCE][_rows_of_labels(evidence)]
    if evidence.verdicts.graded:
        sure = judge
    elif (~np.isnan(stated)).any():
        sure = np.where(judge == 1, stated, 1 - stated)  # confidence is that the verdict holds
    else:
        raise ValueError("the judge gives no probability, only right or wrong")
    if not ((human == 0) | (human == 1)).all():
        raise ValueError("it needs labels of 0 and 1")
    _need_equal_chances(evidence)
    return sure, human, clusters
