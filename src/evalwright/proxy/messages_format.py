"""Anthropic's messages: JSON to `Generate`, responses to JSON and to the events of a stream.

Carried: system, messages with texts, images in base64, calls of tools and their results, and
reasoning that this proxy sent; max_tokens, temperature, top_p, top_k, stop_sequences, tools,
tool_choice, thinking, stream. A temperature that is left out is left to the model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.core.outcomes import CONTENT_FILTER, LENGTH
from evalwright.core.requests import Generate, Message, Part
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.proxy.chat_format import canonical_text
from evalwright.proxy.faults import Fault, FaultKind, invalid
from evalwright.proxy.fields import (
    MAX_TOKENS,
    Fields,
    checked_choice,
    joined,
    read_call,
    read_image,
    read_tools,
    stop_strings,
)
from evalwright.proxy.inbound import Answered, Inbound, event, sign, unsign
from evalwright.proxy.openai_errors import is_refusal

MAX_THINKING_TOKENS = 10_000_000
IGNORED = frozenset(("metadata", "cache_control"))
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "service_tier": ("auto", "standard_only"),
    "container": (),
    "mcp_servers": ([],),
}
_TYPES: dict[FaultKind, str] = {
    "invalid": "invalid_request_error",
    "authentication": "authentication_error",
    "permission": "permission_error",
    "not found": "not_found_error",
    "too large": "request_too_large",
    "rate limit": "rate_limit_error",
    "billing": "billing_error",
    "overloaded": "overloaded_error",
    "server": "api_error",
    "timeout": "timeout_error",
}


def read(body: Any) -> Inbound:
    """Read the body of a message.

    Raises:
        Fault: something in it cannot be carried.
    """
    inbound = _read(Fields(body))
    if getattr(inbound.requests[0], "max_tokens", None) is None:
        raise invalid("The field 'max_tokens' is missing.", "max_tokens")
    return inbound


def read_count(body: Any) -> Inbound:
    """Read the body of a request to count the tokens of a prompt."""
    return _read(Fields(body))


def _read(fields: Fields) -> Inbound:
    model = fields.required_text("model")
    rows = fields.rows("messages")
    if not rows:
        raise invalid(
            "The field 'messages' must be a list of at least one message.", "messages"
        )
    system = fields.take("system")
    turns: list[Message] = []
    if system:
        turns.append(Message("system", _texts(system, "system")))
    for index, row in enumerate(rows):
        turns += _turns(row, f"messages[{index}]")
    tool_rows = [
        _tool(row, f"tools[{index}]")
        for index, row in enumerate(fields.rows("tools") or ())
    ]
    tools = read_tools(tool_rows)
    choice, parallel = _tool_choice(fields.fields("tool_choice"))
    most = fields.whole_number("max_tokens", 1, MAX_TOKENS)
    thinking = _thinking(fields.fields("thinking"))
    request = Generate(
        tuple(turns),
        max_tokens=_most_of_answer(most, thinking),
        temperature=fields.number("temperature", 0.0, 100.0),
        top_p=fields.number("top_p", 0.0, 1.0),
        top_k=fields.whole_number("top_k", 1, 1 << 31),
        stop=stop_strings(fields, "stop_sequences"),
        reasoning_budget=thinking,
        json_schema=_json_schema(fields.fields("output_config")),
        tools=tools,
        tool_choice=checked_choice(tools, choice),
        parallel_tool_calls=parallel if tools else None,
    )
    stream = fields.flag("stream") or False
    fields.finish(IGNORED, NEUTRAL)
    return Inbound(model, (request,), 1, stream)


def _json_schema(wanted: Fields | None) -> str | None:
    if wanted is None:
        return None
    form = wanted.fields("format")
    wanted.finish()
    if form is None:
        return None
    kind = form.required_text("type")
    schema = form.take("schema")
    form.finish()
    if kind != "json_schema" or not isinstance(schema, Mapping):
        raise invalid(
            "'output_config.format' is carried with the type 'json_schema' alone.",
            "output_config.format",
        )
    return canonical_text(schema)


def _thinking(thinking: Fields | None) -> int | None:
    if thinking is None:
        return None
    kind = thinking.required_text("type")
    budget = thinking.whole_number("budget_tokens", 1, MAX_THINKING_TOKENS)
    thinking.finish(("display",))
    if kind == "disabled":
        return None
    if kind != "enabled" or budget is None:
        raise invalid(
            "'thinking' is carried with the type 'enabled' and budget_tokens, or"
            " 'disabled'.",
            "thinking",
        )
    return budget


def _most_of_answer(most: int | None, thinking: int | None) -> int | None:
    """Return the most tokens of the answer: here, what a client allows includes its thinking."""
    if most is None or thinking is None:
        return most
    if most <= thinking:
        raise invalid(
            f"'max_tokens' ({most:,}) must be greater than 'thinking.budget_tokens'"
            f" ({thinking:,}), which it includes.",
            "max_tokens",
        )
    return most - thinking


def _tool(row: Any, where: str) -> dict[str, Any]:
    fields = Fields(row, where)
    if fields.text("type", "custom") != "custom":
        raise invalid(
            f"{where} is a tool that the provider runs itself, which cannot be carried to"
            " every model.",
            where,
        )
    tool = {"name": fields.take("name"), "description": fields.take("description", "")}
    schema = fields.take("input_schema")
    fields.finish(("cache_control", "strict", "eager_input_streaming"))
    return {**tool, "parameters": schema}


def _tool_choice(choice: Fields | None) -> tuple[str | None, bool | None]:
    """Return the choice of tools, and whether calls may be parallel."""
    if choice is None:
        return None, None
    kind = choice.required_text("type")
    is_single = choice.flag("disable_parallel_tool_use")
    name = choice.text("name")
    choice.finish()
    parallel = None if is_single is None else not is_single
    if kind == "tool":
        return name or "", parallel
    if kind not in ("auto", "any", "none"):
        raise invalid(f"'tool_choice' cannot be '{kind[:40]}'.", "tool_choice")
    return ("required" if kind == "any" else kind), parallel


def _turns(row: Any, where: str) -> Iterator[Message]:
    """Yield the turns in one message: results of tools come before the user's words."""
    fields = Fields(row, where)
    role = fields.required_text("role")
    content = fields.take("content")
    fields.finish()
    if role not in ("user", "assistant"):
        raise invalid(
            f"The role '{role[:40]}' of {where} is not known.", f"{where}.role"
        )
    if isinstance(content, str):
        yield Message(role, content)  # type: ignore[arg-type]
        return
    if not isinstance(content, list):
        raise invalid(
            f"The content of {where} must be text or a list of blocks.", where
        )
    blocks = [
        (Fields(block, f"{where}.content[{index}]"), f"{where}.content[{index}]")
        for index, block in enumerate(content)
    ]
    if role == "assistant":
        yield _assistant_turn(blocks)
        return
    parts: list[Part] = []
    for block, place in blocks:
        kind = block.required_text("type")
        if kind != "tool_result":
            parts.append(_part(block, kind, place))
            continue
        if parts:
            raise invalid(f"{place} belongs before the words of the user.", place)
        yield _result(block, place)
    if parts:
        yield Message("user", joined(parts))


