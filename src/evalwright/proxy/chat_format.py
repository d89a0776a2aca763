"""OpenAI's chat completions: JSON to `Generate`, responses to JSON and to the chunks of a stream.

Carried: messages with texts, images as data: URLs, tool calls and their results; max_tokens and
max_completion_tokens, temperature, top_p, stop, seed, n, stream, tools, tool_choice,
parallel_tool_calls, response_format, logprobs, top_logprobs, reasoning_effort; top_k, min_p and the
penalties where the model takes them. A temperature that is left out is left to the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.core.requests import Generate, Message, Part
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.proxy import openai_errors
from evalwright.proxy.faults import Fault, invalid
from evalwright.proxy.fields import (
    MAX_DRAWS,
    MAX_TOKENS,
    Fields,
    checked_choice,
    joined,
    read_call,
    read_image,
    read_tools,
    stop_strings,
)
from evalwright.proxy.inbound import Answered, Inbound, event
from evalwright.proxy.openai_errors import DONE, PING, finish_reason, is_refusal

EXTRAS = (
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "min_tokens",
    "ignore_eos",
)
"""Fields that few models take; they go into `generation_arguments`."""
_USUAL = frozenset(("temperature",))
"""What most requests have beside the messages and a limit: the others need not be looked for."""
IGNORED = frozenset(
    (
        "user",
        "metadata",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
    )
)
"""Fields that change no answer."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "repetition_penalty": (1,),
    "logit_bias": ({},),
    "modalities": (["text"],),
    "service_tier": ("auto", "default"),
    "store": (False,),
    "functions": ([],),
}
HINTS = {
    "functions": "Send 'tools' instead.",
    "function_call": "Send 'tool_choice' instead.",
    "store": "Nothing is stored at a provider: leave it out, or send false.",
}
MAX_ALTERNATIVES = 20


def read(body: Any) -> Inbound:
    """Read the body of a chat completion.

    Raises:
        Fault: something in it cannot be carried.
    """
    fields = Fields(body)
    model = fields.required_text("model")
    rows = fields.rows("messages")
    if not rows:
        raise invalid(
            "The field 'messages' must be a list of at least one message.", "messages"
        )
    turns = tuple(_turn(row, f"messages[{index}]") for index, row in enumerate(rows))
    draws = fields.whole_number("n", 1, MAX_DRAWS) or 1
    stream = fields.flag("stream") or False
    include_usage = _include_usage(fields)
    request, extras = read_sampling(fields, turns)
    fields.finish(IGNORED, NEUTRAL, HINTS)
    return Inbound(
        model,
        (request,),
        draws,
        stream,
        extras=extras,
        shape={"include_usage": include_usage},
    )


def _include_usage(fields: Fields) -> bool:
    stream_options = fields.fields("stream_options")
    if stream_options is None:
        return False
    include = stream_options.flag("include_usage")
    stream_options.finish(("include_obfuscation", "continuous_usage_stats"))
    return bool(include)


def read_sampling(
    fields: Fields, prompt: tuple[Message, ...]
) -> tuple[Generate, tuple[str, ...]]:
    """Read everything of a request but its messages; return it, and the names of its extras."""
    limits = [
        fields.whole_number(name, 1, MAX_TOKENS)
        for name in ("max_completion_tokens", "max_tokens")
    ]
    limit = next((limit for limit in limits if limit is not None), None)
    if fields.are_within(_USUAL):
        temperature = fields.number("temperature", 0.0, 100.0)
        return Generate(prompt, max_tokens=limit, temperature=temperature), ()
    definitions = fields.rows("tools")
    for index, definition in enumerate(definitions or ()):
        _check_function(definition, f"tools[{index}]")
    tools = read_tools(definitions)
    extras = neutral_free(fields.extras(EXTRAS))
    request = Generate(
        prompt,
        max_tokens=limit,
        temperature=fields.number("temperature", 0.0, 100.0),
        top_p=fields.number("top_p", 0.0, 1.0),
        stop=stop_strings(fields, "stop"),
        seed=fields.whole_number("seed", -(1 << 63), (1 << 64) - 1),
        top_k=fields.whole_number("top_k", -1, 1 << 31),
        min_p=fields.number("min_p", 0.0, 1.0),
        top_logprobs=_top_logprobs(fields),
        reasoning_effort=fields.text("reasoning_effort"),
        json_schema=_json_schema(fields.fields("response_format")),
        generation_arguments=canonical_text(extras) if extras else None,
        tools=tools,
        tool_choice=checked_choice(tools, _tool_choice(fields)),
        parallel_tool_calls=_parallel(fields, bool(tools)),
    )
    return request, tuple(extras)


