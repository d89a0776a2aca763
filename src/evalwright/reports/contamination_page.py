"""What the terminal and a Markdown file show of a report on contamination."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from evalwright.reports import numbers
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table
from evalwright.reports.markdown import escape
from evalwright.reports.terminal import show
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.analysis.contamination.drops import CutOff, Drop
    from evalwright.analysis.contamination.overlap import Overlap
    from evalwright.analysis.contamination.report import ContaminationReport

Section = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
"""A title, the columns, the rows."""


def show_contamination(
    report: ContaminationReport, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print a report to `file` (standard output), `width` cells wide (the terminal's)."""
    show(contamination_blocks(report), file=file, width=width)


def contamination_blocks(report: ContaminationReport) -> list[Block]:
    """The page of one run's report; its last line is the conclusion."""
    blocks: list[Block] = [Heading(f"Contamination of {inert(report.model)} (run {inert(report.run)})")]
    for title, columns, rows in _sections(report):
        heads = tuple(
            Column(name, folds=i < 2, key=i == 0, right=name == "p") for i, name in enumerate(columns)
        )
        shown = tuple(tuple(inert(cell) for cell in row) for row in rows)
        blocks += [Heading(title), Table(heads, shown, {}, indent=2)]
    if report.notes:
        blocks += [Gap(), *(Line(inert(note), "quiet", hang=2) for note in report.notes)]
    return [*blocks, Gap(), Line(inert(report.conclusion), "warn" if report.suspicious else "strong")]


def contamination_markdown(report: ContaminationReport) -> str:
    """The same as Markdown."""
    lines = [f"## Contamination of {escape(report.model)} (run {escape(report.run)})", ""]
    for title, columns, rows in _sections(report):
        lines += [f"### {escape(title)}", "", f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
        lines += [f"| {' | '.join(escape(cell) for cell in row)} |" for row in rows]
        lines.append("")
    lines += [f"- {escape(note)}" for note in report.notes]
    return "\n".join([*lines, *([""] if report.notes else []), escape(report.conclusion), ""])


def _sections(report: ContaminationReport) -> list[Section]:
    sections: list[Section] = []
    columns: tuple[str, ...]
    if report.cut_offs:
        columns = ("Task", "Dated by", "Up to it", "Later", "Difference", "p")
        sections.append(
            (f"Before and after {report.cut_off}", columns, [_cut_off(one) for one in report.cut_offs])
        )
    if report.drops:
        columns = (
            "Task",
            "Rewrites",
            "Original",
            "Rewritten",
            "Drop",
            "Items",
            "Control's drop",
            "Control items",
            "Excess",
            "p",
        )
        sections.append(("Original against rewritten wordings", columns, _drops(report.drops)))
    if report.overlaps:
        columns = ("Task", "n-grams in the corpus", "Questions", "Score")
        rows = [row for one in report.overlaps for row in _overlap(one)]
        sections.append((f"Overlap with a corpus, n = {report.overlaps[0].n}", columns, rows))
    return sections


def _overlap(one: Overlap) -> list[tuple[str, ...]]:
    said = {"none": "none", "some": "some, under 80 of 100", "most": "80 of 100 and more"}
    rows: list[tuple[str, ...]] = [
        (one.task, said[name], numbers.count(found.n + found.n_failed), numbers.score(found, "points"))
        for name, found in one.classes.items()
        if found is not None
    ]
    difference = one.difference
    if difference is not None:
        size = numbers.difference(difference.difference, difference.low, difference.high, bounded=True)
        rows.append(
            (one.task, "some or most, less none", "", f"{size}, p = {numbers.p_value(difference.p_value)}")
        )
    return rows


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


def _drops(found: Sequence[Drop]) -> list[tuple[str, ...]]:
    return [_drop(one) for one in found]


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
