"""The wire formats of OpenAI's chat completions and completions, which most providers support."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.outcomes import CONTENT_FILTER, REFUSAL
from evalwright.core.requests import Generate, Message, Prompt
from evalwright.core.responses import Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import (
    ALL_IMAGES,
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    SAMPLERS,
    chat_tokens,
    completion_tokens,
    content,
    openai_part,
)
from evalwright.models.remote.wire.tool_turns import (
    ANY_ID,
    CallIds,
    allowed_name,
    complete_tool_turns,
    content_for_provider,
    json_arguments,
    provider_content,
    text_arguments,
)

KEPT = "openai-chat"
"""The format's name in `Message.provider_content`, the same for all of its variants."""
THINK_TAGS = "<think>"
"""The entry of `Settings.returns` for reasoning that is sent back in tags before the text."""


def chat_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body; a text becomes one user message, a prefill stays the last message."""
    messages = chat_messages(request.prompt, settings)
    body = {"model": settings.model, "messages": messages}
    return with_sampling(body, request, settings)


def chat_messages(
    prompt: Prompt, settings: Settings, ids: CallIds = ANY_ID
) -> list[dict[str, Any]]:
    """Return the prompt as the messages of a body.

    Args:
        prompt: the prompt.
        settings: the model's settings.
        ids: what the server takes as the id of a call.

    Raises:
        Rejected: results and calls of tools do not belong together.
    """
    return [_message(turn, settings) for turn in complete_tool_turns(prompt, ids)]


def _message(turn: Message, settings: Settings) -> dict[str, Any]:
    if turn.role == "tool":
        return {
            "role": "tool",
            "tool_call_id": turn.tool_call_id,
            "content": content(turn, openai_part),
        }
    message = {"role": turn.role, "content": content(turn, openai_part)}
    if not turn.tool_calls:
        return message
    return {
        **message,
        # Replies with calls alone have no content, and so has the turn that repeats one.
        "content": message["content"] if turn.text else None,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": allowed_name(call.name),
                    "arguments": json_arguments(call, raw=settings.raw_arguments),
                },
            }
            for call in turn.tool_calls
        ],
        **_returned(turn, settings),
    }


def _returned(turn: Message, settings: Settings) -> dict[str, Any]:
    """Return what the server wants back with a turn that calls tools, mostly its reasoning."""
    provider_fields = form.as_mapping(content_for_provider(turn, KEPT))
    fields: dict[str, Any] = {}
    for name in settings.returns:
        if name in settings.reasoning_fields:
            # An empty one is sent, too: DeepSeek and Moonshot refuse a turn without the field.
            fields[name] = turn.reasoning
        elif name in provider_fields:
            fields[name] = provider_fields[name]
        elif name == THINK_TAGS and turn.reasoning and not fields:
            thought = f"<think>\n{turn.reasoning}\n</think>\n\n"
            fields["content"] = thought + turn.text
    return fields


def with_sampling(
    body: dict[str, Any], request: Generate, settings: Settings
) -> dict[str, Any]:
    """Add the sampling fields and the model's extra fields to a body."""
    sampling = form.sampling(request, settings)
    sampled = dict(body)
    if sampling.max_tokens is not None:
        sampled[settings.tokens_field] = sampling.max_tokens
    if sampling.stop:
        sampled["stop"] = list(sampling.stop)
    if sampling.temperature is not None:
        sampled["temperature"] = sampling.temperature
    if sampling.top_p is not None:
        sampled["top_p"] = sampling.top_p
    if sampling.seed is not None:
        sampled["seed"] = sampling.seed
    if not settings.extra_body:
        return sampled
    return form.merge_bodies(sampled, settings.extra_body)


