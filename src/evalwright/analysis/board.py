"""A leaderboard as data: a row per run, a column per task, every number with its interval, and
ranks as ranges.

Ranks are sets (Mogstad, Romano, Shaikh & Wilhelm 2024): a run's best rank is one more than the
number of runs that are significantly better, its worst leaves out those that are significantly
worse, by Holm's adjusted p over all pairs of the board, each on the items that both have a score
for. With several tasks it is that of the mean over tasks. Runs without a score on a task stand
below, without a rank. Missing answers are left out and counted; above 5% of them a run's numbers
are provisional.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evalwright.analysis.comparison import caveats, unknown_metric
from evalwright.analysis.differing import differing_task
from evalwright.analysis.factual import factual_shares, hardware_of, is_factual
from evalwright.analysis.pairs import other_questions_by_pair, pairing_notes
from evalwright.analysis.ranking import Ranking, rank
from evalwright.analysis.ratings import Ratings, make_ratings
from evalwright.analysis.robustness import how_to_fill
from evalwright.analysis.trees import (
    Average,
    average_of,
    common_trees,
    outer_first,
    overall_node,
)
from evalwright.analysis.words import (
    count,
    counted,
    few_clusters,
    listed,
    plural,
    said_once,
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

TIED_NOTE = "Models that share a letter are tied: the data cannot separate them."
SIMULTANEOUS_NOTE = (
    "A score's interval is its own; the simultaneous ones hold for all models at once."
)


@dataclass(frozen=True, slots=True)
class BoardTask:
    """A column: the task and the metric shown. bounded: between 0 and 1, shown in points of 100."""

    name: str
    metric: str
    bounded: bool
    lower_is_better: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """A run on the board.

    ranks: best and worst rank that the run can have, for all runs together; own_ranks: for this run
    alone, chosen beforehand; None where the run lacks a task. letters: runs that share one cannot
    be separated. overall: mean over tasks, by the tree that the runs have in common; groups: the
    numbers of the tree's other nodes, those that there are. together: the interval of the headline
    score that holds with those of all others. n: scored items of n_asked, over all tasks of the
    board; n_missing and n_unsure of them are missing and unsure, n_not_asked more were left out by
    a budget or a stopping rule. faults: the model's own, by kind. provisional: whether more than 5%
    are missing. metrics: all of the run's, by task, for those who show more than the cells. shares:
    of a board of factual runs, accuracy and what became of stress questions. place: that of the run
    among those that the board was made of. hardware: what the run calls its machine.
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
    cost: float | None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, tuple[MetricResult, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )
    place: int = field(default=0, compare=False, repr=False)
    shares: Mapping[str, Estimate] = field(
        default_factory=dict, compare=False, repr=False
    )
    hardware: str = ""

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        optional = (
            "shares",
            "hardware",
            "outcomes",
            "faults",
            "groups",
            "n_not_asked",
            "provisional",
        )
        left_out = (
            "metrics",
            "place",
            *(name for name in optional if not getattr(self, name)),
        )
        shown = plain_fields(self, left_out).items()
        return {("tasks" if name == "cells" else name): value for name, value in shown}


@dataclass(frozen=True, slots=True, repr=False)
class Board(Shown):
    """Rows best first. groups: inner nodes of the tree that the runs have in common, each a column.
    notes: what a reader must know, one sentence each.

    All tasks are measured in one unit and direction; more: the boards of the tasks in others.
    ratings: over all of them, where asked for. numbers_from: by run, what its numbers were made of,
    where that is not its samples.
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
        """A plain mapping for JSON."""
        tasks = [
            {
                "name": task.name,
                "metric": task.metric,
                "lower_is_better": task.lower_is_better,
            }
            for task in self.tasks
        ]
        shown = {
            "tasks": tasks,
            "groups": [one.name for one in self.groups],
            "rows": plain(self.rows),
            "notes": list(self.notes),
            "more": plain(self.more),
            "ratings": plain(self.ratings),
            "numbers_from": dict(self.numbers_from),
        }
        return {
            name: value
            for name, value in shown.items()
            if value or name in ("tasks", "rows", "notes")
        }


def make_board(
    runs: Sequence[Run],
    metric: str | None = None,
    tasks_are: TasksAre = "fixed",
    *,
    ratings: bool = False,
) -> Board:
    """The leaderboard of some runs. metric: the one that is shown, a label or TASK.LABEL; None: the
    main one of each task. tasks_are: as of `compare_runs`, for the overall score and ranks.
    ratings: whether to rate the models too.

    Raises RunError for no runs, for one that is there twice and where one task is shown by
    different metrics, and UnknownName for a metric that there is not.
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
    for task in _columns(runs, metric):
        unit = (task.bounded, task.lower_is_better, "" if task.bounded else task.metric)
        units.setdefault(unit, []).append(task)
    first, *more = (
        _board(runs, tuple(tasks), metric, len(units) > 1, tasks_are)
        for tasks in units.values()
    )
    rated = None
    if ratings:
        shown = [
            {one.name: found for one in run.tasks if (found := one.metric(metric))}
            for run in runs
        ]
        rated = make_ratings(runs, called(runs), shown)
    return replace(
        first,
        more=tuple(more),
        ratings=rated,
        notes=(*first.notes, *published_notes(runs)),
        numbers_from=published_from(runs),
    )


