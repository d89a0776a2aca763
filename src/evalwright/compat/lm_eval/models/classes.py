"""What can be known of a class of lm-evaluation-harness's model interface without making one:
abilities, arguments, and what answers.

A class may load whatever it likes from wherever it likes, so its own source says nothing of what
answers. Its transformers backend loads what its arguments name: these folders and repositories are
named by content or commit, as for `hf/...`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.compat.lm_eval.api import model as interface
from evalwright.compat.lm_eval.api.instance import OutputType
from evalwright.compat.lm_eval.harness.flags import is_size
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.core.errors import ConfigurationError, UnknownName, UsageError, closest
from evalwright.core.requests import (
    Ability,
    Generate,
    LogLikelihood,
    RollingLogLikelihood,
)
from evalwright.models.local.files import content_hash, file_hash
from evalwright.models.local.hf.source import ADAPTER_CONFIG, open_repository

TRANSFORMERS = (
    "lm_eval.models.huggingface.HFLM",
    "evalwright.compat.lm_eval.models.huggingface.HFLM",
)

_SOURCES = {
    "pretrained": "config.json",
    "tokenizer": "tokenizer_config.json",
    "peft": ADAPTER_CONFIG,
    "delta": "config.json",
}
"""Arguments that name a folder or a repository of the hub, and a file that each has."""

IDLE = frozenset(TABLES["idle"])
PASSED_ON = TABLES["passed_on"]


def is_transformers(made: type) -> bool:
    """Whether a class is that backend itself, theirs or ours; one that derives from it may do
    anything else.
    """
    return f"{made.__module__}.{made.__qualname__}" in TRANSFORMERS


def content_of(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the arguments of the transformers backend name, by content or commit; None where that
    cannot be known.
    """
    if arguments.get("trust_remote_code"):
        return None
    revision = arguments.get("revision") or "main"
    try:
        found: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in IDLE or value is None:
                continue
            if not isinstance(value, str):
                if name in _SOURCES or not isinstance(
                    value, bool | int | float | list | Mapping
                ):
                    return None
            elif (path := Path(value).expanduser()).exists():
                inner = ("subfolder", "gguf_file") if name == "pretrained" else ()
                parts = [
                    path,
                    *(
                        path / str(arguments[one])
                        for one in inner
                        if arguments.get(one)
                    ),
                ]
                found[name] = [_hash(part) for part in parts if part.exists()]
            elif name in _SOURCES:
                found[name] = open_repository(
                    value, str(revision), _SOURCES[name]
                ).commit
        return found
    except (UsageError, OSError):
        # It is not found this way, or only with a login; the class may still find it.
        return None


def check_sources(arguments: Mapping[str, Any]) -> None:
    """Raise ConfigurationError where a folder, a repository or a file that the transformers backend
    is to open is not there.

    Nothing is read, and nothing of a repository is fetched.
    """
    for name in ("pretrained", "peft", "delta"):
        source = arguments.get(name)
        if not isinstance(source, str):
            continue
        needed = _SOURCES[name]
        if name == "pretrained":
            inside = arguments.get("subfolder") or ""
            needed = str(
                PurePosixPath(str(inside), str(arguments.get("gguf_file") or needed))
            )
        folder = Path(source).expanduser()
        if folder.exists() or source.startswith((".", "/", "~")):
            if not folder.is_dir():
                what = "is a file" if folder.exists() else "does not exist"
                raise ConfigurationError(f"{name}={source}: the folder {what}.")
            is_there = (folder / needed).is_file()
        else:
            repository = open_repository(
                source, str(arguments.get("revision") or "main"), needed
            )
            is_there = repository.listed is None or needed in repository.listed
        if not is_there:
            raise ConfigurationError(f"{name}={source}: it has no file {needed}.")


def _hash(path: Path) -> str:
    return file_hash(path) if path.is_file() else content_hash(path)


INTERFACES = (interface.__name__, "lm_eval.api.model")
"""Where the methods stand that a class inherits without doing anything for them."""

