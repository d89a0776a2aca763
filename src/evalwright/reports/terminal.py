"""Shows documents on a terminal: as plain text, and in colour on a live terminal.

Text is wrapped, numbers never: a table that is too wide first folds its text columns and is
then split into tables that each repeat the key columns; one of a few rows that would be split
into many is transposed. The result is lines of segments with a tone; plain text joins them, a
terminal colours them.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.document import Column, Tone
from evalwright.reports.text import cell_width, inert, pad, wrap

GAP = 2
_LEAST_FOLD = 12
_COMFORTABLE_FOLD = 18
"""Text columns are not folded below this width merely to avoid splitting a table."""
_LONG_TITLE = 20
_LONG_NAME = 40
_MOST_SPLITS = 3
_MOST_TRANSPOSED_ROWS = 4
"""Most rows of a table that is transposed where it would be split into more than _MOST_SPLITS."""
_ROOM = 24
"""The least width that folded key columns leave to the other columns."""

Segment = tuple[str, Tone]
"""A piece of a line, with its tone."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of plain texts, each with a tone.

    Attributes:
        titles: The title of each column.
        named: Whether each column has names, which are folded last.
    """

    columns: Sequence[Column]
    titles: Sequence[str]
    rows: Sequence[Sequence[Segment]]
    named: Sequence[bool]


def lay_out_table(grid: Grid, width: int, indent: int = 0) -> Iterator[list[Segment]]:
    """Yield the lines of a table, none wider than `width` unless a single number is."""
    if not grid.columns:
        return
    widths = [_natural_width(grid, i) for i in range(len(grid.columns))]
    room = width - indent
    places, left_out = doc.places_that_fit(
        grid.columns, [cells + GAP for cells in widths], room + GAP
    )
    if left_out and len(grid.rows) <= _MOST_TRANSPOSED_ROWS:
        transposed = _transpose(grid)
        n_columns = range(len(transposed.columns))
        if (
            _total([_natural_width(transposed, i) for i in n_columns], n_columns)
            <= room
        ):
            yield from lay_out_table(transposed, width, indent)
            return
    if left_out:
        yield from lay_out_table(_select_columns(grid, places), width, indent)
        sentence = doc.left_out_sentence([grid.columns[i].title for i in left_out])
        yield from _sentence(sentence, width, "quiet", indent)
        return
    one_part = list(widths)
    splits = any(column.key for column in grid.columns)
    _fold(
        grid,
        one_part,
        room,
        range(len(widths)),
        0,
        _COMFORTABLE_FOLD if splits else _LEAST_FOLD,
    )
    if _total(one_part, range(len(widths))) <= room:
        widths = one_part
    column_groups = list(_split_columns(grid, widths, room))
    if len(column_groups) > _MOST_SPLITS and 1 < len(
        grid.rows
    ) <= _MOST_TRANSPOSED_ROWS < len(column_groups[0]) * len(column_groups):
        yield from lay_out_table(_transpose(grid), width, indent)
        return
    for number, group in enumerate(column_groups):
        if number:
            yield []
        yield from _draw(grid, widths, group, " " * indent)


def _select_columns(grid: Grid, places: Sequence[int]) -> Grid:
    return Grid(
        [replace(grid.columns[i], optional=False) for i in places],
        [grid.titles[i] for i in places],
        [[row[i] for i in places] for row in grid.rows],
        [grid.named[i] for i in places],
    )


def _transpose(grid: Grid) -> Grid:
    """Turn columns into rows, because a few rows with many numbers are easier to read downwards."""
    last = max((i for i, column in enumerate(grid.columns) if column.key), default=0)
    others = [
        i
        for i in range(len(grid.columns))
        if i != last and (grid.titles[i] or i < last)
    ]
    titles = [grid.titles[last], *(row[last][0] for row in grid.rows)]
    columns = [
        Column(title, key=not i, folds=not i, name=True)
        for i, title in enumerate(titles)
    ]
    rows: list[list[Segment]] = [
        [(grid.titles[i], ""), *(row[i] for row in grid.rows)] for i in others
    ]
    return Grid(columns, titles, rows, [False] * len(titles))


def _natural_width(grid: Grid, i: int) -> int:
    """Return the width of a column's widest cell.

    A long title does not widen a column of numbers but is wrapped, between its words if they fit.
    """
    title = cell_width(grid.titles[i])
    word = max(map(cell_width, grid.titles[i].split()), default=0)
    title_width = (
        title
        if grid.columns[i].folds
        else min(title, max(_LONG_TITLE, min(word, _LONG_NAME)))
    )
    return max([title_width, *(cell_width(row[i][0]) for row in grid.rows)])


def _fold(
    grid: Grid,
    widths: list[int],
    room: int,
    columns: Sequence[int],
    spare: int,
    least: int,
    names: bool = False,
) -> None:
    """Narrow the columns that fold, the widest first, until they fit or cannot be narrower.

    Args:
        grid: The table.
        widths: The width of each column, which is changed.
        room: The available width.
        columns: The indices of the columns that must fit.
        spare: Cells to leave to other columns.
        least: The least width of a column.
        names: Whether to narrow columns with names, too, which otherwise keep most of the room.
    """
    floors = [
        least if names or not named else max(least, room - _ROOM)
        for named in grid.named
    ]
    while _total(widths, columns) + spare > room:
        folding = [
            i for i in columns if grid.columns[i].folds and widths[i] > floors[i]
        ]
        if not folding:
            return
        widths[max(folding, key=widths.__getitem__)] -= 1


def _total(widths: Sequence[int], columns: Sequence[int]) -> int:
    return sum(widths[i] for i in columns) + GAP * max(0, len(columns) - 1)


def _split_columns(grid: Grid, widths: list[int], room: int) -> Iterator[list[int]]:
    """Split the columns into tables that fit.

    If not all fit into one table, each has the key columns and as many others as fit.
    """
    all_columns = list(range(len(widths)))
    if _total(widths, all_columns) <= room:
        yield all_columns
        return
    keys = [i for i in all_columns if grid.columns[i].key]
    others = [i for i in all_columns if i not in keys]
    widest = max((widths[i] for i in others if not grid.columns[i].folds), default=0)
    _fold(grid, widths, room, keys, 2 * (widest + GAP), _COMFORTABLE_FOLD)
    _fold(grid, widths, room, keys, max(_ROOM, widest + GAP), _LEAST_FOLD, names=True)
    group: list[int] = []
    for i in others:
        _fold(grid, widths, room, [*keys, i], 0, _LEAST_FOLD, names=True)
        if group and _total(widths, [*keys, *group, i]) > room:
            yield [*keys, *group]
            group = []
        group.append(i)
    if group or not others:
        yield [*keys, *group]


def _draw(
    grid: Grid, widths: Sequence[int], group: Sequence[int], indent: str
) -> Iterator[list[Segment]]:
    if any(grid.titles[i] for i in group):
        yield from _row(
            grid, widths, group, [(title, "quiet") for title in grid.titles], indent
        )
        yield [(indent + (" " * GAP).join("-" * widths[i] for i in group), "quiet")]
    for row in grid.rows:
        yield from _row(grid, widths, group, row, indent)


def _row(
    grid: Grid,
    widths: Sequence[int],
    group: Sequence[int],
    row: Sequence[Segment],
    indent: str,
) -> Iterator[list[Segment]]:
    cells = [wrap(row[i][0], widths[i]) for i in group]
    for height in range(max(len(lines) for lines in cells)):
        segments: list[Segment] = [(indent, "")]
        for position, (i, lines) in enumerate(zip(group, cells, strict=True)):
            text = lines[height] if height < len(lines) else ""
            segments.append(
                (pad(text, widths[i], right=grid.columns[i].right), row[i][1])
            )
            if position < len(group) - 1:
                segments.append((" " * GAP, ""))
        while segments and not segments[-1][0].rstrip():
            segments.pop()
        if segments:
            segments[-1] = segments[-1][0].rstrip(), segments[-1][1]
        yield segments


PIPED_WIDTH = 120
"""The width of a line in a file or a pipe; $COLUMNS overrides it."""

_INDENT = 2
_STYLES = {
    "": "",
    "strong": "bold",
    "quiet": "dim",
    "good": "green",
    "bad": "red",
    "warn": "yellow",
}


def show(
    *documents: doc.Document, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print documents, separated by empty lines.

    Args:
        documents: The documents to print.
        file: Where to print; standard output by default.
        width: The width of a line in cells; by default the terminal's.
    """
    output = file or sys.stdout
    cells = max(40, width or terminal_width(output))
    lines: list[list[Segment]] = []
    for document in documents:
        lines += [*([[]] if lines else []), *lay_out(document, cells)]
    if is_live_terminal(output):
        _print_coloured(lines, output)
    else:
        write_text(
            "".join(
                f"{''.join(text for text, _ in line).rstrip()}\n" for line in lines
            ),
            output,
        )


