"""What the Python beside task files imports from `lm_eval`, where that package is not installed: small stand-ins.

Task modules need a handful of helpers (a base class of filters, a weighted F1, ...) and each other. Where the package is
installed nothing is put in its place.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright.compat.lm_eval.tasks import filters, labels, squad_metrics
from evalwright.compat.lm_eval.tasks.libraries import install_command
from evalwright.core.errors import TaskError


class _TaskModules(MetaPathFinder):
    """Finds `lm_eval.tasks.<folder>.<file>` in the folders of task files."""

    def __init__(self) -> None:
        self.roots: list[Path] = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith("lm_eval.tasks."):
            return None
        for root in self.roots:
            place = root.joinpath(*name.split(".")[2:])
            if (file := place.with_suffix(".py")).is_file():
                return importlib.util.spec_from_file_location(name, file)
            if (file := place / "__init__.py").is_file():
                return importlib.util.spec_from_file_location(
                    name, file, submodule_search_locations=[str(place)]
                )
            if place.is_dir():
                spec = ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = [str(place)]
                return spec
        return None


class _LeftTransformers(MetaPathFinder):
    """Finds what releases of transformers before 5 had, where nobody else finds it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == "transformers.data.metrics":
            return ModuleSpec(name, None, is_package=True)
        if name == "transformers.data.metrics.squad_metrics":
            return importlib.util.spec_from_file_location(name, squad_metrics.__file__)
        return None


_finder = _TaskModules()
_left = _LeftTransformers()


def install(roots: Sequence[Path]) -> None:
    """Make `lm_eval` importable for task modules under `roots`, unless the package is installed; and what has left transformers."""
    if _left not in sys.meta_path:
        sys.meta_path.append(_left)
    if "lm_eval" in sys.modules and not hasattr(sys.modules["lm_eval"], "__evalwright__"):
        return
    if "lm_eval" not in sys.modules:
        if importlib.util.find_spec("lm_eval") is not None:
            return
        for name, contents in _modules().items():
            module = ModuleType(name)
            module.__path__ = []
            module.__dict__.update(contents, __evalwright__=True)
            sys.modules[name] = module
            parent, _, last = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], last, module)
        sys.meta_path.append(_finder)
    _finder.roots.extend(root for root in roots if root not in _finder.roots)


def _modules() -> dict[str, dict[str, Any]]:
    log = logging.getLogger("lm_eval")
    base = {
        "Filter": filters.Filter,
        "RegexFilter": filters.RegexFilter,
        "MultiChoiceRegexFilter": filters.MultiChoiceRegexFilter,
        "register_filter": filters.register_filter,
    }
    utils = {
        "weighted_f1_score": partial(labels.value, "weighted_f1"),
        "general_detokenize": detokenized,
        "eval_logger": log,
        "logging": logging,
    }
    return {
        "lm_eval": {},
        "lm_eval.utils": utils,
        "lm_eval.api": {},
        "lm_eval.api.filter": base,
        "lm_eval.api.registry": {"register_filter": filters.register_filter},
        "lm_eval.api.metrics": {
            "metric_max_over_ground_truths": best_over_references,
            "mean": lambda values: sum(values) / len(values),
        },
        "lm_eval.api.instance": {"Instance": _absent("Instance")},
        "lm_eval.api.task": {"ConfigurableTask": _absent("ConfigurableTask"), "Task": _absent("Task")},
        "lm_eval.api.group": {"Group": _absent("Group"), "ConfigurableGroup": _absent("ConfigurableGroup")},
        "lm_eval.api.samplers": {},
        "lm_eval.filters": {},
        "lm_eval.filters.extraction": base,
        "lm_eval.tasks": {},
    }


def _absent(name: str) -> type:
    """A class that modules may name and build on, and that says what it lacks when it is made."""

    def refuse(self: Any, *arguments: Any, **more: Any) -> None:
        raise TaskError(
            f"This task is a Python class built on lm_eval's {name}: install the package to run it: {install_command('lm_eval')}"
        )

    return type(name, (), {"__init__": refuse})


_JOINS = ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"'))


def detokenized(text: str) -> str:
    """Text without the spaces that a tokenised corpus has around punctuation."""
    for apart, joined in _JOINS:
        text = text.replace(apart, joined)
    return re.sub(r"\s(?<= )(?=['.,])", "", text)


def best_over_references(score: Callable[[Any, Any], Any], prediction: Any, references: Sequence[Any]) -> Any:
    """The highest score of a prediction over several references."""
    return max(score(prediction, reference) for reference in references)
