"""The event loop of a run: it handles a few replies at a time, so that each is stored soon.

When hundreds of replies arrive together, asyncio reads all of them before it goes on with the
first. Reading takes as long as everything up to the store, so the first would be lost by a kill
for all that time.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

MAX_EVENTS = 16
"""Most sockets that are read before the loop goes on with what was read."""

MAX_HELD_TURNS = 64
"""Turns of the loop after which other work goes on, though sockets are still waiting to be read.

A thousand replies are read by then. More are no burst: programs whose output never ends, say.
"""

T = TypeVar("T")


class FewEventsSelector(selectors.DefaultSelector):
    """A selector that reports few of the sockets that are ready, in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.has_more = False
        """Whether other work should wait, as more sockets are ready than were reported."""
        self._reported: set[int] = set()
        self._turns_with_more = 0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(timeout)
        if len(events) <= MAX_EVENTS:
            self._turns_with_more = 0
            self._reported.clear()
        else:
            self._turns_with_more += 1
            # Those that were reported before come last, so that they starve no others.
            events.sort(key=lambda event: event[0].fd in self._reported)
            events = events[:MAX_EVENTS]
            if events[-1][0].fd in self._reported:
                self._reported.clear()  # all have had their turn
            self._reported.update(key.fd for key, _ in events)
        self.has_more = self._turns_with_more % MAX_HELD_TURNS > 0
        return events


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that knows whether replies are waiting to be read."""

    def __init__(self) -> None:
        self.selector = FewEventsSelector()
        super().__init__(self.selector)
        # The clock is looked at a dozen times for each sample: without asyncio's method around it.
        self.time = time.monotonic  # type: ignore[method-assign]


def has_unread_replies(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether replies are waiting to be read, so that all other work should wait."""
    return isinstance(loop, _Loop) and loop.selector.has_more


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Do as `asyncio.run`, in a loop that handles few events at a time.

    A loop of another kind, which the user has chosen by a policy, stays.
    """
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        try:
            return runner.run(work)
        except KeyboardInterrupt as interrupt:
            _end_tasks(runner.get_loop(), interrupt)
            raise


def _end_tasks(loop: asyncio.AbstractEventLoop, interrupt: KeyboardInterrupt) -> None:
    """Cancel all tasks until they have ended, so that what they opened is closed.

    A second Ctrl-C is raised in whatever task is running, and again out of the loop by each task
    that waits for that one. asyncio would then close the loop with the others unfinished.
    """
    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        try:
            loop.run_until_complete(asyncio.wait(tasks))
        except KeyboardInterrupt as error:
            if error is not interrupt:
                raise


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    if type(loop) is not asyncio.SelectorEventLoop:
        return loop
    loop.close()
    return _Loop()
