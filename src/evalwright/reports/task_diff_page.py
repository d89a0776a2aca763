"""What the terminal shows of two versions of a task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from evalwright.reports import numbers
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table
from evalwright.reports.terminal import show
from evalwright.reports.text import inert, shorten

if TYPE_CHECKING:
    from evalwright.analysis.contamination.versions import TaskDiff

MOST = 20
"""Samples named of each sort; the JSON form has all."""


def show_task_diff(diff: TaskDiff, *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print what changed to `file` (standard output), `width` cells wide (the terminal's)."""
    show(list(_blocks(diff)), file=file, width=width)


def _blocks(diff: TaskDiff) -> Iterator[Block]:
    yield Heading(f"{inert(diff.a)} {inert(diff.version_a)} against {inert(diff.b)} {inert(diff.version_b)}")
    for name, n, content in (("A", diff.n_a, diff.hash_a), ("B", diff.n_b, diff.hash_b)):
        yield Line(f"{name}  {numbers.counted(n, 'sample')}, content {inert(content)}", indent=2, hang=3)
    yield Line(f"   {numbers.counted(diff.unchanged, 'sample')} unchanged", indent=2)
    renamed = tuple(f"{old} -> {new}" for old, new in diff.renamed)
    for title, names in (("Added", diff.added), ("Removed", diff.removed), ("Renamed", renamed)):
        if names:
            yield Heading(f"{title}: {numbers.count(len(names))}")
            yield Line(", ".join(inert(name) for name in names[:MOST]) + _more(len(names)), indent=2, hang=2)
    if diff.changed:
        yield Heading(f"Changed: {numbers.count(len(diff.changed))}")
        rows = tuple(
            (inert(one.id), part, _shown(one.before[part]), _shown(one.after[part]))
            for one in diff.changed[:MOST]
            for part in one.what
        )
        columns = (
            Column("Sample", key=True, folds=True),
            Column("What"),
            Column("A", folds=True),
            Column("B", folds=True),
        )
        yield Table(columns, rows, {}, indent=2)
        if len(diff.changed) > MOST:
            yield Line(f"The first {MOST}; --json has all.", "quiet", indent=2)
    if diff.settings:
        yield Heading("The task itself")
        parts = tuple((one.key, _shown(one.before), _shown(one.after)) for one in diff.settings)
        heads = (Column("", key=True), Column("A", folds=True), Column("B", folds=True))
        yield Table(heads, parts, {}, indent=2)
    yield Gap()
    yield Line(inert(diff.conclusion), "strong")


def _shown(value: Any) -> str:
    return shorten(inert(json.dumps(value, ensure_ascii=False, default=str)), 300)


def _more(count: int) -> str:
    return f" and {numbers.count(count - MOST)} more" if count > MOST else ""
