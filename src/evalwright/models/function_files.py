"""A function in a Python file as a model: `python/FILE.py:FUNCTION`.

    evalwright run questions.csv --model python/support_bot.py:answer

The file is run when the model is opened, as `python FILE.py` would run it, so a suite file that
somebody else wrote needs the user's permission to name one (`evaluation/origins.py`).

The fingerprint is the content of the file with the function's name. What the file imports is not in
it, nor what the function asks elsewhere: whoever changes those names the state with `-M
fingerprint=NAME`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright.core.errors import ConfigurationError, EvalwrightError, UnknownName
from evalwright.models.functions import FunctionModel, function_model
from evalwright.models.model_interface import fingerprint_of

PROVIDER = "python"
DIGEST_ATTRIBUTE = "__evalwright_digest__"
"""Where a loaded module says of which content it is."""


def python_function(
    name: str,
    *,
    fingerprint: str | None = None,
    batch_size: int | None = None,
    concurrency: int | None = None,
) -> FunctionModel:
    """Open `python/FILE.py:FUNCTION`.

    Args:
        name: the file, relative to the working folder, and the function in it.
        fingerprint: names what answers, in place of the file's content.
        batch_size: prompts in one call, for a function that takes a list.
        concurrency: concurrent calls: in threads for a plain function (default 1), on the event
            loop for an async one (default 16).

    Raises:
        ConfigurationError: there is no such file, it fails while loading, or what it has under this
            name is no function of a prompt.
        UnknownName: the file has no such function.
    """
    for argument, number in (("batch_size", batch_size), ("concurrency", concurrency)):
        if number is not None and type(number) is not int:
            raise ConfigurationError(
                f"The argument {argument} must be a whole number above 0, not {number!r}."
            )
    path, function_name = _split_name(name)
    content = _read_file(path)
    module = _load_module(path, content)
    function = _find_function(module, path, function_name)
    options: dict[str, Any] = {}
    if isinstance(function, FunctionModel):
        options = dict(function.options)
    arguments = {
        "fingerprint": None if fingerprint is None else str(fingerprint),
        "batch_size": batch_size,
        "concurrency": concurrency,
    }
    options |= {
        key: setting for key, setting in arguments.items() if setting is not None
    }
    options["name"] = function_name
    model = function_model(function, **options)
    model.naming = "-M fingerprint=NAME"
    if options.get("fingerprint") is None:
        digest = hashlib.sha256(content).hexdigest()
        model.fingerprint = fingerprint_of({"file": digest, "function": function_name})
    return model


def function_file(name: str) -> Path | None:
    """The file that a model's full name leads to Python in; None for any other model."""
    provider, _, inner_name = name.partition("/")
    if provider != PROVIDER:
        return None
    file, colon, function_name = inner_name.rpartition(":")
    return Path(file if colon else function_name)


def _split_name(name: str) -> tuple[Path, str]:
    file, colon, function_name = name.rpartition(":")
    if colon and file.endswith(".py") and function_name:
        return Path(file), function_name
    path = Path(name.rstrip(":"))
    example = "answer"
    if path.suffix == ".py" and path.is_file():
        example = next(iter(_functions_in(_read_file(path))), example)
    elif path.suffix != ".py":
        path = Path("my_file.py")
    raise ConfigurationError(
        f"'{PROVIDER}/{name}' names no function: it must be a Python file and a function"
        f" in it, for example '{PROVIDER}/{path.as_posix()}:{example}'."
    )


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The file '{path}' of the model cannot be read: {error.strerror}. It is"
            f" looked for in the working folder, '{Path.cwd()}'."
        ) from None


def _functions_in(content: bytes) -> list[str]:
    """The names of the public functions that a file defines, without running it."""
    try:
        statements = ast.parse(content).body
    except (SyntaxError, ValueError):
        return []
    return [
        statement.name
        for statement in statements
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        and not statement.name.startswith("_")
    ]


def _load_module(path: Path, content: bytes) -> ModuleType:
    """Run the file, once for each content.

    What lies in the file's folder can be imported by it, after everything that is installed.
    """
    resolved = path.resolve()
    digest = hashlib.sha256(content).hexdigest()
    plugin = sys.modules.get(f"evalwright_plugin_{path.stem}")
    if plugin is not None and _is_loaded_from(plugin, resolved):
        return plugin  # --plugin has run it already, with what it registers
    module_name = f"evalwright_model_{path.stem}"
    loaded = sys.modules.get(module_name)
    if (
        loaded is not None
        and _is_loaded_from(loaded, resolved)
        and getattr(loaded, DIGEST_ATTRIBUTE, "") == digest
    ):
        return loaded
    folder = str(resolved.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(module_name, resolved)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    setattr(module, DIGEST_ATTRIBUTE, digest)
    sys.modules[module_name] = module
    try:
        # What was hashed is what is run: no compiled copy, and no second reading.
        exec(compile(content, str(resolved), "exec"), module.__dict__)
    except EvalwrightError:
        sys.modules.pop(module_name, None)
        raise
    except (Exception, SystemExit) as error:
        sys.modules.pop(module_name, None)
        raise ConfigurationError(
            f"The file '{path}' of the model failed while loading:"
            f" {type(error).__name__}: {error}"
        ) from error
    return module


def _is_loaded_from(module: ModuleType, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve() == path


def _find_function(module: ModuleType, path: Path, function_name: str) -> Any:
    """Find a function, or a method of an object, by its dotted name."""
    function: Any = module
    for part in function_name.split("."):
        try:
            function = getattr(function, part)
        except AttributeError:
            raise UnknownName(
                f"function in '{path}'", function_name, _callables_of(module)
            ) from None
    return function


def _callables_of(module: ModuleType) -> Sequence[str]:
    return [
        name
        for name, member in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(member, FunctionModel)
            or (
                callable(member)
                and not isinstance(member, type)
                and getattr(member, "__module__", "") == module.__name__
            )
        )
    ]
