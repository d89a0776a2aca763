"""What a wire format and the HTTP client hand to each other: a call to send, the reply to it, and
the events of a streamed one.

A wire format makes a `Call` of a request and a Response of a `Reply`; the client sends the one and
returns the other. Neither knows the other, and nothing in this file does any work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from evalwright.core.responses import RateLimits


class Gatherer(Protocol):
    """Puts the pieces of one streamed answer together."""

    has_text: bool
    """Whether a piece of the answer, or of its reasoning, has come."""
    names: dict[str, None]
    """What the pieces named the model, each name once."""

    def add(self, event: str, data: Any) -> bool:
        """Take one event: its name ("" where it has none) and its JSON, or the text `[DONE]`.

        True once the answer is whole.

        Raises the RequestError that an event carries.
        """

    def ended(self) -> bool:
        """Whether the answer is whole although no event said so, now that the stream has ended."""

    def result(self) -> Any:
        """The reply's JSON as it would have come in one piece; only once the answer is whole."""


@dataclass(frozen=True, slots=True)
class Call:
    """One thing to send.

    path: below the base URL, with its query, percent-encoded as it is sent. payload: the JSON body,
    or bytes that are one with their Content-Type in headers; None for none. headers: besides the
    client's own. gatherer: takes the events of a streamed answer; None where the reply is wanted in
    one piece. decoding: how events stand in the stream, server-sent events or Amazon's frames.
    largest: bytes that the reply may have, where what is asked for says how many it can need.
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
"""What one token may take in a reply, with its alternatives and an event of its own."""


def largest_reply(tokens: int | None) -> int | None:
    """Bytes that a reply of so many tokens may have; None where nobody said how many it may be."""
    return None if tokens is None else SMALL_REPLY + tokens * BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Reply:
    """A 2xx reply. data: its JSON. seconds: from sending to the last byte. names: what the pieces
    of a stream named the model.
    """

    data: Any
    seconds: float = 0.0
    rate_limits: RateLimits | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Polling:
    """How a job is followed that is answered later.

    ended: whether a reply is the job's last. look, cancel: from the first reply to the call that
    looks at the job again, and to the one that gives it up. Each takes the format's settings
    besides, and raises BadReply or Rejected for a reply that cannot be followed.
    """

    ended: Callable[[Reply, Any], bool]
    look: Callable[[Reply, Any], Call]
    cancel: Callable[[Reply, Any], Call]
