"""The table of metrics: functions `(column, *, options) -> Estimate` over one scorer's column."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import iscoroutinefunction
from math import nan
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.core.registry import Registry, positional_count
from evalwright.statistics import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.core.tasks import MetricSpec


_TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("metrics.toml").read_text(encoding="utf-8")
)
"""The properties of each built-in metric."""


def _metrics_with(key: str, value: object, default: object) -> frozenset[str]:
    return frozenset(
        name for name, row in _TABLE.items() if row.get(key, default) == value
    )


# These two come with tasks and runs of other frameworks.
LOWER_IS_BETTER = _metrics_with("better", "lower", "") | {"brier-score", "perplexity"}
"""Metrics for which lower is better.

For some of them the scores behind (log-likelihoods, consistency) are better when higher.
"""

Direction = Literal["higher", "lower", "unknown"]
"""Which values of a metric are better."""


def direction_of(kind: str, options: Mapping[str, Any]) -> Direction:
    """Tell which values of a metric are better, as far as its kind and options show.

    A share of answers of one class is better or worse by that class ("fabricated", "answered");
    of many classes ("partial") neither is known, nor of a metric that a task or plug-in defines.

    Args:
        kind: the metric's kind.
        options: its options.
    """
    if kind in LOWER_IS_BETTER:
        return "lower"
    row = _TABLE.get(kind)
    if row is None or row.get("direction") == "unknown":
        return "unknown"
    if "class_option" not in row:
        return "higher"
    answer_class = options.get(row["class_option"], row.get("default_class"))
    if answer_class in row.get("lower_classes", ()):
        return "lower"
    return "higher" if answer_class in row.get("higher_classes", ()) else "unknown"


BOUNDED = _metrics_with("bounded", True, True)
"""Metrics between 0 and 1 (below 0 for worse than guessing), shown in percentage points.

Only these may be averaged over tasks.
"""

OF_BOUNDED = BOUNDED - {"pass@k", "pass^k"}
"""Bounded metrics that need scores between 0 and 1. The rest compare any score with a threshold."""

RATES_OF_ALL = frozenset({"answer-rate", "outcome-share"})
"""Metrics that are shares of all requested samples, including those without an answer.

All other metrics are over the samples with a score.
"""

RATES_OF_ALL_NOTE = (
    "Answer rates and shares of outcomes are of all that was asked: a missing answer"
    " counts as not answered."
)
"""The note shown with such metrics where answers are missing."""

MEANS = _metrics_with("mean", True, False)
"""Metrics that are the mean of the items' scores, or 1 minus it."""

FAILED_IS_ZERO = _metrics_with("failed_is_zero", True, False)
"""Metrics over all requested samples, in which a failed sample counts as 0."""

CHANCE_NORMALISED = "chance-normalised"
"""The metric in which 0 is chance."""

_DERIVED = frozenset({CHANCE_NORMALISED, "macro", "macro-score"})
SUMMED = (
    MEANS.union(name for name, row in _TABLE.items() if "items" in row or "sums" in row)
    - FAILED_IS_ZERO
    - _DERIVED
    - {"maj@k", "pass@k", "pass^k"}
)
"""Metrics from which other metrics can be derived."""

