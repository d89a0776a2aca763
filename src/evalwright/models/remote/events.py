"""A streamed reply: the events in its bytes, however they are cut, handed to a Gatherer until the
answer is whole.

A stream that ends before the answer is whole is a broken connection, never a short answer.
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
"""The content type of each way in which events stand in a stream."""


_FRAME_HEAD = 12
_LARGEST_FRAME = 25 << 20
"""Bytes of a frame of Amazon's, which says its length before it comes; 24 MiB of payload are
allowed.
"""


async def gathered(
    where: str,
    kind: str | None,
    pieces: AsyncIterator[bytes],
    gatherer: Gatherer,
    decoding: str,
) -> Any:
    """The reply's JSON that the events make. where: who sends. kind: the content type. pieces: the
    body as it comes.

    Raises BadReply for what is no stream of events, ConnectionFailed where it ends too early, and
    the error that an event carries.
    """
    if decoding == "sse" and kind is not None and "event-stream" not in kind.lower():
        raise bad_reply(
            where, f"a stream of events (its content type is '{clean(kind, 40)}')", b""
        )
    events = _server_sent(pieces) if decoding == "sse" else _amazon(where, pieces)
    begun = False
    async for name, text in events:
        try:
            if gatherer.add(name, _data(where, text)):
                return gatherer.result()
        except RequestError as error:
            # What broke off in its middle may be billed, whatever broke it off.
            error.taken = error.taken or begun
            raise
        begun = True
    if gatherer.ended():
        return gatherer.result()
    raise ConnectionFailed(
        f"{where} ended its stream before the response was complete."
    )


def _data(where: str, text: str) -> Any:
    """`[DONE]` stays text."""
    if text.strip() == "[DONE]":
        return "[DONE]"
    try:
        return from_json(text)
    except ValueError:
        raise bad_reply(where, "complete and valid JSON in each event", text) from None


async def _server_sent(pieces: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, str]]:
    """(event name, data) of server-sent events, as the HTML standard defines them."""
    data: list[str] = []
    name = ""
    async for line in _lines(pieces):
        if not line:
            if data:
                yield name, "\n".join(data)
            name = ""
            data = []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    if data:  # some servers leave out the last empty line
        yield name, "\n".join(data)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    rest: list[bytes] = []
    async for piece in pieces:
        first, *more = piece.split(b"\n")
        rest.append(first)
        for following in more:
            yield b"".join(rest).rstrip(b"\r").decode("utf-8", "replace")
            rest = [following]
    last = b"".join(rest).rstrip(b"\r").decode("utf-8", "replace")
    if last:
        yield last


async def _amazon(
    where: str, pieces: AsyncIterator[bytes]
) -> AsyncIterator[tuple[str, str]]:
    """(event type, data) of Amazon's event stream, decoded by botocore one whole frame at a time."""
    from botocore.eventstream import EventStreamBuffer, ParserError

    rest = bytearray()
    async for piece in pieces:
        rest += piece
        # A frame begins with its length. botocore's own buffer is copied with every piece, so it
        # gets whole frames only.
        while len(rest) >= _FRAME_HEAD:
            length = int.from_bytes(rest[:4])
            if (
                zlib.crc32(rest[:8]) != int.from_bytes(rest[8:12])
                or not _FRAME_HEAD < length <= _LARGEST_FRAME
            ):
                raise bad_reply(
                    where, "an event stream (the head of a frame is damaged)", b""
                )
            if len(rest) < length:
                break
            decoder = EventStreamBuffer()
            try:
                decoder.add_data(bytes(rest[:length]))
                messages = list(decoder)
            except ParserError as error:
                raise bad_reply(where, f"an event stream ({error})", b"") from None
            del rest[:length]
            for message in messages:
                names = (
                    message.headers.get(f":{kind}")
                    for kind in ("event-type", "exception-type", "error-code")
                )
                yield (
                    str(next(filter(None, names), "")),
                    message.payload.decode("utf-8", "replace") or "{}",
                )
