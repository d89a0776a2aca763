"""From a name to a model: `provider/name[@revision]` plus arguments.

Backends come from four places: the table of built-in ones (`built_in.py`), the `@model("provider")` decorator, the entry point
group `evalwright.models`, and the table of remote providers (`models/providers`), whose rows need no code. A backend is a class (or function) called as
`backend(name, revision=..., **arguments)`; the arguments that it takes are its keyword parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.models.base import LocalModel, Model, RemoteModel
from evalwright.models.built_in import BUILT_IN
from evalwright.models.remote import providers as table

_registered: dict[str, Callable[..., Model]] = {}

Backend = TypeVar("Backend", bound=Callable[..., Any])


def model(provider: str) -> Callable[[Backend], Backend]:
    """Register a backend under a provider name. A class without `answer` or `answer_batch` is refused here."""

    def register(backend: Backend) -> Backend:
        if not provider or "/" in provider or "@" in provider:
            raise ConfigurationError(
                f"'{provider}' cannot name a provider: it must be non-empty, without '/' or '@'."
            )
        if inspect.isclass(backend) and not issubclass(backend, (RemoteModel, LocalModel)):
            raise ConfigurationError(
                f"The backend '{provider}' ({backend.__name__}) must derive from RemoteModel (async def answer) or "
                f"LocalModel (def answer_batch)."
            )
        if inspect.isabstract(backend):
            missing = ", ".join(sorted(getattr(backend, "__abstractmethods__", ())))
            raise ConfigurationError(f"The backend '{provider}' does not define: {missing}.")
        _registered[provider] = backend
        return backend

    return register


def providers() -> list[str]:
    """All provider names, sorted."""
    return sorted({*BUILT_IN, *_registered, *(point.name for point in _entry_points()), *table.names()})


def parse_name(name: str) -> tuple[str, str, str | None]:
    """`provider/name[@revision]` as its three parts. A URL or path after the provider may itself hold '/' and '@'."""
    provider, slash, rest = name.partition("/")
    if not slash or not provider or not rest:
        raise ConfigurationError(
            f"'{name}' is not a model name: it must be 'provider/name', for example 'hf/gpt2' or "
            f"'openai/gpt-4o-mini'. Providers: {', '.join(providers())}."
        )
    head, at, revision = rest.rpartition("@")
    if at and head and "/" not in revision and ":" not in revision:
        return provider, head, revision
    return provider, rest, None


def open_model(name: str, arguments: Mapping[str, Any] | None = None) -> Model:
    """Make the model that `name` and `arguments` describe; nothing heavy is loaded yet.

    Raises UnknownName for a provider or argument that does not exist, ConfigurationError for values that do not fit.
    """
    provider, rest, revision = parse_name(name)
    backend = _find(provider)
    given = dict(arguments or {})
    if revision is not None:
        given["revision"] = revision
    _check_arguments(provider, backend, given)
    made = backend(rest, **given)
    made.name = name
    return made


def _find(provider: str) -> Callable[..., Model]:
    if provider in _registered:
        return _registered[provider]
    if provider in BUILT_IN:
        return _import(BUILT_IN[provider])
    for point in _entry_points():
        if point.name == provider:
            loaded: Callable[..., Model] = point.load()
            return loaded
    row = table.find(provider)
    if row is not None:
        if "openai-completions" in row.wires:
            from evalwright.models.remote.openai import OpenAIModel

            return partial(OpenAIModel, row)
        from evalwright.models.remote.api import ApiModel

        return partial(ApiModel, row)
    raise UnknownName("model provider", provider, providers(), f"Known: {', '.join(providers())}.")


def _import(target: str) -> Callable[..., Model]:
    module, _, attribute = target.partition(":")
    found: Callable[..., Model] = getattr(import_module(module), attribute)
    return found


def _entry_points() -> Iterable[Any]:
    return entry_points(group="evalwright.models")


def _check_arguments(provider: str, backend: Callable[..., Model], given: Mapping[str, Any]) -> None:
    parameters = inspect.signature(backend).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = [name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            if name == "revision":
                raise ConfigurationError(
                    f"Models of '{provider}' have no revisions: leave out the part after '@'."
                )
            raise UnknownName(f"argument of '{provider}' models", name, known, f"Known: {', '.join(known)}.")
