"""Decides which heavy models are loaded: at most `max_resident` at a time.

A loaded model keeps its slot while it has work. It gives the slot up when its queue has been
empty for a moment and another model waits for one. That moment is longer for a model that took
long to load, so that a short pause between requests does not cost a reload.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

_MIN_PATIENCE_SECONDS = 0.05
_MAX_PATIENCE_SECONDS = 1.0


Leave = Callable[[], None]
"""Tells a loaded model's worker, from any thread, that another model waits for a slot.

It also identifies the holder of the slot.
"""


class ModelSlots:
    """Hands out slots, first come, first served. Its methods may be called from any thread."""

    def __init__(self, slots: int) -> None:
        self._free = max(1, slots)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Leave, threading.Event]] = deque()
        self._holding: list[Leave] = []

    @property
    def contended(self) -> bool:
        """Whether another model waits for a slot."""
        return bool(self._waiting)

    def acquire(self, holder: Leave) -> None:
        """Wait for a slot. Blocks; called in the holder's own thread."""
        with self._lock:
            if self._free:
                self._free -= 1
                self._holding.append(holder)
                return
            turn = threading.Event()
            self._waiting.append((holder, turn))
            holding = list(self._holding)
        for ask_to_leave in holding:
            ask_to_leave()
        turn.wait()

    def release(self, holder: Leave) -> None:
        """Give the slot to the caller who has waited longest."""
        with self._lock:
            self._holding.remove(holder)
            if self._waiting:
                following, turn = self._waiting.popleft()
                self._holding.append(following)
                turn.set()
                contended = bool(self._waiting)
            else:
                self._free += 1
                return
        if contended:
            following()


def patience_of(load_seconds: float) -> float:
    """Return for how many seconds a queue must stay empty before its model is unloaded."""
    return min(max(0.1 * load_seconds, _MIN_PATIENCE_SECONDS), _MAX_PATIENCE_SECONDS)
