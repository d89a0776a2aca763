"""HRET's evaluators as classes, to score samples that have a prediction without a run: published by its arithmetic, corrected by our scorers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalwright.compat.hret import settings
from evalwright.compat.hret.evaluation.base import BaseEvaluator, register_evaluator
from evalwright.compat.hret.rows import ROW, scored_row
from evalwright.compat.hret.scoring import method_of, scoring_of
from evalwright.core.errors import Failure, ScoringError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, SampleRecord


class BuiltIn(BaseEvaluator):
    """An evaluator of HRET's own. Its parameters are those of the evaluation method of its name."""

    def __init__(self, **params: Any) -> None:
        self.params = params
        self.method = method_of(self.name, params)

    def parameters(self) -> dict[str, Any]:
        """The parameters as they are now."""
        return self.params

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
        return evaluate_rows(self.name, self.parameters(), data, judge)


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


def evaluate_rows(
    method: str,
    params: Mapping[str, Any],
    rows: list[dict[str, Any]],
    judge_batch: Callable[[list[dict[str, Any]]], Sequence[Mapping[str, Any]]] | None = None,
) -> dict[str, Any]:
    """{"metrics", "samples"} of samples that have a prediction, by the corrected scoring; what was found is written into them."""
    from evalwright.evaluation.running import run_blocking, score_answer
    from evalwright.runs.aggregation import TaskTally

    samples = [
        Sample(
            str(place),
            str(row.get("input", "")),
            metadata={ROW: {key: one for key, one in row.items() if key != "prediction"}},
        )
        for place, row in enumerate(rows)
    ]
    scorers, specs = scoring_of(method, params, published=False, language=None, samples=samples)
    tally = TaskTally([one.name for one in scorers], [])

    async def ask(role: str, request: Any) -> Response:
        if judge_batch is None:
            raise ScoringError("No judge is there. Give a model that has one.")
        text = (
            request.prompt
            if isinstance(request.prompt, str)
            else "\n\n".join(one.text for one in request.prompt)
        )
        return Response(str(judge_batch([{"input": text}])[0].get("prediction") or ""))

    async def work() -> None:
        for place, (sample, row) in enumerate(zip(samples, rows, strict=True)):
            text = row.get("prediction", "")
            response = Response(str(text))
            answer = Answer(separate_reasoning(response).answer, responses=(response,))
            if text is None:
                failure = Failure("no answer", "model", "There is no prediction.")
                record = SampleRecord(method, place, 0, sample, None, {}, failure)
            else:
                scores, failures, undecided = await score_answer(scorers, sample, answer, ask, specs)
                record = SampleRecord(method, place, 0, sample, answer, scores, None, failures, undecided)
                scored_row(row, scores)
                if said := "; ".join(one.message for one in failures.values()):
                    row["error"] = said
            tally.add(record)

    run_blocking(work)
    found = tally.result(method, "1", specs)
    numbers = {
        one.label: one.estimate.value for one in found.metrics if one.estimate.value == one.estimate.value
    }
    return {"metrics": numbers, "samples": rows}
