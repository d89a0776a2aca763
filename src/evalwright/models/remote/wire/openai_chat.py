"""OpenAI's chat completions, which most providers and servers speak."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.requests import Generate
from evalwright.core.responses import Response, Usage
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire.format import (
    Gathering,
    Settings,
    Wire,
    at,
    count,
    finish_of,
    finished,
    given,
    merged,
    not_documented,
    sampling,
    sound,
    turns,
)


def chat_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body. Text becomes one user message; a prefill stays the last message."""
    messages = [{"role": turn.role, "content": turn.content} for turn in turns(request.prompt)]
    return with_sampling({"model": settings.model, "messages": messages}, request, settings)


def with_sampling(body: dict[str, Any], request: Generate, settings: Settings) -> dict[str, Any]:
    """The body with its sampling fields and the model's extra fields."""
    told = sampling(request, settings)
    fields = {
        settings.tokens_field: told.max_tokens,
        "stop": list(told.stop) or None,
        "temperature": told.temperature,
        "top_p": told.top_p,
        "seed": told.seed,
    }
    return merged({**body, **given(fields)}, settings.extra_body)


def read_chat(reply: Reply, request: Generate, settings: Settings) -> Response:
    """A Response from a chat completion."""
    data, choice = first_choice(reply, settings)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise not_documented(settings, "choices[0].message", data)
    text, reasoning = _content(message.get("content"), data, settings)
    thoughts = (message.get(name) for name in settings.reasoning_fields)
    reasoning = next((found for found in thoughts if isinstance(found, str) and found), reasoning)
    refusal = message.get("refusal")
    response = finished(
        refusal if not text and isinstance(refusal, str) else text,
        reasoning,
        finish_of(choice.get("finish_reason"), {}),
        read_usage(data.get("usage")),
        request,
        settings,
        reply=reply,
        model=data.get("model"),
        excused=bool(message.get("tool_calls") or message.get("function_call")),
    )
    return with_named_cost(response, data, settings)


def with_named_cost(response: Response, data: Any, settings: Settings) -> Response:
    """The response with what the reply says it cost, in US dollars, for providers whose replies say it."""
    if not settings.cost_field:
        return response
    named = at(data, *settings.cost_field.split("."))
    known = isinstance(named, int | float) and not isinstance(named, bool) and 0 <= named < math.inf
    return replace(response, cost=float(named) if known else None)


def first_choice(reply: Reply, settings: Settings) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The reply as a mapping, and its first choice. Raises BadReply, or the error that a 200 carries."""
    data = sound(reply.data, settings)
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
    reasoning = count(at(usage, "completion_tokens_details", "reasoning_tokens")) or count(
        usage.get("reasoning_tokens")
    )
    if reasoning and count(usage.get("total_tokens")) == read + written + reasoning:
        # xAI counts reasoning beside the completion; it is paid as output all the same.
        written += reasoning
    cached = (
        count(at(usage, "prompt_tokens_details", "cached_tokens"))
        or count(usage.get("prompt_cache_hit_tokens"))
        or count(usage.get("cached_tokens"))
    )
    return Usage(read, written, min(reasoning, written), cached)


class CompletionGatherer(Gathering):
    """The chunks of a streamed completion, put together as the completion would have been; `[DONE]` ends it."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._texts: list[str] = []
        self._finish: Any = None
        self._head: dict[str, Any] = {}
        self._usage: Any = None

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk."""
        if data == "[DONE]":
            return True
        sound(data, self.settings, "a chunk as a JSON object")
        self._head.update((name, data[name]) for name in ("id", "model") if data.get(name))
        self._usage = data.get("usage") or self._usage
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
                self._take(choice)
                self._finish = choice.get("finish_reason") or self._finish
        return False

    def _take(self, choice: Mapping[str, Any]) -> None:
        self._texts.append(str(choice.get("text") or ""))

    def _said(self) -> dict[str, Any]:
        return {"text": "".join(self._texts)}

    def result(self) -> Any:
        choice = {"index": 0, **self._said(), "finish_reason": self._finish}
        return {**self._head, "choices": [choice], "usage": self._usage}


class ChatGatherer(CompletionGatherer):
    """The chunks of a streamed chat completion."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._parts: dict[str, list[str]] = {}
        self._called = False

    def _take(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        thinking = self.settings.reasoning_fields
        for name, value in delta.items() if isinstance(delta, Mapping) else ():
            if name in ("content", "refusal", *thinking):
                text, thought = _content(value, choice, self.settings)
                self._parts.setdefault(name, []).append(text)
                if thought:
                    self._parts.setdefault(thinking[0], []).append(thought)
            elif name in ("tool_calls", "function_call") and value:
                self._called = True

    def _said(self) -> dict[str, Any]:
        message: dict[str, Any] = {name: "".join(parts) for name, parts in self._parts.items()}
        message = {"role": "assistant", "content": None, **message}
        return {"message": {**message, "tool_calls": [{}]} if self._called else message}


def streamed(body: dict[str, Any]) -> dict[str, Any]:
    """The body of a streamed answer; without its options a stream says nothing of its tokens."""
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


WIRE = Wire(
    name="openai-chat",
    path=lambda settings: "/chat/completions",
    payload=chat_payload,
    read=read_chat,
    gather=ChatGatherer,
    stream_payload=streamed,
    end="/chat/completions",
)
