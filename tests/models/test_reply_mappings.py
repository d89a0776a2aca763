"""Replies written as mappings: scripts, functions and recordings that call tools."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ModelError
from evalwright.core.outcomes import outcome_of
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response, Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.models.functions import function_model
from evalwright.models.replay import ReplayModel
from evalwright.models.reply_mappings import response_from_mapping
from evalwright.models.scripted import ScriptedLocalModel, ScriptedModel

ADD = ToolDefinition("add")
ASKED = Generate((Message("user", "1 + 1?"),), tools=(ADD,))
CALL = ToolCall("add", '{"a": 1}')
REPLY = {"text": "Let me add.", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]}


@pytest.mark.parametrize(
    "reply",
    [
        REPLY,
        {**REPLY, "tool_calls": [CALL]},
        {
            "content": "Let me add.",
            "role": "assistant",
            "tool_calls": [{"name": "add", "arguments": '{"a": 1}'}],
        },
        {
            **REPLY,
            "tool_calls": [
                {
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a": 1}'},
                }
            ],
        },
    ],
)
def test_a_mapping_is_a_reply_with_calls(reply: dict[str, Any]) -> None:
    response = response_from_mapping(reply, offers_tools=True)
    assert response == Response(
        "Let me add.", finish_reason="tool_calls", tool_calls=(CALL,)
    )


def test_what_a_model_could_write_wrongly_stays_as_it_is() -> None:
    reply = {
        "tool_calls": [{"name": "add", "arguments": '{"a": ', "id": "c1"}],
        "finish_reason": "length",
    }
    response = response_from_mapping(reply, offers_tools=True)
    assert response.tool_calls == (ToolCall("add", '{"a": ', "c1"),)
    assert response.finish_reason == "length"
    assert response_from_mapping({"usage": {"input_tokens": 3}}).usage == Usage(3)


def test_a_tool_that_was_not_offered_is_no_answer() -> None:
    response = response_from_mapping(
        {"tool_calls": REPLY["tool_calls"]}, offers_tools=False
    )
    assert response.tool_calls == () and outcome_of(response) == "tool_call"


@pytest.mark.parametrize(
    "reply",
    [
        {"tool_calls": "add"},
        {"tool_calls": {"name": "add"}},
        {"tool_calls": 3},
        {"tool_calls": [3]},
        {"tool_calls": [{"arguments": {}}]},
        {"tool_calls": [{"name": "add", "id": 3}]},
        {"texts": "a"},
        {"text": 3},
        {"usage": 3},
    ],
    ids=str,
)
def test_what_is_no_reply_is_said(reply: Any) -> None:
    with pytest.raises(ValueError):
        response_from_mapping(reply)
    model = ScriptedModel(lambda request: reply)
    with pytest.raises(ModelError, match="is no reply"):
        asyncio.run(model.answer(ASKED))


def test_scripted_models_call_tools() -> None:
    model = ScriptedModel({"1 + 1?": REPLY})
    assert model.refuses(ASKED) is None
    assert asyncio.run(model.answer(ASKED)).tool_calls == (CALL,)
    local = ScriptedLocalModel([REPLY, "2"])
    results: Any = dict(local.answer_batch([ASKED, ASKED]))
    assert results[0].tool_calls == (CALL,)
    assert results[1].text == "2"


def test_functions_call_tools_that_they_are_told_of() -> None:
    told: list[Any] = []

    def answer(messages: list[dict[str, Any]], *, tools: Any = ()) -> Any:
        told.append((messages, tools))
        return REPLY

    model = function_model(answer)
    assert model.refuses(ASKED) is None
    ((_, response),) = model.answer_batch([ASKED])  # type: ignore[attr-defined]
    assert response.tool_calls == (CALL,)
    assert told[0][1] == [ADD.as_dict()]
    turns = (
        *ASKED.prompt,
        Message("assistant", "", tool_calls=(CALL,)),
        Message("tool", "2", tool_name="add"),
    )
    list(model.answer_batch([Generate(turns, tools=(ADD,))]))  # type: ignore[attr-defined]
    messages = told[1][0]
    assert messages[1]["tool_calls"][0]["function"] == {
        "name": "add",
        "arguments": {"a": 1},
    }
    assert messages[2] == {"role": "tool", "content": "2", "name": "add"}


def test_a_function_without_tools_refuses_them() -> None:
    model = function_model(lambda messages: "2")
    assert "does not take tools" in str(model.refuses(ASKED))


def test_an_async_function_may_return_a_mapping() -> None:
    async def answer(messages: Any, *, tools: Any = ()) -> Any:
        return REPLY

    model: Any = function_model(answer)
    assert asyncio.run(model.answer(ASKED)).tool_calls == (CALL,)


def test_a_plain_recording_has_calls(tmp_path: Path) -> None:
    file = tmp_path / "recorded.jsonl"
    turns = [
        ["user", "1 + 1?"],
        ["assistant", "", {"tool_calls": [CALL.as_dict()]}],
        ["tool", "2", {"tool_name": "add"}],
    ]
    rows = [
        {"prompt": turns[:1], "response": REPLY},
        {"prompt": turns, "response": "It is 2."},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = ReplayModel(str(file))
    after = (
        *ASKED.prompt,
        Message("assistant", "", tool_calls=(CALL,)),
        Message("tool", "2", tool_name="add"),
    )
    results: Any = dict(model.answer_batch([ASKED, Generate(after, tools=(ADD,))]))
    model.unload()
    assert results[0].tool_calls == (CALL,)
    assert results[1].text == "It is 2."
