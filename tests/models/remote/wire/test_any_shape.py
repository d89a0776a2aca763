"""Whatever a server sends, and whatever a person adds to a body: an answer or an error in words, never a traceback."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from evalwright.core.errors import RequestError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire import wire
from evalwright.models.remote.wire.format import Settings
from support.wire_asking import PREFILLED

VALUES: list[Any] = [None, True, 7, -1, 0.5, "", "x", [], [None], ["x"], {}, {"a": 1}, [{}], [[]]]
TURNS = {"messages": [{"role": "user", "content": "hé"}]}
THINKING = {"input_tokens": 3, "output_tokens": 2, "output_tokens_details": {"thinking_tokens": 1}}
REPLIES: dict[str, Any] = {
    "anthropic": {
        "type": "message",
        "model": "m",
        "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}],
        "stop_reason": "end_turn",
        "usage": THINKING,
    },
    "gemini": {
        "candidates": [
            {"content": {"parts": [{"text": "t", "thought": True}, {"text": "a"}]}, "finishReason": "STOP"}
        ],
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 3, "thoughtsTokenCount": 2},
        "modelVersion": "m",
    },
    "bedrock": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [{"reasoningContent": {"reasoningText": {"text": "t"}}}, {"text": "a"}],
            }
        },
        "stopReason": "end_turn",
        "usage": {"inputTokens": 3, "outputTokens": 2},
    },
}
REPLIES["openai-chat"] = {
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "content": [{"type": "thinking", "thinking": [{"text": "t"}]}, {"type": "text", "text": "a"}]
            },
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 1}},
}
REPLIES["openai-completions"] = {
    "model": "m",
    "choices": [{"text": "a", "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2},
}
EVENTS: dict[str, list[tuple[str, Any]]] = {
    "anthropic": [
        ("", {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}}),
        ("", {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ("", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}),
        ("", {"type": "error", "error": None}),
        ("", {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        ("", {"type": "message_stop"}),
    ],
    "gemini": [
        (
            "",
            {
                "candidates": [{"content": {"parts": [{"text": "a"}]}}],
                "usageMetadata": {"promptTokenCount": 1},
            },
        ),
        (
            "",
            {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}], "error": None},
        ),
    ],
    "bedrock": [
        ("messageStart", {"role": "assistant"}),
        ("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": {"name": "f"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "t"}}}),
        ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"text": "a"}}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {"usage": {"inputTokens": 3}, "metrics": {}}),
    ],
}
EVENTS["openai-chat"] = [
    ("", {"model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "reasoning": "t"}}]}),
    ("", {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}], "error": None}),
    ("", {"choices": [], "usage": {"prompt_tokens": 3}}),
    ("", "[DONE]"),
]
EVENTS["openai-completions"] = [
    ("", {"model": "m", "choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}),
    ("", {"choices": [], "usage": {"prompt_tokens": 3}}),
    ("", "[DONE]"),
]
NAMES = {"vertex": "gemini", "vertex-anthropic": "anthropic", **{name: name for name in REPLIES}}


def changed(value: Any) -> Iterator[Any]:
    """`value` with each of its parts replaced by each of `VALUES`, and without it."""
    yield from VALUES
    if isinstance(value, dict):
        for name, part in value.items():
            yield {key: other for key, other in value.items() if key != name}
            yield from ({**value, name: other} for other in changed(part))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in changed(part))


def settings(**fields: Any) -> Settings:
    return Settings("m", "host", **fields)


@pytest.mark.parametrize("name", NAMES)
def test_any_reply(name: str) -> None:
    form, good = wire(name), REPLIES[NAMES[name]]
    assert form.read(Reply(good, 0.1, None), Generate("x"), settings()).text == "a"
    for data in changed(good):
        try:
            found = form.read(Reply(copy.deepcopy(data), 0.1, None), Generate("x"), settings())
        except RequestError as error:
            assert len(str(error)) > 20
        else:
            assert isinstance(found, Response) and isinstance(found.as_dict(), dict)


@pytest.mark.parametrize("name", NAMES)
def test_any_event(name: str) -> None:
    form, good = wire(name), EVENTS[NAMES[name]]
    assert form.gather is not None
    answers = 0
    for place, (event, data) in enumerate(good):
        for other in [data, *changed(data)]:
            gatherer = form.gather(settings())
            try:
                for kind, piece in [*good[:place], (event, other), *good[place + 1 :]]:
                    gatherer.add(kind, copy.deepcopy(piece))
                form.read(Reply(gatherer.result(), 0.1, None), Generate("x"), settings())
                answers += 1
            except RequestError as error:
                assert len(str(error)) > 20
    assert answers >= len(good)


BODIES: dict[str, Any] = {
    "anthropic": {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 9},
    "gemini": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 2048}, "maxOutputTokens": 9}},
    "bedrock": {
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
        "inferenceConfig": {"maxTokens": 9},
    },
}


@pytest.mark.parametrize("name", [name for name in NAMES if NAMES[name] in BODIES])
def test_any_field_that_a_person_adds(name: str) -> None:
    request = Generate(PREFILLED, max_tokens=5, stop=("x",))
    for extra in changed(BODIES[NAMES[name]]):
        if isinstance(extra, dict):
            try:
                assert wire(name).payload(request, settings(extra_body=extra))
            except RequestError as error:
                assert len(str(error)) > 20
