"""The evaluators of HRET by their names, and a place for a user's own: `register_evaluator`,
`get_evaluator`, `BaseEvaluator`.
"""

from __future__ import annotations

from evalwright.compat.hret.evaluation.base import (
    EVALUATION_REGISTRY,
    BaseEvaluator,
    LogProbEvaluator,
    MathMatchEvaluator,
    PartialMatchEvaluator,
    StringMatchEvaluator,
    get_evaluator,
    register_evaluator,
)
from evalwright.compat.hret.evaluation.llm_judge import LLMJudgeEvaluator

__all__ = [
    "EVALUATION_REGISTRY",
    "BaseEvaluator",
    "LLMJudgeEvaluator",
    "LogProbEvaluator",
    "MathMatchEvaluator",
    "PartialMatchEvaluator",
    "StringMatchEvaluator",
    "get_evaluator",
    "register_evaluator",
]
