"""Pivots of a leaderboard as documents and CSV."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evalwright.analysis.pivots import ALL, PivotCell, Pivots, PivotTable
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.frames import csv_of
from evalwright.reports.text import inert

MOST_COLUMNS = 12
"""Most columns of a pivot for people; CSV has all."""


def pivot_document(pivots: Pivots, *, title: str = "Leaderboard") -> doc.Document:
    """Build the document of a pivot: a table, or one for each model."""
    blocks: list[doc.Block] = []
    for table in pivots.tables:
        if table.model:
            blocks.append(doc.Heading(table.model))
        blocks.append(_table(pivots, table))
    notes = [f"Scores with their 95% intervals{_items(pivots)}.", *pivots.notes]
    n_columns = len(pivots.columns.values)
    if n_columns > MOST_COLUMNS:
        notes.insert(
            0,
            f"{MOST_COLUMNS} of {n_columns} columns are shown; `--pivot"
            f" {inert(pivots.columns.key)},{inert(pivots.rows.key)}` has them as rows,"
            " and `--csv FILE` has all.",
        )
    dimensions = f"{pivots.rows.title.lower()} by {pivots.columns.title.lower()}"
    return doc.Document(f"{title}: {dimensions}", [*blocks, doc.Notes(notes)])


def _items(pivots: Pivots) -> str:
    """Say how many scored items the numbers have: ", each of 40 to 240 items"."""
    counts = [
        cell.estimate.n
        for table in pivots.tables
        for cells in table.cells
        for cell in cells
        if cell and cell.estimate
    ]
    if not counts:
        return ""
    ends = dict.fromkeys(map(numbers.count, (min(counts), max(counts))))
    return f", each of {' to '.join(ends)} items"


def pivot_csv(pivots: Pivots) -> str:
    """Convert a pivot to CSV: a line for each number, on the metric's own scale."""
    return csv_of(
        {name: _plain(content) for name, content in record.items()}
        for record in pivots.records()
    )


def _plain(content: object) -> object:
    if isinstance(content, float) and math.isnan(content):
        return None
    return inert(content) if isinstance(content, str) else content


def _table(pivots: Pivots, table: PivotTable) -> doc.Table:
    columns = pivots.columns.values[:MOST_COLUMNS]
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(row_title, "strong", name=True),
            *_cells(cells[: len(columns)]),
        )
        for (_, row_title), cells in zip(pivots.rows.values, table.cells, strict=True)
    ]
    return doc.Table(
        [
            doc.Column(pivots.rows.title, key=True, folds=True),
            *(
                doc.Column(column_title, name=column != ALL, optional=bool(i))
                for i, (column, column_title) in enumerate(columns)
            ),
        ],
        rows,
        table.model or f"{pivots.rows.title} by {pivots.columns.title.lower()}",
    )


def _cells(cells: Sequence[PivotCell | None]) -> Iterator[doc.Content]:
    for cell in cells:
        if cell is None:
            yield ""
            continue
        unit: numbers.Unit = "points" if cell.bounded else "plain"
        yield doc.Number(cell.estimate, unit)
