"""A page of headings, lines and tables, laid out for a width in terminal cells.

Text is wrapped, numbers never: a table that is too wide first folds its text columns and then falls into parts that each
repeat the key columns. The result is lines of segments with a tone; plain text joins them, a terminal colours them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.reports.text import cell_width, pad, wrap

Tone = Literal["", "strong", "quiet", "good", "bad", "warn"]
GAP = 2
_LEAST_FOLD = 12
_COMFORT = 18
"""Cells under which text columns are not folded only to keep a table in one part."""
_LONG_TITLE = 20
_ROOM = 24
"""Cells that folded key columns leave to the others, at least."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of one line in one tone."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Column:
    """right: aligned right. folds: text that may be wrapped. key: repeated in every part of a split table."""

    title: str
    right: bool = False
    folds: bool = False
    key: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; `tones` has a tone for a cell by (row, column) where it is not the plain one."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    tones: dict[tuple[int, int], Tone]
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence, wrapped; further lines are indented by `hang` more."""

    text: str
    tone: Tone = ""
    indent: int = 0
    hang: int = 0


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows, after an empty line."""

    text: str


@dataclass(frozen=True, slots=True)
class Gap:
    """An empty line."""


Block = Heading | Line | Table | Gap


def lay_out(blocks: Sequence[Block], width: int) -> Iterator[list[Segment]]:
    """The lines of a page. No line is wider than `width` unless a number alone is."""
    for i, block in enumerate(blocks):
        if isinstance(block, Heading):
            if i:
                yield []
            yield from ([Segment(line, "strong")] for line in wrap(block.text, width))
        elif isinstance(block, Line):
            yield from _line(block, width)
        elif isinstance(block, Table):
            yield from _table(block, width)
        else:
            yield []


def _line(line: Line, width: int) -> Iterator[list[Segment]]:
    room = max(20, width - line.indent - line.hang)
    for i, text in enumerate(wrap(line.text, room)):
        yield [Segment(" " * (line.indent + (line.hang if i else 0)) + text, line.tone)]


def _table(table: Table, width: int) -> Iterator[list[Segment]]:
    if not table.columns:
        return
    widths = [_natural_width(table, i) for i in range(len(table.columns))]
    room = width - table.indent
    one_part = list(widths)
    splits = any(column.key for column in table.columns)
    _fold(table, one_part, room, range(len(widths)), 0, _COMFORT if splits else _LEAST_FOLD)
    if _total(one_part, range(len(widths))) <= room:
        widths = one_part
    for number, part in enumerate(_parts(table, widths, room)):
        if number:
            yield []
        yield from _draw(table, widths, part)


def _natural_width(table: Table, i: int) -> int:
    """The width of the widest cell; a long title does not widen a column of numbers but is wrapped."""
    title = cell_width(table.columns[i].title)
    most = title if table.columns[i].folds else min(title, _LONG_TITLE)
    return max(most, *(cell_width(row[i]) for row in table.rows)) if table.rows else most


def _fold(table: Table, widths: list[int], room: int, columns: Sequence[int], spare: int, least: int) -> None:
    """Narrow the folding ones of `columns`, widest first, until they fit with `spare` cells left, or are `least` wide."""
    while _total(widths, columns) + spare > room:
        folding = [i for i in columns if table.columns[i].folds and widths[i] > least]
        if not folding:
            return
        widths[max(folding, key=widths.__getitem__)] -= 1


def _total(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[i] for i in columns) + GAP * max(0, len(columns) - 1)


def _parts(table: Table, widths: list[int], room: int) -> Iterator[list[int]]:
    """Column numbers of each part: all in one where they fit, else the key columns and as many others as fit."""
    every = list(range(len(widths)))
    if _total(widths, every) <= room:
        yield every
        return
    keys = [i for i in every if table.columns[i].key]
    others = [i for i in every if i not in keys]
    widest = max((widths[i] for i in others), default=0)
    _fold(table, widths, room, keys, 2 * (widest + GAP), _COMFORT)
    _fold(table, widths, room, keys, max(_ROOM, widest + GAP), _LEAST_FOLD)
    part: list[int] = []
    for i in others:
        if part and _total(widths, [*keys, *part, i]) > room:
            yield [*keys, *part]
            part = []
        part.append(i)
    if part or not others:
        yield [*keys, *part]


def _draw(table: Table, widths: Sequence[int], part: Sequence[int]) -> Iterator[list[Segment]]:
    titles = [table.columns[i].title for i in part]
    if any(titles):
        yield from _row(table, widths, part, titles, ["quiet"] * len(part))
        yield [Segment(" " * table.indent + (" " * GAP).join("-" * widths[i] for i in part), "quiet")]
    for number, row in enumerate(table.rows):
        tones = [table.tones.get((number, i), "") for i in part]
        yield from _row(table, widths, part, [row[i] for i in part], tones)


def _row(
    table: Table, widths: Sequence[int], part: Sequence[int], texts: Sequence[str], tones: Sequence[Tone]
) -> Iterator[list[Segment]]:
    cells = [wrap(text, widths[i]) for i, text in zip(part, texts, strict=True)]
    for height in range(max(len(lines) for lines in cells)):
        segments = [Segment(" " * table.indent)] if table.indent else []
        for place, (i, lines, tone) in enumerate(zip(part, cells, tones, strict=True)):
            text = lines[height] if height < len(lines) else ""
            segments.append(Segment(pad(text, widths[i], right=table.columns[i].right), tone))
            if place < len(part) - 1:
                segments.append(Segment(" " * GAP))
        yield _without_tail(segments)


def _without_tail(segments: list[Segment]) -> list[Segment]:
    """Without spaces at the end of the line."""
    while segments and not segments[-1].text.rstrip():
        segments.pop()
    if segments:
        segments[-1] = Segment(segments[-1].text.rstrip(), segments[-1].tone)
    return segments
