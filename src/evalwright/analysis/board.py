"""A leaderboard as data: a row per run, a column per task, intervals, and ranks as ranges.

Ranks are sets (Mogstad, Romano, Shaikh & Wilhelm 2024): a run's best rank is one more than the
number of runs that are significantly better, and its worst rank leaves out those that are
significantly worse. Significance is Holm-adjusted over all pairs of the board, each pair on the
items that both runs have a score for; with several tasks, the mean over tasks is tested. Runs
without a score on some task are listed below, without a rank. Missing answers are left out and
counted; above 5% of them a run's numbers are provisional.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalwright.analysis.board_notes import SIMULTANEOUS_NOTE, list_notes, missing_notes
from evalwright.analysis.board_rows import BoardRow, BoardTask, make_row
from evalwright.analysis.board_tree import (
    BoardNode,
    Dimension,
    UnitRows,
    make_tree,
)
from evalwright.analysis.comparison import unknown_metric
from evalwright.analysis.factual import factual_shares, is_factual
from evalwright.analysis.judges_used import differing_roles_of, scoring_roles
from evalwright.analysis.ranking import rank
from evalwright.analysis.ratings import Ratings, make_ratings
from evalwright.analysis.trees import (
    Average,
    common_trees,
    make_average,
    outer_first,
    overall_node,
)
from evalwright.analysis.words import (
    listed,
)
from evalwright.core.errors import RunError
from evalwright.core.plain import plain
from evalwright.core.shown import Shown
from evalwright.metrics.registry import BOUNDED
from evalwright.metrics.tree import distinct
from evalwright.runs.confirmed import confirm_all, published_from, published_notes
from evalwright.runs.measures import Matrix, matrices
from evalwright.runs.reader import Run, called, check_named_once
from evalwright.runs.results import MetricResult
from evalwright.runs.simulations import refuse_shards
from evalwright.statistics import Estimate, simultaneous_means
from evalwright.statistics.macro import TasksAre

__all__ = [
    "SIMULTANEOUS_NOTE",
    "Board",
    "BoardNode",
    "BoardRow",
    "BoardTask",
    "Dimension",
    "make_board",
]


@dataclass(frozen=True, slots=True, repr=False)
class Board(Shown):
    """A leaderboard, best row first.

    All tasks share one unit and direction; `more` has the boards of the other units.

    Args:
        tasks: the columns.
        rows: the runs.
        notes: what a reader must know, one sentence each.
        groups: inner nodes of the runs' common tree, each shown as a column.
        more: boards of the tasks with other units.
        ratings: ratings over all boards, if they were requested.
        numbers_from: by run, what its numbers were computed from if not from its samples.
        tree: every number of the board as a tree; the first root has the headline number.
        dimensions: keys by which the nodes of the tree differ.
        rank_by: id of the node by which the rows are sorted and ranked.
    """

    tasks: tuple[BoardTask, ...]
    rows: tuple[BoardRow, ...]
    notes: tuple[str, ...]
    groups: tuple[BoardTask, ...] = ()
    more: tuple[Board, ...] = ()
    ratings: Ratings | None = None
    numbers_from: Mapping[str, str] = field(default_factory=dict)
    tree: tuple[BoardNode, ...] = ()
    dimensions: tuple[Dimension, ...] = ()
    rank_by: str = ""

    @property
    def has_overall(self) -> bool:
        """Whether a mean over tasks is shown."""
        return any(row.overall is not None for row in self.rows) and len(self.tasks) > 1

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        tasks = [
            {
                "name": task.name,
                "metric": task.metric,
                "lower_is_better": task.lower_is_better,
            }
            for task in self.tasks
        ]
        fields = {
            "tasks": tasks,
            "groups": [group.name for group in self.groups],
            "rows": plain(self.rows),
            "notes": list(self.notes),
            "more": plain(self.more),
            "ratings": plain(self.ratings),
            "numbers_from": dict(self.numbers_from),
        }
        return {
            name: content
            for name, content in fields.items()
            if content or name in ("tasks", "rows", "notes")
        }


def make_board(
    runs: Sequence[Run],
    metric: str | None = None,
    tasks_are: TasksAre = "fixed",
    *,
    ratings: bool = False,
) -> Board:
    """Build the leaderboard of several runs.

    Args:
        runs: the runs.
        metric: the metric to show, a label or TASK.LABEL; None shows each task's main metric.
        tasks_are: as in `compare_runs`, for the overall score and ranks.
        ratings: whether to rate the models too.

    Raises:
        RunError: there are no runs, one is listed twice, or a task is shown by different metrics.
        UnknownName: no run has such a metric.
    """
    if not runs:
        raise RunError(
            "A leaderboard needs at least one run. `evalwright runs list` shows what"
            " there is."
        )
    check_named_once(runs)
    refuse_shards(runs)
    runs = confirm_all(runs)
    units: dict[tuple[bool, bool, str], list[BoardTask]] = {}
    columns = _find_columns(runs, metric)
    for task in columns:
        unit = (task.bounded, task.lower_is_better, "" if task.bounded else task.metric)
        units.setdefault(unit, []).append(task)
    first, *further = (
        _make_unit_board(runs, tuple(tasks), metric, len(units) > 1, tasks_are)
        for tasks in units.values()
    )
    rated = None
    if ratings:
        shown_metrics = [_collect_cells(run, columns, metric) for run in runs]
        rated = make_ratings(runs, called(runs), shown_metrics)
    tree = _tree_of(runs, (first, *further), metric)
    return replace(
        first,
        more=tuple(further),
        tree=tree,
        rank_by=tree[0].id,
        ratings=rated,
        notes=(*first.notes, *published_notes(runs)),
        numbers_from=published_from(runs),
    )


def _tree_of(
    runs: Sequence[Run], boards: Sequence[Board], metric: str | None
) -> tuple[BoardNode, ...]:
    """Build the tree of all boards, with rows in the order of the first."""
    order = [row.run_index for row in boards[0].rows]
    units = []
    for board in boards:
        row_by_run = {row.run_index: row for row in board.rows}
        units.append(
            UnitRows(
                board.tasks,
                tuple(row_by_run[run_index] for run_index in order),
                overall_node(runs, [task.name for task in board.tasks]),
                board.has_overall,
            )
        )
    trees = common_trees(runs) if metric is None else ()
    return make_tree([runs[run_index] for run_index in order], units, trees, metric)


def _make_unit_board(
    runs: Sequence[Run],
    tasks: tuple[BoardTask, ...],
    metric: str | None,
    split: bool,
    tasks_are: TasksAre,
) -> Board:
    """Build the board of the tasks that share one unit.

    Args:
        runs: the runs.
        tasks: the columns.
        metric: as in `make_board`.
        split: whether there are tasks with another unit.
        tasks_are: as in `make_board`.
    """
    mixed = len(tasks) > 1 and not tasks[0].bounded
    # Runs with a score on every task, in an order that does not depend on that of the arguments.
    cells = {id(run): _collect_cells(run, tasks, metric) for run in runs}
    complete = [
        run
        for run in runs
        if len(tasks) == sum(map(_has_score, cells[id(run)].values()))
    ]
    complete.sort(key=lambda run: (run.id, run.label, run.data["started"]))
    task_matrices: list[Matrix] = []
    if complete and not mixed:
        task_matrices = matrices(
            complete,
            {
                task.name: [cells[id(run)][task.name] for run in complete]
                for task in tasks
            },
        )
    places = {id(run): row for row, run in enumerate(complete)} if task_matrices else {}
    node = overall_node(runs, [task.name for task in tasks])
    many = node or len(task_matrices) > 1 or tasks_are == "sample"
    average = (
        make_average(task_matrices, node, tasks_are) if task_matrices and many else None
    )
    if task_matrices and average is None:
        average = Average((task_matrices[0],)) if len(task_matrices) == 1 else None
    ranking = None
    if len(complete) > 1 and average:
        ranking = rank(average.samples, weights=average.weights, tasks_are=tasks_are)
    together = _simultaneous_scores(average)
    inner = (
        {}
        if metric
        else {
            group_node.name: group_node
            for group_node in distinct(outer_first(common_trees(runs)))
            if group_node != node
        }
    )
    factual = metric is None and tasks[0].bounded and is_factual(runs)
    differing_roles = differing_roles_of(runs)
    rows = []
    for run_index, run in enumerate(runs):
        position = places.get(id(run))
        row = make_row(
            run,
            tasks,
            cells[id(run)],
            run_index,
            factual_shares(run) if factual else {},
        )
        run_groups = {group.name: group for group in run.groups}
        row = replace(
            row,
            other_judge=not differing_roles.isdisjoint(scoring_roles(run)),
            groups={
                name: run_groups[name].metrics[0]
                for name in inner
                if run_groups[name].metrics
            },
        )
        if position is not None and average is not None:
            row = replace(
                row,
                overall=_overall_score(average, row, position),
                ranks=ranking.ranks[position] if ranking else (1, 1),
                own_ranks=ranking.own_ranks[position] if ranking else (1, 1),
                letters=ranking.letters[position]
                if ranking and ranking.letters
                else "",
                together=together[position] if together else None,
            )
        rows.append(row)
    rows.sort(
        key=lambda row: (
            row.ranks is None and not mixed,
            _sort_key(row, tasks[0]),
            row.label,
            row.run,
        )
    )
    labels = called(runs)
    label_of = dict(zip(map(id, runs), labels, strict=True))
    names = [label_of[id(run)] for run in complete]
    isolated_runs = (
        [(names[position], ranking.common(position)) for position in ranking.isolated]
        if ranking
        else []
    )
    tree_notes = [
        *missing_notes(runs, labels, [*inner, *([node.name] if node else [])])
    ]
    if node and (lacks := [task.name for task in tasks if task.name not in node.tasks]):
        tree_notes.append(
            f"The tree '{node.name}' lacks {listed(lacks, 5)}, so the overall score"
            " does not count it."
        )
    notes = (
        *list_notes(
            runs,
            rows,
            mixed,
            split,
            task_matrices,
            ranking,
            isolated_runs,
            names,
            tasks_are,
        ),
        *tree_notes,
    )
    return Board(tasks, tuple(rows), notes, tuple(_find_group_columns(rows, inner)))


def _find_group_columns(
    rows: Sequence[BoardRow], inner: Iterable[str]
) -> Iterator[BoardTask]:
    for name in inner:
        if group_metrics := [row.groups[name] for row in rows if name in row.groups]:
            group_metrics = [
                metric
                for metric in group_metrics
                if not math.isnan(metric.estimate.value)
            ] or group_metrics
            bounded = {metric.kind for metric in group_metrics} <= BOUNDED
            yield BoardTask(
                name, group_metrics[0].label, bounded, group_metrics[0].less_is_better
            )


def _find_columns(runs: Sequence[Run], metric: str | None) -> tuple[BoardTask, ...]:
    columns: dict[str, BoardTask] = {}
    for run in runs:
        for task in run.tasks:
            metric_result = task.metric(metric)
            if metric_result is None:
                continue
            column = BoardTask(
                task.name,
                metric_result.label,
                metric_result.kind in BOUNDED,
                metric_result.less_is_better,
            )
            if (first := columns.setdefault(task.name, column)) != column:
                how = f"different metrics ({first.metric} and {column.metric})"
                if first.metric == column.metric:
                    how = (
                        f"'{first.metric}', but it is not the same number in all, as"
                        " where --scoring was published in one and corrected in"
                        " another"
                    )
                raise RunError(
                    f"The runs show '{task.name}' by {how}, so they cannot be on one"
                    " board. Score one of them again with `evalwright score`."
                )
    if not columns and metric is not None:
        raise unknown_metric(metric, [task for run in runs for task in run.tasks])
    if not columns:
        raise RunError("None of these runs has a metric to show.")
    return tuple(columns.values())


def _collect_cells(
    run: Run, tasks: Sequence[BoardTask], metric: str | None
) -> dict[str, MetricResult]:
    """Collect a run's scores on the tasks of the board, by task."""
    names = {task.name for task in tasks}
    cells = {task.name: task.metric(metric) for task in run.tasks if task.name in names}
    return {name: cell for name, cell in cells.items() if cell is not None}


