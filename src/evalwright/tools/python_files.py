"""The tools of a Python file: its functions with `@tool`. The file is run to find them."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright.core.errors import ConfigurationError, EvalwrightError, check_known
from evalwright.core.private import check_ordinary
from evalwright.core.secrets import remember_environment
from evalwright.tools.function_tool import FunctionTool

MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class PythonFileTools:
    """The tools of a Python file.

    Args:
        tools: its functions with `@tool`, in the order of the file.
        digest: SHA-256 of its content.
    """

    tools: tuple[FunctionTool[..., Any], ...]
    digest: str


def load_tools(path: Path, name: str = "") -> PythonFileTools:
    """Run a Python file and return its tools.

    Args:
        path: the file. Whether it may be run is the caller's to decide.
        name: one function of it; "" for all.

    Raises:
        ConfigurationError: the file cannot be read, fails while loading, or has no tool.
        UnknownName: it has no tool of that name.
    """
    try:
        content = check_ordinary(path, MAX_FILE_BYTES).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The file '{path}' with tools cannot be read: {error.strerror}."
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    remember_environment()  # what it returns or raises may repeat any key that it finds there
    module = _run_file(path, content, digest)
    tools = [
        member for member in vars(module).values() if isinstance(member, FunctionTool)
    ]
    tools = [
        member
        for index, member in enumerate(tools)
        if not any(member is earlier for earlier in tools[:index])
    ]
    if not tools:
        raise ConfigurationError(
            f"The file '{path}' has no tool: write `from evalwright import tool`, and"
            " `@tool` above its functions."
        )
    if name:
        check_known(f"tool in '{path}'", [name], [member.name for member in tools])
        tools = [member for member in tools if member.name == name]
    return PythonFileTools(tuple(tools), digest)


def _run_file(path: Path, content: bytes, digest: str) -> ModuleType:
    """Run a file as a module, once for each content.

    What lies in its folder can be imported by it, after everything that is installed.
    """
    resolved = path.resolve()
    module_name = f"evalwright_tools_{path.stem}_{digest[:12]}"
    loaded = sys.modules.get(module_name)
    if loaded is not None and getattr(loaded, "__file__", "") == str(resolved):
        return loaded
    folder = str(resolved.parent)
    if folder not in sys.path:
        sys.path.append(folder)
    module = ModuleType(module_name)
    module.__file__ = str(resolved)
    sys.modules[module_name] = module
    try:
        exec(compile(content, str(resolved), "exec"), module.__dict__)
    except EvalwrightError:
        sys.modules.pop(module_name, None)
        raise
    except (Exception, SystemExit) as error:
        sys.modules.pop(module_name, None)
        raise ConfigurationError(
            f"The file '{path}' with tools failed while loading:"
            f" {type(error).__name__}: {error}"
        ) from error
    return module
