"""The evaluator `llm_judge` of HRET and the parsers of its judges' replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evalwright.compat.hret import judge_types
from evalwright.compat.hret.evaluation.base import EVALUATION_REGISTRY, BuiltIn
from evalwright.compat.hret.rules import JudgeBatch
from evalwright.compat.hret.utils.prompt_template import JUDGE_PROMPTS, JudgeType


class ResponseParser:
    """What reads a judge's reply: a mapping with `score`, `winner` or `correct`.

    Raises ValueError where it finds none.
    """

    read: Callable[[str], dict[str, Any]]

    def parse(self, response: str, model_name: str | None = None) -> dict[str, Any]:
        """What the reply says."""
        return {**type(self).read(response), "model_name": model_name or "unknown"}

    def __call__(self, response: str) -> dict[str, Any]:
        """As a parser of `judge_parsers`."""
        return self.parse(response)


class RubricScoreParser(ResponseParser):
    """`[[score: 3]]`."""

    read = staticmethod(judge_types.read_rubric)


class K2EvalResponseParser(ResponseParser):
    """`Score: 3.5`."""

    read = staticmethod(judge_types.read_k2)


class GoldComparisonParser(ResponseParser):
    """`[[true]]`, or `[[false]]` with a step."""

    read = staticmethod(judge_types.read_gold)


class PairwiseComparisonParser(ResponseParser):
    """`[[A]]` or `[[B]]`, and the model that it stands for."""

    def parse(
        self, response: str, model_a: str | None = None, model_b: str | None = None
    ) -> dict[str, Any]:
        """The winner."""
        winner = judge_types.read_winner(response)
        return {
            **winner,
            "model_name": (model_a if winner["winner"] == "A" else model_b)
            or "unknown",
        }


class ResponseComparisonParser(ResponseParser):
    """`[[A]]` or `[[B]]`."""

    def parse(self, response: str, model_name: str | None = None) -> dict[str, Any]:
        """The winner."""
        return judge_types.read_winner(
            response, "No valid verdict [[A]] or [[B]] found"
        )


_PARSERS: Mapping[JudgeType, ResponseParser] = {
    JudgeType.RUBRIC_AND_RESPONSE: RubricScoreParser(),
    JudgeType.RUBRIC_RESPONSE_AND_GOLD: GoldComparisonParser(),
    JudgeType.RESPONSE_COMPARISON: PairwiseComparisonParser(),
    JudgeType.K2_EVAL: K2EvalResponseParser(),
}


@EVALUATION_REGISTRY.register_own("llm_judge")
class LLMJudgeEvaluator(BuiltIn):
    """Asks the judge of `model`. prompt_templates, parsers: of the types of judgement."""

    has_custom_judge = True

    def __init__(
        self,
        model: Any = None,
        default_judge_type: str | JudgeType = judge_types.RUBRIC,
        **kwargs: Any,
    ) -> None:
        super().__init__(default_judge_type=default_judge_type, **kwargs)
        self.multi_judge_model = model
        self.default_judge_type = default_judge_type
        self.prompt_templates = dict(JUDGE_PROMPTS)
        self.parsers = dict(_PARSERS)

    def parameters(self) -> dict[str, Any]:
        """The parameters, with the templates and parsers that somebody has put in the place of
        HRET's.
        """
        parameters = dict(self.params)
        for name, defaults, configured in (
            ("judge_prompts", JUDGE_PROMPTS, self.prompt_templates),
            ("judge_parsers", _PARSERS, self.parsers),
        ):
            changed = {
                kind.value: setting
                for kind, setting in configured.items()
                if setting != defaults[kind]
            }
            parameters[name] = {**(parameters.get(name) or {}), **changed}
        return parameters

    def prepare_prompt(self, sample: Any) -> Any:
        """HRET's template of the sample's type, filled with the sample's own keys.

        Raises KeyError for one that it lacks.
        """
        assert isinstance(self.method, judge_types.Judging)
        return self.prompt_templates[JudgeType(self.method.type_of(sample))].format(
            **sample
        )

    def _judge_batch(self, model: Any) -> JudgeBatch | None:
        return super()._judge_batch(model or self.multi_judge_model)
