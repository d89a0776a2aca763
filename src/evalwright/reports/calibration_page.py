"""What the terminal shows of a calibrated judge: the three scores, its agreement with people, its faults, a conclusion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evalwright.reports import numbers
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.analysis.judge_validation.calibration import JudgeCalibration
    from evalwright.analysis.judge_validation.difference import JudgeDifference

Cells = tuple[str, ...]

_NAMES = {
    "rogan_gladen": "Rogan-Gladen, as a check",
    "agreement": "agreement",
    "yes_lean": "says yes too often",
    "length": "likes long answers",
    "length_of_people": "people like long answers",
    "position": "likes a place",
    "repeats": "changes its mind",
    "brier": "Brier score",
    "calibration_error": "calibration error",
    "auroc": "AUROC",
}


def calibration_blocks(found: JudgeCalibration) -> list[Block]:
    """The page of one run's judge; its last line is the conclusion."""
    counts = found.counts
    facts = (
        f"{inert(found.model)} on {', '.join(map(inert, found.tasks))}: {numbers.counted(counts.verdicts, 'verdict')}, "
        f"{counts.labelled} of {counts.drawn} drawn answers labelled by {_people(counts.labellers)} ({found.design} set "
        f"{inert(found.set)})"
    )
    rows: list[Cells] = [
        ("the judge alone", numbers.score(found.judge, "points"), numbers.count(found.judge.n), found.judge.method),
        _correction(_alone(found.design), found.labels_alone),
        _correction("corrected", found.corrected),
        ("judge less people", _signed(found.lean), numbers.count(counts.labelled - counts.without_verdict), found.lean.method),
    ]  # fmt: skip
    columns = (
        Column("Score", key=True), Column("Of 100 points"), Column("Rests on", right=True), Column("Interval by", folds=True),
    )  # fmt: skip
    tones: dict[tuple[int, int], Any] = {(2, 0): "strong", (2, 1): "strong"}
    blocks: list[Block] = [
        Heading(f"The judge '{inert(found.scorer)}' beside people"),
        Line(facts, "quiet"),
        Gap(),
        Table(columns, tuple(rows), tones, indent=2),
    ]
    blocks += _agreement(found)
    blocks += _faults(found)
    blocks += _notes(found.notes)
    return [*blocks, Gap(), Line(inert(found.conclusion), "strong")]


def difference_blocks(found: JudgeDifference) -> list[Block]:
    """The page of two runs; its last line is the conclusion."""
    judge = found.judge
    rows: list[Cells] = [
        (
            "the judge alone",
            numbers.difference(judge.difference, judge.low, judge.high, bounded=True),
            numbers.count(judge.n),
            judge.interval_method,
        ),
        _correction(_alone(found.design), found.labels_alone, signed=True),
        _correction("corrected", found.corrected, signed=True),
        ("judge favours A", _signed(found.favour), numbers.count(found.labelled), found.favour.method),
    ]
    columns = (
        Column("A minus B", key=True), Column("Points"), Column("Rests on", right=True), Column("Interval by", folds=True),
    )  # fmt: skip
    return [
        Heading(f"The judge '{inert(found.scorer)}' on two runs, beside people"),
        Line(f"A  {inert(found.a)}", indent=2, hang=3),
        Line(f"B  {inert(found.b)}", indent=2, hang=3),
        Gap(),
        Table(columns, tuple(rows), {(2, 0): "strong", (2, 1): "strong"}, indent=2),
        *_notes(found.notes),
        Gap(),
        Line(inert(found.conclusion), "strong"),
    ]


def _alone(design: str) -> str:
    return "labels, by strata" if design == "stratified" else "labels alone"


def _correction(name: str, found: Any, *, signed: bool = False) -> Cells:
    if signed:
        text = numbers.difference(found.value, found.low, found.high, bounded=True)
    else:
        ends = [numbers.number(end, "points", 1) for end in (found.value, found.low, found.high)]
        text = f"{ends[0]} [{ends[1]}, {ends[2]}]"
    weight = f", judge's weight {found.judge_weight:.2f}" if found.judge_weight else ""
    return (name, text, numbers.counted(found.n_labels, "label"), f"{found.method}{weight}")


def _signed(lean: Any) -> str:
    return numbers.difference(lean.value, lean.low, lean.high, bounded=True)


