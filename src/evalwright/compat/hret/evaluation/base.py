"""Evaluators by name: HRET's own, to score samples that have a prediction without a run, and what a
plug-in of a user derives from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evalwright import Answer, Failure, Response, Sample, SampleRecord
from evalwright.compat.hret import settings
from evalwright.compat.hret.row_samples import ROW, counts_of, scored_row, values_of
from evalwright.compat.hret.scoring import ALIASES, METHODS, method_of, scoring_of
from evalwright.compat.hret.settings import Classes, Given, Rows
from evalwright.evaluation.scoring import score_answer
from evalwright.extend import ScoringError, TaskTally, run_blocking, separate_reasoning

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
        published = settings.is_published()
        for sample in data:
            raw = sample.get("prediction", "")
            sample["prediction"] = self.parse_prediction(raw)
            if not published:
                sample.setdefault("original_prediction", raw)
        if (
            published
            and getattr(model, "judge_model", None) is not None
            and not self.has_custom_judge
        ):
            data = model.judge_batch(data)
        return {"metrics": self.evaluate_predictions(data), "samples": data}


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
        if settings.is_published():
            return self._published_metrics(samples)
        metrics: dict[str, Any] = self._corrected(samples)["metrics"]
        return metrics

    def _published_metrics(self, samples: Rows) -> dict[str, Any]:
        """The metrics by HRET's arithmetic."""
        return self.method.numbers(
            samples,
            [self.method.written(row, self.method.score(row)) for row in samples],
        )

    def _corrected(self, samples: Rows, model: Any = None) -> dict[str, Any]:
        judge = getattr(
            model or getattr(self, "multi_judge_model", None), "judge_batch", None
        )
        return evaluate_rows(self.kind, self.parameters(), samples, judge)

    def evaluate(self, data: Rows, model: Any = None) -> dict[str, Any]:
        """{"metrics", "samples"} by the scoring that is set."""
        if settings.is_published():
            return super().evaluate(data, model)
        if not self.is_derived:
            return self._corrected(data, model)
        if type(self).parse_prediction is not BuiltIn.parse_prediction:
            return super().evaluate(data, model)
        return {"metrics": self.evaluate_predictions(data), "samples": data}


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


def evaluate_rows(
    method: str,
    params: Given,
    rows: Rows,
    judge_batch: Callable[[Rows], Sequence[Given]] | None = None,
) -> dict[str, Any]:
    """{"metrics", "samples"} of samples that have a prediction, by the corrected scoring; what was
    found is written into them.
    """
    samples = []
    for place, row in enumerate(rows):
        row_kept = {
            key: field_value for key, field_value in row.items() if key != "prediction"
        }
        samples.append(
            Sample(str(place), str(row.get("input", "")), metadata={ROW: row_kept})
        )
    scorers, specs = scoring_of(
        method, params, published=False, language=None, samples=samples
    )
    tally = TaskTally([scorer.name for scorer in scorers], [])

    async def ask(role: str, request: Any) -> Response:
        if judge_batch is None:
            raise ScoringError("No judge is there. Give a model that has one.")
        prompt = request.prompt
        text = (
            prompt
            if isinstance(prompt, str)
            else "\n\n".join(message.text for message in prompt)
        )
        return Response(str(judge_batch([{"input": text}])[0].get("prediction") or ""))

    async def work() -> None:
        for place, (sample, row) in enumerate(zip(samples, rows, strict=True)):
            text = row.get("prediction", "")
            if text is None:
                failure = Failure("no answer", "model", "There is no prediction.")
                tally.add(SampleRecord(method, place, 0, sample, None, {}, failure))
                continue
            response = Response(str(text))
            answer = Answer(separate_reasoning(response).answer, responses=(response,))
            outcome = await score_answer(scorers, sample, answer, ask, specs)
            tally.add(
                SampleRecord(
                    method, place, 0, sample, answer, outcome[0], None, *outcome[1:]
                )
            )
            scored_row(row, outcome[0])
            if reasons := "; ".join(failure.message for failure in outcome[1].values()):
                row["error"] = reasons

    run_blocking(work)
    scored = tally.result(method, "1", specs)
    metrics: dict[str, Any] = {**values_of(scored.metrics), **counts_of(scored)}
    return {"metrics": metrics, "samples": rows}
