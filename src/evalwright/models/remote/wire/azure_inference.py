"""Azure AI model inference: one interface to many models, OpenAI's chat with a dated version in the address.

A prompt that the content filter stops is a 400 there and an answer without text here (`http_faults.PromptFiltered`).
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.openai_chat import WIRE as CHAT

API_VERSION = "2024-05-01-preview"


def path(settings: Settings) -> str:
    """The path with the version, the newest one unless another is named."""
    version = settings.variables.get("api_version", API_VERSION)
    return f"/chat/completions?api-version={quote(version, safe='-.')}"


WIRE = replace(CHAT, name="azure-inference", path=path, pasted="/chat/completions")
