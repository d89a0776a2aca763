"""Batch interfaces: many requests handed over at once, answered within a day at a lower price."""

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


def batch_api(name: str, path: str) -> BatchApi:
    """The batch interface that a provider's row names. path: where a request would go alone, below the base URL."""
    made: BatchApi = getattr(import_module(f"{__name__}.{name}"), APIS[name])(path)
    return made
