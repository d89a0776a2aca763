"""What Anthropic, Google and Amazon refuse of the tools in a request, beyond its schema.

Each function returns what the provider would say, or None. Signed thinking is checked: a signature
of these tests is `sign` of what it signs, so that a changed block does not pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

ANY_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for calls that Gemini did not write."""


def sign(content: Any) -> str:
    """The signature of a thought or of a call; Base64 letters."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return "c2ln" + blake2b(text.encode(), digest_size=12).hexdigest()


def refused_by_anthropic(body: Mapping[str, Any]) -> str | None:
    """Rules of Claude's tools, of the order of calls and results, and of thinking."""
    return (
        _refused_choice(body)
        or _refused_blocks(body["messages"])
        or _refused_thinking(body)
    )


def _refused_choice(body: Mapping[str, Any]) -> str | None:
    names = [tool["name"] for tool in body.get("tools", ())]
    kinds = ("tool_use", "tool_result")
    if not names and any(
        _blocks(message, kind) for message in body["messages"] for kind in kinds
    ):
        return "Requests which include `tool_use` or `tool_result` blocks must define tools."
    if len(names) != len(set(names)):
        return "tools: Tool names must be unique."
    choice = body.get("tool_choice")
    if choice is None:
        return None
    if not names:
        return "tool_choice may only be specified while providing tools."
    if choice["type"] == "tool" and choice["name"] not in names:
        return f"tool_choice: Tool '{choice['name']}' not found in provided tools"
    is_forced = choice["type"] in ("any", "tool")
    if is_forced and body.get("thinking", {}).get("type") == "enabled":
        return "Thinking may not be enabled when tool_choice forces tool use."
    return None


