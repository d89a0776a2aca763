"""A judge's faults, each looked for where the data allow it; where they do not, the reason is told.

A probe takes the evidence and returns a result with `as_dict`, or raises ValueError with the reason why nothing can be said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.analysis.judge_validation.evidence import Evidence
from evalwright.analysis.judge_validation.verdicts import ANSWER_FIRST, ANSWER_SECOND, CONFIDENCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import (
        AcquiescenceProbe,
        BrierScore,
        CalibrationError,
        Estimate,
        JudgeAgreement,
        LengthProbe,
        RepeatProbe,
        RoganGladen,
        SwapProbe,
    )

_MOST_GRADES = 11
"""Graded verdicts with more distinct values are numbers, whose agreement with labels is a matter of distance."""


@dataclass(frozen=True, slots=True)
class GradedAgreement:
    """Krippendorff's alpha for numbers: judge with people, and people among themselves (None where no answer has two labels)."""

    judge: Estimate
    ceiling: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values."""
        return {
            "judge_alpha": self.judge.as_dict(),
            "ceiling_alpha": None if self.ceiling is None else self.ceiling.as_dict(),
        }


def look_for_faults(evidence: Evidence) -> tuple[dict[str, Any], dict[str, str]]:
    """Results of the probes by name, and for the others the reason why there is none."""
    found: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for name, probe in PROBES.items():
        try:
            found[name] = probe(evidence)
        except ValueError as error:
            unknown[name] = str(error)
    return found, unknown


def _rogan_gladen(evidence: Evidence) -> RoganGladen:
    import numpy as np

    from evalwright.statistics import rogan_gladen

    _need_equal_chances(evidence)
    _need_binary(evidence)
    if _clusters(evidence) is not None:
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
    import numpy as np

    from evalwright.statistics import judge_agreement, krippendorff_alpha

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
    from evalwright.statistics import acquiescence_bias

    _need_equal_chances(evidence)
    _need_binary(evidence)
    judge, human, clusters = _single_labels(evidence)
    return acquiescence_bias(judge, human, clusters=clusters)


def _length(evidence: Evidence) -> LengthProbe:
    from evalwright.statistics import length_bias

    _need_binary(evidence)
    _need_both(evidence.judge)
    return length_bias(evidence.judge, _log_lengths(evidence), clusters=evidence.verdicts.clusters)


def _length_of_people(evidence: Evidence) -> LengthProbe:
    from evalwright.statistics import length_bias

    _need_binary(evidence)
    _need_equal_chances(evidence)
    rows = _rows_of_labels(evidence)
    _, human, clusters = _single_labels(evidence)
    _need_both(human)
    return length_bias(human, _log_lengths(evidence)[rows], clusters=clusters)


def _position(evidence: Evidence) -> SwapProbe:
    import numpy as np

    from evalwright.statistics import swap_consistency

    forth, back = (evidence.verdicts.parts[part] for part in (ANSWER_FIRST, ANSWER_SECOND))
    if not (~np.isnan(forth) & ~np.isnan(back)).any():
        raise ValueError(
            f"no score has verdicts in both orders (the parts '{ANSWER_FIRST}' and '{ANSWER_SECOND}')"
        )
    return swap_consistency(forth, back, clusters=evidence.verdicts.clusters)


def _repeats(evidence: Evidence) -> RepeatProbe:
    """Draws of one item that gave the same answer word for word were judged again."""
    import numpy as np

    from evalwright.statistics import repeat_flips

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


def _brier(evidence: Evidence) -> BrierScore:
    from evalwright.statistics import brier_score

    sure, human, clusters = _probabilities(evidence)
    return brier_score(sure, human, clusters=clusters)


def _calibration_error(evidence: Evidence) -> CalibrationError:
    from evalwright.statistics import calibration_error

    sure, human, clusters = _probabilities(evidence)
    return calibration_error(sure, human, clusters=clusters)


def _auroc(evidence: Evidence) -> Estimate:
    from evalwright.statistics import auroc

    sure, human, clusters = _probabilities(evidence)
    found = auroc(sure, human, clusters=clusters)
    if found.value != found.value:
        raise ValueError("people called all of the labelled answers right, or all wrong")
    return found


PROBES: Mapping[str, Callable[[Evidence], Any]] = {
    "rogan_gladen": _rogan_gladen,
    "agreement": _agreement,
    "acquiescence": _acquiescence,
    "length": _length,
    "length_of_people": _length_of_people,
    "position": _position,
    "repeats": _repeats,
    "brier": _brier,
    "calibration_error": _calibration_error,
    "auroc": _auroc,
}
"""What is looked for, by the names of the results."""


def _need_equal_chances(evidence: Evidence) -> None:
    if not evidence.equal_chances:
        raise ValueError("the labels were drawn with unequal chances; draw a random set for it")


def _need_binary(evidence: Evidence) -> None:
    import numpy as np

    said = np.concatenate([evidence.judge, evidence.people.ravel()])
    if not ((said == 0) | (said == 1) | np.isnan(said)).all():
        raise ValueError("it needs verdicts and labels that say right or wrong, and these are graded")


def _need_both(verdicts: NDArray[np.float64]) -> None:
    import numpy as np

    if len(np.unique(verdicts[~np.isnan(verdicts)])) < 2:
        raise ValueError("all verdicts are the same")


def _clusters(evidence: Evidence) -> NDArray[np.int64] | None:
    """The clusters of the judged records, None where each stands alone."""
    import numpy as np

    own: NDArray[np.int64] = evidence.verdicts.clusters[~np.isnan(evidence.judge)]
    return None if len(np.unique(own)) == len(own) else own


def _rows_of_labels(evidence: Evidence) -> NDArray[np.int64]:
    """For each label (not each item) the record it is about."""
    import numpy as np

    rows: NDArray[np.int64] = np.nonzero(~np.isnan(evidence.people))[0]
    return rows


def _single_labels(
    evidence: Evidence,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Verdict, label and cluster for each label: an item that two people saw stands there twice, in one cluster."""
    import numpy as np

    rows = _rows_of_labels(evidence)
    labels = evidence.people[~np.isnan(evidence.people)]
    return evidence.judge[rows], labels, evidence.verdicts.clusters[rows]


def _log_lengths(evidence: Evidence) -> NDArray[np.float64]:
    """The logarithm of an answer's length over the middle one's."""
    import numpy as np

    lengths = evidence.verdicts.lengths
    known = lengths[lengths > 0]
    if len(np.unique(known)) < 2:
        raise ValueError("all answers have the same length")
    found = np.full(len(lengths), np.nan)
    np.log(lengths / np.median(known), out=found, where=lengths > 0)
    return found


def _probabilities(
    evidence: Evidence,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """What the judge takes for the chance that an answer is right, and whether a person called it right, by label."""
    import numpy as np

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
