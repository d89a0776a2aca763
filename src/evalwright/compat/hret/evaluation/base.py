"""Evaluators by name: HRET's own, to score samples that have a prediction without a run, and what a
plug-in of a user derives from.
"""

from __future__ import annotations

from typing import Any

from evalwright.compat.hret.methods import ALIASES, METHODS, check_method
from evalwright.compat.hret.published.methods import method_of
from evalwright.compat.hret.registry import Classes
from evalwright.compat.hret.row_samples import Rows
from evalwright.compat.hret.rules import JudgeBatch, current

EVALUATION_REGISTRY = Classes(
    "evaluator",
    "Evaluator '{name}' not found in registry. Available keys: {known}",
    replaced=True,
)
"""The evaluator classes by their names."""


class BaseEvaluator:
    """How answers are scored: `evaluate_predictions(samples)` returns metrics and may write into
    the samples.

    requires_logits, requires_chain_of_thought: said for the reader. has_custom_judge: it asks the
    judge itself.
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

    def evaluate_predictions(self, samples: Rows) -> dict[str, Any]:
        """The metrics of samples that have `prediction`."""
        raise NotImplementedError("Subclasses must implement evaluate_predictions().")

    def evaluate(self, data: Rows, model: Any = None) -> dict[str, Any]:
        """{"metrics", "samples"}: every prediction parsed, then measured.

        A prediction keeps its raw text beside the parsed one, as `original_prediction`. Where
        scoring is published and the model has a judge, the judge's reply to the question takes the
        prediction's place, as in HRET; otherwise a judge never writes an answer.
        """
        has_judge = getattr(model, "judge_model", None) is not None
        judge = model if has_judge and not self.has_custom_judge else None
        rows = current().parsed(
            data, self.parse_prediction, judge, is_custom=self._has_own_parser()
        )
        return {"metrics": self._measured(rows, model), "samples": rows}

    def _has_own_parser(self) -> bool:
        return True

    def _measured(self, rows: Rows, model: Any) -> dict[str, Any]:
        return self.evaluate_predictions(rows)


def get_evaluator(name: str, **kwargs: Any) -> Any:
    """An instance of the evaluator of that name. Raises ValueError for an unknown one."""
    registered_name = name if name in EVALUATION_REGISTRY else ALIASES.get(name, name)
    return EVALUATION_REGISTRY.make(registered_name, **kwargs)


register_evaluator = EVALUATION_REGISTRY.register


class BuiltIn(BaseEvaluator):
    """An evaluator of HRET's own, or a class that a user derives from one.

    Its parameters are those of the evaluation method of its name.
    """

    def __init__(self, **params: Any) -> None:
        check_method(self.kind, params)
        self.params = params
        self.method = method_of(self.kind, params)

    @property
    def kind(self) -> str:
        """HRET's name of the evaluation method, also in a derived class with a name of its own."""
        names = (vars(cls).get("name") for cls in type(self).__mro__)
        return next(str(name) for name in names if name in METHODS)

    @property
    def is_derived(self) -> bool:
        """Whether the class is a user's, whose methods are to be called."""
        return type(self).__module__.rpartition(".")[0] != __name__.rpartition(".")[0]

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are now."""
        return self.params

    def parse_prediction(self, raw_output: Any) -> Any:
        """The reply as HRET compares it."""
        return self.method.parse(raw_output)

    def evaluate_predictions(self, samples: Rows) -> dict[str, Any]:
        """The metrics of samples that have `prediction`, by the scoring that is set; verdicts are
        written into the samples.
        """
        return self._by_rules(samples, None)

    def _by_rules(self, rows: Rows, model: Any) -> dict[str, Any]:
        return current().measure(
            self.kind, self.parameters(), rows, self._judge_batch(model)
        )

    def _judge_batch(self, model: Any) -> JudgeBatch | None:
        return getattr(model, "judge_batch", None)

    def _has_own_parser(self) -> bool:
        return type(self).parse_prediction is not BuiltIn.parse_prediction

    def _measured(self, rows: Rows, model: Any) -> dict[str, Any]:
        if self.is_derived:
            return self.evaluate_predictions(rows)
        return self._by_rules(rows, model)


@EVALUATION_REGISTRY.register_own("string_match")
class StringMatchEvaluator(BuiltIn):
    """The answer is the reference."""


@EVALUATION_REGISTRY.register_own("partial_match")
class PartialMatchEvaluator(BuiltIn):
    """The answer contains the reference."""


@EVALUATION_REGISTRY.register_own("math_match")
class MathMatchEvaluator(BuiltIn):
    """The answer equals the reference in value."""


@EVALUATION_REGISTRY.register_own("log_likelihood")
class LogProbEvaluator(BuiltIn):
    """The most probable option is the reference."""

    requires_logits = True
