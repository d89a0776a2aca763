"""What a calibration means, in words that a careful statistician would sign."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalwright.analysis.judge_validation.evidence import Evidence

if TYPE_CHECKING:
    from evalwright.analysis.judge_validation.calibration import Counts, Lean
    from evalwright.statistics import JudgeCorrection, PairedComparison

_FEW = 30
"""Labels under which an interval is more a warning than a result."""


def conclusion(
    model: str,
    corrected: JudgeCorrection,
    alone: JudgeCorrection,
    lean: Lean,
    counts: Counts,
    *,
    stratified: bool,
) -> str:
    """What people would have given, what the judge is off by, and what it was good for."""
    level = f"{100 * corrected.level:g}% interval"
    sentences = [
        f"People would give {model} {_points(corrected.value)} of 100 points ({level} {_points(corrected.low)} to "
        f"{_points(corrected.high)}; {_counted(corrected.n_labels, 'label')}, {_counted(counts.verdicts, 'verdict')})."
    ]
    gap = f"{level} {_points(lean.low)} to {_points(lean.high)}"
    if math.isnan(lean.low):
        sentences.append("How far the judge is off cannot be told.")
    elif lean.seen:
        side = "higher" if lean.value > 0 else "lower"
        ends = sorted((abs(lean.low), abs(lean.high)))
        sentences.append(
            f"On the same answers the judge scores {_points(abs(lean.value))} points {side} than people do "
            f"({level} {_points(ends[0])} to {_points(ends[1])}): do not quote its own score of {_points(corrected.judge_mean)}."
        )
    else:
        sentences.append(
            f"No lean of the judge was seen (judge less people {_signed(lean.value)}, {gap}), which does not say that it has none."
        )
    sentences.append(_worth(corrected, alone, stratified))
    return " ".join(sentences)


def _worth(corrected: JudgeCorrection, alone: JudgeCorrection, stratified: bool) -> str:
    before, after = alone.high - alone.low, corrected.high - corrected.low
    if not before > 0 or not math.isfinite(after):
        return "There are too few labels for an interval."
    gain = 100 * (1 - after / before)
    if stratified and gain < 1:
        return "What the judge knows is in the strata already; beyond them it adds nothing."
    if corrected.judge_weight == 0.0:
        return "The judge adds nothing to these labels: they stand alone."
    if gain < 1:
        return "The judge hardly adds to these labels: the interval is as wide as that of the labels alone."
    than = "the labels weighted by strata" if stratified else "the labels alone"
    return f"With the judge the interval is {gain:.0f}% narrower than that of {than}."


def notes(evidence: Evidence, counts: Counts) -> Iterator[str]:
    """What a reader must know beside the numbers."""
    drawn = evidence.drawn
    if counts.unlabelled:
        yield (
            f"{counts.unlabelled} of {counts.drawn} rows have no label. Where people left out the hard ones, the correction is "
            "wrong by an unknown amount; where they merely stopped, it holds."
        )
    if counts.without_verdict:
        yield f"{_counted(counts.without_verdict, 'labelled answer')} without a verdict are in no number."
    if counts.labelled < _FEW:
        yield f"{_counted(counts.labelled, 'label')} are few: take the interval for a warning and label more."
    if drawn.left_out:
        yield f"{_counted(len(drawn.left_out), 'answer')} could not be drawn for want of a verdict; the correction is not about them."
    if len(evidence.verdicts.tasks) > 1:
        yield f"The score is the mean over all answers of {len(evidence.verdicts.tasks)} tasks, each answer counting the same."
    if drawn.run != evidence.run.id:
        yield f"The labels were drawn from the run '{drawn.run}', which gave the same answers."
    if len(evidence.labellers) == 1:
        yield "One person labelled, so nobody knows how far two people agree: have some rows labelled twice."


def difference_conclusion(
    name_a: str, name_b: str, judge: PairedComparison, corrected: JudgeCorrection
) -> str:
    """Who is better by people's standards, and whether the judge says the same."""
    level = f"{100 * corrected.level:g}% interval"
    facts = f"{_counted(corrected.n_labels, 'item')} labelled for both, {_counted(corrected.n_judged, 'item')} judged"
    if corrected.p_value is None or math.isnan(corrected.low):
        return f"{name_a} and {name_b} cannot be compared: {_counted(corrected.n_labels, 'labelled item')} is not enough."
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
            f"By people's standards no difference between {name_a} and {name_b} was seen ({name_a} minus {name_b} "
            f"{_signed(corrected.value)} points, {level} {_points(ends[0])} to {_points(ends[1])}; {facts}); "
            "differences inside this interval cannot be ruled out."
        )
    return f"{first} The judge alone says {_signed(judge.difference)} ({_points(judge.low)} to {_points(judge.high)})."


def difference_notes(a: Evidence, b: Evidence, corrected: JudgeCorrection) -> Iterator[str]:
    """What a reader must know beside the numbers."""
    drawn = len(a.drawn.rows)
    if corrected.n_labels < drawn:
        yield (
            f"{drawn - corrected.n_labels} of {drawn} items lack a label for one of the answers. Where people left out the hard "
            "ones, the correction is wrong by an unknown amount."
        )
    if corrected.n_labels < _FEW:
        yield f"{_counted(corrected.n_labels, 'labelled item')} are few: take the interval for a warning and label more."
    if a.verdicts.scorer != b.verdicts.scorer:
        yield f"The runs were judged by different scorers, '{a.verdicts.scorer}' and '{b.verdicts.scorer}'."


def _points(value: float) -> str:
    text = f"{100 * value:.1f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _signed(value: float) -> str:
    text = _points(value)
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"


def _counted(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"