def lay_out(document: doc.Document, width: int) -> Iterator[list[Segment]]:
    """Yield the lines of a document, none wider than `width` unless a single number is."""
    if document.title:
        yield from _sentence(document.title, width, "strong", 0)
    if document.lede:
        yield from _sentence(document.lede, width, "quiet", 0)
        yield []
    yield from _blocks(document.blocks, width, None)


def _blocks(
    blocks: Sequence[doc.Block], width: int, before: doc.Block | None
) -> Iterator[list[Segment]]:
    for block in blocks:
        lines = _block(block, width)
        first = next(lines, None)
        if first is None:
            continue
        if _apart(before, block):
            yield []
        yield first
        yield from lines
        before = block


def _apart(before: doc.Block | None, block: doc.Block) -> bool:
    """Whether there is an empty line between two blocks."""
    if isinstance(block, (doc.Heading, doc.Conclusion, doc.Notes, doc.Fold)):
        return before is not None or not isinstance(block, doc.Notes)
    if isinstance(before, doc.Note) and isinstance(block, doc.Facts):
        return True
    return isinstance(before, (doc.Table, doc.Text, doc.Facts)) and isinstance(
        block, (doc.Table, doc.Text, doc.Facts)
    )


def _block(block: doc.Block, width: int) -> Iterator[list[Segment]]:
    match block:
        case doc.Heading():
            yield from _sentence(block.text, width, "strong", 0)
        case doc.Note():
            yield from _sentence(block.text, width, block.tone, _INDENT)
        case doc.Notes():
            for text in block.texts:
                yield from _sentence(text, width, block.tone, _INDENT)
        case doc.Conclusion():
            yield from _sentence(block.text, width, block.tone, 0, 0)
        case doc.Facts():
            columns = doc.columns("", "~")
            yield from _table(
                doc.Table(columns, [(name, text or " ") for name, text in block.rows]),
                width,
            )
        case doc.Table():
            yield from _table(block, width)
        case doc.Text():
            yield from _sentence(block.title, width, "quiet", _INDENT)
            for line in re.split(r"\r\n|\r|\n", block.text):
                yield from _sentence(line, width, "", 2 * _INDENT, 0)
        case doc.Link() | doc.Picture():
            name = block.text if isinstance(block, doc.Link) else block.caption
            yield from _sentence(f"{name}: {block.address}", width, "", _INDENT)
        case doc.Cards():
            rows = [(card.title, card.number, card.measure) for card in block.cards]
            yield from _table(doc.Table(doc.columns("*", "", "~"), rows), width)
        case doc.Fold():
            title = "  ".join(
                text for text in (block.marks[0], block.title, block.marks[1]) if text
            )
            yield from _blocks([doc.Heading(title), *block.blocks], width, None)


