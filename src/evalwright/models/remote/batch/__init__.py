"""Batch jobs: many requests submitted at once, answered within a day at a lower price."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalwright.models.remote.batch.interface import BatchApi

APIS = {
    "anthropic": "AnthropicBatches",
    "gemini": "GeminiBatches",
    "openai": "OpenAIBatches",
}


def batch_api(name: str) -> type[BatchApi]:
    """Return the batch interface that a provider's row names."""
    api_class: type[BatchApi] = getattr(import_module(f"{__name__}.{name}"), APIS[name])
    return api_class
