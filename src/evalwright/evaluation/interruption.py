"""What a signal cancels: the work that `run_blocking` runs for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task

_at_once = 0
"""How many `at_once` are open."""
_running: list[tuple[AbstractEventLoop, Task[Any]]] = []


@contextmanager
def cancellable() -> Iterator[None]:
    """The task that runs now can be cancelled by `cancel`."""
    import asyncio

    task = asyncio.current_task()
    assert task is not None
    entry = asyncio.get_running_loop(), task
    _running.append(entry)
    try:
        yield
    finally:
        _running.remove(entry)


@contextmanager
def at_once() -> Iterator[None]:
    """What runs now awaits nothing for long, such as reading a large folder, and has sent nothing: a signal ends it where it is."""
    global _at_once
    _at_once += 1
    try:
        yield
    finally:
        _at_once -= 1


def cancel() -> bool:
    """Cancel what runs, also from a signal handler; False where nothing does, or where it is to be ended at once."""
    if _at_once:
        return False
    for loop, task in _running:
        loop.call_soon_threadsafe(task.cancel)
    return bool(_running)
