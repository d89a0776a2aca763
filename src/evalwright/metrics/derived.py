"""Metrics derived from another one: its mean over the values of a slice, or its excess over chance.

Both are functions of the same sums as the underlying metric, so comparisons, leaderboards and
gates handle them as they handle macro-F1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.metrics import registry
from evalwright.metrics.registry import Column, Groups, GroupSums, nothing_scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate


_MAX_TABLE_NUMBERS = 4_000_000
"""Largest table of sums, in numbers; for a larger one, units are first merged into groups."""
_MAX_GROUPS = 1_000


def _check(of: str, bounded: bool) -> None:
    allowed = sorted(
        name
        for name in registry.SUMMED - registry.LOWER_IS_BETTER
        if (name in registry.BOUNDED) is bounded
    )
    check_known("metric to average or normalise", [of], allowed)


def _check_chance(options: Mapping[str, Any]) -> None:
    _check(options.get("of", "accuracy"), bounded=True)
    chance = options["chance"]
    greatest = options.get("greatest", 1.0)
    for name, value in (("chance", chance), ("greatest", greatest)):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigurationError(
                f"The option '{name}' must be a number such as 0.25, not {value!r}."
            )
    if not 0 <= chance < greatest <= 1:
        raise ConfigurationError(
            "The option 'chance' must be at least 0 and less than the greatest score"
            f" ({greatest:g}), not {chance:g}."
        )


def macro(
    column: Column,
    *,
    over: str,
    of: str = "accuracy",
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The unweighted mean of a metric in [0, 1] over the values of a slice (`over: language`).

    Samples without a value of the slice are left out.

    Args:
        column: the scores.
        over: the metadata key of the slice.
        of: the metric to average.
        level: confidence level of the interval.
        seed: seeds the bootstrap of the interval, over items or clusters.
    """
    return _averaged(column, over, of, level, seed)


def macro_score(
    column: Column, *, over: str, of: str = "mean", level: float = 0.95, seed: int = 0
) -> Estimate:
    """The unweighted mean over a slice of a metric with its own scale: mean, bleu, chrf, chrf++.

    Takes the arguments of `macro`.
    """
    return _averaged(column, over, of, level, seed)