def _has_score(metric: MetricResult) -> bool:
    return not math.isnan(metric.estimate.value)


def _overall_score(average: Average, row: BoardRow, row_index: int) -> Estimate:
    """The weighted mean of a run's own metrics, with the covariance of tasks that share units."""
    if any(matrix.measure.task not in row.cells for matrix in average.samples):
        return average.mean(row_index)
    return average.mean(
        row_index,
        estimates=[
            row.cells[matrix.measure.task].estimate for matrix in average.samples
        ],
    )


def _sort_key(row: BoardRow, first: BoardTask) -> float:
    """The sort key of a row, lowest for the best.

    It is the overall score, else that of the first task.
    """
    estimate = row.overall or (
        row.cells[first.name].estimate if first.name in row.cells else None
    )
    if estimate is None or math.isnan(estimate.value):
        return math.inf
    return estimate.value if first.lower_is_better else -estimate.value


def _simultaneous_scores(average: Average | None) -> list[Estimate]:
    """Compute each run's headline score with an interval that holds for all runs at once.

    The level is adjusted by Bonferroni over the runs.
    """
    task_matrices = average.samples if average else ()
    if average is None or len(task_matrices[0].values) < 2:
        return []
    first = task_matrices[0]
    if len(task_matrices) == 1:
        span = first.measure.value_range
        estimates = simultaneous_means(first.values, first.clusters, value_range=span)
        return [
            _limit_to_metric(estimate, first, row)
            for row, estimate in enumerate(estimates)
        ]
    runs = len(first.values)
    level = 1 - 0.05 / runs
    return [average.mean(row, level) for row in range(runs)]


def _limit_to_metric(estimate: Estimate, matrix: Matrix, row: int) -> Estimate:
    """Restate an estimate from pseudo-values in items, and limit it to the metric's range."""
    if not matrix.estimates:
        return estimate
    low = estimate.low
    high = estimate.high
    # chance-normalised values may be below 0
    if matrix.measure.kind in BOUNDED - {"chance-normalised"}:
        low = max(0.0, low)
        high = min(1.0, high)
    return replace(estimate, n=matrix.estimates[row].n, low=low, high=high)
