"""The wire format of OpenAI's responses: a list of items, with a separate summary of the reasoning.

Any type of output item may be missing, so items are identified by type, never by position. The last
event of a stream has the complete response.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.core.errors import Rejected, RequestError
from evalwright.core.images import Image
from evalwright.core.outcomes import CONTENT_FILTER, LENGTH, REFUSAL
from evalwright.core.requests import Generate, Message, Part
from evalwright.core.responses import TokenLogProb, Usage
from evalwright.models.remote.http_faults import (
    Filtered,
    clean,
    error_for,
    server_message,
    status_of,
)
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import (
    ALL_IMAGES,
    SCHEMA_NAME,
    NoLogProbs,
    content,
    read_tokens,
)

_POLICIES = ("bio_policy", "misalignment_policy_violation")
_TEXT_DELTAS = ("_text.delta", "refusal.delta")
"""Suffixes of events with a piece of text.

The text is of the answer, of a refusal, of the reasoning or its summary.
"""
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def responses_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body, with system messages as the instructions.

    Raises:
        Rejected: the prompt ends with a prefill, which would not be continued.
    """
    system, turns = form.system_and_turns(request.prompt)
    if turns and turns[-1].role == "assistant":
        raise Rejected(
            f"The responses interface of {settings.where} does not continue the"
            " beginning of an answer: use interface=chat, or leave out the last"
            " message of the assistant."
        )
    sampling = form.sampling(request, settings)
    fields = {
        "instructions": system or None,
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
    }
    body: dict[str, Any] = {
        "model": settings.model,
        "input": [{"role": turn.role, "content": _content(turn)} for turn in turns],
        # The provider must not keep the request for a later turn.
        "store": False,
        **form.without_none(fields),
    }
    return form.merge_bodies(body, settings.extra_body)


def _content(turn: Message) -> Any:
    # What an assistant said has parts of another type than what it is asked; it is only ever text.
    return turn.text if turn.role == "assistant" else content(turn, _part)


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": part.data_url(), "detail": "auto"}
    return {"type": "input_text", "text": part}


def _tokens(data: Any) -> list[TokenLogProb]:
    """Return the tokens of all texts of a response, in order."""
    items = [
        item
        for item in form.as_mapping(data).get("output") or ()
        if isinstance(item, Mapping)
    ]
    rows_by_text = [
        part.get("logprobs")
        for item in items
        if item.get("type") == "message"
        for part in item.get("content") or ()
        if isinstance(part, Mapping) and part.get("type") == "output_text"
    ]
    if not rows_by_text or not all(
        isinstance(rows, list) and rows for rows in rows_by_text
    ):
        raise NoLogProbs
    return [
        token
        for rows in rows_by_text
        for token in read_tokens(rows, "token", "logprob", "top_logprobs")
    ]


