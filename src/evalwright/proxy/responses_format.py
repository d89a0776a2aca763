"""OpenAI's responses: items to `Generate`, responses to items and to the events of a stream.

Carried: input (text or items: messages, calls of functions, their outputs, reasoning that this
proxy sent), instructions, max_output_tokens, temperature, top_p, top_logprobs, tools (functions),
tool_choice, parallel_tool_calls, text.format, reasoning.effort, stream. Nothing is kept for
`previous_response_id`: the client sends the whole conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.core.outcomes import LENGTH
from evalwright.core.requests import Generate, Message, Part
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.proxy import openai_errors
from evalwright.proxy.chat_format import canonical_text
from evalwright.proxy.faults import Fault, invalid
from evalwright.proxy.fields import (
    MAX_TOKENS,
    Fields,
    checked_choice,
    joined,
    read_call,
    read_image,
    read_tools,
)
from evalwright.proxy.inbound import Answered, Inbound, event, sign, unsign
from evalwright.proxy.openai_errors import PING, is_refusal

IGNORED = frozenset(
    (
        "user",
        "metadata",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
    )
)
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "store": (False,),
    "truncation": ("disabled",),
    "service_tier": ("auto", "default"),
    "background": (False,),
    "max_tool_calls": (),
}
HINTS = {
    "previous_response_id": "The proxy keeps no conversations: send all items.",
    "conversation": "The proxy keeps no conversations: send all items.",
    "store": "Nothing is stored at a provider: leave it out, or send false.",
}
LOGPROBS = "message.output_text.logprobs"
ENCRYPTED = "reasoning.encrypted_content"


def read(body: Any) -> Inbound:
    """Read the body of a request for a response.

    Raises:
        Fault: something in it cannot be carried.
    """
    fields = Fields(body)
    model = fields.required_text("model")
    instructions = fields.text("instructions")
    turns = _turns(fields.take("input"))
    if instructions:
        turns = (Message("system", instructions), *turns)
    stream = fields.flag("stream") or False
    stream_options = fields.fields("stream_options")
    if stream_options is not None:
        stream_options.finish(("include_obfuscation",))
    alternatives = _alternatives(fields)
    reasoning = fields.fields("reasoning")
    effort = None
    if reasoning is not None:
        effort = reasoning.text("effort")
        reasoning.finish(("summary", "generate_summary"))
    rows = [
        _function(row, f"tools[{index}]")
        for index, row in enumerate(fields.rows("tools") or ())
    ]
    tools = read_tools(rows)
    choice = checked_choice(tools, _tool_choice(fields))
    parallel = fields.flag("parallel_tool_calls")
    request = Generate(
        turns,
        max_tokens=fields.whole_number("max_output_tokens", 1, MAX_TOKENS),
        temperature=fields.number("temperature", 0.0, 100.0),
        top_p=fields.number("top_p", 0.0, 1.0),
        top_logprobs=alternatives,
        reasoning_effort=effort,
        json_schema=_json_schema(fields.fields("text")),
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=parallel if tools else None,
    )
    fields.finish(IGNORED, NEUTRAL, HINTS)
    return Inbound(model, (request,), 1, stream, shape={"tools": rows})


def _alternatives(fields: Fields) -> int | None:
    """Return how many alternatives each token should have; None for no log-probabilities."""
    include = fields.rows("include") or ()
    for name in include:
        if name not in (LOGPROBS, ENCRYPTED):
            raise invalid(
                f"'include' can have '{LOGPROBS}' and '{ENCRYPTED}', not"
                f" {str(name)[:80]!r}.",
                "include",
            )
    alternatives = fields.whole_number("top_logprobs", 0, 20)
    return (alternatives or 0) if LOGPROBS in include else (alternatives or None)


def _function(row: Any, where: str) -> dict[str, Any]:
    fields = Fields(row, where)
    if fields.text("type") != "function":
        raise invalid(
            f"{where} is not a function: tools that a provider runs itself cannot be"
            " carried to every model.",
            where,
        )
    function = {
        name: content
        for name in ("name", "description", "parameters")
        if (content := fields.take(name)) is not None
    }
    fields.finish(("strict",))
    return function


def _tool_choice(fields: Fields) -> str | None:
    choice = fields.take("tool_choice")
    if choice is None or isinstance(choice, str):
        return choice
    named = Fields(choice, "tool_choice")
    if named.take("type") != "function":
        raise invalid("'tool_choice' can only name a function.", "tool_choice")
    name = named.required_text("name")
    named.finish()
    return name


def _json_schema(text: Fields | None) -> str | None:
    if text is None:
        return None
    wanted = text.fields("format")
    text.finish((), {"verbosity": ("medium",)})
    if wanted is None:
        return None
    kind = wanted.required_text("type")
    schema = wanted.take("schema")
    wanted.finish(("name", "description", "strict"))
    if kind == "text":
        return None
    if kind != "json_schema" or not isinstance(schema, Mapping):
        raise invalid(
            "'text.format' is carried with the type 'text', or 'json_schema' and a"
            " schema.",
            "text.format",
        )
    return canonical_text(schema)


def _turns(items: Any) -> tuple[Message, ...]:
    """Return the conversation; an assistant's reasoning, text and calls become one turn."""
    if isinstance(items, str):
        return (Message("user", items),)
    if not isinstance(items, list) or not items:
        raise invalid("The field 'input' must be a text or a list of items.", "input")
    turns: list[Message] = []
    thoughts = ("", "")
    for index, item in enumerate(items):
        where = f"input[{index}]"
        fields = Fields(item, where)
        kind = fields.text("type", "message")
        if kind == "reasoning":
            thoughts = _reasoning(fields, where)
            continue
        if kind == "function_call":
            call = read_call(
                fields.take("name"),
                fields.take("arguments"),
                fields.take("call_id"),
                where,
            )
            fields.finish(("id", "status"))
            turns = _with_call(turns, call)
        elif kind == "function_call_output":
            call_id = fields.required_text("call_id")
            output = _content(fields.take("output"), f"{where}.output")
            fields.finish(("id", "status"))
            turns.append(Message("tool", output, tool_call_id=call_id))
        elif kind == "message":
            turns.append(_message(fields, where))
        else:
            raise invalid(
                f"{where} is of the type '{str(kind)[:40]}', which cannot be carried.",
                where,
            )
        if any(thoughts) and turns[-1].role == "assistant":
            # Models want their reasoning back only with calls.
            keeps = turns[-1].tool_calls
            turns[-1] = replace(
                turns[-1],
                reasoning=thoughts[0] if keeps else "",
                provider_content=thoughts[1],
            )
            thoughts = thoughts if not keeps else ("", "")
        else:
            thoughts = ("", "")
    return tuple(turns)


