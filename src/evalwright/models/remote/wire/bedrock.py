"""The wire format of Amazon Bedrock's Converse, one for all models, with its own framing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import RequestError
from evalwright.core.images import Image
from evalwright.core.requests import Generate, Message, Part
from evalwright.core.responses import Usage
from evalwright.models.remote.http_faults import error_for, server_message, status_of
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import (
    ALL_IMAGES,
    SCHEMA_NAME,
    at_place,
    nested,
    parts,
)

_LIMIT = ("inferenceConfig", "maxTokens")
_BUDGET = ("additionalModelRequestFields", "thinking", "budget_tokens")


def path_of(settings: Settings, method: str) -> str:
    """Return the path of a model's method, with colons and slashes of ids percent-encoded once."""
    return f"/model/{quote(settings.model, safe='-._~')}/{method}"


def converse_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body.

    Consecutive turns of one role become one message, because roles must alternate.

    Raises:
        Rejected: the prompt has no turn.
    """
    system, talk = form.system_and_talk(request, settings)
    sampling = form.sampling(request, settings)
    config = {
        "maxTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": [sign for sign in sampling.stop if sign.strip()] or None,
    }
    body: dict[str, Any] = {
        "messages": _alternating(talk),
        "inferenceConfig": form.without_none(config),
    }
    if system:
        body["system"] = [{"text": system}]
    body = form.merge_bodies(body, settings.extra_body)
    return form.with_room_to_think(body, _LIMIT, _BUDGET, settings, above=True)


def _alternating(talk: tuple[Message, ...]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in talk:
        blocks = parts(turn, _part)
        if messages and messages[-1]["role"] == turn.role:
            messages[-1]["content"].extend(blocks)
        else:
            messages.append({"role": turn.role, "content": blocks})
    return messages


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
            if form.get_nested(data, "start", "toolUse") is not None:
                self._block(data)["toolUse"] = []
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
            block.setdefault("reasoning", []).append(str(thought.get("text") or ""))

    def result(self) -> Any:
        content: list[dict[str, Any]] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            if "reasoning" in block:
                content.append(
                    {
                        "reasoningContent": {
                            "reasoningText": {"text": "".join(block["reasoning"])}
                        }
                    }
                )
            if "text" in block:
                content.append({"text": "".join(block["text"])})
            if "toolUse" in block:
                content.append({"toolUse": {}})
        message = {"role": "assistant", "content": content}
        return {
            "output": {"message": message},
            "stopReason": self._stop,
            "usage": self._usage,
        }


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
