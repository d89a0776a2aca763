"""What a preset adds to a board's documents: the README form of the original, tables by slice."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from string import capwords

from evalwright.analysis.board import SIMULTANEOUS_NOTE, Board, BoardRow
from evalwright.analysis.board_notes import TIED_NOTE
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.columns import (
    HALLUCINATION_COLUMNS,
    HallucinationColumn,
    ScoreColumn,
    as_of,
    extra_cell,
    extra_heading,
    metric_of,
    shown_columns,
)
from evalwright.reports.documents.board import board_labels, coverage, rank_mark
from evalwright.reports.documents.run import missing_cell
from evalwright.reports.presets import find_preset
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.statistics import Estimate

_NOTES_OF_HIDDEN = (SIMULTANEOUS_NOTE, TIED_NOTE)
"""Notes on columns that the original's form does not have."""

MAX_SLICES = 20
"""Most values of a key that get a column each in a table by slice: more do not fit a page."""


def preset_readme(
    board: Board,
    runs: Sequence[Run],
    links: Sequence[str] = (),
    picture: str = "",
    title: str = "Leaderboard",
) -> doc.Document | None:
    """Build a board in the form of its original's README; None without such a form.

    Args:
        board: The board.
        runs: Its runs, in the order in which they were passed to `make_board`.
        links: The address of each row's own page.
        picture: The relative address of the board's picture.
        title: The board's title, for the picture's caption.
    """
    if not board.preset:
        return None
    make_readme = _READMES.get(find_preset(board.preset).readme)
    if make_readme is None:
        return None
    blocks: list[doc.Block] = [doc.Note(f"Last updated on {_long_date(as_of(board))}")]
    if picture:
        caption = f"{title}: a bar for each model, with its interval"
        blocks.append(doc.Picture(picture, caption))
    blocks.append(make_readme(board, links))
    blocks.append(
        doc.Notes([note for note in board.notes if note not in _NOTES_OF_HIDDEN])
    )
    return doc.Document(title, [*blocks, *slice_tables(board, runs, links)])


def _long_date(date: str) -> str:
    """Write a date as readers of the original know it: "November 29, 2026"."""
    try:
        day = datetime.date.fromisoformat(date)
    except ValueError:
        return date
    return f"{day:%B} {day.day:02d}, {day.year}"


def _hallucination_readme(board: Board, links: Sequence[str]) -> doc.Table:
    """Build the original's five columns in its order, then ranks and counts.

    Where labels correct the board, the corrected rate is before the judge's.
    """
    if any(row.corrected for row in board.rows):
        score_columns = shown_columns(board).columns
        headings = [_corrected_heading(column) for column in score_columns]
        rates_by_row = [
            [_rate_text(column.estimates[i], column.unit) for column in score_columns]
            for i in range(len(board.rows))
        ]
    else:
        task = board.tasks[0].name
        headings = [_readme_heading(column) for column in HALLUCINATION_COLUMNS]
        rates_by_row = [
            [_rate_cell(row, task, column) for column in HALLUCINATION_COLUMNS]
            for row in board.rows
        ]
    columns = [
        doc.Column("Model", key=True, folds=True),
        *headings,
        *(extra_heading(column) for column in board.extra_columns),
        doc.Column("Rank", right=True),
        doc.Column("Judged", right=True),
        doc.Column("Missing", right=True),
    ]
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(label, name=True, link=links[i] if links else ""),
            *rates_by_row[i],
            *(extra_cell(column, i) for column in board.extra_columns),
            f"{numbers.ranks(row.ranks) if row.ranks else numbers.NOTHING}{rank_mark(row)}",
            coverage(row),
            missing_cell(row.n_missing, "above 5%" if row.provisional else ""),
        )
        for i, (row, label) in enumerate(
            zip(board.rows, board_labels(board), strict=True)
        )
    ]
    return doc.Table(columns, rows, "Best first, with 95% intervals.", sortable=True)


def _readme_heading(column: HallucinationColumn) -> doc.Column:
    unit = " (Words)" if column.measure == "words" else ""
    return doc.Column(f"{column.title.title()}{unit}", right=True)


