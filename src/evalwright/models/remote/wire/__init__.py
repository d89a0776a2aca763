"""The wire formats by name. Each is one module with a `WIRE`, imported when it is first used."""

from __future__ import annotations

from importlib import import_module

from evalwright.core.errors import UnknownName
from evalwright.models.remote.wire.format import Wire

FORMATS = {
    "anthropic": "anthropic",
    "azure-inference": "azure_inference",
    "azure-openai": "azure_openai",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "gemini": "gemini",
    "huggingface": "huggingface",
    "mistral": "mistral",
    "openai-chat": "openai_chat",
    "openai-completions": "openai_completions",
    "openai-embeddings": "openai_embeddings",
    "openai-responses": "openai_responses",
    "replicate": "replicate",
    "vertex": "vertex",
    "vertex-anthropic": "vertex_anthropic",
}


def wire(name: str) -> Wire:
    """The format of that name. Raises UnknownName."""
    if name not in FORMATS:
        raise UnknownName("wire format", name, FORMATS, f"Known: {', '.join(FORMATS)}.")
    found: Wire = import_module(f"{__name__}.{FORMATS[name]}").WIRE
    return found
