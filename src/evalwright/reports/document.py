"""Documents: the content of a report, independent of the format in which it is shown.

A document has a title and a sequence of blocks: headings, notes, facts, tables, figures, texts.
`terminal`, `markdown`, `html`, `latex` and `pdf` render it. Text in a document may come from
anybody; each renderer makes it inert and escapes it for its medium, so that no page has to.
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

MOST_NAMED_COLUMNS = 6
"""Most columns without room that a sentence names."""


@dataclass(frozen=True, slots=True)
class Number:
    """An estimate in its unit, shown with its interval.

    Attributes:
        estimate: None where there is no number.
        interval_only: Show the interval without the value.
    """

    estimate: Estimate | None
    unit: Unit
    interval_only: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell with more than plain text.

    Attributes:
        content: The text or number.
        tone: The emphasis.
        name: Whether the content is an untrusted name, which may be long.
        link: The address it links to.
        note: Small print that only an HTML page has room for.
        sort: The number by which a page sorts, instead of the content.
        stretch: A (start, length) share of a line that a page draws.
        anchor: The name by which a page links to the cell.
    """

    content: str | Number = ""
    tone: Tone = ""
    name: bool = False
    link: str = ""
    note: str = ""
    sort: float | None = None
    stretch: tuple[float, float] | None = None
    anchor: str = ""


Content = Cell | Number | str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        note: An addition to the title that explains it, such as the metric.
        right: Whether the column is aligned right.
        folds: Whether its text may be wrapped.
        key: Whether it is repeated in each part of a table that is split.
        name: Whether the title is an untrusted name.
        under: Whether a page shows it as small print within the column before it.
        axis: The axis on which a page draws the column's numbers.
        ticks: Whether the head shows the ticks of the axis.
        ascending: Whether a page sorts it upwards first.
        moves: Whether it is among the first to be split off where the table is too wide.
        optional: Whether it is left out where the table is too wide, rather than split off.
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
    optional: bool = False

    @property
    def heading(self) -> str:
        """The title, with its note in brackets."""
        return f"{self.title} ({self.note})" if self.note else self.title


def columns(*titles: str) -> list[Column]:
    """Make columns from marked titles: "Run*" is a key, "Scores~" wraps, "Items>" aligns right."""
    return [
        Column(
            title.rstrip("*~>"),
            right=title.endswith(">"),
            folds=title.endswith(("*", "~")),
            key=title.endswith("*"),
        )
        for title in titles
    ]


def places_that_fit(
    columns: Sequence[Column], widths: Sequence[float], room: float
) -> tuple[list[int], list[int]]:
    """Choose the columns of a table that may be too wide.

    Optional columns are left out, the last ones first, until the others of them fit beside the key
    columns and whatever stands before them.

    Args:
        columns: The columns.
        widths: The width of each with the gap beside it, in any unit.
        room: The available width, in the same unit.

    Returns:
        The places of the columns to show, and of those that are left out.
    """
    places = list(range(len(columns)))
    optional = [i for i in places if columns[i].optional]
    if not optional or sum(widths) <= room:
        return places, []
    beside = [
        i
        for i in places
        if not columns[i].optional and (columns[i].key or i < optional[-1])
    ]
    used = sum(widths[i] for i in beside)
    left_out: list[int] = []
    for i in optional:
        used += widths[i]
        if left_out or used > room:
            left_out.append(i)
    return [i for i in places if i not in left_out], left_out


