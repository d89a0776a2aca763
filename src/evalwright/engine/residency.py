"""Which heavy models are loaded: at most `max_resident` at a time.

A loaded model keeps its seat while it has work. It gives the seat up when its queue has been empty for a moment and another
model waits for one. That moment is longer for a model that took long to load, so that a pause between two requests does
not cost a reload.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Protocol

_SHORTEST_PATIENCE = 0.05
_LONGEST_PATIENCE = 1.0


class Sitter(Protocol):
    """A model's worker, as far as its seat is concerned."""

    def leave_when_idle(self) -> None:
        """Called from any thread: another model waits for a seat."""


class Residency:
    """Hands out the seats, first come first served. All methods may be called from any thread."""

    def __init__(self, seats: int) -> None:
        self._free = max(1, seats)
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Sitter, threading.Event]] = deque()
        self._seated: list[Sitter] = []

    @property
    def contended(self) -> bool:
        """Whether somebody waits for a seat."""
        return bool(self._waiting)

    def sit(self, sitter: Sitter) -> None:
        """Wait for a seat. Blocks; called in the sitter's own thread."""
        with self._lock:
            if self._free:
                self._free -= 1
                self._seated.append(sitter)
                return
            turn = threading.Event()
            self._waiting.append((sitter, turn))
            seated = list(self._seated)
        for other in seated:
            other.leave_when_idle()
        turn.wait()

    def stand(self, sitter: Sitter) -> None:
        """Give the seat to whoever has waited longest."""
        with self._lock:
            self._seated.remove(sitter)
            if self._waiting:
                following, turn = self._waiting.popleft()
                self._seated.append(following)
                turn.set()
                contended = bool(self._waiting)
            else:
                self._free += 1
                return
        if contended:
            following.leave_when_idle()


def patience_of(load_seconds: float) -> float:
    """For how many seconds a queue must stay empty before a model with this loading time is given up."""
    return min(max(0.1 * load_seconds, _SHORTEST_PATIENCE), _LONGEST_PATIENCE)
