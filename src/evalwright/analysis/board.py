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

from evalwright.analysis.board_notes import (
    SIMULTANEOUS_NOTE,
    list_notes,
    missing_notes,
    price_notes,
    weight_notes,
)
from evalwright.analysis.board_plan import (
    BoardPlan,
    UnitPlan,
    collect_cells,
    plan_board,
    rank_plan,
)
from evalwright.analysis.board_rows import BoardRow, BoardTask, make_row
from evalwright.analysis.board_tree import (
    BoardNode,
    Dimension,
    dimensions_of,
    find_in,
    reorder,
    replace_node,
)
from evalwright.analysis.comparison import unknown_metric
from evalwright.analysis.extra_columns import ExtraColumn
from evalwright.analysis.fact_filters import (
    FactFilter,
    Facts,
    cost_of,
    facts_of,
    select_by_facts,
)
from evalwright.analysis.factual import factual_shares, is_factual
from evalwright.analysis.judges_used import (
    differing_roles_of,
    scored_by_rarer_judges,
    scoring_roles,
)
from evalwright.analysis.node_ranks import NodeRanks
from evalwright.analysis.ratings import Ratings, make_ratings
from evalwright.analysis.words import listed
from evalwright.core.errors import RunError
from evalwright.core.plain import plain
from evalwright.core.shown import Shown
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.confirmed import confirm_all, published_from, published_notes
from evalwright.runs.reader import Run, called, check_named_once
from evalwright.runs.simulations import refuse_shards
from evalwright.statistics import Estimate
from evalwright.statistics.macro import TasksAre

__all__ = [
    "SIMULTANEOUS_NOTE",
    "Board",
    "BoardNode",
    "BoardRow",
    "BoardTask",
    "Dimension",
    "board_columns",
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
        preset: name of the preset by which it is shown; "" without one.
        extra_columns: columns that are no scores, in the order of the rows.
        by: metadata keys that the tree was asked to be made of.
        task_keys: metadata keys by which the tasks differ.
        judged_tree: the tree by the judge alone, if labels correct the board; else ().
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
    preset: str = ""
    extra_columns: tuple[ExtraColumn, ...] = ()
    by: tuple[str, ...] = ()
    task_keys: tuple[str, ...] = ()
    judged_tree: tuple[BoardNode, ...] = ()

    @property
    def headline(self) -> BoardNode:
        """The node by which the rows are sorted and ranked."""
        return next(node for node in find_in(self.tree) if node.id == self.rank_by)

    @property
    def is_ranked_elsewhere(self) -> bool:
        """Whether the rows are ranked by another node than the headline score."""
        return bool(self.tree) and self.rank_by != self.tree[0].id

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
            "rank_by": self.rank_by if self.is_ranked_elsewhere else "",
            "by": list(self.by),
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
    by: Sequence[str] = (),
    rank_by: str = "",
    facts: Sequence[Facts] = (),
    where: Sequence[FactFilter] = (),
    ranks_below: bool = False,
    beside: Sequence[str] = (),
    means: Mapping[str, Sequence[str]] | None = None,
    by_beside: Sequence[str] = (),
) -> Board:
    """Build the leaderboard of several runs.

    Args:
        runs: the runs.
        metric: the metric to show, a label or TASK.LABEL; None shows each task's main metric.
        tasks_are: as in `compare_runs`, for the overall score and ranks.
        ratings: whether to rate the models too.
        by: metadata keys of tasks, then of samples, that the board's tree is made of.
        rank_by: the node to sort and rank by: its id or the unique end of one, `key=value`, a task,
            or TASK.METRIC; by default the headline score.
        facts: what is known of the model of each run.
        where: which models to show, by their facts.
        ranks_below: whether to rank the models at further nodes too, as far as it is cheap.
        beside: labels of further metrics of the tasks, each a root of the tree of its own.
        means: by name, the tasks of further means, each a root too.
        by_beside: metadata keys of tasks of which one more root is made.

    Raises:
        RunError: there are no runs, one is listed twice, or a task is shown by different metrics.
        UnknownName: no run has such a metric, metadata key, node or fact.
    """
    if not runs:
        raise RunError(
            "A leaderboard needs at least one run. `evalwright runs list` shows what"
            " there is."
        )
    check_named_once(runs)
    refuse_shards(runs)
    runs = confirm_all(runs)
    facts_by_run = facts_of(runs, facts)
    where_notes: list[str] = []
    selected = list(range(len(runs)))
    if where:
        selected, where_notes = select_by_facts(runs, facts_by_run, called(runs), where)
        runs = [runs[index] for index in selected]
        facts_by_run = [facts_by_run[index] for index in selected]

    columns = board_columns(runs, metric)
    plan = plan_board(
        runs, columns, metric, tasks_are, by, rank_by, beside, means, by_beside
    )
    plan, ranks_by_unit = rank_plan(plan, ranks_below)
    boards = [
        _make_unit_board(plan, unit, ranking)
        for unit, ranking in zip(plan.units, ranks_by_unit, strict=True)
    ]
    first, *further = boards
    rated = None
    if ratings:
        shown_metrics = [collect_cells(run, columns, metric) for run in runs]
        rated = make_ratings(runs, called(runs), shown_metrics)
    order = [row.run_index for row in first.rows]
    roots = replace_node(plan.roots, _ranked_nodes(plan, boards))
    tree = tuple(reorder(root, order) for root in roots)
    further = [
        _with_tree(board, unit, roots)
        for board, unit in zip(further, plan.units[1:], strict=True)
    ]
    rows = [
        replace(
            row,
            facts=facts_by_run[row.run_index],
            cost=cost_of(runs[row.run_index], facts_by_run[row.run_index]),
        )
        for row in first.rows
    ]
    priced = [
        row.label
        for row in rows
        if row.cost is not None and runs[row.run_index].cost is None
    ]
    further = [
        replace(board, rows=_reindexed(board.rows, selected)) for board in further
    ]
    return replace(
        first,
        rows=_reindexed(rows, selected),
        notes=(
            *where_notes,
            *first.notes,
            *weight_notes(tree),
            *price_notes(priced),
            *published_notes(runs),
        ),
        more=tuple(further),
        ratings=rated,
        numbers_from=dict(sorted(published_from(runs).items())),
        tree=tree,
        dimensions=dimensions_of(tree),
        rank_by=plan.target.id,
        by=tuple(by),
        task_keys=plan.task_keys,
    )