def parse_chat(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a chat completion."""
    choice = first_choice(data, settings)
    message = choice.get("message")
    if not isinstance(message, form.MAPPINGS):
        raise form.not_documented(settings, "choices[0].message", data)
    text, reasoning = _content(message.get("content"), data, settings)
    for name in settings.reasoning_fields:
        thought = message.get(name)
        if isinstance(thought, str) and thought:
            reasoning = thought
            break
    finish = form.finish_of(choice.get("finish_reason"))
    usage = read_usage(data.get("usage"))
    refusal = _refusal(message)
    if refusal and not text.strip() and finish != CONTENT_FILTER:
        text = refusal
        finish = REFUSAL
    called = bool(message.get("tool_calls") or message.get("function_call"))
    calls: tuple[ToolCall, ...] = ()
    if called and form.offers_tools(request) and finish != CONTENT_FILTER:
        calls = _calls(message, data, settings)
    stopped_at = form.stopped_at(choice, STOP_FIELDS, request.stop)
    return ReplyContent(
        text,
        reasoning,
        finish,
        usage,
        data.get("model"),
        excused=called,
        calls_tool=called,
        tool_calls=calls,
        provider_content=_content_to_resend(message, settings) if calls else "",
        stopped_at=stopped_at,
    )


def _content_to_resend(message: Mapping[str, Any], settings: Settings) -> str:
    """Return what the provider wants back with a turn that calls tools, besides `reasoning`."""
    fields_to_resend = {
        name: message[name]
        for name in settings.returns
        if message.get(name) and name not in settings.reasoning_fields
    }
    return provider_content(KEPT, fields_to_resend)


def _calls(
    message: Mapping[str, Any], data: Any, settings: Settings
) -> tuple[ToolCall, ...]:
    """Return the calls of tools in a message, in OpenAI's present form or its old one.

    Raises:
        BadReply: a call has no name.
    """
    rows = message.get("tool_calls") or [{"function": message.get("function_call")}]
    calls = []
    for row in rows if isinstance(rows, list) else [None]:
        function = form.get_nested(row, "function")
        name = form.get_nested(function, "name")
        if not isinstance(name, str):
            expected = "choices[0].message.tool_calls with function.name"
            raise form.not_documented(settings, expected, data)
        arguments = form.get_nested(function, "arguments")
        call_id = form.get_nested(row, "id")
        calls.append(
            ToolCall(
                name,
                text_arguments(arguments),
                call_id if isinstance(call_id, str) else "",
            )
        )
    return tuple(calls)


STOP_FIELDS = ("stop_reason", "matched_stop")
"""Fields in which vLLM and SGLang say at which stop string, or token, an answer ended."""


def first_choice(data: Any, settings: Settings) -> Mapping[str, Any]:
    """Return a reply's first choice.

    Raises:
        BadReply: it has none.
        RequestError: it is an error with status 200.
    """
    choices = form.require_success(data, settings).get("choices")
    if (
        not isinstance(choices, list)
        or not choices
        or not isinstance(choices[0], form.MAPPINGS)
    ):
        raise form.not_documented(settings, "choices[0]", data)
    choice: Mapping[str, Any] = choices[0]
    return choice


def _content(content: Any, data: Any, settings: Settings) -> tuple[str, str]:
    """Return (text, reasoning) of a message's content: text, nothing, or a list of parts."""
    if content is None:
        return "", ""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        raise form.not_documented(settings, "choices[0].message.content as text", data)
    texts = []
    thoughts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            part_type = part.get("type", "text")
            if part_type in ("thinking", "reasoning"):
                thoughts.append(
                    _content(part.get(part_type) or part.get("text"), data, settings)[0]
                )
            elif isinstance(text := part.get("text"), str):
                texts.append(text)
    return "".join(texts), "".join(thoughts)


def _refusal(message: Mapping[str, Any]) -> str:
    """Return the refusal of a message, or of the parts of its content."""
    blocks = message.get("content")
    if not isinstance(blocks, list):
        refusal = message.get("refusal")
        return refusal if isinstance(refusal, str) else ""
    holders = [message, *(block for block in blocks if isinstance(block, Mapping))]
    return "".join(
        refusal
        for holder in holders
        if isinstance(refusal := holder.get("refusal"), str)
    )


def read_usage(usage: Any) -> Usage:
    """Read the token usage, including DeepSeek's and Moonshot's names for cached tokens."""
    if not isinstance(usage, form.MAPPINGS):
        return Usage()
    read = form.count(usage.get("prompt_tokens"))
    written = form.count(usage.get("completion_tokens"))
    reasoning = form.count(
        form.get_nested(usage, "completion_tokens_details", "reasoning_tokens")
    ) or form.count(usage.get("reasoning_tokens"))
    if (
        reasoning
        and form.count(usage.get("total_tokens")) == read + written + reasoning
    ):
        # xAI counts reasoning beside the completion; it is billed as output nevertheless.
        written += reasoning
    cached = (
        form.count(form.get_nested(usage, "prompt_tokens_details", "cached_tokens"))
        or form.count(usage.get("prompt_cache_hit_tokens"))
        or form.count(usage.get("cached_tokens"))
    )
    return Usage(read, written, min(reasoning, written), cached)


def reply_usage(data: Any) -> Usage:
    """Read the token usage of a reply."""
    return read_usage(form.get_nested(data, "usage"))


class CompletionGatherer(form.Gathering):
    """Assembles the chunks of a streamed completion.

    It ends with `[DONE]`, or, as some servers omit that, with the stream after a finish reason.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._texts: list[str] = []
        self._finish: Any = None
        self._stop: dict[str, Any] = {}
        self._head: dict[str, Any] = {}
        self._usage: Any = None
        self._logprobs: dict[str, list[Any]] = {}

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk."""
        if data == "[DONE]":
            return True
        form.require_success(data, self.settings, "a chunk as a JSON object")
        self.note_name(data.get("model"))
        self._head.update(
            (name, data[name]) for name in ("id", "model") if data.get(name)
        )
        self._usage = data.get("usage") or self._usage
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
                self._take(choice)
                for name, rows in form.as_mapping(choice.get("logprobs")).items():
                    self._logprobs.setdefault(name, []).extend(
                        rows if isinstance(rows, list) else ()
                    )
                self._finish = choice.get("finish_reason") or self._finish
                if choice.get("finish_reason"):
                    self._stop = {
                        name: choice[name] for name in STOP_FIELDS if name in choice
                    }
        return False

    def ended(self) -> bool:
        """Return whether a chunk had a finish reason."""
        return self._finish is not None

    def _take(self, choice: Mapping[str, Any]) -> None:
        text = str(choice.get("text") or "")
        self._texts.append(text)
        self.has_text = self.has_text or text != ""

    def _choice_content(self) -> dict[str, Any]:
        return {"text": "".join(self._texts)}

    def result(self) -> Any:
        choice = {
            "index": 0,
            **self._choice_content(),
            "finish_reason": self._finish,
            **self._stop,
        }
        if self._logprobs:
            choice["logprobs"] = self._logprobs
        return {**self._head, "choices": [choice], "usage": self._usage}


class StreamedCalls:
    """Assembles the calls of tools in a stream, which come in pieces under their indices.

    The name and the id come with the first piece, and may be repeated, empty or missing in later
    ones. Some servers send whole calls, without an index or all under the same one; others a new
    id with each piece.
    """

    def __init__(self) -> None:
        self._calls: list[_StreamedCall] = []
        self._latest: dict[int | None, _StreamedCall] = {}

    def add(self, pieces: Any) -> None:
        """Take the `tool_calls` of a chunk."""
        for piece in pieces if isinstance(pieces, list) else [pieces]:
            self._add_piece(form.as_mapping(piece))

    def _add_piece(self, piece: Mapping[str, Any]) -> None:
        index = piece.get("index") if type(piece.get("index")) is int else None
        function = form.as_mapping(piece.get("function"))
        call_id = _text(piece.get("id"))
        name = _text(function.get("name"))
        call = self._latest.get(index)
        if call is None or call.is_before(call_id, name, has_index=index is not None):
            call = _StreamedCall()
            self._calls.append(call)
            self._latest[index] = call
        call.id = call.id or call_id
        if name != call.name:
            call.name += name
        call.arguments.append(text_arguments(function.get("arguments")))

    def as_rows(self) -> list[dict[str, Any]]:
        """Return the calls in the form of a reply that is not streamed."""
        return [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": "".join(call.arguments),
                },
            }
            for call in self._calls
        ]


