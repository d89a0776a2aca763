"""Score columns of a published board.

A hallucination board has four columns with plain names, any other board one for each task.
Hallucination boards are recognised by the kind and the labels of their metrics, so it does not
matter which program recorded the runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalwright.analysis.board_tree import OVERALL, find_in
from evalwright.analysis.corrected_tree import (
    BY_THE_JUDGE,
    are_complements,
    complement,
)
from evalwright.analysis.factual import ACCURACY, HALLUCINATED, REFUSED, SHARES
from evalwright.analysis.words import normalise_label as normalise_label
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.analysis.board import Board, BoardNode, BoardRow, BoardTask
    from evalwright.analysis.extra_columns import ExtraColumn
    from evalwright.runs.results import MetricResult
    from evalwright.statistics import Estimate

HALLUCINATION = "hallucination-rate"

SHARE_TITLES = {
    ACCURACY: "Accuracy",
    HALLUCINATED: "Hallucinated",
    REFUSED: "Refused or corrected",
}
"""Titles of a factual board's columns. A task's metric `refused` leaves corrections out."""


@dataclass(frozen=True, slots=True)
class HallucinationColumn:
    """A metric of the hallucination leaderboard.

    Attributes:
        label: The metric's label, normalised.
        title: The column's title.
        measure: The unit of its numbers.
        lower_is_better: None where neither direction is better.
    """

    label: str
    title: str
    measure: str
    lower_is_better: bool | None = False


HALLUCINATION_COLUMNS = (
    HallucinationColumn(
        "hallucination rate", "Hallucination rate", "%", lower_is_better=True
    ),
    HallucinationColumn("factual consistency rate", "Factual consistency rate", "%"),
    HallucinationColumn("answer rate", "Answer rate", "%"),
    HallucinationColumn(
        "mean words", "Average summary length", "words", lower_is_better=None
    ),
)


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One number for every row of a board, in the order of the rows.

    Attributes:
        name: The column's name in CSV and JSON.
        title: The column's title.
        task: The task, "" for a mean or share over several.
        metric: The metric's label.
        measure: "%", "words", or "" where `unit` is enough.
        unit: How numbers are formatted.
        lower_is_better: None where neither direction is better.
        estimates: The numbers, None where a row has none.
    """

    name: str
    title: str
    task: str
    metric: str
    measure: str
    unit: numbers.Unit
    lower_is_better: bool | None
    estimates: tuple[Estimate | None, ...]


CORRECTED = "corrected"
"""Name of the column of scores that labels correct."""

JUDGE_ERRORS = {
    "false_alarm": ("Judge's false alarms", "% of right answers"),
    "miss": ("Judge's misses", "% of wrong answers"),
}
"""Title and measure of the columns of a judge's error rates, by their names in
`BoardRow.judge_errors`.
"""

JUDGE_ERROR_PREFIX = "judge_"
"""How the names of the columns of a judge's error rates begin."""

MOST_COLUMNS = 8
"""Most columns of scores that a table shows beside the one that orders its rows."""

FEW_MORE_COLUMNS = 10
"""A level of the tree with this many parts is still shown whole."""


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """The score columns of a table: one level of the board's tree.

    Attributes:
        columns: The columns, with the one that orders the rows first.
        is_level: Whether these are one level of the tree, and not all numbers of the board.
        extent: What they are, "" if all numbers are shown.
        remedy: How to see the others.
    """

    columns: tuple[ScoreColumn, ...]
    is_level: bool = False
    extent: str = ""
    remedy: str = ""

    @property
    def note(self) -> str:
        """What the table has, and how to see the rest."""
        return f"{self.extent} {self.remedy}".strip()


def score_columns(board: Board) -> tuple[ScoreColumn, ...]:
    """Return all score columns of a board, with the one that orders the rows first."""
    return _with_corrected(board, _score_columns(_by_the_judge(board)))


def _score_columns(board: Board) -> tuple[ScoreColumn, ...]:
    columns = _default_columns(board)
    if board.is_ranked_elsewhere:
        first = node_column(board.headline)
        columns = (first, *(column for column in columns if column.name != first.name))
    names = {column.name for column in columns}
    slices = (node_column(node) for node in find_in(board.tree) if node.kind == "slice")
    return (*columns, *(column for column in slices if column.name not in names))


