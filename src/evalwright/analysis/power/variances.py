"""How much the scores of a task vary: assumed, measured on runs, or in the worst case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.power.forecasts import Amount
from evalwright.analysis.power.settings import Aim
from evalwright.analysis.words import counted
from evalwright.runs.measurements import Measured
from evalwright.statistics import mean_interval
from evalwright.statistics.power import (
    Limits,
    cluster_correlation,
    cluster_weight,
    design_effect,
    difference_variance,
    score_variance,
)

ASSUMED = "assumed"
WORST = "worst case: nothing has been measured"


@dataclass(frozen=True, slots=True)
class Variances:
    """The variances of one task's scores.

    Args:
        score: the mean score.
        single: the variance of one item's score.
        paired: the variance of one item's difference between two models.
        design: the design effect of clusters.
        binary: whether scores are right or wrong, so that a difference needs discordant items.
        half: half the width of one model's interval with a single item; with n items it is this
            divided by sqrt(n).
    """

    score: Amount
    single: Amount
    paired: Amount
    design: Amount
    binary: bool
    half: Amount | None


class CommonItems(NamedTuple):
    """Items that two runs share, in the order of the first: scores (n,) and cluster codes (n,)."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    clusters: NDArray[np.int64] | None
    names: str


def _find_common_items(a: Measured, b: Measured) -> CommonItems:
    places = {name: index for index, name in enumerate(b.ids)}
    index_pairs = [
        (index, places[name]) for index, name in enumerate(a.ids) if name in places
    ]
    left, right = np.array(index_pairs, dtype=np.int64).reshape(-1, 2).T
    codes = None if a.clusters is None else a.clusters[left]
    names = (
        (a.run.label, b.run.label)
        if a.run.label != b.run.label
        else (a.run.id, b.run.id)
    )
    return CommonItems(
        a.means[left], b.means[right], codes, f"{names[0]} and {names[1]}"
    )


def measure_variances(
    bounded: bool,
    clusters: NDArray[np.int64] | None,
    sources: Sequence[Measured],
    aim: Aim,
    compared: str = "two models",
) -> Variances:
    """Determine the variances of a task.

    Args:
        bounded: whether scores are between 0 and 1.
        clusters: a code for each item of the whole task; None without clusters.
        sources: measurements of the task.
        aim: the aim, with assumptions.
        compared: what differences are between, in words.
    """
    commons = [_find_common_items(a, b) for a, b in combinations(sources, 2)]
    score, single, half = _single_variance(bounded, clusters, sources, aim)
    right_or_wrong = all(
        np.isin(source.means[~np.isnan(source.means)], (0.0, 1.0)).all()
        for source in sources
    )
    paired = _paired_variance(bounded, commons, single, aim, compared)
    design = _design_effect(clusters, sources, commons, aim)
    binary = bounded and "variance" not in aim.assumed and right_or_wrong
    return Variances(score, single, paired, design, binary, half)


def _measured_basis(n: int, names: str, aim: Aim) -> str:
    """Describe what a measured number is based on."""
    return f"measured on {counted(n, 'item')} of {names}, {100 * aim.level:g}% limits"


def _largest(amounts: Sequence[Amount]) -> Amount | None:
    return max(amounts, key=lambda amount: amount.value or 0.0) if amounts else None


def _single_variance(
    bounded: bool,
    clusters: NDArray[np.int64] | None,
    sources: Sequence[Measured],
    aim: Aim,
) -> tuple[Amount, Amount, Amount | None]:
    """Determine the mean score, the variance of one item's score, and `Variances.half`.

    With several runs, those of the run that varies most.
    """
    if "accuracy" in aim.assumed and bounded:
        p = aim.assumed["accuracy"]
        return (
            Amount(p, basis=ASSUMED),
            Amount(p * (1 - p), basis=f"accuracy {p:g}, {ASSUMED}"),
            None,
        )
    value_range = (0.0, 1.0) if bounded else None
    candidates = []
    for source in sources:
        means = source.means
        ids = source.clusters
        limits = score_variance(
            means, clusters=ids, value_range=value_range, level=aim.level
        )
        estimate = mean_interval(
            means, clusters=ids, value_range=value_range, level=aim.level
        )
        basis = _measured_basis(estimate.n, source.run.label, aim)
        variance = _amount_of(limits, basis)
        if variance is not None:
            low = _finite_or_none(estimate.low)
            high = _finite_or_none(estimate.high)
            half = None
            if (
                low is not None
                and high is not None
                and "design_effect" not in aim.assumed
            ):
                of_one_item = (
                    (high - low)
                    / 2
                    * math.sqrt(len(means) * clustering_ratio(means, ids, clusters))
                )
                scale = variance.value or 1.0
                least, most = (
                    of_one_item * math.sqrt(end / scale) if end else None
                    for end in (variance.low, variance.high)
                )
                half = Amount(of_one_item, least, most, basis)
            candidates.append(
                (variance, Amount(estimate.value, low, high, basis), half)
            )
    if candidates:
        variance, score, half = max(
            candidates, key=lambda candidate: candidate[0].value or 0.0
        )
        return score, variance, half
    if bounded:
        return (
            Amount(0.5, 0.0, 1.0, WORST),
            Amount(0.25, basis=f"{WORST}: half of the answers right"),
            None,
        )
    unknown = Amount(
        None,
        basis=(
            "scores of this metric have no limits, so their variance can only be"
            " measured on runs"
        ),
    )
    return unknown, unknown, None