@dataclass(slots=True)
class _StreamedCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def is_before(self, call_id: str, name: str, *, has_index: bool) -> bool:
        """Return whether a piece under this call's index, or without one, begins the next call."""
        if not name or not self.name:
            return False
        if call_id and self.id:
            return call_id != self.id
        return not has_index or self._is_whole()

    def _is_whole(self) -> bool:
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_PIECES_OF_DETAILS = ("text", "summary", "data")
"""Fields of a reasoning detail that a stream sends in pieces."""


def _joined_details(details: list[Any]) -> list[Any]:
    """Join the pieces of streamed reasoning details: those of one type and index in a row."""
    groups: list[list[Any]] = []
    for detail in details:
        if groups and _is_next_piece(groups[-1][-1], detail):
            groups[-1].append(detail)
        else:
            groups.append([detail])
    return [pieces[0] if len(pieces) == 1 else _joined(pieces) for pieces in groups]


def _is_next_piece(earlier: Any, detail: Any) -> bool:
    index = form.get_nested(detail, "index")
    return (
        index is not None
        and index == form.get_nested(earlier, "index")
        and form.get_nested(detail, "type") == form.get_nested(earlier, "type")
    )


def _joined(pieces: list[Mapping[str, Any]]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for piece in pieces:
        joined |= form.without_none(piece)
    for name in _PIECES_OF_DETAILS:
        if name in joined:
            joined[name] = "".join(_text(piece.get(name)) for piece in pieces)
    return joined


class ChatGatherer(CompletionGatherer):
    """Assembles the chunks of a streamed chat completion."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._parts: dict[str, list[str]] = {}
        self._calls = StreamedCalls()
        self._function_call: dict[str, str] = {}
        self._details: dict[str, list[Any]] = {}

    def _take(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        thinking = self.settings.reasoning_fields
        for name, value in delta.items() if isinstance(delta, Mapping) else ():
            if name in ("content", "refusal", *thinking):
                text, thought = _content(value, choice, self.settings)
                self._parts.setdefault(name, []).append(text)
                self.has_text = self.has_text or bool(text or thought)
                if thought:
                    self._parts.setdefault(thinking[0], []).append(thought)
            elif name == "tool_calls" and value:
                self._calls.add(value)
                self.has_text = True
            elif name == "function_call" and isinstance(value, Mapping):
                for part in ("name", "arguments"):
                    piece = text_arguments(value.get(part))
                    self._function_call[part] = (
                        self._function_call.get(part, "") + piece
                    )
                self.has_text = True
            elif name in self.settings.returns and value:
                self._details.setdefault(name, []).extend(
                    value if isinstance(value, list) else [value]
                )

    def _choice_content(self) -> dict[str, Any]:
        message: dict[str, Any] = {
            name: "".join(pieces) for name, pieces in self._parts.items()
        }
        details_to_resend = {
            name: _joined_details(rows) for name, rows in self._details.items()
        }
        message = {"role": "assistant", "content": None, **details_to_resend, **message}
        calls = self._calls.as_rows()
        if calls:
            message["tool_calls"] = calls
        if self._function_call:
            message["function_call"] = self._function_call
        return {"message": message}


def streamed_body(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a streamed request, which asks for token usage too."""
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


CHAT = Wire(
    name="openai-chat",
    path=lambda settings: "/chat/completions",
    payload=chat_payload,
    parse=parse_chat,
    usage=reply_usage,
    gather=ChatGatherer,
    stream_payload=streamed_body,
    end="/chat/completions",
    options=OPENAI_CHAT,
    extensions=frozenset(SAMPLERS),
    images=ALL_IMAGES,
    tokens=chat_tokens,
)


COMPLETIONS_MAX_TOKENS = 1024
"""The limit that is sent if none is set; without it the completions API would stop after 16 tokens.
"""


def completions_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body.

    Raises:
        Rejected: the prompt is messages, which this API cannot render.
    """
    prompt = text_of(request.prompt, settings)
    body = with_sampling({"model": settings.model, "prompt": prompt}, request, settings)
    body.setdefault("max_tokens", COMPLETIONS_MAX_TOKENS)
    return body


def text_of(prompt: Prompt, settings: Settings) -> str:
    """Return the prompt as one text."""
    if isinstance(prompt, str):
        return prompt
    raise Rejected(
        f"The completions interface of {settings.where} takes text, not chat messages;"
        " use interface=chat, or write the prompt as text."
    )


def parse_completion(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a completion."""
    choice = first_choice(data, settings)
    text = choice.get("text")
    if not isinstance(text, str):
        raise form.not_documented(settings, "choices[0].text", data)
    finish = form.finish_of(choice.get("finish_reason"))
    usage = read_usage(data.get("usage"))
    stopped_at = form.stopped_at(choice, STOP_FIELDS, request.stop)
    return ReplyContent(
        text,
        "",
        finish,
        usage,
        data.get("model"),
        may_be_empty=True,
        stopped_at=stopped_at,
    )


COMPLETIONS = Wire(
    name="openai-completions",
    path=lambda settings: "/completions",
    payload=completions_payload,
    parse=parse_completion,
    usage=reply_usage,
    abilities=frozenset(("generate",)),
    gather=CompletionGatherer,
    stream_payload=streamed_body,
    end="/completions",
    options=OPENAI_COMPLETIONS,
    extensions=frozenset(SAMPLERS),
    tokens=completion_tokens,
    most_alternatives=5,
)