_USUAL = {
    "bleu": "bleu",
    "chrf": "chrf",
    "chrf++": "chrf++",
    "effort": "effort",
    "perplexity": "word-perplexity",
    "reward": "mean",
    "ter": "ter",
    "words": "mean",
}
"""Default metric of scorers whose scores need not be between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Column:
    """One scorer's scores over the n samples that have one: the input of a metric.

    Args:
        values: scores, shape (n,); a sample's mean over its draws.
        parts: further numbers of the scores by name, shape (n,); nan where a score has none.
        clusters: cluster of each sample, integers of shape (n,), or None where every sample is a
            cluster by itself.
        n_missing: samples without a score through no fault of the model.
        draws: scores by draw, shape (n, draws), nan where missing; None with one draw.
        part_draws: `parts` by draw, shape (n, draws); for metrics over classes, for which a mean
            over draws means nothing.
        items: the scores' items, of the first draw, in the order of `values`; empty where no score
            has one.
        labels: the scores' labels as indices into `label_names`, shape (n, draws), -1 where a score
            has none; None where no score has one.
        label_names: the labels.
        unsure: whether a careful reader might disagree with the score, shape (n,); None where no
            score is unsure.
        missing_clusters: clusters of the samples without a score, shape (n_missing,), where there
            are clusters.
        slices: for each metadata key that a metric needs: the samples' values as indices, shape
            (n,), -1 for none, and the names of the values.
        item_draws: items by draw, shape (n, draws), with several draws.
        failures: why scores are missing, each reason once, as "kind: message".
    """

    values: NDArray[np.float64]
    parts: Mapping[str, NDArray[np.float64]]
    clusters: NDArray[np.int64] | None = None
    n_missing: int = 0
    draws: NDArray[np.float64] | None = None
    part_draws: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    items: Sequence[Any] = ()
    labels: NDArray[np.int32] | None = None
    label_names: Sequence[str] = ()
    unsure: NDArray[np.bool_] | None = None
    missing_clusters: NDArray[np.int64] | None = None
    slices: Mapping[str, tuple[NDArray[np.int32], Sequence[str]]] = field(
        default_factory=dict
    )
    item_draws: Sequence[Sequence[Any]] = ()
    failures: Sequence[str] = ()
    memory: dict[Any, Any] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores of all draws, (n,) with one draw or (n, draws)."""
        return self.values if self.draws is None else self.draws

    @property
    def n_unsure(self) -> int:
        """The number of unsure scores."""
        return 0 if self.unsure is None else int(self.unsure.sum())

    def with_unsure_at(self, value: float) -> Column:
        """Return the column with every unsure score replaced by this value."""
        import numpy as np

        if self.unsure is None:
            return self
        draws = self.draws
        if draws is not None:
            draws = np.where(self.unsure[:, None] & ~np.isnan(draws), value, draws)
        return replace(
            self, values=np.where(self.unsure, value, self.values), draws=draws
        )

    def by_draw(self) -> NDArray[np.float64]:
        """Return the scores, always of shape (n, draws)."""
        return self.values.reshape(-1, 1) if self.draws is None else self.draws

    def clusters_of(
        self, mask: NDArray[np.bool_] | np.bool_
    ) -> NDArray[np.int64] | None:
        """Return the clusters of the items that `mask` (n,) selects."""
        return None if self.clusters is None else self.clusters[mask]


