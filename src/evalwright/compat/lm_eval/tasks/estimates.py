"""Computes a task's metrics as Estimates, published or with the interval that suits them.

The record keeps a row's scores as numbers (`Score.parts`) and, for metrics that are not numbers by
themselves, the pairs that an aggregation reads (`Score.item`).
"""

from __future__ import annotations

import math
import statistics as standard
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evalwright import Column, Score
from evalwright.compat.lm_eval.tasks import aggregation, labels
from evalwright.compat.lm_eval.tasks.aggregation import Aggregation, by_error
from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.row_requests import stringify
from evalwright.extend import LOWER_IS_BETTER_METRICS, MetricSpec
from evalwright.statistics import Estimate

_SHARES = frozenset({"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"})
LOWER_IS_BETTER_NAMES = frozenset(
    {
        "bits_per_byte",
        "brier_score",
        "byte_perplexity",
        "cer",
        "perplexity",
        "ter",
        "wer",
        "word_perplexity",
    }
)
"""Metrics for which lower is better unless the task says otherwise."""

_LIKELIHOODS = frozenset({"perplexity", "weighted_perplexity", "bits_per_byte"})
"""Aggregations of log-likelihoods, for which higher is better."""

_CORRECTED_ITERATIONS = 1_000

FILTERED, NAMED = ROW = ("filtered_resps", "metrics")
"""What a score's item has beside metrics: the filtered answers as text, and the names of the row's
metrics in their order.
"""