def _blocks(message: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    content = message["content"]
    return [
        block
        for block in (content if isinstance(content, list) else ())
        if block["type"] == kind
    ]


def _refused_blocks(messages: list[Mapping[str, Any]]) -> str | None:
    seen: set[str] = set()
    waiting: list[str] = []
    for message_index, message in enumerate(messages):
        calls = [block["id"] for block in _blocks(message, "tool_use")]
        results = [block["tool_use_id"] for block in _blocks(message, "tool_result")]
        if (calls and message["role"] != "assistant") or (
            results and message["role"] != "user"
        ):
            return f"messages.{message_index}: a block of the other role"
        if seen.intersection(calls) or len(calls) != len(set(calls)):
            return f"messages.{message_index}: `tool_use` ids must be unique"
        if sorted(results) != sorted(waiting):
            lacking = sorted(set(waiting) - set(results))
            if lacking:
                return (
                    f"messages.{message_index}: `tool_use` ids were found without `tool_result`"
                    f" blocks immediately after: {', '.join(lacking)}."
                )
            return f"messages.{message_index}: unexpected `tool_use_id` found in `tool_result`"
        kinds = [block["type"] for block in message["content"]] if results else []
        if any(kind != "tool_result" for kind in kinds[: len(results)]):
            return f"messages.{message_index}: `tool_result` blocks must come first"
        for block in _blocks(message, "tool_result"):
            if block.get("is_error") and not block.get("content"):
                return "tool_result: content cannot be empty if `is_error` is true"
        seen.update(calls)
        waiting = calls
    if waiting:
        return "`tool_use` ids were found without `tool_result` blocks at the end"
    return None


def _refused_thinking(body: Mapping[str, Any]) -> str | None:
    turns = [turn for turn in body["messages"] if turn["role"] == "assistant"]
    for turn in turns:
        for block in _blocks(turn, "thinking"):
            if block["signature"] != sign(block["thinking"]):
                return "Invalid `signature` in `thinking` block"
        for block in _blocks(turn, "redacted_thinking"):
            if not block["data"].startswith(sign("hidden")):
                return "Invalid `data` in `redacted_thinking` block"
    is_thinking = body.get("thinking", {}).get("type") == "enabled"
    answers_results = bool(_blocks(body["messages"][-1], "tool_result"))
    if is_thinking and answers_results:
        first = turns[-1]["content"][0]["type"]
        if first not in ("thinking", "redacted_thinking"):
            return (
                f"Expected `thinking` or `redacted_thinking`, but found `{first}`. When"
                " `thinking` is enabled, a final `assistant` message must start with a"
                " thinking block."
            )
    return None


def refused_by_google(body: Mapping[str, Any], model: str) -> str | None:
    """Rules of Gemini's functions, of the order of calls and responses, and of signatures."""
    declared = [
        declaration["name"]
        for tool in body.get("tools", ())
        for declaration in tool.get("functionDeclarations", ())
    ]
    if len(declared) != len(set(declared)):
        return "Duplicate function declaration found"
    config = body.get("toolConfig", {}).get("functionCallingConfig", {})
    allowed = config.get("allowedFunctionNames", [])
    if allowed and config.get("mode") != "ANY":
        return "allowed_function_names may only be set when the mode is ANY."
    if not set(allowed) <= set(declared):
        return "allowed_function_names should be a subset of the declared names."
    if config.get("mode") == "ANY" and not declared:
        return "Function calling config is set without function_declarations."
    return _refused_parts(body["contents"], model)


def _refused_parts(contents: list[Mapping[str, Any]], model: str) -> str | None:
    checks_signatures = "gemini-3" in model
    waiting: list[Mapping[str, Any]] = []
    for content in contents:
        calls = _of_kind(content, "functionCall")
        responses = _of_kind(content, "functionResponse")
        if (calls and content["role"] != "model") or (
            responses and content["role"] != "user"
        ):
            return "a part of the other role"
        if len(waiting) != len(responses):
            return (
                "Please ensure that the number of function response parts is equal to"
                " the number of function call parts of the function call turn."
            )
        for call, response in zip(waiting, responses, strict=True):
            if call["name"] != response["name"] or call.get("id") != response.get("id"):
                return "A function response does not match its function call."
        waiting = calls
        if checks_signatures and calls:
            first = next(part for part in content["parts"] if "functionCall" in part)
            if "thoughtSignature" not in first:
                return "Function call is missing a thought_signature."
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            signed = {key: part[key] for key in part if key != "thoughtSignature"}
            if signature not in (None, ANY_SIGNATURE, sign(signed)):
                return "Thought signature is not valid."
    return "Function calls without responses at the end." if waiting else None


def _of_kind(content: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return [part[kind] for part in content["parts"] if kind in part]


def refused_by_amazon(body: Mapping[str, Any], model: str) -> str | None:
    """Rules of Converse alone; those of Claude are checked on `as_anthropic`."""
    blocks = [block for turn in body["messages"] for block in turn["content"]]
    if "toolConfig" not in body and any(
        "toolUse" in block or "toolResult" in block for block in blocks
    ):
        return (
            "The toolConfig field must be defined when using toolUse and toolResult"
            " content blocks."
        )
    additional = body.get("additionalModelRequestFields", {})
    choice = body.get("toolConfig", {}).get("toolChoice")
    if choice and "tool_choice" in additional:
        return (
            "The additional field tool_choice/type conflicts with the existing field"
            f" toolConfig.toolChoice.{next(iter(choice))}."
        )
    if "claude" not in model and additional.get("tool_choice"):
        return "extraneous key [tool_choice] is not permitted"
    takes_status = "claude" in model or "nova" in model
    for block in blocks:
        if "status" in block.get("toolResult", {}) and not takes_status:
            return "This model doesn't support the toolResult.status field."
        thought = block.get("reasoningContent", {}).get("reasoningText")
        if thought and "signature" not in thought:
            return "This model doesn't support unsigned reasoningContent."
    return None


def as_anthropic(body: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Messages and tools of a Converse body as fields of Anthropic's."""
    yield (
        "messages",
        [
            {"role": turn["role"], "content": _anthropic_content(turn["content"])}
            for turn in body["messages"]
        ],
    )
    config = body.get("toolConfig")
    if not config:
        return
    yield (
        "tools",
        [
            {
                "name": tool["toolSpec"]["name"],
                "input_schema": tool["toolSpec"]["inputSchema"]["json"],
            }
            for tool in config["tools"]
        ],
    )
    for kind, fields in config.get("toolChoice", {}).items():
        yield "tool_choice", {"type": kind, **fields}


def _anthropic_content(blocks: list[Mapping[str, Any]]) -> Any:
    if len(blocks) == 1 and "text" in blocks[0]:
        return blocks[0]["text"]
    return [_anthropic_block(block) for block in blocks]


def _anthropic_block(block: Mapping[str, Any]) -> dict[str, Any]:
    if "toolUse" in block:
        call = block["toolUse"]
        return {
            "type": "tool_use",
            "id": call["toolUseId"],
            "name": call["name"],
            "input": call["input"],
        }
    if "toolResult" in block:
        result = block["toolResult"]
        return {
            "type": "tool_result",
            "tool_use_id": result["toolUseId"],
            "content": [_anthropic_block(part) for part in result["content"]],
            "is_error": result.get("status") == "error",
        }
    thought = block.get("reasoningContent")
    if thought is None:
        return {"type": "text", "text": block.get("text", "an image")}
    if "redactedContent" in thought:
        return {"type": "redacted_thinking", "data": thought["redactedContent"]}
    text = thought["reasoningText"]
    return {
        "type": "thinking",
        "thinking": text["text"],
        "signature": text.get("signature", ""),
    }
