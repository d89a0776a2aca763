"""The Python that task files name with `!function`: imported only from folders that a person trusts by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright.compat.lm_eval.tasks import shim
from evalwright.compat.lm_eval.tasks.files import FunctionRef, Unavailable
from evalwright.compat.lm_eval.tasks.libraries import advice, install_command, missing_without_error
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.core.errors import TaskError, UnknownName

_PACKAGE = "lm_eval.tasks"


class _NotImported(TaskError):
    """A trusted module that raised while it was imported."""


class Functions:
    """Imports what task files name. options: say which folders' files may run; roots: the folders of task files.

    Raises TaskError where a function is not trusted, cannot be imported, or is not there.
    """

    def __init__(self, options: Options, roots: Sequence[Path]) -> None:
        self.is_trusted = options.trusts
        self._roots = tuple(roots)

    def require_trust(self, ref: FunctionRef, task: str) -> None:
        """Raise TaskError where the folder of `ref` is not trusted."""
        if not self.is_trusted(ref.folder):
            raise TaskError(
                f"The task '{task}' runs Python code ({ref}, in '{ref.folder}'). "
                f"Read it, and allow it with --trust '{ref.folder}' or a folder above it."
            )

    def resolve(self, value: Any, task: str) -> Any:
        """The value with every `!function` in it replaced by what it names, or by an Unavailable."""
        if isinstance(value, FunctionRef):
            try:
                return self.load(value, task)
            except _NotImported as error:
                return Unavailable(value, error)
        if isinstance(value, dict):
            return {key: self.resolve(item, task) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item, task) for item in value]
        return value

    def load(self, ref: FunctionRef, task: str) -> Callable[..., Any]:
        """The function or class that `ref` names, for the task of that name."""
        self.require_trust(ref, task)
        module_name, _, name = ref.name.rpartition(".")
        if not module_name:
            raise TaskError(f"The task '{task}' names '{ref}', which has no module: write module.function.")
        module = self._module(module_name, ref, task)
        try:
            found: Callable[..., Any] = getattr(module, name)
        except AttributeError:
            raise UnknownName(
                f"function in '{module.__file__}'", name, [key for key in vars(module) if key[:1] != "_"]
            ) from None
        return found

    def _module(self, name: str, ref: FunctionRef, task: str) -> ModuleType:
        shim.install(self._roots)
        path = (ref.folder / f"{name.strip('.').replace('.', '/')}.py").resolve()
        try:
            if path.exists():
                self.require_trust(FunctionRef(ref.name, path.parent), task)
                module = load_file(path, self._name_of(path))
                if lacking := missing_without_error(path):
                    raise _NotImported(
                        f"The task '{task}' needs {ref}, whose module scores with the library '{lacking}', which is not installed. "
                        f"Install it with: {install_command(lacking)}"
                    )
                return module
            return importlib.import_module(name)
        except TaskError:
            raise
        except (Exception, SystemExit) as error:  # some modules leave the process where a program is missing
            said = " ".join(str(error).split()).removesuffix(".")
            raise _NotImported(
                f"The task '{task}' needs {ref}, and its module cannot be imported: {type(error).__name__}: {said}.{advice(error)}"
            ) from error

    def _name_of(self, path: Path) -> str:
        for root in self._roots:
            if path.is_relative_to(root):
                parts = path.relative_to(root).with_suffix("").parts
                return ".".join((_PACKAGE if root.name == "tasks" else f"lm_eval_tasks_{root.name}", *parts))
        return str(path.with_suffix(""))


def load_file(path: Path, name: str) -> ModuleType:
    """The module of a file under a name, imported once for each state of the file."""
    stamp = path.stat().st_mtime_ns
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__evalwright_stamp__", None) == (str(path), stamp):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TaskError(f"The file '{path}' cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__evalwright_stamp__"] = (str(path), stamp)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
