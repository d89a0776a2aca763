"""Gemini's generateContent: what is sent, what is made of every reply, and a strict server that checks both."""

from __future__ import annotations

import json
import re
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
    UnknownName,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Usage
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http_faults import OutOfCredit
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.gemini import WIRE, gemini_payload, path_of, read_gemini
from support.gemini_server import KEY, GeminiServer, answer_of, chunks_of
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

PLAIN = Settings("gemini-2.5-flash", "host")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[GeminiServer]:
    with running(GeminiServer()) as found:
        yield found


# ---- the body


def test_the_body() -> None:
    full = Generate(PREFILLED, max_tokens=5, temperature=0.7, top_p=0.9, stop=("\n", "END"), seed=10, draw=2)
    assert gemini_payload(full, PLAIN) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "What is it?"}]},
            {"role": "model", "parts": [{"text": "A cat."}]},
            {"role": "user", "parts": [{"text": "Sure?"}]},
            {"role": "model", "parts": [{"text": "Yes,"}]},
        ],
        "generationConfig": {
            "maxOutputTokens": 5,
            "temperature": 0.7,
            "topP": 0.9,
            "stopSequences": ["\n", "END"],
            "seed": 12,
        },
    }
    assert gemini_payload(Generate("hello"), PLAIN) == {
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        "generationConfig": {"temperature": 0.0},
    }
    with pytest.raises(Rejected, match="user's turn"):
        gemini_payload(Generate((Message("system", "Be brief."),)), PLAIN)


def test_a_budget_for_thinking_comes_on_top_of_the_answer() -> None:
    def most(budget: int, **settings: Any) -> Any:
        thinking = {"generationConfig": {"thinkingConfig": {"thinkingBudget": budget}, "topK": 5}}
        body = gemini_payload(HELLO, replace(PLAIN, extra_body=thinking, **settings))
        assert body["generationConfig"]["topK"] == 5
        return body["generationConfig"]["maxOutputTokens"]

    assert [most(2048), most(-1), most(0), most(2048, max_tokens=60)] == [2098, 50, 50, 60]


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-2.5-flash", "/models/gemini-2.5-flash:generateContent"),
        ("models/gemini-2.5-flash", "/models/gemini-2.5-flash:generateContent"),
        ("tunedModels/mine", "/tunedModels/mine:generateContent"),
        ("a b:c?d", "/models/a%20b%3Ac%3Fd:generateContent"),
    ],
)
def test_the_model_is_in_the_path(model: str, path: str) -> None:
    assert path_of(replace(PLAIN, model=model), "generateContent") == path


# ---- replies


def reply(candidate: Any, **data: Any) -> Reply:
    return Reply({"candidates": [candidate], "modelVersion": "m-2026", **data}, 0.25, None)


def parts(*found: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(found)}}


THOUGHT = {"text": "Hm.", "thought": True}


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        ({**parts({"text": " Paris. "}), "finishReason": "STOP"}, (" Paris. ", "", "stop")),
        ({**parts({"text": "a"}, {"text": "b"}), "finishReason": "STOP"}, ("ab", "", "stop")),
        ({**parts(THOUGHT, {"text": "a"}, THOUGHT), "finishReason": "MAX_TOKENS"}, ("a", "Hm.Hm.", "length")),
        ({"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}, ("", "", "length")),
        ({"finishReason": "SAFETY", "safetyRatings": []}, ("", "", "content_filter")),
        ({**parts({"text": "a"}), "finishReason": "RECITATION"}, ("a", "", "content_filter")),
        ({**parts(), "finishReason": "SPII"}, ("", "", "content_filter")),
        ({"finishReason": "PROHIBITED_CONTENT"}, ("", "", "content_filter")),
        ({"finishReason": "BLOCKLIST"}, ("", "", "content_filter")),
        ({**parts({"text": "a"}), "finishReason": "LANGUAGE"}, ("a", "", "LANGUAGE")),
        ({**parts({"functionCall": {"name": "f"}}), "finishReason": "STOP"}, ("", "", "stop")),
        (parts({"text": "a"}), ("a", "", "")),
        ({**parts({"executableCode": {}}, {"text": "a"}), "finishReason": "STOP"}, ("a", "", "stop")),
    ],
)
def test_shapes_of_replies(candidate: Any, expected: tuple[str, str, str]) -> None:
    found = read_gemini(reply(candidate), HELLO, PLAIN)
    assert (found.text, found.reasoning, found.finish_reason) == expected
    assert (found.model, found.latency) == ("m-2026", 0.25)