def neutral_free(extras: dict[str, Any]) -> dict[str, Any]:
    """Return extras without those that change no answer."""
    return {
        name: content
        for name, content in extras.items()
        if content not in NEUTRAL.get(name, ())
    }


def canonical_text(content: Any) -> str:
    """Return JSON with sorted keys.

    Raises:
        Fault: it has a number that is not finite.
    """
    try:
        return json.dumps(
            content,
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
    except (ValueError, RecursionError):
        raise invalid("The body has a number that is not finite.") from None


def _parallel(fields: Fields, has_tools: bool) -> bool | None:
    parallel = fields.flag("parallel_tool_calls")
    return parallel if has_tools else None


def _check_function(definition: Any, where: str) -> None:
    """Refuse what a definition has beside a function's name, description and parameters."""
    tool = Fields(definition, where)
    if tool.text("type", "function") != "function":
        raise invalid(
            f"{where} is not a function: tools that a provider runs itself cannot be"
            " carried to every model.",
            where,
        )
    function = tool.fields("function")
    if function is None:
        raise invalid(f"The field '{where}.function' is missing.", where)
    tool.finish()
    for name in ("name", "description", "parameters"):
        function.take(name)
    function.finish(("strict",))


def _tool_choice(fields: Fields) -> str | None:
    choice = fields.take("tool_choice")
    if choice is None or isinstance(choice, str):
        return choice
    named = Fields(choice, "tool_choice")
    function = named.fields("function")
    named.take("type")
    named.finish()
    if function is None:
        raise invalid("The field 'tool_choice' must name a function.", "tool_choice")
    name = function.required_text("name")
    function.finish()
    return name


def _top_logprobs(fields: Fields) -> int | None:
    wants = fields.flag("logprobs")
    alternatives = fields.whole_number("top_logprobs", 0, MAX_ALTERNATIVES)
    if not wants:
        if alternatives:
            raise invalid("'top_logprobs' needs 'logprobs': true.", "top_logprobs")
        return None
    return alternatives or 0


def _json_schema(wanted: Fields | None) -> str | None:
    """Return the schema that `response_format` names."""
    if wanted is None:
        return None
    kind = wanted.required_text("type")
    if kind == "text":
        wanted.finish()
        return None
    named = wanted.fields("json_schema")
    if kind != "json_schema" or named is None:
        raise invalid(
            "'response_format' is carried as {'type': 'json_schema', 'json_schema': ...}"
            " alone.",
            "response_format",
        )
    schema = named.take("schema")
    named.finish(("name", "description", "strict"))
    wanted.finish()
    if not isinstance(schema, Mapping):
        raise invalid("The schema must be a JSON object.", "response_format")
    return canonical_text(schema)


def _turn(row: Any, where: str) -> Message:
    """Read one message."""
    fields = Fields(row, where)
    role = fields.required_text("role")
    if role == "developer":
        role = "system"
    content = fields.take("content")
    if role == "tool":
        name = fields.text("name", "") or ""
        call_id = fields.required_text("tool_call_id")
        fields.finish()
        return Message(
            "tool", _content(content, where), tool_call_id=call_id, tool_name=name
        )
    if role not in ("system", "user", "assistant"):
        raise invalid(
            f"The role '{role[:40]}' of {where} is not known.", f"{where}.role"
        )
    if role != "assistant":
        fields.finish()
        return Message(role, _content(content, where))  # type: ignore[arg-type]
    calls = tuple(
        _call(call, f"{where}.tool_calls[{index}]")
        for index, call in enumerate(fields.rows("tool_calls") or ())
    )
    # Models want their reasoning back only with calls; templates drop it elsewhere.
    thoughts = (
        fields.text("reasoning_content", "") or fields.text("reasoning", "") or ""
    )
    refusal = fields.text("refusal", "") or ""
    fields.finish(("reasoning", "annotations", "reasoning_details"), {"audio": ()})
    return Message(
        "assistant",
        _content(content, where) or refusal,
        tool_calls=calls,
        reasoning=thoughts if calls else "",
    )


def _call(row: Any, where: str) -> ToolCall:
    fields = Fields(row, where)
    fields.take("type")
    fields.take("index")
    call_id = fields.text("id", "")
    function = fields.fields("function")
    fields.finish()
    if function is None:
        raise invalid(f"The field '{where}.function' is missing.", where)
    call = read_call(function.take("name"), function.take("arguments"), call_id, where)
    function.finish()
    return call


def _content(content: Any, where: str) -> str | tuple[Part, ...]:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(f"The content of {where} must be text or a list of parts.", where)
    return joined(
        [_part(part, f"{where}.content[{index}]") for index, part in enumerate(content)]
    )


def _part(row: Any, where: str) -> Part:
    fields = Fields(row, where)
    kind = fields.required_text("type")
    if kind in ("text", "refusal"):
        text = fields.required_text(kind)
        fields.finish(("cache_control",))
        return text
    if kind != "image_url":
        raise invalid(
            f"{where} is of the type '{kind[:40]}', which cannot be carried: use text and"
            " image_url.",
            where,
        )
    image = fields.fields("image_url")
    fields.finish(("cache_control",))
    if image is None:
        raise invalid(f"The field '{where}.image_url' is missing.", where)
    url = image.take("url")
    image.finish((), {"detail": ("auto",)})
    return read_image(url, f"{where}.image_url.url")


def write(answered: Answered) -> dict[str, Any]:
    """Return the completion as JSON."""
    responses = list(answered.responses[0])
    choices = [
        {
            "index": index,
            "message": _message(response),
            "logprobs": _logprobs(response, answered.inbound),
            "finish_reason": finish_reason(response),
        }
        for index, response in enumerate(responses)
    ]
    return {
        **_head(answered, "chat.completion"),
        "choices": choices,
        "usage": openai_errors.chat_usage(openai_errors.added(responses)),
    }


def _head(answered: Answered, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answered.id}",
        "object": kind,
        "created": answered.created,
        "model": answered.inbound.model,
    }


