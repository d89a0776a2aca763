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
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evalwright.analysis.comparison import caveats, unknown_metric
from evalwright.analysis.differing import describe_task_differences
from evalwright.analysis.factual import factual_shares, hardware_of, is_factual
from evalwright.analysis.judges_used import differing_roles_of, scoring_roles
from evalwright.analysis.pairs import note_other_questions_by_pair, pairing_notes
from evalwright.analysis.ranking import Ranking, rank
from evalwright.analysis.ratings import Ratings, make_ratings
from evalwright.analysis.robustness import how_to_fill
from evalwright.analysis.trees import (
    Average,
    common_trees,
    make_average,
    outer_first,
    overall_node,
)
from evalwright.analysis.words import (
    count,
    counted,
    listed,
    merge_remarks,
    plural,
    warn_few_clusters,
)
from evalwright.core.errors import RunError
from evalwright.core.plain import plain, plain_fields
from evalwright.core.shown import Shown
from evalwright.metrics.registry import BOUNDED, RATES_OF_ALL, RATES_OF_ALL_NOTE
from evalwright.metrics.tree import distinct
from evalwright.runs.accepted_failures import accepts_failures, missing_samples
from evalwright.runs.confirmed import confirm_all, published_from, published_notes
from evalwright.runs.measures import Matrix, common_counts, group_notes, matrices
from evalwright.runs.reader import Run, called, check_named_once
from evalwright.runs.results import MetricResult, model_faults
from evalwright.runs.simulations import refuse_shards
from evalwright.runs.stopping import early_notes
from evalwright.statistics import Estimate, simultaneous_means
from evalwright.statistics.macro import TasksAre
from evalwright.statistics.tipping import MAX_MISSING_SHARE

SPLIT_NOTE = (
    "The tasks have different units or directions, so each unit has a table of its own,"
    " and there is no overall score."
)
RANK_NOTE = (
    "A rank is a range: the best and the worst rank that the model can have."
    " All ranges hold simultaneously at 95% confidence (paired differences,"
    " Holm-adjusted over all pairs); models whose ranges do not overlap are"
    " significantly different."
)
UNRANKED_NOTE = "Models without a rank have no score on at least one of the tasks."
TIED_NOTE = "Models that share a letter are tied: the data cannot separate them."
SIMULTANEOUS_NOTE = (
    "A score's interval is its own; the simultaneous ones hold for all models at once."
)


