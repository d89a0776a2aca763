"""What OpenAI's formats, Mistral's and Cohere's document of tools, strictly: the schemas of
definitions, calls and results, and rules between turns (`refused_by_...`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
_NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
_TEXT = {"type": "string"}


def _object(required: str, properties: Json) -> Json:
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


_FUNCTION = {
    "name": _NAME,
    "description": _TEXT,
    "parameters": {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"const": "object"}},
    },
    "strict": {"type": ["boolean", "null"]},
}


def _definitions(item: Json) -> Json:
    return {"type": "array", "minItems": 1, "maxItems": 128, "items": item}


def _choice(words: tuple[str, ...], named: Json | None) -> Json:
    return {"anyOf": [{"enum": list(words)}, *([named] if named else [])]}


_TOOL = _object("type function", {"type": {"const": "function"}, "function": _object("name", _FUNCTION)})  # fmt: skip
_NAMED = _object("type function", {"type": {"const": "function"}, "function": _object("name", {"name": _NAME})})  # fmt: skip
_CALL = _object(
    "id type function",
    {
        "id": {"type": "string", "minLength": 1},
        "type": {"const": "function"},
        "function": _object("name arguments", {"name": _NAME, "arguments": _TEXT}),
    },
)
_CALLS = {"type": "array", "minItems": 1, "items": _CALL}


def with_tools(schemas: dict[str, Json]) -> dict[str, Json]:
    """The schemas of bodies with what the four formats document of tools."""
    for name, extend in _EXTENSIONS.items():
        extend(schemas[name]["properties"])
    return schemas


def _extend_chat(fields: Json) -> None:
    turn = fields["messages"]["items"]
    content = turn["properties"]["content"]
    assistant = _object(
        "role tool_calls",
        {
            "role": {"const": "assistant"},
            "content": {"anyOf": [content, {"type": "null"}]},
            "refusal": {},
            "tool_calls": _CALLS,
        },
    )
    turn["properties"]["role"] = {"enum": ["system", "developer", "user", "assistant"]}
    texts = {"type": "array", "minItems": 1, "items": _object("type text", {"type": {"const": "text"}, "text": _TEXT})}  # fmt: skip
    tool = _object(
        "role tool_call_id content",
        {
            "role": {"const": "tool"},
            "tool_call_id": _TEXT,
            "content": {"anyOf": [_TEXT, texts]},
        },
    )
    fields["messages"]["items"] = {"anyOf": [turn, assistant, tool]}
    fields["tools"] = _definitions(_TOOL)
    fields["tool_choice"] = _choice(("auto", "none", "required"), _NAMED)
    fields["parallel_tool_calls"] = {"type": "boolean"}


def _extend_mistral(fields: Json) -> None:
    tool = _object(
        "role content tool_call_id",
        {
            "role": {"const": "tool"},
            "content": _TEXT,
            "tool_call_id": _TEXT,
            "name": _TEXT,
        },
    )
    assistant = _object(
        "role tool_calls",
        {
            "role": {"const": "assistant"},
            "content": {"type": ["string", "null"]},
            "tool_calls": _CALLS,
        },
    )
    fields["messages"]["items"]["anyOf"] += [assistant, tool]
    fields["tools"] = _definitions(_TOOL)
    fields["tool_choice"] = _choice(("auto", "none", "any", "required"), _NAMED)
    fields["parallel_tool_calls"] = {"type": "boolean"}


def _extend_cohere(fields: Json) -> None:
    turn = fields["messages"]["items"]
    block = _object("type", {"type": {"enum": ["text", "thinking"]}, "text": _TEXT, "thinking": _TEXT})  # fmt: skip
    content = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "items": block}]}  # fmt: skip
    assistant = _object(
        "role tool_calls",
        {
            "role": {"const": "assistant"},
            "tool_calls": _CALLS,
            "tool_plan": _TEXT,
            "content": content,
            "citations": {},
        },
    )
    tool = _object(
        "role tool_call_id content",
        {"role": {"const": "tool"}, "tool_call_id": _TEXT, "content": _TEXT},
    )
    fields["messages"]["items"] = {"anyOf": [turn, assistant, tool]}
    fields["tools"] = _definitions(_TOOL)
    fields["tool_choice"] = {"enum": ["REQUIRED", "NONE"]}


def _extend_responses(fields: Json) -> None:
    items = fields["input"]["anyOf"][1]
    call_id = {"type": "string", "minLength": 1, "maxLength": 64}
    status = {"enum": ["in_progress", "completed", "incomplete"]}
    call = _object(
        "type call_id name arguments",
        {
            "type": {"const": "function_call"},
            "call_id": call_id,
            "name": _NAME,
            "arguments": _TEXT,
            "id": _TEXT,
            "status": status,
        },
    )
    output = _object(
        "type call_id output",
        {
            "type": {"const": "function_call_output"},
            "call_id": call_id,
            "output": _TEXT,
        },
    )
    reasoning = _object(
        "type id summary encrypted_content",
        {
            "type": {"const": "reasoning"},
            "id": _TEXT,
            "summary": {"type": "array"},
            "encrypted_content": {"type": "string", "minLength": 1},
            "status": status,
        },
    )
    message = _object(
        "type id role content status",
        {
            "type": {"const": "message"},
            "id": _TEXT,
            "role": {"const": "assistant"},
            "content": {"type": "array"},
            "status": status,
            "phase": {"enum": ["commentary", "final_answer"]},
        },
    )
    items["items"] = {"anyOf": [items["items"], call, output, reasoning, message]}
    fields["tools"] = _definitions(
        _object(
            "type name parameters strict", {"type": {"const": "function"}, **_FUNCTION}
        )
    )
    named = _object("type name", {"type": {"const": "function"}, "name": _NAME})
    fields["tool_choice"] = _choice(("auto", "none", "required"), named)
    fields["parallel_tool_calls"] = {"type": "boolean"}
    included = ["message.output_text.logprobs", "reasoning.encrypted_content"]
    fields["include"] = {"type": "array", "items": {"enum": included}}


_EXTENSIONS = {
    "openai-chat": _extend_chat,
    "mistral": _extend_mistral,
    "cohere": _extend_cohere,
    "openai-responses": _extend_responses,
}


def _choice_refused(body: Mapping[str, Any], names: list[str]) -> str | None:
    for field in ("tool_choice", "parallel_tool_calls"):
        if field in body and not names:
            return f"'{field}' is only allowed when 'tools' are specified."
    if len(set(names)) < len(names):
        return "Tool names must be unique."
    choice = body.get("tool_choice")
    if isinstance(choice, Mapping):
        name = choice.get("name") or choice["function"]["name"]
        return None if name in names else f"Tool choice '{name}' not found in 'tools'."
    return None


def refused_in_chat(body: Mapping[str, Any]) -> str | None:
    """What is wrong with the tools of a body in OpenAI's chat format, or a format near it."""
    names = [tool["function"]["name"] for tool in body.get("tools", ())]
    return _choice_refused(body, names) or _unanswered(body["messages"])