def _board(
    runs: Sequence[Run],
    tasks: tuple[BoardTask, ...],
    metric: str | None,
    split: bool,
    tasks_are: TasksAre,
) -> Board:
    """The board of tasks in one unit. split: whether there are others in another."""
    mixed = len(tasks) > 1 and not tasks[0].bounded
    # Those with a score on every task. The resample goes by the order of the runs, and the board
    # must not.
    cells = {id(run): _cells(run, tasks, metric) for run in runs}
    complete = [
        run for run in runs if len(tasks) == sum(map(_scored, cells[id(run)].values()))
    ]
    complete.sort(key=lambda run: (run.id, run.label, run.data["started"]))
    found: list[Matrix] = []
    if complete and not mixed:
        found = matrices(
            complete,
            {
                task.name: [cells[id(run)][task.name] for run in complete]
                for task in tasks
            },
        )
    places = {id(run): place for place, run in enumerate(complete)} if found else {}
    node = overall_node(runs, [task.name for task in tasks])
    many = node or len(found) > 1 or tasks_are == "sample"
    whole = average_of(found, node, tasks_are) if found and many else None
    if found and whole is None:
        whole = Average((found[0],)) if len(found) == 1 else None
    made = None
    if len(complete) > 1 and whole:
        made = rank(whole.samples, weights=whole.weights, tasks_are=tasks_are)
    together = _together(whole)
    inner = (
        {}
        if metric
        else {
            one.name: one
            for one in distinct(outer_first(common_trees(runs)))
            if one != node
        }
    )
    factual = metric is None and tasks[0].bounded and is_factual(runs)
    rows = []
    for given, run in enumerate(runs):
        place = places.get(id(run))
        row = _row(
            run, tasks, cells[id(run)], given, factual_shares(run) if factual else {}
        )
        own = {group.name: group for group in run.groups}
        row = replace(
            row,
            groups={name: own[name].metrics[0] for name in inner if own[name].metrics},
        )
        if place is not None and whole is not None:
            row = replace(
                row,
                overall=_overall(whole, row, place),
                ranks=made.ranks[place] if made else (1, 1),
                own_ranks=made.own_ranks[place] if made else (1, 1),
                letters=made.letters[place] if made and made.letters else "",
                together=together[place] if together else None,
            )
        rows.append(row)
    rows.sort(
        key=lambda row: (
            row.ranks is None and not mixed,
            _order(row, tasks[0]),
            row.label,
            row.run,
        )
    )
    labels = called(runs)
    label_of = dict(zip(map(id, runs), labels, strict=True))
    names = [label_of[id(run)] for run in complete]
    alone = [(names[place], made.common(place)) for place in made.alone] if made else []
    lost = [*_missing_notes(runs, labels, [*inner, *([node.name] if node else [])])]
    if node and (lacks := [task.name for task in tasks if task.name not in node.tasks]):
        lost.append(
            f"The tree '{node.name}' lacks {listed(lacks, 5)}, so the overall score"
            " does not count it."
        )
    notes = (
        *_notes(runs, rows, mixed, split, found, made, alone, names, tasks_are),
        *lost,
    )
    return Board(tasks, tuple(rows), notes, tuple(_group_columns(rows, inner)))


def _group_columns(
    rows: Sequence[BoardRow], inner: Iterable[str]
) -> Iterator[BoardTask]:
    for name in inner:
        if found := [row.groups[name] for row in rows if name in row.groups]:
            found = [
                one for one in found if not math.isnan(one.estimate.value)
            ] or found
            bounded = {one.kind for one in found} <= BOUNDED
            yield BoardTask(name, found[0].label, bounded, found[0].less_is_better)


