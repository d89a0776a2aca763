"""Metrics of imported results: made again by our statistics where the samples give the published number, else as published."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalwright.compat.lm_eval.runs.names import COUNTED, NO_FILTER, our_kind
from evalwright.compat.lm_eval.runs.records import number, pair
from evalwright.compat.lm_eval.tasks.aggregation import by_error
from evalwright.core.errors import EvalwrightError
from evalwright.metrics.registry import BOUNDED, LOWER_IS_BETTER, Column, compute
from evalwright.runs.results import MetricResult

if TYPE_CHECKING:
    from evalwright.statistics import Estimate

_CLOSE = 1e-6
"""How far our number may be from the published one, relatively, and still be the same: files round."""

_ENTRY = {"alias", "name", "sample_len", "sample_count", "samples"}


def metrics_of(entry: Mapping[str, Any]) -> dict[str, list[str]]:
    """Metric names by filter in a task's entry of the results, old (`acc`) or new (`acc,none`), in its order."""
    out: dict[str, list[str]] = {}
    for key, value in entry.items():
        name, _, pipeline = key.partition(",")
        if key in _ENTRY or name.endswith("_stderr") or (number(value) is None and value != "N/A"):
            continue
        out.setdefault(pipeline or NO_FILTER, []).append(name)
    return out


def published(entry: Mapping[str, Any], metric: str, pipeline: str) -> tuple[float | None, float | None]:
    """Value and standard error in a task's entry; None where there is none."""
    value = entry.get(f"{metric},{pipeline}", entry.get(metric))
    error = entry.get(f"{metric}_stderr,{pipeline}", entry.get(f"{metric}_stderr"))
    return number(value), number(error)


class Items:
    """One metric's items over a task's documents, a row each, as numbers or as pairs (log-likelihood, count)."""

    def __init__(self, metric: str) -> None:
        self.metric = metric
        self.values = array("d")
        self.counts = array("d")
        self.clusters = array("q")
        self.missing = 0
        self.usable = True

    def add(self, item: Any, cluster: int) -> None:
        """Count one document's item in; None is missing."""
        counted = pair(self.metric, item)
        value = counted[0] if counted else number(item)
        if item is None:
            self.missing += 1
            return
        if value is None:
            self.usable = False
            return
        self.values.append(value)
        self.counts.append(counted[1] if counted else 1.0)
        self.clusters.append(cluster)


def metric_result(
    metric: str,
    pipeline: str,
    entry: Mapping[str, Any],
    n: int,
    items: Items | None,
    n_failed: int,
    clustered: bool,
) -> MetricResult:
    """A metric of a task. n: how many samples the results name. n_failed: samples without any score."""
    value, error = published(entry, metric, pipeline)
    kind, estimate = our_kind(metric), None
    if items is not None and items.usable and len(items.values):
        kind, estimate = _again(metric, kind, items, n_failed + items.missing, clustered)
        if estimate is not None and value is not None:
            near = math.isclose(estimate.value, value, rel_tol=_CLOSE, abs_tol=_CLOSE)
            estimate = estimate if near else None
    if estimate is None:
        kind = our_kind(metric)
        estimate = _as_published(kind, value, error, n or (len(items.values) if items else 0), n_failed)
    label = metric if pipeline == NO_FILTER else f"{metric},{pipeline}"
    return MetricResult(label, kind, pipeline, estimate)


def _again(
    metric: str, kind: str, items: Items, n_failed: int, clustered: bool
) -> tuple[str, Estimate | None]:
    """The metric by our statistics; None where it is none that we make."""
    import numpy as np

    from evalwright import statistics

    values, counts = np.frombuffer(items.values), np.frombuffer(items.counts)
    clusters = np.frombuffer(items.clusters, np.int64) if clustered else None
    if metric == "perplexity":
        try:
            return kind, statistics.perplexity(values, counts, clusters=clusters, n_failed=n_failed)
        except ValueError:
            return kind, None
    parts = {"log_likelihood": values, COUNTED[metric]: counts} if metric in COUNTED else {}
    column = Column(values, parts, clusters, n_failed)
    ours = kind if kind in ("accuracy", "exact-match") or metric in COUNTED else "mean"
    try:
        estimate = compute(ours, column)
    except EvalwrightError:
        return kind, None
    # The kind says which way is better, so a mean of which less is better keeps its name.
    return kind if kind in LOWER_IS_BETTER else ours, estimate


def _as_published(kind: str, value: float | None, error: float | None, n: int, n_failed: int) -> Estimate:
    if value is None:
        return by_error(math.nan, None, n, n_failed, "no number: the results have none")
    if error is None or error <= 0:
        why = "imported from lm_eval, whose results have no standard error: no interval"
        return by_error(value, None, n, n_failed, why)
    method = "imported from lm_eval: normal interval from its standard error"
    return by_error(value, error, n, n_failed, method, (0.0, 1.0) if kind in BOUNDED else None)


def size(entry: Mapping[str, Any], counted: Mapping[str, Any], names: Sequence[str]) -> int:
    """How many samples a task's numbers rest on, where the results say so; else 0.

    Results before 0.4.3 do not: there the standard error of a share gives it, as p (1 - p) / (n - 1) is its square.
    """
    for found in (counted.get("effective"), entry.get("sample_len"), entry.get("samples")):
        if isinstance(found, int) and not isinstance(found, bool) and 0 < found < 2**53:
            return found
    for name in names:
        if our_kind(name) in ("accuracy", "exact-match"):
            for pipeline in metrics_of(entry):
                share, error = published(entry, name, pipeline)
                if share is not None and error and 0 < share < 1:
                    n = share * (1 - share) / error**2 + 1
                    if abs(n - round(n)) < 1e-3 * max(1.0, n / 1000):
                        return round(n)
    return 0
