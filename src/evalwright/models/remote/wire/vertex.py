"""The wire formats of Vertex AI: `gemini` and `anthropic` below a project and a location.

The model is in the path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from evalwright.core.requests import Generate
from evalwright.models.remote.wire.anthropic import WIRE as MESSAGES
from evalwright.models.remote.wire.anthropic import messages_payload
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.gemini import WIRE as GENERATE

ANTHROPIC_VERSION = "vertex-2023-10-16"


def _path(publisher: str, method: str) -> Callable[[Settings], str]:
    """Make the function for the path of a model's method.

    A name with a slash ("endpoints/123") already names its collection.
    """

    def path(settings: Settings) -> str:
        name = (
            settings.model
            if "/" in settings.model
            else f"publishers/{publisher}/models/{settings.model}"
        )
        return f"/{quote(name, safe='/@-._~')}:{method}"

    return path


def raw_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the body of a message with the version of the API, without the model's name."""
    body = messages_payload(request, settings)
    del body["model"]
    return {"anthropic_version": ANTHROPIC_VERSION, **body}


GEMINI = replace(
    GENERATE,
    name="vertex",
    path=_path("google", "generateContent"),
    stream_path=_path("google", "streamGenerateContent?alt=sse"),
)
ANTHROPIC = replace(
    MESSAGES,
    name="vertex-anthropic",
    path=_path("anthropic", "rawPredict"),
    model_in_path=True,
    payload=raw_payload,
    stream_path=_path("anthropic", "streamRawPredict"),
)
