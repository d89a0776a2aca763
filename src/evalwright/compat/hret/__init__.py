"""The HaeRae Evaluation Toolkit (HRET): its calls, run by this engine.

    from evalwright.compat.hret import Evaluator, PipelineRunner, hret, run_from_config

Names load their module on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evalwright.extend import lazy_names

if TYPE_CHECKING:
    from evalwright.compat.hret import hret
    from evalwright.compat.hret.evaluator import Evaluator, run_from_config
    from evalwright.compat.hret.rules import set_scoring
    from evalwright.compat.hret.runner import PipelineConfig, PipelineRunner
    from evalwright.compat.hret.utils.util import EvaluationResult

_NAMES = {
    "evaluator": "Evaluator run_from_config",
    "rules": "set_scoring",
    "runner": "PipelineConfig PipelineRunner",
    "utils.util": "EvaluationResult",
}

__all__ = [
    "EvaluationResult",
    "Evaluator",
    "PipelineConfig",
    "PipelineRunner",
    "hret",
    "run_from_config",
    "set_scoring",
]

_lazy_attribute, __dir__ = lazy_names(__name__, _NAMES)


def __getattr__(name: str) -> Any:
    return (
        import_module(f"{__name__}.hret") if name == "hret" else _lazy_attribute(name)
    )