def _message(response: Response) -> dict[str, Any]:
    refusal = response.text if is_refusal(response) else None
    text = None if refusal is not None else response.text
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
    if response.reasoning:
        message["reasoning_content"] = response.reasoning
    if response.tool_calls:
        message["content"] = text or None
        message["tool_calls"] = [
            call_row(call, index) for index, call in enumerate(response.tool_calls)
        ]
    return message


def call_row(call: ToolCall, index: int) -> dict[str, Any]:
    """Return a call; one without an id gets one, by its place."""
    return {
        "id": call.id or f"call_{index}",
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _logprobs(response: Response, inbound: Inbound) -> dict[str, Any] | None:
    if getattr(inbound.requests[0], "top_logprobs", None) is None:
        return None
    rows = [openai_errors.token_row(token) for token in response.tokens]
    return {"content": rows, "refusal": None}


def events(answered: Answered) -> bytes:
    """Return the completion as the chunks of a stream."""
    head = _head(answered, "chat.completion.chunk")
    responses = list(answered.responses[0])
    include_usage = answered.inbound.shape["include_usage"]
    no_usage = {"usage": None} if include_usage else {}
    chunks = []
    for index, response in enumerate(responses):
        for delta, logprobs, finish in _deltas(response, answered.inbound):
            choice = {
                "index": index,
                "delta": delta,
                "logprobs": logprobs,
                "finish_reason": finish,
            }
            chunks.append(event({**head, "choices": [choice], **no_usage}))
    if include_usage:
        usage = openai_errors.chat_usage(openai_errors.added(responses))
        chunks.append(event({**head, "choices": [], "usage": usage}))
    return b"".join(chunks) + DONE


def _deltas(
    response: Response, inbound: Inbound
) -> Sequence[tuple[dict[str, Any], Any, str | None]]:
    """Return the pieces of one answer: delta, log-probabilities, finish reason."""
    message = _message(response)
    pieces: list[tuple[dict[str, Any], Any, str | None]] = [
        ({"role": "assistant", "content": ""}, None, None)
    ]
    if message.get("reasoning_content"):
        pieces.append(({"reasoning_content": message["reasoning_content"]}, None, None))
    if message["content"] or response.tokens:
        text = message["content"] or ""
        pieces.append(({"content": text}, _logprobs(response, inbound), None))
    if message["refusal"]:
        pieces.append(({"refusal": message["refusal"]}, None, None))
    for index, call in enumerate(message.get("tool_calls", ())):
        pieces.append(({"tool_calls": [{"index": index, **call}]}, None, None))
    pieces.append(({}, None, finish_reason(response)))
    return pieces


class ChatFormat:
    """OpenAI's chat completions."""

    name = "chat"
    ping = PING
    read = staticmethod(read)
    write = staticmethod(write)
    events = staticmethod(events)

    def error(self, fault: Fault) -> dict[str, Any]:
        """Return an error as JSON."""
        return openai_errors.error(fault)

    def error_event(self, fault: Fault) -> bytes:
        """Return an error as an event of a stream that has begun."""
        return openai_errors.error_event(fault)