METHODS: dict[type, tuple[OutputType, Ability]] = {
    LogLikelihood: ("loglikelihood", "log-likelihood"),
    RollingLogLikelihood: ("loglikelihood_rolling", "rolling"),
    Generate: ("generate_until", "generate"),
}
_SEVERAL = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)


def abilities_of(made: type, chat: bool | None = None) -> frozenset[Ability]:
    """What a class can do: the methods that it has and that do more than raise NotImplementedError."""
    able: set[Ability] = {
        ability for method, ability in METHODS.values() if _does_something(made, method)
    }
    if _home(made, "loglikelihood") in INTERFACES and not _does_something(
        made, "_loglikelihood_tokens"
    ):
        # A TemplateLM scores in the method that its `loglikelihood` calls.
        able -= {"log-likelihood"}
    if _does_something(made, "apply_chat_template") if chat is None else chat:
        able.add("chat")
    return frozenset(able)


def _does_something(made: type, name: str) -> bool:
    method = (
        inspect.unwrap(found) if callable(found := getattr(made, name, None)) else None
    )
    if method is None or getattr(method, "__isabstractmethod__", False):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return True
    function = tree.body[0] if tree.body else None
    return not (
        isinstance(function, ast.FunctionDef) and all(map(_says_nothing, function.body))
    )


def _says_nothing(statement: ast.stmt) -> bool:
    """A docstring, `...`, `pass`, or `raise NotImplementedError`."""
    if isinstance(statement, ast.Raise):
        raised = (
            statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        )
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    constant = isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant
    )
    return constant or isinstance(statement, ast.Pass)


def own_method(made: type, name: str) -> bool:
    """Whether a class has a method of its own, not the interface's (ours or the package's)."""
    return _home(made, name) not in ("", *INTERFACES)


def _home(made: type, name: str) -> str:
    """The module of the class that defines a method, "" where none does."""
    return next((base.__module__ for base in made.__mro__ if name in base.__dict__), "")


def check_arguments(name: str, made: type, arguments: Mapping[str, Any]) -> None:
    """Raise where the constructor does not take an argument or lacks one that it must have."""
    if "batch_size" in arguments and not is_size(value := arguments["batch_size"]):
        said = "must be a whole number of at least 1, 'auto', or 'auto:N'"
        raise ConfigurationError(f"batch_size={value!r} of '{name}' {said}.")
    if own_method(made, "create_from_arg_string") or own_method(
        made, "create_from_arg_obj"
    ):
        return
    try:
        signature = inspect.signature(made)
    except (TypeError, ValueError):
        return
    named = [
        item for item in signature.parameters.values() if item.kind not in _SEVERAL
    ]
    known, open_ended = _names(made)
    for key in arguments:
        if key not in known and (not open_ended or closest(key, known, 1)):
            hint = f"Known: {', '.join(known)}." if known else "It takes none."
            raise UnknownName(f"argument of '{name}'", key, known, hint)
    missing = [
        item.name
        for item in named
        if item.default is item.empty and item.name not in arguments
    ]
    if missing:
        raise ConfigurationError(
            f"The model '{name}' needs the argument '{missing[0]}': -M {missing[0]}=..."
        )


def _names(made: type) -> tuple[list[str], bool]:
    """The arguments that a class and those under it take by name, and whether it takes others: what
    it hands on is not known.
    """
    known: dict[str, None] = {}
    for base in made.__mro__:
        if "__init__" in base.__dict__ and base is not object:
            parameters = list(inspect.signature(base).parameters.values())
            known |= dict.fromkeys(
                item.name for item in parameters if item.kind not in _SEVERAL
            )
            if not any(item.kind is item.VAR_KEYWORD for item in parameters):
                break
    if any(map(is_transformers, made.__mro__)):
        known |= dict.fromkeys(PASSED_ON)
    if is_transformers(made):
        return list(known), False
    return list(known), any(
        item.kind is item.VAR_KEYWORD
        for item in inspect.signature(made).parameters.values()
    )
