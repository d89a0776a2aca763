"""A leaderboard as data: a row per run, a column per task, every number with its interval, and ranks as ranges.

A rank range comes from paired comparisons on the items that two runs share: a run's best rank is one more than the number
of runs that are surely better, its worst rank leaves out those that are surely worse. "Surely" means p < 5% after
Holm's correction over all pairs of the board. Runs without a score on a task stand below, without a rank.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import RunError
from evalwright.metrics.registry import BOUNDED, LOWER_IS_BETTER
from evalwright.runs.comparison import UNIT_RANGE
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.runs.scores import ItemScores, item_scores, paired_scores
from evalwright.runs.stopping import early_notes
from evalwright.statistics import (
    compare_paired,
    macro_average,
    macro_difference,
    macro_p_value,
    pairwise_differences,
)

if TYPE_CHECKING:
    from evalwright.statistics import Estimate, PairwiseDifferences


@dataclass(frozen=True, slots=True)
class BoardTask:
    """A column: the task and the metric shown. bounded: between 0 and 1, shown in points of 100."""

    name: str
    metric: str
    bounded: bool
    lower_is_better: bool


@dataclass(frozen=True, slots=True)
class BoardRow:
    """A run on the board. ranks: best and worst rank, None where the run lacks a task. overall: mean over tasks."""

    run: str
    label: str
    model: str
    date: str
    ranks: tuple[int, int] | None
    overall: Estimate | None
    cells: Mapping[str, MetricResult]
    n: int
    n_failed: int
    cost: float | None

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return {
            "run": self.run,
            "label": self.label,
            "model": self.model,
            "date": self.date,
            "ranks": list(self.ranks) if self.ranks else None,
            "overall": self.overall.as_dict() if self.overall else None,
            "tasks": {name: cell.as_dict() for name, cell in self.cells.items()},
            "n": self.n,
            "n_failed": self.n_failed,
            "cost": self.cost,
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
    mixed = any(not task.bounded for task in tasks) and len(tasks) > 1
    complete = [run for run in runs if _covers(run, tasks)]
    ranks = {} if mixed else _rank_ranges(complete, tasks)
    rows = [_row(run, tasks, ranks.get(id(run)), mixed) for run in runs]
    sign = 1.0 if tasks[0].lower_is_better else -1.0
    rows.sort(
        key=lambda row: (
            row.ranks is None and not mixed,
            _order(row, sign, tasks[0].name),
            row.label,
            row.run,
        )
    )
    return Board(tasks, tuple(rows), tuple(_notes(runs, rows, mixed)))


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
                    f"so they cannot stand on one board. Score one of them again with `evalwright score`."
                )
    if not found:
        raise RunError("None of these runs has a metric to show.")
    return tuple(found.values())


def _covers(run: Run, tasks: Sequence[BoardTask]) -> bool:
    """Whether a run has a score on every task of the board."""
    values = {task.name: task.main.estimate.value for task in run.tasks if task.main}
    return all(not math.isnan(values.get(task.name, math.nan)) for task in tasks)


def _row(run: Run, tasks: Sequence[BoardTask], ranks: tuple[int, int] | None, mixed: bool) -> BoardRow:
    cells = {task.name: task.main for task in run.tasks if task.main}
    estimates = [cells[task.name].estimate for task in tasks if task.name in cells]
    whole = (
        not mixed and len(estimates) == len(tasks) and not any(math.isnan(part.value) for part in estimates)
    )
    return BoardRow(
        run=run.id,
        label=run.label,
        model=run.model,
        date=str(run.data["started"])[:10],
        ranks=ranks,
        overall=_overall(estimates, tasks) if whole else None,
        cells=cells,
        n=sum(part.n for part in estimates),
        n_failed=sum(part.n_failed for part in estimates),
        cost=run.data["usage"].get("cost"),
    )


def _overall(estimates: Sequence[Estimate], tasks: Sequence[BoardTask]) -> Estimate:
    return macro_average(estimates, value_range=UNIT_RANGE if all(task.bounded for task in tasks) else None)


def _order(row: BoardRow, sign: float, first: str) -> float:
    estimate = row.overall or (row.cells[first].estimate if first in row.cells else None)
    return sign * estimate.value if estimate and not math.isnan(estimate.value) else math.inf


def _rank_ranges(runs: Sequence[Run], tasks: Sequence[BoardTask]) -> dict[int, tuple[int, int]]:
    """Best and worst rank by `id(run)`."""
    if not runs:
        return {}
    scores = [
        item_scores(run, {task.name: run.task(task.name).metrics[0].scorer for task in tasks}) for run in runs
    ]
    tests = [
        (p_value, left, right, difference)
        for left, right, difference, p_value in _tests(scores, tasks)
        if not math.isnan(p_value)
    ]
    better = [0] * len(runs)
    worse = [0] * len(runs)
    for rank, (p_value, left, right, difference) in enumerate(sorted(tests)):
        if p_value * (len(tests) - rank) >= 0.05:
            break  # Holm: once one test fails, the less certain ones do
        winner, loser = (left, right) if difference > 0 else (right, left)
        better[loser] += 1
        worse[winner] += 1
    return {id(run): (1 + better[i], len(runs) - worse[i]) for i, run in enumerate(runs)}


def _tests(
    scores: Sequence[Mapping[str, ItemScores]], tasks: Sequence[BoardTask]
) -> Iterator[tuple[int, int, float, float]]:
    """(left, right, difference, p) of every pair: at once where all have the same items, else pair by pair."""
    tables = [_table([one[task.name] for one in scores]) for task in tasks]
    whole = [table for table in tables if table is not None]
    for left, right in combinations(range(len(scores)), 2):
        if len(whole) == len(tables) and len(tables) > 1:
            differences = [float(table.difference[left, right]) for table in whole]
            errors = [float(table.standard_error[left, right]) for table in whole]
            # A task on which the pair shows no spread must not pose as certain: that is for the careful way below.
            if min(errors) > 0:
                p_value = macro_p_value(differences, errors, [table.units for table in whole])
                yield left, right, sum(differences), p_value
                continue
        yield left, right, *_difference(scores[left], scores[right], tasks)


def _table(scores: Sequence[ItemScores]) -> PairwiseDifferences | None:
    """All pairs on one task, or None where the runs do not have the same items, all of them scored."""
    import numpy as np

    first = scores[0]
    if len(first.keys) < 2 or not all(np.array_equal(first.keys, one.keys) for one in scores[1:]):
        return None
    values = np.stack([one.values for one in scores])
    if np.isnan(values).any() or (first.clustered and len(np.unique(first.clusters)) < 2):
        return None
    return pairwise_differences(values, first.clusters if first.clustered else None)


def _difference(
    a: Mapping[str, ItemScores], b: Mapping[str, ItemScores], tasks: Sequence[BoardTask]
) -> tuple[float, float]:
    parts = []
    for task in tasks:
        keys, values, clusters = paired_scores(a[task.name], b[task.name])
        if len(keys) < 2:
            return math.nan, math.nan
        parts.append(
            compare_paired(*values, clusters=clusters, value_range=UNIT_RANGE if task.bounded else None)
        )
    if len(parts) == 1:
        return parts[0].difference, parts[0].p_value
    combined = macro_difference(parts)
    return combined.difference, combined.p_value


def _notes(runs: Sequence[Run], rows: Sequence[BoardRow], mixed: bool) -> list[str]:
    notes = ["Intervals are 95%. The scores say how the models do on items like these."]
    if mixed:
        notes.append("The tasks are measured in different units, so there is no overall score and no rank.")
    elif len(runs) > 1:
        notes.append(
            "A rank is a range: models whose ranges do not overlap differ surely (paired by item, Holm-corrected, 5%); "
            "where they overlap, compare the two."
        )
    notes += [
        f"The runs did not ask '{name}' alike: its version, its data or its scorers differ."
        for name in _asked_differently(runs)
    ]
    notes += early_notes(runs)
    if any(row.n_failed for row in rows):
        notes.append("Failed items are counted apart and are not scored as wrong.")
    if any(row.ranks is None for row in rows) and not mixed:
        notes.append("Models without a rank have no score on at least one of the tasks.")
    return notes


def _asked_differently(runs: Sequence[Run]) -> list[str]:
    """Tasks of which the runs had different versions, data or scorers."""
    seen: dict[str, set[str]] = {}
    for run in runs:
        for task in run.data["tasks"]:
            parts = [task["version"], task["content_hash"], task["scorers"]]
            seen.setdefault(task["name"], set()).add(json.dumps(parts, sort_keys=True))
    return [name for name, forms in seen.items() if len(forms) > 1]