def _sentence(
    text: str, width: int, tone: doc.Tone, indent: int, hang: int = 2
) -> Iterator[list[Segment]]:
    """Yield the lines of a wrapped sentence; those after the first are indented by `hang` more."""
    for i, line in enumerate(wrap(inert(text), max(20, width - indent - hang))):
        yield [(" " * (indent + (hang if i else 0)) + line, tone)]


def _table(table: doc.Table, width: int) -> Iterator[list[Segment]]:
    columns, cells = table.cells()
    texts = [_texts([row[i] for row in cells]) for i in range(len(columns))]
    rows = [
        [(texts[i][row_index], cell.tone) for i, cell in enumerate(row)]
        for row_index, row in enumerate(cells)
    ]
    named = [any(row[i].name for row in cells) for i in range(len(columns))]
    grid = Grid(columns, [inert(column.heading) for column in columns], rows, named)
    return lay_out_table(grid, width, _INDENT)


def _texts(cells: Sequence[doc.Cell]) -> list[str]:
    """Format the cells of one column; numbers of one unit are aligned."""
    cell_numbers = [
        cell.content for cell in cells if isinstance(cell.content, doc.Number)
    ]
    is_one_unit = len({number.unit for number in cell_numbers}) == 1
    scores = (
        numbers.aligned_scores(
            [number.estimate for number in cell_numbers],
            cell_numbers[0].unit,
            cell_numbers[0].decimals,
        )
        if is_one_unit
        else []
    )
    if not is_one_unit:
        scores = [
            numbers.score(number.estimate, number.unit, number.decimals)
            for number in cell_numbers
        ]
    texts = iter(
        text[text.index("[") :] if number.interval_only and "[" in text else text
        for number, text in zip(cell_numbers, scores, strict=True)
    )
    return [
        next(texts) if isinstance(cell.content, doc.Number) else inert(cell.content)
        for cell in cells
    ]


def is_live_terminal(file: TextIO) -> bool:
    """Whether `file` is a terminal that supports more than plain lines."""
    return bool(file.isatty()) and os.environ.get("TERM") != "dumb"


def terminal_width(file: TextIO) -> int:
    """Return the cells of a line: $COLUMNS, else the terminal's width, else PIPED_WIDTH."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(file.fileno()).columns or PIPED_WIDTH
    except (OSError, ValueError):
        return (
            shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
            if file.isatty()
            else PIPED_WIDTH
        )


def write_text(text: str, file: TextIO) -> None:
    """Write text to a file; characters that its encoding lacks become "?"."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    file.write(text.encode(encoding, "replace").decode(encoding))
    file.flush()


def _print_coloured(lines: Sequence[Sequence[Segment]], file: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text as RichText

    console = Console(
        file=getattr(file, "styled", file), markup=False, highlight=False, emoji=False
    )
    text = RichText(no_wrap=True, end="", overflow="ignore")
    for line in lines:
        for segment, tone in line:
            text.append(segment, _STYLES[tone] or None)
        text.append("\n")
    console.print(text, soft_wrap=True, end="")