def clustering_ratio(
    values: NDArray[np.float64],
    ids: NDArray[np.int64] | None,
    clusters: NDArray[np.int64] | None,
) -> float:
    """The design effect of the whole task's clusters over that of the measured items.

    A sample of a task has smaller clusters than the whole; the correlation within them is the same.

    Args:
        values: the measured scores.
        ids: clusters of the measured items.
        clusters: clusters of the whole task.
    """
    if ids is None or clusters is None:
        return 1.0
    rho = cluster_correlation(values, ids).value
    if math.isnan(rho):
        return 1.0
    return design_effect(rho, cluster_weight(clusters)) / design_effect(
        rho, cluster_weight(ids)
    )


def _paired_variance(
    bounded: bool,
    commons: Sequence[CommonItems],
    single: Amount,
    aim: Aim,
    compared: str,
) -> Amount:
    if "variance" in aim.assumed:
        return Amount(aim.assumed["variance"], basis=ASSUMED)
    if "discordant" in aim.assumed:
        share = aim.assumed["discordant"]
        return Amount(
            share, basis=f"{100 * share:g}% of the items discordant, {ASSUMED}"
        )
    amounts = []
    span = (0.0, 1.0) if bounded else None
    for common in commons:
        limits = difference_variance(
            common.a,
            common.b,
            aim.difference,
            clusters=common.clusters,
            value_range=span,
            level=aim.level,
        )
        n_common = int(np.count_nonzero(~np.isnan(common.a - common.b)))
        amount = _amount_of(limits, _measured_basis(n_common, common.names, aim))
        amounts += [amount] if amount else []
    basis = (
        f"{compared} that err independently; {single.basis}"
        if single.is_known
        else single.basis
    )
    return _largest(amounts) or single.times(2.0).because(basis)


def _design_effect(
    clusters: NDArray[np.int64] | None,
    sources: Sequence[Measured],
    commons: Sequence[CommonItems],
    aim: Aim,
) -> Amount:
    if "design_effect" in aim.assumed:
        return Amount(aim.assumed["design_effect"], basis=ASSUMED)
    weight = 1.0 if clusters is None else cluster_weight(clusters)
    if weight == 1.0:
        return Amount(1.0, basis="no clusters")
    seen = [(common.a - common.b, common.clusters, common.names) for common in commons]
    seen = seen or [
        (source.means, source.clusters, source.run.label) for source in sources
    ]
    amounts = []
    for values, ids, names in seen:
        limits = (
            None if ids is None else cluster_correlation(values, ids, level=aim.level)
        )
        if limits is not None and not math.isnan(limits.value):
            effect, low, high = (
                design_effect(correlation, weight)
                for correlation in (limits.value, limits.low, limits.high)
            )
            basis = (
                f"correlation within clusters {limits.value:.2f},"
                f" {_measured_basis(len(values), names, aim)}"
            )
            amounts.append(Amount(effect, low, high, basis))
    return _largest(amounts) or Amount(
        weight, 1.0, weight, "worst case: items of one cluster are identical"
    )


def _amount_of(limits: Limits, basis: str) -> Amount | None:
    """Convert limits to an amount; None if they are unknown.

    If no variance was seen, the upper limit is used.
    """
    if math.isnan(limits.value) or (limits.value == 0.0 and math.isnan(limits.high)):
        return None
    if limits.value == 0.0:
        basis = f"{basis}; no variance was seen, so the upper limit is used"
        return Amount(limits.high, limits.low, limits.high, basis)
    return Amount(
        limits.value, _finite_or_none(limits.low), _finite_or_none(limits.high), basis
    )


def _finite_or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None
