"""The evaluators of HRET by their names, and a place for a user's own: `register_evaluator`, `get_evaluator`, `BaseEvaluator`."""

from __future__ import annotations

from evalwright.compat.hret.evaluation.base import (
    EVALUATION_REGISTRY,
    BaseEvaluator,
    get_evaluator,
    register_evaluator,
)

__all__ = ["EVALUATION_REGISTRY", "BaseEvaluator", "get_evaluator", "register_evaluator"]
