"""Azure OpenAI: OpenAI's chat at an address of its own for each deployment, with a dated version in it.

A prompt that the content filter stops is a 400 there and an answer without text here (`http_faults.PromptFiltered`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

from evalwright.core.requests import Generate
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.openai_chat import WIRE as CHAT
from evalwright.models.remote.wire.openai_chat import chat_payload

API_VERSION = "2024-10-21"


def path(settings: Settings) -> str:
    """The deployment's path with the version, the newest one that is no preview unless another is named."""
    version = settings.variables.get("api_version", API_VERSION)
    deployment = quote(settings.model, safe="-._~")
    return f"/openai/deployments/{deployment}/chat/completions?api-version={quote(version, safe='-.')}"


def azure_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body of a chat completion; which model answers is said by the address."""
    body = chat_payload(request, settings)
    del body["model"]
    return body


WIRE = replace(
    CHAT,
    name="azure-openai",
    path=path,
    payload=azure_payload,
    pasted="(/openai/deployments/[^/]+)?/chat/completions",
)
