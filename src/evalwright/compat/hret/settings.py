"""Which arithmetic counts where a call does not say: `published` (HRET's own, faults included) or `corrected`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, cast

Scoring = Literal["published", "corrected"]

_chosen: list[Scoring] = ["corrected"]
_of_call: ContextVar[Scoring | None] = ContextVar("hret_scoring", default=None)


def scoring() -> Scoring:
    """That of the call that is running, else what `set_scoring` chose last; at first `corrected`."""
    return _of_call.get() or _chosen[0]


def set_scoring(value: str) -> None:
    """Choose for every later call that names none. Raises ValueError for anything but the two."""
    _chosen[0] = checked_scoring(value)


@contextmanager
def using(value: str | None) -> Iterator[Scoring]:
    """Choose for what is called inside; None changes nothing. Raises ValueError for anything but the two."""
    token = _of_call.set(scoring() if value is None else checked_scoring(value))
    try:
        yield scoring()
    finally:
        _of_call.reset(token)


def checked_scoring(value: str) -> Scoring:
    """The value, if it is one of the two. Raises ValueError."""
    if value not in ("published", "corrected"):
        raise ValueError(f"scoring is 'published' or 'corrected', not {value!r}.")
    return cast(Scoring, value)
