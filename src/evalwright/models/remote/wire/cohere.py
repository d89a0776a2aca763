"""The wire format of Cohere's chat, version 2: thinking is separate, events have types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import Overloaded, Rejected, TimedOut
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import TokenLogProb, Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.models.remote.http_faults import clean, error_for
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import (
    ALL_IMAGES,
    NoLogProbs,
    at_place,
    content,
    openai_part,
    openai_tools,
    read_tokens,
)
from evalwright.models.remote.wire.tool_turns import (
    allowed_name,
    complete_tool_turns,
    content_for_provider,
    json_arguments,
    provider_content,
    text_arguments,
)

_LARGEST_P = 0.99
_NAME = "cohere"
_TOOL_CHOICES = {"none": "NONE", "required": "REQUIRED"}
"""Cohere's words for choices among tools; to leave the decision to the model, none is sent."""


def cohere_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body.

    Raises:
        Rejected: the prompt ends with a prefill, which Cohere does not continue.
    """
    messages = [_message(turn) for turn in complete_tool_turns(request.prompt)]
    if messages and messages[-1]["role"] == "assistant":
        raise Rejected(
            f"The chat of {settings.where} does not continue the beginning of an"
            " answer: leave out the last message of the assistant."
        )
    sampling = form.sampling(request, settings)
    fields = {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        # The API's largest top_p is 0.99 and its default 0.75, so 1 is sent as the nearest allowed
        # value.
        "p": _LARGEST_P if sampling.top_p == 1 else sampling.top_p,
        "stop_sequences": list(sampling.stop) or None,
        "seed": sampling.seed,
    }
    body = {
        "model": settings.model,
        "messages": messages,
        **form.without_none(fields),
    }
    return form.merge_bodies(body, settings.extra_body)


def _message(turn: Message) -> dict[str, Any]:
    if turn.role == "tool":
        return {
            "role": "tool",
            "tool_call_id": turn.tool_call_id,
            "content": content(turn, openai_part),
        }
    if not turn.tool_calls:
        return {"role": turn.role, "content": content(turn, openai_part)}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": allowed_name(call.name),
                "arguments": json_arguments(call),
            },
        }
        for call in turn.tool_calls
    ]
    provider_fields = content_for_provider(turn, _NAME)
    if not isinstance(provider_fields, Mapping):
        provider_fields = {}
        if turn.reasoning:
            provider_fields["tool_plan"] = turn.reasoning
        if turn.text:
            provider_fields["content"] = content(turn, openai_part)
    return {"role": "assistant", "tool_calls": calls, **provider_fields}


def parse_cohere(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a chat reply."""
    message = data.get("message") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(message, Mapping):
        # An error body has its text where an answer has its message.
        if isinstance(message, str):
            raise error_for(
                settings.where, 500, message, key_source=settings.key_source
            )
        raise form.not_documented(settings, "message", data)
    finish = data.get("finish_reason")
    _raise_on_failure(finish, data.get("error"), settings)
    parts = message.get("content")
    blocks = (
        [block for block in parts if isinstance(block, Mapping)]
        if isinstance(parts, list)
        else []
    )
    text = _joined(blocks, "text")
    thinking = _joined(blocks, "thinking")
    called = bool(message.get("tool_calls"))
    calls: tuple[ToolCall, ...] = ()
    reasoning = thinking
    fields_to_resend: dict[str, Any] = {}
    finish_reason = form.finish_of(finish)
    if called and form.offers_tools(request) and finish_reason != CONTENT_FILTER:
        calls = _calls(message["tool_calls"], data, settings)
        plan = message.get("tool_plan")
        plan = plan if isinstance(plan, str) else ""
        reasoning = "\n\n".join(filter(None, (thinking, plan)))
        if thinking:
            fields_to_resend = {
                "content": blocks,
                **({"tool_plan": plan} if plan else {}),
            }
    return ReplyContent(
        text,
        reasoning,
        finish_reason,
        _usage(data),
        excused=called,
        calls_tool=called,
        tool_calls=calls,
        provider_content=provider_content(_NAME, fields_to_resend),
    )


def _calls(rows: Any, data: Any, settings: Settings) -> tuple[ToolCall, ...]:
    """Return the calls of tools in a message.

    Raises:
        BadReply: a call has no name.
    """
    calls = []
    for row in rows if isinstance(rows, list) else [None]:
        name = form.get_nested(row, "function", "name")
        if not isinstance(name, str):
            expected = "message.tool_calls with function.name"
            raise form.not_documented(settings, expected, data)
        arguments = form.get_nested(row, "function", "arguments")
        call_id = form.get_nested(row, "id")
        calls.append(
            ToolCall(
                name,
                text_arguments(arguments),
                call_id if isinstance(call_id, str) else "",
            )
        )
    return tuple(calls)


def _joined(blocks: list[Mapping[str, Any]], name: str) -> str:
    texts = (block.get(name) for block in blocks if block.get("type") == name)
    return "".join(text for text in texts if isinstance(text, str))