def _by_the_judge(board: Board) -> Board:
    """Return a board as it is without labels, in the order that they give the rows."""
    return replace(board, tree=board.judged_tree) if board.judged_tree else board


def _with_corrected(
    board: Board, columns: tuple[ScoreColumn, ...]
) -> tuple[ScoreColumn, ...]:
    """Put the score corrected by labels first, and the judge's own number and errors beside it.

    A column that is 1 minus the judge's number is corrected alike: it can be computed from either.
    """
    if not any(row.corrected for row in board.rows):
        return columns
    judged, *others = columns
    corrected = _corrected_column(judged, [row.corrected for row in board.rows])
    corrected = replace(corrected, name=CORRECTED)
    errors = []
    for name, (title, kind) in JUDGE_ERRORS.items():
        rates = tuple(row.judge_errors.get(name) for row in board.rows)
        if any(rates):
            errors.append(
                ScoreColumn(
                    f"{JUDGE_ERROR_PREFIX}{name}",
                    title,
                    "",
                    kind,
                    kind,
                    "points",
                    None,
                    rates,
                )
            )
    own_number = replace(judged, title=f"{judged.title}{BY_THE_JUDGE}")
    complements = [complement(estimate) for estimate in corrected.estimates]
    others = [
        _corrected_column(column, complements)
        if are_complements(column.estimates, judged.estimates)
        else column
        for column in others
    ]
    return (corrected, own_number, *errors, *others)


def _corrected_column(
    column: ScoreColumn, estimates: Sequence[Estimate | None]
) -> ScoreColumn:
    """Put corrected numbers into the place of the judge's."""
    return replace(
        column,
        name=f"{CORRECTED}_{column.name}",
        title=f"{column.title}, corrected",
        estimates=tuple(estimates),
    )


def shown_columns(board: Board) -> ShownColumns:
    """Return the score columns of a table for people.

    A board of few tasks shows all of its numbers. A larger one, or one that was asked to go by
    metadata or by another node, shows one level of its tree: the node that orders the rows and its
    parts, as many as can be read.
    """
    plain_columns = _shown_columns(_by_the_judge(board))
    return replace(plain_columns, columns=_with_corrected(board, plain_columns.columns))


def _shown_columns(board: Board) -> ShownColumns:
    columns = _default_columns(board)
    is_asked_for = (
        bool(board.by)
        or board.is_ranked_elsewhere
        or (bool(board.preset) and bool(board.tree) and bool(board.tree[0].parts))
    )
    if _is_special(board) and (board.preset or not is_asked_for):
        return ShownColumns(_headline_first(board, columns))
    if not is_asked_for and len(board.tasks) <= MOST_COLUMNS:
        return ShownColumns(columns)
    node = board.headline
    parts = _parts_to_show(board, node)
    most = MOST_COLUMNS if len(parts) > FEW_MORE_COLUMNS else FEW_MORE_COLUMNS
    first = node_column(node)
    if node.kind == "group" and not board.is_ranked_elsewhere:
        first = replace(first, name="overall", title="Overall")
    level = (first, *(node_column(part) for part in parts[:most]))
    return ShownColumns(level, True, *_how_to_see_more(board, node, parts, most))


def _headline_first(
    board: Board, columns: tuple[ScoreColumn, ...]
) -> tuple[ScoreColumn, ...]:
    """Put the number that orders the rows before the others, in place of the overall score."""
    if not board.is_ranked_elsewhere:
        return columns
    headline = node_column(board.headline)
    others = [
        column
        for column in columns
        if column.name not in ("overall", "mean over tasks")
        and (column.title != headline.title or column.estimates == headline.estimates)
    ]
    same = [column for column in others if column.estimates == headline.estimates]
    first = same[0] if same else headline
    return (first, *(column for column in others if column is not first))


