"""HRET's evaluators as classes, to score samples that have a prediction without a run: published by its arithmetic, corrected by our scorers."""

from __future__ import annotations

from typing import Any

from evalwright.compat.hret import settings
from evalwright.compat.hret.evaluation.base import BaseEvaluator, register_evaluator
from evalwright.compat.hret.published import method_of
from evalwright.compat.hret.scoring import evaluate_rows


class BuiltIn(BaseEvaluator):
    """An evaluator of HRET's own. Its parameters are those of the evaluation method of its name."""

    def __init__(self, **params: Any) -> None:
        self.params = params
        self.method = method_of(self.name, params)

    def parse_prediction(self, raw_output: Any) -> Any:
        """The reply as HRET compares it."""
        return self.method.parse(raw_output)

    def evaluate_predictions(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """The metrics by HRET's arithmetic."""
        return self.method.evaluated(samples)

    def evaluate(self, data: list[dict[str, Any]], model: Any = None) -> dict[str, Any]:
        """{"metrics", "samples"} by the scoring that is set."""
        if settings.scoring() == "published":
            return super().evaluate(data, model)
        judge = getattr(model or getattr(self, "multi_judge_model", None), "judge_batch", None)
        return evaluate_rows(self.name, self.params, data, judge)


@register_evaluator("string_match")
class StringMatchEvaluator(BuiltIn):
    """The answer is the reference."""

    name = "string_match"


@register_evaluator("partial_match")
class PartialMatchEvaluator(BuiltIn):
    """The answer contains the reference."""

    name = "partial_match"


@register_evaluator("math_match")
class MathMatchEvaluator(BuiltIn):
    """The answer equals the reference in value."""

    name = "math_match"


@register_evaluator("log_likelihood")
class LogProbEvaluator(BuiltIn):
    """The most probable option is the reference."""

    name = "log_likelihood"
    requires_logits = True
