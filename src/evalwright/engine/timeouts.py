"""Ends tasks that take too long, with one timer for all of them: a timer for each request costs a twentieth of its way."""

from __future__ import annotations

import asyncio
import math
from typing import Any

_ENDED = -math.inf


class Timeouts:
    """Times one section of each of many tasks. Belongs to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._until: dict[asyncio.Task[Any], tuple[float, int]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, seconds: float) -> asyncio.Task[Any]:
        """The running task, which is cancelled unless `end` is called within this time."""
        task = asyncio.current_task()
        assert task is not None
        until = self._loop.time() + seconds
        self._until[task] = until, task.cancelling()
        if self._timer is None or until < self._timer.when():
            self._wake_at(until)
        return task

    def end(self, task: asyncio.Task[Any]) -> bool:
        """The section is over. Whether its time was over: a CancelledError that came of it is then a timeout."""
        until, cancelling = self._until.pop(task)
        # As in asyncio.timeout: whoever else cancelled the task meanwhile comes first.
        return until == _ENDED and task.uncancel() <= cancelling

    def end_all(self, before: float = math.inf) -> None:
        """Cancel the tasks whose time ends before that, by default all."""
        for task, (until, cancelling) in list(self._until.items()):
            if _ENDED < until <= before:
                self._until[task] = _ENDED, cancelling
                task.cancel()

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        self.end_all(self._loop.time())
        following = min((until for until, _ in self._until.values() if until != _ENDED), default=None)
        if following is not None:
            self._wake_at(following)
