"""What a judge's correction by people's labels means, in words: its conclusion, and what a reader must know beside the numbers.

Results come without words; `worded_calibration` and `worded_difference` add them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.core.words import counted

if TYPE_CHECKING:
    from evalwright.analysis.judge_validation.calibration import JudgeCalibration
    from evalwright.analysis.judge_validation.difference import JudgeDifference

_FEW = 30
"""Labels under which an interval is more a warning than a result."""


def worded_calibration(found: JudgeCalibration) -> JudgeCalibration:
    """The calibration with its notes and its conclusion filled in."""
    return replace(found, notes=tuple(_notes(found)), conclusion=_conclusion(found))


def worded_difference(found: JudgeDifference) -> JudgeDifference:
    """The corrected difference with its notes and its conclusion filled in."""
    return replace(found, notes=tuple(_difference_notes(found)), conclusion=_difference_conclusion(found))


def _conclusion(found: JudgeCalibration) -> str:
    """What people would have given, how far the judge is off, and what it was good for."""
    corrected, bias = found.corrected, found.excess
    level = f"{100 * corrected.level:g}% interval"
    sentences = [
        f"People would give {found.model} {_points(corrected.value)} of 100 points ({level} {_points(corrected.low)} to "
        f"{_points(corrected.high)}; {counted(corrected.n_labels, 'label')}, {counted(found.counts.verdicts, 'verdict')})."
    ]
    gap = f"{level} {_points(bias.low)} to {_points(bias.high)}"
    if math.isnan(bias.low):
        sentences.append("The labels do not show whether the judge is biased.")
    elif bias.seen:
        side = "higher" if bias.value > 0 else "lower"
        ends = sorted((abs(bias.low), abs(bias.high)))
        sentences.append(
            f"On the same answers the judge scores {_points(abs(bias.value))} points {side} than people do "
            f"({level} {_points(ends[0])} to {_points(ends[1])}): do not quote its own score of {_points(corrected.judge_mean)}."
        )
    else:
        sentences.append(
            f"No bias of the judge was detected (judge minus people {_signed(bias.value)}, {gap}), which does not prove that "
            "it has none."
        )
    sentences.append(_worth(found))
    return " ".join(sentences)


def _worth(found: JudgeCalibration) -> str:
    before, after = (one.high - one.low for one in (found.labels_alone, found.corrected))
    if not before > 0 or not math.isfinite(after):
        return "There are too few labels for an interval."
    gain = 100 * (1 - after / before)
    if found.stratified and gain < 1:
        return "The strata already contain what the judge knows; its verdicts add nothing more."
    if found.corrected.judge_weight == 0.0:
        return "The judge adds nothing to these labels, so the result is that of the labels alone."
    if gain < 1:
        return "The judge adds almost nothing to these labels: the interval is as wide as that of the labels alone."
    than = "the labels weighted by strata" if found.stratified else "the labels alone"
    return f"With the judge the interval is {gain:.0f}% narrower than that of {than}."


def _notes(found: JudgeCalibration) -> Iterator[str]:
    counts = found.counts
    if counts.unlabelled:
        yield (
            f"{counts.unlabelled} of {counts.drawn} rows have no label. If people skipped the hard ones, the correction is "
            "wrong by an unknown amount; if they only stopped early, it is right."
        )
    if counts.without_verdict:
        answers = counted(counts.without_verdict, "labelled answer has", "labelled answers have")
        yield f"{answers} no verdict and are left out of every number."
    if counts.labelled < _FEW:
        yield f"{counted(counts.labelled, 'label is', 'labels are')} few: treat the interval as a warning and label more."
    if found.left_out:
        yield (
            f"{counted(found.left_out, 'answer')} could not be drawn because the judge gave no verdict; the correction says "
            "nothing about them."
        )
    if len(found.tasks) > 1:
        yield f"The score is the mean over all answers of {len(found.tasks)} tasks; each answer has the same weight."
    if found.drawn_from != found.run:
        yield f"The labels were drawn from the run '{found.drawn_from}', which has the same answers."
    if len(counts.labellers) == 1:
        yield "One person labelled, so agreement between people is unknown: have a second person label some of the rows."


def _difference_conclusion(found: JudgeDifference) -> str:
    """Who is better by people's standards, and whether the judge says the same."""
    (name_a, name_b), judge, corrected = found.labels, found.judge, found.corrected
    level = f"{100 * corrected.level:g}% interval"
    facts = f"{counted(corrected.n_labels, 'item')} labelled for both, {counted(corrected.n_judged, 'item')} judged"
    if corrected.p_value is None or math.isnan(corrected.low):
        items = counted(corrected.n_labels, "labelled item is", "labelled items are")
        return f"{name_a} and {name_b} cannot be compared: {items} not enough."
    ends = (corrected.low, corrected.high)
    if corrected.p_value < 1 - corrected.level and (ends[0] > 0 or ends[1] < 0):
        side = "higher" if corrected.value > 0 else "lower"
        low, high = sorted(abs(end) for end in ends)
        first = (
            f"By people's standards {name_a} scores {_points(abs(corrected.value))} points {side} than {name_b} "
            f"({level} {_points(low)} to {_points(high)}; {facts})."
        )
    else:
        first = (
            f"By people's standards no significant difference between {name_a} and {name_b} was found ({name_a} minus "
            f"{name_b} {_signed(corrected.value)} points, {level} {_points(ends[0])} to {_points(ends[1])}; {facts}); "
            "differences inside this interval cannot be ruled out."
        )
    return f"{first} The judge alone says {_signed(judge.difference)} ({_points(judge.low)} to {_points(judge.high)})."


def _difference_notes(found: JudgeDifference) -> Iterator[str]:
    missing = found.drawn - found.labelled
    if missing > 0:
        yield (
            f"{missing} of {found.drawn} items lack a label for one of the answers. If people skipped the hard ones, the "
            "correction is wrong by an unknown amount."
        )
    if found.labelled < _FEW:
        items = counted(found.labelled, "labelled item is", "labelled items are")
        yield f"{items} few: treat the interval as a warning and label more."
    if found.scorer_b != found.scorer:
        yield f"The runs were judged by different scorers, '{found.scorer}' and '{found.scorer_b}'."


def _points(value: float) -> str:
    text = f"{100 * value:.1f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _signed(value: float) -> str:
    text = _points(value)
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"