def _missing_notes(
    runs: Sequence[Run], labels: Sequence[str], nodes: Sequence[str]
) -> Iterator[str]:
    """What the tree's nodes lack. labels: the names of the runs."""
    for name in nodes:
        found: dict[str, list[str]] = {}
        for run, label in zip(runs, labels, strict=True):
            for group in run.groups:
                if group.name == name and group.missing:
                    found.setdefault(group.coverage, []).append(label)
        for coverage, own in found.items():
            yield f"'{name}' has {coverage} ({listed(own, 5)})."


def _columns(runs: Sequence[Run], metric: str | None) -> tuple[BoardTask, ...]:
    found: dict[str, BoardTask] = {}
    for run in runs:
        for task in run.tasks:
            shown = task.metric(metric)
            if shown is None:
                continue
            column = BoardTask(
                task.name, shown.label, shown.kind in BOUNDED, shown.less_is_better
            )
            if (first := found.setdefault(task.name, column)) != column:
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
    if not found and metric is not None:
        raise unknown_metric(metric, [task for run in runs for task in run.tasks])
    if not found:
        raise RunError("None of these runs has a metric to show.")
    return tuple(found.values())


def _cells(
    run: Run, tasks: Sequence[BoardTask], metric: str | None
) -> dict[str, MetricResult]:
    """A run's scores on the tasks of the board."""
    names = {task.name for task in tasks}
    return {
        one.name: shown
        for one in run.tasks
        if one.name in names and (shown := one.metric(metric))
    }


def _scored(found: MetricResult) -> bool:
    return not math.isnan(found.estimate.value)


def _overall(whole: Average, row: BoardRow, place: int) -> Estimate:
    """The average of a run's own metrics, with the covariance of tasks that share units."""
    if any(one.measure.task not in row.cells for one in whole.samples):
        return whole.mean(place)
    return whole.mean(
        place, own=[row.cells[one.measure.task].estimate for one in whole.samples]
    )


def _row(
    run: Run,
    tasks: Sequence[BoardTask],
    cells: Mapping[str, MetricResult],
    place: int,
    shares: Mapping[str, Estimate],
) -> BoardRow:
    """A run's row, not yet ranked."""
    estimates = [cells[task.name].estimate for task in tasks if task.name in cells]
    return BoardRow(
        run=run.id,
        label=run.label,
        model=run.model,
        date=str(run.data["started"])[:10],
        cells=cells,
        n=sum(part.n for part in estimates),
        n_asked=sum(task.n_samples for task in run.tasks if task.name in cells),
        n_missing=sum(part.n_missing for part in estimates),
        n_unsure=sum(part.n_unsure for part in estimates),
        n_not_asked=sum(_count_not_asked(run, name) for name in cells),
        provisional=_lacks_many(run, cells),
        cost=run.cost,
        outcomes=dict(
            sum((Counter(task.outcomes) for task in run.tasks), Counter[str]())
        ),
        faults={
            str(kind): n
            for kind, n in model_faults(
                [task for task in run.tasks if task.name in cells]
            ).items()
        },
        metrics={task.name: task.metrics for task in run.tasks},
        place=place,
        shares=shares,
        hardware=hardware_of(run),
    )


def _count_not_asked(run: Run, task: str) -> int:
    """Items of a task that a stopping rule or a budget left out."""
    parts = (run.data.get("stopping") or {}).get("tasks", ())
    draws = max(1, int(run.record(task).get("draws", 1)))
    return sum(
        (part["of"] - part["asked"]) // draws for part in parts if part["task"] == task
    )


def _lacks_many(run: Run, cells: Mapping[str, MetricResult]) -> bool:
    """Whether more answers are missing than a final number may lack, as a mean over tasks counts
    them.

    The share is of all that were asked: items to which the column's scorer gives no score are not
    missing.
    """
    shares = [
        cells[task.name].estimate.n_missing / task.n_samples
        for task in run.tasks
        if task.name in cells and task.n_samples
    ]
    return bool(shares) and sum(shares) / len(shares) > MAX_MISSING_SHARE


def _order(row: BoardRow, first: BoardTask) -> float:
    """What rows are sorted by, the best least: the overall score, else that of the first task."""
    estimate = row.overall or (
        row.cells[first.name].estimate if first.name in row.cells else None
    )
    if estimate is None or math.isnan(estimate.value):
        return math.inf
    return estimate.value if first.lower_is_better else -estimate.value


