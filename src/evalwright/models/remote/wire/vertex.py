"""Gemini on Vertex AI: the format of `gemini`, below a project and a location."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.gemini import WIRE as GEMINI


def path_of(settings: Settings, publisher: str, method: str) -> str:
    """Where a model's method is; a name with a slash ("endpoints/123") says its collection itself."""
    name = settings.model if "/" in settings.model else f"publishers/{publisher}/models/{settings.model}"
    return f"/{quote(name, safe='/@-._~')}:{method}"


WIRE = replace(
    GEMINI,
    name="vertex",
    path=lambda settings: path_of(settings, "google", "generateContent"),
    stream_path=lambda settings: path_of(settings, "google", "streamGenerateContent") + "?alt=sse",
)
