"""What a signal cancels: the work that `run_blocking` runs for a command."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

_at_once = 0
"""How many `at_once` are open."""
_running: list[tuple[AbstractEventLoop, Task[Any]]] = []
_ended_in: list[int] = []
"""The threads in which an `ended_by_cancel` is open."""


class EndedByCancel(BaseException):
    """Work that awaits nothing for long was ended where it was; everything will be cancelled."""


@contextmanager
def cancellable() -> Iterator[None]:
    """The task that runs now can be cancelled by `cancel`."""
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
    """What runs now awaits nothing for long, such as reading a large folder, and has sent nothing:
    a signal ends it where it is.
    """
    global _at_once
    _at_once += 1
    try:
        yield
    finally:
        _at_once -= 1


@contextmanager
def ended_by_cancel() -> Iterator[None]:
    """What runs now awaits nothing for long, such as writing a large record, while requests may be
    in flight elsewhere.

    A signal raises EndedByCancel in it; the caller then has to wait to be cancelled. Nothing else
    may be left half done by that.
    """
    _ended_in.append(threading.get_ident())
    try:
        yield
    finally:
        _ended_in.pop()


def cancel() -> bool:
    """Cancel what runs, also from a signal handler; False where nothing does, or where it is to be
    ended at once.

    Raises EndedByCancel where it interrupts an `ended_by_cancel`.
    """
    if _at_once:
        return False
    for loop, task in _running:
        loop.call_soon_threadsafe(task.cancel)
    if _running and threading.get_ident() in _ended_in:
        raise EndedByCancel
    return bool(_running)
