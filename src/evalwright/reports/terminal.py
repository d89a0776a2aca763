"""Shows documents on the terminal: plain text always, coloured only where somebody is looking."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.layout import Grid, Segment, lay_out_table
from evalwright.reports.text import inert, wrap

PIPED_WIDTH = 120
"""Cells of a line where the width is not known (a file, a pipe); $COLUMNS wins."""

_INDENT = 2
_STYLES = {"": "", "strong": "bold", "quiet": "dim", "good": "green", "bad": "red", "warn": "yellow"}


def show(*documents: doc.Document, file: TextIO | None = None, width: int | None = None) -> None:
    """Print documents to `file` (standard output), `width` cells wide (the terminal's), an empty line between two."""
    out = file or sys.stdout
    cells = max(40, width or terminal_width(out))
    lines: list[list[Segment]] = []
    for document in documents:
        lines += [*([[]] if lines else []), *lay_out(document, cells)]
    if is_live_terminal(out):
        _print_coloured(lines, out)
    else:
        write_text("".join(f"{''.join(text for text, _ in line).rstrip()}\n" for line in lines), out)


def lay_out(document: doc.Document, width: int) -> Iterator[list[Segment]]:
    """The lines of a document. No line is wider than `width` unless a number alone is."""
    if document.title:
        yield from _sentence(document.title, width, "strong", 0)
    if document.lede:
        yield from _sentence(document.lede, width, "quiet", 0)
        yield []
    yield from _blocks(document.blocks, width, None)


def _blocks(blocks: Sequence[doc.Block], width: int, before: doc.Block | None) -> Iterator[list[Segment]]:
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
    """Whether an empty line stands between two blocks."""
    if isinstance(block, (doc.Heading, doc.Conclusion, doc.Notes, doc.Fold)):
        return before is not None or not isinstance(block, doc.Notes)
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
            yield from _table(doc.Table(columns, [(name, value or " ") for name, value in block.rows]), width)
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
            yield from _table(_card_table(block.cards), width)
        case doc.Fold():
            title = "  ".join(text for text in (block.marks[0], block.title, block.marks[1]) if text)
            yield from _blocks([doc.Heading(title), *block.blocks], width, None)


def _sentence(text: str, width: int, tone: doc.Tone, indent: int, hang: int = 2) -> Iterator[list[Segment]]:
    """Wrapped; further lines are indented by `hang` more."""
    for i, line in enumerate(wrap(inert(text), max(20, width - indent - hang))):
        yield [(" " * (indent + (hang if i else 0)) + line, tone)]


def _card_table(cards: Sequence[doc.Card]) -> doc.Table:
    rows = [(card.title, card.number, card.measure) for card in cards]
    return doc.Table(doc.columns("*", "", "~"), rows)


def _table(table: doc.Table, width: int) -> Iterator[list[Segment]]:
    columns, cells = table.cells()
    made: list[list[Segment]] = [[] for _ in cells]
    for i in range(len(columns)):
        for row, text, cell in zip(
            made, _texts([row[i] for row in cells]), (row[i] for row in cells), strict=True
        ):
            row.append((text, cell.tone))
    grid = Grid(columns, [inert(column.heading) for column in columns], made)
    return lay_out_table(grid, width, _INDENT)


def _texts(cells: Sequence[doc.Cell]) -> list[str]:
    """The cells of one column as texts; numbers of one unit stand under each other."""
    found = [cell.content for cell in cells if isinstance(cell.content, doc.Number)]
    same = len({number.unit for number in found}) == 1
    shown = numbers.aligned_scores([one.estimate for one in found], found[0].unit) if same else []
    if not same:
        shown = [numbers.score(one.estimate, one.unit) for one in found]
    texts = iter(
        text[text.index("[") :] if one.interval_only and "[" in text else text
        for one, text in zip(found, shown, strict=True)
    )
    return [next(texts) if isinstance(cell.content, doc.Number) else inert(cell.content) for cell in cells]


def is_live_terminal(file: TextIO) -> bool:
    """Whether somebody looks at `file` on a terminal that understands more than plain lines."""
    return bool(file.isatty()) and os.environ.get("TERM") != "dumb"


def terminal_width(file: TextIO) -> int:
    """Cells of a line: $COLUMNS, else the terminal's own width, else PIPED_WIDTH."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(file.fileno()).columns or PIPED_WIDTH
    except (OSError, ValueError):
        return shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if file.isatty() else PIPED_WIDTH


def write_text(text: str, file: TextIO) -> None:
    """Write text to a file whose encoding may lack some of its characters; those become "?"."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    file.write(text.encode(encoding, "replace").decode(encoding))
    file.flush()


def _print_coloured(lines: Sequence[Sequence[Segment]], file: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text as RichText

    console = Console(file=file, markup=False, highlight=False, emoji=False)
    text = RichText(no_wrap=True, end="", overflow="ignore")
    for line in lines:
        for part, tone in line:
            text.append(part, _STYLES[tone] or None)
        text.append("\n")
    console.print(text, soft_wrap=True, end="")
