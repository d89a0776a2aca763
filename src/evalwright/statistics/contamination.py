"""A test of memorised benchmarks: the score drop on perturbed items, minus that of control items.

A rephrased item may simply be harder. Control items, which the model cannot have seen, are
perturbed in the same way and show how much harder. If the benchmark's items drop by more than
that (difference in differences), the benchmark may be contaminated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level, t_quantile, t_two_sided
from evalwright.statistics.intervals import filled
from evalwright.statistics.paired import PairedComparison, compare_paired
from evalwright.statistics.pairwise import MissingPolicy
from evalwright.statistics.units import (
    Clusters,
    Range,
    cluster_ids,
    cluster_spread,
    row_means,
    score_matrix,
)


@dataclass(frozen=True, slots=True)
class ContaminationCheck(Plain):
    """The drops on the benchmark's items and on control items, and their difference.

    Attributes:
        drop: original minus perturbed score on the benchmark.
        control_drop: the same on control items.
        excess: `drop` minus `control_drop`.
        low: low end of the interval of the excess.
        high: its high end.
        level: confidence level.
        p_value: two-sided, of an excess of 0.
        standard_error: of the excess; None where the data show none.
        suspicious: whether the interval is above 0 and p_value < 1 - level. It is a reason to
            investigate, not a proof.
        method: how the interval was computed.
    """

    drop: PairedComparison
    control_drop: PairedComparison
    excess: float
    low: float
    high: float
    level: float
    p_value: float
    standard_error: float | None
    suspicious: bool
    method: str


def contamination_check(
    original: npt.ArrayLike,
    perturbed: npt.ArrayLike,
    control_original: npt.ArrayLike,
    control_perturbed: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    control_clusters: Clusters = None,
    missing_policy: MissingPolicy = "scored",
    value_range: Range | None = (0.0, 1.0),
    level: float = 0.95,
) -> ContaminationCheck:
    """Test for contamination by the difference in differences of scores, item by item.

    Welch's t where no cluster is on both sides, else t with the number of clusters minus 1 as
    degrees of freedom.

    Args:
        original: (n,) or (n, draws), scores on the benchmark's items; nan is missing.
        perturbed: the same items, perturbed.
        control_original: (m,) or (m, draws), scores on control items.
        control_perturbed: the same items, perturbed.
        clusters: (n,) integers; items that share one are not independent.
        control_clusters: (m,); an id that is also in `clusters` (a passage with items of both
            kinds) is the same cluster.
        missing_policy: "scored" leaves missing items out; with "worst-case", interval, p-value and
            verdict hold whatever they would have scored.
        value_range: the least and greatest possible score.
        level: confidence level of the interval.

    Raises:
        ValueError: as `compare_paired`.
    """
    check_level(level)
    sides = original, perturbed, control_original, control_perturbed

    groups = clusters, control_clusters
    scored_check = _check_scored(sides, groups, value_range, level)
    if (
        missing_policy == "scored"
        or not scored_check.drop.n_missing + scored_check.control_drop.n_missing
    ):
        return scored_check
    if value_range is None:
        return replace(
            scored_check,
            low=math.nan,
            high=math.nan,
            p_value=math.nan,
            suspicious=False,
        )
    low, high = value_range
    columns = [scored_check]
    for seen_end, unseen_end in ((low, high), (high, low)):
        ends = seen_end, unseen_end, unseen_end, seen_end
        filled_sides = [
            filled(side, end) for side, end in zip(sides, ends, strict=True)
        ]
        columns.append(_check_scored(filled_sides, groups, value_range, level))
    least = min(check.low for check in columns)
    most = max(check.high for check in columns)
    p_value = (
        max(check.p_value for check in columns)
        if len({check.excess > 0 for check in columns}) == 1
        else 1.0
    )
    suspicious = all(check.suspicious for check in columns)
    return replace(
        scored_check, low=least, high=most, p_value=p_value, suspicious=suspicious
    )


def _check_scored(
    sides: Sequence[npt.ArrayLike],
    groups: tuple[Clusters, Clusters],
    value_range: Range | None,
    level: float,
) -> ContaminationCheck:
    """Run the test on the scored items.

    `sides` are the first four arguments of the public function.
    """
    drop, control = (
        compare_paired(*pair, clusters=ids, value_range=value_range, level=level)
        for pair, ids in zip((sides[:2], sides[2:]), groups, strict=True)
    )
    excess = drop.difference - control.difference
    if drop.n == 0 or control.n == 0:
        none = "none: one side has no item with both scores"
        return ContaminationCheck(
            drop,
            control,
            math.nan,
            math.nan,
            math.nan,
            level,
            math.nan,
            None,
            False,
            none,
        )
    seen_clusters, unseen_clusters = groups
    if (
        seen_clusters is not None
        and unseen_clusters is not None
        and np.isin(np.asarray(seen_clusters), np.asarray(unseen_clusters)).any()
    ):
        error, freedom, method = _joint_error(sides, (seen_clusters, unseen_clusters))
    else:
        error, freedom, method = _welch_error(drop, control)
    span = math.inf if value_range is None else 2 * (value_range[1] - value_range[0])
    if not error > 0:
        low = -span
        high = span
        p_value = math.nan
        if error != error:
            method = f"{method}: too few units for an interval"
    else:
        half = t_quantile(0.5 + level / 2, freedom) * error
        low = max(-span, excess - half)
        high = min(span, excess + half)
        p_value = t_two_sided(excess / error, freedom)
    return ContaminationCheck(
        drop=drop,
        control_drop=control,
        excess=excess,
        low=low,
        high=high,
        level=level,
        p_value=p_value,
        standard_error=error if error > 0 else None,
        suspicious=low > 0 and p_value < 1 - level,
        method=method,
    )


def _welch_error(
    drop: PairedComparison, control: PairedComparison
) -> tuple[float, float, str]:
    parts = [_squared_error(side) for side in (drop, control)]
    total = math.fsum(parts)
    freedom = [side.degrees_of_freedom for side in (drop, control)]
    if not min(freedom) > 0 or not total > 0:
        return math.nan, 1.0, "Welch t"
    pooled = math.fsum(part**2 / df for part, df in zip(parts, freedom, strict=True))
    clustered = drop.n_clusters is not None or control.n_clusters is not None
    return (
        math.sqrt(total),
        total**2 / pooled if pooled > 0 else math.inf,
        "clustered Welch t" if clustered else "Welch t",
    )


def _squared_error(side: PairedComparison) -> float:
    """The squared standard error of a drop.

    Where the differences have no spread, it is derived from the width of their conservative
    interval.
    """
    if side.standard_error is not None:
        return side.standard_error**2
    if not side.degrees_of_freedom > 0:
        return math.nan
    reach = t_quantile(0.5 + side.level / 2, side.degrees_of_freedom)
    return float(((side.high - side.low) / 2 / reach) ** 2)


def _joint_error(
    sides: Sequence[npt.ArrayLike], groups: tuple[npt.ArrayLike, npt.ArrayLike]
) -> tuple[float, float, str]:
    """The standard error with clusters on both sides, from influences summed by cluster."""
    pulls = []
    ids = []
    for first, second, group, sign in zip(
        sides[::2], sides[1::2], groups, (1.0, -1.0), strict=True
    ):
        gaps = row_means(score_matrix(first)) - row_means(score_matrix(second))
        has_gap = ~np.isnan(gaps)
        gaps = gaps[has_gap]
        pulls.append(sign * (gaps - gaps.mean()) / len(gaps))
        ids.append(cluster_ids(group, len(has_gap))[has_gap])
    _, codes = np.unique(np.concatenate(ids), return_inverse=True)
    all_pulls = np.concatenate(pulls)
    sums = np.bincount(codes, weights=all_pulls)
    sizes = np.bincount(codes).astype(np.float64)
    if len(sums) < 2:
        return math.nan, 1.0, "clustered t"
    n = np.float64(len(all_pulls))
    error, freedom, _ = cluster_spread(
        sums * n, sizes, n, np.float64(np.dot(all_pulls, all_pulls)) * n**2
    )
    return (
        float(error),
        max(float(freedom), 1.0),
        f"clustered t (G={len(sums)}, some on both sides)",
    )
