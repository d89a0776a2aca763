"""Which arithmetic counts where a call does not say: `published` (HRET's own, faults included) or `corrected`."""

from __future__ import annotations

from typing import Literal, cast

Scoring = Literal["published", "corrected"]

_chosen: list[Scoring] = ["corrected"]


def scoring() -> Scoring:
    """What `set_scoring` chose last; at first `corrected`."""
    return _chosen[0]


def set_scoring(value: str) -> None:
    """Choose for every later call that names none. Raises ValueError for anything but the two."""
    _chosen[0] = checked_scoring(value)


def checked_scoring(value: str) -> Scoring:
    """The value, if it is one of the two. Raises ValueError."""
    if value not in ("published", "corrected"):
        raise ValueError(f"scoring is 'published' or 'corrected', not {value!r}.")
    return cast(Scoring, value)