def _with_call(turns: list[Message], call: ToolCall) -> list[Message]:
    if turns and turns[-1].role == "assistant":
        last = turns[-1]
        return [*turns[:-1], replace(last, tool_calls=(*last.tool_calls, call))]
    return [*turns, Message("assistant", "", tool_calls=(call,))]


def _reasoning(fields: Fields, where: str) -> tuple[str, str]:
    """Return reasoning that this proxy sent: its text, and what the provider wants back."""
    content = fields.rows("content") or ()
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    signature = fields.text("encrypted_content", "") or ""
    fields.finish(("id", "summary", "status"))
    text = "".join(part for part in texts if isinstance(part, str))
    return text, unsign(signature, f"{where}.encrypted_content")


def _message(fields: Fields, where: str) -> Message:
    role = fields.required_text("role")
    content = _content(fields.take("content"), f"{where}.content")
    fields.finish(("id", "status", "phase"))
    if role == "developer":
        role = "system"
    if role not in ("system", "user", "assistant"):
        raise invalid(
            f"The role '{role[:40]}' of {where} is not known.", f"{where}.role"
        )
    return Message(role, content)  # type: ignore[arg-type]


def _content(content: Any, where: str) -> str | tuple[Part, ...]:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(f"{where} must be text or a list of parts.", where)
    return joined(
        [_part(part, f"{where}[{index}]") for index, part in enumerate(content)]
    )


def _part(row: Any, where: str) -> Part:
    fields = Fields(row, where)
    kind = fields.required_text("type")
    if kind in ("input_text", "output_text", "refusal"):
        text = fields.required_text("refusal" if kind == "refusal" else "text")
        fields.finish(("annotations", "logprobs"))
        return text
    if kind != "input_image":
        raise invalid(
            f"{where} is of the type '{kind[:40]}', which cannot be carried: use"
            " input_text and input_image.",
            where,
        )
    url = fields.take("image_url")
    fields.finish((), {"detail": ("auto",)})
    return read_image(url, f"{where}.image_url")


def write(answered: Answered) -> dict[str, Any]:
    """Return the response object as JSON."""
    response = answered.responses[0][0]
    is_cut = response.finish_reason in (LENGTH, "cut", "content_filter")
    reason = "max_output_tokens" if response.finish_reason in (LENGTH, "cut") else None
    if response.finish_reason == "content_filter":
        reason = "content_filter"
    return {
        **_head(answered),
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "output": list(_items(answered, response)),
        "usage": _usage(response),
    }