def _parts_to_show(board: Board, node: BoardNode) -> list[BoardNode]:
    """List the nodes beside the one that orders the rows: its parts, and what has no other place.

    Where a board goes by slices, these stand for the tasks. A node without parts stands beside the
    board's first number.
    """
    parts = [part for part in node.parts if any(part.estimates)]
    slices = [part for part in parts if part.kind == "slice"]
    units = {task.name for task in board.tasks}
    siblings = [
        root
        for root in board.tree
        if root.id != node.id
        and any(root.estimates)
        and units & {*root.tasks}
        and (root is board.tree[0] or node is board.tree[0])
    ]
    if not node.parts:
        return siblings
    groups = [root for root in siblings if root.kind == "group"]
    tasks = [root for root in siblings if root.kind != "group"]
    return [*groups, *(slices or parts), *tasks]


def _how_to_see_more(
    board: Board, node: BoardNode, parts: Sequence[BoardNode], most: int
) -> tuple[str, str]:
    """Say what a level of the tree has, and how to see the rest; nothing if there is none."""
    n_numbers = sum(1 for tree_node in find_in(board.tree) if any(tree_node.estimates))
    if 1 + len(parts[:most]) >= n_numbers:
        return "", ""
    is_default = node.kind == "group" and not board.is_ranked_elsewhere
    title = "the overall score" if is_default else f"'{node.title}'"
    beside = f"{title} with {most} of {len(parts)} parts"
    if len(parts) <= most:
        beside = f"{title} and its parts" if node.parts else title
    keys = ", ".join(inert(key) for key in board.task_keys[:4])
    grouped = f"; `--by KEY` groups tasks ({keys})" if keys and not board.by else ""
    return (
        f"The table has {inert(beside)}.",
        f"`--rank-by NAME` shows another node with its parts{grouped}; `--csv FILE` has"
        f" all {n_numbers:,} scores of a model.",
    )


def node_column(node: BoardNode) -> ScoreColumn:
    """Build the column of a node of the board's tree."""
    name = node.id
    if node.kind == "task":
        name = node.tasks[0] if node.title == node.tasks[0] else node.title
    unit: numbers.Unit = "points" if node.bounded else "plain"
    return ScoreColumn(
        name=name,
        title="Overall" if node.id == OVERALL else inert(node.title),
        task=node.tasks[0] if node.kind == "task" else "",
        metric=node.metric,
        measure=node.measure,
        unit=unit,
        lower_is_better=node.lower_is_better,
        estimates=node.estimates,
    )


def _is_special(board: Board) -> bool:
    """Tell whether a board has columns with plain names: of hallucinations, or factual shares."""
    return is_hallucination_board(board) or any(row.shares for row in board.rows)


def _default_columns(board: Board) -> tuple[ScoreColumn, ...]:
    """Return the columns of a board's overall score, groups and tasks."""
    if is_hallucination_board(board):
        task = board.tasks[0].name
        columns = (
            _hallucination_column(board, task, column)
            for column in HALLUCINATION_COLUMNS
        )
        return tuple(column for column in columns if any(column.estimates))
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
            [_task_column(board, board.tasks[0])]
            if board.tasks[0].metric != "accuracy"
            else []
        )
        return (*(overall or first), *(_share_column(board, name) for name in SHARES))
    return (
        *overall,
        *(_group_column(board, group) for group in board.groups),
        *(_task_column(board, task) for task in board.tasks),
    )


def _group_column(board: Board, group: BoardTask) -> ScoreColumn:
    """Build the column of one group in the tree of tasks."""
    cells = [row.groups.get(group.name) for row in board.rows]
    unit: numbers.Unit = "points" if group.bounded else "plain"
    estimates = tuple(cell.estimate if cell else None for cell in cells)
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
    """Return all score columns in the order of the board's rows, including those in other units."""
    return _in_order_of(board, tasks=False)


def columns_with_tasks(board: Board) -> tuple[ScoreColumn, ...]:
    """Return what `data_columns` does, and a column for each task that has none there."""
    return _in_order_of(board, tasks=True)


def _in_order_of(board: Board, *, tasks: bool) -> tuple[ScoreColumn, ...]:
    columns: list[ScoreColumn] = []
    for unit_board in (board, *board.more):
        unit_columns = list(score_columns(unit_board))
        if tasks:
            unit_columns += task_columns(unit_board, unit_columns)
        places = {row.run_index: i for i, row in enumerate(unit_board.rows)}
        order = [places[row.run_index] for row in board.rows]
        columns += [
            replace(column, estimates=tuple(column.estimates[i] for i in order))
            for column in unit_columns
        ]
    return tuple(columns)


