"""The wire format of Anthropic's messages.

The system prompt is separate, content comes in blocks, a token limit is required, and thinking has
a budget. Calls of tools and their results are blocks, too; a turn with thinking before its calls
goes back as it came, because the API checks its signatures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from evalwright.core.images import Image
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.requests import Generate, Message, Part, has_tool_turns
from evalwright.core.responses import Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import (
    ALL_IMAGES,
    at_place,
    content,
    nested,
    parts,
)
from evalwright.models.remote.wire.tool_blocks import (
    NO_OUTPUT,
    TOOLS_IN_PAYLOAD,
    kept_blocks,
    read_call,
    refuse_forced_choice,
    stand_ins,
    system_and_tool_turns,
)
from evalwright.models.remote.wire.tool_turns import (
    CallIds,
    allowed_name,
    object_arguments,
    provider_content,
)

MAX_TOKENS = 8192
"""The limit that is sent if none is set, because the API requires one."""

_LIMIT = ("max_tokens",)
_BUDGET = ("thinking", "budget_tokens")
_CALL_IDS = CallIds(re.compile(r"[A-Za-z0-9_-]+"), "call_{}_{}".format, unique=True)
_KEPT_AS = "anthropic"
"""Names kept blocks by the format, also at Vertex: signatures hold on all of Claude's platforms."""
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def messages_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body; a prefill stays the last message.

    Raises:
        Rejected: the prompt has no user turn, its calls and results do not fit, or a call is
            forced while the model thinks within a budget.
    """
    system, talk = system_and_tool_turns(request, settings, _CALL_IDS)
    sampling = form.sampling(request, settings)
    fields: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": sampling.max_tokens or MAX_TOKENS,
        "messages": _messages(talk),
        "system": system or None,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop_sequences": [sign for sign in sampling.stop if sign.strip()] or None,
    }
    if request.tools:
        fields["tools"] = _tools(request.tools)
        fields["tool_choice"] = choice_field(request)
    elif has_tool_turns(request.prompt):
        fields["tools"] = _tools(stand_ins(talk))
        fields["tool_choice"] = {"type": "none"}
    body = form.merge_bodies(form.without_none(fields), settings.extra_body)
    if request.tools:
        refuse_forced_choice(request.tool_choice, body.get("thinking"), settings)
    return form.with_room_to_think(body, _LIMIT, _BUDGET, settings, above=True)


@lru_cache(maxsize=64)  # all samples of a task mostly offer the same tools
def _tools(tools: tuple[ToolDefinition, ...]) -> list[dict[str, Any]]:
    """Return the definitions as the API takes them; callers must not change them."""
    return [
        {
            "name": tool.name,
            **({"description": tool.description} if tool.description else {}),
            "input_schema": tool.schema,
        }
        for tool in tools
    ]


def choice_field(request: Generate) -> dict[str, Any] | None:
    """Return Claude's `tool_choice`, which also holds whether calls may be parallel.

    None leaves it to the API: the model decides, and calls may be parallel.
    """
    choice = request.tool_choice
    is_single = request.parallel_tool_calls is False
    if choice is None and not is_single:
        return None
    kind = _CHOICES.get(choice or "auto")
    fields: dict[str, Any] = (
        {"type": "tool", "name": choice} if kind is None else {"type": kind}
    )
    if is_single and kind != "none":
        fields["disable_parallel_tool_use"] = True
    return fields


def _messages(talk: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the turns as messages.

    All results of a turn's calls are in one message of the user, before what the user says.
    """
    messages: list[dict[str, Any]] = []
    results: list[Any] | None = (
        None  # the blocks of the last message, if it has results
    )
    for turn in talk:
        if turn.role == "tool":
            if results is None:
                results = []
                messages.append({"role": "user", "content": results})
            results.append(_result(turn))
        elif turn.role == "user" and results is not None:
            results.extend(_part(part) for part in turn.parts if part != "")
            results = None
        else:
            results = None
            blocks = _call_blocks(turn) if turn.tool_calls else content(turn, _part)
            messages.append({"role": turn.role, "content": blocks})
    return messages


