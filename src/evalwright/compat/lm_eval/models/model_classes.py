"""Inspects model classes without instantiating them.

A class may load anything from anywhere, so its source does not identify its answers. The
transformers backend loads what its arguments name; those folders and repositories are identified by
content or commit, as for `hf/...`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright import Generate, LogLikelihood, RollingLogLikelihood, UsageError
from evalwright.compat.lm_eval.api import model as interface
from evalwright.compat.lm_eval.api.instance import OutputType
from evalwright.compat.lm_eval.harness.flags import is_size
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.extend import (
    Ability,
    ConfigurationError,
    UnknownName,
    closest_names,
    content_hash,
    open_repository,
)

TRANSFORMERS_CLASSES = (
    "lm_eval.models.huggingface.HFLM",
    "evalwright.compat.lm_eval.models.huggingface.HFLM",
)

_SOURCES = {
    "pretrained": "config.json",
    "tokenizer": "tokenizer_config.json",
    "peft": "adapter_config.json",
    "delta": "config.json",
}
"""Arguments that name a folder or hub repository, and a file that each must have."""

SPEED_ONLY_ARGUMENTS = frozenset(TABLES["idle"])
FORWARDED_ARGUMENTS = TABLES["passed_on"]


def is_transformers(model_class: type) -> bool:
    """Whether a class is the transformers backend itself, theirs or ours, not a subclass of it."""
    return (
        f"{model_class.__module__}.{model_class.__qualname__}" in TRANSFORMERS_CLASSES
    )


def identify_content(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Identify what the transformers backend loads, by content or commit; None if unknown."""
    if arguments.get("trust_remote_code"):
        return None
    revision = arguments.get("revision") or "main"
    try:
        content_by_argument: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in SPEED_ONLY_ARGUMENTS or value is None:
                continue
            if not isinstance(value, str):
                if name in _SOURCES or not isinstance(
                    value, bool | int | float | list | Mapping
                ):
                    return None
            elif (path := Path(value).expanduser()).exists():
                inner = ("subfolder", "gguf_file") if name == "pretrained" else ()
                paths = [
                    path,
                    *(
                        path / str(arguments[file_argument])
                        for file_argument in inner
                        if arguments.get(file_argument)
                    ),
                ]
                content_by_argument[name] = [
                    content_hash(path_to_hash)
                    for path_to_hash in paths
                    if path_to_hash.exists()
                ]
            elif name in _SOURCES:
                content_by_argument[name] = open_repository(
                    value, str(revision), _SOURCES[name]
                ).commit
        return content_by_argument
    except (UsageError, OSError):
        # It is not found this way, or only with a login; the class may still find it.
        return None


def check_sources(arguments: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if a folder, repository or file that the backend needs is missing.

    Nothing is read, and nothing is downloaded.
    """
    for name in ("pretrained", "peft", "delta"):
        source = arguments.get(name)
        if not isinstance(source, str):
            continue
        needed = _SOURCES[name]
        if name == "pretrained":
            subfolder = arguments.get("subfolder") or ""
            needed = str(
                PurePosixPath(str(subfolder), str(arguments.get("gguf_file") or needed))
            )
        folder = Path(source).expanduser()
        if folder.exists() or source.startswith((".", "/", "~")):
            if not folder.is_dir():
                problem = "is a file" if folder.exists() else "does not exist"
                raise ConfigurationError(f"{name}={source}: the folder {problem}.")
            is_there = (folder / needed).is_file()
        else:
            repository = open_repository(
                source, str(arguments.get("revision") or "main"), needed
            )
            is_there = repository.listed is None or needed in repository.listed
        if not is_there:
            raise ConfigurationError(f"{name}={source}: it has no file {needed}.")


INTERFACES = (interface.__name__, "lm_eval.api.model")
"""Modules whose methods are placeholders that a class inherits."""

METHODS: dict[type, tuple[OutputType, Ability]] = {
    LogLikelihood: ("loglikelihood", "log-likelihood"),
    RollingLogLikelihood: ("loglikelihood_rolling", "rolling"),
    Generate: ("generate_until", "generate"),
}
_VARIADIC_KINDS = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def find_abilities(model_class: type, chat: bool | None = None) -> frozenset[Ability]:
    """The abilities of a class: methods that do more than raise NotImplementedError."""
    abilities: set[Ability] = {
        ability
        for method, ability in METHODS.values()
        if _is_implemented(model_class, method)
    }
    if _defining_module(
        model_class, "loglikelihood"
    ) in INTERFACES and not _is_implemented(model_class, "_loglikelihood_tokens"):
        # A TemplateLM scores in the method that its `loglikelihood` calls.
        abilities -= {"log-likelihood"}
    if _is_implemented(model_class, "apply_chat_template") if chat is None else chat:
        abilities.add("chat")
    return frozenset(abilities)


def _is_implemented(model_class: type, name: str) -> bool:
    method = (
        inspect.unwrap(attribute)
        if callable(attribute := getattr(model_class, name, None))
        else None
    )
    if method is None or getattr(method, "__isabstractmethod__", False):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return True
    function = tree.body[0] if tree.body else None
    return not (
        isinstance(function, ast.FunctionDef)
        and all(map(_is_placeholder, function.body))
    )


def _is_placeholder(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, `...`, `pass` or `raise NotImplementedError`."""
    if isinstance(statement, ast.Raise):
        raised = (
            statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        )
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    constant = isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant
    )
    return constant or isinstance(statement, ast.Pass)


