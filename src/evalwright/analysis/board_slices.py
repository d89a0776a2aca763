"""Slices on a leaderboard: the models' numbers on samples that share a value of their metadata.

A slice breaks a number down and does not change it: the score of a task stays that of all its
samples, and an average stays one over tasks. The number of a slice over several tasks is the mean
of the tasks' numbers on it, each the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from evalwright.analysis.board_ranks import Cells, has_number, select_slice
from evalwright.analysis.board_tree import (
    BoardNode,
    NodeIds,
    average_reason,
    why_incomplete,
)
from evalwright.analysis.trees import can_average, shared_range
from evalwright.analysis.words import counted, listed
from evalwright.core.errors import UnknownName
from evalwright.core.text import printable
from evalwright.metrics.dimension_titles import value_title
from evalwright.runs.measures import Matrix, matrices
from evalwright.runs.reader import Run
from evalwright.runs.results import TaskResult
from evalwright.statistics import Estimate, macro_average, mean_interval
from evalwright.statistics.shared_units import unit_sums

SEARCHED_ROWS = 1_000
"""Records of each run that are searched for the metadata keys that a message can name."""


@dataclass(slots=True)
class SliceScores:
    """The item scores of a board's tasks with the slices of some metadata keys.

    Args:
        runs: the runs.
        cells: each run's metric by task.
        keys: metadata keys of samples.
    """

    runs: Sequence[Run]
    cells: Sequence[Cells]
    keys: tuple[str, ...]
    _matrices: dict[str, tuple[Matrix, dict[int, int]]] | None = None
    _results: dict[int, Mapping[str, TaskResult]] = field(default_factory=dict)

    def matrix(self, task: str) -> tuple[Matrix, dict[int, int]] | None:
        """Return a task's scores, and the row of each run that has any; None for no run."""
        if self._matrices is None:
            self._matrices = self._read()
        return self._matrices.get(task)

    def _read(self) -> dict[str, tuple[Matrix, dict[int, int]]]:
        """Read the scores of all tasks, with each run's file read as seldom as possible."""
        tasks_by_runs: dict[tuple[int, ...], list[str]] = {}
        for task in dict.fromkeys(name for cells in self.cells for name in cells):
            with_task = [i for i, cells in enumerate(self.cells) if task in cells]
            with_score = [i for i in with_task if has_number(self.cells[i][task])]
            tasks_by_runs.setdefault(tuple(with_score or with_task), []).append(task)
        matrix_by_task = {}
        for indices, tasks in tasks_by_runs.items():
            rows = {index: row for row, index in enumerate(indices)}
            metrics = {task: [self.cells[i][task] for i in indices] for task in tasks}
            task_matrices = matrices(
                [self.runs[i] for i in indices], metrics, self.keys
            )
            for matrix in task_matrices:
                matrix_by_task[matrix.measure.task] = matrix, rows
        return matrix_by_task

    def values(self, tasks: Iterable[str], key: str) -> list[str]:
        """List the values that a key has in some tasks, in the order of the items."""
        values: dict[str, None] = {}
        for task in tasks:
            scores = self.matrix(task)
            if scores and key in scores[0].slices:
                values |= dict.fromkeys(scores[0].slices[key].names)
        return sorted(values)

    def recorded(self, index: int, task: str, key: str, value: str) -> Estimate | None:
        """Return a run's own number of a task's slice, where its record has one."""
        if index not in self._results:
            self._results[index] = {
                result.name: result for result in self.runs[index].tasks
            }
        result = self._results[index].get(task)
        metrics = result.slices.get(key, {}).get(value, ()) if result else ()
        label = self.cells[index][task].label
        return next(
            (metric.estimate for metric in metrics if metric.label == label), None
        )


