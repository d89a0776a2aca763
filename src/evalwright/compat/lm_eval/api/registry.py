"""Model classes by name: registered ones, and this package's under lm_eval's names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pkgutil import resolve_name
from typing import TypeVar

from evalwright.compat.lm_eval.tasks.filters import register_filter
from evalwright.compat.lm_eval.tasks.registered import (
    register_aggregation,
    register_metric,
)
from evalwright.extend import ConfigurationError, UnknownName

__all__ = [
    "BUILT_IN",
    "METHODS",
    "MODEL_REGISTRY",
    "get_model",
    "register_aggregation",
    "register_filter",
    "register_metric",
    "register_model",
]

METHODS = ("loglikelihood", "loglikelihood_rolling", "generate_until")
"""The methods of a model class; it has those that it supports."""

Class = TypeVar("Class", bound=type)

MODEL_REGISTRY: dict[str, type] = {}
"""Registered model classes by name."""

_MODELS = __name__.rpartition(".api.")[0] + ".models."
BUILT_IN = {
    "hf": "huggingface:HFLM",
    "hf-auto": "huggingface:HFLM",
    "huggingface": "huggingface:HFLM",
    "local-completions": "openai_completions:LocalCompletionsAPI",
    "local-chat-completions": "openai_completions:LocalChatCompletion",
    "openai-completions": "openai_completions:OpenAICompletionsAPI",
    "openai-chat-completions": "openai_completions:OpenAIChatCompletion",
}
"""The classes of this package that others derive from, as module:class."""


def register_model(*names: str) -> Callable[[Class], Class]:
    """Register a model class under one or more names, to be run as `lm/<name>`.

    Raises ConfigurationError if it is not a class, has none of the three methods, or the name is
    taken.
    """

    def register(model_class: Class) -> Class:
        if not inspect.isclass(model_class):
            raise ConfigurationError(
                f"`register_model` registers a class, not {type(model_class).__name__}"
                f" ({', '.join(names)})."
            )
        if not any(callable(getattr(model_class, method, None)) for method in METHODS):
            raise ConfigurationError(
                f"The model class {model_class.__name__} has none of the methods"
                f" {', '.join(METHODS)}."
            )
        qualified_name = model_class.__module__, model_class.__qualname__
        for name in names or (model_class.__name__,):
            if not name or "@" in name:
                raise ConfigurationError(
                    f"'{name}' cannot be a model's name: it must be non-empty and"
                    " without '@'."
                )
            registered = MODEL_REGISTRY.get(name)
            if (
                registered is not None
                and (registered.__module__, registered.__qualname__) != qualified_name
            ):
                raise ConfigurationError(
                    f"The model name '{name}' is already that of the class"
                    f" {registered.__qualname__}."
                )
            MODEL_REGISTRY[name] = model_class
        return model_class

    return register


def get_model(name: str) -> type:
    """Return the class of a name; registered classes come first. Raises UnknownName."""
    if name in MODEL_REGISTRY:
        return MODEL_REGISTRY[name]
    if name not in BUILT_IN:
        raise UnknownName("model class", name, sorted({*MODEL_REGISTRY, *BUILT_IN}))
    model_class: type = resolve_name(_MODELS + BUILT_IN[name])
    return model_class