def own_method(model_class: type, name: str) -> bool:
    """Whether a class overrides a method of the interface (ours or the package's)."""
    return _defining_module(model_class, name) not in ("", *INTERFACES)


def _defining_module(model_class: type, name: str) -> str:
    """The module of the class that defines a method, "" if none does."""
    return next(
        (base.__module__ for base in model_class.__mro__ if name in base.__dict__), ""
    )


def check_arguments(name: str, model_class: type, arguments: Mapping[str, Any]) -> None:
    """Raise if the constructor does not take an argument, or a required one is missing."""
    if "batch_size" in arguments and not is_size(arguments["batch_size"]):
        size = arguments["batch_size"]
        requirement = "must be a whole number of at least 1, 'auto', or 'auto:N'"
        raise ConfigurationError(f"batch_size={size!r} of '{name}' {requirement}.")
    if own_method(model_class, "create_from_arg_string") or own_method(
        model_class, "create_from_arg_obj"
    ):
        return
    try:
        signature = inspect.signature(model_class)
    except (TypeError, ValueError):
        return
    named = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind not in _VARIADIC_KINDS
    ]
    known_names, open_ended = _accepted_names(model_class)
    for key in arguments:
        if key not in known_names and (
            not open_ended or closest_names(key, known_names, 1)
        ):
            hint = (
                f"Known: {', '.join(known_names)}." if known_names else "It takes none."
            )
            raise UnknownName(f"argument of '{name}'", key, known_names, hint)
    missing = [
        parameter.name
        for parameter in named
        if parameter.default is parameter.empty and parameter.name not in arguments
    ]
    if missing:
        raise ConfigurationError(
            f"The model '{name}' needs the argument '{missing[0]}': -M {missing[0]}=..."
        )


def _accepted_names(model_class: type) -> tuple[list[str], bool]:
    """The named arguments that a class and its bases take, and whether it takes any others."""
    known_names: dict[str, None] = {}
    for base in model_class.__mro__:
        if "__init__" in base.__dict__ and base is not object:
            parameters = list(inspect.signature(base).parameters.values())
            known_names |= dict.fromkeys(
                parameter.name
                for parameter in parameters
                if parameter.kind not in _VARIADIC_KINDS
            )
            if not any(
                parameter.kind is parameter.VAR_KEYWORD for parameter in parameters
            ):
                break
    if any(map(is_transformers, model_class.__mro__)):
        known_names |= dict.fromkeys(FORWARDED_ARGUMENTS)
    if is_transformers(model_class):
        return list(known_names), False
    return list(known_names), any(
        parameter.kind is parameter.VAR_KEYWORD
        for parameter in inspect.signature(model_class).parameters.values()
    )
