"""Bounds on work that no load of the machine moves: how it grows, and processor time of this
process, not the clock's.
"""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

import pytest

Argument = TypeVar("Argument")

SIZES = (6_250, 100_000)
"""Two sizes of an input, far apart: what grows with their square takes 256 times as long with
the larger one.
"""
MOST_GROWTH = 4
"""By so much the time may grow faster than the size: linear work stays under it, the square (16
times) does not.
"""
AT_ONCE_SECONDS = 0.05
"""Of work that is done this soon nobody asks how it grows."""
N_TRIES = 3


@contextmanager
def ends(seconds: float = 30) -> Iterator[None]:
    """Fail what works for so long, which here is only what grows with the square of its input,
    or without end.
    """

    def stop(_: int, frame: FrameType | None) -> None:
        pytest.fail(f"still at work after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def assert_grows_linearly(
    work: Callable[[Argument], object],
    of_size: Callable[[int], Argument],
    sizes: tuple[int, int] = SIZES,
    *,
    most_seconds: float = 60,
) -> None:
    """Fail where the time of `work` grows much faster than its input: with the square, say, or
    without end.

    of_size: the input of (about) a size, another one for each try, so that nothing kept from the
    last one helps. most_seconds: of processor time for all tries, for work without end: many times
    what a slow machine takes.
    """
    small, large = sizes
    growths = []
    with ends(most_seconds):
        for attempt in range(N_TRIES):
            extra_bytes = 100 * attempt
            large_seconds = _seconds(work, of_size(large + extra_bytes))
            if large_seconds < AT_ONCE_SECONDS:
                return
            small_seconds = min(
                _seconds(work, of_size(small + extra_bytes + 10 * n))
                for n in range(N_TRIES)
            )
            growths.append(large_seconds / small_seconds)
            if growths[-1] < MOST_GROWTH * large / small:
                return
    times_larger = f"{large / small:g} times as much"
    pytest.fail(
        f"{times_larger} takes {min(growths):,.0f} times as long ({large_seconds:.2g} s): not linear"
    )


def repeated(piece: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """By its length, a text of this piece over and over."""
    return lambda length: before + piece * (length // len(piece)) + after


def _seconds(work: Callable[[Argument], object], argument: Argument) -> float:
    """The processor time that `work` takes with this input in this thread, without a collection
    of garbage in it.

    Not that of the process: while its timer runs, as in `ends`, that clock only counts ticks of
    milliseconds.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        began = time.thread_time()
        work(argument)
        return time.thread_time() - began
    finally:
        if was_enabled:
            gc.enable()