def _together(whole: Average | None) -> list[Estimate]:
    """Each run's headline score with the interval that holds with those of all others.

    On one task by the largest deviation of one resample; over several by Bonferroni over the runs.
    """
    found = whole.samples if whole else ()
    if whole is None or len(found[0].values) < 2:
        return []
    first = found[0]
    if len(found) == 1:
        span = first.measure.value_range
        own = simultaneous_means(first.values, first.clusters, value_range=span)
        return [_within(one, first, row) for row, one in enumerate(own)]
    runs = len(first.values)
    level = 1 - 0.05 / runs
    return [whole.mean(row, level) for row in range(runs)]


def _within(estimate: Estimate, found: Matrix, row: int) -> Estimate:
    """The estimate of pseudo-values as that of the metric: it rests on items, and stays in the
    range that the metric has.
    """
    if not found.estimates:
        return estimate
    low = estimate.low
    high = estimate.high
    # less than what guessing gives is below 0
    if found.measure.kind in BOUNDED - {"chance-normalised"}:
        low = max(0.0, low)
        high = min(1.0, high)
    return replace(estimate, n=found.estimates[row].n, low=low, high=high)


def _notes(
    runs: Sequence[Run],
    rows: Sequence[BoardRow],
    mixed: bool,
    split: bool,
    found: Sequence[Matrix],
    made: Ranking | None,
    alone: Sequence[tuple[str, bool]],
    names: Sequence[str],
    tasks_are: TasksAre,
) -> Iterator[str]:
    """names: of the runs of `found`, alone: of those that no other can be compared with, and
    whether they have items in common with any.
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
    unsure = [row.n_unsure for row in rows]
    if sum(unsure):
        answers = counted(sum(unsure), "unsure answer")
        low = min(unsure)
        high = max(unsure)
        each = "" if len(rows) == 1 else f" ({low:,} to {high:,} in each run)"
        if len(rows) > 1 and low == high:
            each = f" ({high:,} in each run)"
        yield (
            f"{answers}{each}: scored, but a careful reader might score"
            f" {plural(sum(unsure), 'it', 'them')} otherwise. `evalwright runs samples"
            " RUN --unsure` lists them; a judge can read them (`evalwright score RUN"
            " --judge provider/name`)."
        )
    if split:
        yield (
            "The tasks have different units or directions, so each unit has a table of"
            " its own, and there is no overall score."
        )
    if mixed:
        yield (
            "Scores in this unit are not averaged over tasks, so there is no overall"
            " score and no rank."
        )
    elif made is not None:
        yield (
            "A rank is a range: the best and the worst rank that the model can have."
            " All ranges hold simultaneously at 95% confidence (paired differences,"
            " Holm-adjusted over all pairs); models whose ranges do not overlap are"
            " significantly different."
        )
        if made.letters and any(
            row.ranks and row.ranks[0] != row.ranks[1] for row in rows
        ):
            yield TIED_NOTE
        if any(row.together for row in rows):
            yield SIMULTANEOUS_NOTE
        for common in (False, True):
            if not (some := [name for name, has in alone if has == common]):
                continue
            them = "it" if len(some) == 1 else "them"
            what = "No other model has enough items in common with {}"
            if common:
                what = (
                    "The differences of {} from the others have no interval (they are"
                    " all alike, and the range of a score is not known)"
                )
            yield (
                f"{what.format(listed(some))}: every rank is possible for {them},"
                " whatever the score."
            )
        yield from _common_notes(found)
        for one in found:
            yield from filter(
                None, (other_questions_by_pair(one, names), *pairing_notes(one, names))
            )
    few = []
    for task in dict.fromkeys(name for row in rows for name in row.cells):
        cells = [
            row.cells[task].estimate.effective_clusters
            for row in rows
            if task in row.cells
        ]
        few.append((f"'{task}'", few_clusters(min(filter(None, cells), default=None))))
    yield from (f"On {tasks} {said}" for tasks, said in said_once(few) if said)
    yield from _differing_notes(runs, called(runs))
    yield from _order_notes(rows)
    yield from early_notes(runs)
    if any(row.shares for row in rows):
        yield (
            "Hallucinated and refused are shares of the stress questions, which have no"
            " answer: refused (or corrected) is right."
        )
    if any(row.n_missing for row in rows):
        ranked = (
            "; ranks come from the items that two models both have"
            if made is not None
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
    if provisional := [
        f"{row.label} ({_missing_percent(row)})" for row in rows if row.provisional
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
    if silent := [
        f"{row.label}: {count(n_silent)}"
        for row in rows
        if (n_silent := row.n_asked - row.n - row.n_missing) > 0
    ]:
        yield (
            "Answers to which the scorer of the column gives no score:"
            f" {listed(silent, 8)}."
        )
    yield from caveats(runs, found)
    if any(row.ranks is None for row in rows) and not mixed:
        yield "Models without a rank have no score on at least one of the tasks."


def _given_up_notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """How many samples were given up, by model, where the runs were made with a share of failures
    that is accepted.
    """
    parts = []
    for run, label in zip(runs, labels, strict=True):
        if not accepts_failures(run):
            continue
        missing = missing_samples(run)
        ids = dict.fromkeys(name for task in missing for name in task.ids)
        too_many = (
            "" if all(task.is_accepted for task in missing) else ", more than accepted"
        )
        which = f" ({listed(list(ids), 5)}{too_many})" if ids else ""
        parts.append(f"{label} {sum(len(task.ids) for task in missing):,}{which}")
    if parts:
        limits = [
            str(run.data["configuration"].get("accept_failures") or "") for run in runs
        ]
        accepted = listed(list(dict.fromkeys(filter(None, limits))))
        how = f", where up to {accepted} of a task are accepted" if accepted else ""
        yield f"Samples given up after their requests failed{how}: {'; '.join(parts)}."


def _missing_percent(row: BoardRow) -> str:
    return f"{100 * row.n_missing / max(1, row.n_asked):.1f}%"


def _not_asked_notes(runs: Sequence[Run], rows: Sequence[BoardRow]) -> Iterator[str]:
    """Which runs were made of a part of the items, where no note of early ends says it."""
    limits = {run.id: run.data["configuration"].get("limit") for run in runs}
    limited = [
        f"{row.label} ({limits[row.run]:g})"
        for row in rows
        if limits.get(row.run) is not None
    ]
    if limited:
        yield f"Limited to part of the items (--limit): {listed(limited, 8)}."


def _common_notes(found: Sequence[Matrix]) -> Iterator[str]:
    """What a reader must know of the items that pairs share, and of metrics by the jackknife."""
    without = (
        "are compared as independent samples"
        if len(found) == 1
        else "cannot be separated"
    )
    remarks = [
        (f"'{one.measure.task}'", note) for one in found for note in group_notes(one)
    ]
    yield from (f"On {tasks} {note}" for tasks, note in said_once(remarks))
    for one in found:
        counts = common_counts(one)
        own = np.diag(counts)
        few = (counts > 0) & (2 * counts < np.maximum(own[:, None], own[None, :]))
        for pairs, what in (
            (few, "under half of the items in common, and can hardly be separated"),
            (counts == 0, f"no item in common, and {without}"),
        ):
            if number := int(np.triu(pairs, 1).sum()):
                have = counted(number, "pair of models has", "pairs of models have")
                yield f"On '{one.measure.task}' {have} {what}."


def _order_notes(rows: Sequence[BoardRow]) -> Iterator[str]:
    """Rows whose place in the order of the scores is none of their possible ranks, or that have a
    better rank than one above.
    """
    ranked = [row for row in rows if row.ranks]
    odd = []
    best = (0, 0)
    for place, row in enumerate(ranked, 1):
        assert row.ranks is not None
        low, high = row.ranks
        if not low <= place <= high or low < best[0] or high < best[1]:
            odd.append(f"{row.label} (row {place}, rank {low} to {high})")
        best = max(best[0], low), max(best[1], high)
    if odd:
        yield (
            "Rows are ordered by their scores, each over the items that the model"
            " answered; ranks follow from differences on the items that two models"
            f" both answered. So order and rank disagree for {listed(odd, 5)}: trust"
            " the rank."
        )


def _differing_notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """What the runs were given that was not the same for all, by task; and roles that different
    models played.
    """
    roles: dict[str, dict[str, str]] = {}
    for run in runs:
        for role, model in run.data.get("roles", {}).items():
            name = str(model.get("name", ""))
            roles.setdefault(role, {})[str(model.get("fingerprint", name))] = name
    known = dict.fromkeys(task["name"] for run in runs for task in run.data["tasks"])
    told = ((f"'{name}'", differing_task(runs, labels, name)) for name in known)
    for tasks, said in said_once((name, said) for name, said in told if said):
        yield f"The runs were not all given the same on {tasks}: {said}."
    for role, models in roles.items():
        if len(models) > 1:
            names = ", ".join(sorted(set(models.values())))
            yield (
                f"Different models played the role '{role}' ({names}): scores that they"
                " gave are not comparable."
            )
