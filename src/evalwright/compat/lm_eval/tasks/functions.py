"""Imports Python that task files name with `!function`, only from folders that the user trusts.

Task modules need a few helpers of `lm_eval` (a base class of filters, a weighted F1, ...) and each
other; stand-ins replace that package if it is not installed. A missing library is reported with the
extra that installs it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Any

from evalwright.compat.lm_eval.api import metrics
from evalwright.compat.lm_eval.filters import extraction
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks import labels, squad_metrics
from evalwright.compat.lm_eval.tasks.options import Options, trust_advice
from evalwright.compat.lm_eval.tasks.programs import code_metric_in_sandbox
from evalwright.compat.lm_eval.tasks.registered import (
    register_aggregation,
    register_metric,
)
from evalwright.compat.lm_eval.tasks.task_yaml import (
    FunctionRef,
    Unavailable,
    replace_functions,
)
from evalwright.extend import TaskError, UnknownName

EXTRAS: dict[str, list[str]] = TABLES["extras"]
_ELSEWHERE = {"tinyBenchmarks": "git+https://github.com/felipemaiapolo/tinyBenchmarks"}
"""Libraries that are not on PyPI, so in no extra."""
_SILENTLY_MISSING = frozenset(
    ("bert_score", "nltk", "pymorphy3", "rouge_score", "sacrebleu")
)
"""Libraries whose absence task modules ignore on import, only to score zero or fail later."""
_EXTRA_OF = {
    library: extra for extra, libraries in EXTRAS.items() for library in libraries
}
_SPACY_MODEL = re.compile(r"Can't find model '([\w-]+)'")
_PIP = re.compile(r"pip install ['\"]?(\w+)")
_THEIR_EXTRA = re.compile(r"""lm[-_]eval\[["']?([\w-]+)""")


def install_command(library: str) -> str:
    """The command that installs a library."""
    top = library.partition(".")[0]
    extra = _EXTRA_OF.get(top)
    return (
        "pip install"
        f" {quote(f'evalwright[{extra}]' if extra else _ELSEWHERE.get(top, top))}"
    )


def advice(error: BaseException) -> str:
    """Say what to install if an error, or its cause, is a missing or outdated library; else ""."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    for cause in chain:
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            return f" Install it with: {install_command(cause.name)}"
    if model := _SPACY_MODEL.search(str(error)):
        return f" Install it with: python -m spacy download {model[1]}"
    for named in _THEIR_EXTRA.findall(" ".join(map(str, chain))):
        extra = f"lm-eval-{named.replace('_', '-')}"
        return (
            " Install what it needs with: pip install"
            f" 'evalwright[{extra if extra in EXTRAS else 'lm-eval'}]'"
        )
    for name in _PIP.findall(str(error)):
        if name in _EXTRA_OF:
            return f" Install it with: {install_command(name)}"
    return ""


def missing_without_error(path: Path) -> str | None:
    """The missing library that a module ignores on import but needs for scoring, if any."""
    return next(
        (
            name
            for name in imported_by(path)
            if name in _SILENTLY_MISSING and not _is_here(name)
        ),
        None,
    )


def imported_by(path: Path) -> Iterator[str]:
    """The top-level modules that a file imports anywhere."""
    with warnings.catch_warnings():
        # of its escape sequences: Python says it where the file is imported
        warnings.simplefilter("ignore")
        tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # made in this process
        return name in sys.modules


class _Finder(MetaPathFinder):
    """Finds `lm_eval.tasks.<folder>.<file>` in task folders if the package is not installed.

    Also finds modules that transformers had before release 5.
    """

    def __init__(self) -> None:
        self.roots: list[Path] = []

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        if name == "transformers.data.metrics":
            return ModuleSpec(name, None, is_package=True)
        if name == "transformers.data.metrics.squad_metrics":
            return importlib.util.spec_from_file_location(name, squad_metrics.__file__)
        for root in self.roots if name.startswith("lm_eval.tasks.") else ():
            module_path = root.joinpath(*name.split(".")[2:])
            if (file := module_path.with_suffix(".py")).is_file():
                return importlib.util.spec_from_file_location(name, file)
            locations = [str(module_path)]
            if (file := module_path / "__init__.py").is_file():
                return importlib.util.spec_from_file_location(
                    name, file, submodule_search_locations=locations
                )
            if module_path.is_dir():
                spec = ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = locations
                return spec
        return None


_finder = _Finder()


def install(roots: Sequence[Path]) -> None:
    """Make `lm_eval`, and removed parts of transformers, importable for task modules."""
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)
    installed = sys.modules.get("lm_eval")
    if not hasattr(installed, "__evalwright__") and (
        installed or importlib.util.find_spec("lm_eval")
    ):
        return
    if installed is None:
        for name, contents in _modules().items():
            module = ModuleType(name)
            module.__path__ = []
            module.__dict__.update(contents, __evalwright__=True)
            sys.modules[name] = module
            parent, _, last = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], last, module)
    _finder.roots.extend(root for root in roots if root not in _finder.roots)


def _modules() -> dict[str, dict[str, Any]]:
    base = {name: getattr(extraction, name) for name in extraction.__all__}
    return {
        "lm_eval": {},
        "lm_eval.utils": {
            "weighted_f1_score": partial(labels.label_metric, "weighted_f1"),
            "general_detokenize": detokenise,
            "eval_logger": logging.getLogger("lm_eval"),
            "logging": logging,
        },
        "lm_eval.api": {},
        "lm_eval.api.filter": base,
        "lm_eval.api.registry": {
            "register_aggregation": register_aggregation,
            "register_filter": extraction.register_filter,
            "register_metric": register_metric,
        },
        "lm_eval.api.metrics": {
            name: getattr(metrics, name) for name in metrics.__all__
        },
        "lm_eval.api.instance": _absent("Instance"),
        "lm_eval.api.task": _absent("ConfigurableTask", "Task"),
        "lm_eval.api.group": _absent("Group", "ConfigurableGroup"),
        "lm_eval.api.samplers": {},
        "lm_eval.filters": {},
        "lm_eval.filters.extraction": base,
        "lm_eval.tasks": {},
    }


def _absent(*names: str) -> dict[str, type]:
    """Placeholder classes that modules may subclass; creating an object says what is missing."""

    def placeholder(name: str) -> type:
        def refuse(self: Any, *arguments: Any, **keywords: Any) -> None:
            raise TaskError(
                f"This task is a Python class built on lm_eval's {name}: install the"
                f" package to run it: {install_command('lm_eval')}"
            )

        return type(name, (), {"__init__": refuse})

    return {name: placeholder(name) for name in names}


_JOINS = ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"'))


def detokenise(text: str) -> str:
    """Remove the spaces that a tokenised corpus has around punctuation."""
    for separated, joined in _JOINS:
        text = text.replace(separated, joined)
    return re.sub(r"\s(?<= )(?=['.,])", "", text)


_PACKAGE = "lm_eval.tasks"


class _NotImported(TaskError):
    """A trusted module that failed on import."""


class Functions:
    """Imports the functions that task files name.

    options: decide which folders are trusted. roots: the folders of task files. Methods raise
    TaskError if a function is not trusted, cannot be imported, or does not exist.
    """

    def __init__(self, options: Options, roots: Sequence[Path]) -> None:
        self.is_trusted = options.trusts
        self._roots = tuple(roots)

    def require_trust(self, ref: FunctionRef, task: str) -> None:
        """Raise TaskError if the folder of `ref` is not trusted."""
        if not self.is_trusted(ref.folder):
            raise TaskError(
                f"The task '{task}' runs Python code ({ref}, in '{ref.folder}'). Read"
                f" it, and allow it with {trust_advice(ref.folder)} or a folder above it."
            )

    def resolve(self, value: Any, task: str) -> Any:
        """Replace every `!function` in a value by the function, or by an Unavailable."""

        def loaded(ref: FunctionRef) -> Any:
            try:
                return self.load(ref, task)
            except _NotImported as error:
                return Unavailable(ref, error)

        return replace_functions(value, loaded)

    def load(self, ref: FunctionRef, task: str) -> Callable[..., Any]:
        """Import the function or class that `ref` names."""
        self.require_trust(ref, task)
        module_name, _, name = ref.name.rpartition(".")
        if not module_name:
            raise TaskError(
                f"The task '{task}' names '{ref}', which has no module: write"
                " module.function."
            )
        module = self._module(module_name, ref, task)
        try:
            function: Callable[..., Any] = getattr(module, name)
        except AttributeError:
            raise UnknownName(
                f"function in '{module.__file__}'",
                name,
                [key for key in vars(module) if key[:1] != "_"],
            ) from None
        return function

    def _module(self, name: str, ref: FunctionRef, task: str) -> ModuleType:
        install(self._roots)
        path = (ref.folder / f"{name.strip('.').replace('.', '/')}.py").resolve()
        try:
            if path.exists():
                self.require_trust(FunctionRef(ref.name, path.parent), task)
                with self._code_metric(path):
                    module = load_file(path, self._module_name(path))
                if lacking := missing_without_error(path):
                    raise _NotImported(
                        f"The task '{task}' needs {ref}, whose module scores with the"
                        f" library '{lacking}', which is not installed. Install it"
                        f" with: {install_command(lacking)}"
                    )
                return module
            return importlib.import_module(name)
        except TaskError:
            raise
        except (
            Exception,
            SystemExit,
        ) as error:  # some modules leave the process where a program is missing
            message = " ".join(str(error).split()).removesuffix(".")
            raise _NotImported(
                f"The task '{task}' needs {ref}, and its module cannot be imported:"
                f" {type(error).__name__}: {message}.{advice(error)}"
            ) from error

    def _code_metric(self, path: Path) -> AbstractContextManager[None]:
        """While a module that uses `evaluate` is imported: run its code metric in our sandbox."""
        return (
            code_metric_in_sandbox()
            if "evaluate" in imported_by(path)
            else nullcontext()
        )

    def _module_name(self, path: Path) -> str:
        for root in self._roots:
            if path.is_relative_to(root):
                segments = path.relative_to(root).with_suffix("").parts
                return ".".join(
                    (
                        (
                            _PACKAGE
                            if root.name == "tasks"
                            else f"lm_eval_tasks_{root.name}"
                        ),
                        *segments,
                    )
                )
        return str(path.with_suffix(""))


def load_file(path: Path, name: str) -> ModuleType:
    """Import a file as a module of that name, once for each version of the file."""
    stamp = path.stat().st_mtime_ns
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__evalwright_stamp__", None) == (
        str(path),
        stamp,
    ):
        return loaded
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
