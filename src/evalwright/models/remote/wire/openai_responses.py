"""The wire format of OpenAI's responses: a list of items, with a separate summary of the reasoning.

Any type of output item may be missing, so items are identified by type, never by position. The last
event of a stream has the complete response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from evalwright.core.errors import Rejected, RequestError
from evalwright.core.images import Image
from evalwright.core.outcomes import CONTENT_FILTER, LENGTH, REFUSAL
from evalwright.core.requests import Generate, Message, Part
from evalwright.core.responses import TokenLogProb, Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import TOOL_CHOICES, ToolDefinition
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
    at_place,
    content,
    read_tokens,
)
from evalwright.models.remote.wire.tool_turns import (
    CallIds,
    allowed_name,
    complete_tool_turns,
    content_for_provider,
    json_arguments,
    provider_content,
    text_arguments,
)

_NAME = "openai-responses"
_IDS = CallIds(re.compile(r".{1,64}", re.DOTALL), "call_{}_{}".format)
_LOG_PROBS = "message.output_text.logprobs"
_ENCRYPTED_REASONING = "reasoning.encrypted_content"
_POLICIES = ("bio_policy", "misalignment_policy_violation")
_DELTAS = ("_text.delta", "refusal.delta", "function_call_arguments.delta")
"""Suffixes of events with a piece of text.

The text is of the answer, of a refusal, of the reasoning or its summary, or of a call's arguments.
"""
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def responses_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body, with system messages as the instructions.

    Raises:
        Rejected: the prompt ends with a prefill, which would not be continued.
    """
    system, turns = form.system_and_turns(complete_tool_turns(request.prompt, _IDS))
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
        "input": [item for turn in turns for item in _items(turn, settings)],
        # The provider must not keep the request for a later turn.
        "store": False,
        **form.without_none(fields),
    }
    if request.tools and settings.reasons:
        # What is not kept there must be sent back; a model that does not reason refuses this.
        log_probs = [] if request.top_logprobs is None else [_LOG_PROBS]
        body["include"] = [*log_probs, _ENCRYPTED_REASONING]
    return form.merge_bodies(body, settings.extra_body)


def _items(turn: Message, settings: Settings) -> list[dict[str, Any]]:
    """Return the input items of a turn."""
    if turn.role == "tool":
        output = content(turn, _part)
        return [
            {
                "type": "function_call_output",
                "call_id": turn.tool_call_id,
                "output": output,
            }
        ]
    message = {"role": turn.role, "content": _content(turn)}
    if not turn.tool_calls:
        return [message]
    provider_items = content_for_provider(turn, _NAME)
    if isinstance(provider_items, list) and _has_calls(provider_items, turn.tool_calls):
        return provider_items
    calls = [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": allowed_name(call.name),
            "arguments": json_arguments(call, raw=settings.raw_arguments),
        }
        for call in turn.tool_calls
    ]
    return [message, *calls] if turn.text else calls


def _has_calls(items: list[Any], calls: tuple[ToolCall, ...]) -> bool:
    """Return whether the items that were kept of a turn are those of its calls."""
    call_ids_and_names = [
        (item.get("call_id"), item.get("name"))
        for item in items
        if isinstance(item, Mapping) and item.get("type") == "function_call"
    ]
    return call_ids_and_names == [(call.id, call.name) for call in calls]


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
    calls: tuple[ToolCall, ...] = ()
    if called and form.offers_tools(request) and finish != CONTENT_FILTER:
        calls = _calls(items, data, settings)
    return ReplyContent(
        text,
        reasoning,
        finish,
        response_usage(data),
        data.get("model"),
        excused=called,
        calls_tool=called,
        tool_calls=calls,
        provider_content=_kept_items(items) if calls else "",
    )


def _calls(
    items: list[Mapping[str, Any]], data: Any, settings: Settings
) -> tuple[ToolCall, ...]:
    """Return the calls of functions among the items of a response.

    Raises:
        BadReply: a call has no name.
    """
    calls = []
    for item in items:
        if item.get("type") != "function_call":
            continue
        name = item.get("name")
        call_id = item.get("call_id") or item.get("id")
        if not isinstance(name, str):
            raise form.not_documented(settings, "a function_call with its name", data)
        calls.append(
            ToolCall(
                name,
                text_arguments(item.get("arguments")),
                call_id if isinstance(call_id, str) else "",
            )
        )
    return tuple(calls)


def _kept_items(items: list[Mapping[str, Any]]) -> str:
    """Return the items that the provider wants back as they are, because of the reasoning in them.

    Without reasoning, the turn itself says everything. A reasoning item without content is of no
    use: nobody keeps what its id stands for.
    """
    items_to_resend = [
        item
        for item in items
        if item.get("type") in ("message", "function_call")
        or (
            item.get("type") == "reasoning"
            and (item.get("encrypted_content") or item.get("content"))
        )
    ]
    is_plain = all(
        item["type"] != "reasoning" and "phase" not in item for item in items_to_resend
    )
    return "" if is_plain else provider_content(_NAME, items_to_resend)


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
        if str(event_type).endswith(_DELTAS):
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


@lru_cache(maxsize=256)  # all samples of a task mostly offer the same tools
def _tools(tools: tuple[ToolDefinition, ...]) -> Mapping[str, Any]:
    """Return the field with definitions of tools, which must not be changed.

    Without `strict: false` the provider would change the schemas so that they can be enforced, and
    make every argument a required one.
    """
    return {
        "tools": [
            {"type": "function", **tool.as_dict(), "strict": False} for tool in tools
        ]
    }


def _tool_choice(tool_choice: str) -> Mapping[str, Any]:
    if tool_choice in TOOL_CHOICES:
        return {"tool_choice": tool_choice}
    return {"tool_choice": {"type": "function", "name": tool_choice}}


WIRE = Wire(
    name=_NAME,
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
            "include": [_LOG_PROBS],
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
        "tools": _tools,
        "tool_choice": _tool_choice,
        "parallel_tool_calls": at_place("parallel_tool_calls"),
    },
    images=ALL_IMAGES,
    tokens=_tokens,
)
