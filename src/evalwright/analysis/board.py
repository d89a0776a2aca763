"""A leaderboard as data: a row per run, a column per task, every number with its interval, and ranks as ranges.

Ranks are sets (Mogstad, Romano, Shaikh & Wilhelm 2024): a run's best rank is one more than the number of runs that are
significantly better, its worst leaves out those that are significantly worse: 0 is outside the pair's simultaneous interval,
which holds for all pairs of the board together, each on the items that both answered. With several tasks it is the interval of
the mean over tasks. Runs without a score on a task stand below, without a rank.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evalwright.analysis.comparison import check_tasks_are
from evalwright.analysis.factual import factual_shares, hardware_of, is_factual
from evalwright.analysis.ranking import Ranking, rank
from evalwright.analysis.several import overall_mean
from evalwright.analysis.words import counted, listed
from evalwright.core.errors import RunError
from evalwright.core.plain import plain_fields
from evalwright.metrics.registry import BOUNDED, LOWER_IS_BETTER
from evalwright.runs.measures import UNIT_RANGE, Matrix, common_counts, matrices
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult, unscored
from evalwright.runs.stopping import early_notes
from evalwright.statistics import Estimate, macro_average, mean_interval, simultaneous_means
from evalwright.statistics.macro import TasksAre

SIMULTANEOUS_NOTE = "A score's interval is its own; the simultaneous ones hold for all models at once."


@dataclass(frozen=True, slots=True)
class BoardTask:
    """A column: the task and the metric shown. bounded: between 0 and 1, shown in points of 100."""

    name: str
    metric: str
    bounded: bool
    lower_is_better: bool


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A run on the board.

    ranks: best and worst rank that the run can have, for all runs together; own_ranks: for this run alone, chosen
    beforehand; None where the run lacks a task. letters: runs that share one cannot be separated. overall: mean over tasks.
    together: the interval of the headline score that holds with those of all others; None where it is no mean of items.
    n: scored items of n_asked, over all tasks of the board. metrics: all of the run's, by task, for those who show more than
    the cells. shares: of a board of factual runs, accuracy and what became of stress questions. place: that of the run among
    those that the board was made of. hardware: what the run calls its machine.
    """

    run: str
    label: str
    model: str
    date: str
    ranks: tuple[int, int] | None
    own_ranks: tuple[int, int] | None
    letters: str
    overall: Estimate | None
    together: Estimate | None
    cells: Mapping[str, MetricResult]
    n: int
    n_asked: int
    n_failed: int
    cost: float | None
    outcomes: Mapping[str, int] = field(default_factory=dict)
    unscored: str = ""
    metrics: Mapping[str, tuple[MetricResult, ...]] = field(default_factory=dict, compare=False, repr=False)
    place: int = field(default=0, compare=False, repr=False)
    shares: Mapping[str, Estimate] = field(default_factory=dict, compare=False, repr=False)
    hardware: str = ""

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        empty = [name for name in ("shares", "hardware", "outcomes", "unscored") if not getattr(self, name)]
        left_out = ("metrics", "place", *empty)
        shown = plain_fields(self, left_out).items()
        return {("tasks" if name == "cells" else name): value for name, value in shown}


@dataclass(frozen=True, slots=True)
class Board:
    """Rows best first. notes: what a reader must know, one sentence each."""

    tasks: tuple[BoardTask, ...]
    rows: tuple[BoardRow, ...]
    notes: tuple[str, ...]

    @property
    def has_overall(self) -> bool:
        """Whether a mean over tasks is shown."""
        return any(row.overall is not None for row in self.rows) and len(self.tasks) > 1

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        tasks = [
            {"name": task.name, "metric": task.metric, "lower_is_better": task.lower_is_better}
            for task in self.tasks
        ]
        return {"tasks": tasks, "rows": [row.as_dict() for row in self.rows], "notes": list(self.notes)}


