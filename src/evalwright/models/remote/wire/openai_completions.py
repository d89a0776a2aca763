"""OpenAI's completions: text in, text out, as base models are served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.requests import Generate, Prompt
from evalwright.core.responses import Response
from evalwright.models.remote.http import Reply
from evalwright.models.remote.http_faults import fault_within
from evalwright.models.remote.wire.format import Settings, Wire, finished, not_documented
from evalwright.models.remote.wire.openai_chat import finish_of, first_choice, read_usage, with_sampling

COMPLETIONS_MAX_TOKENS = 1024
"""Sent where nobody set a limit: the completions interface would stop after 16 tokens by itself."""

_PATH = "/completions"


def completions_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body. Raises Rejected for messages, which this interface cannot render."""
    payload: dict[str, Any] = {"model": settings.model, "prompt": text_of(request.prompt, settings)}
    filled = with_sampling(payload, request, settings)
    filled.setdefault("max_tokens", COMPLETIONS_MAX_TOKENS)
    return filled


def text_of(prompt: Prompt, settings: Settings) -> str:
    """The prompt as the text that the completions interface takes."""
    if isinstance(prompt, str):
        return prompt
    raise Rejected(
        f"The completions interface of {settings.where} takes text, not chat messages; ask with interface=chat, "
        f"or write the prompt as text."
    )


def read_completion(reply: Reply, request: Generate, settings: Settings) -> Response:
    """A Response from a completion."""
    data, choice = first_choice(reply, settings)
    text = choice.get("text")
    if not isinstance(text, str):
        raise not_documented(settings, "choices[0].text", data)
    return finished(
        text,
        "",
        finish_of(choice),
        read_usage(data.get("usage")),
        request,
        settings,
        reply=reply,
        model=data.get("model"),
        may_be_empty=True,
    )


class CompletionGatherer:
    """The chunks of a streamed completion, put together as the completion would have been."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._text: list[str] = []
        self._head: dict[str, Any] = {}
        self._finish: Any = None
        self._usage: Any = None

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk; `[DONE]` ends the answer."""
        if data == "[DONE]":
            return True
        if not isinstance(data, Mapping):
            raise not_documented(self._settings, "a chunk as a JSON object", data)
        fault = fault_within(self._settings.where, data, key_source=self._settings.key_source)
        if fault is not None:
            raise fault
        self._head.update((name, data[name]) for name in ("id", "model") if data.get(name))
        self._usage = data.get("usage") or self._usage
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping) and choice.get("index", 0) == 0:
                self._text.append(str(choice.get("text") or ""))
                self._finish = choice.get("finish_reason") or self._finish
        return False

    def result(self) -> Any:
        """The completion."""
        choice = {"index": 0, "text": "".join(self._text), "finish_reason": self._finish}
        return {**self._head, "choices": [choice], "usage": self._usage}


WIRE = Wire(
    name="openai-completions",
    path=lambda settings: _PATH,
    payload=completions_payload,
    read=read_completion,
    gather=CompletionGatherer,
    stream_payload=lambda body: {**body, "stream": True, "stream_options": {"include_usage": True}},
    chat=False,
)
