"""The wire formats by name: each is the `Wire` of a module, imported when it is first used."""

from __future__ import annotations

from importlib import import_module

from evalwright.core.errors import check_known
from evalwright.models.remote.wire.format import Wire

FORMATS = {
    "anthropic": "anthropic:WIRE",
    "azure-inference": "openai_variants:AZURE_INFERENCE",
    "azure-openai": "openai_variants:AZURE_OPENAI",
    "bedrock": "bedrock:WIRE",
    "cohere": "cohere:WIRE",
    "gemini": "gemini:WIRE",
    "huggingface": "openai_variants:HUGGINGFACE",
    "mistral": "openai_variants:MISTRAL",
    "openai-chat": "openai_text:CHAT",
    "openai-completions": "openai_text:COMPLETIONS",
    "openai-embeddings": "openai_embeddings:WIRE",
    "openai-responses": "openai_responses:WIRE",
    "replicate": "replicate:WIRE",
    "vectara-query": "vectara:WIRE",
    "vertex": "vertex:GEMINI",
    "vertex-anthropic": "vertex:ANTHROPIC",
}


def wire(name: str) -> Wire:
    """Return the format of that name.

    Raises:
        UnknownName: there is no such format.
    """
    check_known("wire format", [name], FORMATS)
    module, _, attribute = FORMATS[name].partition(":")
    wire_format: Wire = getattr(import_module(f"{__name__}.{module}"), attribute)
    return wire_format
