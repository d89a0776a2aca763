"""Reads lm_eval's YAML, and decides which tasks are refused.

Only safe tags are read. `include` is merged, and `!function module.name` is kept as a reference.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evalwright import EvalwrightError
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.options import trust_advice
from evalwright.compat.lm_eval.tasks.programs import CODE_METRIC, runs_in_sandbox
from evalwright.extend import ConfigurationError, TaskError, parse_yaml, reraise_as


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A reference `!function utils.process_docs` in a file of `folder`."""

    name: str
    folder: Path

    def __str__(self) -> str:
        return f"!function {self.name}"


class Unavailable:
    """A function whose module cannot be imported here, mostly because a library is missing.

    Calling it raises the reason.
    """

    def __init__(self, ref: FunctionRef, reason: EvalwrightError) -> None:
        self.__name__ = ref.name.rpartition(".")[2]
        self.reason = reason

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        raise self.reason


def replace_functions(value: Any, replacement: Callable[[FunctionRef], Any]) -> Any:
    """Replace every `!function` in a value."""
    if isinstance(value, FunctionRef):
        return replacement(value)
    if isinstance(value, dict):
        return {
            key: replace_functions(element, replacement)
            for key, element in value.items()
        }
    return (
        [replace_functions(element, replacement) for element in value]
        if isinstance(value, list)
        else value
    )


def unavailable_in(value: Any) -> list[EvalwrightError]:
    """The reasons why functions in a task's settings cannot be used."""
    if isinstance(value, Unavailable):
        return [value.reason]
    children = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(children, list):
        return []
    return [reason for child in children for reason in unavailable_in(child)]


class Files:
    """Reads task files; a file that several others include is parsed once.

    may_include: whether a file may be included.
    """

    def __init__(self, may_include: Callable[[Path], bool] | None = None) -> None:
        self._may_include = may_include or (lambda path: True)
        self._parsed: dict[Path, dict[str, Any]] = {}

    def read(self, path: Path) -> dict[str, Any]:
        """Read a file with its includes.

        Its own keys win; lists and mappings are replaced, never merged.

        Raises TaskError if a file cannot be read, is not a mapping, or includes itself.
        """
        return self._read(path, ())

    def used(self) -> list[Path]:
        """Every file that was read."""
        return list(self._parsed)

    def _read(self, path: Path, including: tuple[Path, ...]) -> dict[str, Any]:
        if path in including:
            raise TaskError(f"The task file '{path}' includes itself.")
        if path not in self._parsed:
            self._parsed[path] = parse(path)
        settings = self._parsed[path]
        if "include" not in settings:
            return settings
        included = settings["include"]
        merged: dict[str, Any] = {}
        for name in included if isinstance(included, list) else [included]:
            included_path = path.parent / str(name)
            if not self._may_include(included_path.resolve()):
                raise TaskError(
                    f"The task file '{path}' includes '{name}', which is outside the"
                    " folder of task files. Name a folder that holds both with"
                    " --task-root (of `evalwright lm-eval`: --include_path; from"
                    " Python: include_path), or allow it with"
                    f" {trust_advice(included_path.resolve().parent)}."
                )
            included_settings = self._read(included_path, (*including, path))
            merged.update(
                (key, value)
                for key, value in included_settings.items()
                if key != "task_list"
            )
        merged.update(
            (key, value) for key, value in settings.items() if key != "include"
        )
        return merged


def parse(path: Path) -> dict[str, Any]:
    """Parse one file, leaving `include` in it. Raises TaskError, with the line if known."""
    with reraise_as(TaskError, f"The task file '{path}' cannot be read"):
        if not path.is_file():  # a device or a pipe may never end
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        content = path.read_bytes()

    def refer(name: str) -> FunctionRef:
        return FunctionRef(name, path.parent)

    try:
        document = parse_yaml(content, {"!function": refer})
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise TaskError(f"{path}{line}: this YAML cannot be used: {problem}.") from None
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise TaskError(f"{path}: this YAML cannot be used: {error}.") from None
    if not isinstance(document, dict):
        raise TaskError(f"{path}: a task file is a mapping of keys to values.")
    return document


Settings = Mapping[str, Any]
_EVALUATE_MODULES = ("evaluate", "evaluate_modules")
"""Modules of the library `evaluate`: itself, and those that it loads."""


def refusal_reasons(task: str, **grounds: Any) -> list[EvalwrightError]:
    """Explain why a task is refused.

    Grounds: `unsafe`, it would run code written by the model; `multimodal`, it needs images or
    sound; `prompt`, its prompt is defined elsewhere.
    """
    sentences = [
        TABLES["refused"][name].replace("{prompt}", str(value))
        for name, value in grounds.items()
        if value
    ]
    return [ConfigurationError(f"The task '{task}' {text}") for text in sentences]


def refusals(
    task: str, settings: Settings, *, resolved: bool = True
) -> list[EvalwrightError]:
    """Decide whether a task is refused, and why.

    settings: with functions in place if `resolved`. Before that, a task with `unsafe_code` may
    still be one whose programs run in our sandbox; only its functions tell.
    """
    shows = any(
        settings.get(key) is not None for key in ("doc_to_image", "doc_to_audio")
    )
    unsafe = resolved and (
        _scores_code(settings)
        or (bool(settings.get("unsafe_code")) and not is_sandboxed(settings))
    )
    return refusal_reasons(
        task, unsafe=unsafe, multimodal=shows, prompt=settings.get("use_prompt")
    )


def is_sandboxed(settings: Any) -> bool:
    """Whether this task's programs run in our sandbox. settings: with functions in place."""
    return runs_in_sandbox(_functions(settings))


def _functions(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for child in value.values():
            yield from _functions(child)
    elif isinstance(value, list | tuple):
        for child in value:
            yield from _functions(child)
    elif callable(value):
        yield value


def _scores_code(settings: Settings) -> bool:
    entries = settings.get("metric_list")
    names = [
        metric.get("metric") for metric in entries or () if isinstance(metric, Mapping)
    ]
    return CODE_METRIC in names or any(
        has_code_metric(getattr(function, "__globals__", None) or {})
        for function in _functions(settings)
    )


def has_code_metric(module_names: Mapping[str, Any]) -> bool:
    """Whether a module uses the metric of the library `evaluate` that runs code in this process."""
    loaded = [
        value
        for value in list(module_names.values())
        if type(value).__module__.startswith(_EVALUATE_MODULES)
    ]
    return any(getattr(value, "name", None) == CODE_METRIC for value in loaded)
