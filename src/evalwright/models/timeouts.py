"""Time limits for many tasks with a single timer.

A timer for each request would take a twentieth of the request's processor time.
"""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Any, Self


class Timeouts:
    """The limits of one event loop's tasks: `with timeouts.limit(seconds): await ...`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.running: set[Limit] = set()
        self._timer: asyncio.TimerHandle | None = None

    def limit(self, seconds: float) -> Limit:
        """Limit a block: what the task awaits in it ends with TimeoutError after that time."""
        return Limit(self, seconds)

    def end_all(self, before: float = math.inf) -> None:
        """End the blocks whose time is over at that moment, by default all."""
        for limit in self.running:
            if limit.until <= before and not limit.expired:
                limit.expired = True
                limit.task.cancel()

    def wake_at(self, when: float) -> None:
        """Check the limits at that time, unless a check happens sooner anyway."""
        if self._timer is None or when < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        self.end_all(self.loop.time())
        following = min(
            (limit.until for limit in self.running if not limit.expired), default=None
        )
        if following is not None:
            self.wake_at(following)


class Limit:
    """A limited block. `expired` says whether its time ran out."""

    __slots__ = ("_cancelling", "_seconds", "_timeouts", "expired", "task", "until")

    def __init__(self, timeouts: Timeouts, seconds: float) -> None:
        self._timeouts = timeouts
        self._seconds = seconds
        self.expired = False

    def __enter__(self) -> Self:
        task = asyncio.current_task(self._timeouts.loop)
        assert task is not None
        self.task: asyncio.Task[Any] = task
        self._cancelling = task.cancelling()
        self.until = self._timeouts.loop.time() + self._seconds
        self._timeouts.running.add(self)
        self._timeouts.wake_at(self.until)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._timeouts.running.discard(self)
        # As in asyncio.timeout, another cancellation of the task takes precedence.
        if (
            self.expired
            and self.task.uncancel() <= self._cancelling
            and error_type is asyncio.CancelledError
        ):
            raise TimeoutError from error
