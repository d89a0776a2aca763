"""The interface between wire formats and the HTTP client: calls, replies and streamed events.

A wire format makes a `Call` from a request, and a Response from a `Reply`; the client sends the one
and returns the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from evalwright.core.quick_init import quick_init
from evalwright.core.responses import RateLimits


class Gatherer(Protocol):
    """Assembles one streamed answer."""

    has_text: bool
    """Whether a piece of the answer, or of its reasoning, has arrived."""
    names: dict[str, None]
    """Names that the pieces gave the model, each name once."""

    def add(self, event: str, data: Any) -> bool:
        """Take an event's name (or "") and its JSON, or the text `[DONE]`.

        Returns:
            True once the answer is complete.

        Raises:
            RequestError: the event describes one.
        """

    def ended(self) -> bool:
        """Return whether the answer is complete without a final event, when the stream ends."""

    def result(self) -> Any:
        """Return the reply's JSON as if it were not streamed; only after the answer is complete."""


@quick_init
@dataclass(frozen=True, slots=True)
class Call:
    """One call to send.

    Attributes:
        path: path below the base URL, with its query, percent-encoded as it is sent.
        payload: the JSON body, or bytes that are the body, with their Content-Type in headers; None
            for none.
        method: the HTTP method.
        headers: headers besides the client's own.
        gatherer: collects the events of a streamed answer; None for a reply in one piece.
        decoding: how events are encoded in the stream, server-sent events or Amazon's frames.
        largest: most bytes of the reply, if the request tells how many it can need.
    """

    path: str
    payload: Any = None
    method: Literal["GET", "POST"] = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    gatherer: Gatherer | None = None
    decoding: Literal["sse", "aws"] = "sse"
    largest: int | None = None


SMALL_REPLY = 4 << 20
"""Bytes that any reply may have."""
BYTES_PER_TOKEN = 4096
"""Bytes that one token may take in a reply, with its alternatives and an event of its own."""


def largest_reply(tokens: int | None) -> int | None:
    """Return the bytes that a reply of so many tokens may have; None if the number is unknown."""
    return None if tokens is None else SMALL_REPLY + tokens * BYTES_PER_TOKEN


class Reply(NamedTuple):
    """A reply with a 2xx status.

    Attributes:
        data: its JSON.
        seconds: seconds from sending to the last byte.
        rate_limits: what its headers say about rate limits.
        names: names that the pieces of a stream gave the model.
    """

    data: Any
    seconds: float = 0.0
    rate_limits: RateLimits | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Polling:
    """How to follow a job that is answered later.

    Attributes:
        ended: returns whether a reply is the job's last.
        look: makes the call that polls the job from its first reply.
        cancel: makes the call that cancels it.
    """

    ended: Callable[[Reply, Any], bool]
    look: Callable[[Reply, Any], Call]
    cancel: Callable[[Reply, Any], Call]
