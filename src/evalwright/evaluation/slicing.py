"""Cuts a run into slices, by a rule that depends on the plan alone and not on who evaluates them.

A slice is small enough that many workers have something to do, and that a killed one leaves little
half done; large enough that its claim costs nothing, and that a local model has whole batches with
shared prefixes. All draws of a sample are in one slice. For a local model so are all samples of a
cluster: they share a passage, which it then reads once.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from evalwright.core.tasks import Task
from evalwright.evaluation.planning import PlannedRun
from evalwright.evaluation.rules import UnitOrder, unit_order
from evalwright.evaluation.schedule import SampleSlice
from evalwright.models.model_interface import LocalModel

MAX_REMOTE_ANSWERS = 64
MIN_LOCAL_ANSWERS = 64
MAX_LOCAL_ANSWERS = 1024
"""Most and fewest answers of a slice, unless the run has more than `MAX_SLICES` of these."""

USUAL_REMOTE_SLICES = 64
USUAL_LOCAL_SLICES = 16
"""Slices of a small run."""

MAX_SLICES = 4096

Unit = tuple[int, int, int, int]
"""Position in the record, task number, sample index, draw."""


@dataclass(frozen=True, slots=True)
class SlicedRun:
    """A run and its slices.

    Attributes:
        run: the run; its orders keep together what a slice keeps together, and its tasks have only
            the scorers that send requests or run programs. The others score once, when the run is
            written.
        slices: the parts of each slice, by task.
        n_answers: about the number of answers in a slice.
    """

    run: PlannedRun
    slices: tuple[tuple[SampleSlice, ...], ...]
    n_answers: int

    def units(self, number: int) -> Iterator[Unit]:
        """Yield the units of a slice."""
        for part in self.slices[number]:
            yield from self.run.units_between(part.task, part.start, part.end)

    def samples(self, number: int) -> list[list[Unit]]:
        """Return the units of a slice, by sample."""
        return [list(units) for _, units in groupby(self.units(number), _sample_of)]

    def with_all_scorers(self, tasks: Sequence[Task]) -> SlicedRun:
        """Return the same slices of a run whose tasks have all scorers."""
        return replace(self, run=replace(self.run, tasks=tuple(tasks)))


def _sample_of(unit: Unit) -> tuple[int, int]:
    _, task, index, _ = unit
    return task, index


def cut_slices(run: PlannedRun) -> SlicedRun:
    """Cut a run into slices, the same in every process that plans it.

    Slices follow the order of the run, and a slice goes on with the next task only if it is small.
    """
    is_local = isinstance(run.model, LocalModel)
    orders: Sequence[UnitOrder] = run.orders
    if is_local:
        seed = int(run.configuration["seed"])
        orders = [
            unit_order(task, array("q", order.items), seed)
            for task, order in zip(run.tasks, run.orders, strict=True)
        ]
    n_answers = slice_answers(run.total, is_local=is_local)
    slices: list[tuple[SampleSlice, ...]] = []
    parts: list[SampleSlice] = []
    room = n_answers
    for number, (task, order) in enumerate(zip(run.tasks, orders, strict=True)):
        start = 0
        while start < order.n_units:
            end = _end_of_part(order, start, max(1, room // task.draws))
            parts.append(SampleSlice(number, start, end))
            room -= (order.starts[end] - order.starts[start]) * task.draws
            start = end
            if room < task.draws:
                slices.append(tuple(parts))
                parts = []
                room = n_answers
    if parts:
        slices.append(tuple(parts))
    tasks = tuple(_keep_asynchronous_scorers(task) for task in run.tasks)
    sliced = replace(run, orders=tuple(orders), tasks=tasks)
    return SlicedRun(sliced, tuple(slices), n_answers)


def slice_answers(total: int, *, is_local: bool) -> int:
    """Return about how many answers a slice of a run with `total` answers has."""
    if is_local:
        usual = max(MIN_LOCAL_ANSWERS, total // USUAL_LOCAL_SLICES)
        usual = min(usual, MAX_LOCAL_ANSWERS)
    else:
        usual = min(max(1, total // USUAL_REMOTE_SLICES), MAX_REMOTE_ANSWERS)
    return max(usual, -(-total // MAX_SLICES))


def _end_of_part(order: UnitOrder, start: int, n_samples: int) -> int:
    """Return before which unit a part ends that has at most `n_samples`, but at least one unit."""
    end = bisect_right(order.starts, order.starts[start] + n_samples) - 1
    return min(max(end, start + 1), order.n_units)


def _keep_asynchronous_scorers(task: Task) -> Task:
    """Return the task with the scorers alone that send requests or run programs."""
    scorers = tuple(scorer for scorer in task.scorers if scorer.asks)
    return replace(task, scorers=scorers)
