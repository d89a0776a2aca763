"""Finds the samples that kill the process of whoever evaluates them, and does without them.

A slice at which workers have died is evaluated with nothing beside it in the process, in parts
that are divided again where a worker dies. Only a sample at which workers died while it was the
only one at work counts as the cause: workers that are preempted die at many samples at a time, and
the next one gets further.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import Failure, Party, RequestFailed
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer, Strategy, Task
from evalwright.evaluation.worker_deaths import SampleRange

SLICE_DEATHS = 2
"""Deaths at a slice from which on it is evaluated alone, in parts."""

SAMPLE_DEATHS = 3
"""Deaths at a sample, with nothing beside it, from which on it is recorded as failed."""

WRITER_DEATHS = 2
"""Deaths of workers that wrote the run from which on the scores are tried slice by slice first."""

PARTS = 8
"""Into how many parts samples are divided: 64 are single after two divisions, 1,024 after four."""

DIED = "worker died"
"""The kind of the failure of such a sample."""


@dataclass(frozen=True, slots=True)
class SlicePart:
    """Samples of a slice that are evaluated together.

    Attributes:
        start: position of the first one.
        end: position before which they end.
        killed: the workers that a single sample has killed, if these are enough to do without it.
    """

    start: int
    end: int
    killed: tuple[str, ...] = ()


def divide_slice(
    n_samples: int, deaths: Mapping[SampleRange, Sequence[str]]
) -> Iterator[SlicePart]:
    """Yield the parts of a slice in which its samples are evaluated.

    Args:
        n_samples: number of samples of the slice.
        deaths: the workers that died at some of its samples.
    """
    step = max(1, -(-n_samples // PARTS))
    for start in range(0, n_samples, step):
        yield from _divide_part(start, min(start + step, n_samples), deaths)


def _divide_part(
    start: int, end: int, deaths: Mapping[SampleRange, Sequence[str]]
) -> Iterator[SlicePart]:
    if end - start == 1:
        killed = tuple(deaths.get((start, end), ()))
        is_fatal = len(killed) >= SAMPLE_DEATHS
        yield SlicePart(start, end, killed if is_fatal else ())
        return
    if not any(start <= first and last <= end for first, last in deaths):
        yield SlicePart(start, end)
        return
    step = max(1, -(-(end - start) // PARTS))
    for first in range(start, end, step):
        yield from _divide_part(first, min(first + step, end), deaths)


class Seclusion:
    """Lets the runs of one process work side by side, or one of them with nothing beside it."""

    def __init__(self) -> None:
        self._n_beside = 0
        self._n_waiting = 0
        self._is_secluded = False
        self._changed = asyncio.Event()

    @property
    def is_wanted(self) -> bool:
        """Whether one run waits until nothing is beside it."""
        return self._n_waiting > 0

    async def beside_others(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await `work()`, once nobody is or wants to be alone."""
        while self._is_secluded or self.is_wanted:
            await self._wait_for_change()
        self._n_beside += 1
        try:
            await work()
        finally:
            self._n_beside -= 1
            self._changed.set()

    async def alone(self, work: Callable[[], Awaitable[None]]) -> None:
        """Await `work()`, once nothing is beside it."""
        self._n_waiting += 1
        try:
            while self._is_secluded or self._n_beside:
                await self._wait_for_change()
            self._is_secluded = True
        finally:
            self._n_waiting -= 1
            self._changed.set()
        try:
            await work()
        finally:
            self._is_secluded = False
            self._changed.set()

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


# -- the run without these samples -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class FatalSample:
    """A sample that kills workers.

    Attributes:
        task: number of its task.
        index: its index in the task.
        process: the last worker that it killed, as in "123 on node-7"; "" if unknown.
    """

    task: int
    index: int
    process: str = ""


def fatal_samples(tasks: Sequence[Task], noted: object) -> list[FatalSample]:
    """Return the samples that kill workers, as the note about a slice has them.

    Args:
        tasks: the tasks.
        noted: rows of task, index and process; those that are damaged are left out.
    """
    samples = []
    for row in noted if isinstance(noted, list) else ():
        match row:
            case [int(task), int(index), str(process)] if 0 <= task < len(
                tasks
            ) and 0 <= index < len(tasks[task].samples):
                samples.append(FatalSample(task, index, process))
    return samples


def leave_out(
    tasks: Sequence[Task],
    fatal_answers: Sequence[FatalSample],
    fatal_scores: Sequence[FatalSample] = (),
) -> tuple[Task, ...]:
    """Return the tasks so that samples that kill workers fail in place of being evaluated.

    Args:
        tasks: the tasks.
        fatal_answers: samples that kill while they are answered.
        fatal_scores: samples that kill while their answers are scored.
    """
    sparing = list(tasks)
    for number, task in enumerate(tasks):
        answer_failures = _failures(task, number, fatal_answers, "task")
        score_failures = _failures(task, number, fatal_scores, "scorer")
        if answer_failures:
            strategy = SparingStrategy(task.strategy, answer_failures)
            sparing[number] = replace(task, strategy=strategy)
        if score_failures:
            scorers = _sparing_scorers(task.scorers, score_failures)
            sparing[number] = replace(sparing[number], scorers=scorers)
    return tuple(sparing)


def _failures(
    task: Task, number: int, fatal: Sequence[FatalSample], party: Party
) -> dict[str, Failure]:
    """Return the failure of each sample of a task that kills workers, by its id."""
    return {
        task.samples[sample.index].id: Failure(DIED, party, _reason(sample, party))
        for sample in fatal
        if sample.task == number
    }


def _reason(sample: FatalSample, party: Party) -> str:
    work = "answered" if party == "task" else "scored"
    last = f", at last {sample.process}" if sample.process else ""
    return (
        f"{SAMPLE_DEATHS} workers died one after the other while this was the only sample that"
        f" they {work}{last}: it may need more memory than there is, or crash the process."
    )


class SparingStrategy:
    """A task's strategy that fails for samples that kill workers.

    Args:
        inner: the task's strategy.
        failures: the failures of these samples, by id.
    """

    def __init__(self, inner: Strategy, failures: Mapping[str, Failure]) -> None:
        self.inner = inner
        self.needs = inner.needs
        self.roles = getattr(inner, "roles", {})
        self._failures = failures

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Answer a sample. Raises RequestFailed for one that kills workers."""
        failure = self._failures.get(sample.id)
        if failure is not None:
            raise RequestFailed(failure)
        return await self.inner(sample, ask, draw)


def _sparing_scorers(
    scorers: Sequence[Scorer], failures: Mapping[str, Failure]
) -> tuple[Scorer, ...]:
    """Return scorers that fail for samples whose scores kill workers.

    Those that send requests have scored before, with the answers.
    """
    are_all_asking = all(scorer.asks for scorer in scorers)
    return tuple(
        replace(scorer, function=_sparing_function(scorer, failures))
        if are_all_asking or not scorer.asks
        else scorer
        for scorer in scorers
    )


def _sparing_function(
    scorer: Scorer, failures: Mapping[str, Failure]
) -> Callable[..., Any]:
    def score(sample: Sample, *arguments: Any) -> Any:
        failure = failures.get(sample.id)
        if failure is not None:
            raise RequestFailed(failure)
        return scorer.function(sample, *arguments)

    return score
