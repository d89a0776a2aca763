"""What a signal cancels: the work that `run_blocking` runs for a command."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

_at_once = 0
"""Number of `at_once` blocks that are open."""
_running: list[tuple[AbstractEventLoop, Task[Any]]] = []
_ended_in: list[int] = []
"""The threads in which an `ended_by_cancel` block is open."""


class EndedByCancel(BaseException):
    """Raised in an `ended_by_cancel` block, which awaits nothing for long, to end it."""


@contextmanager
def cancellable() -> Iterator[None]:
    """Let `cancel` cancel the task that runs in this block."""
    import asyncio

    task = asyncio.current_task()
    assert task is not None
    loop_and_task = asyncio.get_running_loop(), task
    _running.append(loop_and_task)
    try:
        yield
    finally:
        _running.remove(loop_and_task)


@contextmanager
def at_once() -> Iterator[None]:
    """Mark work that a signal ends at once.

    It does not await anything for long, such as reading a large folder, and has sent nothing.
    """
    global _at_once
    _at_once += 1
    try:
        yield
    finally:
        _at_once -= 1


@contextmanager
def ended_by_cancel() -> Iterator[None]:
    """Mark work that does not await anything for long while requests may be in flight elsewhere.

    An example is writing a large record. A signal raises EndedByCancel in it; the caller then has
    to wait to be cancelled. The work must not leave anything else half done.
    """
    _ended_in.append(threading.get_ident())
    try:
        yield
    finally:
        _ended_in.pop()


def cancel() -> bool:
    """Cancel what runs, even from a signal handler.

    Returns:
        False if nothing runs, or if what runs is to be ended at once.

    Raises:
        EndedByCancel: it interrupts an `ended_by_cancel` block.
    """
    if _at_once:
        return False
    for loop, task in _running:
        loop.call_soon_threadsafe(task.cancel)
    if _running and threading.get_ident() in _ended_in:
        raise EndedByCancel
    return bool(_running)
