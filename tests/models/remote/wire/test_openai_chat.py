"""OpenAI's wire format: what is sent for a request, and what is made of every shape of reply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    EmptyReply,
    Overloaded,
    RateLimited,
    Rejected,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import RateLimits, Usage
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.openai_chat import chat_payload, read_chat
from evalwright.models.remote.wire.openai_completions import (
    COMPLETIONS_MAX_TOKENS,
    completions_payload,
    read_completion,
)

REFUSED = frozenset({"temperature", "top_p", "stop"})
PLAIN = Settings("m", "host", key_source="$A_KEY")
ASKED = Generate("hello")
TURNS = (Message("system", "Be brief."), Message("user", "Hello"), Message("assistant", "I say"))


def chat_reply(message: Any, finish: Any = "stop", **data: Any) -> Reply:
    body = {"model": "m-2026", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **data}
    return Reply(body, 0.25, RateLimits(remaining_requests=3))


def read(message: Any, finish: Any = "stop", request: Generate = ASKED, **data: Any) -> Any:
    return read_chat(chat_reply(message, finish, **data), request, PLAIN)


def test_chat_request() -> None:
    assert chat_payload(ASKED, PLAIN) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.0,
    }
    full = Generate(TURNS, max_tokens=5, temperature=0.7, top_p=0.9, stop=("\n",), seed=10, draw=2)
    assert chat_payload(full, PLAIN) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "I say"},
        ],
        "max_tokens": 5,
        "temperature": 0.7,
        "top_p": 0.9,
        "stop": ["\n"],
        "seed": 12,
    }


def test_overrides_win_and_extra_fields_are_added() -> None:
    settings = Settings(
        "m",
        "host",
        tokens_field="max_completion_tokens",
        max_tokens=99,
        temperature=1.0,
        top_p=0.5,
        seed=1,
        extra_body={"reasoning_effort": "low", "top_p": 0.4},
    )
    payload = chat_payload(Generate("hello", max_tokens=5, temperature=0.7, seed=10), settings)
    del payload["messages"]
    assert payload == {
        "model": "m",
        "max_completion_tokens": 99,
        "temperature": 1.0,
        "top_p": 0.4,
        "seed": 1,
        "reasoning_effort": "low",
    }


def test_what_a_reasoning_model_refuses_is_not_sent_unless_overridden() -> None:
    request = Generate("hello", temperature=0.7, top_p=0.9, stop=("END",))
    payload = chat_payload(request, Settings("o3", "host", refuses=REFUSED))
    assert set(payload) == {"model", "messages"}
    payload = chat_payload(request, Settings("o3", "host", refuses=REFUSED, temperature=1.0))
    assert payload["temperature"] == 1.0
    reply = chat_reply({"content": "one END two"})
    assert read_chat(reply, request, Settings("o3", "host", refuses=REFUSED)).text == "one "
    assert read_chat(reply, request, PLAIN).text == "one END two"


def test_completions_request() -> None:
    payload = completions_payload(ASKED, PLAIN)
    assert payload == {
        "model": "m",
        "prompt": "hello",
        "temperature": 0.0,
        "max_tokens": COMPLETIONS_MAX_TOKENS,
    }
    assert completions_payload(Generate("hello", max_tokens=5), PLAIN)["max_tokens"] == 5
    with pytest.raises(Rejected, match="interface=chat"):
        completions_payload(Generate(TURNS), PLAIN)


def test_a_whole_reply() -> None:
    usage = {
        "prompt_tokens": 30,
        "completion_tokens": 20,
        "total_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 16, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }
    message = {"role": "assistant", "content": " Paris. ", "refusal": None, "reasoning_content": "Hm."}
    found = read(message, usage=usage)
    assert found.text == " Paris. "
    assert found.reasoning == "Hm."
    assert found.finish_reason == "stop"
    assert found.usage == Usage(30, 20, 12, 16)
    assert (found.latency, found.model) == (0.25, "m-2026")
    assert found.rate_limits == RateLimits(remaining_requests=3)


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "a"}, "a", ""),
        ({"content": "a", "reasoning": "r"}, "a", "r"),
        ({"content": "a", "reasoning": None, "reasoning_content": ""}, "a", ""),
        ({"content": "a", "reasoning": {"steps": []}}, "a", ""),
        ({"content": None, "refusal": "I cannot."}, "I cannot.", ""),
        ({"content": "", "refusal": "I cannot."}, "I cannot.", ""),
        ({"content": "a", "refusal": "I cannot."}, "a", ""),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", ""),
        ({"content": ["a", {"text": "b"}]}, "ab", ""),
        ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "I cannot.", ""),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "r"}]},
                    {"type": "text", "text": "a"},
                ]
            },
            "a",
            "r",
        ),
        ({"content": None, "reasoning_content": "r"}, "", "r"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "", ""),
    ],
)
def test_shapes_of_content(message: dict[str, Any], text: str, reasoning: str) -> None:
    found = read(message)
    assert (found.text, found.reasoning) == (text, reasoning)


@pytest.mark.parametrize("content", ["", None, []])
@pytest.mark.parametrize("finish", ["stop", None])
def test_nothing_at_all_is_an_empty_reply(content: Any, finish: Any) -> None:
    with pytest.raises(EmptyReply, match="without content"):
        read({"content": content}, finish, usage={"completion_tokens": 4})


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_nothing_for_a_reason_is_a_fact_about_the_model(finish: str) -> None:
    found = read({"content": None}, finish)
    assert (found.text, found.finish_reason) == ("", finish)


def test_a_stop_string_may_leave_nothing() -> None:
    request = Generate("hello", stop=("\n",))
    assert read({"content": ""}, request=request, usage={"completion_tokens": 1}).text == ""
    with pytest.raises(EmptyReply):
        read({"content": ""}, request=request, usage={"completion_tokens": 0})


def test_a_base_model_may_end_at_once() -> None:
    def reply(made: int) -> Reply:
        return Reply(
            {"choices": [{"text": "", "finish_reason": "stop"}], "usage": {"completion_tokens": made}},
            0.1,
            None,
        )

    assert read_completion(reply(1), ASKED, PLAIN).text == ""
    with pytest.raises(EmptyReply):
        read_completion(reply(0), ASKED, PLAIN)


def test_a_completion() -> None:
    reply = Reply({"choices": [{"text": " Paris", "finish_reason": "length"}]}, 0.1, None)
    found = read_completion(reply, ASKED, PLAIN)
    assert (found.text, found.finish_reason, found.usage) == (" Paris", "length", Usage())


@pytest.mark.parametrize(
    "data",
    [
        [],
        "text",
        None,
        {},
        {"choices": []},
        {"choices": {}},
        {"choices": ["text"]},
        {"choices": [{}]},
        {"choices": [{"message": "text"}]},
        {"choices": [{"message": {"content": 7}}]},
        {"choices": [{"delta": {"content": "a"}}]},
    ],
)
def test_missing_fields_say_what_was_expected(data: Any) -> None:
    with pytest.raises(
        BadReply, match=r"what the interface documents \(.*(choices|JSON object).*\); it begins: "
    ):
        read_chat(Reply(data, 0.0, None), ASKED, PLAIN)
    with pytest.raises(BadReply):
        read_completion(Reply(data, 0.0, None), ASKED, PLAIN)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "Slow down."}, RateLimited),
        ({"code": 401, "message": "Who?"}, AuthenticationFailed),
        ({"code": 400, "message": "What?"}, Rejected),
        ({"message": "Upstream."}, Overloaded),
        ("Upstream.", Overloaded),
    ],
)
def test_an_error_in_a_200(error: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        read_chat(Reply({"error": error}, 0.0, None), ASKED, PLAIN)


@pytest.mark.parametrize(
    "usage",
    [None, {}, [], {"prompt_tokens": None, "completion_tokens": "7"}, {"prompt_tokens_details": None}],
)
def test_usage_that_is_not_there(usage: Any) -> None:
    assert read({"content": "a"}, usage=usage).usage == Usage()


@pytest.mark.parametrize(
    ("usage", "wanted"),
    [
        # xAI counts reasoning beside the completion, OpenAI as a part of it.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 45,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(10, 35, 30),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 35,
                "total_tokens": 45,
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(10, 35, 30),
        ),
        # DeepSeek's and Moonshot's names for what was in the cache.
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "prompt_cache_hit_tokens": 8,
                "prompt_cache_miss_tokens": 2,
            },
            Usage(10, 5, 0, 8),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 7}, Usage(10, 5, 0, 7)),
    ],
)
def test_usage_as_others_count_it(usage: Any, wanted: Usage) -> None:
    assert read({"content": "a"}, usage=usage).usage == wanted


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.00012}, 0.00012),
        ({"cost": 0}, 0.0),
        ({"cost": "0.1"}, None),
        ({"cost": True}, None),
        ({"cost": -1}, None),
        ({"cost": float("inf")}, None),
        ({"cost": {"total_cost": 1}}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_cost_that_the_reply_names(usage: Any, cost: float | None) -> None:
    settings = replace(PLAIN, cost_field="usage.cost")
    assert read_chat(chat_reply({"content": "a"}, usage=usage), ASKED, settings).cost == cost
    assert read_chat(chat_reply({"content": "a"}, usage=usage), ASKED, PLAIN).cost is None