def parse_response(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a response object."""
    status = form.require_object(data, settings).get("status")
    if status == "failed":
        raise _failure(data.get("error"), settings)
    form.require_success(data, settings)
    output = data.get("output")
    if not isinstance(output, list):
        raise form.not_documented(settings, "output as a list", data)
    finish = _finish(status, data, settings)
    items = [item for item in output if isinstance(item, Mapping)]
    text, refusal, reasoning = (_texts(items, *text_kind) for text_kind in _KINDS)
    if refusal and not text.strip() and finish != CONTENT_FILTER:
        text = refusal
        finish = REFUSAL
    called = any(str(item.get("type", "")).endswith("_call") for item in items)
    return ReplyContent(
        text,
        reasoning,
        finish,
        response_usage(data),
        data.get("model"),
        excused=called,
        calls_tool=called,
    )


def response_usage(data: Any) -> Usage:
    """Read the token usage."""
    thought = "output_tokens_details.reasoning_tokens"
    cached = "input_tokens_details.cached_tokens"
    return form.usage_of(
        form.get_nested(data, "usage"), "input_tokens", "output_tokens", thought, cached
    )


_KINDS = (
    ("message", ("content",), "output_text", "text", ""),
    ("message", ("content",), "refusal", "refusal", ""),
    (
        "reasoning",
        ("content", "summary"),
        "reasoning_text summary_text",
        "text",
        "\n\n",
    ),
)
"""How to read each kind of text in the items of a response.

Item type, its lists of parts (the first that has some counts), the parts' types, their field, and
the text between them.
"""


def _texts(
    items: list[Mapping[str, Any]],
    kind: str,
    lists: tuple[str, ...],
    types: str,
    field: str,
    between: str,
) -> str:
    texts: list[str] = []
    for item in items:
        if item.get("type") == kind:
            candidates = (
                list(_parts(item.get(name), types.split(), field)) for name in lists
            )
            texts += next(filter(None, candidates), [])
    return between.join(texts)


def _parts(parts: Any, types: list[str], field: str) -> Iterator[str]:
    for part in parts if isinstance(parts, list) else ():
        if (
            isinstance(part, Mapping)
            and part.get("type") in types
            and isinstance(part.get(field), str)
        ):
            yield part[field]


def _finish(status: Any, data: Mapping[str, Any], settings: Settings) -> str:
    if status == "completed":
        return "stop"
    if status != "incomplete":
        raise form.not_documented(
            settings, "status completed, incomplete or failed", data
        )
    finish = form.finish_of(form.get_nested(data, "incomplete_details", "reason"))
    return (
        finish if finish in (LENGTH, CONTENT_FILTER) else f"incomplete {finish}".strip()
    )


def _failure(error: Any, settings: Settings) -> RequestError:
    """Make the error that a failed response, or an event, describes."""
    code = form.get_nested(error, "code")
    reason = server_message({"error": error}) or "it gave no reason"
    if code in _POLICIES:
        return Filtered(
            f"{settings.where} stopped the answer by its policy: {clean(reason, 300)}"
        )
    return error_for(
        settings.where,
        status_of(code),
        reason,
        codes=frozenset((code,)) if isinstance(code, str) else frozenset(),
        key_source=settings.key_source,
    )


class ResponsesGatherer(form.Gathering):
    """Assembles the events of a streamed response.

    The last one carries the whole reply; pieces before it are not needed.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._items: dict[int, Any] = {}
        self._reply: dict[str, Any] = {}

    def add(self, event: str, data: Any) -> bool:
        """Take an event; completed, incomplete and failed end the answer, an error event raises."""
        event_type = (
            form.require_object(data, self.settings, "an event as a JSON object").get(
                "type"
            )
            or event
        )
        self.note_name(form.get_nested(data, "response", "model"))
        if event_type == "error":
            raise _failure(form.as_mapping(data.get("error")) or data, self.settings)
        if str(event_type).endswith(_TEXT_DELTAS):
            self.has_text = self.has_text or bool(data.get("delta"))
        if event_type == "response.output_item.done":
            self._items[form.count(data.get("output_index"))] = data.get("item")
        if event_type not in _ENDS:
            return False
        if not isinstance(data.get("response"), Mapping):
            raise form.not_documented(
                self.settings, "the whole response in the last event", data
            )
        self._reply = dict(data["response"])
        if not self._reply.get("output") and self._items:
            # Some servers leave the items out of the last event.
            self._reply["output"] = [
                self._items[index] for index in sorted(self._items)
            ]
        return True

    def result(self) -> Any:
        return self._reply


WIRE = Wire(
    name="openai-responses",
    path=lambda settings: "/responses",
    payload=responses_payload,
    parse=parse_response,
    usage=response_usage,
    gather=ResponsesGatherer,
    lacks=frozenset({"stop", "seed"}),
    names_limit=False,
    end="/responses",
    options={
        "top_logprobs": lambda alternatives: {
            "include": ["message.output_text.logprobs"],
            "top_logprobs": alternatives,
        },
        "json_schema": lambda schema: {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": SCHEMA_NAME,
                    "strict": True,
                    "schema": json.loads(schema),
                }
            }
        },
    },
    images=ALL_IMAGES,
    tokens=_tokens,
)