class SliceMaker:
    """Adds the nodes of slices to a board's tree."""

    def __init__(self, scores: SliceScores, ids: NodeIds) -> None:
        self._scores = scores
        self._ids = ids

    def at(self, node: BoardNode, keys: Sequence[str]) -> BoardNode:
        """Add slices by some keys to the parts of a node; none to an average as published."""
        if node.kind == "group" and not node.parts:
            return node
        return replace(node, parts=(*self._slices(node, keys, {}), *node.parts))

    def below(self, node: BoardNode, keys: Sequence[str]) -> BoardNode:
        """Add slices to the innermost groups of a node, or to a task that stands alone."""
        groups = [part for part in node.parts if part.kind == "group"]
        if groups:
            parts = (
                self.below(part, keys) if part.kind == "group" else part
                for part in node.parts
            )
            return replace(node, parts=tuple(parts))
        return self.at(node, keys)

    def _slices(
        self, node: BoardNode, keys: Sequence[str], outer_slices: Mapping[str, str]
    ) -> Iterator[BoardNode]:
        """Build the slices of a node by the first of some keys, with those of the others below."""
        if not keys:
            return
        key, *further_keys = keys
        values = self._scores.values(node.tasks, key)
        if not values:
            yield from self._slices(node, further_keys, outer_slices)
            return
        for value in values:
            slices = {**outer_slices, key: value}
            samples = self._samples(node.tasks, slices)
            if not samples:
                continue
            slice_node = self._slice(node, value_title(key, value), slices, samples)
            parts = (*self._slices(slice_node, further_keys, slices),)
            if not parts and len(samples) > 1:
                parts = tuple(
                    self._slice(slice_node, task, slices, {task: sample})
                    for task, sample in samples.items()
                )
            yield replace(slice_node, parts=parts)

    def _samples(
        self, tasks: Iterable[str], slices: Mapping[str, str]
    ) -> dict[str, tuple[Matrix, dict[int, int]]]:
        samples = {}
        for task in tasks:
            scores = self._scores.matrix(task)
            sliced = select_slice(scores[0], slices) if scores else None
            if scores and sliced is not None:
                samples[task] = sliced, scores[1]
        return samples

    def _slice(
        self,
        parent: BoardNode,
        title: str,
        slices: Mapping[str, str],
        samples: Mapping[str, tuple[Matrix, dict[int, int]]],
    ) -> BoardNode:
        estimates = []
        reasons = {}
        for index in range(len(self._scores.runs)):
            estimate, reason = self._estimate(index, slices, samples)
            estimates.append(estimate)
            if reason:
                reasons[index] = reason
        measures = [matrix.measure for matrix, _ in samples.values()]
        n_tasks = counted(len(samples), "task")
        return BoardNode(
            id=self._ids.new(parent.id, title),
            title=title,
            kind="slice",
            keys={**parent.keys, **slices},
            metric=measures[0].metric if len(samples) == 1 else f"mean of {n_tasks}",
            bounded=all(measure.bounded for measure in measures),
            measure=parent.measure,
            lower_is_better=parent.lower_is_better,
            tasks=tuple(samples),
            estimates=tuple(estimates),
            reasons=reasons,
        )

    def _estimate(
        self,
        index: int,
        slices: Mapping[str, str],
        samples: Mapping[str, tuple[Matrix, dict[int, int]]],
    ) -> tuple[Estimate | None, str]:
        """Compute a run's number on a slice, and why it has none or no interval."""
        estimates: list[Estimate] = []
        units = []
        missing_tasks = []
        for task, (matrix, rows) in samples.items():
            row = rows.get(index)
            if row is None or not matrix.was_asked[row].any():
                missing_tasks.append(task)
                continue
            estimates.append(self._task_estimate(index, task, slices, matrix, row))
            units.append(unit_sums(matrix.values[row], matrix.units))
        if missing_tasks:
            n_present = len(samples) - len(missing_tasks)
            if len(samples) == 1:
                return None, "the run has no such sample"
            return None, average_reason(n_present, len(samples), missing_tasks)
        if any(math.isnan(estimate.value) for estimate in estimates):
            return None, next(filter(None, map(why_incomplete, estimates)))
        if len(estimates) == 1:
            return estimates[0], why_incomplete(estimates[0])
        task_matrices = [matrix for matrix, _ in samples.values()]
        if not can_average([matrix.measure for matrix in task_matrices]):
            return None, "the tasks have different units or directions"
        average = macro_average(
            estimates, units=units, value_range=shared_range(task_matrices)
        )
        return average, why_incomplete(average)

    def _task_estimate(
        self, index: int, task: str, slices: Mapping[str, str], matrix: Matrix, row: int
    ) -> Estimate:
        if len(slices) == 1:
            ((key, value),) = slices.items()
            recorded_estimate = self._scores.recorded(index, task, key, value)
            if recorded_estimate is not None:
                return recorded_estimate
        if matrix.estimates:
            return matrix.estimates[row]
        scored = matrix.counted(row)
        return mean_interval(
            scored.values[row],
            clusters=scored.clusters,
            value_range=matrix.measure.value_range,
        )


def check_keys(
    runs: Sequence[Run],
    keys: Sequence[str],
    task_keys: Iterable[str],
    scores: SliceScores,
    tasks: Sequence[str],
) -> None:
    """Raise UnknownName for a key that neither a task nor a sample has.

    Args:
        runs: the runs.
        keys: the keys that are no task's metadata.
        task_keys: the keys that tasks' metadata has.
        scores: item scores with the slices of these keys.
        tasks: the tasks of the board.
    """
    for key in keys:
        if any(scores.values([task], key) for task in tasks):
            continue
        sample_keys = _sample_keys(runs)
        known_keys = sorted({*task_keys, *sample_keys})
        tasks_have = listed(sorted(task_keys), 12) if task_keys else "none"
        samples_have = listed(sorted(sample_keys), 12) if sample_keys else "none"
        raise UnknownName(
            "metadata key",
            printable(key)[:100],
            known_keys,
            f"Keys of the tasks: {tasks_have}; of their samples: {samples_have}. A key"
            " with more than 200 values makes no slices.",
        )


def _sample_keys(runs: Sequence[Run]) -> set[str]:
    """Collect the metadata keys of some samples of each run."""
    keys: set[str] = set()
    for run in runs[:20]:
        for row in islice(run.score_rows(), SEARCHED_ROWS):
            keys |= {
                str(key)
                for key, value in (row.get("metadata") or {}).items()
                if isinstance(value, str | int)
            }
    return keys