def test_a_blocked_prompt_is_an_answer() -> None:
    found = read_gemini(Reply({"promptFeedback": {"blockReason": "SAFETY"}}, 0.1, None), HELLO, PLAIN)
    assert (found.text, found.finish_reason) == ("", "content_filter")


def test_stop_strings_beyond_the_five_are_applied_here() -> None:
    request = Generate("hello", stop=("1", "2", "3", "4", "5", "END"))
    assert gemini_payload(request, PLAIN)["generationConfig"]["stopSequences"] == ["1", "2", "3", "4", "5"]
    found = read_gemini(reply({**parts({"text": "a END b"}), "finishReason": "MAX_TOKENS"}), request, PLAIN)
    assert (found.text, found.finish_reason) == ("a ", "stop")


def test_thoughts_are_a_part_of_the_output() -> None:
    usage = {
        "promptTokenCount": 30,
        "toolUsePromptTokenCount": 4,
        "cachedContentTokenCount": 20,
        "candidatesTokenCount": 12,
        "thoughtsTokenCount": 9,
        "totalTokenCount": 55,
    }
    candidate = {**parts({"text": "a"}), "finishReason": "STOP"}
    assert read_gemini(reply(candidate, usageMetadata=usage), HELLO, PLAIN).usage == Usage(34, 21, 9, 20)
    nothing: Any
    for nothing in (None, {}, [], {"promptTokenCount": None, "thoughtsTokenCount": "7"}):
        assert read_gemini(reply(candidate, usageMetadata=nothing), HELLO, PLAIN).usage == Usage()


@pytest.mark.parametrize(
    "data", [[], None, "x", {}, {"candidates": "a"}, {"candidates": ["a"]}, {"promptFeedback": {}}]
)
def test_what_is_not_documented_is_a_bad_reply(data: Any) -> None:
    with pytest.raises(BadReply, match="what the interface documents"):
        read_gemini(Reply(data, 0.0, None), HELLO, PLAIN)


@pytest.mark.parametrize(
    "candidate", [{"content": "a"}, {"content": {"parts": "a"}}, {"content": {"parts": ["a"]}}]
)
def test_content_that_is_not_documented_is_a_bad_reply(candidate: Any) -> None:
    with pytest.raises(BadReply, match="what the interface documents"):
        read_gemini(reply(candidate), HELLO, PLAIN)


# ---- streams

KINDS = [None, "thinking", "safety", "blocked", "cached", "max-tokens", "max-thinking"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reason_in_all", [False, True])
def test_any_chunking_of_a_stream_gives_the_reply(kind: str | None, reason_in_all: bool) -> None:
    body = {"contents": [{"parts": [{"text": "hé"}]}]}
    answer = answer_of(body, kind, "m")
    whole = read_gemini(Reply(answer, 0.0, None), HELLO, PLAIN)
    for pieces in splits(b"".join(chunks_of(answer, reason_in_all=reason_in_all))):
        assert from_stream(WIRE, pieces, PLAIN, "text/event-stream") == whole


# ---- the whole way


def name_at(server: GeminiServer, model: str = "gemini-2.5-flash") -> str:
    return f"gemini/{server.url}#{model}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt", ["hello", TALK, PREFILLED])
@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 0.5, "stop": tuple("123456")}, {"seed": 3, "top_p": 0.9}]
)
def test_every_request_fits_the_schema(
    server: GeminiServer, stream: bool, prompt: Any, sampling: Any
) -> None:
    found = ask(opened(name_at(server), stream=stream), Generate(prompt, **sampling))
    last = prompt if isinstance(prompt, str) else prompt[-1].content
    said = f"You said: {last} ✓"
    assert (found.text, found.finish_reason, found.usage) == (said, "stop", Usage(30, 12))
    assert found.model == "gemini-2.5-flash"