README_DECIMALS = 1
"""The decimals of the original's numbers."""


def _rate_cell(row: BoardRow, task: str, column: HallucinationColumn) -> str:
    """Write a number as the original does, "3.3 %", with its interval behind it."""
    metric = metric_of(row, task, column.label)
    if metric is None or math.isnan(metric.estimate.value):
        return numbers.NOTHING
    return _rate_text(metric.estimate, "points" if column.measure == "%" else "plain")


def _corrected_heading(column: ScoreColumn) -> doc.Column:
    unit = " (Words)" if column.measure == "words" else ""
    name, comma, whose = column.title.partition(", ")
    return doc.Column(f"{capwords(name)}{comma}{whose}{unit}", right=True)


def _rate_text(estimate: Estimate | None, unit: numbers.Unit) -> str:
    if estimate is None or math.isnan(estimate.value):
        return numbers.NOTHING
    sign = " %" if unit == "points" else ""
    rate = numbers.value(estimate, unit, README_DECIMALS)
    return f"{rate}{sign} {numbers.interval(estimate, unit, decimals=README_DECIMALS)}"


_READMES: Mapping[str, Callable[[Board, Sequence[str]], doc.Table]] = {
    "hhem": _hallucination_readme
}


# -- tables by slice -----------------------------------------------------------------------


def with_slice_tables(
    document: doc.Document,
    board: Board,
    runs: Sequence[Run],
    links: Sequence[str] = (),
) -> doc.Document:
    """Add the tables by slice of a preset to a document of its board."""
    tables = list(slice_tables(board, runs, links))
    return replace(document, blocks=[*document.blocks, *tables])


def slice_tables(
    board: Board, runs: Sequence[Run], links: Sequence[str] = ()
) -> Iterator[doc.Block]:
    """Build a table for each metadata key of the preset that the runs have: models by values."""
    if not board.preset or not runs:
        return
    for key in find_preset(board.preset).slices:
        for task in board.tasks:
            slices_by_row = [
                _first_metrics(runs[row.run_index], task.name, key, task.metric)
                for row in board.rows
            ]
            values = list(
                dict.fromkeys(value for slices in slices_by_row for value in slices)
            )
            if not 1 < len(values) <= MAX_SLICES:
                continue
            name = key.replace("_", " ")
            of_task = f", {task.name}" if len(board.tasks) > 1 else ""
            yield doc.Heading(f"By {name}{of_task}")
            yield _slice_table(board, values, slices_by_row, task.metric, links)


def _first_metrics(
    run: Run, task: str, key: str, label: str
) -> Mapping[str, MetricResult]:
    """Return the metric that a board shows in each slice of a run's task, by value of the key."""
    result = next((result for result in run.tasks if result.name == task), None)
    if result is None:
        return {}
    by_value = {}
    for value, metrics in result.slices.get(key, {}).items():
        board_metric = next(
            (metric for metric in metrics if metric.label == label), None
        )
        if board_metric is not None:
            by_value[value] = board_metric
    return by_value


def _slice_table(
    board: Board,
    values: Sequence[str],
    slices_by_row: Sequence[Mapping[str, MetricResult]],
    label: str,
    links: Sequence[str],
) -> doc.Table:
    bounded = board.tasks[0].bounded
    unit: numbers.Unit = "points" if bounded else "plain"
    columns = [
        doc.Column("Model", key=True, folds=True),
        *(doc.Column(value, right=True, name=True) for value in sorted(values)),
    ]
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(name, name=True, link=links[i] if links else ""),
            *(
                doc.Number(_estimate(slices.get(value)), unit)
                for value in sorted(values)
            ),
        )
        for i, (name, slices) in enumerate(
            zip(board_labels(board), slices_by_row, strict=True)
        )
    ]
    return doc.Table(
        columns, rows, f"{label}, in the order of the board", sortable=True
    )


def _estimate(metric: MetricResult | None) -> Estimate | None:
    return metric.estimate if metric is not None else None