def _unanswered(messages: list[Json]) -> str | None:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return (
                    "messages with role 'tool' must be a response to a preceeding message"
                    " with 'tool_calls'."
                )
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            break
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(waiting)) < len(waiting):
            return "Duplicate ids of tool calls."
    if waiting:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages"
            f" responding to each 'tool_call_id': {waiting}"
        )
    return None


def refused_by_mistral(body: Mapping[str, Any]) -> str | None:
    """What is wrong with the tools of a body for Mistral."""
    for message in body["messages"]:
        for call in message.get("tool_calls", ()):
            if not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]):
                return (
                    f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a"
                    " length of 9."
                )
            json.loads(call["function"]["arguments"])
    return refused_in_chat(body)


def refused_in_responses(body: Mapping[str, Any]) -> str | None:
    """What is wrong with the tools of a body of OpenAI's responses."""
    waiting: list[str] = []
    items = body["input"] if isinstance(body["input"], list) else []
    for item in items:
        if item.get("type") == "function_call_output":
            if item["call_id"] not in waiting:
                return f"No tool call found for call_id {item['call_id']}."
            waiting.remove(item["call_id"])
        elif item.get("type") == "function_call":
            waiting.append(item["call_id"])
        elif item.get("role") == "user" and waiting:
            return f"No tool output found for function call {waiting[0]}."
    if waiting:
        return f"No tool output found for function call {waiting[0]}."
    encrypted = "reasoning.encrypted_content" in body.get("include", ())
    if encrypted and not re.match(r"o\d|gpt-5", body.get("model", "")):
        return "Encrypted content is not supported with this model."
    return _choice_refused(body, [tool["name"] for tool in body.get("tools", ())])


def refused_by_thinkers(body: Mapping[str, Any]) -> str | None:
    """What DeepSeek, Moonshot and Xiaomi refuse: calls without the reasoning before them."""
    for index, message in enumerate(body["messages"]):
        if message.get("tool_calls") and "reasoning_content" not in message:
            return (
                "thinking is enabled but reasoning_content is missing in assistant tool"
                f" call message at index {index}"
            )
    return None