def _result(block: Fields, where: str) -> Message:
    call_id = block.required_text("tool_use_id")
    content = block.take("content", "")
    is_error = block.flag("is_error") or False
    block.finish(("cache_control",))
    if not isinstance(content, str):
        content = _parts(content, f"{where}.content")
    return Message("tool", content, tool_call_id=call_id, is_error=is_error)


def _assistant_turn(blocks: Sequence[tuple[Fields, str]]) -> Message:
    parts: list[Part] = []
    calls: list[ToolCall] = []
    thoughts = ""
    provider_content = ""
    for block, place in blocks:
        kind = block.required_text("type")
        if kind == "thinking":
            thoughts += block.text("thinking", "") or ""
            signature = block.text("signature", "") or ""
            provider_content = (
                unsign(signature, f"{place}.signature") or provider_content
            )
            block.finish()
        elif kind == "redacted_thinking":
            provider_content = unsign(block.text("data", "") or "", f"{place}.data")
            block.finish()
        elif kind == "tool_use":
            arguments = block.take("input", {})
            calls.append(
                read_call(
                    block.take("name"), _arguments(arguments), block.take("id"), place
                )
            )
            block.finish(("cache_control", "caller"))
        else:
            parts.append(_part(block, kind, place))
    return Message(
        "assistant",
        joined(parts),
        tool_calls=tuple(calls),
        reasoning=thoughts if calls else "",
        provider_content=provider_content,
    )


MALFORMED = "arguments"
"""The key of a malformed call's raw text, where its arguments have to be an object."""


def _arguments(arguments: Any) -> str:
    """Return a call's arguments as text, malformed ones as the model wrote them."""
    if isinstance(arguments, Mapping) and list(arguments) == [MALFORMED]:
        raw = arguments[MALFORMED]
        if isinstance(raw, str) and not _is_object(raw):
            return raw
    return json.dumps(arguments, ensure_ascii=False)


def _is_object(text: str) -> bool:
    try:
        ToolCall("", text).parsed()
    except ValueError:
        return False
    return True


def _texts(content: Any, where: str) -> str | tuple[Part, ...]:
    return content if isinstance(content, str) else _parts(content, where)


