"""What a report says, apart from where it is shown: a title, and headings, sentences, facts,
tables, figures and texts in order.

`terminal`, `markdown` and `html` each render a document. Text in it may come from anybody: the
renderers make every piece of it inert and escape it for their medium, so that no page has to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from evalwright.reports.axis import Axis
    from evalwright.reports.numbers import Unit
    from evalwright.statistics import Estimate

Tone = Literal["", "strong", "quiet", "good", "bad", "warn"]


@dataclass(frozen=True, slots=True)
class Number:
    """An estimate in its unit, shown with its interval; `interval_only` shows that alone.

    None: there is no number.
    """

    estimate: Estimate | None
    unit: Unit
    interval_only: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with more than a plain text.

    name: an untrusted name, which may be long. note: small print that only a page has room for.
    sort: what a page sorts by, in place of the content. stretch: a part of a line, as (start,
    length) in shares of it, which a page draws.
    """

    content: str | Number = ""
    tone: Tone = ""
    name: bool = False
    link: str = ""
    note: str = ""
    sort: float | None = None
    stretch: tuple[float, float] | None = None


Content = Cell | Number | str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. note: what the title needs to be understood, such as the metric.

    right: aligned right. folds: text that may be wrapped. key: repeated in every part of a table
    that a terminal splits. name: the title is an untrusted name. under: shown by a page as small
    print of the column before. axis: on which a page draws the column's numbers, with its ticks in
    the head where `ticks` says so. ascending: a page sorts upwards first. moves: where the table is
    too wide, into a table of its own below, before any other column does.
    """

    title: str
    note: str = ""
    right: bool = False
    folds: bool = False
    key: bool = False
    name: bool = False
    under: bool = False
    axis: Axis | None = None
    ticks: bool = False
    ascending: bool = False
    moves: bool = False

    @property
    def heading(self) -> str:
        """The title with its note."""
        return f"{self.title} ({self.note})" if self.note else self.title


def columns(*titles: str) -> list[Column]:
    """Columns of our own titles, each with a mark at its end: "Run*" is a key, "Scores~" folds,
    "Items>" is aligned right.
    """
    return [
        Column(
            title.rstrip("*~>"),
            right=title.endswith(">"),
            folds=title.endswith(("*", "~")),
            key=title.endswith("*"),
        )
        for title in titles
    ]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. caption: what it shows, for those who cannot see where it stands. sortable: a
    page lets the reader sort it.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Content]]
    caption: str = ""
    sortable: bool = False

    def cells(self, *, drawn: bool = False) -> tuple[list[Column], list[list[Cell]]]:
        """The key columns and those in which anything stands, with their cells. drawn: whether what
        is only drawn counts too.
        """
        rows = [
            [content if isinstance(content, Cell) else Cell(content) for content in row]
            for row in self.rows
        ]
        used = [
            i
            for i, column in enumerate(self.columns)
            if column.key
            or not rows
            or any(row[i].content != "" or (drawn and row[i].stretch) for row in rows)
        ]
        return [self.columns[i] for i in used], [[row[i] for i in used] for row in rows]

    def parts(self, widths: Sequence[float], room: float) -> Iterator[Table]:
        """The table in as many as are needed for each to fit into `room`: the key columns come
        again in all of them.

        widths: of the columns, in any unit. Columns that move leave the first part together; of
        those that are left the last go.
        """
        places = range(len(self.columns))
        keys = [i for i in places if self.columns[i].key]
        others = [i for i in places if i not in keys]
        if sum(widths) <= room or not others:
            yield self
            return
        moving = [i for i in others if self.columns[i].moves]
        room -= sum(widths[i] for i in keys)
        for group in ([i for i in others if i not in moving], moving):
            part_columns: list[int] = []
            for i in group:
                if (
                    part_columns
                    and not self.columns[i].under
                    and sum(widths[j] for j in (*part_columns, i)) > room
                ):
                    yield self._with([*keys, *part_columns])
                    part_columns = []
                part_columns.append(i)
            if part_columns:
                yield self._with([*keys, *part_columns])

    def _with(self, places: Sequence[int]) -> Table:
        """The table of some of its columns, in their order."""
        ordered = sorted(places)
        rows = [[row[i] for i in ordered] for row in self.rows]
        return replace(self, columns=[self.columns[i] for i in ordered], rows=rows)


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows. level: 2 for a part of the document, 3 for a part of that."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Notes:
    """Sentences that belong together, as a list."""

    texts: Sequence[str]
    tone: Tone = "quiet"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What all of it means, in a sentence or two."""

    text: str
    tone: Tone = "strong"


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with their values."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Text:
    """A text of several lines as it was written, such as a prompt or an answer."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A way to another page."""

    text: str
    address: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure in a file of its own."""

    address: str
    caption: str


@dataclass(frozen=True, slots=True)
class Card:
    """One important number among those of others. others: their values, on the same axis."""

    title: str
    measure: str
    number: Number
    axis: Axis
    others: Sequence[float]


@dataclass(frozen=True, slots=True)
class Cards:
    """The most important numbers of a document."""

    cards: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Fold:
    """A part that a page shows when it is opened. number: its place, by which it is linked to.
    marks: what stands beside the title.
    """

    number: int
    title: str
    marks: tuple[str, str]
    blocks: Sequence[Block]


Block = (
    Heading
    | Note
    | Notes
    | Conclusion
    | Facts
    | Table
    | Text
    | Link
    | Picture
    | Cards
    | Fold
)


@dataclass(frozen=True, slots=True)
class Document:
    """A report. lede: one line below the title. back: the title and address of the page that this
    one belongs to.
    """

    title: str
    blocks: Sequence[Block]
    lede: str = ""
    back: tuple[str, str] | None = None

    def words(self) -> dict[str, Any]:
        """Its notes and its conclusion, for programs."""
        notes = [
            text
            for block in self.blocks
            if isinstance(block, Notes)
            for text in block.texts
        ]
        conclusions = [
            block.text for block in self.blocks if isinstance(block, Conclusion)
        ]
        return {"notes": notes, "conclusion": " ".join(conclusions)}