class Metrics:
    """The metrics of a task, and how each is computed.

    Published aggregations and standard errors are lm_eval's (`aggregation`); corrected intervals
    are those of `evalwright.statistics`, by the table `INTERVALS`.

    Metrics that a task makes up may appear only with the first scores.
    """

    def __init__(self, definition: Definition, options: Options) -> None:
        self.definition = definition
        self.published = options.published
        self.iterations = (
            options.bootstrap
            if self.published
            else min(options.bootstrap, _CORRECTED_ITERATIONS)
        )
        self._ways = {
            metric.name: self._way(metric.aggregation, metric.name)
            for metric in definition.metrics
        }
        self._brought = {
            name for name, (function_name, _) in self._ways.items() if not function_name
        }

    def _way(self, setting: Any, metric: str) -> tuple[str, Aggregation]:
        name, function = aggregation.resolve_aggregation(
            setting, metric, self.definition.name
        )
        if not self.published and name == "median":
            return name, standard.median
        if not self.published and name == "f1":
            return "macro_f1", _f1_of_any
        return name, function

    def check(self) -> None:
        """Raise MissingExtra if a metric needs a library that is not installed."""
        for name, _ in self._ways.values():
            if name in aggregation.CORPUS_METRICS:
                aggregation.require_sacrebleu(
                    f"The metric '{name}' of the task '{self.definition.name}'"
                )

    def specs(
        self, metrics_by_pipeline: Mapping[str, Sequence[str]]
    ) -> tuple[MetricSpec, ...]:
        """Specs of the metrics that scores have, by pipeline; the file's own metrics come first."""
        metrics = dict.fromkeys(
            [
                *self._ways,
                *(name for names in metrics_by_pipeline.values() for name in names),
            ]
        )
        specs = []
        for metric in metrics:
            if metric in ROW:
                continue
            for pipeline, names in metrics_by_pipeline.items():
                if metric in names:
                    specs.append(self._spec(metric, pipeline))
        return tuple(specs)

    def _spec(self, metric: str, pipeline: str) -> MetricSpec:
        name, function = self._aggregation_of(metric)
        kind = self._kind(metric, name)
        return MetricSpec(
            label=metric if pipeline == "none" else f"{metric},{pipeline}",
            kind=kind,
            scorer=pipeline,
            options={"aggregation": name or "the task's own"},
            lower_is_better=self.less(metric) and kind not in LOWER_IS_BETTER_METRICS,
            function=partial(self.estimate, metric, name, function),
        )

    @property
    def shares(self) -> list[str]:
        """Metrics that are means of 1 for right and 0 for wrong rows."""
        return [
            metric
            for metric, (name, _) in self._ways.items()
            if self._kind(metric, name) == "accuracy"
        ]

    def less(self, metric: str) -> bool:
        """Whether lower is better: as the task says, else as in the published registry."""
        higher_is_better = {
            metric_entry.name: metric_entry.higher_is_better
            for metric_entry in self.definition.metrics
        }.get(metric)
        return (
            metric in LOWER_IS_BETTER_NAMES
            if higher_is_better is None
            else not higher_is_better
        )

    def _aggregation_of(self, metric: str) -> tuple[str, Aggregation]:
        """How to aggregate a metric.

        One derived from another ("pass@1" from "pass_at_k") follows it; all others are averaged.
        """
        if metric in self._ways:
            return self._ways[metric]
        custom_metrics = [
            metric_entry.name
            for metric_entry in self.definition.metrics
            if metric_entry.function is not None
        ]
        return (
            self._ways[custom_metrics[0]]
            if len(custom_metrics) == 1
            else ("mean", aggregation.mean)
        )

    def _kind(self, metric: str, name: str) -> str:
        if name == "mean":
            shares = (
                metric in _SHARES and self.definition.config.process_results is None
            )
            return "accuracy" if shares else "mean"
        if metric in ("word_perplexity", "byte_perplexity", "bits_per_byte"):
            return metric.replace("_", "-")
        return name.replace("_", "-") or "mean"

    def score(
        self,
        scores: Mapping[str, Any],
        filtered: Sequence[Any] = (),
        unfiltered: Sequence[Sequence[Any]] = (),
    ) -> Score:
        """Combine a row's scores into one Score, whose value is the first metric's.

        filtered: the filtered answers. came: the responses before filtering, by request. The item
        keeps what is needed to write the row's published line again.
        """
        parts: dict[str, float] = {}
        item: dict[str, Any] = {}
        filtered_text = stringify(filtered)
        if filtered_text != stringify(
            [responses[0] if responses else None for responses in unfiltered]
        ):
            item[FILTERED] = filtered_text
        if list(scores) != list(self._ways):
            item[NAMED] = list(scores)
        for name, raw in scores.items():
            value = _without_numpy(raw)
            number = _number(value)
            if number is not None:
                parts[name] = value if type(value) is int else number
            if number is None or name in self._brought or isinstance(value, bool):
                item[name] = value
        first = next(iter(scores), None)
        if first is None:
            return Score(0.0, parts=parts, item=item or None)
        if (
            first in parts
            and self.less(first)
            and self._aggregation_of(first)[0] not in _LIKELIHOODS
        ):
            return Score(
                -parts[first],
                explanation="negated: less is better",
                parts=parts,
                item=item or None,
            )
        return Score(
            parts.get(first, _pair_score(scores[first])), parts=parts, item=item or None
        )

    def estimate(
        self, metric: str, name: str, function: Aggregation, column: Column
    ) -> Estimate:
        """Compute one metric over one pipeline's column."""
        items = metric_values(metric, column)
        n = len(items)
        failed = column.n_missing
        if not n:
            return by_error(
                math.nan, None, n, failed, "no interval: nothing was scored"
            )
        try:
            if not self.published and name in INTERVALS:
                return INTERVALS[name](items, failed)
            value = float(function(items))
            error = aggregation.standard_error(name, items, metric, self.iterations)
        except Exception as exception:
            return by_error(
                math.nan,
                None,
                n,
                failed,
                f"no number: {type(exception).__name__}: {exception}",
            )
        scoring = "as published" if self.published else "corrected"
        if error is None or not math.isfinite(error):
            return by_error(value, None, n, failed, f"no interval ({scoring})")
        error_source = "of the mean" if name == "mean" else "by bootstrap"
        return by_error(
            value,
            error,
            n,
            failed,
            f"normal interval, standard error {error_source} ({scoring})",
        )


