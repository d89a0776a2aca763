"""Our behaviour behind the interface of `Rules`: a call is translated."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from evalwright import Answer, Sample
from evalwright.compat.hret.call import JUDGE, REWARD, Call
from evalwright.compat.hret.corrected.answering import CorrectedAnswer
from evalwright.compat.hret.corrected.backends import BACKENDS
from evalwright.compat.hret.corrected.benchhub_rows import CorrectedBenchHubReader
from evalwright.compat.hret.corrected.examples import drawn_examples
from evalwright.compat.hret.corrected.file_rows import CorrectedFileReader
from evalwright.compat.hret.corrected.hub_rows import CorrectedHubReader
from evalwright.compat.hret.corrected.likelihood_checks import check_likelihoods
from evalwright.compat.hret.corrected.measuring import measure
from evalwright.compat.hret.corrected.replies import final_answer, language_share
from evalwright.compat.hret.corrected.scorers import scoring_of
from evalwright.compat.hret.corrected.strategies import strategy_of
from evalwright.compat.hret.datasets.benchhub import BenchHubDataset
from evalwright.compat.hret.datasets.dataset_loader import GenericFileDataset
from evalwright.compat.hret.datasets.hub import HubDataset
from evalwright.compat.hret.examples import FewShot, Shots
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.row_samples import Given, Row, Rows, counts_of, values_of
from evalwright.compat.hret.rules import (
    DatasetReader,
    JudgeBatch,
    Rules,
    ScorersAndMetrics,
)
from evalwright.compat.hret.scaling import DRAWN
from evalwright.extend import MetricResult, Strategy, TaskResult

_READERS: Sequence[tuple[type[Any], Callable[[Any], DatasetReader]]] = (
    (HubDataset, CorrectedHubReader),
    (BenchHubDataset, CorrectedBenchHubReader),
    (GenericFileDataset, CorrectedFileReader),
)


class CorrectedRules(Rules):
    """As we do."""

    name = "corrected"
    hands_parsers_on = True
    more_scaling_methods = DRAWN

    def refuse(self, error: Exception) -> None:
        """Raise it."""
        raise error

    def dataset_arguments(self, arguments: Given, params: Given) -> Given:
        """A parameter takes the place of an argument that it repeats."""
        return {**arguments, **params}

    def reader(self, dataset: Any) -> DatasetReader:
        """See `Rules`."""
        return next(make for kind, make in _READERS if isinstance(dataset, kind))(
            dataset
        )

    def examples(self, rows: Sequence[Row], few_shot: FewShot) -> Shots:
        """Rows of another split, drawn by seed."""
        return drawn_examples(list(rows), few_shot)

    def native(self, backend: str, params: Given, *, by_options: bool) -> Native:
        """See `Rules`."""
        return BACKENDS[backend](params, self, by_options)

    def fault_of(self, sample: Given) -> str:
        """An error of its own, or a prediction that is missing."""
        if sample.get("error"):
            return str(sample["error"])
        return "it gave no prediction" if sample.get("prediction") is None else ""

    def strategy(
        self,
        method: str | None,
        params: Given,
        native: Native | None = None,
        roles: Collection[str] = (),
    ) -> Strategy:
        """A strategy of ours."""
        return strategy_of(method, params, native, roles)

    def answering(self, call: Call) -> Strategy:
        """See `Rules`."""
        return CorrectedAnswer(call)

    def scoring(self, call: Call, samples: Sequence[Sample]) -> ScorersAndMetrics:
        """Scorers of ours."""
        check_likelihoods(call, samples)
        return scoring_of(
            call.method,
            call.method_params or {},
            language=call.language,
            samples=samples,
            judge=call.judge,
        )

    def measure(
        self, method: str, params: Given, rows: Rows, judge: JudgeBatch | None
    ) -> dict[str, Any]:
        """The metrics by scorers of ours."""
        return measure(method, params, rows, judge)

    def parsed(
        self, rows: Rows, parse: Callable[[Any], Any], judge: Any, *, is_custom: bool
    ) -> Rows:
        """Raw predictions are kept and scored, unless a user's own parser is there: a judge never
        writes an answer.
        """
        if not is_custom:
            return rows
        for row in rows:
            raw = row.get("prediction", "")
            row["prediction"] = parse(raw)
            row.setdefault("original_prediction", raw)
        return rows

    def metrics(self, result: TaskResult) -> tuple[dict[str, Any], dict[str, Any]]:
        """A metric of nothing is there all the same, as None."""
        without_numbers = dict.fromkeys(metric.label for metric in result.metrics)
        metrics = {**without_numbers, **values_of(result.metrics)}
        info = _certainty(result.metrics, result.slices.get("subset", {}))
        return metrics | counts_of(result), info

    def reply_fields(self, answer: Answer) -> dict[str, Any]:
        """All replies as they came."""
        raw = [response.text for response in answer.responses]
        return {"raw_responses": raw} if raw else {}

    def without_faults(self, samples: Rows) -> tuple[Rows, Rows]:
        """Samples that failed are not scored."""
        return (
            [sample for sample in samples if not sample.get("error")],
            [sample for sample in samples if sample.get("error")],
        )

    def unused_roles(self, call: Call, used_roles: Collection[str]) -> list[str]:
        """Those that the method has no part for."""
        return sorted({JUDGE, REWARD}.intersection(call.roles).difference(used_roles))

    def final_answer(self, text: str) -> str:
        """The last claim."""
        return final_answer(text)

    def language_share(self, text: object, language: str) -> float:
        """The share of its letters."""
        return language_share(text, language)


def _certainty(
    metrics: Sequence[MetricResult], subsets: Mapping[str, Sequence[MetricResult]]
) -> dict[str, Any]:
    """Intervals, of how many samples a metric is, between which bounds it is where samples are
    missing, and the metrics of every subset.
    """
    estimates = {
        metric.label: metric.estimate
        for metric in metrics
        if not math.isnan(metric.estimate.value)
    }
    numbers = {
        "intervals": {
            label: [estimate.low, estimate.high]
            for label, estimate in estimates.items()
        },
        "counts": {label: estimate.n for label, estimate in estimates.items()},
        "bounds": {
            label: list(estimate.bounds)
            for label, estimate in estimates.items()
            if estimate.bounds
        },
        "subset_metrics": {
            name: values_of(subset_metrics) for name, subset_metrics in subsets.items()
        },
    }
    return {
        name: entries
        for name, entries in numbers.items()
        if entries or name == "intervals"
    }


RULES = CorrectedRules()
