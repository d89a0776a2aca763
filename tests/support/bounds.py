"""A bound on work that no load of the machine moves: processor time of this process, not the clock's."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest


@contextmanager
def ends(seconds: float = 30) -> Iterator[None]:
    """Fail what works for so long, which here is only what grows with the square of its input, or without end."""

    def stop(_: int, frame: FrameType | None) -> None:
        pytest.fail(f"still at work after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