def left_out_sentence(titles: Sequence[str]) -> str:
    """Say which columns did not fit; "" for none."""
    if not titles:
        return ""
    named = ", ".join(titles[:MOST_NAMED_COLUMNS])
    if len(titles) > MOST_NAMED_COLUMNS:
        named += f" and {len(titles) - MOST_NAMED_COLUMNS} more"
    return f"No room here for {named}."


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        columns: The columns.
        rows: The cells of each row.
        caption: What the table shows, for readers who do not see its context.
        sortable: Whether a page lets the reader sort it.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Content]]
    caption: str = ""
    sortable: bool = False

    def cells(self, *, drawn: bool = False) -> tuple[list[Column], list[list[Cell]]]:
        """Return the key columns and all columns that are not empty, with their cells.

        Args:
            drawn: Whether a cell that only draws something counts as not empty.
        """
        rows = [
            [content if isinstance(content, Cell) else Cell(content) for content in row]
            for row in self.rows
        ]
        used_columns = [
            i
            for i, column in enumerate(self.columns)
            if column.key
            or not rows
            or any(row[i].content != "" or (drawn and row[i].stretch) for row in rows)
        ]
        return [self.columns[i] for i in used_columns], [
            [row[i] for i in used_columns] for row in rows
        ]

    def split_to_fit(self, widths: Sequence[float], room: float) -> Iterator[Table]:
        """Split the table into as many parts as needed for each to fit into `room`.

        Each repeats the key columns. Columns that move leave the first table together, the others
        one by one, the last ones first.

        Args:
            widths: The width of each column, in any unit.
            room: The available width, in the same unit.
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
                    yield self.with_columns([*keys, *part_columns])
                    part_columns = []
                part_columns.append(i)
            if part_columns:
                yield self.with_columns([*keys, *part_columns])

    def with_columns(self, places: Sequence[int]) -> Table:
        """Make a table of some of the columns, in their order."""
        ordered = sorted(places)
        rows = [[row[i] for i in ordered] for row in self.rows]
        return replace(self, columns=[self.columns[i] for i in ordered], rows=rows)


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a section, or of a subsection with level 3; `anchor` is what a page links to."""

    text: str
    level: int = 2
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence of its own."""

    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Notes:
    """A list of sentences that belong together."""

    texts: Sequence[str]
    tone: Tone = "quiet"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The document's conclusion, in a sentence or two."""

    text: str
    tone: Tone = "strong"


@dataclass(frozen=True, slots=True)
class Facts:
    """Pairs of name and value, such as "Model" and "demo/small"."""

    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Text:
    """A text of several lines in its original form, such as a prompt or an answer."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another page."""

    text: str
    address: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure in a separate file."""

    address: str
    caption: str


@dataclass(frozen=True, slots=True)
class Card:
    """An important number, drawn beside those of other models.

    Attributes:
        title: What the number is.
        measure: Its unit.
        number: The number.
        axis: The axis on which it is drawn.
        others: The other models' values, on the same axis.
    """

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
class TimePoint:
    """A number on a chart over time.

    Attributes:
        place: Its position from left to right, such as "12.50%".
        number: The number.
        is_faint: Whether it is drawn without emphasis.
        is_joined: Whether a line leads to it from the point before.
    """

    place: str
    number: Number
    is_faint: bool = False
    is_joined: bool = False


@dataclass(frozen=True, slots=True)
class TimeMark:
    """A vertical line on a chart over time, where something changed.

    Attributes:
        place: Its position from left to right.
        sign: What the legend calls it, such as "1".
        text: What changed, for the legend.
    """

    place: str
    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class TimeChart:
    """Numbers over time, which pages draw and other formats leave to the table beside them.

    Attributes:
        caption: What is drawn.
        points: The numbers, from left to right.
        marks: Where something changed.
        axis: The axis of the numbers, from the bottom to the top.
        dates: Positions and texts of the dates below.
    """

    caption: str
    points: Sequence[TimePoint]
    marks: Sequence[TimeMark]
    axis: Axis
    dates: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Fold:
    """A section that is collapsed until the reader opens it.

    Attributes:
        number: Its position, by which it is linked to.
        title: Its title.
        marks: The texts before and after the title.
        blocks: Its content.
        anchor: What it is linked by in place of its position.
    """

    number: int
    title: str
    marks: tuple[str, str]
    blocks: Sequence[Block]
    anchor: str = ""


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
    | TimeChart
    | Fold
)


@dataclass(frozen=True, slots=True)
class Document:
    """A report.

    Attributes:
        title: Its title.
        blocks: Its content.
        lede: One line below the title.
        back: The title and address of the page that this one belongs to.
        neighbours: Titles and addresses of the pages before and after this one.
    """

    title: str
    blocks: Sequence[Block]
    lede: str = ""
    back: tuple[str, str] | None = None
    neighbours: Sequence[tuple[str, str]] = ()

    def words(self) -> dict[str, Any]:
        """Return the document's notes and conclusion, for JSON."""
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
