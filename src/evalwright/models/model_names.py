"""Suggests what a wrong model name may mean: `gpt-4o` is `openai/gpt-4o`.

Used only for errors, so it may read the tables of prices and examples.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from evalwright.core.errors import ConfigurationError, UnknownName, closest
from evalwright.models.built_in import EXAMPLES
from evalwright.models.remote import prices
from evalwright.models.remote import providers as table

WELL_KNOWN = ("openai", "anthropic", "gemini", "hf", "ollama")
"""Providers that a message names in place of all."""

_MODEL_MAKERS = (
    "openai",
    "anthropic",
    "gemini",
    "mistral",
    "deepseek",
    "xai",
    "cohere",
    "groq",
)
"""Providers that serve models under their bare names, the makers of models first."""

_OTHER_SEPARATOR = re.compile(r"(?P<provider>[\w-]+)(?::/*|\s+|\\)(?P<model>\S+)")
_PYTHON_FILE = re.compile(r"[^:]+\.py(?::[\w.]*)?")
_BUILT_IN_MODELS = {"small": "demo/small", "large": "demo/large"}
_ALL_LISTED = "`evalwright models list` shows all {count}"


def not_a_model_name(name: str, providers: Collection[str]) -> ConfigurationError:
    """Make the error for a name without a provider, or with only a provider."""
    provider = name.partition("/")[0]
    if provider in providers:
        row = table.find(provider)
        example = row.example if row else ""
        if provider in EXAMPLES:
            example = EXAMPLES[provider][0]
        return ConfigurationError(
            f"'{name}' names no model after the provider: it must be 'provider/name',"
            f" for example '{example or f'{provider}/NAME'}'."
        )
    suggestion = suggest_model(name, providers)
    if suggestion:
        hint = f" Did you mean '{suggestion}'?"
    else:
        hint = f" For example 'hf/gpt2' or 'openai/gpt-4o-mini'. {_list_providers(providers)}"
    return ConfigurationError(
        f"'{name}' is not a model name: it must be 'provider/name'.{hint}"
    )


def unknown_provider(
    provider: str, model: str, providers: Collection[str]
) -> UnknownName:
    """Make the error for `provider/model` with an unknown provider; `model` may be ""."""
    if model and (function := _suggest_function(f"{provider}/{model}")):
        hint = f"A function in a Python file is named '{function}'."
        return UnknownName("model provider", provider, (), hint)
    near = closest(provider, providers)
    hint = (
        f"{_ALL_LISTED.format(count=len(providers))}."
        if near
        else _list_providers(providers)
    )
    is_known = any(prices.price_of(candidate, model) is not None for candidate in near)
    if model and not is_known:
        hint += (
            " A model of the Hugging Face Hub, run on this machine, is"
            f" 'hf/{provider}/{model}'."
        )
    return UnknownName("model provider", provider, providers, hint)


def suggest_model(name: str, providers: Collection[str]) -> str:
    """Return the full name that a bare one most likely stands for, "" if none is likely."""
    if function := _suggest_function(name):
        return function
    if name.lower() in _BUILT_IN_MODELS:
        return _BUILT_IN_MODELS[name.lower()]
    match = _OTHER_SEPARATOR.fullmatch(name)
    if match and match["provider"].lower() in providers:
        return f"{match['provider'].lower()}/{match['model']}"
    for provider in _priced(providers):
        if prices.price_of(provider, name) is not None:
            return f"{provider}/{name}"
    for provider in _MODEL_MAKERS:
        if closest(name, prices.names_of(provider), 1):
            return f"{provider}/{closest(name, prices.names_of(provider), 1)[0]}"
    return ""


def _suggest_function(name: str) -> str:
    """Return the full name of a function for `FILE.py:FUNCTION` or `FILE.py`; "" for others."""
    if not _PYTHON_FILE.fullmatch(name):
        return ""
    file, _, function = name.partition(":")
    return f"python/{file}:{function or 'FUNCTION'}"


def _priced(providers: Collection[str]) -> Iterator[str]:
    yield from (maker for maker in _MODEL_MAKERS if maker in providers)
    yield from sorted(set(providers) - set(_MODEL_MAKERS))


def _list_providers(providers: Collection[str]) -> str:
    return (
        f"Providers are {', '.join(WELL_KNOWN)} and others:"
        f" {_ALL_LISTED.format(count=len(providers))}."
    )
