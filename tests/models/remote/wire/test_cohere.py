"""Cohere's chat: every body that is sent, every shape of reply, and a strict server asked whole and in a stream."""

from __future__ import annotations

from collections.abc import Iterator
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
)
from evalwright.core.requests import Generate
from evalwright.core.responses import Usage
from evalwright.models.registry import open_model
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http_faults import OutOfCredit
from evalwright.models.remote.wire.cohere import WIRE, cohere_payload, read_cohere
from evalwright.models.remote.wire.format import Settings
from support.cohere_server import SCHEMA, CohereServer
from support.strict_asking import (
    HELLO,
    PREFILLED,
    TALK,
    ask,
    check_every_cut,
    failing,
    remote,
    through_the_engine,
)
from support.strict_server import KEY, check_schema, strictly

PLAIN = Settings("m", "host", key_source="$A_KEY")
ASKED = {
    "model": "m",
    "messages": [{"role": "user", "content": "hello"}],
    "max_tokens": 32,
    "temperature": 0.0,
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[CohereServer]:
    monkeypatch.setenv("COHERE_API_KEY", KEY)
    with strictly(CohereServer()) as found:
        yield found


@pytest.mark.parametrize(
    ("request_", "settings", "body"),
    [
        (HELLO, PLAIN, {}),
        (
            Generate(TALK, max_tokens=9, temperature=0.5, top_p=0.9, stop=("\n", "END"), seed=3, draw=2),
            PLAIN,
            {
                "messages": [{"role": turn.role, "content": turn.content} for turn in TALK],
                "max_tokens": 9,
                "temperature": 0.5,
                "p": 0.9,
                "stop_sequences": ["\n", "END"],
                "seed": 5,
            },
        ),
        (Generate("hello", max_tokens=32, top_p=1.0), PLAIN, {"p": 0.99}),
        (
            HELLO,
            Settings("m", "host", max_tokens=64, temperature=1.0, top_p=0.5, seed=1, extra_body={"k": 5}),
            {"max_tokens": 64, "temperature": 1.0, "p": 0.5, "seed": 1, "k": 5},
        ),
        (
            HELLO,
            Settings("m", "host", extra_body={"thinking": {"type": "enabled", "token_budget": 500}}),
            {"thinking": {"type": "enabled", "token_budget": 500}},
        ),
    ],
)
def test_bodies(request_: Generate, settings: Settings, body: dict[str, Any]) -> None:
    found = cohere_payload(request_, settings)
    assert found == {**ASKED, **body}
    check_schema(SCHEMA, found)


def test_a_prefill_is_refused_with_a_reason() -> None:
    with pytest.raises(Rejected, match="does not go on from the beginning of an answer"):
        cohere_payload(Generate(PREFILLED), PLAIN)


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ([{"type": "text", "text": "a"}], "a", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab", ""),
        ([{"type": "thinking", "thinking": "r"}, {"type": "text", "text": "a"}], "a", "r"),
        ([{"type": "text", "text": "a"}, {"type": "new", "text": "b"}, "odd"], "a", ""),
    ],
)
def test_parts_of_content(content: Any, text: str, reasoning: str) -> None:
    data = {"message": {"role": "assistant", "content": content}, "finish_reason": "COMPLETE"}
    found = read_cohere(Reply(data, 0.1, None), HELLO, PLAIN)
    assert (found.text, found.reasoning, found.finish_reason) == (text, reasoning, "stop")
    assert found.usage == Usage()


def test_usage_counts_tokens_and_not_what_is_billed() -> None:
    server = CohereServer()
    body = {"model": "m"}
    assert read_cohere(Reply(server.whole(body, ""), 0.1, None), HELLO, PLAIN).usage == Usage(71, 20, 0, 64)
    assert read_cohere(Reply(server.whole(body, "unmeasured"), 0.1, None), HELLO, PLAIN).usage == Usage(5, 18)
    data = {**server.whole(body, ""), "usage": {"tokens": {"input_tokens": 71.0, "output_tokens": "x"}}}
    assert read_cohere(Reply(data, 0.1, None), HELLO, PLAIN).usage == Usage(71)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([], BadReply),
        ({}, BadReply),
        ({"message": 7}, BadReply),
        ({"message": "it broke"}, Overloaded),
        ({"message": {"content": []}, "finish_reason": "COMPLETE"}, EmptyReply),
        ({"message": {"content": None}}, EmptyReply),
        ({"message": {"content": []}, "finish_reason": "ERROR"}, Overloaded),
        ({"message": {"content": []}, "finish_reason": "TIMEOUT"}, TimedOut),
    ],
)
def test_replies_that_are_no_answers(data: Any, error: type[RequestError]) -> None:
    with pytest.raises(RequestError) as caught:
        read_cohere(Reply(data, 0.0, None), HELLO, PLAIN)
    assert type(caught.value) is error