def _head(answered: Answered) -> dict[str, Any]:
    request = answered.inbound.requests[0]
    assert isinstance(request, Generate)
    return {
        "id": f"resp_{answered.id}",
        "object": "response",
        "created_at": answered.created,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": answered.inbound.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "store": False,
        "temperature": request.temperature,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [
            {"type": "function", **row} for row in answered.inbound.shape["tools"]
        ],
        "top_p": request.top_p,
        "truncation": "disabled",
        "usage": None,
    }


def _usage(response: Response) -> dict[str, Any]:
    usage = response.usage
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _items(answered: Answered, response: Response) -> Iterator[dict[str, Any]]:
    """Yield the items of the output: reasoning, the message, calls."""
    signature = sign(response.provider_content)
    if response.reasoning or signature:
        thoughts: dict[str, Any] = {
            "id": f"rs_{answered.id}",
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": response.reasoning}],
        }
        if not response.reasoning:
            del thoughts["content"]
        if signature:
            thoughts["encrypted_content"] = signature
        yield thoughts
    if response.text or not response.tool_calls:
        yield {
            "id": f"msg_{answered.id}",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [_output_part(response)],
        }
    for index, call in enumerate(response.tool_calls):
        yield {
            "id": f"fc_{answered.id}_{index}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id or f"call_{index}",
            "name": call.name,
            "arguments": call.arguments,
        }


def _output_part(response: Response) -> dict[str, Any]:
    if is_refusal(response):
        return {"type": "refusal", "refusal": response.text}
    rows = [openai_errors.token_row(token) for token in response.tokens]
    return {
        "type": "output_text",
        "text": response.text,
        "annotations": [],
        "logprobs": rows,
    }


def events(answered: Answered) -> bytes:
    """Return the response as the events of a stream."""
    whole = write(answered)
    head = _head(answered)
    steps: list[dict[str, Any]] = [
        {"type": "response.created", "response": head},
        {"type": "response.in_progress", "response": head},
    ]
    for index, item in enumerate(whole["output"]):
        steps += _item_steps(item, index)
    end = "incomplete" if whole["status"] == "incomplete" else "completed"
    steps.append({"type": f"response.{end}", "response": whole})
    return b"".join(
        event({**step, "sequence_number": number}, step["type"])
        for number, step in enumerate(steps)
    )


def _item_steps(item: Mapping[str, Any], index: int) -> list[dict[str, Any]]:
    """Return the events of one item of the output."""
    place = {"output_index": index, "item_id": item["id"]}
    begun = {**item, "status": "in_progress"}
    middle: Sequence[dict[str, Any]] = ()
    if item["type"] == "message":
        begun["content"] = []
        middle = _part_steps(item["content"][0], {**place, "content_index": 0})
    elif item["type"] == "function_call":
        begun["arguments"] = ""
        arguments = item["arguments"]
        kind = "response.function_call_arguments"
        middle = [
            {"type": f"{kind}.delta", **place, "delta": arguments},
            {
                "type": f"{kind}.done",
                **place,
                "name": item["name"],
                "arguments": arguments,
            },
        ]
    elif item.get("content"):
        text = item["content"][0]["text"]
        inner = {**place, "content_index": 0}
        begun = {**item, "content": []}
        middle = [
            {"type": "response.reasoning_text.delta", **inner, "delta": text},
            {"type": "response.reasoning_text.done", **inner, "text": text},
        ]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *middle,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _part_steps(
    part: Mapping[str, Any], place: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the events of a message's part."""
    field = "refusal" if part["type"] == "refusal" else "text"
    kind = f"response.{part['type']}"
    text = part[field]
    empty = {**part, field: ""}
    logprobs: dict[str, Any] = {}
    if field == "text":
        empty["logprobs"] = []
        logprobs = {"logprobs": part["logprobs"]}
    return [
        {"type": "response.content_part.added", **place, "part": empty},
        {"type": f"{kind}.delta", **place, "delta": text, **logprobs},
        {"type": f"{kind}.done", **place, field: text, **logprobs},
        {"type": "response.content_part.done", **place, "part": part},
    ]


class ResponsesFormat:
    """OpenAI's responses."""

    name = "responses"
    ping = PING
    read = staticmethod(read)
    write = staticmethod(write)
    events = staticmethod(events)

    def error(self, fault: Fault) -> dict[str, Any]:
        """Return an error as JSON."""
        return openai_errors.error(fault)

    def error_event(self, fault: Fault) -> bytes:
        """Return an error as an event of a stream that has begun."""
        details = openai_errors.error(fault)["error"]
        return event({**details, "type": "error", "sequence_number": 0}, "error")
