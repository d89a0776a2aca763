"""The wire format of Amazon Bedrock's Converse, one for all models, with its own framing.

Calls of tools and their results are blocks. The format has no word for "no calls" and none for "one
call"; Claude's own fields say both.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import Rejected, RequestError
from evalwright.core.images import Image
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.requests import Generate, Message, Part, has_tool_turns
from evalwright.core.responses import Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.models.remote.http_faults import error_for, server_message, status_of
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.anthropic import choice_field
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import (
    ALL_IMAGES,
    SCHEMA_NAME,
    at_place,
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

_LIMIT = ("inferenceConfig", "maxTokens")
_BUDGET = ("additionalModelRequestFields", "thinking", "budget_tokens")
_CALL_IDS = CallIds(
    re.compile(r"[A-Za-z0-9_.:-]{1,64}"), "call_{}_{}".format, unique=True
)
_KEPT_AS = "bedrock"
_CHOICES = {"auto": "auto", "required": "any"}
_CALLS_NOTHING = {"additionalModelRequestFields": {"tool_choice": {"type": "none"}}}
"""Claude's own field, which Converse passes on."""
_TAKES_STATUS = re.compile(r"claude|nova")
"""Models that take the `status` of a result; others read of an error in its text."""


def path_of(settings: Settings, method: str) -> str:
    """Return the path of a model's method, with colons and slashes of ids percent-encoded once."""
    return f"/model/{quote(settings.model, safe='-._~')}/{method}"


def converse_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body.

    Consecutive turns of one role become one message, because roles must alternate.

    Raises:
        Rejected: the prompt has no turn, its calls and results do not fit, or the model does not
            take the choice among the tools.
    """
    system, talk = system_and_tool_turns(request, settings, _CALL_IDS)
    sampling = form.sampling(request, settings)
    config = {
        "maxTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": [sign for sign in sampling.stop if sign.strip()] or None,
    }
    body: dict[str, Any] = {
        "messages": _alternating(talk, settings.model),
        "inferenceConfig": form.without_none(config),
    }
    if system:
        body["system"] = [{"text": system}]
    if request.tools or has_tool_turns(request.prompt):
        body.update(_tool_fields(request, talk, settings))
    body = form.merge_bodies(body, settings.extra_body)
    if request.tools:
        thinking = form.get_nested(body, "additionalModelRequestFields", "thinking")
        refuse_forced_choice(request.tool_choice, thinking, settings)
    return form.with_room_to_think(body, _LIMIT, _BUDGET, settings, above=True)


def _tool_fields(
    request: Generate, talk: Sequence[Message], settings: Settings
) -> dict[str, Any]:
    """Return the fields of the tools.

    Without calls before, tools that must not be called are left out. With some, the API demands
    tools: those of the request, else stand-ins.

    Raises:
        Rejected: the choice needs a field that only Claude has.
    """
    has_history = has_tool_turns(request.prompt)
    is_claude = "claude" in settings.model
    if not request.tools:
        stood_in = {"toolConfig": {"tools": _tools(stand_ins(talk))}}
        return {**stood_in, **_CALLS_NOTHING} if is_claude else stood_in
    if request.tool_choice == "none" and not has_history:
        return {}
    config: dict[str, Any] = {"tools": _tools(request.tools)}
    is_single = request.parallel_tool_calls is False
    if request.tool_choice == "none" or is_single:
        if not is_claude:
            refused = (
                "limited to one call in a reply: leave parallel_tool_calls out"
                if is_single
                else "kept from calling tools again: leave tool_choice out"
            )
            raise Rejected(
                f"'{settings.model}' cannot be {refused}. Converse has no field for it, and"
                " only Claude has its own."
            )
        # Converse refuses this one beside its own `toolChoice`.
        choice = choice_field(request)
        return {
            "toolConfig": config,
            "additionalModelRequestFields": {"tool_choice": choice},
        }
    if request.tool_choice is not None:
        kind = _CHOICES.get(request.tool_choice)
        config["toolChoice"] = (
            {"tool": {"name": request.tool_choice}} if kind is None else {kind: {}}
        )
    return {"toolConfig": config}


@lru_cache(maxsize=64)  # all samples of a task mostly offer the same tools
def _tools(tools: tuple[ToolDefinition, ...]) -> list[dict[str, Any]]:
    """Return the definitions as the API takes them; callers must not change them."""
    return [
        {
            "toolSpec": {
                "name": tool.name,
                **({"description": tool.description} if tool.description else {}),
                "inputSchema": {"json": tool.schema},
            }
        }
        for tool in tools
    ]


def _alternating(talk: Sequence[Message], model: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in talk:
        role = "user" if turn.role == "tool" else turn.role
        blocks = _blocks(turn, model)
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": role, "content": blocks})
    return messages


def _blocks(turn: Message, model: str) -> list[Any]:
    """Return a turn's blocks; one with calls goes back as it came where it has signed thinking."""
    if turn.role == "tool":
        return [_result(turn, model)]
    if not turn.tool_calls:
        return [*parts(turn, _part)]
    ids = [call.id for call in turn.tool_calls]
    provider_blocks = kept_blocks(turn, _KEPT_AS, _id_of_call, ids)
    if provider_blocks is not None:
        return provider_blocks
    calls = [
        {
            "toolUse": {
                "toolUseId": call.id,
                "name": allowed_name(call.name),
                "input": object_arguments(call),
            }
        }
        for call in turn.tool_calls
    ]
    return [*(parts(turn, _part) if turn.text.strip() else ()), *calls]