def _raise_on_failure(finish: Any, words: Any, settings: Settings) -> None:
    """Raise an error if the provider aborted the answer."""
    reason = f": {clean(words, 300)}" if isinstance(words, str) and words else "."
    if finish == "ERROR":
        raise Overloaded(
            f"{settings.where} failed while it answered{reason}", taken=True
        )
    if finish == "TIMEOUT":
        raise TimedOut(
            f"{settings.where} timed out before it finished its answer{reason}"
        )


def _tokens(data: Any) -> list[TokenLogProb]:
    """Return the log-probabilities by token; the first token of each piece has the piece's text."""
    rows: list[Any] = []
    for piece in form.as_mapping(data).get("logprobs") or ():
        values = form.get_nested(piece, "logprobs")
        text = form.get_nested(piece, "text")
        for value in values if isinstance(values, list) else ():
            rows.append({"text": text, "value": value})
            text = ""
    if not rows:
        raise NoLogProbs
    return read_tokens(rows, "text", "value", "")


def _usage(data: Any) -> Usage:
    """Read the token usage from `tokens`; `billed_units` excludes what Cohere adds to a prompt."""
    usage = form.get_nested(data, "usage")
    counted = form.get_nested(usage, "tokens") or form.get_nested(usage, "billed_units")
    return Usage(
        form.count(form.get_nested(counted, "input_tokens")),
        form.count(form.get_nested(counted, "output_tokens")),
        cached_tokens=form.count(form.get_nested(usage, "cached_tokens")),
    )


class CohereGatherer(form.Gathering):
    """Assembles the typed events of a streamed chat."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._parts: dict[int, dict[str, Any]] = {}
        self._plan: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._end: Mapping[str, Any] = {}
        self._logprobs: list[Any] = []

    def add(self, event: str, data: Any) -> bool:
        """Take an event; message-end ends the answer."""
        event_type = (
            form.require_object(data, self.settings, "an event as a JSON object").get(
                "type"
            )
            or event
        )
        delta = form.as_mapping(data.get("delta"))
        if event_type in ("content-start", "content-delta"):
            self._logprobs += (
                [data["logprobs"]] if isinstance(data.get("logprobs"), Mapping) else []
            )
            self._take(form.count(data.get("index")), delta)
        elif event_type == "tool-plan-delta":
            piece = form.get_nested(delta, "message", "tool_plan")
            self._plan.append(piece if isinstance(piece, str) else "")
            self.has_text = self.has_text or bool(self._plan[-1])
        elif event_type in ("tool-call-start", "tool-call-delta"):
            self._take_call(form.count(data.get("index")), delta)
        elif event_type == "message-end":
            self._end = delta
            return True
        elif not event_type or event_type == "error":
            words = data.get("message")
            reason = words if isinstance(words, str) else "it gave no reason"
            raise error_for(self.settings.where, 500, reason)
        return False

    def _take(self, index: int, delta: Mapping[str, Any]) -> None:
        content = form.get_nested(delta, "message", "content")
        if not isinstance(content, Mapping):
            return
        block = self._parts.setdefault(index, {"type": "text"})
        for name in ("text", "thinking"):
            if isinstance(content.get(name), str):
                block[name] = block.get(name, "") + content[name]
                if content[name]:
                    self.has_text = True
                    block["type"] = name
        block["type"] = content.get("type") or block["type"]

    def _take_call(self, index: int, delta: Mapping[str, Any]) -> None:
        piece = form.get_nested(delta, "message", "tool_calls")
        call = self._calls.setdefault(index, {"arguments": []})
        call_id = form.get_nested(piece, "id")
        name = form.get_nested(piece, "function", "name")
        if call_id:
            call["id"] = call_id
        if name:
            call["name"] = name
        arguments = form.get_nested(piece, "function", "arguments")
        call["arguments"].append(text_arguments(arguments))
        self.has_text = True

    def result(self) -> Any:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": [self._parts[index] for index in sorted(self._parts)],
        }
        if self._plan:
            message["tool_plan"] = "".join(self._plan)
        if self._calls:
            message["tool_calls"] = [
                {
                    "id": call.get("id"),
                    "type": "function",
                    "function": {
                        "name": call.get("name"),
                        "arguments": "".join(call["arguments"]),
                    },
                }
                for _, call in sorted(self._calls.items())
            ]
        return {**self._end, "message": message, "logprobs": self._logprobs}


def _tool_choice(tool_choice: str) -> Mapping[str, Any]:
    word = _TOOL_CHOICES.get(tool_choice)
    return {"tool_choice": word} if word else {}


WIRE = Wire(
    name=_NAME,
    path=lambda settings: "/chat",
    payload=cohere_payload,
    parse=parse_cohere,
    usage=_usage,
    gather=CohereGatherer,
    names_limit=False,
    options={
        "top_k": at_place("k"),
        "top_logprobs": lambda _: {"logprobs": True},
        "json_schema": lambda schema: {
            "response_format": {
                "type": "json_object",
                "json_schema": json.loads(schema),
            }
        },
        "tools": openai_tools,
        "tool_choice": _tool_choice,
    },
    names_tool=False,
    images=ALL_IMAGES,
    tokens=_tokens,
    most_alternatives=0,
)