def make_board(runs: Sequence[Run], tasks_are: TasksAre = "fixed") -> Board:
    """The leaderboard of some runs. tasks_are: as of `compare_runs`, for the overall score and ranks. Raises RunError for none, and where one task is shown by different metrics."""
    if not runs:
        raise RunError("A leaderboard needs at least one run. `evalwright runs list` shows what there is.")
    tasks = _columns(runs)
    directions = {task.lower_is_better for task in tasks}
    mixed = len(tasks) > 1 and not (all(task.bounded for task in tasks) and len(directions) == 1)
    check_tasks_are(tasks_are, 0 if mixed else len(tasks))
    # Those with a score on every task. The resample goes by the order of the runs, and the board must not.
    complete = [run for run in runs if all(not math.isnan(_value(run, task.name)) for task in tasks)]
    complete.sort(key=lambda run: (run.id, run.label, run.data["started"]))
    found: list[Matrix] = []
    if complete and not mixed:
        mains = [{task.name: task.main for task in run.tasks if task.main} for run in complete]
        found = matrices(complete, {task.name: [own[task.name] for own in mains] for task in tasks})
    places = {id(run): place for place, run in enumerate(complete)} if found else {}
    made = rank(found, tasks_are=tasks_are) if len(complete) > 1 and found else None
    together = _together(found, tasks_are)
    factual = is_factual(runs)
    rows = []
    for given, run in enumerate(runs):
        place = places.get(id(run))
        row = _row(run, tasks, mixed, given, factual_shares(run) if factual else {})
        if place is not None:
            row = replace(
                row,
                ranks=made.ranks[place] if made else (1, 1),
                own_ranks=made.own_ranks[place] if made else (1, 1),
                letters=made.letters[place] if made and made.letters else "",
                together=together[place] if together else None,
                overall=_sampled(row, tasks, found, place) if tasks_are == "sample" else row.overall,
            )
        rows.append(row)
    rows.sort(key=lambda row: (row.ranks is None and not mixed, _order(row, tasks[0]), row.label, row.run))
    alone = [complete[place].label for place in made.alone] if made else []
    return Board(tasks, tuple(rows), tuple(_notes(runs, rows, mixed, found, made, alone, tasks_are)))


def _columns(runs: Sequence[Run]) -> tuple[BoardTask, ...]:
    found: dict[str, BoardTask] = {}
    for run in runs:
        for task in run.tasks:
            if task.main is None:
                continue
            kind = task.main.kind
            less = kind in LOWER_IS_BETTER or task.main.lower_is_better
            column = BoardTask(task.name, task.main.label, kind in BOUNDED, less)
            if found.setdefault(task.name, column) != column:
                raise RunError(
                    f"The runs show '{task.name}' by different metrics ({found[task.name].metric} and {column.metric}), "
                    f"so they cannot be on one board. Score one of them again with `evalwright score`."
                )
    if not found:
        raise RunError("None of these runs has a metric to show.")
    return tuple(found.values())


def _value(run: Run, task: str) -> float:
    """A run's score on a task; nan where it has none."""
    return next((one.main.estimate.value for one in run.tasks if one.main and one.name == task), math.nan)


def _row(
    run: Run, tasks: Sequence[BoardTask], mixed: bool, place: int, shares: Mapping[str, Estimate]
) -> BoardRow:
    """A run's row, not yet ranked."""
    cells = {task.name: task.main for task in run.tasks if task.main}
    estimates = [cells[task.name].estimate for task in tasks if task.name in cells]
    whole = not mixed and len(estimates) == len(tasks) and not any(math.isnan(one.value) for one in estimates)
    limits = UNIT_RANGE if all(task.bounded for task in tasks) else None
    return BoardRow(
        run=run.id,
        label=run.label,
        model=run.model,
        date=str(run.data["started"])[:10],
        ranks=None,
        own_ranks=None,
        letters="",
        overall=macro_average(estimates, value_range=limits) if whole else None,
        together=None,
        cells=cells,
        n=sum(part.n for part in estimates),
        n_asked=sum(task.n_samples for task in run.tasks if task.main),
        n_failed=sum(part.n_failed for part in estimates),
        cost=run.cost,
        outcomes=dict(sum((Counter(task.outcomes) for task in run.tasks), Counter[str]())),
        unscored=unscored(run.tasks, empty=True),
        metrics={task.name: task.metrics for task in run.tasks},
        place=place,
        shares=shares,
        hardware=hardware_of(run),
    )


def _sampled(
    row: BoardRow, tasks: Sequence[BoardTask], found: Sequence[Matrix], place: int
) -> Estimate | None:
    """The overall score of a run that has every task, for tasks like these."""
    return overall_mean(found, [row.cells[task.name].estimate for task in tasks], place, "sample")


def _order(row: BoardRow, first: BoardTask) -> float:
    """What rows are sorted by, the best least: the overall score, else that of the first task."""
    estimate = row.overall or (row.cells[first.name].estimate if first.name in row.cells else None)
    if estimate is None or math.isnan(estimate.value):
        return math.inf
    return estimate.value if first.lower_is_better else -estimate.value


