"""Cohere's chat, version 2: content in parts, thinking apart, a stream of typed events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import Overloaded, Rejected, TimedOut
from evalwright.core.requests import Generate
from evalwright.core.responses import TokenLogProb, Usage
from evalwright.models.remote.http_faults import clean, error_for
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import Said, Settings, Wire
from evalwright.models.remote.wire.openai_text import chat_messages
from evalwright.models.remote.wire.options import (
    ALL_IMAGES,
    NoLogProbs,
    at_place,
    read_tokens,
)

_LARGEST_P = 0.99


def cohere_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body. Raises Rejected for a prefill, which would not be continued."""
    messages = chat_messages(request.prompt)
    if messages and messages[-1]["role"] == "assistant":
        raise Rejected(
            f"The chat of {settings.where} does not continue the beginning of an"
            " answer: leave out the last message of the assistant."
        )
    told = form.sampling(request, settings)
    fields = {
        "max_tokens": told.max_tokens,
        "temperature": told.temperature,
        # The interface ends at 0.99 and stands at 0.75 where nothing is said, so 1 is said as the
        # nearest that it takes.
        "p": _LARGEST_P if told.top_p == 1 else told.top_p,
        "stop_sequences": list(told.stop) or None,
        "seed": told.seed,
    }
    body = {
        "model": settings.model,
        "messages": messages,
        **form.given(fields),
    }
    return form.merged(body, settings.extra_body)


def cohere_said(data: Any, request: Generate, settings: Settings) -> Said:
    """What a chat reply says."""
    message = data.get("message") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(message, Mapping):
        # An error body has its words where an answer has its message.
        if isinstance(message, str):
            raise error_for(
                settings.where, 500, message, key_source=settings.key_source
            )
        raise form.not_documented(settings, "message", data)
    finish = data.get("finish_reason")
    _raise_failed(finish, data.get("error"), settings)
    content = message.get("content")
    parts = (
        [part for part in content if isinstance(part, Mapping)]
        if isinstance(content, list)
        else []
    )
    text = _joined(parts, "text")
    reasoning = _joined(parts, "thinking")
    called = bool(message.get("tool_calls"))
    return Said(
        text,
        reasoning,
        form.finish_of(finish),
        _usage(data),
        excused=called,
        calls_tool=called,
    )


def _joined(parts: list[Mapping[str, Any]], name: str) -> str:
    texts = (part.get(name) for part in parts if part.get("type") == name)
    return "".join(text for text in texts if isinstance(text, str))


def _raise_failed(finish: Any, words: Any, settings: Settings) -> None:
    """Raise for an answer that broke off on the provider's side."""
    said = f": {clean(words, 300)}" if isinstance(words, str) and words else "."
    if finish == "ERROR":
        raise Overloaded(f"{settings.where} failed while it answered{said}", taken=True)
    if finish == "TIMEOUT":
        raise TimedOut(
            f"{settings.where} timed out before it finished its answer{said}"
        )


def _tokens(data: Any) -> list[TokenLogProb]:
    """Of pieces of text, each with the values of its tokens: the first of them has the piece's
    text.
    """
    rows: list[Any] = []
    for item in form.table(data).get("logprobs") or ():
        values = form.at(item, "logprobs")
        text = form.at(item, "text")
        for value in values if isinstance(values, list) else ():
            rows.append({"text": text, "value": value})
            text = ""
    if not rows:
        raise NoLogProbs
    return read_tokens(rows, "text", "value", "")


def _usage(data: Any) -> Usage:
    """`tokens` is what the model read and wrote; `billed_units` leaves out what Cohere adds to a
    prompt.
    """
    usage = form.at(data, "usage")
    counted = form.at(usage, "tokens") or form.at(usage, "billed_units")
    return Usage(
        form.count(form.at(counted, "input_tokens")),
        form.count(form.at(counted, "output_tokens")),
        cached_tokens=form.count(form.at(usage, "cached_tokens")),
    )


class CohereGatherer(form.Gathering):
    """The typed events of a streamed chat, put together as the reply would have been."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._parts: dict[int, dict[str, Any]] = {}
        self._called = False
        self._end: Mapping[str, Any] = {}
        self._logprobs: list[Any] = []

    def add(self, event: str, data: Any) -> bool:
        """Take an event; message-end ends the answer."""
        kind = (
            form.an_object(data, self.settings, "an event as a JSON object").get("type")
            or event
        )
        delta = form.table(data.get("delta"))
        if kind in ("content-start", "content-delta"):
            self._logprobs += (
                [data["logprobs"]] if isinstance(data.get("logprobs"), Mapping) else []
            )
            self._take(form.count(data.get("index")), delta)
        elif kind == "tool-call-start":
            self._called = True
        elif kind == "message-end":
            self._end = delta
            return True
        elif not kind or kind == "error":
            words = data.get("message")
            said = words if isinstance(words, str) else "it gave no reason"
            raise error_for(self.settings.where, 500, said)
        return False

    def _take(self, place: int, delta: Mapping[str, Any]) -> None:
        content = form.at(delta, "message", "content")
        if not isinstance(content, Mapping):
            return
        part = self._parts.setdefault(place, {"type": "text"})
        for name in ("text", "thinking"):
            if isinstance(content.get(name), str):
                part[name] = part.get(name, "") + content[name]
                if content[name]:
                    self.has_text = True
                    part["type"] = name
        part["type"] = content.get("type") or part["type"]

    def result(self) -> Any:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": [self._parts[place] for place in sorted(self._parts)],
        }
        if self._called:
            message["tool_calls"] = [{}]
        return {**self._end, "message": message, "logprobs": self._logprobs}


WIRE = Wire(
    name="cohere",
    path=lambda settings: "/chat",
    payload=cohere_payload,
    said=cohere_said,
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
    },
    images=ALL_IMAGES,
    tokens=_tokens,
    most_alternatives=0,
)
