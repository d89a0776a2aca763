"""promptfoo's providers as models of ours: names by a table, settings by another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright.compat.promptfoo.config_files import (
    SCRIPTS,
    ConfigFolder,
    Notes,
    is_reference,
    read_document,
    suffix_of,
)
from evalwright.compat.promptfoo.variables import is_template

PROVIDERS: Mapping[str, str] = {
    "ai21": "ai21",
    "aimlapi": "aimlapi",
    "alibaba": "qwen",
    "anthropic": "anthropic",
    "azure": "azure-openai",
    "azureopenai": "azure-openai",
    "bedrock": "bedrock",
    "cerebras": "cerebras",
    "cloudflare-ai": "cloudflare",
    "cohere": "cohere",
    "databricks": "databricks",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "github": "github",
    "google": "gemini",
    "groq": "groq",
    "huggingface": "huggingface",
    "hyperbolic": "hyperbolic",
    "mistral": "mistral",
    "nscale": "nscale",
    "ollama": "ollama",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "replicate": "replicate",
    "togetherai": "together",
    "vertex": "vertex",
    "xai": "xai",
}
"""By the first part of a provider's id: its name here."""
_KINDS = (
    "chat",
    "completion",
    "embedding",
    "embeddings",
    "messages",
    "responses",
    "text-generation",
)
"""Second parts of ids that say how a model is asked."""
_ARGUMENTS: Mapping[str, str] = {
    "apiBaseUrl": "base_url",
    "apiKeyEnvar": "api_key_env",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "max_tokens": "max_tokens",
    "num_predict": "max_tokens",
    "reasoning_effort": "reasoning_effort",
    "seed": "seed",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
}
"""Settings of a provider, and the arguments of a model that they are."""
_BODY = ("frequency_penalty", "presence_penalty")
"""Settings that stand in the body of a request."""
_KEY = "apiKey"
_TEXTS = ("api_key_env", "base_url", "reasoning_effort")
_READ = ("config", "id", "label")


@dataclass(frozen=True, slots=True)
class ConvertedModel:
    """A model of ours.

    Attributes:
        model: its name, provider/name.
        arguments: its arguments.
        label: what boards call it; "" where the name is enough.
    """

    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def as_setting(self) -> str | dict[str, Any]:
        """The form a suite file takes."""
        mapping: dict[str, Any] = {"model": self.model}
        if self.arguments:
            mapping["arguments"] = dict(self.arguments)
        if self.label:
            mapping["label"] = self.label
        return self.model if list(mapping) == ["model"] else mapping


def convert_providers(
    providers: Any, folder: ConfigFolder, notes: Notes
) -> list[ConvertedModel]:
    """Convert the providers of a configuration; what cannot be a model is noted.

    Raises:
        ConfigurationError: a file that it names is outside its folder.
    """
    models: list[ConvertedModel] = []
    for provider in _listed(providers, folder, notes):
        model = convert_provider(provider, notes)
        if model is None:
            continue
        if model in models:
            notes.add(f"The provider '{model.model}' is listed twice: one is left out.")
            continue
        models.append(model)
    return models


def _listed(
    providers: Any, folder: ConfigFolder, notes: Notes, depth: int = 0
) -> Iterator[Any]:
    """List the providers, those of files and those written as `id: {settings}` included."""
    entries = providers if isinstance(providers, list) else [providers]
    for entry in entries:
        if is_reference(entry) and suffix_of(entry) in (".json", ".yaml", ".yml"):
            if depth:
                notes.add(
                    f"The provider '{entry}' is left out: it is a file in a file."
                )
                continue
            path = folder.find(entry)
            content = read_document(path, "file of providers")
            yield from _listed(content, folder, notes, depth + 1)
        elif isinstance(entry, Mapping) and "id" not in entry:
            for name, settings in entry.items():
                inner = settings if isinstance(settings, Mapping) else {}
                yield {"id": name, **inner}
        else:
            yield entry


def convert_provider(provider: Any, notes: Notes) -> ConvertedModel | None:
    """Convert one provider, an id or a mapping; None, and a note, if it cannot be a model here."""
    entry = {"id": provider} if isinstance(provider, str) else provider
    name = entry.get("id") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(name, str) or not name:
        notes.add(f"A provider without an id is left out: {provider!r:.80}.")
        return None
    model = _model_of(name, notes)
    if model is None:
        return None
    for key in entry:
        if key not in _READ:
            notes.add(f"'{key}' of the provider '{name}' is left out.")
    arguments = {**model.arguments, **_arguments(name, entry.get("config"), notes)}
    label = entry.get("label")
    return ConvertedModel(
        model.model, arguments, label if isinstance(label, str) else ""
    )


def _model_of(name: str, notes: Notes) -> ConvertedModel | None:
    """Return the model that an id names, without the settings of its provider."""
    if name == "echo":
        return ConvertedModel("scripted/echo")
    if reason := _why_not(name):
        notes.add(f"The provider '{name}' is left out: {reason}.")
        return None
    system, *parts = name.split(":")
    kind = parts[0] if parts[0] in _KINDS else ""
    model = ":".join(parts[1:] if kind else parts)
    if not model:
        notes.add(f"The provider '{name}' is left out: it names no model.")
        return None
    arguments: dict[str, Any] = {}
    if kind == "completion" and system == "openai":
        arguments["interface"] = "completions"
    if kind.startswith("embedding"):
        arguments["interface"] = "embeddings"
    if kind == "responses":
        notes.add(f"'{name}' is asked by the interface for chats, not for responses.")
    return ConvertedModel(f"{PROVIDERS[system]}/{model}", arguments)


def _why_not(name: str) -> str:
    """Return why an id cannot be a model of ours, "" if it can."""
    if is_template(name):
        return "its name has a template"
    if name.startswith(("exec:", "python:", "golang:", "ruby:")):
        return "it is a program, and nothing of a configuration is run"
    if is_reference(name) or suffix_of(name) in SCRIPTS:
        return "it is a program, and nothing of a configuration is run"
    if ":" not in name or name.partition(":")[0] not in PROVIDERS:
        return "there is no such provider here (`evalwright models list` shows all)"
    return ""


def _arguments(name: str, config: Any, notes: Notes) -> dict[str, Any]:
    """Return the arguments of a model that its provider's settings are."""
    arguments: dict[str, Any] = {}
    body: dict[str, Any] = {}
    if config is None:
        return arguments
    if not isinstance(config, Mapping):
        notes.add(
            f"'config' of the provider '{name}' is left out: it is not a mapping."
        )
        return arguments
    for key, setting in config.items():
        ours = _ARGUMENTS.get(key, "")
        kind: Any = str if ours in _TEXTS else (int, float)
        fits = isinstance(setting, kind) and not isinstance(setting, bool)
        if key == _KEY:
            notes.add(
                f"'{key}' of the provider '{name}' is left out: keys come from the"
                " environment, by the provider's usual variable."
            )
        elif (ours or key in _BODY) and fits and not is_template(str(setting)):
            content = float(setting) if isinstance(setting, float) else setting
            (arguments if ours else body)[ours or key] = content
        else:
            notes.add(f"'config.{key}' of the provider '{name}' is left out.")
    if body:
        arguments["extra_body"] = body
    return arguments