@dataclass(frozen=True, slots=True)
class Groups:
    """A partition of a column's items into groups.

    Attributes:
        codes: (n,), the group of each item, from 0.
        count: number of groups.
    """

    codes: NDArray[np.int64]
    count: int

    def sums(self, *parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum some parts (n,) over each group; the result is (count, parts).

        An item that lacks one of the parts is left out of all sums.
        """
        import numpy as np

        lacking = np.isnan(parts).any(axis=0)
        return np.stack(
            [
                np.bincount(self.codes, np.where(lacking, 0.0, part), self.count)
                for part in parts
            ],
            axis=1,
        )


MetricFunction = Callable[..., "Estimate"]
GroupSums = tuple[
    "NDArray[np.float64]", Callable[["NDArray[np.float64]"], "NDArray[np.float64]"]
]
"""Sums over groups (groups, parts), and the metric as a function of sums (..., parts) -> (...)."""
Function = TypeVar("Function", bound=MetricFunction)


def _check(name: str, function: MetricFunction) -> None:
    if positional_count(function) != 1 or iscoroutinefunction(function):
        raise ConfigurationError(
            f"The metric '{name}' must have the form `def f(column, *, options) ->"
            " Estimate`."
        )


registry: Registry[MetricFunction] = Registry(
    "metric",
    {name: f"evalwright.metrics.{row['function']}" for name, row in _TABLE.items()},
    _check,
)


def metric(name: str) -> Callable[[Function], Function]:
    """Register a metric: from a column of scores to an estimate.

    The function is `def f(column, *, option=default) -> Estimate`; `evalwright.statistics` has what
    it needs::

        from evalwright.statistics import mean_interval

        @metric("error-rate")
        def error_rate(column):
            wrong = 1 - column.values
            return mean_interval(wrong, clusters=column.clusters, n_missing=column.n_missing)

    Args:
        name: the name that task files use.

    Returns:
        The decorator.

    Raises:
        ConfigurationError: the name or the function's parameters do not fit; when registering.
    """
    registry.check_name(name)

    def register(function: Function) -> Function:
        registry.register(name, function)
        return function

    return register


def item_values(
    kind: str, column: Column, options: Mapping[str, Any]
) -> NDArray[np.float64] | None:
    """Compute the items' values whose mean is the metric, (n,) or (n, draws).

    None if the metric is not a mean.
    """
    if (name := _TABLE.get(kind, {}).get("items")) is None:
        return None
    values: NDArray[np.float64] = _bind_options(name, options)(column)
    return values


def is_of_items(kind: str) -> bool:
    """Whether `item_values` supports the metric."""
    return "items" in _TABLE.get(kind, {})


def is_of_sums(kind: str) -> bool:
    """Whether `group_sums` supports the metric."""
    return "sums" in _TABLE.get(kind, {})


def group_sums(
    kind: str, column: Column, groups: Groups, options: Mapping[str, Any]
) -> GroupSums | None:
    """Return sums over groups of items, and the metric as a function of them.

    Args:
        kind: the metric's kind.
        column: the scores of one scorer.
        groups: the groups of items.
        options: the metric's options.

    Returns:
        None if the metric is no function of sums.
    """
    if not is_of_sums(kind):
        return None
    settings = dict(_TABLE[kind]["sums"])
    grouped: GroupSums = _bind_options(
        settings.pop("function"), {**settings, **options}
    )(column, groups)
    return grouped


def _bind_options(name: str, options: Mapping[str, Any]) -> Callable[..., Any]:
    arguments = {key: value for key, value in options.items() if key != "level"}
    return partial(resolve_name(f"evalwright.metrics.{name}"), **arguments)


def slice_keys(kind: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the metadata keys that a metric reads."""
    return (str(options["over"]),) if kind in _DERIVED and options.get("over") else ()


def any_sums(kind: str, column: Column, groups: Groups) -> GroupSums:
    """Return sums over groups for any metric in `SUMMED`, and the metric as a function of them.

    For a mean these are the sum of its items' values, and their number.
    """
    import numpy as np

    grouped = group_sums(kind, column, groups, {})
    if grouped is not None:
        return grouped
    values = item_values(kind, column, {})
    if values is None:
        values = 1 - column.values if kind == "hallucination-rate" else column.values
    elif values.ndim == 2:
        values = np.nanmean(values, axis=1)
    return groups.sums(values, np.ones(len(values))), ratio


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Raise UsageError for an option that the metric does not take, or an impossible value."""
    registry.check_options(kind, options)
    if (check := getattr(registry.get(kind), "check_options", None)) is not None:
        check(options)


def is_known(spec: MetricSpec) -> bool:
    """Whether a metric is registered and takes its options.

    Args:
        spec: the metric and its options; its scorer does not matter.

    Returns:
        False where `TaskTally.result` would refuse it.
    """
    try:
        check_options(spec.kind, spec.options)
    except UsageError:
        return False
    return True


def is_built_in(spec: MetricSpec) -> bool:
    """Whether a metric is one of this package, which nothing has registered anew, and is known."""
    return registry.is_built_in(spec.kind) and is_known(spec)


def metric_range(kind: str, options: Mapping[str, Any]) -> tuple[float, float]:
    """Return the least and the greatest value of a metric in `BOUNDED`.

    Args:
        kind: the metric.
        options: its options.

    Returns:
        The two values; (0, 1) unless the metric is normalised by chance.
    """
    if kind != CHANCE_NORMALISED:
        return 0.0, 1.0
    chance = float(options["chance"])
    greatest = float(options.get("greatest", 1.0))
    least = 0.0 if options.get("clip") else -chance / (greatest - chance)
    return least, (1.0 - chance) / (greatest - chance)


def usual_metric(scorer: str, options: Mapping[str, Any]) -> str:
    """Return the default metric of a scorer."""
    return "accuracy" if options.get("range") else _USUAL.get(scorer, "accuracy")


def check_scorer(kind: str, scorer: str) -> None:
    """Raise ConfigurationError if the metric cannot be computed from the scorer's scores."""
    from evalwright.scorers.registry import registry as scorers

    of = _TABLE.get(kind, {}).get("made_of")
    if of is not None and scorer not in of and scorers.is_built_in(scorer):
        raise ConfigurationError(
            f"The metric '{kind}' needs scores of the scorer {' or '.join(of)}, not of"
            f" '{scorer}'."
        )
    usual = _USUAL.get(scorer, "accuracy")
    if kind in OF_BOUNDED and usual != "accuracy" and scorer != "reward":
        raise ConfigurationError(
            f"'{kind}' is of scores from 0 to 1, and those of the scorer '{scorer}' are"
            f" not: use the metric '{usual}'."
        )


def compute(
    kind: str, column: Column, options: Mapping[str, Any] | None = None
) -> Estimate:
    """Compute the metric `kind` over a column.

    Raises:
        ConfigurationError: it cannot be computed from these scores.
    """
    arguments = dict(options or {})
    check_options(kind, arguments)
    try:
        estimate = registry.get(kind)(column, **arguments)
    except ValueError as error:
        raise ConfigurationError(
            f"The metric '{kind}' cannot be computed: {error}."
        ) from error
    if not isinstance(estimate, Estimate):
        raise ConfigurationError(
            f"The metric '{kind}' must give an Estimate, not {type(estimate).__name__}."
        )
    return estimate


def nothing_scored(
    column: Column, level: float, why: str = "no interval: nothing was scored"
) -> Estimate:
    """Return the estimate where no sample has a score: nan, with the number of missing ones."""
    return Estimate(nan, nan, nan, level, 0, column.n_missing, None, None, why)


def ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide the first of two sums (..., 2) by the second; nan where that is 0."""
    import numpy as np

    above = sums[..., 0]
    below = sums[..., 1]
    quotient: NDArray[np.float64] = np.divide(
        above, below, out=np.full_like(above, np.nan), where=below > 0
    )
    return quotient
