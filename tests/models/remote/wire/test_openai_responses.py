"""OpenAI's responses: every body that is sent, every shape of reply, and a strict server asked whole and in a stream."""

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
    UnknownName,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import RateLimits, Usage
from evalwright.models.registry import open_model
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http_faults import OutOfCredit, PromptFiltered
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.openai_responses import WIRE, read_response, responses_payload
from support.openai_asking import openai_model
from support.openai_responses_server import SCHEMA, ResponsesServer
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

PLAIN = Settings("m", "host", refuses=WIRE.lacks, key_source="$A_KEY")
ASKED = {"model": "m", "input": [{"role": "user", "content": "hello"}], "max_output_tokens": 32}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ResponsesServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with strictly(ResponsesServer()) as found:
        yield found


# ---- what is sent


@pytest.mark.parametrize(
    ("request_", "settings", "body"),
    [
        (HELLO, PLAIN, {"temperature": 0.0}),
        (
            Generate(TALK, temperature=0.5, top_p=0.9, stop=("\n",), seed=3),
            PLAIN,
            {
                "input": [{"role": turn.role, "content": turn.content} for turn in TALK[1:]],
                "instructions": "Be brief.",
                "max_output_tokens": None,
                "temperature": 0.5,
                "top_p": 0.9,
            },
        ),
        (
            HELLO,
            Settings("m", "host", max_tokens=64, temperature=1.0, top_p=0.5, refuses=WIRE.lacks),
            {"max_output_tokens": 64, "temperature": 1.0, "top_p": 0.5},
        ),
        (
            HELLO,
            Settings(
                "m",
                "host",
                refuses=WIRE.lacks | {"temperature"},
                extra_body={"reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low"}},
            ),
            {"reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low"}},
        ),
    ],
)
def test_bodies(request_: Generate, settings: Settings, body: dict[str, Any]) -> None:
    expected = {**ASKED, "store": False, **body}
    found = responses_payload(request_, settings)
    assert found == {name: value for name, value in expected.items() if value is not None}
    check_schema(SCHEMA, found)


def test_a_prefill_is_refused_with_the_way_out() -> None:
    with pytest.raises(Rejected, match=r"does not go on from the beginning.*interface=chat"):
        responses_payload(Generate(PREFILLED), PLAIN)


# ---- what is made of a reply


def reply(output: Any, status: str = "completed", **data: Any) -> Reply:
    return Reply({"model": "m-2026", "status": status, "output": output, **data}, 0.25, None)


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(parts)}


def said(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}
REFUSED = {"type": "refusal", "refusal": "I cannot."}


@pytest.mark.parametrize(
    ("output", "text", "reasoning", "finish"),
    [
        ([message(said("a"))], "a", "", "stop"),
        ([message(said("a"), said("b"))], "ab", "", "stop"),
        ([message(said("a")), message(said("b"))], "ab", "", "stop"),
        ([THOUGHT, message(said("a"))], "a", "Hm.", "stop"),
        ([message(said("a")), THOUGHT, THOUGHT], "a", "Hm.\n\nHm.", "stop"),
        ([{"type": "web_search_call", "status": "completed"}, THOUGHT, message(said("a"))], "a", "Hm.", "stop"),
        (
            [{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]}, message(said("a"))],
            "a",
            "raw",
            "stop",
        ),
        ([{"type": "reasoning", "summary": []}, message(REFUSED)], "I cannot.", "", "content_filter"),
        ([message(said("a"), REFUSED)], "a", "", "stop"),
        (["odd", {"type": "message", "content": None}, message(said("a"), {"type": "new"})], "a", "", "stop"),
        ([{"type": "function_call", "name": "f"}], "", "", "stop"),
        ([THOUGHT], "", "Hm.", "stop"),
    ],
)  # fmt: skip
def test_output_items_are_told_by_their_type(output: Any, text: str, reasoning: str, finish: str) -> None:
    found = read_response(reply(output), HELLO, PLAIN)
    assert (found.text, found.reasoning, found.finish_reason) == (text, reasoning, finish)


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "content_filter"),
        ({"reason": "steered"}, "steered"),
        (None, "incomplete"),
    ],
)
def test_incomplete(reason: Any, finish: str) -> None:
    found = read_response(reply([], "incomplete", incomplete_details=reason), HELLO, PLAIN)
    assert (found.text, found.finish_reason) == ("", finish)