def _mean_estimate(items: Sequence[Any], n_missing: int) -> Estimate:
    from evalwright.statistics import mean_interval

    numbers = [float(item) for item in items]
    limits = (0.0, 1.0) if all(0 <= number <= 1 for number in numbers) else None
    return mean_interval(numbers, n_missing=n_missing, value_range=limits)


def _brier_estimate(items: Sequence[Any], n_missing: int) -> Estimate:
    from evalwright.statistics import mean_interval

    losses = aggregation.brier_losses(items)
    return mean_interval(
        losses, n_missing=n_missing, value_range=aggregation.BRIER_RANGE
    )


def _perplexity_estimate(items: Sequence[Any], n_missing: int) -> Estimate:
    from evalwright.statistics import perplexity

    return perplexity(
        [float(item) for item in items], [1.0] * len(items), n_missing=n_missing
    )


def _weighted_perplexity_estimate(items: Sequence[Any], n_missing: int) -> Estimate:
    from evalwright.statistics import perplexity

    return perplexity(*zip(*items, strict=True), n_missing=n_missing)


def _bits_estimate(items: Sequence[Any], n_missing: int) -> Estimate:
    from evalwright.statistics import bits_per_byte

    return bits_per_byte(*zip(*items, strict=True), n_missing=n_missing)


INTERVALS: Mapping[str, Callable[[Sequence[Any], int], Estimate]] = {
    "bits_per_byte": _bits_estimate,
    "brier_score": _brier_estimate,
    "mean": _mean_estimate,
    "perplexity": _perplexity_estimate,
    "weighted_perplexity": _weighted_perplexity_estimate,
}
"""Corrected scoring: aggregations with an interval of their own, from (items, n missing)."""


def metric_values(metric: str, column: Column) -> list[Any]:
    """A metric's values over the rows that have one: raw items if there are any, else numbers."""
    numbers = column.parts.get(metric)
    values = []
    for index, row_items in enumerate(column.items or [None] * len(column.values)):
        if isinstance(row_items, Mapping) and metric in row_items:
            values.append(row_items[metric])
        elif numbers is not None and not math.isnan(numbers[index]):
            values.append(float(numbers[index]))
    return values


def _f1_of_any(items: Any) -> float:
    """F1 of label 1 for labels 0 and 1, else macro F1.

    The published metric fails with a third label.
    """
    names = {label for pair in items for label in pair}
    return labels.label_metric("f1" if names <= {0, 1} else "macro_f1", items)


def _number(value: Any) -> float | None:
    """Convert to a finite number; None if it is not one."""
    if isinstance(value, str | bytes) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _without_numpy(value: Any) -> Any:
    """Convert numpy numbers to Python's, for JSON."""
    if isinstance(value, list | tuple):
        return (
            type(value)(map(_without_numpy, value))
            if type(value) in (list, tuple)
            else value
        )
    return (
        value.item()
        if hasattr(value, "dtype") and getattr(value, "shape", None) == ()
        else value
    )


def _pair_score(value: Any) -> float:
    """Reduce a pair to one number, higher is better, for display and comparison only.

    It is the pair's log-likelihood, minus its squared distance from the gold choice, or whether
    both are equal.
    """
    if isinstance(value, tuple | list) and len(value) == 2:
        first, second = value
        if (
            isinstance(first, int)
            and isinstance(second, list)
            and 0 <= first < len(second)
        ):
            return -float(
                sum(
                    (probability - (index == first)) ** 2
                    for index, probability in enumerate(second)
                )
            )
        if isinstance(first, float) and _number(second) is not None:
            return first
        try:
            return float(bool(first == second))
        except ValueError:
            return 0.0
    return _number(value) or 0.0
