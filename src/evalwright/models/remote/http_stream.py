"""A streamed answer: the events of a reply, handed to a Gatherer until the answer is whole.

A stream that ends before the answer is whole is a broken connection, never a short answer.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConnectionFailed
from evalwright.models.remote.exchange import Gatherer, Reply
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.http_faults import bad_reply, clean
from evalwright.models.remote.http_limits import parse_rate_limits

if TYPE_CHECKING:
    from aiohttp import ClientResponse

_KINDS = {"sse": "text/event-stream", "aws": "application/vnd.amazon.eventstream"}


async def post_streamed(
    client: HttpClient, path: str, payload: Any, gatherer: Gatherer, decoding: str = "sse"
) -> Reply:
    """POST and gather the events. Raises a RequestError as `HttpClient.post` does, or the one that an event carries.

    A server that answers in one piece although asked to stream is taken at its word.
    """
    started = time.perf_counter()
    async with client.opened("POST", path, payload, {"Accept": _KINDS[decoding]}) as response:
        limits = parse_rate_limits(response.raw_headers)
        if "json" in response.headers.get("Content-Type", "").lower() or not 200 <= response.status < 300:
            return await client.whole(response, started)
        data = await gathered(client, response, gatherer, decoding)
        return Reply(data, time.perf_counter() - started, limits)


async def gathered(client: HttpClient, response: ClientResponse, gatherer: Gatherer, decoding: str) -> Any:
    """The reply that the stream's events make. Raises ConnectionFailed where it ends too early."""
    events = _sse(client, response) if decoding == "sse" else _aws(client, response)
    async for event, data in events:
        if gatherer.add(event, data):
            return gatherer.result()
    if gatherer.ended():
        return gatherer.result()
    raise ConnectionFailed(f"{client.where} ended its stream before the answer was whole.")


async def _sse(client: HttpClient, response: ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    """(event name, data) of server-sent events, as the HTML standard defines them. `[DONE]` stays text."""
    kind = response.headers.get("Content-Type")
    if kind is not None and "event-stream" not in kind.lower():
        raise bad_reply(client.where, f"a stream of events (its content type is '{clean(kind, 40)}')", b"")
    lines: list[str] = []
    name, rest, size = "", b"", 0
    async for part in response.content.iter_any():
        size += len(part)
        client.check_size(size)
        rest += part
        *whole, rest = rest.split(b"\n")
        for raw in whole:
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            if not line:
                if lines:
                    yield name, _data("\n".join(lines), client)
                name, lines = "", []
                continue
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                lines.append(value)
            elif field == "event":
                name = value
    # Some servers leave out the last empty line.
    last = rest.decode("utf-8", "replace").rstrip("\r")
    if last.startswith("data:"):
        lines.append(last.removeprefix("data:").removeprefix(" "))
    if lines:
        yield name, _data("\n".join(lines), client)


def _data(text: str, client: HttpClient) -> Any:
    if text.strip() == "[DONE]":
        return "[DONE]"
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise bad_reply(client.where, "whole and valid JSON in each event", text) from None


async def _aws(client: HttpClient, response: ClientResponse) -> AsyncIterator[tuple[str, Any]]:
    """(event type, data) of Amazon's event stream, decoded by botocore."""
    from botocore.eventstream import EventStreamBuffer, ParserError

    buffer, size = EventStreamBuffer(), 0
    async for part in response.content.iter_any():
        size += len(part)
        client.check_size(size)
        buffer.add_data(part)
        try:
            messages = list(buffer)
        except ParserError as error:
            raise bad_reply(client.where, f"an event stream ({error})", b"") from None
        for message in messages:
            headers = message.headers
            name = (
                headers.get(":event-type")
                or headers.get(":exception-type")
                or headers.get(":error-code")
                or ""
            )
            text = message.payload.decode("utf-8", "replace") or "{}"
            yield str(name), _data(text, client)
