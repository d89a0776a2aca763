"""Streamed answers as bytes over a real connection: however they are cut, and whatever servers
do to them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import BadReply, ConnectionFailed, RequestError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.model_interface import RemoteModel
from evalwright.models.registry import open_model
from support.wire_formats import aws_frame, sse

CASES = Path(__file__).parent / "cases"
SSE = "text/event-stream; charset=utf-8"
AWS = "application/vnd.amazon.eventstream"
DONE = b"data: [DONE]\n\n"


async def served(
    pieces: Sequence[bytes], kind: str, use: Callable[[str], Awaitable[Response]]
) -> Response:
    """What `use` makes of a server that answers each request with a body in exactly these
    pieces, then closes.
    """

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n".encode()
        )
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        return await use(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


def streamed(
    pieces: Sequence[bytes],
    provider: str = "openai",
    kind: str = SSE,
    **arguments: object,
) -> Response:
    async def use(url: str) -> Response:
        model = open_model(
            f"{provider}/{url}#claude",
            {"stream": True, "api_key_env": "TEST_KEY", **arguments},
        )
        assert isinstance(model, RemoteModel)
        try:
            return await model.answer(Generate("hello"))
        finally:
            await model.close()

    return asyncio.run(served(pieces, kind, use))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_KEY", "test-key-0123456789")


def recorded(name: str) -> tuple[bytes, dict[str, Any]]:
    """The first recorded stream of a format as bytes, and its Response."""
    case = next(
        case
        for case in json.loads((CASES / f"{name}.json").read_text())["stream"]
        if "response" in case
    )
    write = aws_frame if name == "bedrock" else sse
    return b"".join(write(event, data) for event, data in case["events"]), case[
        "response"
    ]


@pytest.mark.parametrize(
    ("provider", "name"),
    [
        ("openai", "openai-chat"),
        ("anthropic", "anthropic"),
        ("gemini", "gemini"),
        ("cohere", "cohere"),
        ("bedrock", "bedrock"),
    ],
)
def test_a_stream_cut_anywhere_is_the_whole_reply(provider: str, name: str) -> None:
    data, wanted = recorded(name)
    kind = AWS if provider == "bedrock" else SSE
    places = [
        *range(1, len(data), max(1, len(data) // 25)),
        *(len(data) - n for n in range(1, 5)),
    ]
    for pieces in [
        [data],
        [data[at : at + 1] for at in range(len(data))],
        *([data[:at], data[at:]] for at in places),
    ]:
        found = streamed(pieces, provider, kind)
        assert (found.text, found.reasoning) == (
            wanted.get("text", ""),
            wanted.get("reasoning", ""),
        )
        assert found.usage.output_tokens == wanted["usage"].get("output_tokens", 0)


def test_what_other_servers_do_to_a_stream() -> None:
    stream = (
        b': a comment\r\nid: 7\r\ndata: {"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": {"prompt_tokens": 1}}\r\n\r\n'
        b'data: {"choices": null}\r\n\r\n'
        b'data: {"choices": [{"index": 1, "delta": {"content": "another"}}]}\r\n\r\n'
        b'data: {"choices": [{"delta": {"content": "b"}, "finish_reason": "stop"}],\r\ndata: "usage": {"prompt_tokens": 3}}\r\n\r\n'
        b"data: [DONE]"
    )
    found = streamed([stream])
    assert (found.text, found.finish_reason, found.usage.input_tokens) == (
        "ab",
        "stop",
        3,
    )


@pytest.mark.parametrize("reason", ["stop", "length"])
@pytest.mark.parametrize("is_text", [True, False])
def test_an_answer_that_says_why_it_ended_is_whole_without_done(
    reason: str, is_text: bool
) -> None:
    parts = [
        {"delta": {"content": "a"}},
        {"delta": {"content": "b"}, "finish_reason": reason},
    ]
    if is_text:
        parts = [{"text": "a"}, {"text": "b", "finish_reason": reason}]
    stream = b"".join(
        b"data: %b\n\n" % json.dumps({"choices": [part]}).encode() for part in parts
    )
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}\n\n'
    for after, written in ((b"", 0), (usage, 2)):
        found = streamed(
            [stream + after], interface="completions" if is_text else "chat"
        )
        assert (found.text, found.finish_reason, found.usage.output_tokens) == (
            "ab",
            reason,
            written,
        )


def test_a_server_that_answers_in_one_piece_is_taken_at_its_word() -> None:
    reply = {"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}
    assert (
        streamed([json.dumps(reply).encode()], kind="application/json").text == "whole"
    )


@pytest.mark.parametrize(
    ("pieces", "kind", "error", "words"),
    [
        ([b"data: [1]\n\n", DONE], SSE, BadReply, "a chunk as a JSON object"),
        ([b"data: {oops\n\n", DONE], SSE, BadReply, "valid JSON in each event"),
        (
            [b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'],
            SSE,
            ConnectionFailed,
            "before the response was complete",
        ),
        ([b"<html>Please wait</html>"], "text/html", BadReply, "a stream of events"),
    ],
)
def test_streams_that_are_no_answer(
    pieces: list[bytes], kind: str, error: type[RequestError], words: str
) -> None:
    with pytest.raises(error, match=words):
        streamed(pieces, kind=kind)


def test_a_bit_that_fell_over_is_seen() -> None:
    data, _ = recorded("bedrock")
    for place in (8, 20, len(data) // 2, len(data) - 1):
        broken = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(BadReply, match="event stream"):
            streamed([broken], "bedrock", AWS)


@pytest.mark.parametrize(
    ("provider", "name", "place"),
    [
        ("openai", "openai-chat", ("model",)),
        ("anthropic", "anthropic", ("message", "model")),
        ("gemini", "gemini", ("modelVersion",)),
        ("openai", "openai-responses", ("response", "model")),
    ],
)
def test_every_name_in_a_stream_is_kept(
    provider: str, name: str, place: tuple[str, ...]
) -> None:
    case = next(
        case
        for case in json.loads((CASES / f"{name}.json").read_text())["stream"]
        if "response" in case
    )
    given: list[Any] = []
    for _, data in case["events"]:
        for step in place[:-1]:
            data = data.get(step) if isinstance(data, dict) else None
        if isinstance(data, dict) and data.get(place[-1]):
            given.append(data)
    given[0][place[-1]] = "somebody-else"
    more = {"interface": "responses"} if name == "openai-responses" else {}
    pieces = [b"".join(sse(event, data) for event, data in case["events"])]
    response = streamed(pieces, provider, **more)
    assert "somebody-else" in (response.model, *response.also_named)
