"""The score columns of a published board: a hallucination board has four with plain names, any
other its tasks.

Which board is one of hallucinations is seen by the kind and the labels of its metrics, whoever
recorded the runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalwright.analysis.factual import HALLUCINATED, SHARES
from evalwright.reports import numbers
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.analysis.board import Board, BoardRow, BoardTask
    from evalwright.runs.results import MetricResult
    from evalwright.statistics import Estimate

HALLUCINATION = "hallucination-rate"


@dataclass(frozen=True, slots=True)
class Named:
    """A metric of the hallucination leaderboard. label: its normal form; measure: what one unit of
    its numbers is; lower_is_better: None where neither is.
    """

    label: str
    title: str
    measure: str
    lower_is_better: bool | None = False


HALLUCINATION_COLUMNS = (
    Named("hallucination rate", "Hallucination rate", "%", lower_is_better=True),
    Named("factual consistency rate", "Factual consistency rate", "%"),
    Named("answer rate", "Answer rate", "%"),
    Named("mean words", "Average summary length", "words", lower_is_better=None),
)


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One number of every row, in the order of the rows.

    name: for programs. measure: "%", "words", or "" where the unit says it. lower_is_better: None
    where neither is.
    """

    name: str
    title: str
    task: str
    metric: str
    measure: str
    unit: numbers.Unit
    lower_is_better: bool | None
    estimates: tuple[Estimate | None, ...]


def score_columns(board: Board) -> tuple[ScoreColumn, ...]:
    """The columns, the one that orders the rows first."""
    if is_hallucination_board(board):
        task = board.tasks[0].name
        made = (_named(board, task, column) for column in HALLUCINATION_COLUMNS)
        return tuple(column for column in made if any(column.estimates))
    overall: list[ScoreColumn] = []
    if board.has_overall:
        less = board.tasks[0].lower_is_better
        estimates = tuple(row.overall for row in board.rows)
        name = (
            "mean over tasks"
            if any(task.name == "overall" for task in board.tasks)
            else "overall"
        )
        overall = [
            ScoreColumn(
                name, "Overall", "", "mean over tasks", "", "points", less, estimates
            )
        ]
    if any(row.shares for row in board.rows):
        first = (
            [_of_task(board, board.tasks[0])]
            if board.tasks[0].metric != "accuracy"
            else []
        )
        return (*(overall or first), *(_share(board, name) for name in SHARES))
    return (
        *overall,
        *(_of_group(board, group) for group in board.groups),
        *(_of_task(board, task) for task in board.tasks),
    )


def _of_group(board: Board, group: BoardTask) -> ScoreColumn:
    """A node of the tree of tasks."""
    found = [row.groups.get(group.name) for row in board.rows]
    unit: numbers.Unit = "points" if group.bounded else "plain"
    estimates = tuple(one.estimate if one else None for one in found)
    return ScoreColumn(
        f"tree.{group.name}",
        group.name,
        "",
        group.metric,
        group.metric,
        unit,
        group.lower_is_better,
        estimates,
    )


def data_columns(board: Board) -> tuple[ScoreColumn, ...]:
    """The columns of the board and of those in other units, all in the order of its rows."""
    columns = list(score_columns(board))
    for one in board.more:
        places = {row.run_index: i for i, row in enumerate(one.rows)}
        order = [places[row.run_index] for row in board.rows]
        columns += [
            replace(column, estimates=tuple(column.estimates[i] for i in order))
            for column in score_columns(one)
        ]
    return tuple(columns)


def _share(board: Board, name: str) -> ScoreColumn:
    """A share of a factual board; that of the stress questions is not of a task that the name could
    say.
    """
    estimates = tuple(row.shares.get(name) for row in board.rows)
    return ScoreColumn(
        name, name.capitalize(), "", name, "", "points", name == HALLUCINATED, estimates
    )


def is_hallucination_board(board: Board) -> bool:
    """Whether the board has one task, which is shown by its hallucination rate."""
    if len(board.tasks) != 1:
        return False
    cells = [row.cells.get(board.tasks[0].name) for row in board.rows]
    return all(cell is not None and cell.kind == HALLUCINATION for cell in cells)


def find_metric(metrics: tuple[MetricResult, ...], label: str) -> MetricResult | None:
    """The metric of a label, whether words in it are joined by spaces, dashes or underscores."""
    return next((metric for metric in metrics if normal(metric.label) == label), None)


def normal(label: str) -> str:
    """A label in one form: "Answer-Rate" and "answer rate" are the same."""
    return re.sub(r"[\s_-]+", " ", label).strip().lower()


def metric_of(row: BoardRow, task: str, label: str) -> MetricResult | None:
    """A row's metric of that label on a task."""
    if label == HALLUCINATION_COLUMNS[0].label:
        return row.cells.get(task)
    return find_metric(row.metrics.get(task, ()), label)


def _named(board: Board, task: str, column: Named) -> ScoreColumn:
    found = [metric_of(row, task, column.label) for row in board.rows]
    return ScoreColumn(
        name=column.title.lower().replace(" ", "_"),
        title=column.title,
        task=task,
        metric=column.label,
        measure=column.measure,
        unit="points" if column.measure == "%" else "plain",
        lower_is_better=column.lower_is_better,
        estimates=tuple(metric.estimate if metric else None for metric in found),
    )


def _of_task(board: Board, task: BoardTask) -> ScoreColumn:
    cells = [row.cells.get(task.name) for row in board.rows]
    unit = numbers.unit_of(next((cell.kind for cell in cells if cell), ""))
    estimates = tuple(cell.estimate if cell else None for cell in cells)
    less = task.lower_is_better
    return ScoreColumn(
        task.name, inert(task.name), task.name, task.metric, "", unit, less, estimates
    )


def as_of(board: Board) -> str:
    """The day of the newest run: a board changes only when its runs do."""
    return max((row.date for row in board.rows), default="")
