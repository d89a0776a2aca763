"""A table laid out for a width in terminal cells.

Text is wrapped, numbers never: a table that is too wide first folds its text columns and then falls into parts that each
repeat the key columns. The result is lines of segments with a tone; plain text joins them, a terminal colours them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalwright.reports.document import Column, Tone
from evalwright.reports.text import cell_width, pad, wrap

GAP = 2
_LEAST_FOLD = 12
_COMFORT = 18
"""Cells under which text columns are not folded only to keep a table in one part."""
_LONG_TITLE = 20
_ROOM = 24
"""Cells that folded key columns leave to the others, at least."""

Segment = tuple[str, Tone]
"""A stretch of one line in one tone."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of plain texts, each with its tone; titles go with columns."""

    columns: Sequence[Column]
    titles: Sequence[str]
    rows: Sequence[Sequence[Segment]]


def lay_out_table(grid: Grid, width: int, indent: int = 0) -> Iterator[list[Segment]]:
    """The lines of a table. None is wider than `width` unless a number alone is."""
    if not grid.columns:
        return
    widths = [_natural_width(grid, i) for i in range(len(grid.columns))]
    room = width - indent
    one_part = list(widths)
    splits = any(column.key for column in grid.columns)
    _fold(grid, one_part, room, range(len(widths)), 0, _COMFORT if splits else _LEAST_FOLD)
    if _total(one_part, range(len(widths))) <= room:
        widths = one_part
    for number, part in enumerate(_parts(grid, widths, room)):
        if number:
            yield []
        yield from _draw(grid, widths, part, " " * indent)


def _natural_width(grid: Grid, i: int) -> int:
    """The width of the widest cell; a long title does not widen a column of numbers but is wrapped."""
    title = cell_width(grid.titles[i])
    most = title if grid.columns[i].folds else min(title, _LONG_TITLE)
    return max([most, *(cell_width(row[i][0]) for row in grid.rows)])


def _fold(grid: Grid, widths: list[int], room: int, columns: Sequence[int], spare: int, least: int) -> None:
    """Narrow the folding ones of `columns`, widest first, until they fit with `spare` cells left, or are `least` wide."""
    while _total(widths, columns) + spare > room:
        folding = [i for i in columns if grid.columns[i].folds and widths[i] > least]
        if not folding:
            return
        widths[max(folding, key=widths.__getitem__)] -= 1


def _total(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[i] for i in columns) + GAP * max(0, len(columns) - 1)


def _parts(grid: Grid, widths: list[int], room: int) -> Iterator[list[int]]:
    """Column numbers of each part: all in one where they fit, else the key columns and as many others as fit."""
    every = list(range(len(widths)))
    if _total(widths, every) <= room:
        yield every
        return
    keys = [i for i in every if grid.columns[i].key]
    others = [i for i in every if i not in keys]
    widest = max((widths[i] for i in others if not grid.columns[i].folds), default=0)
    _fold(grid, widths, room, keys, 2 * (widest + GAP), _COMFORT)
    _fold(grid, widths, room, keys, max(_ROOM, widest + GAP), _LEAST_FOLD)
    part: list[int] = []
    for i in others:
        _fold(grid, widths, room, [*keys, i], 0, _LEAST_FOLD)
        if part and _total(widths, [*keys, *part, i]) > room:
            yield [*keys, *part]
            part = []
        part.append(i)
    if part or not others:
        yield [*keys, *part]


def _draw(grid: Grid, widths: Sequence[int], part: Sequence[int], indent: str) -> Iterator[list[Segment]]:
    if any(grid.titles[i] for i in part):
        yield from _row(grid, widths, part, [(title, "quiet") for title in grid.titles], indent)
        yield [(indent + (" " * GAP).join("-" * widths[i] for i in part), "quiet")]
    for row in grid.rows:
        yield from _row(grid, widths, part, row, indent)


def _row(
    grid: Grid, widths: Sequence[int], part: Sequence[int], row: Sequence[Segment], indent: str
) -> Iterator[list[Segment]]:
    cells = [wrap(row[i][0], widths[i]) for i in part]
    for height in range(max(len(lines) for lines in cells)):
        segments: list[Segment] = [(indent, "")]
        for place, (i, lines) in enumerate(zip(part, cells, strict=True)):
            text = lines[height] if height < len(lines) else ""
            segments.append((pad(text, widths[i], right=grid.columns[i].right), row[i][1]))
            if place < len(part) - 1:
                segments.append((" " * GAP, ""))
        while segments and not segments[-1][0].rstrip():
            segments.pop()
        if segments:
            segments[-1] = segments[-1][0].rstrip(), segments[-1][1]
        yield segments
