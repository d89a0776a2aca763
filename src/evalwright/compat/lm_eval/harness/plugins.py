"""Model classes in the user's own files: `--plugin FILE`, and `--model FILE.py:Class`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright import EvalwrightError
from evalwright.compat.lm_eval.api.registry import MODEL_REGISTRY, register_model
from evalwright.compat.lm_eval.tasks.functions import load_file
from evalwright.extend import ConfigurationError, UnknownName


def load_plugin(file: str) -> ModuleType:
    """Run a Python file so that it registers its classes.

    Raises:
        ConfigurationError: the file does not exist, is not Python, or fails.
    """
    path = Path(file).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"The plug-in '{file}' does not exist.")
    if path.suffix != ".py":
        raise ConfigurationError(f"The plug-in '{file}' is not a Python file.")
    try:
        return load_file(path.resolve(), f"evalwright_plugin_{path.stem}")
    except EvalwrightError:
        raise
    except Exception as error:
        raise ConfigurationError(
            f"The plug-in '{file}' failed while loading: {type(error).__name__}:"
            f" {error}.{_import_advice(error)}"
        ) from error


def load_plugins(files: Sequence[str]) -> None:
    """Run several Python files; see `load_plugin`."""
    for file in files:
        load_plugin(file)


def class_in_file(model: str) -> tuple[str, str]:
    """Load the class that `path.py:Class` names, and register it unless the file does.

    Returns:
        The name that it is registered under, and its file.

    Raises:
        ConfigurationError: the file cannot be loaded, or the name is not a class.
        UnknownName: the file has no such class.
    """
    file, _, class_name = model.rpartition(":")
    module = load_plugin(file)
    model_class: Any = vars(module).get(class_name)
    if model_class is None:
        classes = [
            name for name, value in vars(module).items() if inspect.isclass(value)
        ]
        raise UnknownName(f"class in '{file}'", class_name, classes)
    registered = [
        name
        for name, registered_class in MODEL_REGISTRY.items()
        if registered_class is model_class
    ]
    if registered:
        return registered[0], file
    register_model(class_name)(model_class)
    return class_name, file


def is_registered_with_package(model: str) -> bool:
    """Whether a file registered the name with the installed lm_eval instead of our registry."""
    registry: Any = getattr(
        sys.modules.get("lm_eval.api.registry"), "model_registry", {}
    )
    return model in registry


def _import_advice(error: Exception) -> str:
    if (
        isinstance(error, ModuleNotFoundError)
        and str(error.name).partition(".")[0] == "lm_eval"
    ):
        return (
            " In its imports write evalwright.compat.lm_eval in place of lm_eval"
            " (docs/new-model-guide.md), or install the package: pip install"
            " 'lm_eval==0.4.13'"
        )
    return ""