def _id_of_call(block: Mapping[str, Any]) -> Any:
    return form.get_nested(block, "toolUse", "toolUseId")


def _result(turn: Message, model: str) -> dict[str, Any]:
    result_blocks = [
        _part(part) for part in turn.parts if isinstance(part, Image) or part.strip()
    ]
    is_marked = turn.is_error and _TAKES_STATUS.search(model) is not None
    return {
        "toolResult": {
            "toolUseId": turn.tool_call_id,
            "content": result_blocks or [{"text": NO_OUTPUT}],
            **({"status": "error"} if is_marked else {}),
        }
    }


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        image_format = part.media_type.removeprefix("image/")
        return {"image": {"format": image_format, "source": {"bytes": part.base64()}}}
    return {"text": part}


def parse_converse(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a Converse reply; a guardrail's message counts as the text."""
    form.require_object(data, settings)
    content = form.get_nested(data, "output", "message", "content")
    if not isinstance(content, list) or not all(
        isinstance(block, Mapping) for block in content
    ):
        raise form.not_documented(
            settings, "output.message.content as a list of blocks", data
        )
    text = "".join(
        str(block["text"]) for block in content if isinstance(block.get("text"), str)
    )
    reasoning = "\n\n".join(filter(None, map(_thought, content)))
    called = any("toolUse" in block for block in content)
    excused = called or any("reasoningContent" in block for block in content)
    finish = form.finish_of(data.get("stopReason"))
    calls: tuple[ToolCall, ...] = ()
    content_to_resend = ""
    if called and form.offers_tools(request) and finish != CONTENT_FILTER:
        calls = tuple(
            read_call(
                form.as_mapping(block["toolUse"]),
                id_field="toolUseId",
                arguments_field="input",
                data=data,
                settings=settings,
            )
            for block in content
            if _is_call(block)
        )
        content_to_resend = _content_to_resend(content, calls)
    # Many models refuse stop strings of only white space.
    text, finish = form.apply_local_stops(
        text, finish, tuple(sign for sign in request.stop if not sign.strip())
    )
    return ReplyContent(
        text,
        reasoning,
        finish,
        converse_usage(data),
        excused=excused,
        calls_tool=called,
        tool_calls=calls,
        provider_content=content_to_resend,
    )


def _is_call(block: Mapping[str, Any]) -> bool:
    """Return whether a block is a call for us, not one that Amazon has run itself."""
    return (
        "toolUse" in block
        and form.get_nested(block, "toolUse", "type") != "server_tool_use"
    )


def _content_to_resend(
    content: Sequence[Mapping[str, Any]], calls: Sequence[ToolCall]
) -> str:
    """Return a reply's blocks to send back as they came, if thinking among them is signed.

    Many models refuse thinking without a signature, so it is left out. The input of a call is text
    in a stream, and must be an object when it goes back.
    """
    if not any(map(_is_signed, content)):
        return ""
    remaining = iter(calls)
    blocks: list[Any] = []
    for block in content:
        if _is_call(block):
            arguments = object_arguments(next(remaining))
            blocks.append({"toolUse": {**block["toolUse"], "input": arguments}})
        elif "reasoningContent" not in block or _is_signed(block):
            blocks.append(block)
    return provider_content(_KEPT_AS, blocks)


def _is_signed(block: Mapping[str, Any]) -> bool:
    """Return whether a block is thinking that Amazon can check."""
    signature = form.get_nested(block, "reasoningContent", "reasoningText", "signature")
    return bool(
        signature or form.get_nested(block, "reasoningContent", "redactedContent")
    )


def converse_usage(data: Any) -> Usage:
    """Read the token usage. Cached input is added to the input; reasoning has no own count."""
    read = "inputTokens cacheReadInputTokens cacheWriteInputTokens"
    return form.usage_of(
        form.get_nested(data, "usage"),
        read,
        "outputTokens",
        cached="cacheReadInputTokens",
    )


def _thought(block: Mapping[str, Any]) -> str:
    text = form.get_nested(block, "reasoningContent", "reasoningText", "text")
    return text if isinstance(text, str) else ""


class ConverseGatherer(form.Gathering):
    """Assembles the events of ConverseStream, of which `metadata` is the last."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._blocks: dict[int, dict[str, list[str]]] = {}
        self._calls: dict[int, Mapping[str, Any]] = {}
        self._stop: Any = None
        self._usage: Any = None

    def add(self, event: str, data: Any) -> bool:
        """Take one event; `metadata` after `messageStop` ends the answer."""
        form.require_object(data, self.settings, "an event as a JSON object")
        if event.endswith("Exception"):
            raise self._fault(event, data)
        if event == "contentBlockDelta":
            self._delta(data)
        elif event == "contentBlockStart":
            call = form.get_nested(data, "start", "toolUse")
            if call is not None:
                self._block(data).setdefault("input", [])
                self._calls[data["contentBlockIndex"]] = form.as_mapping(call)
                self.has_text = True
        elif event == "messageStop":
            self._stop = data.get("stopReason")
        elif event == "metadata":
            if self._stop is None:
                raise form.not_documented(
                    self.settings, "messageStop before metadata", data
                )
            self._usage = data.get("usage")
            return True
        return False

    def _fault(self, event: str, data: Mapping[str, Any]) -> RequestError:
        status = (
            data.get("originalStatusCode")
            if event == "modelStreamErrorException"
            else None
        )
        status_code = (
            status
            if isinstance(status, int) and status in (429, 503)
            else status_of(event)
        )
        return error_for(
            self.settings.where,
            status_code,
            server_message(data),
            key_source=self.settings.key_source,
        )

    def _block(self, data: Mapping[str, Any]) -> dict[str, list[str]]:
        index = data.get("contentBlockIndex")
        if not isinstance(index, int):
            raise form.not_documented(self.settings, "contentBlockIndex", data)
        return self._blocks.setdefault(index, {})

    def _delta(self, data: Mapping[str, Any]) -> None:
        delta = data.get("delta")
        block = self._block(data)
        if not isinstance(delta, Mapping):
            raise form.not_documented(self.settings, "a delta", data)
        if isinstance(text := delta.get("text"), str):
            block.setdefault("text", []).append(text)
            self.has_text = self.has_text or text != ""
        thought = delta.get("reasoningContent")
        if isinstance(thought, Mapping):
            self.has_text = self.has_text or bool(thought.get("text"))
            self._add_thought(block, thought)
        piece = form.get_nested(delta, "toolUse", "input")
        if isinstance(piece, str):
            if "input" not in block:
                raise form.not_documented(
                    self.settings, "a call's contentBlockStart before its input", data
                )
            block["input"].append(piece)
            self.has_text = self.has_text or piece != ""

    def _add_thought(
        self, block: dict[str, list[str]], thought: Mapping[str, Any]
    ) -> None:
        if "redactedContent" in thought:
            block.setdefault("redacted", []).append(str(thought["redactedContent"]))
            return
        block.setdefault("reasoning", []).append(str(thought.get("text") or ""))
        if thought.get("signature"):
            block.setdefault("signature", []).append(str(thought["signature"]))

    def result(self) -> Any:
        content: list[dict[str, Any]] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            if "reasoning" in block:
                thought = {"text": "".join(block["reasoning"])}
                if "signature" in block:
                    thought["signature"] = "".join(block["signature"])
                content.append({"reasoningContent": {"reasoningText": thought}})
            if "redacted" in block:
                redacted = self._join_bytes(block["redacted"])
                content.append({"reasoningContent": {"redactedContent": redacted}})
            if "text" in block:
                content.append({"text": "".join(block["text"])})
            if index in self._calls:
                written = "".join(block["input"])
                arguments = {"input": written} if written.strip() else {}
                content.append({"toolUse": {**self._calls[index], **arguments}})
        message = {"role": "assistant", "content": content}
        return {
            "output": {"message": message},
            "stopReason": self._stop,
            "usage": self._usage,
        }

    def _join_bytes(self, pieces: Sequence[str]) -> str:
        """Join pieces of bytes, each of which is Base64 of its own."""
        if len(pieces) == 1:
            return pieces[0]
        try:
            joined = b"".join(base64.b64decode(piece) for piece in pieces)
        except (binascii.Error, ValueError):
            raise form.not_documented(
                self.settings, "redactedContent as Base64", pieces
            ) from None
        return base64.b64encode(joined).decode("ascii")


WIRE = Wire(
    name="bedrock",
    path=lambda settings: path_of(settings, "converse"),
    payload=converse_payload,
    parse=parse_converse,
    usage=converse_usage,
    gather=ConverseGatherer,
    stream_path=lambda settings: path_of(settings, "converse-stream"),
    stream_payload=lambda body: body,
    decoding="aws",
    lacks=frozenset(("seed",)),
    names_limit=False,
    model_in_path=True,
    options={
        **TOOLS_IN_PAYLOAD,
        # Each family has its own place for it, or none.
        "top_k": at_place("additionalModelRequestFields.top_k"),
        "json_schema": lambda schema: nested(
            "outputConfig.textFormat",
            {
                "type": "json_schema",
                "structure": {"jsonSchema": {"name": SCHEMA_NAME, "schema": schema}},
            },
        ),
    },
    extensions=frozenset(("top_k",)),
    images=ALL_IMAGES,
)
