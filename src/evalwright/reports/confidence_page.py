"""What the terminal shows of a run's confidence: calibration, and what declining would be worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from evalwright.reports import numbers
from evalwright.reports.layout import Block, Column, Heading, Line, Table
from evalwright.reports.terminal import show
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.analysis.confidence import TaskConfidence


def show_confidence(
    name: str, found: Sequence[TaskConfidence], *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print the confidence of a run to `file` (standard output), `width` cells wide (the terminal's)."""
    blocks: list[Block] = [Heading(f"Confidence of {inert(name)}")]
    for one in found:
        blocks += _task(one)
    show(blocks, file=file, width=width)


def _task(one: TaskConfidence) -> list[Block]:
    error, curve = one.calibration, one.risk_coverage
    ends = f"[{numbers.number(error.low, 'points', 1)}, {numbers.number(error.high, 'points', 1)}]"
    bias = numbers.number(error.if_calibrated, "points", 1)
    over = "over" if error.overconfidence > 0 else "under"
    rows = [
        ("Brier score", numbers.score(one.brier.score, "plain"), "0 is best; 0.25 is a coin's"),
        (
            f"calibration error, {error.bins} bins of equal mass",
            f"{numbers.number(error.value, 'points', 1)} {ends}",
            f"raw {numbers.number(error.raw, 'points', 1)}, where perfect calibration would give {bias}; "
            f"{over}confident by {numbers.number(abs(error.overconfidence), 'points', 1)} on average",
        ),
        ("AUROC", numbers.score(one.auroc, "points"), "50 sorts nothing"),
        (
            "area under risk-coverage",
            numbers.score(curve.area, "points"),
            f"best possible {numbers.number(curve.best_area, 'points', 1)}, by chance "
            f"{numbers.number(curve.area_by_chance, 'points', 1)}",
        ),
        *(
            (
                f"accuracy, the surest {100 * part.coverage:.0f} of 100",
                numbers.score(part.accuracy, "points"),
                f"confidence from {numbers.number(part.threshold, 'points', 1)}",
            )
            for part in one.at_coverage
        ),
    ]
    columns = (Column("", key=True, folds=True), Column(""), Column("", folds=True))
    facts = (
        f"{inert(one.task)} ({inert(one.scorer)}): {numbers.counted(one.answers, 'answer')}, {numbers.count(one.without)} without "
        f"a confidence, {numbers.count(one.failed)} failed; confidence {one.source}"
    )
    return [
        Heading(facts),
        Table(columns, tuple(rows), {}, indent=2),
        Line(inert(error.method), "quiet", indent=2),
    ]