@pytest.mark.parametrize(
    ("model", "thinking", "sent"),
    [
        ("gemini-2.0-flash", None, None),
        ("gemini-2.5-flash", None, None),
        ("gemini-2.5-flash", "off", {"thinkingBudget": 0}),
        ("gemini-2.5-flash-lite", "on", {"includeThoughts": True, "thinkingBudget": -1}),
        ("gemini-2.5-pro", 2048, {"includeThoughts": True, "thinkingBudget": 2048}),
        ("models/gemini-2.5-pro", True, {"includeThoughts": True, "thinkingBudget": -1}),
        ("gemini-3-pro-preview", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("gemini-3.1-pro-preview", "on", {"includeThoughts": True}),
        ("gemini-3.5-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
        ("gemini-3-flash-preview", "high", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
    ],
)
def test_every_family_gets_what_it_takes(server: GeminiServer, model: str, thinking: Any, sent: Any) -> None:
    found = ask(opened(name_at(server, model), thinking=thinking), Generate(TALK, max_tokens=100))
    assert server.asked[-1].body["generationConfig"].get("thinkingConfig") == sent
    shown = bool(sent and sent.get("includeThoughts"))
    assert (found.reasoning, found.usage.reasoning_tokens) == (("Let me see. 思考", 9) if shown else ("", 0))


@pytest.mark.parametrize(
    "model", ["gemini-3.6-flash", "gemini-3.5-flash-lite", "gemini-3.8-flash", "gemini-flash-latest"]
)
def test_newer_models_take_no_sampling_and_no_prefill(server: GeminiServer, model: str) -> None:
    request = Generate(TALK, max_tokens=100, temperature=0.0, top_p=0.9, seed=3)
    assert ask(opened(name_at(server, model), thinking="minimal"), request).reasoning
    assert set(server.asked[-1].body["generationConfig"]) == {"maxOutputTokens", "seed", "thinkingConfig"}
    asked = len(server.asked)
    error = failing(opened(name_at(server, model)), Generate(PREFILLED))
    assert type(error) is Rejected and "prefill" in str(error) and len(server.asked) == asked


@pytest.mark.parametrize(
    "model", ["gemini-2.5-flash", "gemini-3-pro-preview", "gemini-3.1-flash-lite", "gemini-3.5-flash"]
)
def test_older_models_take_both(server: GeminiServer, model: str) -> None:
    assert (
        ask(opened(name_at(server, model)), Generate(PREFILLED, temperature=0.5)).text == "You said: Yes, ✓"
    )
    assert server.asked[-1].body["generationConfig"]["temperature"] == 0.5


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("gemini-2.5-pro", "off"),
        ("gemini-3-pro-preview", "off"),
        ("gemini-3-pro-preview", "minimal"),
        ("gemini-3.5-flash", 2048),
        ("gemini-2.5-flash", "low"),
        ("gemini-2.0-flash", "on"),
    ],
)
def test_switches_that_a_model_has_not(model: str, thinking: Any) -> None:
    with pytest.raises((ConfigurationError, UnknownName), match="thinking"):
        opened(f"gemini/{model}", thinking=thinking)


FAULTS: list[tuple[str, type[RequestError], str]] = [
    ("400", Rejected, "invalid argument"),
    ("precondition", Rejected, "location"),
    ("key", AuthenticationFailed, r"API key not valid.*The key came from \$GEMINI_API_KEY"),
    ("403", AuthenticationFailed, "permissions"),
    ("404", Rejected, "gemini-none"),
    ("429", RateLimited, "slow down"),
    ("429-plain", RateLimited, "slow down"),
    ("429-day", OutOfCredit, "quota of the day"),
    ("list", RateLimited, "as a list"),
    ("500", Overloaded, "internal error"),
    ("503", Overloaded, "overloaded"),
    ("504", Overloaded, "timed out"),
    ("error-in-200", Overloaded, "overloaded"),
    ("empty", EmptyReply, "without content"),
    ("other", EmptyReply, "OTHER"),
    ("no-candidates", EmptyReply, "no candidate"),
    ("reset", ConnectionFailed, "No connection|broke"),
    ("cut", ConnectionFailed, "broke"),
    ("truncated", BadReply, "whole and valid JSON"),
    ("invalid-json", BadReply, "whole and valid JSON"),
    ("content-type", BadReply, "text/html"),
]


@pytest.mark.parametrize(("kind", "error", "words"), FAULTS)
def test_faults(kind: str, error: type[RequestError], words: str) -> None:
    with running(GeminiServer(plan=always(kind))) as server:
        found = failing(opened(name_at(server)))
    assert type(found) is error and re.search(words, str(found)), found
    assert KEY not in str(found)
    if kind in ("429", "list"):
        assert found.retry_after == pytest.approx(34.07, abs=0.01)


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("stream-cut", ConnectionFailed, "before the answer was whole"),
        ("stream-broken", ConnectionFailed, "before the answer was whole|No connection"),
        ("stream-error", Overloaded, "overloaded"),
        ("stream-garbage", BadReply, "valid JSON in each event"),
        ("503", Overloaded, "overloaded"),
        ("list", RateLimited, "as a list"),
        ("empty", EmptyReply, "without content"),
        ("no-candidates", ConnectionFailed, "before the answer was whole"),
    ],
)
def test_faults_of_streams(kind: str, error: type[RequestError], words: str) -> None:
    with running(GeminiServer(plan=always(kind))) as server:
        found = failing(opened(name_at(server), stream=True))
    assert type(found) is error and re.search(words, str(found)), found


