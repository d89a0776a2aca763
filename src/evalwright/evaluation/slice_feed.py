"""Hands out the samples of the slices that a worker claims."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from evalwright.engine.slices import SharedSlices
from evalwright.evaluation.slicing import SlicedRun, Unit


@dataclass(slots=True)
class OpenSlice:
    """A slice at work: units without an outcome, answered ones, and ones beyond the budget."""

    left: int
    answered: int = 0
    not_sent: int = 0


class SliceFeed:
    """Hands out the units of slices, and claims the next slice when they are used up.

    It ends if no slice is free (`none_free`), at a suspect slice, or if it is interrupted.

    Args:
        sliced: the run and its slices.
        slices: their claims.
        most: most slices at a time.
        is_suspect: whether workers have died at a slice, which then ends the feed; the slice is
            claimed, and in `suspect`.
        is_interrupted: whether no further slice is to be claimed now.
    """

    def __init__(
        self,
        sliced: SlicedRun,
        slices: SharedSlices,
        most: int,
        is_suspect: Callable[[int], Awaitable[bool]],
        is_interrupted: Callable[[], bool],
    ) -> None:
        self._sliced = sliced
        self._slices = slices
        self._most = most
        self._is_suspect = is_suspect
        self._is_interrupted = is_interrupted
        self._units: deque[tuple[int, Unit]] = deque()
        self._open: dict[int, OpenSlice] = {}
        self._has_room = asyncio.Event()
        self._claiming = asyncio.Lock()
        self._has_ended = False
        self.suspect: int | None = None
        self.none_free = False

    async def next_unit(self) -> tuple[int, Unit] | None:
        """Return a unit with the number of its slice; None once the feed has ended."""
        while not self._units and not self._has_ended:
            async with self._claiming:
                if not self._units and not self._has_ended:
                    await self._claim_slice()
        return self._units.popleft() if self._units else None

    def count(self, slice_number: int, *, answered: bool) -> OpenSlice | None:
        """Count a unit that has ended; return the slice's counts if it was the last one."""
        counts = self._open[slice_number]
        counts.left -= 1
        counts.answered += answered
        counts.not_sent += not answered
        return None if counts.left else counts

    def release(self, slice_number: int) -> None:
        """Make room for another slice."""
        del self._open[slice_number]
        self._has_room.set()

    async def _claim_slice(self) -> None:
        while len(self._open) >= self._most:
            self._has_room.clear()
            await self._has_room.wait()
        if self._is_interrupted():
            self._has_ended = True
            return
        number = await self._slices.claim()
        if number is None:
            self._has_ended = True
            self.none_free = True
            return
        if await self._is_suspect(number):
            self._has_ended = True
            self.suspect = number
            return
        units = list(self._sliced.units(number))
        self._open[number] = OpenSlice(len(units))
        self._units.extend((number, unit) for unit in units)
