"""Documents as PDF, drawn with matplotlib (the extra `plot`) on landscape A4 pages.

Tables repeat their titles on every page and are split where they are too wide; text is wrapped,
never cut. The same document gives the same bytes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from evalwright.reports import document as doc
from evalwright.reports.axis import Axis
from evalwright.reports.markdown import cell_text
from evalwright.reports.plot import INK, LINE, QUIET, Fonts, fixed_settings
from evalwright.reports.text import inert, inert_lines
from evalwright.statistics import Estimate

WIDTH = 11.69
HEIGHT = 8.27
MARGIN = 0.55
ROOM = WIDTH - 2 * MARGIN
_GAP_INCHES = 0.16
_BAR_INCHES = 1.5
_NAME_INCHES = 2.9
_TITLE_INCHES = 1.0
"""In inches: the gap between columns, a drawn interval, the widest name, the widest title.

A title is wrapped where its column's cells are narrower.
"""
_FONT_POINTS = 8.5
_LEAD_INCHES = 0.165
_TONES = {"quiet": QUIET, "warn": "#8a5300", "good": "#1a6b35", "bad": "#b3261e"}
_POINT = "#0a58b8"
_RANGE = "#a9cbf2"


def to_pdf(document: doc.Document) -> bytes:
    """Render a document as a PDF file. Raises MissingExtra without matplotlib."""
    buffer = io.BytesIO()
    no_metadata = {"CreationDate": None, "Creator": None, "Producer": None}
    with fixed_settings(".pdf"):
        from matplotlib.backends.backend_pdf import PdfPages

        with PdfPages(
            buffer, metadata={**no_metadata, "Title": inert(document.title)}
        ) as pages:
            writer = _Pages(pages, inert(document.title))
            writer.paragraph(document.title, 15, bold=True, after=0.04)
            if document.lede:
                writer.paragraph(document.lede, 9, colour=QUIET, after=0.12)
            for block in document.blocks:
                _block(block, writer)
            writer.end()
    return buffer.getvalue()


def _block(block: doc.Block, pages: _Pages) -> None:
    match block:
        case doc.Heading():
            pages.paragraph(
                block.text,
                11 if block.level == 2 else 9.5,
                bold=True,
                before=0.16,
                after=0.05,
                keep=0.6,
            )
        case doc.Note() | doc.Conclusion():
            bold = isinstance(block, doc.Conclusion)
            pages.paragraph(
                block.text,
                _FONT_POINTS,
                bold=bold,
                colour=_TONES.get(block.tone, INK),
                after=0.04,
            )
        case doc.Notes():
            for text in block.texts:
                pages.paragraph(f"• {text}", 8, colour=QUIET, after=0.02)
        case doc.Facts():
            pages.table(doc.Table(doc.columns("*", "~"), block.rows), heads=False)
        case doc.Text():
            pages.paragraph(block.title, 8, colour=QUIET)
            for line in inert_lines(block.text).split("\n"):
                pages.paragraph(line, _FONT_POINTS)
        case doc.Table():
            pages.table(block)
        case doc.Cards():
            pages.table(
                doc.Table(
                    doc.columns("Score*", "Value"),
                    [(card.title, card.number) for card in block.cards],
                )
            )
        case doc.Fold():
            pages.paragraph(
                "  ".join(filter(None, (block.marks[0], block.title, block.marks[1]))),
                11,
                bold=True,
                before=0.2,
                keep=0.8,
            )
            for inner_block in block.blocks:
                _block(inner_block, pages)


class _Pages:
    """Writes from top to bottom and starts a new page where the next block does not fit.

    Positions are in inches.
    """

    def __init__(self, pages: Any, title: str) -> None:
        self.pages = pages
        self.title = title
        self.fonts = Fonts()
        self.width = self.fonts.width
        self.lines = self.fonts.break_lines
        self.number = 0
        self.figure: Any = None
        self._begin()

    def _begin(self) -> None:
        from matplotlib.figure import Figure

        self.number += 1
        self.figure = Figure(figsize=(WIDTH, HEIGHT), facecolor="white")
        self.axes = self.figure.add_axes(
            (0, 0, 1, 1), xlim=(0, WIDTH), ylim=(HEIGHT, 0)
        )
        self.axes.set_axis_off()
        self.axes.autoscale(False)
        self.y = MARGIN
        self.text = partial(self.fonts.draw_text, self.axes)

    def end(self) -> None:
        """Write the footer of the current page and save it."""
        foot = self.fonts.shorten_to_fit(self.title, 7.5, ROOM - 1)
        self.text(MARGIN, HEIGHT - 0.3, foot, 7.5, QUIET)
        self.text(
            WIDTH - MARGIN, HEIGHT - 0.3, str(self.number), 7.5, QUIET, align="right"
        )
        self.pages.savefig(self.figure)

    def need(self, height: float) -> bool:
        """Start a new page if `height` does not fit on this one; return whether it did."""
        if self.y + height <= HEIGHT - MARGIN:
            return False
        self.end()
        self._begin()
        return True

    def paragraph(
        self,
        text: str,
        size: float,
        *,
        bold: bool = False,
        colour: str = INK,
        before: float = 0.0,
        after: float = 0.0,
        keep: float = 0.0,
    ) -> None:
        """Write a paragraph across the page.

        Args:
            text: The text.
            size: The size of its letters, in points.
            bold: Whether it is bold.
            colour: Its colour.
            before: The space above it, in inches.
            after: The space below it, in inches.
            keep: The height that must fit below it on the same page, in inches.
        """
        lead = size / 72 * 1.4
        self.need(before + lead + keep)
        self.y += before
        for line in self.lines(text, size, min(ROOM, 8.5), bold=bold):
            self.need(lead)
            self.y += lead
            self.text(MARGIN, self.y - 0.3 * size / 72, line, size, colour, bold=bold)
        self.y += after

    def table(self, table: doc.Table, *, heads: bool = True) -> None:
        """Draw a table, split where it is too wide."""
        columns, cells = table.cells()
        if not columns:
            return
        full_table = doc.Table(columns, cells)
        widths = [
            _Column(column, [row[i] for row in cells], self).width + _GAP_INCHES
            for i, column in enumerate(columns)
        ]
        room = ROOM + _GAP_INCHES
        places, left_out = doc.places_that_fit(columns, widths, room)
        shown_table = full_table.with_columns(places) if left_out else full_table
        for split_table in shown_table.split_to_fit([widths[i] for i in places], room):
            _TablePart(split_table, self, heads).draw()
            self.y += 0.14
        if left_out:
            sentence = doc.left_out_sentence([columns[i].title for i in left_out])
            self.paragraph(sentence, 8, colour=QUIET, after=0.02)


class _Column:
    """A column of a split table: its width, its texts and their positions."""

    def __init__(
        self, column: doc.Column, cells: Sequence[doc.Cell], pages: _Pages
    ) -> None:
        self.column = column
        self.cells = cells
        self.pages = pages
        self.right = column.right or any(
            isinstance(cell.content, doc.Number) for cell in cells
        )
        widest = max(
            (
                pages.width(cell_text(cell), _FONT_POINTS, bold=cell.tone == "strong")
                for cell in cells
            ),
            default=0.0,
        )
        title = pages.width(inert(column.heading), 8, bold=True)
        self.numbers = max(
            min(widest, _NAME_INCHES) if not self.right else widest,
            min(title, _TITLE_INCHES),
        )
        self.width = self.numbers + (_BAR_INCHES + _GAP_INCHES if column.axis else 0.0)
        self.title = (
            pages.lines(column.heading, 8, max(self.width, 0.3), bold=True)
            if column.heading
            else [""]
        )

    def lines(self, row: int) -> list[str]:
        """Break the text of a cell into lines."""
        cell = self.cells[row]
        return self.pages.lines(
            cell_text(cell),
            _FONT_POINTS,
            self.numbers + 0.01,
            bold=cell.tone == "strong",
        )

    def text_position(self, left: float) -> tuple[float, str]:
        """Return the horizontal position of the texts, and how they are aligned there."""
        return (left + self.numbers, "right") if self.right else (left, "left")


class _TablePart:
    """One of the tables that a wide table is split into."""

    def __init__(self, table: doc.Table, pages: _Pages, heads: bool) -> None:
        self.pages = pages
        self.heads = heads
        columns, self.rows = table.cells()
        self.columns = [
            _Column(column, [row[i] for row in self.rows], pages)
            for i, column in enumerate(columns)
        ]

    def draw(self) -> None:
        if self.heads:
            self._head()
        for i in range(len(self.rows)):
            self._row(i)

    def _places(self) -> Iterator[tuple[float, _Column]]:
        left = MARGIN
        for column in self.columns:
            yield left, column
            left += column.width + _GAP_INCHES

    def _head(self) -> None:
        pages = self.pages
        height = max(len(column.title) for column in self.columns) * 0.15
        pages.need(height + 0.4)
        pages.y += height
        for left, column in self._places():
            for i, line in enumerate(reversed(column.title)):
                text_x, side = column.text_position(left)
                pages.text(
                    text_x, pages.y - 0.15 * i, line, 8, INK, bold=True, align=side
                )
        pages.y += 0.06
        self._rule(INK, 0.8)

    def _row(self, row: int) -> None:
        pages = self.pages
        lines = [column.lines(row) for column in self.columns]
        height = max(map(len, lines)) * _LEAD_INCHES + 0.05
        if pages.need(height) and self.heads:
            self._head()
        for (left, column), texts in zip(self._places(), lines, strict=True):
            cell = column.cells[row]
            text_x, side = column.text_position(left)
            for i, line in enumerate(texts):
                base = pages.y + _LEAD_INCHES * (i + 1) - 0.03
                pages.text(
                    text_x,
                    base,
                    line,
                    _FONT_POINTS,
                    _TONES.get(cell.tone, INK),
                    bold=cell.tone == "strong",
                    align=side,
                )
            if (
                column.column.axis
                and isinstance(cell.content, doc.Number)
                and cell.content.estimate
            ):
                self._bar(
                    left + column.numbers + _GAP_INCHES,
                    pages.y + 0.5 * _LEAD_INCHES + 0.015,
                    cell.content.estimate,
                    column.column.axis,
                )
        pages.y += height
        self._rule(LINE, 0.4)

    def _bar(self, left: float, y: float, estimate: Estimate, axis: Axis) -> None:
        """Draw a value and its interval on the column's axis."""

        def at(number: float) -> float:
            return left + _BAR_INCHES * float(axis.place(number).rstrip("%")) / 100

        axes = self.pages.axes
        axes.plot([left, left + _BAR_INCHES], [y, y], LINE, linewidth=0.6)
        if math.isfinite(estimate.low) and math.isfinite(estimate.high):
            axes.plot(
                [at(estimate.low), at(estimate.high)],
                [y, y],
                _RANGE,
                linewidth=4,
                solid_capstyle="round",
            )
        if math.isfinite(estimate.value):
            axes.plot(
                [at(estimate.value)],
                [y],
                "o",
                color=_POINT,
                markersize=3.2,
                markeredgewidth=0,
            )

    def _rule(self, colour: str, width: float) -> None:
        end = (
            MARGIN
            + sum(column.width + _GAP_INCHES for column in self.columns)
            - _GAP_INCHES
        )
        self.pages.axes.plot(
            [MARGIN, end], [self.pages.y, self.pages.y], colour, linewidth=width
        )
        self.pages.y += 0.02
