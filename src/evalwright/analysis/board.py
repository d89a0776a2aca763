"""A leaderboard as data: a row per run, a column per task, every number with its interval, and ranks as ranges.

Ranks are sets (Mogstad, Romano, Shaikh & Wilhelm 2024): a run's best rank is one more than the number of runs that are
significantly better, its worst leaves out those that are significantly worse: 0 is outside the pair's simultaneous interval,
which holds for all pairs of the board together, each on the items that both answered. With several tasks it is the interval of
the mean over tasks. Runs without a score on a task stand below, without a rank.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evalwright.analysis.factual import factual_shares, hardware_of, is_factual
from evalwright.analysis.ranking import Ranking, rank
from evalwright.core.errors import RunError
from evalwright.core.plain import plain_fields
from evalwright.core.words import listed
from evalwright.metrics.registry import BOUNDED, LOWER_IS_BETTER
from evalwright.runs.measures import UNIT_RANGE, Matrix, common_counts, matrices
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.runs.stopping import early_notes
from evalwright.statistics import Estimate, macro_average, mean_interval, simultaneous_means

SIMULTANEOUS_NOTE = "The interval beside a score holds for that score alone; the simultaneous ones hold for all models of the board together."


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
    metrics: Mapping[str, tuple[MetricResult, ...]] = field(default_factory=dict, compare=False, repr=False)
    place: int = field(default=0, compare=False, repr=False)
    shares: Mapping[str, Estimate] = field(default_factory=dict, compare=False, repr=False)
    hardware: str = ""

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        left_out = ("metrics", "place", *(name for name in ("shares", "hardware") if not getattr(self, name)))
        return {
            ("tasks" if name == "cells" else name): value
            for name, value in plain_fields(self, left_out).items()
        }


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


def make_board(runs: Sequence[Run]) -> Board:
    """The leaderboard of some runs. Raises RunError for none, and where one task is shown by different metrics."""
    if not runs:
        raise RunError("A leaderboard needs at least one run. `evalwright runs list` shows what there is.")
    tasks = _columns(runs)
    mixed = len(tasks) > 1 and not (
        all(task.bounded for task in tasks) and len({task.lower_is_better for task in tasks}) == 1
    )
    # The resample goes by the order of the runs, and the board must not.
    complete = sorted(
        (run for run in runs if _covers(run, tasks)), key=lambda run: (run.id, run.label, run.data["started"])
    )
    found = [] if mixed or not complete else _matrices(complete, tasks)
    places = {id(run): place for place, run in enumerate(complete)} if found else {}
    made = rank(found) if len(complete) > 1 and found else None
    alone = [complete[place].label for place in made.alone] if made else []
    together = _together(found)
    factual = is_factual(runs)
    rows = [
        replace(
            _row(run, tasks, places.get(id(run)), made, together, mixed),
            metrics={task.name: task.metrics for task in run.tasks},
            place=given,
            shares=factual_shares(run) if factual else {},
        )
        for given, run in enumerate(runs)
    ]
    sign = 1.0 if tasks[0].lower_is_better else -1.0
    rows.sort(
        key=lambda row: (
            row.ranks is None and not mixed,
            _order(row, sign, tasks[0].name),
            row.label,
            row.run,
        )
    )
    return Board(tasks, tuple(rows), tuple(_notes(runs, rows, mixed, found, made, alone)))


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


def _covers(run: Run, tasks: Sequence[BoardTask]) -> bool:
    """Whether a run has a score on every task of the board."""
    values = {task.name: task.main.estimate.value for task in run.tasks if task.main}
    return all(not math.isnan(values.get(task.name, math.nan)) for task in tasks)


def _row(
    run: Run,
    tasks: Sequence[BoardTask],
    place: int | None,
    made: Ranking | None,
    together: Sequence[Estimate],
    mixed: bool,
) -> BoardRow:
    results = {task.name: task for task in run.tasks if task.main}
    cells = {name: task.main for name, task in results.items() if task.main}
    estimates = [cells[task.name].estimate for task in tasks if task.name in cells]
    whole = (
        not mixed and len(estimates) == len(tasks) and not any(math.isnan(part.value) for part in estimates)
    )
    alone = None if place is None else (1, 1)
    return BoardRow(
        run=run.id,
        label=run.label,
        model=run.model,
        date=str(run.data["started"])[:10],
        hardware=hardware_of(run),
        ranks=made.ranks[place] if made and place is not None else alone,
        own_ranks=made.own_ranks[place] if made and place is not None else alone,
        letters=made.letters[place] if made and made.letters and place is not None else "",
        overall=_overall(estimates, tasks) if whole else None,
        together=together[place] if place is not None and together else None,
        cells=cells,
        n=sum(part.n for part in estimates),
        n_asked=sum(results[task.name].n_samples for task in tasks if task.name in results),
        n_failed=sum(part.n_failed for part in estimates),
        cost=run.data["usage"].get("cost"),
    )


def _overall(estimates: Sequence[Estimate], tasks: Sequence[BoardTask]) -> Estimate:
    return macro_average(estimates, value_range=UNIT_RANGE if all(task.bounded for task in tasks) else None)


def _order(row: BoardRow, sign: float, first: str) -> float:
    estimate = row.overall or (row.cells[first].estimate if first in row.cells else None)
    return sign * estimate.value if estimate and not math.isnan(estimate.value) else math.inf


def _matrices(runs: Sequence[Run], tasks: Sequence[BoardTask]) -> list[Matrix]:
    """The item scores of runs that have all tasks, a matrix per task."""
    mains = [{task.name: task.main for task in run.tasks if task.main} for run in runs]
    return matrices(runs, {task.name: [found[task.name] for found in mains] for task in tasks})


def _together(found: Sequence[Matrix]) -> list[Estimate]:
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
        macro_average(
            [mean_interval(one.values[row], clusters=one.clusters, level=level) for one in found],
            value_range=UNIT_RANGE,
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
) -> list[str]:
    notes = ["Intervals are 95%. Scores are about items like these."]
    if mixed:
        notes.append(
            "The tasks are measured in different units or directions, so there is no overall score and no rank."
        )
    elif made is not None:
        notes.append(
            "A rank is a range: the best and the worst rank that the model can have. The ranges hold together with 95% (simultaneous "
            "intervals of all paired differences); models whose ranges do not overlap are significantly different."
        )
        if made.letters and any(row.ranks and row.ranks[0] != row.ranks[1] for row in rows):
            notes.append("Models that share a letter are tied: the data cannot separate them.")
        if any(row.together for row in rows):
            notes.append(SIMULTANEOUS_NOTE)
        if alone:
            notes.append(
                f"No other model has enough items in common with {listed(alone)}: every rank is possible for "
                f"{'it' if len(alone) == 1 else 'them'}, whatever the score."
            )
        notes += _kept(found)
    notes += [
        f"The runs used different versions, data or scorers of '{name}'." for name in _asked_differently(runs)
    ]
    notes += _judged_differently(runs)
    notes += early_notes(runs)
    if any(row.shares for row in rows):
        notes.append(
            "Hallucinated and refused are shares of the stress questions, which have no answer: refused (or corrected) is right."
        )
    if any(row.n_failed for row in rows):
        notes.append("Failed items are counted separately and are not scored as wrong.")
    if undecided := sum(cell.estimate.n_undecided for row in rows for cell in row.cells.values()):
        answers = "1 answer is" if undecided == 1 else f"{undecided:,} answers are"
        notes.append(
            f"{answers} undecided by the rules and in no score; the bounds of each run's scores cover them."
        )
    if any(row.ranks is None for row in rows) and not mixed:
        notes.append("Models without a rank have no score on at least one of the tasks.")
    return notes


def _kept(found: Sequence[Matrix]) -> list[str]:
    """What a reader must know of the items that pairs share, and of metrics that are no means."""
    notes = []
    without = "are compared as independent samples" if len(found) == 1 else "cannot be separated"
    for one in found:
        counts = common_counts(one)
        own = np.diag(counts)
        few = (counts > 0) & (2 * counts < np.maximum(own[:, None], own[None, :]))
        for pairs, what in (
            (few, "under half of the items in common, and can hardly be separated"),
            (counts == 0, f"no item in common, and {without}"),
        ):
            number = int(np.triu(pairs, 1).sum())
            if number:
                have = "1 pair of models has" if number == 1 else f"{number} pairs of models have"
                notes.append(f"On '{one.measure.task}' {have} {what}.")
        if not one.measure.is_mean:
            notes.append(
                f"On '{one.measure.task}' ranks use the mean score of '{one.measure.scorer}', as '{one.measure.metric}' is not a mean "
                f"over items."
            )
    return notes


def _judged_differently(runs: Sequence[Run]) -> list[str]:
    """Roles that different models played: a score by one judge is no score by another."""
    seen: dict[str, dict[str, str]] = {}
    for run in runs:
        for role, model in run.data.get("roles", {}).items():
            name = str(model.get("name", ""))
            seen.setdefault(role, {})[str(model.get("fingerprint", name))] = name
    return [
        f"Different models played the role '{role}' ({', '.join(sorted(set(models.values())))}): scores that they gave are "
        f"not comparable."
        for role, models in seen.items()
        if len(models) > 1
    ]


def _asked_differently(runs: Sequence[Run]) -> list[str]:
    """Tasks of which the runs had different versions, data or scorers."""
    seen: dict[str, set[str]] = {}
    for run in runs:
        for task in run.data["tasks"]:
            parts = [task["version"], task["content_hash"], task["scorers"]]
            seen.setdefault(task["name"], set()).add(json.dumps(parts, sort_keys=True))
    return [name for name, forms in seen.items() if len(forms) > 1]
