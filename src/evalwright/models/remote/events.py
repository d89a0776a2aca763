"""Splits streamed bytes into events, which a Gatherer collects until the answer is complete.

A stream that ends earlier is a broken connection, never a short answer.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any

from evalwright.bounded import from_json
from evalwright.core.errors import ConnectionFailed, RequestError
from evalwright.models.remote.exchange import Gatherer
from evalwright.models.remote.http_faults import bad_reply, clean

KINDS = {"sse": "text/event-stream", "aws": "application/vnd.amazon.eventstream"}
"""The content type of each encoding of events in a stream."""


_FRAME_HEAD = 12
_LARGEST_FRAME = 25 << 20
"""Most bytes of a frame of Amazon's, which announces its length; 24 MiB of payload are allowed."""


async def gather_events(
    where: str,
    content_type: str | None,
    pieces: AsyncIterator[bytes],
    gatherer: Gatherer,
    decoding: str,
) -> Any:
    """Assemble a reply's JSON from its events.

    Args:
        where: the host, for messages.
        content_type: the reply's content type.
        pieces: the body's chunks.
        gatherer: collects the events.
        decoding: the encoding of the events, a key of `KINDS`.

    Raises:
        BadReply: the body is not an event stream.
        ConnectionFailed: it ends too early.
        RequestError: an event describes it.
    """
    if (
        decoding == "sse"
        and content_type is not None
        and "event-stream" not in content_type.lower()
    ):
        raise bad_reply(
            where,
            f"a stream of events (its content type is '{clean(content_type, 40)}')",
            b"",
        )
    events = _server_sent(pieces) if decoding == "sse" else _amazon(where, pieces)
    begun = False
    async for name, text in events:
        try:
            if gatherer.add(name, _parse_event(where, text)):
                return gatherer.result()
        except RequestError as error:
            # A stream that broke in the middle may be billed, whatever broke it.
            error.taken = error.taken or begun
            raise
        begun = True
    if gatherer.ended():
        return gatherer.result()
    raise ConnectionFailed(
        f"{where} ended its stream before the response was complete."
    )


def _parse_event(where: str, text: str) -> Any:
    """Return an event's JSON, or the text `[DONE]`."""
    if text.strip() == "[DONE]":
        return "[DONE]"
    try:
        return from_json(text)
    except ValueError:
        raise bad_reply(where, "complete and valid JSON in each event", text) from None


async def _server_sent(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """Yield (event name, data) of server-sent events, as the HTML standard defines them."""
    data_lines: list[str] = []
    name = ""
    async for line in _lines(pieces):
        if not line:
            if data_lines:
                yield name, "\n".join(data_lines)
            name = ""
            data_lines = []
            continue
        field, _, content = line.partition(":")
        content = content.removeprefix(" ")
        if field == "data":
            data_lines.append(content)
        elif field == "event":
            name = content
    if data_lines:  # some servers leave out the last empty line
        yield name, "\n".join(data_lines)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    pending: list[bytes] = []
    async for piece in pieces:
        first, *later_lines = piece.split(b"\n")
        pending.append(first)
        for following in later_lines:
            yield b"".join(pending).rstrip(b"\r").decode("utf-8", "replace")
            pending = [following]
    last = b"".join(pending).rstrip(b"\r").decode("utf-8", "replace")
    if last:
        yield last


async def _amazon(
    where: str, pieces: AsyncIterator[bytes]
) -> AsyncIterator[tuple[str, str]]:
    """Yield (event type, data) of Amazon's event stream, decoded by botocore frame by frame."""
    from botocore.eventstream import EventStreamBuffer, ParserError

    buffer = bytearray()
    async for piece in pieces:
        buffer += piece
        # A frame begins with its length. botocore copies its own buffer with every piece, so it
        # gets only whole frames.
        while len(buffer) >= _FRAME_HEAD:
            length = int.from_bytes(buffer[:4])
            if (
                zlib.crc32(buffer[:8]) != int.from_bytes(buffer[8:12])
                or not _FRAME_HEAD < length <= _LARGEST_FRAME
            ):
                raise bad_reply(
                    where, "an event stream (the head of a frame is damaged)", b""
                )
            if len(buffer) < length:
                break
            decoder = EventStreamBuffer()
            try:
                decoder.add_data(bytes(buffer[:length]))
                messages = list(decoder)
            except ParserError as error:
                raise bad_reply(where, f"an event stream ({error})", b"") from None
            del buffer[:length]
            for message in messages:
                names = (
                    message.headers.get(f":{header_name}")
                    for header_name in ("event-type", "exception-type", "error-code")
                )
                yield (
                    str(next(filter(None, names), "")),
                    message.payload.decode("utf-8", "replace") or "{}",
                )