def _reindexed(
    rows: Iterable[BoardRow], run_indices: Sequence[int]
) -> tuple[BoardRow, ...]:
    """Count the rows' runs by their positions before models were selected."""
    return tuple(replace(row, run_index=run_indices[row.run_index]) for row in rows)


def _with_tree(board: Board, unit: UnitPlan, roots: Sequence[BoardNode]) -> Board:
    """Give the board of a further unit the part of the tree that is about its tasks."""
    names = {task.name for task in unit.tasks}
    order = [row.run_index for row in board.rows]
    tree = tuple(reorder(root, order) for root in roots if {*root.tasks} <= names)
    ids = [node.id for node in find_in(tree)]
    rank_by = unit.ranked_node if unit.ranked_node in ids else "".join(ids[:1])
    return replace(board, tree=tree, rank_by=rank_by)


def _ranked_nodes(plan: BoardPlan, boards: Sequence[Board]) -> dict[str, BoardNode]:
    """Give the nodes at which the boards are ranked their ranks, by id."""
    node_by_id = {node.id: node for node in find_in(plan.roots)}
    ranked = {}
    for unit, board in zip(plan.units, boards, strict=True):
        if not unit.ranked_node or all(row.ranks is None for row in board.rows):
            continue
        rows = sorted(board.rows, key=lambda row: row.run_index)
        ranked[unit.ranked_node] = replace(
            node_by_id[unit.ranked_node],
            ranks=tuple(row.ranks for row in rows),
            letters=tuple(row.letters for row in rows),
        )
    return ranked


def _make_unit_board(
    plan: BoardPlan, unit: UnitPlan, ranking: NodeRanks | None
) -> Board:
    """Build the board of the tasks that share one unit.

    Args:
        plan: the numbers of the whole board, in the order of the runs.
        unit: the tasks, and how the runs are ranked.
        ranking: the ranks of the runs that have a number; None if there are none.
    """
    runs = plan.runs
    tasks = unit.tasks
    inner = {} if plan.metric else {node.name: node for node in plan.inner_nodes(unit)}
    factual = plan.metric is None and tasks[0].bounded and is_factual(runs)
    differing_roles = differing_roles_of(runs)
    by_rarer_judge = scored_by_rarer_judges(runs)
    scores = unit.scores
    together = scores.simultaneous() if not unit.why_unranked else []
    rows = []
    for run_index, run in enumerate(runs):
        row = make_row(
            run,
            tasks,
            unit.cells[run_index],
            run_index,
            factual_shares(run) if factual else {},
            unit.ranked_tasks,
        )
        run_groups = {group.name: group for group in run.groups}
        row = replace(
            row,
            other_judge=by_rarer_judge[run_index]
            or not differing_roles.isdisjoint(scoring_roles(run)),
            overall=unit.overall[run_index] if unit.overall else None,
            groups={
                name: run_groups[name].metrics[0]
                for name in inner
                if name in run_groups and run_groups[name].metrics
            },
        )
        position = scores.positions.get(run_index)
        if position is not None and scores.average and not unit.why_unranked:
            row = replace(
                row,
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
            row.ranks is None and not unit.is_unranked,
            _sort_key(unit.sorted_by[row.run_index], unit.lower_is_better),
            row.label,
            row.run,
        )
    )
    labels = called(runs)
    names = [labels[index] for index in scores.positions]
    isolated_runs = (
        [(names[position], ranking.common(position)) for position in ranking.isolated]
        if ranking
        else []
    )
    node = unit.node
    tree_notes = [
        *missing_notes(runs, labels, [*inner, *([node.name] if node else [])])
    ]
    outside = [task.name for task in tasks if node and task.name not in node.tasks]
    if node and outside:
        tree_notes.append(
            f"The tree '{node.name}' lacks {listed(outside, 5)}, so the overall score"
            " does not count it."
        )
    notes = (
        *unit.notes,
        *list_notes(
            runs,
            rows,
            unit.is_mixed,
            len(plan.units) > 1,
            scores.samples,
            ranking,
            isolated_runs,
            names,
            plan.tasks_are,
            bool(unit.why_unranked),
        ),
        *tree_notes,
    )
    return Board(tasks, tuple(rows), notes, tuple(_find_group_columns(rows, inner)))


def _sort_key(estimate: Estimate | None, lower_is_better: bool) -> float:
    """The sort key of a row, lowest for the best."""
    if estimate is None or math.isnan(estimate.value):
        return math.inf
    return estimate.value if lower_is_better else -estimate.value


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


def board_columns(runs: Sequence[Run], metric: str | None) -> tuple[BoardTask, ...]:
    """List the tasks of some runs with the metric that a board shows.

    Raises:
        RunError: a task is shown by different metrics, or there is none.
        UnknownName: no run has the metric.
    """
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
