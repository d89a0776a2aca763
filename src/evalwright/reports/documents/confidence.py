"""A run's confidence: calibration, and what declining the least sure answers would be worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.analysis.confidence import TaskConfidence
from evalwright.reports import numbers
from evalwright.reports.document import Block, Column, Document, Heading, Note, Table


def confidence_document(name: str, found: Sequence[TaskConfidence]) -> Document:
    """The tasks of one run. name: what the run is called."""
    return Document(f"Confidence of {name}", [block for one in found for block in _task(one)])


def _task(one: TaskConfidence) -> Iterator[Block]:
    error, curve = one.calibration, one.risk_coverage
    over = "over" if error.overconfidence > 0 else "under"
    rows = [
        ("Brier score", numbers.score(one.brier.score, "plain"), "0 is best; a constant 0.5 has 0.25"),
        (
            f"calibration error, {error.bins} bins of equal size",
            f"{numbers.points(error.value)} [{numbers.points(error.low)}, {numbers.points(error.high)}]",
            f"raw {numbers.points(error.raw)}, where perfect calibration would give {numbers.points(error.if_calibrated)}; "
            f"{over}confident by {numbers.points(abs(error.overconfidence))} on average",
        ),
        ("AUROC", numbers.score(one.auroc, "points"), "50 is chance"),
        (
            "area under risk-coverage",
            numbers.score(curve.area, "points"),
            f"best possible {numbers.points(curve.best_area)}, by chance {numbers.points(curve.area_by_chance)}",
        ),
        *(
            (
                f"accuracy, the {100 * part.coverage:.0f}% with most confidence",
                numbers.score(part.accuracy, "points"),
                f"confidence from {numbers.points(part.threshold)}",
            )
            for part in one.at_coverage
        ),
    ]
    yield Heading(
        f"{one.task} ({one.scorer}): {numbers.counted(one.answers, 'answer')}, {numbers.count(one.without)} without "
        f"a confidence, {numbers.count(one.failed)} failed; confidence {one.source}"
    )
    columns = (Column("", key=True, folds=True), Column(""), Column("", folds=True))
    yield Table(columns, rows, f"Confidence on {one.task}")
    yield Note(error.method, "quiet")
