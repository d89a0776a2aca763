"""Formats that are OpenAI's chat with small differences: Azure's two, Hugging Face's router, Mistral's own.

Azure OpenAI has an address for each deployment and a dated version in it, Azure AI model inference one address for many models.
A prompt that their content filter stops is a 400 (`http_faults.Filtered`).
Hugging Face's router passes on the words of the servers behind it; a model is `org/name`, or `org/name:provider`.
Mistral has names of its own and refuses whatever it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import Overloaded
from evalwright.core.requests import Generate
from evalwright.models.remote.http_faults import error_for, server_message
from evalwright.models.remote.wire.format import Said, Settings, given, merged, sampling, turns
from evalwright.models.remote.wire.openai_text import CHAT, ChatGatherer, chat_payload, chat_said
from evalwright.models.remote.wire.options import OPENAI_CHAT, content, openai_part

INFERENCE_VERSION, AZURE_OPENAI_VERSION = "2024-05-01-preview", "2024-10-21"
"""The newest of the one, the newest that is no preview of the other; another is named by the variable api_version."""

_HF_FINISHES = {"eos_token": "stop", "stop_sequence": "stop"}
_HF_ERRORS = {"validation": 422, "overloaded": 503, "generation": 500, "incomplete_generation": 500}
"""What Hugging Face's own servers call an error, and the status that they send it with."""


def _versioned(path: str, settings: Settings, default: str) -> str:
    version = settings.variables.get("api_version", default)
    return f"{path}/chat/completions?api-version={quote(version, safe='-.')}"


def _deployment(settings: Settings) -> str:
    path = f"/openai/deployments/{quote(settings.model, safe='-._~')}"
    return _versioned(path, settings, AZURE_OPENAI_VERSION)


def azure_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body of a chat completion; which model answers is said by the address."""
    body = chat_payload(request, settings)
    del body["model"]
    return body


def huggingface_said(data: Any, request: Generate, settings: Settings) -> Said:
    """What a chat completion says."""
    _raise_huggingface(data, settings)
    found = chat_said(data, request, settings)
    return replace(found, finish=_HF_FINISHES.get(found.finish, found.finish))


def _raise_huggingface(data: Any, settings: Settings) -> None:
    """Raise the error that a 200 or a chunk carries as text, with a type beside it."""
    if isinstance(data, Mapping) and isinstance(data.get("error"), str):
        status = _HF_ERRORS.get(str(data.get("error_type")), 500)
        raise error_for(settings.where, status, data["error"], key_source=settings.key_source)


class HuggingFaceGatherer(ChatGatherer):
    """The chunks of a streamed completion; an error may stand in place of a chunk."""

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk."""
        _raise_huggingface(data, self.settings)
        return super().add(event, data)


def mistral_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body. A prefill is marked as the prefix of the answer."""
    messages: list[dict[str, Any]] = [
        {"role": turn.role, "content": content(turn, openai_part)} for turn in turns(request.prompt)
    ]
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
    return merged({"model": settings.model, "messages": messages, **given(fields)}, settings.extra_body)


def mistral_said(data: Any, request: Generate, settings: Settings) -> Said:
    """What a chat completion says, whose content may be text or a list of text and thinking chunks."""
    _raise_mistral(data, settings)
    found = chat_said(data, request, settings)
    if found.finish == "error":
        raise Overloaded(f"{settings.where} failed while it answered.")
    last = turns(request.prompt)[-1:]
    if last and last[0].role == "assistant":
        # An answer may repeat the prefix that it was begun with.
        found = replace(found, text=found.text.removeprefix(last[0].text))
    return found


def _raise_mistral(data: Any, settings: Settings) -> None:
    if isinstance(data, Mapping) and data.get("object") == "error":
        words = server_message(data) or "it gave no reason"
        raise error_for(settings.where, 500, words, key_source=settings.key_source)


class MistralGatherer(ChatGatherer):
    """The chunks of a streamed completion; an error may stand in place of a chunk."""

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk."""
        _raise_mistral(data, self.settings)
        return super().add(event, data)


AZURE_INFERENCE = replace(
    CHAT,
    name="azure-inference",
    path=lambda settings: _versioned("", settings, INFERENCE_VERSION),
    options={name: option for name, option in OPENAI_CHAT.items() if name != "top_logprobs"},
)
AZURE_OPENAI = replace(
    CHAT,
    name="azure-openai",
    path=_deployment,
    payload=azure_payload,
    end="(/openai/deployments/[^/]+)?/chat/completions",
)
HUGGINGFACE = replace(
    CHAT, name="huggingface", said=huggingface_said, gather=HuggingFaceGatherer, most_alternatives=5
)
MISTRAL = replace(
    CHAT,
    name="mistral",
    payload=mistral_payload,
    said=mistral_said,
    gather=MistralGatherer,
    stream_payload=lambda body: {**body, "stream": True},
    names_limit=False,
    extensions=frozenset(("min_p", "num_beams", "length_penalty")),
)
