"""OpenAI's wire format as pure functions: a request to JSON, JSON to a Response. No network here.

Chat completions and completions are here; log-probabilities through echo are in `openai_echo`. Any provider that speaks the
format shares these functions, with its quirks as `Settings`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evalwright.core.errors import BadReply, EmptyReply, Rejected
from evalwright.core.requests import Generate, Message, Prompt
from evalwright.core.responses import Response, Usage
from evalwright.models.http import Reply
from evalwright.models.http_faults import bad_reply, fault_within

TokensField = Literal["max_tokens", "max_completion_tokens"]

COMPLETIONS_MAX_TOKENS = 1024
"""Sent where nobody set a limit: the completions interface would stop after 16 tokens by itself."""

_REASONING_FAMILY = re.compile(r"^(o[1-9]\d*|gpt-([5-9]|\d\d))(?![a-z])")
_CHAT_VARIANT = re.compile(r"-chat\b")


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the same in every request to one model. An override that is not None wins over the request's value.

    reasoning: the model refuses temperature, top_p and stop, so they are only sent where they are overrides.
    key_source: for messages about a refused key.
    """

    model: str
    where: str
    tokens_field: TokensField = "max_tokens"
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    reasoning: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    key_source: str = ""


def is_reasoning_family(model: str) -> bool:
    """Whether OpenAI's own endpoint takes `max_completion_tokens` in place of `max_tokens` for this model."""
    return bool(_REASONING_FAMILY.match(_base_name(model)))


def refuses_sampling(model: str) -> bool:
    """Whether OpenAI's own endpoint refuses temperature, top_p and stop for this model."""
    return is_reasoning_family(model) and not _CHAT_VARIANT.search(model)


def _base_name(model: str) -> str:
    return model.removeprefix("ft:").lower()


def chat_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body for /chat/completions. Text becomes one user message; a prefill stays the last message."""
    prompt = request.prompt
    turns = (Message("user", prompt),) if isinstance(prompt, str) else prompt
    payload: dict[str, Any] = {
        "model": settings.model,
        "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
    }
    return _with_sampling(payload, request, settings)


def completions_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body for /completions. Raises Rejected for messages, which this interface cannot render."""
    payload: dict[str, Any] = {"model": settings.model, "prompt": text_of(request.prompt, settings)}
    filled = _with_sampling(payload, request, settings)
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


def _with_sampling(payload: dict[str, Any], request: Generate, settings: Settings) -> dict[str, Any]:
    max_tokens = settings.max_tokens if settings.max_tokens is not None else request.max_tokens
    if max_tokens is not None:
        payload[settings.tokens_field] = max_tokens
    temperature, top_p = settings.temperature, settings.top_p
    if not settings.reasoning:
        temperature = request.temperature if temperature is None else temperature
        top_p = request.top_p if top_p is None else top_p
        if request.stop:
            payload["stop"] = list(request.stop)
    if temperature is not None:
        payload["temperature"] = temperature
    if top_p is not None:
        payload["top_p"] = top_p
    seed = request.seed if settings.seed is None else settings.seed
    if seed is not None:
        # One seed for all draws would draw the same answer each time.
        payload["seed"] = seed + request.draw
    if settings.extra_body:
        payload.update(settings.extra_body)
    return payload


def read_chat(reply: Reply, request: Generate, settings: Settings) -> Response:
    """A Response from a chat completion. Raises BadReply, EmptyReply, or the error that a 200 carries."""
    data, choice = first_choice(reply, settings)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise not_documented(settings, "choices[0].message", data)
    text, reasoning = _content(message.get("content"), data, settings)
    for name in ("reasoning_content", "reasoning"):
        value = message.get(name)
        if isinstance(value, str) and value:
            reasoning = value
            break
    refusal = message.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal
    called = bool(message.get("tool_calls") or message.get("function_call"))
    return _response(reply, data, choice, text, reasoning, request, settings, excused=called, chat=True)


def read_completion(reply: Reply, request: Generate, settings: Settings) -> Response:
    """A Response from a completion. Raises BadReply, EmptyReply, or the error that a 200 carries."""
    data, choice = first_choice(reply, settings)
    text = choice.get("text")
    if not isinstance(text, str):
        raise not_documented(settings, "choices[0].text", data)
    return _response(reply, data, choice, text, "", request, settings, excused=False, chat=False)


def _response(
    reply: Reply,
    data: Mapping[str, Any],
    choice: Mapping[str, Any],
    text: str,
    reasoning: str,
    request: Generate,
    settings: Settings,
    *,
    excused: bool,
    chat: bool,
) -> Response:
    finish = choice.get("finish_reason")
    finish_reason = finish if isinstance(finish, str) else ""
    usage = read_usage(data.get("usage"))
    if not text and not reasoning and not excused and finish_reason in ("stop", ""):
        # A model may end at once, or begin with a stop string; then it did produce a token. Otherwise nothing came.
        may_be_empty = bool(request.stop) or not chat
        if not (may_be_empty and finish_reason and usage.output_tokens > 0):
            raise EmptyReply(f"{settings.where} sent an answer without content.")
    if settings.reasoning and request.stop:
        text = _cut(text, request.stop)
    model = data.get("model")
    return Response(
        text=text,
        reasoning=reasoning,
        finish_reason=finish_reason,
        usage=usage,
        latency=reply.seconds,
        model=model if isinstance(model, str) else "",
        rate_limits=reply.rate_limits,
    )


def _cut(text: str, stop: tuple[str, ...]) -> str:
    """`text` up to the first stop string, for models whose interface does not take any."""
    ends = [place for place in (text.find(sign) for sign in stop if sign) if place >= 0]
    return text[: min(ends)] if ends else text


def first_choice(reply: Reply, settings: Settings) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The reply as a mapping, and its first choice. Raises BadReply, or the error that a 200 carries."""
    data = reply.data
    if not isinstance(data, Mapping):
        raise not_documented(settings, "a JSON object", data)
    fault = fault_within(settings.where, data, key_source=settings.key_source)
    if fault is not None:
        raise fault
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise not_documented(settings, "choices[0]", data)
    return data, choices[0]


def _content(content: Any, data: Any, settings: Settings) -> tuple[str, str]:
    """(text, reasoning) of a message's content: text, nothing, or a list of parts."""
    if content is None:
        return "", ""
    if isinstance(content, str):
        return content, ""
    if not isinstance(content, list):
        raise not_documented(settings, "choices[0].message.content as text", data)
    texts, thoughts = [], []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Mapping):
            kind = part.get("type", "text")
            if kind in ("thinking", "reasoning"):
                thoughts.append(_content(part.get(kind) or part.get("text"), data, settings)[0])
            elif isinstance(found := part.get("refusal" if kind == "refusal" else "text"), str):
                texts.append(found)
    return "".join(texts), "".join(thoughts)


def read_usage(usage: Any) -> Usage:
    """Token counts; what the server does not say is 0."""
    if not isinstance(usage, Mapping):
        return Usage()
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
        cached_tokens=_detail(usage, "prompt_tokens_details", "cached_tokens"),
    )


def _detail(usage: Mapping[str, Any], group: str, name: str) -> int:
    details = usage.get(group)
    return _count(details.get(name)) if isinstance(details, Mapping) else 0


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def not_documented(settings: Settings, expected: str, data: Any) -> BadReply:
    """The error for a reply that lacks what the interface documents."""
    shown = json.dumps(data, ensure_ascii=False)
    return bad_reply(settings.where, f"what the interface documents ({expected})", shown)
