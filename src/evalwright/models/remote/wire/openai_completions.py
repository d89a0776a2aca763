"""OpenAI's completions: text in, text out, as base models are served."""

from __future__ import annotations

from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.requests import Generate, Prompt
from evalwright.models.remote.wire.format import Said, Settings, Wire, finish_of, not_documented
from evalwright.models.remote.wire.openai_chat import (
    CompletionGatherer,
    first_choice,
    read_usage,
    streamed,
    with_sampling,
)

COMPLETIONS_MAX_TOKENS = 1024
"""Sent where no limit is set: the completions interface would stop after 16 tokens by itself."""


def completions_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body. Raises Rejected for messages, which this interface cannot render."""
    prompt = text_of(request.prompt, settings)
    body = with_sampling({"model": settings.model, "prompt": prompt}, request, settings)
    body.setdefault("max_tokens", COMPLETIONS_MAX_TOKENS)
    return body


def text_of(prompt: Prompt, settings: Settings) -> str:
    """The prompt as the text that the completions interface takes."""
    if isinstance(prompt, str):
        return prompt
    raise Rejected(
        f"The completions interface of {settings.where} takes text, not chat messages; use interface=chat, "
        f"or write the prompt as text."
    )


def completion_said(data: Any, request: Generate, settings: Settings) -> Said:
    """What a completion says."""
    choice = first_choice(data, settings)
    text = choice.get("text")
    if not isinstance(text, str):
        raise not_documented(settings, "choices[0].text", data)
    finish, usage = finish_of(choice.get("finish_reason"), {}), read_usage(data.get("usage"))
    return Said(text, "", finish, usage, data.get("model"), may_be_empty=True)


WIRE = Wire(
    name="openai-completions",
    path=lambda settings: "/completions",
    payload=completions_payload,
    said=completion_said,
    abilities=frozenset(("generate",)),
    gather=CompletionGatherer,
    stream_payload=streamed,
    end="/completions",
)
