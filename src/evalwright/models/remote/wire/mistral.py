"""Mistral's chat completions: OpenAI's shape with names of its own, and strict, so that nothing unknown may be sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.errors import Overloaded
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.remote.http import Reply
from evalwright.models.remote.http_faults import error_for, server_message
from evalwright.models.remote.wire.format import Settings, Wire, merged, sampling, turns
from evalwright.models.remote.wire.openai_chat import ChatGatherer, read_chat


def mistral_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body. A prefill is marked as the prefix of the answer."""
    messages: list[dict[str, Any]] = [turn.as_dict() for turn in turns(request.prompt)]
    if messages and messages[-1]["role"] == "assistant":
        messages[-1]["prefix"] = True
    told = sampling(request, settings)
    fields = {
        "max_tokens": told.max_tokens,
        "temperature": told.temperature,
        # Greedy decoding with a top_p is refused, and it would change nothing.
        "top_p": None if told.temperature == 0 else told.top_p,
        "stop": list(told.stop) or None,
        "random_seed": told.seed,
    }
    body = {
        "model": settings.model,
        "messages": messages,
        **{name: value for name, value in fields.items() if value is not None},
    }
    return merged(body, settings.extra_body)


def read_mistral(reply: Reply, request: Generate, settings: Settings) -> Response:
    """A Response from a chat completion, whose content may be text or a list of text and thinking chunks."""
    if isinstance(reply.data, Mapping):
        _raise_error(reply.data, settings)
    found = read_chat(reply, request, settings)
    if found.finish_reason == "error":
        raise Overloaded(f"{settings.where} failed while it answered.")
    last = turns(request.prompt)[-1:]
    if last and last[0].role == "assistant":
        # An answer may repeat the prefix that it was begun with.
        found = replace(found, text=found.text.removeprefix(last[0].content))
    return replace(found, finish_reason="length") if found.finish_reason == "model_length" else found


def _raise_error(data: Mapping[str, Any], settings: Settings) -> None:
    if data.get("object") == "error":
        raise error_for(
            settings.where, 500, server_message(data) or "it gave no reason", key_source=settings.key_source
        )


class MistralGatherer(ChatGatherer):
    """The chunks of a streamed completion; an error may stand in place of a chunk."""

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk; `[DONE]` ends the answer."""
        if isinstance(data, Mapping):
            _raise_error(data, self._settings)
        return super().add(event, data)


WIRE = Wire(
    name="mistral",
    path=lambda settings: "/chat/completions",
    payload=mistral_payload,
    read=read_mistral,
    gather=MistralGatherer,
    names_limit=False,
    pasted="/chat/completions",
)
