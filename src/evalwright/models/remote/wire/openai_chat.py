"""OpenAI's chat completions, which most providers and servers speak."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.requests import Generate
from evalwright.core.responses import Response, Usage
from evalwright.models.remote.http import Reply
from evalwright.models.remote.http_faults import fault_within
from evalwright.models.remote.wire.format import (
    Settings,
    Wire,
    count,
    finished,
    merged,
    not_documented,
    sampling,
    turns,
)

_PATH = "/chat/completions"


def chat_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body. Text becomes one user message; a prefill stays the last message."""
    return with_sampling(
        {
            "model": settings.model,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns(request.prompt)],
        },
        request,
        settings,
    )


def with_sampling(payload: dict[str, Any], request: Generate, settings: Settings) -> dict[str, Any]:
    """The body with its sampling fields and the model's extra fields."""
    told = sampling(request, settings)
    fields = {
        settings.tokens_field: told.max_tokens,
        "stop": list(told.stop) or None,
        "temperature": told.temperature,
        "top_p": told.top_p,
        "seed": told.seed,
    }
    payload.update((name, value) for name, value in fields.items() if value is not None)
    return merged(payload, settings.extra_body) if settings.extra_body else payload


def read_chat(reply: Reply, request: Generate, settings: Settings) -> Response:
    """A Response from a chat completion."""
    data, choice = first_choice(reply, settings)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise not_documented(settings, "choices[0].message", data)
    text, reasoning = _content(message.get("content"), data, settings)
    for name in settings.reasoning_fields:
        value = message.get(name)
        if isinstance(value, str) and value:
            reasoning = value
            break
    refusal = message.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal
    response = finished(
        text,
        reasoning,
        finish_of(choice),
        read_usage(data.get("usage")),
        request,
        settings,
        reply=reply,
        model=data.get("model"),
        excused=bool(message.get("tool_calls") or message.get("function_call")),
    )
    return replace(response, cost=named_cost(data, settings)) if settings.cost_field else response


def named_cost(data: Any, settings: Settings) -> float | None:
    """What the reply says it cost, in US dollars; None where it says nothing."""
    for step in settings.cost_field.split("."):
        data = data.get(step) if isinstance(data, Mapping) else None
    known = isinstance(data, int | float) and not isinstance(data, bool) and 0 <= data < math.inf
    return float(data) if known else None


def finish_of(choice: Mapping[str, Any]) -> str:
    """The choice's finish reason, "" where it has none."""
    finish = choice.get("finish_reason")
    return finish if isinstance(finish, str) else ""


def first_choice(reply: Reply, settings: Settings) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The reply as a mapping, and its first choice. Raises BadReply, or the error that a 200 carries."""
    data = reply.data
    if not isinstance(data, Mapping):
        raise not_documented(settings, "a JSON object", data)
    fault = fault_within(settings.where, data, key_source=settings.key_source)
    if fault is not None:
        raise fault
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise not_documented(settings, "choices[0]", data)
    return data, choices[0]


def _content(content: Any, data: Any, settings: Settings) -> tuple[str, str]:
    """(text, reasoning) of a message's content: text, nothing, or a list of parts."""
    if content is None:
        return "", ""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        raise not_documented(settings, "choices[0].message.content as text", data)
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            kind = part.get("type", "text")
            if kind in ("thinking", "reasoning"):
                thoughts.append(_content(part.get(kind) or part.get("text"), data, settings)[0])
            elif isinstance(found := part.get("refusal" if kind == "refusal" else "text"), str):
                texts.append(found)
    return "".join(texts), "".join(thoughts)


def read_usage(usage: Any) -> Usage:
    """Token counts; what the server does not say is 0. Cached tokens also by DeepSeek's name, and by Moonshot's."""
    if not isinstance(usage, Mapping):
        return Usage()
    read, written = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens") or count(
        usage.get("reasoning_tokens")
    )
    if reasoning and count(usage.get("total_tokens")) == read + written + reasoning:
        # xAI counts reasoning beside the completion; it is paid as output all the same.
        written += reasoning
    cached = (
        _detail(usage, "prompt_tokens_details", "cached_tokens")
        or count(usage.get("prompt_cache_hit_tokens"))
        or count(usage.get("cached_tokens"))
    )
    return Usage(
        input_tokens=read,
        output_tokens=written,
        reasoning_tokens=min(reasoning, written),
        cached_tokens=cached,
    )


def _detail(usage: Mapping[str, Any], group: str, name: str) -> int:
    details = usage.get(group)
    return count(details.get(name)) if isinstance(details, Mapping) else 0


class ChatGatherer:
    """The chunks of a streamed chat completion, put together as the completion would have been."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._message: dict[str, Any] = {"role": "assistant"}
        self._parts: dict[str, list[str]] = {}
        self._called = False
        self._finish: Any = None
        self._head: dict[str, Any] = {}
        self._usage: Any = None

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk; `[DONE]` ends the answer."""
        if data == "[DONE]":
            return True
        if not isinstance(data, Mapping):
            raise not_documented(self._settings, "a chunk as a JSON object", data)
        fault = fault_within(self._settings.where, data, key_source=self._settings.key_source)
        if fault is not None:
            raise fault
        self._head.update((name, data[name]) for name in ("id", "model") if data.get(name))
        self._usage = data.get("usage") or self._usage
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
                self._take(choice)
        return False

    def _take(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        for name, value in delta.items() if isinstance(delta, Mapping) else ():
            if name in ("content", "refusal", *self._settings.reasoning_fields):
                text, thought = _content(value, choice, self._settings)
                self._parts.setdefault(name, []).append(text)
                if thought:
                    self._parts.setdefault(self._settings.reasoning_fields[0], []).append(thought)
            elif name in ("tool_calls", "function_call") and value:
                self._called = True
        self._finish = choice.get("finish_reason") or self._finish

    def result(self) -> Any:
        """The completion."""
        message: dict[str, Any] = {name: "".join(parts) for name, parts in self._parts.items()}
        message = {**self._message, "content": None, **message}
        if self._called:
            message["tool_calls"] = [{}]
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {**self._head, "choices": [choice], "usage": self._usage}


def _streamed(body: dict[str, Any]) -> dict[str, Any]:
    # Without this a stream says nothing of its tokens.
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


WIRE = Wire(
    name="openai-chat",
    path=lambda settings: _PATH,
    payload=chat_payload,
    read=read_chat,
    gather=ChatGatherer,
    stream_payload=_streamed,
    pasted="/chat/completions",
)