def test_a_stream_of_older_models_is_read_to_its_end() -> None:
    server = GeminiServer()
    server.reason_in_all = True
    with running(server):
        assert ask(opened(name_at(server), stream=True)).text == "You said: hello ✓"


@pytest.mark.parametrize("stream", [False, True])
def test_through_the_engine(tmp_path: Path, stream: bool) -> None:
    """Retried where that helps, stored whole, asked once; a blocked prompt is an answer."""
    requests = [Generate(f"question {n}", max_tokens=20) for n in range(5)]

    def plan(body: Any, before: int) -> str | None:
        return "503" if before == 0 else "blocked" if "question 3" in json.dumps(body) else None

    with running(GeminiServer(plan=plan)) as server:
        answers = through_engine(tmp_path / "home", opened(name_at(server), stream=stream), requests)
        asked = len(server.asked)
        again = through_engine(tmp_path / "home", opened(name_at(server), stream=stream), requests)
    assert [answer.text for answer in answers] == [
        f"You said: question {n} ✓" if n != 3 else "" for n in range(5)
    ]
    assert answers[3].finish_reason == again[3].finish_reason == "content_filter"
    assert (asked, len(server.asked)) == (10, 10)


def test_the_key_is_shown_nowhere(server: GeminiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    model = opened(name_at(server))
    ask(model)
    assert server.asked[-1].headers["x-goog-api-key"] == KEY
    assert KEY not in json.dumps(model.describe()) + repr(model) + model.fingerprint + server.asked[-1].path
    assert model.describe()["key"] == "$GEMINI_API_KEY"
    monkeypatch.delenv("GEMINI_API_KEY")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    assert ask(opened(f"google/{server.url}#gemini-2.5-flash", thinking="off")).text
    with pytest.raises(ConfigurationError, match="GEMINI_API_KEY"):
        monkeypatch.delenv("GOOGLE_API_KEY")
        opened("gemini/gemini-2.5-flash").check()


def test_once_is_enough_for_a_plan() -> None:
    with running(GeminiServer(plan=once("500"))) as server:
        model = opened(name_at(server))
        assert type(failing(model)) is Overloaded
        assert ask(model).text == "You said: hello ✓"