def test_usage_and_stop_strings() -> None:
    usage = {
        "input_tokens": 30,
        "input_tokens_details": {"cached_tokens": 16},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 12},
    }
    found = read_response(
        reply([message(said("one END two"))], usage=usage), Generate("x", stop=("END",)), PLAIN
    )
    assert (found.text, found.usage, found.model) == ("one ", Usage(30, 20, 12, 16), "m-2026")
    odds: list[Any] = [None, [], {}, {"input_tokens": "7", "input_tokens_details": None}]
    for odd in odds:
        assert read_response(reply([message(said("a"))], usage=odd), HELLO, PLAIN).usage == Usage()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "x"}}, Overloaded),
        ({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "x"}}, RateLimited),
        ({"status": "failed", "error": {"code": "insufficient_quota", "message": "x"}}, OutOfCredit),
        ({"status": "failed", "error": {"code": "invalid_prompt", "message": "x"}}, Rejected),
        ({"status": "failed", "error": {"code": "bio_policy", "message": "x"}}, PromptFiltered),
        ({"status": "failed", "error": None}, Overloaded),
        ({"error": {"code": 401, "message": "x"}}, AuthenticationFailed),
        ({"status": "completed", "output": []}, EmptyReply),
        ({"status": "completed", "output": [message(said(""))]}, EmptyReply),
        ({"status": "completed"}, BadReply),
        ({"status": "queued", "output": []}, BadReply),
        ({"output": []}, BadReply),
        ([], BadReply),
    ],
)
def test_replies_that_are_no_answers(data: Any, error: type[RequestError]) -> None:
    with pytest.raises(RequestError) as caught:
        read_response(Reply(data, 0.0, None), HELLO, PLAIN)
    assert type(caught.value) is error


# ---- streams


@pytest.mark.parametrize("kind", ["", "length", "refusal", "filter"])
def test_a_stream_cut_anywhere_is_the_whole_reply(kind: str) -> None:
    server = ResponsesServer("Zürich, “natürlich”.")
    body = {"model": "m", "reasoning": {"summary": "auto"}}
    found = check_every_cut(WIRE, server.events(body, kind), PLAIN)
    assert found == read_response(Reply(server.whole(body, kind), 0.5, None), HELLO, PLAIN)


def test_items_that_the_last_event_leaves_out_are_taken_from_their_own_events() -> None:
    assert WIRE.gather is not None
    gatherer = WIRE.gather(PLAIN)
    for place, item in ((1, message(said("b"))), (0, THOUGHT)):
        event = {"type": "response.output_item.done", "output_index": place, "item": item}
        assert not gatherer.add("", event)
    assert gatherer.add("response.completed", {"response": {"status": "completed", "output": []}})
    assert gatherer.result()["output"] == [THOUGHT, message(said("b"))]


@pytest.mark.parametrize("stream", [False, True])
def test_through_the_engine(stream: bool, server: ResponsesServer, tmp_path: Path) -> None:
    server.piece = 7
    model = remote(
        f"openai/{server.url}/responses#gpt-5", stream=stream, extra_body={"reasoning": {"summary": "auto"}}
    )
    found, counts = through_the_engine(model, tmp_path, Generate(TALK, max_tokens=20))
    assert (found.text, found.finish_reason) == (server.answer, "stop")
    assert found.reasoning == "**Places**\n\nIt is a city."
    assert (found.usage, found.model) == (Usage(30, 20, 12, 16), "gpt-5-2026-01-01")
    assert counts["asked"] == 1 and counts["failed"] == 0
    assert server.log[0]["path"] == "/v1/responses"
    assert server.log[0]["body"]["instructions"] == "Be brief."


def test_rate_limits(server: ResponsesServer) -> None:
    assert ask(remote(f"openai/{server.url}#m", interface="responses")).rate_limits == RateLimits(
        500, 499, 0.12, 30000, 29000, 2.0
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "text", "finish"),
    [("length", "", "length"), ("filter", "Paris", "content_filter"), ("refusal", "I cannot.", "content_filter"), ("failed-policy", "", "content_filter")],
)  # fmt: skip
def test_answers_that_are_cut_short(
    kind: str, text: str, finish: str, stream: bool, server: ResponsesServer
) -> None:
    server.answer, server.script = "Paris", [kind]
    found = ask(remote(f"openai/{server.url}#m", interface="responses", stream=stream))
    assert (found.text, found.finish_reason) == (text, finish)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("429", RateLimited),
        ("500", Overloaded),
        ("529", Overloaded),
        ("401", AuthenticationFailed),
        ("402", OutOfCredit),
        ("404", Rejected),
        ("html", BadReply),
        ("broken-json", BadReply),
        ("cut", ConnectionFailed),
        ("empty", EmptyReply),
        ("failed", Overloaded),
        ("failed-rate", RateLimited),
    ],
)
def test_faults(kind: str, error: type[RequestError], stream: bool, server: ResponsesServer) -> None:
    server.script = [kind]
    model = remote(f"openai/{server.url}#m", interface="responses", stream=stream)
    found = failing(model)
    assert type(found) is error
    if kind == "429":
        assert found.retry_after == 7.0
    assert ask(model).text == server.answer


