"""A report on contamination: scores before and after a cut-off, the drop to rewritten questions, and overlap with a corpus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalwright.reports import document as doc
from evalwright.reports import numbers

if TYPE_CHECKING:
    from evalwright.analysis.contamination.drops import CutOff, Drop
    from evalwright.analysis.contamination.overlap import Overlap
    from evalwright.analysis.contamination.report import ContaminationReport

_DROP_COLUMNS = (
    "Task", "Rewrites", "Original", "Rewritten", "Drop", "Items", "Control's drop", "Control items", "Excess", "p",
)  # fmt: skip


def contamination_document(report: ContaminationReport) -> doc.Document:
    """One run's report; its last line is the conclusion."""
    blocks: list[doc.Block] = []
    titles: tuple[str, ...]
    if report.cut_offs:
        titles = ("Task", "Dated by", "Up to it", "Later", "Difference", "p")
        title = f"Before and after {report.cut_off}"
        blocks += _part(title, titles, [_cut_off(one) for one in report.cut_offs])
    if report.drops:
        title = "Original against rewritten wordings"
        blocks += _part(title, _DROP_COLUMNS, [_drop(one) for one in report.drops])
    if report.overlaps:
        titles = ("Task", "n-grams in the corpus", "Questions", "Score")
        title = f"Overlap with a corpus, n = {report.overlaps[0].n}"
        blocks += _part(title, titles, [row for one in report.overlaps for row in _overlap(one)])
    blocks += [doc.Notes(report.notes)] if report.notes else []
    blocks.append(doc.Conclusion(report.conclusion, "warn" if report.suspicious else "strong"))
    return doc.Document(f"Contamination of {report.model} (run {report.run})", blocks)


def _part(title: str, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[doc.Block]:
    columns = [doc.Column(name, folds=i < 2, key=i == 0, right=name == "p") for i, name in enumerate(titles)]
    return [doc.Heading(title), doc.Table(columns, rows, title)]


def _overlap(one: Overlap) -> Iterator[tuple[str, ...]]:
    said = {"none": "none", "some": "some, under 80 of 100", "most": "80 of 100 and more"}
    for name, found in one.classes.items():
        if found is not None:
            n = numbers.count(found.n + found.n_failed)
            yield one.task, said[name], n, numbers.score(found, "points")
    difference = one.difference
    if difference is not None:
        size = numbers.difference(difference.difference, difference.low, difference.high, bounded=True)
        yield one.task, "some or most, minus none", "", f"{size}, p = {numbers.p_value(difference.p_value)}"


def _cut_off(one: CutOff) -> tuple[str, ...]:
    found = one.difference
    sides = [
        numbers.NOTHING if side is None else f"{numbers.score(side, 'points')}, n = {numbers.count(side.n)}"
        for side in (one.before, one.after)
    ]
    if found is None:
        return one.task, one.key, *sides, numbers.NOTHING, numbers.NOTHING
    difference = numbers.difference(found.difference, found.low, found.high, bounded=True)
    return one.task, one.key, *sides, difference, numbers.p_value(found.p_value)


def _drop(one: Drop) -> tuple[str, ...]:
    drop, check = one.drop, one.check
    control = (numbers.NOTHING, "0", numbers.NOTHING, numbers.NOTHING)
    if check is not None:
        other = check.control_drop
        control = (
            numbers.difference(other.difference, other.low, other.high, bounded=True),
            numbers.count(other.n),
            numbers.difference(check.excess, check.low, check.high, bounded=True),
            numbers.p_value(check.p_value),
        )
    return (
        one.task,
        one.kind,
        numbers.number(drop.mean_a, "points", 1),
        numbers.number(drop.mean_b, "points", 1),
        numbers.difference(drop.difference, drop.low, drop.high, bounded=True),
        numbers.count(drop.n),
        *control,
    )
