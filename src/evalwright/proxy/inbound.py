"""What a request to the proxy asks for, whichever format it came in."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.proxy.faults import Fault, invalid

SIGNATURE_PREFIX = "evw1."
MAX_SIGNATURE_BYTES = 8 * 2**20


@dataclass(slots=True)
class Inbound:
    """A request to the proxy, in our words.

    Attributes:
        model: the model's name as the client wrote it.
        requests: what the model is asked, each with draw 0.
        draws: how many answers are wanted to each.
        stream: whether the answer is sent as events.
        needs_chat: whether the prompt is messages.
        extras: fields that are in `generation_arguments`, which few models take.
        shape: what the format needs to write its reply.
    """

    model: str
    requests: tuple[Request, ...]
    draws: int = 1
    stream: bool = False
    needs_chat: bool = True
    extras: tuple[str, ...] = ()
    shape: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Answered:
    """An inbound request with its responses.

    Attributes:
        inbound: the request.
        responses: for each of its requests, as many responses as it wants draws.
        id: a name for the reply, the same for the same draws.
        created: seconds since 1970.
    """

    inbound: Inbound
    responses: Sequence[Sequence[Response]]
    id: str
    created: int


class Format(Protocol):
    """One format: pure functions."""

    name: str
    ping: bytes
    """What is sent in a stream while the answer is waited for; clients skip it."""

    def read(self, body: Any) -> Inbound:
        """Read a body.

        Raises:
            Fault: it cannot be carried to a model as it is.
        """
        ...

    def write(self, answered: Answered) -> dict[str, Any]:
        """Return the reply as JSON."""
        ...

    def events(self, answered: Answered) -> bytes:
        """Return the reply as the events of a stream, its end included."""
        ...

    def error(self, fault: Fault) -> dict[str, Any]:
        """Return an error as JSON."""
        ...

    def error_event(self, fault: Fault) -> bytes:
        """Return an error as an event of a stream that has begun."""
        ...


encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode
"""Writes JSON in ASCII: text from a model can hold anything, and a line break ends an event."""


def event(payload: Any, name: str = "") -> bytes:
    """Return one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {encode(payload)}\n\n".encode()


def sign(provider_content: str) -> str:
    """Pack what a provider wants back unchanged, for clients to carry in a signature field."""
    if not provider_content:
        return ""
    packed = zlib.compress(provider_content.encode("utf-8", "surrogatepass"))
    return SIGNATURE_PREFIX + b64encode(packed).decode()


def unsign(signature: str, where: str) -> str:
    """Unpack what `sign` packed; "" for no signature.

    Raises:
        Fault: it is another endpoint's signature, or damaged.
    """
    if not signature:
        return ""
    if not signature.startswith(SIGNATURE_PREFIX):
        raise invalid(
            f"{where} is the signature of another endpoint, which the model's provider"
            " would not take from here: leave out the reasoning of turns that this proxy"
            " did not answer.",
            where,
        )
    try:
        opened = zlib.decompressobj()
        packed = b64decode(signature[len(SIGNATURE_PREFIX) :], validate=True)
        text = opened.decompress(packed, MAX_SIGNATURE_BYTES)
        content = json.loads(text)
        is_right = opened.eof and isinstance(content, dict) and "format" in content
    except (ValueError, zlib.error, RecursionError):
        is_right = False
    if not is_right:
        raise invalid(f"{where} is damaged: send it as it was received.", where)
    return text.decode("utf-8", "surrogatepass")


def responses_of(answered: Answered) -> list[Response]:
    """Return the responses to an inbound request with a single prompt."""
    return list(answered.responses[0])


ReadPart = Callable[[Any, str], Any]
