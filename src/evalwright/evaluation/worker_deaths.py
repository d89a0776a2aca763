"""What the workers of a round were at when they died.

A worker's note says what it has begun. If the worker is not alive, and did not write that it left,
it was killed or crashed there. The notes stay, so that deaths are counted whoever looks, and when;
claims of the dead are deleted by the next process that opens the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evalwright.engine.slices import WorkerNotes

Phase = Literal["answers", "scores", "record"]
"""What workers do: answer samples; score them, where writing the run kills; write the run."""

ANSWERS: Phase = "answers"
SCORES: Phase = "scores"
RECORD: Phase = "record"

SampleRange = tuple[int, int]
"""Samples of a slice, from the first position to before the second."""


@dataclass(frozen=True, slots=True)
class OpenWork:
    """What a worker has begun and not finished.

    Attributes:
        phase: what it does.
        slices: the numbers of its slices.
        alone: the samples of its only slice that it evaluates with nothing beside them; None if it
            evaluates its slices as usual.
    """

    phase: Phase = ANSWERS
    slices: frozenset[int] = frozenset()
    alone: SampleRange | None = None

    def as_note(self) -> dict[str, Any]:
        """Return a plain mapping for the worker's note."""
        return {
            "phase": self.phase,
            "slices": sorted(self.slices),
            "alone": self.alone,
        }


class WorkerDeaths:
    """The deaths of workers in one round of a run.

    Args:
        run_notes: the notes about the run.
        round_notes: the notes about the round.
    """

    def __init__(self, run_notes: WorkerNotes, round_notes: WorkerNotes) -> None:
        self._run_notes = run_notes
        self._round_notes = round_notes
        self._read: set[str] = set()
        self._at_slice: Counter[tuple[str, int]] = Counter()
        self._alone: dict[tuple[str, int], dict[SampleRange, list[str]]] = {}
        self.writers = 0
        """How many workers died while they wrote the run."""

    async def look(self) -> None:
        """Count the workers that have died since the last look."""
        me = self._round_notes.worker
        workers = await self._round_notes.workers()
        others = [name for name in workers if name != me and name not in self._read]
        living = await self._round_notes.living(others)
        dead = [worker for worker in others if worker not in living]
        if not dead:
            return
        keys = [self._run_notes.key("worker", worker) for worker in dead]
        for worker, note in zip(dead, await self._run_notes.read(keys), strict=True):
            if note is not None and not note.get("left"):
                self._count(worker, note.get("open"))
        self._read.update(dead)

    def at_slice(self, phase: Phase, number: int) -> int:
        """Return how many workers died while they had a slice."""
        return self._at_slice[phase, number]

    def alone(self, phase: Phase, number: int) -> Mapping[SampleRange, list[str]]:
        """Return which workers died at samples of a slice with nothing beside them."""
        return self._alone.get((phase, number), {})

    def _count(self, worker: str, noted: object) -> None:
        work = _work_of(noted)
        if work.phase == RECORD:
            self.writers += 1
        for number in work.slices:
            self._at_slice[work.phase, number] += 1
            if work.alone is not None:
                deaths = self._alone.setdefault((work.phase, number), {})
                deaths.setdefault(work.alone, []).append(worker)


def _work_of(noted: object) -> OpenWork:
    """Return what a worker had begun; nothing if its note is of an earlier version or damaged."""
    match noted:
        case {"phase": "answers" | "scores" | "record" as phase, "slices": [*slices]}:
            numbers = frozenset(number for number in slices if type(number) is int)
        case _:
            return OpenWork()
    match noted:
        case {"alone": [int(start), int(end)]}:
            return OpenWork(phase, numbers, (start, end))
    return OpenWork(phase, numbers)