@dataclass(frozen=True, slots=True)
class BoardTask:
    """A column: a task with the metric shown.

    Args:
        name: the task's name.
        metric: the metric's label.
        bounded: whether scores are between 0 and 1 and are shown in percentage points.
        lower_is_better: whether lower values are better.
    """

    name: str
    metric: str
    bounded: bool
    lower_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A run on the board.

    Args:
        run: the run's id.
        label: the model's label.
        model: the model's name.
        date: the day the run started.
        ranks: best and worst rank, simultaneously valid for all runs; None if the run lacks a task.
        own_ranks: best and worst rank if only this run had been chosen beforehand.
        letters: runs that share a letter cannot be separated.
        overall: the mean over tasks, by the tree that the runs have in common.
        groups: the numbers of the tree's other nodes, if any.
        together: the interval of the headline score that holds simultaneously for all runs.
        cells: the metric shown in each column, by task.
        n: scored items of `n_asked`, over all tasks of the board.
        n_asked: number of items requested.
        n_missing: how many of the items are missing.
        n_unsure: how many have an unsure score.
        n_not_asked: further items that a budget or a stopping rule left out.
        provisional: whether more than 5% of the answers are missing.
        other_judge: whether a judge scored answers of it, and another judge those of another run.
        cost: US dollars that the answers cost; None if unknown.
        outcomes: number of answers by outcome.
        faults: the model's own faults, by kind.
        metrics: all metrics by task, for reports that show more than the cells.
        run_index: the run's position among the runs that were passed in.
        shares: accuracy and the outcome of stress questions, if all runs are factual.
        hardware: the run's name for its machine.
        prompt: name and SHA-256 of the prompt in place of the tasks' own, where there is one.
    """

    run: str
    label: str
    model: str
    date: str
    ranks: tuple[int, int] | None = None
    own_ranks: tuple[int, int] | None = None
    letters: str = ""
    overall: Estimate | None = None
    groups: Mapping[str, MetricResult] = field(default_factory=dict)
    together: Estimate | None = None
    cells: Mapping[str, MetricResult]
    n: int
    n_asked: int
    n_missing: int
    n_unsure: int = 0
    n_not_asked: int = 0
    provisional: bool = False
    other_judge: bool = False
    cost: float | None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, tuple[MetricResult, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    run_index: int = field(default=0, compare=False, repr=False)
    shares: Mapping[str, Estimate] = field(
        default_factory=dict, compare=False, repr=False
    )
    hardware: str = ""
    prompt: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        optional = (
            "shares",
            "hardware",
            "prompt",
            "outcomes",
            "faults",
            "groups",
            "n_not_asked",
            "provisional",
            "other_judge",
        )
        left_out = (
            "metrics",
            "run_index",
            *(name for name in optional if not getattr(self, name)),
        )
        fields = plain_fields(self, left_out).items()
        return {
            ("tasks" if name == "cells" else name): content for name, content in fields
        }


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
    """

    tasks: tuple[BoardTask, ...]
    rows: tuple[BoardRow, ...]
    notes: tuple[str, ...]
    groups: tuple[BoardTask, ...] = ()
    more: tuple[Board, ...] = ()
    ratings: Ratings | None = None
    numbers_from: Mapping[str, str] = field(default_factory=dict)

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
    return replace(
        first,
        more=tuple(further),
        ratings=rated,
        notes=(*first.notes, *published_notes(runs)),
        numbers_from=published_from(runs),
    )


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
        row = _make_row(
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
    missing_notes = [
        *_missing_notes(runs, labels, [*inner, *([node.name] if node else [])])
    ]
    if node and (lacks := [task.name for task in tasks if task.name not in node.tasks]):
        missing_notes.append(
            f"The tree '{node.name}' lacks {listed(lacks, 5)}, so the overall score"
            " does not count it."
        )
    notes = (
        *_list_notes(
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
        *missing_notes,
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


def _missing_notes(
    runs: Sequence[Run], labels: Sequence[str], nodes: Sequence[str]
) -> Iterator[str]:
    """Write a sentence for each node of the tree that lacks tasks in some runs."""
    for name in nodes:
        labels_by_coverage: dict[str, list[str]] = {}
        for run, label in zip(runs, labels, strict=True):
            for group in run.groups:
                if group.name == name and group.missing:
                    labels_by_coverage.setdefault(group.coverage, []).append(label)
        for coverage, lacking in labels_by_coverage.items():
            yield f"'{name}' has {coverage} ({listed(lacking, 5)})."


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


def _make_row(
    run: Run,
    tasks: Sequence[BoardTask],
    cells: Mapping[str, MetricResult],
    run_index: int,
    shares: Mapping[str, Estimate],
) -> BoardRow:
    """Build a run's row, without its rank."""
    estimates = [cells[task.name].estimate for task in tasks if task.name in cells]
    return BoardRow(
        run=run.id,
        label=run.label,
        model=run.shown_model,
        date=str(run.data["started"])[:10],
        cells=cells,
        n=sum(estimate.n for estimate in estimates),
        n_asked=sum(task.n_samples for task in run.tasks if task.name in cells),
        n_missing=sum(estimate.n_missing for estimate in estimates),
        n_unsure=sum(estimate.n_unsure for estimate in estimates),
        n_not_asked=sum(_count_not_asked(run, name) for name in cells),
        provisional=_lacks_many_answers(run, cells),
        cost=run.cost,
        outcomes=dict(
            sum((Counter(task.outcomes) for task in run.tasks), Counter[str]())
        ),
        faults={
            str(fault): n
            for fault, n in model_faults(
                [task for task in run.tasks if task.name in cells]
            ).items()
        },
        metrics={task.name: task.metrics for task in run.tasks},
        run_index=run_index,
        shares=shares,
        hardware=hardware_of(run),
        prompt=run.prompt,
    )


def _count_not_asked(run: Run, task: str) -> int:
    """Count the items of a task that a stopping rule or a budget left out."""
    stopped = (run.data.get("stopping") or {}).get("tasks", ())
    draws = max(1, int(run.record(task).get("draws", 1)))
    return sum(
        (record["of"] - record["asked"]) // draws
        for record in stopped
        if record["task"] == task
    )


def _lacks_many_answers(run: Run, cells: Mapping[str, MetricResult]) -> bool:
    """Tell whether too many answers are missing for a final number, averaged over tasks.

    The share is of all requested items: items that the column's scorer does not score are not
    missing.
    """
    shares = [
        cells[task.name].estimate.n_missing / task.n_samples
        for task in run.tasks
        if task.name in cells and task.n_samples
    ]
    return bool(shares) and sum(shares) / len(shares) > MAX_MISSING_SHARE


def _spread_over_runs(counts: Sequence[int]) -> str:
    """How a total is spread over the runs, in brackets; "" for a single run."""
    low = min(counts)
    high = max(counts)
    if len(counts) == 1:
        return ""
    if low == high:
        return f" ({high:,} in each run)"
    if len(counts) == 2:
        return f" ({counts[0]:,} and {counts[1]:,})"
    return f" (from {low:,} to {high:,} a run)"


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


def _list_notes(
    runs: Sequence[Run],
    rows: Sequence[BoardRow],
    mixed: bool,
    split: bool,
    task_matrices: Sequence[Matrix],
    ranking: Ranking | None,
    isolated_runs: Sequence[tuple[str, bool]],
    names: Sequence[str],
    tasks_are: TasksAre,
) -> Iterator[str]:
    """Write the notes of a board, a sentence each.

    Args:
        runs: the runs.
        rows: their rows.
        mixed: whether the tasks have metrics that cannot be averaged.
        split: whether there are tasks with another unit.
        task_matrices: the item scores of the ranked runs.
        ranking: their ranking, if any.
        isolated_runs: the names of runs that cannot be compared with any other, and whether each
            shares items with one.
        names: the runs of `task_matrices`.
        tasks_are: as in `make_board`.
    """
    yield (
        "Intervals are 95%. Scores generalise to items drawn like these, not only to"
        " these items."
    )
    if tasks_are == "sample":
        yield (
            "Overall scores and ranks generalise to tasks like these: the spread"
            " between the tasks counts, not only that of items."
        )
    unsure_counts = [row.n_unsure for row in rows]
    if sum(unsure_counts):
        answers = counted(sum(unsure_counts), "unsure answer")
        yield (
            f"{answers}{_spread_over_runs(unsure_counts)}: scored, but a careful reader might score"
            f" {plural(sum(unsure_counts), 'it', 'them')} otherwise. `evalwright runs samples"
            " RUN --unsure` lists them; a judge can read them (`evalwright score RUN"
            " --judge provider/name`)."
        )
    if split:
        yield SPLIT_NOTE
    if mixed:
        yield (
            "Scores in this unit are not averaged over tasks, so there is no overall"
            " score and no rank."
        )
    elif ranking is not None:
        yield from _ranking_notes(ranking, rows, task_matrices, isolated_runs, names)

    few = []
    for task in dict.fromkeys(name for row in rows for name in row.cells):
        cells = [
            row.cells[task].estimate.effective_clusters
            for row in rows
            if task in row.cells
        ]
        few.append(
            (f"'{task}'", warn_few_clusters(min(filter(None, cells), default=None)))
        )
    yield from (f"On {tasks} {note}" for tasks, note in merge_remarks(few) if note)
    shown_tasks = {name for row in rows for name in row.cells}
    yield from _differing_notes(runs, called(runs), shown_tasks)
    yield from _order_notes(rows)
    yield from early_notes(runs)
    if any(row.shares for row in rows):
        yield (
            "Hallucinated and 'refused or corrected' are shares of the stress questions,"
            " which have no answer: refusing or correcting is right."
        )
        if any(row.overall for row in rows):
            yield (
                "Accuracy is over the questions that have an answer; the overall score is the"
                " mean over all tasks, those with stress questions included."
            )
    if any(row.n_missing for row in rows):
        ranked = (
            "; ranks come from the items that two models both have"
            if ranking is not None
            else ""
        )
        yield f"Missing answers are left out and counted{ranked}."
        shown_metrics = [
            metric for row in rows for task in row.cells for metric in row.metrics[task]
        ]
        if any(
            metric.kind in RATES_OF_ALL and metric.estimate.n_missing
            for metric in shown_metrics
        ):
            yield RATES_OF_ALL_NOTE
    yield from _given_up_notes(runs, called(runs))
    if unanswered := [row.label for row in rows if row.provisional and not row.n]:
        yield f"All answers of {listed(unanswered)} are missing. {how_to_fill(runs)}"
    if provisional := [
        f"{row.label} ({_missing_percent(row)})"
        for row in rows
        if row.provisional and row.n
    ]:
        their = (
            "their scores and ranks are"
            if len(provisional) > 1
            else "its score and rank are"
        )
        yield (
            f"More than 5% of the answers of {listed(provisional)} are missing, so"
            f" {their} provisional (marked *). {how_to_fill(runs)}"
        )
    yield from _not_asked_notes(runs, rows)
    n_silent = [(row.label, row.n_asked - row.n - row.n_missing) for row in rows]
    silent = [f"{label}: {count(n)}" for label, n in n_silent if n > 0]
    if silent:
        yield (
            "Answers to which the scorer of the column gives no score:"
            f" {listed(silent, 8)}."
        )
    yield from caveats(runs, task_matrices)
    if any(row.ranks is None for row in rows) and not mixed:
        yield UNRANKED_NOTE


def _ranking_notes(
    ranking: Ranking,
    rows: Sequence[BoardRow],
    task_matrices: Sequence[Matrix],
    isolated_runs: Sequence[tuple[str, bool]],
    names: Sequence[str],
) -> Iterator[str]:
    """Write notes on how to read the ranks; arguments as of `_list_notes`."""
    yield RANK_NOTE
    if ranking.letters and any(
        row.ranks and row.ranks[0] != row.ranks[1] for row in rows
    ):
        yield TIED_NOTE
    if any(row.together for row in rows):
        yield SIMULTANEOUS_NOTE
    for common in (False, True):
        if not (some := [name for name, has in isolated_runs if has == common]):
            continue
        them = "it" if len(some) == 1 else "them"
        reason = "No other model has enough items in common with {}"
        if common:
            reason = (
                "The differences of {} from the others have no interval (they are"
                " all alike, and the range of a score is not known)"
            )
        yield (
            f"{reason.format(listed(some))}: every rank is possible for {them},"
            " whatever the score."
        )
    yield from _common_notes(task_matrices)
    for matrix in task_matrices:
        yield from filter(
            None,
            (
                note_other_questions_by_pair(matrix, names),
                *pairing_notes(matrix, names),
            ),
        )


def _given_up_notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """Say how many samples were given up by model, for runs that accept a share of failures."""
    by_model = []
    for run, label in zip(runs, labels, strict=True):
        if not accepts_failures(run):
            continue
        missing = missing_samples(run)
        ids = dict.fromkeys(name for task in missing for name in task.ids)
        too_many = (
            "" if all(task.is_accepted for task in missing) else ", more than accepted"
        )
        which = f" ({listed(list(ids), 5)}{too_many})" if ids else ""
        by_model.append(f"{label} {sum(len(task.ids) for task in missing):,}{which}")
    if by_model:
        limits = [
            str(run.data["configuration"].get("accept_failures") or "") for run in runs
        ]
        accepted = listed(list(dict.fromkeys(filter(None, limits))))
        how = f", where up to {accepted} of a task are accepted" if accepted else ""
        yield f"Samples given up after their requests failed{how}: {'; '.join(by_model)}."


def _missing_percent(row: BoardRow) -> str:
    return f"{100 * row.n_missing / max(1, row.n_asked):.1f}%"


def _not_asked_notes(runs: Sequence[Run], rows: Sequence[BoardRow]) -> Iterator[str]:
    """Say which runs used only part of the items because of a limit."""
    limits = {run.id: run.data["configuration"].get("limit") for run in runs}
    limited = [
        f"{row.label} ({limits[row.run]:g})"
        for row in rows
        if limits.get(row.run) is not None
    ]
    if limited:
        yield f"Limited to part of the items (--limit): {listed(limited, 8)}."


def _common_notes(task_matrices: Sequence[Matrix]) -> Iterator[str]:
    """Write notes on the items that pairs of runs share, and on jackknifed metrics."""
    without = (
        "are compared as independent samples"
        if len(task_matrices) == 1
        else "cannot be separated"
    )
    remarks = [
        (f"'{matrix.measure.task}'", note)
        for matrix in task_matrices
        for note in group_notes(matrix)
    ]
    yield from (f"On {tasks} {note}" for tasks, note in merge_remarks(remarks))
    for matrix in task_matrices:
        counts = common_counts(matrix)
        n_scored = np.diag(counts)
        few = (counts > 0) & (
            2 * counts < np.maximum(n_scored[:, None], n_scored[None, :])
        )
        for pairs, problem in (
            (few, "under half of the items in common, and can hardly be separated"),
            (counts == 0, f"no item in common, and {without}"),
        ):
            if number := int(np.triu(pairs, 1).sum()):
                have = counted(number, "pair of models has", "pairs of models have")
                yield f"On '{matrix.measure.task}' {have} {problem}."


def _order_notes(rows: Sequence[BoardRow]) -> Iterator[str]:
    """Write a note on rows whose position contradicts their ranks.

    Either the position is none of the possible ranks, or a row further down has a better rank.
    """
    ranked = [row for row in rows if row.ranks]
    odd = []
    best = (0, 0)
    for position, row in enumerate(ranked, 1):
        assert row.ranks is not None
        low, high = row.ranks
        if not low <= position <= high or low < best[0] or high < best[1]:
            odd.append(f"{row.label} (row {position}, rank {low} to {high})")
        best = max(best[0], low), max(best[1], high)
    if odd:
        yield (
            "Rows are ordered by their scores, each over the items that the model"
            " answered; ranks follow from differences on the items that two models"
            f" both answered. So order and rank disagree for {listed(odd, 5)}: trust"
            " the rank."
        )


def _differing_notes(
    runs: Sequence[Run], labels: Sequence[str], shown_tasks: Collection[str]
) -> Iterator[str]:
    """Write what differed between the runs, by task, and which models scored answers."""
    task_names = dict.fromkeys(
        task["name"]
        for run in runs
        for task in run.data["tasks"]
        if task["name"] in shown_tasks
    )
    differences = (
        (f"'{name}'", describe_task_differences(runs, labels, name))
        for name in task_names
    )
    for tasks, difference in merge_remarks(
        (name, difference) for name, difference in differences if difference
    ):
        yield f"The runs were not all given the same on {tasks}: {difference}."
    yield from _judge_notes(runs, labels)


def _judge_notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """Name the models that scored answers; where they differ, the runs of each."""
    labels_by_role: dict[str, dict[tuple[str, str], list[str]]] = {}
    for run, label in zip(runs, labels, strict=True):
        for role, model in scoring_roles(run).items():
            labels_by_role.setdefault(role, {}).setdefault(model, []).append(label)
    for role, labels_by_model in labels_by_role.items():
        if len(labels_by_model) == 1:
            ((_, name),) = labels_by_model
            yield f"Scored with {name} in the role '{role}'."
            continue
        of_each = [
            f"{name} for {listed(scored, 5)}"
            for (_, name), scored in labels_by_model.items()
        ]
        yield (
            f"Different models played the role '{role}' ({'; '.join(of_each)}): scores"
            " that they gave are not comparable, and neither are the ranks marked †. Score"
            " all alike: `evalwright score RUN --judge provider/name`."
        )