def test_an_error_event(server: ResponsesServer) -> None:
    server.script = ["error-event"]
    found = failing(remote(f"openai/{server.url}#m", interface="responses", stream=True))
    assert isinstance(found, Overloaded)
    assert "It broke." in str(found)


def test_the_key_is_not_shown(server: ResponsesServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "another-secret-key-value")
    model = remote(f"openai/{server.url}#m", interface="responses")
    error = failing(model)
    assert isinstance(error, AuthenticationFailed)
    assert "another-secret" not in f"{error} {model.describe()} {model.fingerprint}"


def test_what_the_interface_has_no_field_for() -> None:
    with pytest.raises(
        ConfigurationError, match=r"cannot be told a seed: its interface \(openai-responses\)"
    ):
        open_model("openai/m", {"interface": "responses", "seed": 3})
    model = remote("openai/m", interface="responses")
    assert model.describe()["arguments"]["refuses"] == ["seed", "stop"]


def test_too_few_tokens_are_refused_by_the_server_in_its_words(server: ResponsesServer) -> None:
    error = failing(remote(f"openai/{server.url}#m", interface="responses"), Generate("x", max_tokens=5))
    assert isinstance(error, Rejected)
    assert "max_output_tokens: 5 is less than the minimum of 16" in str(error)


# ---- thinking


@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("o1", "low medium high"),
        ("o1-mini", ""),
        ("o3-mini-2025-01-31", "low medium high"),
        ("o4-mini", "low medium high"),
        ("gpt-5", "minimal low medium high"),
        ("gpt-5-mini-2025-08-07", "minimal low medium high"),
        ("gpt-5-nano", "minimal low medium high"),
        ("ft:gpt-5-mini:org::id", "minimal low medium high"),
        ("gpt-5-pro", "high"),
        ("gpt-5-codex", "low medium high"),
        ("gpt-5-chat-latest", ""),
        ("gpt-5-search-api", ""),
        ("gpt-5.1", "none low medium high"),
        ("gpt-5.1-2025-11-13", "none low medium high"),
        ("gpt-5.1-codex-mini", "low medium high"),
        ("gpt-5.1-codex-max", "low medium high xhigh"),
        ("gpt-5.1-chat-latest", ""),
        ("gpt-5.2", "none low medium high xhigh"),
        ("gpt-5.2-pro", "medium high xhigh"),
        ("gpt-5.2-codex", "low medium high xhigh"),
        ("gpt-5.4-mini", "none low medium high xhigh"),
        ("gpt-4o", ""),
        ("omni-moderation-latest", ""),
    ],
)
@pytest.mark.parametrize("interface", ["chat", "responses"])
def test_efforts_by_family_and_interface(model: str, efforts: str, interface: str) -> None:
    taken = efforts.split()
    for effort in ("none", "minimal", "low", "medium", "high", "xhigh"):
        if effort not in taken:
            with pytest.raises((ConfigurationError, UnknownName)):
                openai_model(
                    model, base_url="https://api.openai.com/v1", interface=interface, thinking=effort
                )
            continue
        made = openai_model(model, base_url="https://api.openai.com/v1", interface=interface, thinking=effort)
        body = made.describe()["arguments"]["extra_body"]
        assert body == (
            {"reasoning_effort": effort} if interface == "chat" else {"reasoning": {"effort": effort}}
        )


def test_off_is_an_effort_of_none_where_there_is_one() -> None:
    for off in ("off", False):
        made = openai_model("gpt-5.1", base_url="https://api.openai.com/v1", thinking=off)
        assert made.describe()["arguments"]["extra_body"] == {"reasoning_effort": "none"}
    with pytest.raises(UnknownName, match="Known: minimal, low, medium, high"):
        openai_model("gpt-5", base_url="https://api.openai.com/v1", thinking=False)
    with pytest.raises(ConfigurationError, match="No thinking switch is known"):
        openai_model("gpt-4o", base_url="https://api.openai.com/v1", thinking="low")
    with pytest.raises(ConfigurationError, match="No thinking switch is known"):
        openai_model("gpt-5", base_url="https://api.openai.com/v1", interface="completions", thinking="low")


def test_several_system_messages_and_none() -> None:
    both = (Message("system", "A"), Message("user", "x"), Message("system", "B"))
    assert responses_payload(Generate(both), PLAIN)["instructions"] == "A\n\nB"
    assert "instructions" not in responses_payload(HELLO, PLAIN)
