"""Evaluator classes by name, and what a plug-in of a user derives from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalwright.compat.hret import settings
from evalwright.compat.hret.settings import Classes


class _Evaluators(Classes):
    """Published, a second class of one name takes the place of the first."""

    def register(self, name: str) -> Callable[[type[Any]], type[Any]]:
        """As the others'."""
        if settings.scoring() == "published":
            self.pop(name, None)
        return super().register(name)


EVALUATION_REGISTRY = _Evaluators(
    "evaluator", "Evaluator '{name}' not found in registry. Available keys: {known}"
)
"""The evaluator classes by their names."""

ALIASES = {"log_prob": "log_likelihood", "logit_based": "log_likelihood"}
"""Names that HRET's documents use for an evaluator of another name."""


class BaseEvaluator:
    """How answers are scored: `evaluate_predictions(samples)` returns metrics and may write into the samples.

    requires_logits, requires_chain_of_thought: said for the reader. has_custom_judge: it asks the judge itself.
    """

    name: str = "base"
    requires_logits: bool = False
    requires_chain_of_thought: bool = False
    has_custom_judge: bool = False

    def prepare_prompt(self, input_text: str) -> Any:
        """The prompt, for evaluators that change it."""
        return input_text

    def parse_prediction(self, raw_output: Any) -> Any:
        """The reply as it is compared."""
        return raw_output

    def evaluate_predictions(self, samples: list[dict[str, Any]]) -> dict[str, Any]:
        """The metrics of samples that have `prediction`."""
        raise NotImplementedError("Subclasses must implement evaluate_predictions().")

    def evaluate(self, data: list[dict[str, Any]], model: Any = None) -> dict[str, Any]:
        """{"metrics", "samples"}: every prediction parsed, then measured.

        A prediction keeps its raw text beside the parsed one, as `original_prediction`. Where scoring is published and the model has a
        judge, the judge's reply to the question takes the prediction's place, as in HRET; otherwise a judge never writes an answer.
        """
        published = settings.scoring() == "published"
        for sample in data:
            raw = sample.get("prediction", "")
            sample["prediction"] = self.parse_prediction(raw)
            if not published:
                sample.setdefault("original_prediction", raw)
        if published and getattr(model, "judge_model", None) is not None and not self.has_custom_judge:
            data = model.judge_batch(data)
        return {"metrics": self.evaluate_predictions(data), "samples": data}


def get_evaluator(name: str, **kwargs: Any) -> Any:
    """An instance of the evaluator of that name. Raises ValueError for an unknown one."""
    return EVALUATION_REGISTRY.made(
        name if name in EVALUATION_REGISTRY else ALIASES.get(name, name), **kwargs
    )


register_evaluator = EVALUATION_REGISTRY.register