def chance_normalised(
    column: Column,
    *,
    chance: float,
    of: str = "accuracy",
    greatest: float = 1.0,
    clip: bool = False,
    over: str | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Rescale a metric so that 0 is chance and 1 the greatest score; below 0 is worse than chance.

    The value is (score - chance) / (greatest - chance). `chance` and `greatest` come from the
    task's definition, never from its data. The interval is the metric's own, with its ends rescaled
    in the same way.

    Args:
        column: the scores.
        chance: the expected score of guessing.
        of: a metric between 0 and 1.
        greatest: the greatest possible score.
        clip: show 0 for scores below chance.
        over: rescale the macro average over this slice.
        level: confidence level of the interval.
        seed: seeds the bootstrap of the interval.
    """
    estimate = (
        _averaged(column, over, of, level, seed)
        if over
        else registry.compute(of, column, {"level": level})
    )
    width = greatest - chance

    def normalised(score: float) -> float:
        rescaled = (score - chance) / width
        return max(rescaled, 0.0) if clip and rescaled == rescaled else rescaled

    return replace(
        estimate,
        value=normalised(estimate.value),
        low=normalised(estimate.low),
        high=normalised(estimate.high),
        bounds=estimate.bounds
        and (normalised(estimate.bounds[0]), normalised(estimate.bounds[1])),
        standard_error=(
            None if estimate.standard_error is None else estimate.standard_error / width
        ),
        method=(
            f"{estimate.method}; (score - {chance:g}) /"
            f" {width:g}{', not below 0' if clip else ''}"
        ),
    )


def macro_sums(
    column: Column, groups: Groups, *, over: str, of: str | None = None, seed: int = 0
) -> GroupSums:
    """Put the sums of each value of the slice side by side, (groups, values * parts).

    `seed` is not used.
    """
    import numpy as np

    codes, count = _slice_codes(column, over)
    metric_name = of or "accuracy"
    # Samples without a value go to an extra group, which is dropped below.
    inside = np.where(
        codes < 0, groups.count * count, groups.codes * count + np.maximum(codes, 0)
    )
    table, statistic = registry.any_sums(
        metric_name, column, registry.Groups(inside, groups.count * count + 1)
    )
    item_counts = np.bincount(inside, minlength=len(table))[:-1].reshape(
        groups.count, count
    )
    wide = table[:-1].reshape(groups.count, count * table.shape[1])

    def averaged(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        has_items = sums[..., :count] > 0
        sums_by_value = sums[..., count:].reshape(
            *sums.shape[:-1], count, table.shape[1]
        )
        values = np.where(has_items, np.nan_to_num(statistic(sums_by_value)), 0.0)
        average: NDArray[np.float64] = values.sum(axis=-1) / np.maximum(
            has_items.sum(axis=-1), 1
        )
        return average

    return np.concatenate([item_counts.astype(np.float64), wide], axis=1), averaged


def chance_sums(
    column: Column,
    groups: Groups,
    *,
    chance: float,
    of: str = "accuracy",
    greatest: float = 1.0,
    clip: bool = False,
    over: str | None = None,
    seed: int = 0,
) -> GroupSums:
    """Return the sums of the underlying metric, and the rescaled metric as a function of them."""
    import numpy as np

    table, statistic = (
        macro_sums(column, groups, over=over, of=of)
        if over
        else registry.any_sums(of, column, groups)
    )

    def normalised(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        rescaled = (statistic(sums) - chance) / (greatest - chance)
        return np.maximum(rescaled, 0.0) if clip else rescaled

    return table, normalised


def _averaged(column: Column, over: str, of: str, level: float, seed: int) -> Estimate:
    import numpy as np

    from evalwright.statistics.jackknife import jackknife_groups
    from evalwright.statistics.labels import within_classes
    from evalwright.statistics.sums import estimate_of_sums

    if not len(column.values):
        return nothing_scored(column, level)
    codes, count = _slice_codes(column, over)
    has_value = codes >= 0
    units = (
        np.arange(len(codes))
        if column.clusters is None
        else np.unique(column.clusters, return_inverse=True)[1]
    )
    n_units = len(np.unique(units[has_value]))
    n_sums = registry.any_sums(
        of, column, registry.Groups(np.zeros(len(codes), np.int64), 1)
    )[0].shape[1]
    if len(codes) * (n_sums + 1) * count > _MAX_TABLE_NUMBERS:
        units = jackknife_groups(units.astype(np.int64), _MAX_GROUPS)
    table, statistic = macro_sums(
        column, registry.Groups(units, int(units.max()) + 1), over=over, of=of
    )
    table = table[table[:, :count].any(axis=1)]
    sizes = np.array([len(np.unique(units[codes == code])) for code in range(count)])
    bounded = of in registry.BOUNDED
    few = None
    if of in registry.MEANS and bounded and len(table):
        flat = np.concatenate([table[:, count::2], table[:, count + 1 :: 2]], axis=1)
        unit = "items" if column.clusters is None else "clusters"
        point = float(statistic(table.sum(axis=0)))
        few = within_classes(
            flat, np.ones(len(table), np.int64), count, unit, point, level
        )
    greatest = 100.0 if registry.is_of_sums(of) else None
    if bounded:
        greatest = 1.0
    # The effective number of units is that of a sample in which each value of the slice had as few
    # as the smallest.
    filled_sizes = sizes[sizes > 0]
    smallest_size = filled_sizes.min() if len(filled_sizes) else 1
    effective_units = min(len(table), max(1, smallest_size * len(filled_sizes)))
    estimate = estimate_of_sums(
        table,
        statistic,
        n_missing=column.n_missing,
        level=level,
        seed=seed,
        scale=1.0 if bounded or of == "mean" else 100.0,
        greatest=greatest,
        effective_units=int(effective_units),
    )
    if few:
        low, high, error, method = few
        estimate = replace(
            estimate, low=low, high=high, standard_error=error, method=method
        )
    left = int((~has_value).sum())
    description = (
        f"mean over {int((sizes > 0).sum())} values of '{over}'; {estimate.method}"
    )
    return replace(
        estimate,
        n=int(has_value.sum()),
        n_clusters=None if column.clusters is None else n_units,
        method=f"{description}; {left:,} samples without one left out"
        if left
        else description,
    )


def _slice_codes(column: Column, over: str) -> tuple[NDArray[np.int64], int]:
    """Return each item's value of the slice as a code, -1 for none, and the number of values."""
    import numpy as np

    if over not in column.slices:
        raise ConfigurationError(
            f"The slice '{over}' is not known of these scores: name it under the task's"
            f" `slices`, and give samples a metadata key '{over}' with at most 200"
            " values."
        )
    codes, names = column.slices[over]
    return np.asarray(codes, np.int64), max(len(names), 1)


vars(macro)["check_options"] = lambda options: _check(
    options.get("of", "accuracy"), bounded=True
)
vars(macro_score)["check_options"] = lambda options: _check(
    options.get("of", "mean"), bounded=False
)
vars(chance_normalised)["check_options"] = _check_chance