def _call_blocks(turn: Message) -> list[Any]:
    """Return the blocks of a turn with calls: as they came where thinking was among them."""
    ids = [call.id for call in turn.tool_calls]
    provider_blocks = kept_blocks(turn, _KEPT_AS, _id_of_call, ids)
    if provider_blocks is not None:
        return provider_blocks
    calls = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": allowed_name(call.name),
            "input": object_arguments(call),
        }
        for call in turn.tool_calls
    ]
    return [*(parts(turn, _part) if turn.text.strip() else ()), *calls]


def _id_of_call(block: Mapping[str, Any]) -> Any:
    return block.get("id") if block.get("type") == "tool_use" else None


def _result(turn: Message) -> dict[str, Any]:
    result_content = content(turn, _part)
    if turn.is_error and not (turn.text or turn.images):
        result_content = NO_OUTPUT  # the API refuses an error without content
    return {
        "type": "tool_result",
        "tool_use_id": turn.tool_call_id,
        "content": result_content,
        **({"is_error": True} if turn.is_error else {}),
    }


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
    calls: tuple[ToolCall, ...] = ()
    content_to_resend = ""
    if called and form.offers_tools(request) and finish != CONTENT_FILTER:
        calls = tuple(
            _read_call(block, data, settings)
            for block in content
            if block.get("type") == "tool_use"
        )
        content_to_resend = _content_to_resend(content, calls)
    return ReplyContent(
        text,
        reasoning,
        finish,
        message_usage(data),
        data.get("model"),
        excused=called or hidden,
        calls_tool=called,
        tool_calls=calls,
        provider_content=content_to_resend,
        stopped_at=form.stopped_at(data, ("stop_sequence",), request.stop),
    )


def _read_call(block: Mapping[str, Any], data: Any, settings: Settings) -> ToolCall:
    return read_call(
        block, id_field="id", arguments_field="input", data=data, settings=settings
    )


def _content_to_resend(
    content: Sequence[Mapping[str, Any]], calls: Sequence[ToolCall]
) -> str:
    """Return a reply's blocks to send back as they came, if there are others than text and calls.

    The input of a call is text in a stream, and must be an object when it goes back.
    """
    if all(block.get("type") in ("text", "tool_use") for block in content):
        return ""
    remaining = iter(calls)
    blocks = [
        (
            {**block, "input": object_arguments(next(remaining))}
            if block.get("type") == "tool_use"
            else block
        )
        for block in content
    ]
    return provider_content(_KEPT_AS, blocks)


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
        text for text in texts if isinstance(text, str) and text
    )


class MessageGatherer(form.Gathering):
    """Assembles the events of a streamed message.

    The input of a call stays the text that the model wrote.
    """

    _PIECES: ClassVar[Mapping[str, str]] = {
        "text_delta": "text",
        "thinking_delta": "thinking",
        "signature_delta": "signature",
        "input_json_delta": "partial_json",
    }
    """The field of a piece by the type of its delta."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._message: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}
        self._usage: dict[str, Any] = {}

    def add(self, event: str, data: Any) -> bool:
        """Take one event; `message_stop` ends the answer, and unknown types are ignored."""
        event_type = form.require_success(
            data, self.settings, "an event as a JSON object"
        ).get("type")
        if event_type == "message_start":
            self._start(data)
        elif event_type == "content_block_start":
            block = dict(form.as_mapping(data.get("content_block")))
            self._blocks[self._index(data)] = block
            self.has_text = self.has_text or block.get("type") == "tool_use"
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
        name = self._PIECES.get(str(delta.get("type")))
        if name is not None:
            text = str(delta.get(name) or "")
            self._parts.setdefault((index, name), []).append(text)
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
        for (index, name), pieces in self._parts.items():
            block = self._blocks[index]
            kind = block.get("type")
            joined = "".join(pieces)
            if name == kind:
                block[name] = str(block.get(name) or "") + joined
            elif name == "signature" and kind == "thinking":
                block[name] = joined
            elif name == "partial_json" and kind == "tool_use" and joined.strip():
                block["input"] = joined
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
        **TOOLS_IN_PAYLOAD,
        "top_k": at_place("top_k"),
        "json_schema": lambda schema: nested(
            "output_config.format",
            {"type": "json_schema", "schema": json.loads(schema)},
        ),
    },
    images=ALL_IMAGES,
)
