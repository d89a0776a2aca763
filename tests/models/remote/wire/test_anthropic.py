"""Anthropic's messages: what is sent, what is made of every reply, and a strict server that checks both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConfigurationError,
    ConnectionFailed,
    EmptyReply,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    TimedOut,
    UnknownName,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Usage
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http_faults import OutOfCredit
from evalwright.models.remote.wire.anthropic import LACKS, MAX_TOKENS, WIRE, messages_payload, read_message
from evalwright.models.remote.wire.format import Settings
from support.anthropic_server import KEY, AnthropicServer, message_events, message_of
from support.wire_asking import (
    HELLO,
    PREFILLED,
    TALK,
    ask,
    failing,
    from_stream,
    opened,
    splits,
    through_engine,
)
from support.wire_server import always, once, running

PLAIN = Settings("claude-sonnet-4-5", "host", refuses=LACKS)
SSE = "text/event-stream; charset=utf-8"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[AnthropicServer]:
    with running(AnthropicServer()) as found:
        yield found


# ---- the body


def test_the_body() -> None:
    full = Generate(PREFILLED, max_tokens=5, temperature=0.7, top_p=0.9, stop=("\n", "END"), seed=10, draw=2)
    assert messages_payload(full, PLAIN) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 5,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "What is it?"},
            {"role": "assistant", "content": "A cat."},
            {"role": "user", "content": "Sure?"},
            {"role": "assistant", "content": "Yes,"},
        ],
        "temperature": 0.7,
        "top_p": 0.9,
        "stop_sequences": ["END"],
    }
    assert messages_payload(Generate("hello"), PLAIN) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": MAX_TOKENS,
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.0,
    }


def test_a_prompt_needs_a_users_turn() -> None:
    with pytest.raises(Rejected, match="user's turn"):
        messages_payload(Generate((Message("system", "Be brief."),)), PLAIN)


@pytest.mark.parametrize(
    ("temperature", "top_p", "sent"),
    [
        (0.0, 0.9, {"temperature": 0.0}),
        (1.0, 0.9, {"top_p": 0.9}),
        (0.6, 1.0, {"temperature": 0.6}),
        (0.6, None, {"temperature": 0.6}),
        (0.6, 0.9, None),
    ],
)
def test_a_temperature_or_a_top_p(temperature: float, top_p: float | None, sent: Any) -> None:
    settings = replace(PLAIN, refuses=LACKS | {"temperature+top_p"})
    request = Generate("hello", temperature=temperature, top_p=top_p)
    if sent is None:
        with pytest.raises(Rejected, match="not both"):
            messages_payload(request, settings)
        return
    body = messages_payload(request, settings)
    assert {name: body[name] for name in ("temperature", "top_p") if name in body} == sent


@pytest.mark.parametrize(
    ("asked", "override", "sent"),
    [(100, None, 2148), (None, None, MAX_TOKENS + 2048), (100, 4000, 4000), (100, 2048, None)],
)
def test_a_budget_for_thinking_comes_on_top_of_the_answer(
    asked: int | None, override: int | None, sent: int | None
) -> None:
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    settings = replace(PLAIN, extra_body=thinking, max_tokens=override)
    if sent is None:
        with pytest.raises(Rejected, match="budget"):
            messages_payload(Generate("hello", max_tokens=asked), settings)
        return
    assert messages_payload(Generate("hello", max_tokens=asked), settings)["max_tokens"] == sent


# ---- replies


def reply(content: Any, stop: Any = "end_turn", **data: Any) -> Reply:
    return Reply(
        {"type": "message", "model": "m-2026", "content": content, "stop_reason": stop, **data}, 0.25, None
    )


def text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value}


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
REDACTED = {"type": "redacted_thinking", "data": "x"}


@pytest.mark.parametrize(
    ("content", "stop", "expected"),
    [
        ([text(" Paris. ")], "end_turn", (" Paris. ", "", "stop")),
        ([text("a"), text("b")], "stop_sequence", ("ab", "", "stop")),
        ([THOUGHT, text("a")], "max_tokens", ("a", "Hm.", "length")),
        ([THOUGHT, THOUGHT, REDACTED, text("a")], "end_turn", ("a", "Hm.\n\nHm.", "stop")),
        ([THOUGHT], "max_tokens", ("", "Hm.", "length")),
        ([], "max_tokens", ("", "", "length")),
        ([], "refusal", ("", "", "content_filter")),
        ([text("a")], "refusal", ("a", "", "content_filter")),
        ([text("a")], "model_context_window_exceeded", ("a", "", "length")),
        ([text("a")], "pause_turn", ("a", "", "pause_turn")),
        ([{"type": "tool_use", "id": "t", "name": "f", "input": {}}], "tool_use", ("", "", "tool_use")),
        ([text("a")], None, ("a", "", "")),
        ([{"type": "something_new"}, text("a")], "end_turn", ("a", "", "stop")),
    ],
)
def test_shapes_of_replies(content: Any, stop: Any, expected: tuple[str, str, str]) -> None:
    found = read_message(reply(content, stop), HELLO, PLAIN)
    assert (found.text, found.reasoning, found.finish_reason) == expected
    assert (found.model, found.latency) == ("m-2026", 0.25)


def test_stop_strings_of_white_space_are_applied_here() -> None:
    request = Generate("hello", stop=("\n\n", "END"))
    found = read_message(reply([text("one\n\ntwo END")], "max_tokens"), request, PLAIN)
    assert (found.text, found.finish_reason) == ("one", "stop")


def test_cached_input_is_a_part_of_the_input() -> None:
    usage = {
        "input_tokens": 25,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 2000,
        "output_tokens": 15,
        "output_tokens_details": {"thinking_tokens": 9},
    }
    assert read_message(reply([text("a")], usage=usage), HELLO, PLAIN).usage == Usage(2125, 15, 9, 2000)
    nothing: Any
    for nothing in (
        None,
        {},
        [],
        {"input_tokens": None, "output_tokens": "7", "output_tokens_details": None},
    ):
        assert read_message(reply([text("a")], usage=nothing), HELLO, PLAIN).usage == Usage()


@pytest.mark.parametrize(
    "data", [[], None, "x", {}, {"content": "a"}, {"content": ["a"]}, {"content": [{"type": "text"}]}]
)
def test_what_is_not_documented_is_a_bad_reply(data: Any) -> None:
    with pytest.raises(BadReply, match="what the interface documents"):
        read_message(Reply(data, 0.0, None), HELLO, PLAIN)


def test_nothing_at_all_is_an_empty_reply() -> None:
    with pytest.raises(EmptyReply):
        read_message(reply([], usage={"output_tokens": 3}), HELLO, PLAIN)
    stopped = Generate("hello", stop=("END",))
    assert read_message(reply([], "stop_sequence", usage={"output_tokens": 3}), stopped, PLAIN).text == ""


# ---- streams


@pytest.mark.parametrize("kind", [None, "thinking", "refusal", "cached", "max-tokens"])
def test_any_chunking_of_a_stream_gives_the_reply(kind: str | None) -> None:
    body = {"messages": [{"role": "user", "content": "hé"}]}
    message = message_of(body, kind, "m")
    whole = read_message(Reply(message, 0.0, None), HELLO, PLAIN)
    data = b"".join(message_events(message))
    for pieces in splits(data):
        assert from_stream(WIRE, pieces, PLAIN, SSE) == whole


@pytest.mark.parametrize(
    "events",
    [
        ["message_stop"],
        ["message_delta", "message_stop"],
        ["message_start", "content_block_delta", "message_stop"],
    ],
)
def test_events_out_of_order_are_no_answer(events: list[str]) -> None:
    message = message_of({"messages": [{"role": "user", "content": "x"}]}, None, "m")
    frames = [
        frame
        for frame in message_events(message)
        if any(f"event: {name}\n".encode() in frame for name in events)
    ]
    with pytest.raises(BadReply):
        from_stream(WIRE, frames, PLAIN, SSE)


# ---- the whole way


def name_at(server: AnthropicServer, model: str = "claude-sonnet-4-5") -> str:
    return f"anthropic/{server.url}#{model}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt", ["hello", TALK, PREFILLED])
@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 0.5, "stop": ("\n", "END")}, {"seed": 3, "top_p": 0.9}]
)
def test_every_request_fits_the_schema(
    server: AnthropicServer, stream: bool, prompt: Any, sampling: Any
) -> None:
    found = ask(opened(name_at(server), stream=stream), Generate(prompt, **sampling))
    last = prompt if isinstance(prompt, str) else prompt[-1].content
    assert (found.text, found.finish_reason, found.usage) == (f"You said: {last} ✓", "stop", Usage(25, 15))


@pytest.mark.parametrize(
    ("model", "thinking", "shown"),
    [
        ("claude-3-5-haiku-20241022", None, ""),
        ("claude-3-7-sonnet-20250219", True, "thinking"),
        ("claude-sonnet-4-20250514", 2048, "thinking"),
        ("claude-opus-4-1-20250805", "on", "thinking"),
        ("claude-haiku-4-5", False, ""),
        ("claude-sonnet-4-6", "low", "thinking"),
        ("claude-opus-4-6", "off", ""),
        ("claude-opus-4-7", "xhigh", "thinking"),
        ("claude-opus-4-8", "off", ""),
        ("claude-opus-5", "off", ""),
        ("claude-opus-5-5", "max", "thinking"),
        ("claude-fable-5-1", "on", "thinking"),
        ("claude-mythos-preview", None, ""),
        ("claude-haiku-5-5", "high", "thinking"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_every_family_gets_what_it_takes(
    server: AnthropicServer, model: str, thinking: Any, shown: str, stream: bool
) -> None:
    request = Generate(TALK, max_tokens=100, temperature=0.0, top_p=0.95, stop=("END",), seed=1)
    found = ask(opened(name_at(server, model), thinking=thinking, stream=stream), request)
    assert found.reasoning == ("Let me see. 思考" if shown else "")
    assert found.usage.reasoning_tokens == (9 if shown else 0)


@pytest.mark.parametrize("model", ["claude-opus-4-6", "claude-opus-5", "claude-sonnet-5-5"])
def test_a_prefill_is_refused_unasked_where_the_model_takes_none(server: AnthropicServer, model: str) -> None:
    asked = len(server.asked)
    error = failing(opened(name_at(server, model)), Generate(PREFILLED))
    assert type(error) is Rejected and "prefill" in str(error)
    with pytest.raises(Rejected, match="prefill"):
        opened(name_at(server, model)).body(Generate(PREFILLED))
    error = failing(opened(name_at(server), thinking="on"), Generate(PREFILLED))
    assert type(error) is Rejected and "prefill" in str(error)
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("model", "arguments", "words"),
    [
        ("claude-sonnet-4-5", {"seed": 1}, "cannot be told a seed"),
        ("claude-sonnet-4-5", {"max_tokens_field": "max_completion_tokens"}, "leave out max_tokens_field"),
        ("claude-opus-5-5", {"thinking": "off"}, "level of thinking"),
        ("claude-opus-4-7", {"thinking": 2048}, "level of thinking"),
        ("claude-3-5-haiku-latest", {"thinking": "on"}, "No thinking switch"),
        ("claude-sonnet-4-5", {"thinking": "hihg"}, "level of thinking"),
    ],
)
def test_arguments_that_cannot_be_sent(model: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigurationError, UnknownName), match=words):
        opened(f"anthropic/{model}", **arguments)


FAULTS: list[tuple[str, type[RequestError], str]] = [
    ("400", Rejected, "max_tokens: 99999"),
    ("credit", OutOfCredit, "credit balance"),
    ("401", AuthenticationFailed, r"invalid x-api-key\. The key came from \$ANTHROPIC_API_KEY"),
    ("402", OutOfCredit, "billing"),
    ("403", AuthenticationFailed, "permission"),
    ("404", Rejected, "claude-nothing"),
    ("413", Rejected, "maximum size"),
    ("429", RateLimited, "50 requests per minute"),
    ("500", Overloaded, "Internal server error"),
    ("504", Overloaded, "timed out"),
    ("529", Overloaded, "Overloaded"),
    ("error-in-200", Overloaded, "Overloaded"),
    ("empty", EmptyReply, "without content"),
    ("reset", ConnectionFailed, "No connection|broke"),
    ("cut", ConnectionFailed, "broke"),
    ("truncated", BadReply, "whole and valid JSON"),
    ("invalid-json", BadReply, "whole and valid JSON"),
    ("content-type", BadReply, "text/html"),
    ("hang", TimedOut, "did not answer"),
]


@pytest.mark.parametrize(("kind", "error", "words"), FAULTS)
def test_faults(kind: str, error: type[RequestError], words: str) -> None:
    import re

    with running(AnthropicServer(plan=always(kind))) as server:
        found = failing(opened(name_at(server), timeout=0.5 if kind == "hang" else 30))
    assert type(found) is error and re.search(words, str(found)), found
    assert KEY not in str(found)


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("stream-cut", ConnectionFailed, "before the answer was whole"),
        ("stream-broken", ConnectionFailed, "before the answer was whole|No connection"),
        ("stream-error", Overloaded, "Overloaded"),
        ("stream-garbage", BadReply, "valid JSON in each event"),
        ("529", Overloaded, "Overloaded"),
        ("empty", EmptyReply, "without content"),
    ],
)
def test_faults_of_streams(kind: str, error: type[RequestError], words: str) -> None:
    import re

    with running(AnthropicServer(plan=always(kind))) as server:
        found = failing(opened(name_at(server), stream=True))
    assert type(found) is error and re.search(words, str(found)), found


def test_limits_are_read_from_a_refusal_and_from_an_answer() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2020-01-01T00:00:00Z",
        "anthropic-ratelimit-tokens-limit": "50000",
        "anthropic-ratelimit-tokens-remaining": "49000",
        "anthropic-ratelimit-input-tokens-limit": "40000",
        "anthropic-ratelimit-input-tokens-remaining": "39000",
    }
    with running(AnthropicServer(plan=once("429"), headers=headers)) as server:
        model = opened(name_at(server))
        error = failing(model)
        assert (error.retry_after, error.rate_limits.remaining_requests) == (7.0, 0)
        limits = ask(model).rate_limits
    assert limits is not None
    assert (limits.limit_requests, limits.remaining_requests, limits.reset_requests) == (50, 49, 0.0)
    assert (limits.limit_tokens, limits.remaining_tokens) == (40000, 39000)


@pytest.mark.parametrize("stream", [False, True])
def test_through_the_engine(tmp_path: Path, stream: bool) -> None:
    """Retried where that helps, stored whole, asked once."""
    requests = [Generate(f"question {n}", max_tokens=20) for n in range(5)]
    with running(AnthropicServer(plan=once("529"))) as server:
        model = opened(name_at(server), stream=stream)
        answers = through_engine(tmp_path / "home", model, requests)
        asked = len(server.asked)
        again = through_engine(tmp_path / "home", opened(name_at(server), stream=stream), requests)
    assert [answer.text for answer in answers] == [f"You said: question {n} ✓" for n in range(5)]
    assert [answer.text for answer in again] == [answer.text for answer in answers]
    assert (asked, len(server.asked)) == (10, 10)


def test_the_key_is_shown_nowhere(server: AnthropicServer) -> None:
    model = opened(name_at(server))
    ask(model)
    assert server.asked[-1].headers["x-api-key"] == KEY
    assert "Authorization" not in server.asked[-1].headers
    assert KEY not in json.dumps(model.describe()) + repr(model) + model.fingerprint
    assert model.describe()["key"] == "$ANTHROPIC_API_KEY"
    assert model.describe()["arguments"]["refuses"] == ["seed", "temperature+top_p"]