def _people(labellers: Any) -> str:
    named = [f"{inert(name)} ({n})" for name, n in labellers.items() if name]
    return ", ".join(named) or "one person"


def _agreement(found: JudgeCalibration) -> list[Block]:
    agreement = found.faults.get("agreement")
    if agreement is None:
        return []
    ceiling = agreement.ceiling
    if hasattr(agreement, "gap"):
        rows = [
            (title, _plain(getattr(agreement.judge, name)), _plain(getattr(ceiling, name, None)))
            for name, title in (
                ("raw", "same label"), ("kappa", "Cohen's kappa"), ("ac1", "Gwet's AC1"), ("alpha", "Krippendorff's alpha"),
            )
        ]  # fmt: skip
        if agreement.gap is not None:
            rows.append(("judge less ceiling, same label", _plain(agreement.gap), ""))
    else:
        rows = [("Krippendorff's alpha (numbers)", _plain(agreement.judge), _plain(ceiling))]
    columns = (Column("", key=True), Column("Judge with a person"), Column("Person with person"))
    return [Heading("Agreement"), Table(columns, tuple(rows), {}, indent=2)]


def _plain(estimate: Any) -> str:
    """A coefficient with two decimals; what two people would agree on is not known with one."""
    if estimate is None:
        return "not known"
    if math.isnan(estimate.value):
        return f"n/a ({inert(estimate.method)})"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _faults(found: JudgeCalibration) -> list[Block]:
    rows = [row for name, result in found.faults.items() for row in _fault(name, result)]
    rows += [(_NAMES[name], "not known", inert(reason)) for name, reason in found.unknown.items()]
    columns = (Column("", key=True), Column("Found", folds=True), Column("", folds=True))
    return [Heading("Faults looked for"), Table(columns, tuple(rows), {}, indent=2)]


def _fault(name: str, found: Any) -> Iterator[Cells]:
    title = _NAMES[name]
    if name == "rogan_gladen":
        ends = [numbers.number(end, "points", 1) for end in (found.value, found.low, found.high)]
        rates = f"sensitivity {found.sensitivity:.2f}, specificity {found.specificity:.2f}"
        yield (title, f"{ends[0]} [{ends[1]}, {ends[2]}]", rates)
    elif name == "yes_lean":
        yield ("yes where people say no", numbers.score(found.false_yes, "points"), _of(found.false_yes))
        yield ("no where people say yes", numbers.score(found.false_no, "points"), _of(found.false_no))
        gap = numbers.difference(found.lean.difference, found.lean.low, found.lean.high, bounded=True)
        yield (title, gap, f"{found.lean.test}, p {numbers.p_value(found.lean.p_value)}")
    elif name in ("length", "length_of_people"):
        effect = found.effects[1]
        ends = [f"{2**x:.2f}" for x in (effect.coefficient, effect.low, effect.high)]
        ratio = f"odds x {ends[0]} [{ends[1]}, {ends[2]}]"
        what = "for an answer twice as long" + (
            "; may be honest: compare with people" if name == "length" else ""
        )
        yield (title, ratio, f"{what} (p {numbers.p_value(effect.p_value)})")
    elif name == "position":
        yield (
            "same verdict in both orders",
            numbers.score(found.consistency, "points"),
            _of(found.consistency),
        )
        p = numbers.p_value(found.p_value)
        yield (
            "names the answer shown first",
            numbers.score(found.first_rate, "points"),
            f"50 without a habit (p {p})",
        )
    elif name == "repeats":
        text = f"{_of(found.flip_rate)} judged again; equal questions may have been answered from the store"
        yield (title, numbers.score(found.flip_rate, "points"), text)
    elif name == "brier":
        yield (title, _plain(found.score), "0 is best; a constant 0.5 has 0.25")
    elif name == "calibration_error":
        text = "beyond what noise makes" if found.miscalibrated else "no more than noise makes"
        yield (title, f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]", text)
    elif name == "auroc":
        yield (title, _plain(found), "0.5: sorts nothing")


def _of(estimate: Any) -> str:
    return f"of {numbers.items(estimate.n, 0, estimate.n_clusters)}"


def _notes(notes: tuple[str, ...]) -> list[Block]:
    return [Gap(), *(Line(inert(note), "quiet", hang=2) for note in notes)] if notes else []
