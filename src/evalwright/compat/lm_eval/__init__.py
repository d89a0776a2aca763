"""What model classes written after lm-evaluation-harness's New Model Guide import.

Change `lm_eval` to `evalwright.compat.lm_eval` in a class's imports and run it as `lm/<name>`.
Modules have the same names as there:

    from evalwright.compat.lm_eval.api.model import LM
    from evalwright.compat.lm_eval.models.huggingface import HFLM

    from evalwright.compat.lm_eval import simple_evaluate

See docs/new-model-guide.md and docs/migrate-lm-eval.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalwright.compat.lm_eval.api.instance import Instance
from evalwright.compat.lm_eval.api.model import LM, CacheHook, TemplateLM
from evalwright.compat.lm_eval.api.registry import register_model
from evalwright.extend import lazy_names

if TYPE_CHECKING:
    from evalwright.compat.lm_eval.evaluator import evaluate, simple_evaluate

__all__ = [
    "LM",
    "CacheHook",
    "Instance",
    "TemplateLM",
    "evaluate",
    "register_model",
    "simple_evaluate",
]

_named, __dir__ = lazy_names(__name__, {"evaluator": "evaluate simple_evaluate"})


def __getattr__(name: str) -> Any:
    """Import a submodule or a lazily loaded name on first use."""
    return (
        import_module(f"{__name__}.{name}")
        if name in ("evaluator", "filters", "models", "tasks", "utils")
        else _named(name)
    )
