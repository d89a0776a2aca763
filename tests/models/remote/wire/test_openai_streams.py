"""OpenAI's streamed answers, chat and completions: the same Response as in one piece, however the stream is cut."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConnectionFailed,
    EmptyReply,
    Overloaded,
    RateLimited,
    RequestError,
    TimedOut,
)
from evalwright.core.requests import Generate
from evalwright.core.responses import Response, Usage
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http_faults import OutOfCredit
from evalwright.models.remote.wire import wire
from evalwright.models.remote.wire.format import Settings
from support.openai_answers import hash_answer
from support.openai_faults import Faults
from support.openai_limits import Limits
from support.openai_server import OpenAIServer, serving
from support.openai_stream import events
from support.strict_asking import HELLO, ask, check_every_cut, failing, in_pieces, remote, through_the_engine

PLAIN = Settings("m", "host")
USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 16},
    "completion_tokens_details": {"reasoning_tokens": 12},
}
COUNTED = {"stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serving() as found:
        yield found


def chat(message: Mapping[str, Any], finish: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m-2026",
        "choices": [choice],
        "usage": USAGE,
    }


def text(words: str, finish: str = "length") -> dict[str, Any]:
    choice = {"index": 0, "text": words, "finish_reason": finish}
    return {
        "id": "1",
        "object": "text_completion",
        "created": 0,
        "model": "m-2026",
        "choices": [choice],
        "usage": USAGE,
    }


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("openai-chat", chat({"role": "assistant", "content": "Zürich, “natürlich”."})),
        ("openai-chat", chat({"content": "Paris", "reasoning_content": "Hm, where?"}, "length")),
        ("openai-chat", chat({"content": "Paris", "reasoning": "Hm."}, "content_filter")),
        ("openai-chat", chat({"content": None, "refusal": "I cannot do that."})),
        ("openai-completions", text(" Zürich, “natürlich”.")),
    ],
)
def test_a_stream_cut_anywhere_is_the_whole_reply(name: str, reply: dict[str, Any]) -> None:
    format_ = wire(name)
    found = check_every_cut(format_, events(reply, COUNTED), PLAIN)
    assert found == format_.read(Reply(reply, 0.5, None), HELLO, PLAIN)
    assert found.usage == Usage(30, 20, 12, 16)


def gather(stream: bytes, name: str = "openai-chat") -> Response:
    return asyncio.run(in_pieces(wire(name), [stream], PLAIN))


def test_what_other_servers_do_to_a_stream() -> None:
    stream = (
        b': a comment\r\nid: 7\r\ndata: {"choices": [{"index": 0, "delta": {"content": "a"}}], "usage": {"prompt_tokens": 1}}\r\n\r\n'
        b'data: {"choices": null}\r\n\r\n'
        b'data: {"choices": [{"index": 1, "delta": {"content": "another"}}]}\r\n\r\n'
        b'data: {"choices": [{"delta": {"content": "b"}, "finish_reason": "stop"}],\r\ndata: "usage": {"prompt_tokens": 3}}\r\n\r\n'
        b"data: [DONE]"
    )
    found = gather(stream)
    assert (found.text, found.finish_reason, found.usage) == ("ab", "stop", Usage(3))


def test_tool_calls_and_parts_in_a_stream() -> None:
    called = b'data: {"choices": [{"delta": {"tool_calls": [{"index": 0}]}, "finish_reason": "tool_calls"}]}\n\ndata: [DONE]\n\n'
    assert gather(called).finish_reason == "tool_calls"
    parts = (
        b'data: {"choices": [{"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}}]}\n\n'
        b'data: {"choices": [{"delta": {"content": [{"type": "text", "text": "Paris"}]}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    )
    found = gather(parts)
    assert (found.text, found.reasoning) == ("Paris", "Hm.")


@pytest.mark.parametrize("event", ["[1]", '"text"', "null"])
@pytest.mark.parametrize("name", ["openai-chat", "openai-completions"])
def test_events_that_are_no_chunks(event: str, name: str) -> None:
    with pytest.raises(BadReply, match="a chunk as a JSON object"):
        gather(f"data: {event}\n\n".encode(), name)


@pytest.mark.parametrize("interface", ["chat", "completions"])
def test_streamed_through_the_engine(interface: str, server: OpenAIServer, tmp_path: Path) -> None:
    request = Generate("hello", max_tokens=20)
    model = remote(f"openai/{server.url}#m", interface=interface, stream=True)
    found, counts = through_the_engine(model, tmp_path, request)
    whole = ask(remote(f"openai/{server.url}#m", interface=interface), request)
    assert found.text == whole.text == hash_answer("hello")
    assert (found.usage, found.finish_reason, found.model) == (whole.usage, whole.finish_reason, whole.model)
    assert found.usage.output_tokens > 0
    assert counts["asked"] == 1
    assert server.log is not None
    asked = [entry["body"] for entry in server.log[-2:]]
    assert asked[0]["stream"] is True and asked[0]["stream_options"] == {"include_usage": True}
    assert "stream" not in asked[1]


def test_rate_limits_of_a_stream() -> None:
    with serving(limits=Limits(requests_per_minute=9)) as limited:
        limits = ask(remote(f"openai/{limited.url}#m", stream=True)).rate_limits
    assert limits is not None and limits.limit_requests == 9


FAULTS: dict[str, tuple[type[RequestError], str]] = {
    "429-retry-after": (RateLimited, "slow down"),
    "insufficient-quota": (OutOfCredit, "credit"),
    "503": (Overloaded, "overloaded"),
    "401": (AuthenticationFailed, "Incorrect API key"),
    "reset": (ConnectionFailed, "No connection|broke"),
    "cut": (ConnectionFailed, "broke before the answer was whole"),
    "truncated": (ConnectionFailed, "ended its stream before the answer was whole"),
    "invalid-json": (BadReply, "whole and valid JSON in each event"),
    "content-type": (BadReply, "a stream of events"),
    "missing-field": (EmptyReply, "without content"),
    "empty": (EmptyReply, "without content"),
    "error-in-200": (Overloaded, "Upstream overloaded"),
    "hang": (TimedOut, "did not answer within"),
}


@pytest.mark.parametrize("interface", ["chat", "completions"])
def test_every_fault_of_a_stream_is_named(interface: str) -> None:
    """Each once, and then the good answer: a fault leaves nothing behind, and a part of an answer is never an answer."""
    faults = Faults(retry_after=3, script=lambda body, before: body["user"] if before == 0 else None)
    with serving(faults=faults) as faulty:
        for kind, (error, words) in FAULTS.items():
            model = remote(
                f"openai/{faulty.url}#m",
                interface=interface,
                stream=True,
                timeout=0.5,
                extra_body={"user": kind},
            )
            found = failing(model)
            assert type(found) is error, kind
            assert any(word in str(found) for word in words.split("|")), (kind, str(found))
            assert ask(model).text == hash_answer("hello")
