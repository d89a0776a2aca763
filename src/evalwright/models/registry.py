"""From a name to a model: `provider/name[@revision]` plus arguments.

Backends come from four places: the table of built-in ones (`built_in.toml`), the
`@model("provider")` decorator, the entry point group `evalwright.models`, and the table of remote
providers (`models/providers`), whose rows need no code. A backend is a class (or function) called
as `backend(name, revision=..., **arguments)`; the arguments that it takes are its keyword
parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, TypeVar, overload

from evalwright.core.errors import ConfigurationError, UnknownName, closest, known_names
from evalwright.core.registry import Registry
from evalwright.core.requests import Generate
from evalwright.core.secrets import MASKED, digested_arguments, remember_within
from evalwright.models.built_in import BUILT_IN
from evalwright.models.functions import FunctionModel, function_model
from evalwright.models.model_interface import (
    LocalModel,
    Model,
    RemoteModel,
    fingerprint_of,
)
from evalwright.models.model_names import not_a_model_name, unknown_provider
from evalwright.models.remote import providers as table
from evalwright.models.replicated import ARGUMENTS as REPLICAS
from evalwright.models.replicated import open_replicated

Backend = TypeVar("Backend", bound=Callable[..., Any])


class _Backends(Registry[Callable[..., Model]]):
    """Backends in code, and the rows of the table of providers."""

    def names(self) -> list[str]:
        return sorted({*super().names(), *table.names()})

    def get(self, name: str) -> Callable[..., Model]:
        row = table.find(name)
        if row is None and name not in self.names():
            raise unknown_provider(name, "", self.names())
        if row is None or name in super().names():
            return super().get(name)
        if row.scoring == "grammar":
            from evalwright.models.remote.llamacpp import LlamaCppModel

            return partial(LlamaCppModel, row)
        if "openai-completions" in row.wires:
            from evalwright.models.remote.openai import OpenAIModel

            return partial(OpenAIModel, row)
        from evalwright.models.remote.api import ApiModel

        return partial(ApiModel, row)


def _check(provider: str, backend: Callable[..., Model]) -> None:
    if "/" in provider or "@" in provider:
        raise ConfigurationError(
            f"'{provider}' cannot be a provider's name: it must be without '/' or '@'."
        )
    if inspect.isclass(backend) and not issubclass(backend, (RemoteModel, LocalModel)):
        raise ConfigurationError(
            f"The backend '{provider}' ({backend.__name__}) must derive from"
            " RemoteModel (async def answer) or LocalModel (def answer_batch)."
        )
    answer = getattr(backend, "answer", None)
    remote = (
        inspect.isclass(backend)
        and issubclass(backend, RemoteModel)
        and inspect.isfunction(answer)
    )
    if remote and not inspect.iscoroutinefunction(answer):
        raise ConfigurationError(
            f"The backend '{provider}' must have `async def answer(self, request)`."
        )
    if inspect.isabstract(backend):
        missing = ", ".join(sorted(getattr(backend, "__abstractmethods__", ())))
        raise ConfigurationError(
            f"The backend '{provider}' does not define: {missing}."
        )


_BACKENDS = _Backends("model", BUILT_IN, _check)


@overload
def model(of: str, /) -> Callable[[Backend], Backend]: ...


@overload
def model(of: Callable[..., Any], /) -> FunctionModel: ...


@overload
def model(
    *,
    name: str = ...,
    fingerprint: str | None = ...,
    batch_size: int | None = ...,
    concurrency: int | None = ...,
) -> Callable[[Callable[..., Any]], FunctionModel]: ...


def model(of: Any = None, /, **settings: Any) -> Any:
    """Turn a function into a model under test, or register a backend.

    Over a function, with or without settings, it makes a model that `evaluate` takes::

        @model(fingerprint="prompt-3")
        def my_model(prompt: str) -> str:
            return prompt.upper()

    With a provider's name, `@model("mine")`, it registers a class derived from RemoteModel or
    LocalModel (or a function that makes one), which is then named "mine/NAME" everywhere.

    Args:
        of: the function, or the provider's name.
        **settings: of a function: `name` (shown on boards), `fingerprint` (names what answers, so
            that runs share stored responses), `batch_size` (the function takes lists of so many
            prompts) and `concurrency` (calls at a time).

    Returns:
        The model, or the decorator.

    Raises:
        ConfigurationError: the function, class or name does not fit; when registering.
    """
    if not isinstance(of, str):
        if inspect.isclass(of):
            raise ConfigurationError(
                "A class is registered under a provider's name:"
                f' @model("{of.__name__.lower()}").'
            )
        return (
            partial(function_model, **settings)
            if of is None
            else function_model(of, **settings)
        )
    if settings:
        raise ConfigurationError(
            "A backend is registered by its name alone: leave out"
            f" {', '.join(settings)}."
        )

    def register(backend: Any) -> Any:
        _BACKENDS.register(of, backend)
        return backend

    return register


def providers() -> list[str]:
    """List all provider names, sorted."""
    return _BACKENDS.names()


def parse_name(name: str) -> tuple[str, str, str | None]:
    """Split `provider/name[@revision]` into its three parts.

    A URL or path after the provider may contain '/' and '@'.
    """
    provider, slash, model_name = name.partition("/")
    if not slash or not provider or not model_name:
        raise not_a_model_name(name, providers())
    head, at, revision = model_name.rpartition("@")
    if at and head and "/" not in revision and ":" not in revision:
        return provider, head, revision
    return provider, model_name, None


def open_model(name: str, arguments: Mapping[str, Any] | None = None) -> Model:
    """Open a model by name. Nothing heavy is loaded yet, and no request is sent.

    Args:
        name: `PROVIDER/NAME[@REVISION]`, such as "openai/gpt-4o" or "hf/gpt2".
        arguments: arguments of the backend, as with `-M` on the command line.

    Returns:
        The model.

    Raises:
        UnknownName: there is no such provider or argument; the message has the closest names.
        ConfigurationError: arguments that do not fit.
    """
    provider, model_name, revision = parse_name(name)
    if provider not in _BACKENDS.names():
        raise unknown_provider(provider, model_name, _BACKENDS.names())
    backend = _BACKENDS.get(provider)
    options = dict(arguments or {})
    _remember_secrets(name, options)
    if any(options.get(key) is not None for key in REPLICAS):
        return open_replicated(
            name, options, open_model, list(_BACKENDS.options(provider))
        )
    for argument in REPLICAS:
        options.pop(argument, None)  # null, as if it were not given
    if revision is not None:
        options["revision"] = revision
    parameters = inspect.signature(backend).parameters
    named = None if "fingerprint" in parameters else options.pop("fingerprint", None)
    if not any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    ):
        _check_arguments(provider, options)
    model_object = backend(model_name, **options)
    model_object.name = name
    if not hasattr(model_object, "abilities"):
        raise ConfigurationError(
            f"The backend '{provider}' must say what it can do: set `self.abilities ="
            ' frozenset({"generate"})` in __init__.'
        )
    if named is not None:
        if not str(named).strip():
            raise ConfigurationError(
                "fingerprint must name what answers, for example -M"
                " fingerprint=weights-of-may."
            )
        if model_object.is_known:
            raise ConfigurationError(
                f"'{model_object.name}' has a fingerprint of its own, made of all that can"
                " change its answers: leave out fingerprint."
            )
        facts = {
            "backend": provider,
            "name": model_name,
            "arguments": digested_arguments(options),
        }
        model_object.fingerprint = fingerprint_of({**facts, "named": str(named)})
    return model_object


def _remember_secrets(name: str, options: Mapping[str, Any]) -> None:
    """Remember the secrets in a name and arguments, so that they are masked in all output.

    Raises:
        ConfigurationError: a secret cannot be read.
    """
    for option, content in {"": name, **options}.items():
        remember_within(content, option)
        in_path = option in ("", "base_url") and f"/{MASKED}" in str(content)
        if MASKED in _flatten(content) or f"//{MASKED}@" in str(content) or in_path:
            subject = f"its argument {option}" if option else "its name"
            raise ConfigurationError(
                f"The model '{name}' comes from a record, in which {subject} has {MASKED}"
                " in place of a secret. Give the secret again, on the command line:"
                " --model, -M or -R."
            )


def _flatten(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    return (
        [leaf for member in value for leaf in _flatten(member)]
        if isinstance(value, list)
        else [value]
    )


_COPIES_HINT = "-M devices=all puts a copy of the model on each device."
_PLACEMENT_HINTS = {
    "parallelize": (
        "-M device_map=auto spreads one copy of the model over all devices; -M"
        " devices=all puts a copy on each."
    ),
    "data_parallel_size": _COPIES_HINT,
    "num_processes": _COPIES_HINT,
    "parallel": _COPIES_HINT,
    "tensor_parallel_size": (
        "-M device_map=auto spreads the layers over all devices; 'vllm-local' models have"
        " tensor parallelism."
    ),
    "max_memory_per_gpu": 'Use -M max_memory=\'{"0": "20GiB"}\' with -M device_map=auto.',
}
"""What models of transformers have in place of arguments of lm-evaluation-harness and others."""


def _check_arguments(provider: str, options: Mapping[str, Any]) -> None:
    allowed = [*_BACKENDS.options(provider), *REPLICAS]
    for name in options:
        if name == "revision" and name not in allowed:
            raise ConfigurationError(
                f"Models of '{provider}' have no revisions: leave out the part after"
                " '@'."
            )
        if name not in allowed:
            refused = getattr(_BACKENDS.get(provider), "refused", ())
            works = [argument for argument in allowed if argument not in refused]
            if name in _PLACEMENT_HINTS and "device_map" in allowed:
                kind = f"argument of '{provider}' models"
                raise UnknownName(kind, name, (), _PLACEMENT_HINTS[name])
            raise _unknown_argument(f"argument of '{provider}' models", name, works)


_NO_SETTINGS = (
    "prompt",
    "draw",
    "length_penalty",
    "early_stopping",
    "generation_arguments",
)
"""Fields of a generation request that are not settings of `answer` in a task."""


def _unknown_argument(kind: str, name: str, allowed: Sequence[str]) -> UnknownName:
    """Make the error for an unknown argument; for one of sampling it names the task's setting."""
    settings = [
        field.name for field in fields(Generate) if field.name not in _NO_SETTINGS
    ]
    nearest = closest(name, [*allowed, *settings], 1)
    if nearest and nearest[0] not in allowed:
        hint = f"Sampling is a setting of the task: -T answer.{nearest[0]}=..."
        return UnknownName(kind, name, (), hint)
    return UnknownName(kind, name, allowed, known_names(name, allowed))