@pytest.mark.parametrize("kind", ["", "length", "tool", "toxic"])
def test_a_stream_cut_anywhere_is_the_whole_reply(kind: str) -> None:
    server, body = CohereServer("Zürich, “natürlich”."), {"model": "command-a-reasoning-08-2025"}
    found = check_every_cut(WIRE, server.events(body, kind), PLAIN)
    assert found == read_cohere(Reply(server.whole(body, kind), 0.5, None), HELLO, PLAIN)


@pytest.mark.parametrize("stream", [False, True])
def test_through_the_engine(stream: bool, server: CohereServer, tmp_path: Path) -> None:
    server.piece = 7
    model = remote(f"cohere/{server.url}#command-a-reasoning-08-2025", stream=stream, thinking=200)
    found, counts = through_the_engine(model, tmp_path, Generate(TALK, max_tokens=20))
    assert (found.text, found.reasoning, found.finish_reason) == (server.answer, "Hm. “Where”?", "stop")
    assert found.usage == Usage(71, 20, 0, 64)
    assert (counts["asked"], counts["failed"]) == (1, 0)
    assert server.log[0]["body"]["thinking"] == {"type": "enabled", "token_budget": 200}


def test_an_error_in_place_of_an_event(server: CohereServer) -> None:
    server.script = ["error-event"]
    error = failing(remote(f"cohere/{server.url}#m", stream=True))
    assert isinstance(error, Overloaded)
    assert "It broke." in str(error)


def test_thinking_off(server: CohereServer) -> None:
    found = ask(remote(f"cohere/{server.url}#command-a-reasoning-08-2025", thinking="off"))
    assert found.reasoning == ""
    assert server.log[0]["body"]["thinking"] == {"type": "disabled"}
    with pytest.raises(ConfigurationError, match="No thinking switch is known"):
        open_model("cohere/command-a-03-2025", {"thinking": "on"})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "finish"),
    [("length", "length"), ("stop", "stop"), ("tool", "TOOL_CALL"), ("toxic", "content_filter")],
)
def test_finish_reasons(kind: str, finish: str, stream: bool, server: CohereServer) -> None:
    server.script = [kind]
    assert ask(remote(f"cohere/{server.url}#m", stream=stream)).finish_reason == finish


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("429", RateLimited),
        ("503", Overloaded),
        ("401", AuthenticationFailed),
        ("402", OutOfCredit),
        ("422", Rejected),
        ("html", BadReply),
        ("broken-json", BadReply),
        ("cut", ConnectionFailed),
        ("empty", EmptyReply),
        ("error", Overloaded),
        ("timeout", TimedOut),
    ],
)
def test_faults(kind: str, error: type[RequestError], stream: bool, server: CohereServer) -> None:
    server.script = [kind]
    model = remote(f"cohere/{server.url}#m", stream=stream)
    found = failing(model)
    assert type(found) is error
    if kind == "429":
        assert found.retry_after == 7.0
    if kind in ("429", "503"):
        assert "wrong on purpose" in str(found)
    assert ask(model).text == server.answer


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_is_blocked_is_a_filtered_answer(stream: bool, server: CohereServer) -> None:
    server.script = ["498"]
    found = ask(remote(f"cohere/{server.url}#m", stream=stream))
    assert (found.text, found.finish_reason) == ("", "content_filter")


def test_the_other_name_of_the_key_and_its_masking(
    server: CohereServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COHERE_API_KEY")
    monkeypatch.setenv("CO_API_KEY", "co-wrong-secret-value")
    model = remote(f"cohere/{server.url}#m")
    error = failing(model)
    assert isinstance(error, AuthenticationFailed)
    assert "$CO_API_KEY" in str(error)
    assert "co-wrong-secret" not in f"{error} {model.describe()}"


def test_the_server_is_strict(server: CohereServer) -> None:
    error = failing(remote(f"cohere/{server.url}#m", extra_body={"top_p": 0.5}))
    assert isinstance(error, Rejected)
    assert "'top_p' was unexpected" in str(error)
