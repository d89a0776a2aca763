"""The wire format of Cohere's chat, version 2: thinking is separate, events have types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import Overloaded, Rejected, TimedOut
from evalwright.core.requests import Generate
from evalwright.core.responses import TokenLogProb, Usage
from evalwright.models.remote.http_faults import clean, error_for
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.openai_text import chat_messages
from evalwright.models.remote.wire.options import (
    ALL_IMAGES,
    NoLogProbs,
    at_place,
    read_tokens,
)

_LARGEST_P = 0.99


def cohere_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body.

    Raises:
        Rejected: the prompt ends with a prefill, which Cohere does not continue.
    """
    messages = chat_messages(request.prompt)
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
    content = message.get("content")
    blocks = (
        [block for block in content if isinstance(block, Mapping)]
        if isinstance(content, list)
        else []
    )
    text = _joined(blocks, "text")
    reasoning = _joined(blocks, "thinking")
    called = bool(message.get("tool_calls"))
    return ReplyContent(
        text,
        reasoning,
        form.finish_of(finish),
        _usage(data),
        excused=called,
        calls_tool=called,
    )


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
        self._called = False
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
        elif event_type == "tool-call-start":
            self._called = True
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

    def result(self) -> Any:
        message: dict[str, Any] = {
            "role": "assistant",
            "content": [self._parts[index] for index in sorted(self._parts)],
        }
        if self._called:
            message["tool_calls"] = [{}]
        return {**self._end, "message": message, "logprobs": self._logprobs}


WIRE = Wire(
    name="cohere",
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
    },
    images=ALL_IMAGES,
    tokens=_tokens,
    most_alternatives=0,
)