def task_columns(
    board: Board, shown_columns: Sequence[ScoreColumn]
) -> tuple[ScoreColumn, ...]:
    """Return a column for each task of the board that none of these columns is about."""
    shown_tasks = {column.task for column in shown_columns}
    return tuple(
        _task_column(board, task)
        for task in board.tasks
        if task.name not in shown_tasks
    )


def _share_column(board: Board, name: str) -> ScoreColumn:
    """Build the column of one outcome share of a factual board.

    It belongs to no single task, because some shares are about the stress questions.
    """
    estimates = tuple(row.shares.get(name) for row in board.rows)
    title = SHARE_TITLES[name]
    return ScoreColumn(
        name, title, "", name, "", "points", name == HALLUCINATED, estimates
    )


def is_hallucination_board(board: Board) -> bool:
    """Tell whether the board's only task is ranked by its hallucination rate."""
    if len(board.tasks) != 1:
        return False
    cells = [row.cells.get(board.tasks[0].name) for row in board.rows]
    return all(cell is not None and cell.kind == HALLUCINATION for cell in cells)


def find_metric(metrics: tuple[MetricResult, ...], label: str) -> MetricResult | None:
    """Find a metric by its label, ignoring case, spaces, dashes and underscores."""
    return next(
        (metric for metric in metrics if normalise_label(metric.label) == label), None
    )


def metric_of(row: BoardRow, task: str, label: str) -> MetricResult | None:
    """Find the metric of a row with this label, on this task."""
    if label == HALLUCINATION_COLUMNS[0].label:
        return row.cells.get(task)
    return find_metric(row.metrics.get(task, ()), label)


def _hallucination_column(
    board: Board, task: str, column: HallucinationColumn
) -> ScoreColumn:
    metrics = [metric_of(row, task, column.label) for row in board.rows]
    return ScoreColumn(
        name=column.title.lower().replace(" ", "_"),
        title=column.title,
        task=task,
        metric=column.label,
        measure=column.measure,
        unit="points" if column.measure == "%" else "plain",
        lower_is_better=column.lower_is_better,
        estimates=tuple(metric.estimate if metric else None for metric in metrics),
    )


def _task_column(board: Board, task: BoardTask) -> ScoreColumn:
    cells = [row.cells.get(task.name) for row in board.rows]
    unit = numbers.unit_of(next((cell.kind for cell in cells if cell), ""))
    estimates = tuple(cell.estimate if cell else None for cell in cells)
    less = task.lower_is_better
    return ScoreColumn(
        task.name, inert(task.name), task.name, task.metric, "", unit, less, estimates
    )


def extra_heading(column: ExtraColumn) -> doc.Column:
    """Return the head of a column that is no score."""
    better = "lower is better" if column.lower_is_better else ""
    is_once = any(
        estimate and not math.isnan(estimate.value) and math.isnan(estimate.low)
        for estimate in column.estimates
    )
    once = "no interval where measured once" if is_once else ""
    note = ", ".join(phrase for phrase in (column.measure, better, once) if phrase)
    return doc.Column(
        inert(column.title),
        note,
        folds=bool(column.texts),
        ascending=bool(column.lower_is_better),
        moves=True,
    )


def extra_cell(column: ExtraColumn, row: int) -> doc.Cell:
    """Return a row's cell of a column that is no score.

    A number that was measured once is shown without an interval; the reason is small print.
    """
    if column.texts:
        return doc.Cell(column.texts[row], name=True)
    estimate = column.estimates[row]
    reason = column.reasons.get(row, "")
    if estimate is None:
        return doc.Cell(numbers.NOTHING if reason else "", note=reason)
    decimals = numbers.common_decimals(column.estimates, column.unit)
    if math.isnan(estimate.low):
        text = numbers.value(estimate, column.unit, decimals)
        return doc.Cell(text, note=reason, sort=estimate.value)
    return doc.Cell(doc.Number(estimate, column.unit, decimals=decimals))


def as_of(board: Board) -> str:
    """Return the date of the newest run: a board changes only when its runs do."""
    return max((row.date for row in board.rows), default="")
