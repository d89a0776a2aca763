"""Pivots of a leaderboard: tables of two of its dimensions, such as languages by competencies.

A dimension is a metadata key of tasks or of samples, "task", or "model". Where neither is "model",
each model has a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.analysis.board import Board, board_columns
from evalwright.analysis.board_plan import plan_board
from evalwright.analysis.board_rows import BoardRow
from evalwright.analysis.board_tree import (
    BoardNode,
    Dimension,
    dimension_title,
    find_in,
)
from evalwright.analysis.words import listed
from evalwright.core.errors import UnknownName, UsageError
from evalwright.core.shown import Shown
from evalwright.core.text import printable
from evalwright.metrics.dimension_titles import value_title
from evalwright.runs.confirmed import confirm_all
from evalwright.runs.reader import Run
from evalwright.statistics import Estimate

MODEL = "model"
TASK = "task"
ALL = ""
"""The value of a column that is not split by the column's key."""

MOST_TABLES = 10
"""Most models that have a table each, unless one is asked for."""


@dataclass(frozen=True, slots=True)
class PivotCell:
    """A number of a pivot.

    Args:
        estimate: None where there is none.
        reason: why there is no number or no interval, or which tasks it lacks.
        bounded: whether values are between 0 and 1 and are shown in percentage points.
    """

    estimate: Estimate | None
    reason: str
    bounded: bool


