"""Keeps the event loop responsive to timers and signals while thousands of samples are at work.

A sample whose responses are all stored is answered and scored without ever waiting. With
thousands of such workers that pause only now and then, one turn of the loop would last as long
as all of them together: minutes in a large run.
"""

from __future__ import annotations

import asyncio
from collections import deque

TURN_SECONDS = 0.05
"""How long samples may be worked on before the loop handles everything else."""


class LoopTurns:
    """Divides the loop's time into turns. Shared by everything that one engine works for.

    `take` is awaited before every sample, and after every stored response. A caller who comes too
    late in a turn waits in line. Each turn wakes one of those waiting: either it works until the
    turn is over, or it has to wait for a response, and then the next turn begins at once.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._turn_ends: float | None = None
        self._line: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Return at once while this turn of the loop lasts, else in a later one."""
        if self._turn_ends is None:
            self._begin_turn()
        elif self._loop.time() > self._turn_ends:
            turn: asyncio.Future[None] = self._loop.create_future()
            self._line.append(turn)
            await turn

    def _begin_turn(self) -> None:
        self._turn_ends = self._loop.time() + TURN_SECONDS
        self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """Begin the next turn of the loop; timers and signals have been handled."""
        self._turn_ends = None
        while self._line:
            turn = self._line.popleft()
            if not turn.done():  # otherwise the caller who waited was cancelled
                self._begin_turn()
                turn.set_result(None)
                return
