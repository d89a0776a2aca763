"""The wire formats of OpenAI's chat completions and completions, which most providers support."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.outcomes import CONTENT_FILTER, REFUSAL
from evalwright.core.requests import Generate, Prompt
from evalwright.core.responses import Usage
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


def chat_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body; a text becomes one user message, a prefill stays the last message."""
    body = {"model": settings.model, "messages": chat_messages(request.prompt)}
    return with_sampling(body, request, settings)


def chat_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """Return the prompt as the messages of a body."""
    return [
        {"role": turn.role, "content": content(turn, openai_part)}
        for turn in form.turns(prompt)
    ]


def with_sampling(
    body: dict[str, Any], request: Generate, settings: Settings
) -> dict[str, Any]:
    """Add the sampling fields and the model's extra fields to a body."""
    sampling = form.sampling(request, settings)
    fields = {
        settings.tokens_field: sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
    }
    return form.merge_bodies({**body, **form.without_none(fields)}, settings.extra_body)


def parse_chat(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a chat completion."""
    choice = first_choice(data, settings)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise form.not_documented(settings, "choices[0].message", data)
    text, reasoning = _content(message.get("content"), data, settings)
    thoughts = (message.get(name) for name in settings.reasoning_fields)
    reasoning = next(
        (thought for thought in thoughts if isinstance(thought, str) and thought),
        reasoning,
    )
    finish = form.finish_of(choice.get("finish_reason"))
    usage = read_usage(data.get("usage"))
    refusal = _refusal(message)
    if refusal and not text.strip() and finish != CONTENT_FILTER:
        text = refusal
        finish = REFUSAL
    called = bool(message.get("tool_calls") or message.get("function_call"))
    stopped_at = form.stopped_at(choice, STOP_FIELDS, request.stop)
    return ReplyContent(
        text,
        reasoning,
        finish,
        usage,
        data.get("model"),
        excused=called,
        calls_tool=called,
        stopped_at=stopped_at,
    )


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
        or not isinstance(choices[0], Mapping)
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
    holders = (
        [message, *(block for block in blocks if isinstance(block, Mapping))]
        if isinstance(blocks, list)
        else [message]
    )
    return "".join(
        refusal
        for holder in holders
        if isinstance(refusal := holder.get("refusal"), str)
    )


def read_usage(usage: Any) -> Usage:
    """Read the token usage, including DeepSeek's and Moonshot's names for cached tokens."""
    if not isinstance(usage, Mapping):
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


class ChatGatherer(CompletionGatherer):
    """Assembles the chunks of a streamed chat completion."""

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
                self.has_text = self.has_text or bool(text or thought)
                if thought:
                    self._parts.setdefault(thinking[0], []).append(thought)
            elif name in ("tool_calls", "function_call") and value:
                self._called = True

    def _choice_content(self) -> dict[str, Any]:
        message: dict[str, Any] = {
            name: "".join(pieces) for name, pieces in self._parts.items()
        }
        message = {"role": "assistant", "content": None, **message}
        return {"message": {**message, "tool_calls": [{}]} if self._called else message}


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