@dataclass(frozen=True, slots=True)
class PivotTable:
    """A table of numbers by two dimensions.

    Args:
        model: the model's label; "" where models are a dimension.
        cells: the numbers by row and column; None where nothing has both values.
    """

    model: str
    cells: tuple[tuple[PivotCell | None, ...], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Pivots(Shown):
    """A board's numbers by two dimensions.

    Args:
        rows: the dimension of the rows.
        columns: the dimension of the columns; its first value may be `ALL`.
        tables: a table for each model, or a single one where models are a dimension.
        notes: what a reader must know, a sentence each.
    """

    rows: Dimension
    columns: Dimension
    tables: tuple[PivotTable, ...]
    notes: tuple[str, ...] = field(default=())

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each number, for programs and spreadsheets."""
        return [
            record for table in self.tables for record in self._table_records(table)
        ]

    def _table_records(self, table: PivotTable) -> Iterable[dict[str, Any]]:
        for (row, _), cells in zip(self.rows.values, table.cells, strict=True):
            for (column, _), cell in zip(self.columns.values, cells, strict=True):
                if cell is None:
                    continue
                estimate = cell.estimate
                yield {
                    **({MODEL: table.model} if table.model else {}),
                    self.rows.key: row,
                    self.columns.key: column,
                    "value": estimate.value if estimate else None,
                    "low": estimate.low if estimate else None,
                    "high": estimate.high if estimate else None,
                    "n": estimate.n if estimate else 0,
                    "missing": estimate.n_missing if estimate else 0,
                    "reason": cell.reason,
                }

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        return {
            "rows": self.rows.key,
            "columns": self.columns.key,
            "scores": [
                {
                    name: None if content != content else content
                    for name, content in record.items()
                }
                for record in self.records()
            ],
            "notes": list(self.notes),
        }


def make_pivots(
    board: Board,
    runs: Sequence[Run],
    keys: Sequence[str],
    metric: str | None = None,
    model: str | None = None,
) -> Pivots:
    """Arrange the numbers of a board by two dimensions.

    Args:
        board: the board.
        runs: the runs that it was made of.
        keys: the dimension of the rows, and that of the columns.
        metric: the metric that the board shows, None for the main ones.
        model: label of the model to show; None for each.

    Raises:
        UnknownName: there is no such key or model.
        UsageError: both dimensions are the same, or models are a dimension and one is chosen.
    """
    row_key, column_key = keys
    if row_key == column_key:
        raise UsageError(f"--pivot takes two different keys, not '{row_key}' twice.")
    if model is not None and MODEL in keys:
        raise UsageError(
            "--model has no effect where models are a dimension of --pivot. Leave one out."
        )
    labels = _labels(board)
    chosen = [_find_model(board, labels, model)] if model is not None else []
    by = tuple(key for key in keys if key not in (MODEL, TASK))
    nodes = _with_nodes_of_board(
        list(find_in(_roots(board, runs, by, metric))), list(find_in(board.tree))
    )
    notes = []
    if MODEL in keys:
        tables, rows, columns = _of_models(nodes, keys, labels)
    else:
        n_models = len(labels)
        model_indices = chosen or list(range(min(n_models, MOST_TABLES)))
        rows, columns, places = _of_keys(nodes, keys)
        tables = tuple(
            PivotTable(labels[i], _cells_of_model(places, rows, columns, i))
            for i in model_indices
        )
        if not chosen and n_models > MOST_TABLES:
            notes.append(
                f"The best {MOST_TABLES} of {n_models} models; --model LABEL shows"
                " another."
            )
    reasons = dict.fromkeys(
        cell.reason
        for table in tables
        for cells in table.cells
        for cell in cells
        if cell and cell.reason
    )
    if reasons:
        why = listed([*reasons], 5)
        notes.append(f"Missing or partial numbers: {why}.")
    return Pivots(rows, columns, tables, tuple(notes))


def _roots(
    board: Board, runs: Sequence[Run], by: tuple[str, ...], metric: str | None
) -> tuple[BoardNode, ...]:
    """Return a tree by these keys, with models in the order of the board."""
    if not by or by == board.by:
        return board.tree
    ordered = confirm_all([runs[row.run_index] for row in board.rows])
    columns = board_columns(ordered, metric)
    return plan_board(ordered, columns, metric, "fixed", by).roots


def _with_nodes_of_board(
    nodes: Sequence[BoardNode], board_nodes: Sequence[BoardNode]
) -> list[BoardNode]:
    """Replace nodes by those of the board's tree that are about the same, so that numbers agree.

    A board may average groups within a language where a tree by language averages its tasks. The
    board's node must have all of the tasks that are in the board's tree.
    """
    tasks_of_board = {task for node in board_nodes for task in node.tasks}
    outermost: dict[frozenset[tuple[str, str]], BoardNode] = {}
    for node in board_nodes:
        if node.keys and node.kind != "task":
            outermost.setdefault(frozenset(node.keys.items()), node)
    replaced = []
    for node in nodes:
        of_board = outermost.get(frozenset(node.keys.items()))
        if (
            node.kind != "task"
            and of_board is not None
            and set(of_board.tasks) == tasks_of_board.intersection(node.tasks)
        ):
            replaced.append(of_board)
        else:
            replaced.append(node)
    return replaced


def _of_models(
    nodes: Sequence[BoardNode], keys: Sequence[str], labels: Sequence[str]
) -> tuple[tuple[PivotTable, ...], Dimension, Dimension]:
    """Arrange models by one other key."""
    (key,) = (key for key in keys if key != MODEL)
    node_by_value = _by_values(nodes, [key])
    values = [value for (value,) in node_by_value]
    dimension = _dimension(key, values)
    models = Dimension(MODEL, "Model", tuple((label, label) for label in labels))
    by_value = [
        [_cell(node_by_value[value,], i) for i in range(len(labels))]
        for value in values
    ]
    if keys[0] == MODEL:
        cells = tuple(
            tuple(column[i] for column in by_value) for i in range(len(labels))
        )
        return (PivotTable("", cells),), models, dimension
    return (PivotTable("", tuple(map(tuple, by_value))),), dimension, models


Places = dict[tuple[str, ...], BoardNode]
"""Nodes by the values of the two keys; `ALL` where a node selects by the first one alone."""


def _of_keys(
    nodes: Sequence[BoardNode], keys: Sequence[str]
) -> tuple[Dimension, Dimension, Places]:
    """Arrange nodes by two keys, none of which is the model."""
    places = _by_values(nodes, keys)
    totals = _by_values(nodes, keys[:1])
    row_values = list(dict.fromkeys(row for row, _ in places))
    column_values = list(dict.fromkeys(column for _, column in places))
    with_totals: Places = {
        (row, ALL): node for (row,), node in totals.items() if row in row_values
    }
    rows = _dimension(keys[0], row_values)
    columns = _dimension(keys[1], [*([ALL] if with_totals else []), *column_values])
    return rows, columns, {**places, **with_totals}


def _by_values(nodes: Sequence[BoardNode], keys: Sequence[str]) -> Places:
    """Find the outermost node for each combination of values of some keys."""
    places: Places = {}
    metadata_keys = {key for key in keys if key != TASK}
    for node in nodes:
        if node.keys.keys() != metadata_keys:
            continue
        if TASK in keys and len(node.tasks) != 1:
            continue
        if TASK in keys and not metadata_keys and node.kind != "task":
            continue
        values = tuple(node.tasks[0] if key == TASK else node.keys[key] for key in keys)
        places.setdefault(values, node)
    return places


def _cells_of_model(
    places: Places, rows: Dimension, columns: Dimension, index: int
) -> tuple[tuple[PivotCell | None, ...], ...]:
    return tuple(
        tuple(
            _cell(places[row, column], index) if (row, column) in places else None
            for column, _ in columns.values
        )
        for row, _ in rows.values
    )


def _cell(node: BoardNode, index: int) -> PivotCell:
    return PivotCell(node.estimates[index], node.reasons.get(index, ""), node.bounded)


def _dimension(key: str, values: Sequence[str]) -> Dimension:
    titles = tuple(
        (value, "All" if value == ALL else value_title(key, value)) for value in values
    )
    return Dimension(key, dimension_title(key), titles)


def _labels(board: Board) -> list[str]:
    """Name each row: its label, with the run's name where rows share a label."""
    labels = [row.label for row in board.rows]
    return [
        row.label if labels.count(row.label) == 1 else f"{row.label} ({row.run})"
        for row in board.rows
    ]


def _find_model(board: Board, labels: Sequence[str], model: str) -> int:
    """Find the row of a model by its label, name or run."""
    for index, row in enumerate(board.rows):
        if model in _names(row, labels[index]):
            return index
    names = dict.fromkeys(
        name
        for row, label in zip(board.rows, labels, strict=True)
        for name in _names(row, label)
    )
    raise UnknownName(
        "model of the board",
        printable(model)[:100],
        names,
        f"There are {listed(labels, 12)}.",
    )


def _names(row: BoardRow, label: str) -> tuple[str, ...]:
    return label, row.label, row.model, row.run
