"""The wire format of Anthropic's messages.

The system prompt is separate, content comes in blocks, a token limit is required, and thinking has
a budget.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalwright.core.images import Image
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.requests import Generate, Part
from evalwright.core.responses import Usage
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import ALL_IMAGES, at_place, content, nested

MAX_TOKENS = 8192
"""The limit that is sent if none is set, because the API requires one."""

_LIMIT = ("max_tokens",)
_BUDGET = ("thinking", "budget_tokens")


def messages_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body; a prefill stays the last message.

    Raises:
        Rejected: the prompt has no user turn.
    """
    system, talk = form.system_and_talk(request, settings)
    sampling = form.sampling(request, settings)
    fields: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": sampling.max_tokens or MAX_TOKENS,
        "messages": [
            {"role": turn.role, "content": content(turn, _part)} for turn in talk
        ],
        "system": system or None,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop_sequences": [sign for sign in sampling.stop if sign.strip()] or None,
    }
    body = form.merge_bodies(form.without_none(fields), settings.extra_body)
    return form.with_room_to_think(body, _LIMIT, _BUDGET, settings, above=True)


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        source = {
            "type": "base64",
            "media_type": part.media_type,
            "data": part.base64(),
        }
        return {"type": "image", "source": source}
    return {"type": "text", "text": part}


def parse_message(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a message."""
    form.require_success(data, settings)
    content = data.get("content")
    if not isinstance(content, list) or not all(
        isinstance(block, Mapping) for block in content
    ):
        raise form.not_documented(settings, "content as a list of blocks", data)
    text = _joined(content, "text", "text", data, settings)
    reasoning = _joined(content, "thinking", "thinking", data, settings)
    stopped = data.get("stop_reason")
    finish = CONTENT_FILTER if stopped == "refusal" else form.finish_of(stopped)
    # The API refuses stop strings of only white space.
    text, finish = form.apply_local_stops(
        text, finish, tuple(sign for sign in request.stop if not sign.strip())
    )
    kinds = [block.get("type") for block in content]
    called = "tool_use" in kinds
    hidden = "redacted_thinking" in kinds
    return ReplyContent(
        text,
        reasoning,
        finish,
        message_usage(data),
        data.get("model"),
        excused=called or hidden,
        calls_tool=called,
        stopped_at=form.stopped_at(data, ("stop_sequence",), request.stop),
    )


def message_usage(data: Any) -> Usage:
    """Read the token usage.

    Anthropic counts cached input separately; here it is included in the input.
    """
    read = "input_tokens cache_read_input_tokens cache_creation_input_tokens"
    thought = "output_tokens_details.thinking_tokens"
    return form.usage_of(
        form.get_nested(data, "usage"),
        read,
        "output_tokens",
        thought,
        "cache_read_input_tokens",
    )


def _joined(
    content: list[Mapping[str, Any]],
    block_type: str,
    name: str,
    data: Any,
    settings: Settings,
) -> str:
    """Join the text of all blocks of a kind."""
    texts = [block.get(name) for block in content if block.get("type") == block_type]
    if not all(isinstance(text, str) for text in texts):
        raise form.not_documented(
            settings, f"blocks of type {block_type} with {name}", data
        )
    return ("" if block_type == "text" else "\n\n").join(
        text for text in texts if isinstance(text, str)
    )


class MessageGatherer(form.Gathering):
    """Assembles the events of a streamed message."""

    _TEXT = ("text", "thinking")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[int, list[str]] = {}
        self._usage: dict[str, Any] = {}

    def add(self, event: str, data: Any) -> bool:
        """Take one event; `message_stop` ends the answer, and unknown types are ignored."""
        event_type = form.require_success(
            data, self.settings, "an event as a JSON object"
        ).get("type")
        if event_type == "message_start":
            self._start(data)
        elif event_type == "content_block_start":
            block = data.get("content_block")
            self._blocks[self._index(data)] = (
                dict(block) if isinstance(block, Mapping) else {}
            )
        elif event_type == "content_block_delta":
            self._delta(data)
        elif event_type == "message_delta":
            self._end(data)
        elif event_type == "message_stop":
            if self._message is None:
                raise form.not_documented(
                    self.settings, "message_start before message_stop", data
                )
            return True
        return False

    def _start(self, data: Mapping[str, Any]) -> None:
        message = data.get("message")
        if not isinstance(message, Mapping):
            raise form.not_documented(
                self.settings, "message_start with a message", data
            )
        self._message = dict(message)
        self.note_name(message.get("model"))
        self._count(message.get("usage"))

    def _index(self, data: Mapping[str, Any]) -> int:
        index = data.get("index")
        if not isinstance(index, int):
            raise form.not_documented(self.settings, "a block's index", data)
        return index

    def _delta(self, data: Mapping[str, Any]) -> None:
        delta = data.get("delta")
        index = self._index(data)
        if not isinstance(delta, Mapping) or index not in self._blocks:
            raise form.not_documented(
                self.settings, "a delta of a block that was started", data
            )
        for name in self._TEXT:
            if delta.get("type") == f"{name}_delta":
                text = str(delta.get(name) or "")
                self._parts.setdefault(index, []).append(text)
                self.has_text = self.has_text or text != ""

    def _end(self, data: Mapping[str, Any]) -> None:
        delta = data.get("delta")
        if self._message is None or not isinstance(delta, Mapping):
            raise form.not_documented(
                self.settings, "message_delta after message_start", data
            )
        self.note_name(delta.get("model"))
        self._message.update(
            (name, value) for name, value in delta.items() if value is not None
        )
        self._count(data.get("usage"))

    def _count(self, usage: Any) -> None:
        # Later counts are cumulative; what they leave open stays as it was said before.
        if isinstance(usage, Mapping):
            self._usage.update(
                (name, value) for name, value in usage.items() if value is not None
            )

    def result(self) -> Any:
        for index, pieces in self._parts.items():
            block = self._blocks[index]
            name = str(block.get("type"))
            if name in self._TEXT:
                block[name] = str(block.get(name) or "") + "".join(pieces)
        content = [self._blocks[index] for index in sorted(self._blocks)]
        return {**(self._message or {}), "content": content, "usage": self._usage}


WIRE = Wire(
    name="anthropic",
    path=lambda settings: "/messages",
    payload=messages_payload,
    parse=parse_message,
    usage=message_usage,
    gather=MessageGatherer,
    lacks=frozenset(("seed",)),
    names_limit=False,
    options={
        "top_k": at_place("top_k"),
        "json_schema": lambda schema: nested(
            "output_config.format",
            {"type": "json_schema", "schema": json.loads(schema)},
        ),
    },
    images=ALL_IMAGES,
)
