"""Formats that differ little from OpenAI's chat: Azure's two, Hugging Face's router, Mistral's.

Azure OpenAI has an address for each deployment with a dated version in it, Azure AI model inference
one address for many models. A prompt that their content filter stops is a 400
(`http_faults.Filtered`). Hugging Face's router passes on the replies of the servers behind it; a
model is `org/name`, or `org/name:provider`. Mistral has field names of its own and refuses whatever
it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from evalwright.core.requests import Generate
from evalwright.models.remote.wire.format import (
    ReplyContent,
    Settings,
    merge_bodies,
    sampling,
    turns,
    without_none,
)
from evalwright.models.remote.wire.openai_text import (
    CHAT,
    chat_messages,
    chat_payload,
    parse_chat,
)
from evalwright.models.remote.wire.options import OPENAI_CHAT, openai_tool_choice
from evalwright.models.remote.wire.tool_turns import CallIds

INFERENCE_VERSION = "2024-05-01-preview"
AZURE_OPENAI_VERSION = "2024-10-21"
"""The API versions: the newest of Azure OpenAI, and the newest of the other that is not a preview.

The variable api_version sets another.
"""


MISTRAL_IDS = CallIds(re.compile("[a-zA-Z0-9]{9}"), "{:05d}{:04d}".format)
"""Mistral refuses ids of calls that are not nine letters and digits."""


def _versioned(path: str, settings: Settings, default: str) -> str:
    version = settings.variables.get("api_version", default)
    return f"{path}/chat/completions?api-version={quote(version, safe='-.')}"


def _deployment(settings: Settings) -> str:
    path = f"/openai/deployments/{quote(settings.model, safe='-._~')}"
    return _versioned(path, settings, AZURE_OPENAI_VERSION)


def azure_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the body of a chat completion, without the model, which the address names."""
    body = chat_payload(request, settings)
    del body["model"]
    return body


def mistral_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body, with a prefill marked as the answer's prefix."""
    messages = chat_messages(request.prompt, settings, MISTRAL_IDS)
    if messages and messages[-1]["role"] == "assistant":
        messages[-1]["prefix"] = True
    chosen = sampling(request, settings)
    fields = {
        "max_tokens": chosen.max_tokens,
        "temperature": chosen.temperature,
        # Greedy decoding with a top_p is refused, and top_p would change nothing.
        "top_p": None if chosen.temperature == 0 else chosen.top_p,
        "stop": list(chosen.stop) or None,
        "random_seed": chosen.seed,
    }
    return merge_bodies(
        {"model": settings.model, "messages": messages, **without_none(fields)},
        settings.extra_body,
    )


def _mistral_tool_choice(tool_choice: str) -> Mapping[str, Any]:
    if tool_choice == "required":
        return {"tool_choice": "any"}
    return openai_tool_choice(tool_choice)


def parse_mistral(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a chat completion, without a repeated prefill."""
    reply_content = parse_chat(data, request, settings)
    last = turns(request.prompt)[-1:]
    begun = last[0].text if last and last[0].role == "assistant" else ""
    return reply_content._replace(text=reply_content.text.removeprefix(begun))


AZURE_INFERENCE = replace(
    CHAT,
    name="azure-inference",
    path=lambda settings: _versioned("", settings, INFERENCE_VERSION),
    options={
        name: option
        for name, option in OPENAI_CHAT.items()
        if name not in ("top_logprobs", "parallel_tool_calls")
    },
)
AZURE_OPENAI = replace(
    CHAT,
    name="azure-openai",
    path=_deployment,
    model_in_path=True,
    payload=azure_payload,
    end="(/openai/deployments/[^/]+)?/chat/completions",
)
HUGGINGFACE = replace(CHAT, name="huggingface", most_alternatives=5)
MISTRAL = replace(
    CHAT,
    name="mistral",
    payload=mistral_payload,
    parse=parse_mistral,
    stream_payload=lambda body: {**body, "stream": True},
    names_limit=False,
    options={**OPENAI_CHAT, "tool_choice": _mistral_tool_choice},
    extensions=frozenset(("min_p", "num_beams", "length_penalty")),
)
