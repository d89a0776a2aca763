"""Anthropic's models on Vertex AI: the format of `anthropic`, with the model in the path and the version in the body."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalwright.core.requests import Generate
from evalwright.models.remote.wire.anthropic import WIRE as ANTHROPIC
from evalwright.models.remote.wire.anthropic import messages_payload
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.vertex import path_of

VERSION = "vertex-2023-10-16"


def raw_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body of a message without the model's name."""
    body = messages_payload(request, settings)
    del body["model"]
    return {"anthropic_version": VERSION, **body}


WIRE = replace(
    ANTHROPIC,
    name="vertex-anthropic",
    path=lambda settings: path_of(settings, "anthropic", "rawPredict"),
    payload=raw_payload,
    stream_path=lambda settings: path_of(settings, "anthropic", "streamRawPredict"),
)
