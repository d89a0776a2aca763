"""The limits of a trajectory. Reaching one is an outcome of the model, and is scored."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a model may act; None for a limit that is not set.

    Args:
        messages: replies of the model.
        tokens: tokens read and written, over all replies.
        dollars: the price of all replies, where prices are known.
        seconds: time of the model's replies and of tools; waiting for a rate limit does not count.
    """

    messages: int | None = 50
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None
