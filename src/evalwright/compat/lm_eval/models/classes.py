"""What can be known of a class of lm-evaluation-harness's model interface without making one: abilities, source, arguments."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
import uuid
from collections.abc import Mapping
from typing import Any

from evalwright.compat.lm_eval.models import interface as lm_interface
from evalwright.compat.lm_eval.models.interface import RequestType
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.requests import Ability, Generate, LogLikelihood, RollingLogLikelihood

INTERFACES = (lm_interface.__name__, "lm_eval.api.model")
"""Where the methods stand that a class inherits without doing anything for them."""

METHODS: dict[type, tuple[RequestType, Ability]] = {
    LogLikelihood: ("loglikelihood", "log-likelihood"),
    RollingLogLikelihood: ("loglikelihood_rolling", "rolling"),
    Generate: ("generate_until", "generate"),
}
_SECRET = ("key", "token", "secret", "password", "auth")
_NOT_SECRET = ("max_", "token_id", "tokenizer", "_toks", "tokens")


def abilities_of(made: type, chat: bool | None = None) -> frozenset[Ability]:
    """What a class can do: the methods that it has and that do more than raise NotImplementedError."""
    able: set[Ability] = {ability for method, ability in METHODS.values() if _does_something(made, method)}
    if _home(made, "loglikelihood") in INTERFACES and not _does_something(made, "_loglikelihood_tokens"):
        # A TemplateLM scores in the method that its `loglikelihood` calls.
        able -= {"log-likelihood"}
    if _does_something(made, "apply_chat_template") if chat is None else chat:
        able.add("chat")
    return frozenset(able)


def source_of(made: type) -> str:
    """A hash of the files that define a class and its bases, up to the interface; one of its own where there is no file."""
    digest = hashlib.blake2b(f"{made.__module__}.{made.__qualname__}".encode(), digest_size=16)
    for base in made.__mro__:
        if base in (object, lm_interface.LM, lm_interface.TemplateLM) or base.__module__ in (
            "abc",
            "builtins",
        ):
            continue
        try:
            digest.update(inspect.getsource(sys.modules[base.__module__]).encode())
        except (KeyError, OSError, TypeError):
            # What it would answer cannot be known, so nothing is shared.
            return uuid.uuid4().hex
    return digest.hexdigest()


def _does_something(made: type, name: str) -> bool:
    method = inspect.unwrap(found) if callable(found := getattr(made, name, None)) else None
    if method is None or getattr(method, "__isabstractmethod__", False):
        return False
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, TypeError, SyntaxError):
        return True
    function = tree.body[0] if tree.body else None
    if not isinstance(function, ast.FunctionDef):
        return True
    return not all(_says_nothing(statement) for statement in function.body)


def _says_nothing(statement: ast.stmt) -> bool:
    """A docstring, `...`, `pass`, or `raise NotImplementedError`."""
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    return False


def own_method(made: type, name: str) -> bool:
    """Whether a class has a method of its own, not the interface's (ours or the package's)."""
    return _home(made, name) not in ("", *INTERFACES)


def _home(made: type, name: str) -> str:
    """The module of the class that defines a method, "" where none does."""
    return next((base.__module__ for base in made.__mro__ if name in base.__dict__), "")


def check_arguments(name: str, made: type, arguments: Mapping[str, Any]) -> None:
    """Raise where the constructor does not take an argument or lacks one that it must have."""
    if own_method(made, "create_from_arg_string") or own_method(made, "create_from_arg_obj"):
        return
    try:
        signature = inspect.signature(made)
    except (TypeError, ValueError):
        return
    parameters = signature.parameters.values()
    named = [item for item in parameters if item.kind not in (item.VAR_KEYWORD, item.VAR_POSITIONAL)]
    known = [item.name for item in named]
    unknown = [key for key in arguments if key not in known]
    if unknown and not any(item.kind is item.VAR_KEYWORD for item in parameters):
        hint = f"Known: {', '.join(known)}." if known else "It takes none."
        raise UnknownName(f"argument of '{name}'", unknown[0], known, hint)
    missing = [item.name for item in named if item.default is item.empty and item.name not in arguments]
    if missing:
        raise ConfigurationError(f"The model '{name}' needs the argument '{missing[0]}': -M {missing[0]}=...")


def is_secret(key: str) -> bool:
    """Whether an argument looks like a key, which is neither shown nor part of a fingerprint."""
    low = key.lower()
    return any(word in low for word in _SECRET) and not any(word in low for word in _NOT_SECRET)