def _parts(content: Any, where: str) -> str | tuple[Part, ...]:
    if not isinstance(content, list):
        raise invalid(f"{where} must be text or a list of blocks.", where)
    parts = []
    for index, row in enumerate(content):
        place = f"{where}[{index}]"
        block = Fields(row, place)
        parts.append(_part(block, block.required_text("type"), place))
    return joined(parts)


def _part(block: Fields, kind: str, where: str) -> Part:
    if kind == "text":
        text = block.required_text("text")
        block.finish(("cache_control", "citations"))
        return text
    source = block.fields("source") if kind == "image" else None
    if source is None:
        raise invalid(
            f"{where} is of the type '{kind[:40]}', which cannot be carried: use text and"
            " images.",
            where,
        )
    block.finish(("cache_control",))
    if source.text("type") != "base64":
        raise invalid(
            f"{where}.source is an address, and the proxy fetches nothing: send the image"
            " in base64.",
            where,
        )
    media_type = source.required_text("media_type")
    encoded = source.required_text("data")
    source.finish()
    return read_image(f"data:{media_type};base64,{encoded}", f"{where}.source")


def write(answered: Answered) -> dict[str, Any]:
    """Return the message as JSON."""
    response = answered.responses[0][0]
    reason, sequence = _stop(response)
    return {
        **_head(answered),
        "content": list(_blocks(response)),
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": _usage(response),
    }


def _head(answered: Answered) -> dict[str, Any]:
    return {
        "id": f"msg_{answered.id}",
        "type": "message",
        "role": "assistant",
        "model": answered.inbound.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _stop(response: Response) -> tuple[str, str | None]:
    if response.finish_reason in (LENGTH, "cut"):
        return "max_tokens", None
    if response.tool_calls:
        return "tool_use", None
    if is_refusal(response) or response.finish_reason == CONTENT_FILTER:
        return "refusal", None
    if response.stopped_at:
        return "stop_sequence", response.stopped_at
    return "end_turn", None


def _usage(response: Response) -> dict[str, int]:
    usage = response.usage
    return {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
    }


def _blocks(response: Response) -> Iterator[dict[str, Any]]:
    signature = sign(response.provider_content)
    if response.reasoning or signature:
        yield {
            "type": "thinking",
            "thinking": response.reasoning,
            "signature": signature,
        }
    if response.text:
        yield {"type": "text", "text": response.text}
    for index, call in enumerate(response.tool_calls):
        try:
            arguments = call.parsed()
        except ValueError:
            arguments = {MALFORMED: call.arguments}
        yield {
            "type": "tool_use",
            "id": call.id or f"toolu_{index}",
            "name": call.name,
            "input": arguments,
        }


def events(answered: Answered) -> bytes:
    """Return the message as the events of a stream."""
    whole = write(answered)
    begun = {**_head(answered), "usage": {**whole["usage"], "output_tokens": 1}}
    steps = [_step("message_start", message=begun)]
    for index, block in enumerate(whole["content"]):
        steps.append(
            _step("content_block_start", index=index, content_block=_begun(block))
        )
        steps += [
            _step("content_block_delta", index=index, delta=delta)
            for delta in _deltas(block)
        ]
        steps.append(_step("content_block_stop", index=index))
    delta = {name: whole[name] for name in ("stop_reason", "stop_sequence")}
    steps.append(_step("message_delta", delta=delta, usage=whole["usage"]))
    steps.append(_step("message_stop"))
    return b"".join(steps)


def _step(name: str, **content: Any) -> bytes:
    return event({"type": name, **content}, name)


def _begun(block: Mapping[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: empty.get(name, content) for name, content in block.items()} | {
        "type": block["type"]
    }


def _deltas(block: Mapping[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "text":
        return [{"type": "text_delta", "text": block["text"]}]
    if block["type"] == "tool_use":
        arguments = json.dumps(block["input"], ensure_ascii=False)
        return [{"type": "input_json_delta", "partial_json": arguments}]
    return [
        {"type": "thinking_delta", "thinking": block["thinking"]},
        {"type": "signature_delta", "signature": block["signature"]},
    ]


class MessagesFormat:
    """Anthropic's messages."""

    name = "messages"
    ping = _step("ping")
    read = staticmethod(read)
    write = staticmethod(write)
    events = staticmethod(events)

    def error(self, fault: Fault) -> dict[str, Any]:
        """Return an error as JSON."""
        return {
            "type": "error",
            "error": {"type": _TYPES[fault.kind], "message": fault.message},
        }

    def error_event(self, fault: Fault) -> bytes:
        """Return an error as an event of a stream that has begun."""
        return event(self.error(fault), "error")