def _together(found: Sequence[Matrix], tasks_are: TasksAre) -> list[Estimate]:
    """Each run's headline score with the interval that holds with those of all others; none where it is no mean of items.

    On one task by the largest deviation of one resample; over several by Bonferroni over the runs.
    """
    if not found or not all(one.measure.is_mean for one in found) or len(found[0].values) < 2:
        return []
    first = found[0]
    if len(found) == 1:
        return simultaneous_means(first.values, first.clusters, value_range=first.measure.value_range)
    runs = len(first.values)
    level = 1 - 0.05 / runs
    return [
        overall_mean(
            found,
            [mean_interval(one.values[row], clusters=one.clusters, level=level) for one in found],
            row,
            tasks_are,
        )
        for row in range(runs)
    ]


def _notes(
    runs: Sequence[Run],
    rows: Sequence[BoardRow],
    mixed: bool,
    found: Sequence[Matrix],
    made: Ranking | None,
    alone: Sequence[str],
    tasks_are: TasksAre,
) -> Iterator[str]:
    yield "Intervals are 95%. Scores generalise to items drawn like these, not only to these items."
    if tasks_are == "sample":
        yield "Overall scores and ranks generalise to tasks like these: the spread between the tasks counts, not only that of items."
    undecided = [sum(cell.estimate.n_undecided for cell in row.cells.values()) for row in rows]
    if sum(undecided):
        answers = counted(sum(undecided), "answer")
        low, high = min(undecided), max(undecided)
        each = f"{high:,}" if low == high else f"{low:,} to {high:,}"
        yield (
            f"{answers} ({each} per model) could not be decided by the scoring rules, which could change scores, ranks and "
            "ties; `evalwright runs show` has each score's bounds."
        )
    if mixed:
        yield "The tasks have different units or directions, so there is no overall score and no rank."
    elif made is not None:
        yield (
            "A rank is a range: the best and the worst rank that the model can have. All ranges hold simultaneously at 95% "
            "confidence (from simultaneous intervals of the paired differences); models whose ranges do not overlap are significantly different."
        )
        if made.letters and any(row.ranks and row.ranks[0] != row.ranks[1] for row in rows):
            yield "Models that share a letter are tied: the data cannot separate them."
        if any(row.together for row in rows):
            yield SIMULTANEOUS_NOTE
        if alone:
            them = "it" if len(alone) == 1 else "them"
            yield (
                f"No other model has enough items in common with {listed(alone)}: every rank is possible for {them}, whatever the "
                "score."
            )
        yield from _common_notes(found)
    yield from _differing_notes(runs)
    yield from early_notes(runs)
    if any(row.shares for row in rows):
        yield (
            "Hallucinated and refused are shares of the stress questions, which have no answer: refused (or corrected) is right."
        )
    if any(row.n_failed for row in rows):
        yield "Failed items are counted separately and are not scored as wrong."
    if without := [f"{row.label}: {row.unscored}" for row in rows if row.unscored]:
        yield f"Items without an answer or a score: {'; '.join(without)}."
    if any(row.ranks is None for row in rows) and not mixed:
        yield "Models without a rank have no score on at least one of the tasks."


def _common_notes(found: Sequence[Matrix]) -> Iterator[str]:
    """What a reader must know of the items that pairs share, and of metrics that are no means."""
    without = "are compared as independent samples" if len(found) == 1 else "cannot be separated"
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
        if not one.measure.is_mean:
            yield (
                f"On '{one.measure.task}' ranks use the mean score of '{one.measure.scorer}', as '{one.measure.metric}' is not a "
                "mean over items."
            )


def _differing_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Tasks of which the runs had different versions, data or scorers; and roles that different models played."""
    tasks: dict[str, set[str]] = {}
    roles: dict[str, dict[str, str]] = {}
    for run in runs:
        for task in run.data["tasks"]:
            parts = [task["version"], task["content_hash"], task["scorers"]]
            tasks.setdefault(task["name"], set()).add(json.dumps(parts, sort_keys=True))
        for role, model in run.data.get("roles", {}).items():
            name = str(model.get("name", ""))
            roles.setdefault(role, {})[str(model.get("fingerprint", name))] = name
    for name, forms in tasks.items():
        if len(forms) > 1:
            yield f"The runs used different versions, data or scorers of '{name}'."
    for role, models in roles.items():
        if len(models) > 1:
            names = ", ".join(sorted(set(models.values())))
            yield f"Different models played the role '{role}' ({names}): scores that they gave are not comparable."
