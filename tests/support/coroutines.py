"""Coroutines that wait for nothing, run without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Returned = TypeVar("Returned")


def run_to_end(coroutine: Coroutine[Any, Any, Returned]) -> Returned:
    """Run a coroutine that waits for nothing, and return what it returns.

    Starting and closing an event loop takes much longer than thousands of such coroutines do.

    Args:
        coroutine: whatever it awaits is ready.

    Raises:
        AssertionError: it waits for something.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        returned: Returned = end.value
        return returned
    coroutine.close()
    raise AssertionError("the coroutine waits for something: use asyncio.run")
