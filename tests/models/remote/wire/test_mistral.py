"""Mistral's chat completions: every body that is sent, every shape of reply, and a strict server asked whole and in a stream."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evalwright.models.remote.wire.mistral import WIRE, mistral_payload, read_mistral

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
)
from evalwright.core.requests import Generate
from evalwright.core.responses import Usage
from evalwright.models.registry import open_model
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http_faults import OutOfCredit
from evalwright.models.remote.wire.format import Settings
from support.mistral_server import SCHEMA, MistralServer
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
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MistralServer]:
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    with strictly(MistralServer()) as found:
        yield found


@pytest.mark.parametrize(
    ("request_", "settings", "body"),
    [
        (HELLO, PLAIN, {}),
        (Generate("hello", max_tokens=32, top_p=0.9), PLAIN, {}),
        (
            Generate(TALK, max_tokens=9, temperature=0.5, top_p=0.9, stop=("\n", "END"), seed=3, draw=2),
            PLAIN,
            {
                "messages": [{"role": turn.role, "content": turn.content} for turn in TALK],
                "max_tokens": 9,
                "temperature": 0.5,
                "top_p": 0.9,
                "stop": ["\n", "END"],
                "random_seed": 5,
            },
        ),
        (
            Generate(PREFILLED, max_tokens=32),
            PLAIN,
            {
                "messages": [
                    {"role": "user", "content": "Where?"},
                    {"role": "assistant", "content": "In the city of", "prefix": True},
                ]
            },
        ),
        (
            HELLO,
            Settings(
                "m",
                "host",
                max_tokens=64,
                temperature=1.0,
                top_p=0.5,
                seed=1,
                extra_body={"safe_prompt": True},
            ),
            {"max_tokens": 64, "temperature": 1.0, "top_p": 0.5, "random_seed": 1, "safe_prompt": True},
        ),
    ],
)
def test_bodies(request_: Generate, settings: Settings, body: dict[str, Any]) -> None:
    found = mistral_payload(request_, settings)
    assert found == {**ASKED, **body}
    check_schema(SCHEMA, found)
    assert all("prefix" not in turn.as_dict() for turn in request_.prompt if not isinstance(turn, str))


def test_finish_reasons_and_errors_in_a_reply() -> None:
    server, body = MistralServer(), {"model": "m"}

    def read(data: Any) -> Any:
        return read_mistral(Reply(data, 0.1, None), HELLO, PLAIN)

    assert read(server.whole(body, "")).finish_reason == "stop"
    assert read(server.whole(body, "length")).finish_reason == "length"
    assert read(server.whole(body, "model-length")).finish_reason == "length"
    assert read(server.whole(body, "tool")).finish_reason == "tool_calls"
    assert read(server.whole(body, "")).usage == Usage(30, 20, 0, 16)
    with pytest.raises(Overloaded, match="failed while it answered"):
        read(server.whole(body, "error"))
    with pytest.raises(Overloaded, match="It broke"):
        read(server.error(503, "It broke.", "", ""))
    with pytest.raises(BadReply):
        read([])


@pytest.mark.parametrize("model", ["magistral-medium-2509", "mistral-small-latest"])
@pytest.mark.parametrize("kind", ["", "length", "tool", "text"])
def test_a_stream_cut_anywhere_is_the_whole_reply(kind: str, model: str) -> None:
    server, body = MistralServer("Zürich, “natürlich”."), {"model": model}
    found = check_every_cut(WIRE, server.events(body, kind), PLAIN)
    assert found == read_mistral(Reply(server.whole(body, kind), 0.5, None), HELLO, PLAIN)


@pytest.mark.parametrize("stream", [False, True])
def test_through_the_engine(stream: bool, server: MistralServer, tmp_path: Path) -> None:
    server.piece = 7
    model = remote(f"mistral/{server.url}#magistral-medium-2509", stream=stream, thinking="on")
    found, counts = through_the_engine(model, tmp_path, Generate(TALK, max_tokens=20, top_p=0.9, seed=1))
    assert (found.text, found.reasoning, found.finish_reason) == (server.answer, "Hm. “Where”?", "stop")
    assert (found.usage, found.model) == (Usage(30, 20, 0, 16), "magistral-medium-2509")
    assert (counts["asked"], counts["failed"]) == (1, 0)
    assert server.log[0]["body"]["prompt_mode"] == "reasoning"
    assert ("stream" in server.log[0]["body"]) is stream
    assert "stream_options" not in server.log[0]["body"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_prefill(stream: bool, server: MistralServer) -> None:
    assert ask(remote(f"mistral/{server.url}#m", stream=stream), Generate(PREFILLED)).text == server.answer
    assert server.log[0]["body"]["messages"][-1]["prefix"] is True


@pytest.mark.parametrize(
    ("model", "thinking", "body"),
    [
        ("mistral-small-latest", "high", {"reasoning_effort": "high"}),
        ("mistral-small-latest", True, {"reasoning_effort": "high"}),
        ("mistral-medium-3-5", False, {"reasoning_effort": "none"}),
        ("mistral-medium-3-5", "none", {"reasoning_effort": "none"}),
        ("magistral-small-latest", "on", {"prompt_mode": "reasoning"}),
    ],
)
def test_thinking(model: str, thinking: Any, body: dict[str, Any], server: MistralServer) -> None:
    ask(remote(f"mistral/{server.url}#{model}", thinking=thinking))
    sent = server.log[0]["body"]
    assert {name: sent.get(name) for name in body} == body


def test_no_switch_for_others() -> None:
    with pytest.raises(ConfigurationError, match="No thinking switch is known"):
        open_model("mistral/codestral-latest", {"thinking": "on"})


def test_rate_limits(server: MistralServer) -> None:
    limits = ask(remote(f"mistral/{server.url}#m")).rate_limits
    assert limits is not None
    assert (limits.limit_requests, limits.remaining_requests) == (60, 59)
    assert (limits.limit_tokens, limits.remaining_tokens) == (500000, 499000)


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
    ],
)
def test_faults(kind: str, error: type[RequestError], stream: bool, server: MistralServer) -> None:
    server.script = [kind]
    model = remote(f"mistral/{server.url}#m", stream=stream)
    found = failing(model)
    assert type(found) is error
    if kind == "429":
        assert found.retry_after == 7.0
    if kind in ("429", "503", "422"):
        assert "wrong on purpose" in str(found)
    assert ask(model).text == server.answer


def test_an_error_in_place_of_a_chunk(server: MistralServer) -> None:
    server.script = ["error-event"]
    error = failing(remote(f"mistral/{server.url}#m", stream=True))
    assert isinstance(error, Overloaded)
    assert "It broke." in str(error)


def test_validation_is_told_in_its_words(server: MistralServer) -> None:
    error = failing(remote(f"mistral/{server.url}#m", extra_body={"seed": 3}))
    assert isinstance(error, Rejected)
    assert "body: " in str(error) and "'seed' was unexpected" in str(error)
    assert "{" not in str(error)


def test_the_key_is_not_shown(server: MistralServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", "mi-wrong-secret-value")
    model = remote(f"mistral/{server.url}#m")
    error = failing(model)
    assert isinstance(error, AuthenticationFailed)
    assert "mi-wrong-secret" not in f"{error} {model.describe()} {model.fingerprint}"
