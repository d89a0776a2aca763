"""How much the scores of a task vary, and what that rests on: an assumption, runs, or the worst case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from evalwright.analysis.forecasts import Amount
from evalwright.analysis.power.settings import Wanted
from evalwright.core.words import counted
from evalwright.statistics import mean_interval
from evalwright.statistics.power import (
    Limits,
    cluster_correlation,
    cluster_weight,
    design_effect,
    difference_variance,
    discordant_variance,
    score_variance,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.runs.measurements import Measured

ASSUMED = "assumed"
WORST = "worst case, nothing is known"


@dataclass(frozen=True, slots=True)
class Variances:
    """Mean score, variance of one item's score and of one item's difference of two models, and the design effect.

    counts: whether the paired variance is that of right-or-wrong scores, so that a difference needs discordant items.
    """

    score: Amount
    single: Amount
    paired: Amount
    design: Amount
    counts: bool


@dataclass(frozen=True, slots=True)
class Common:
    """Items that two runs both have: scores (n,) of each, and cluster codes or None."""

    a: NDArray[np.float64]
    b: NDArray[np.float64]
    clusters: NDArray[np.int64] | None
    names: str


def variances_of(
    bounded: bool,
    clusters: NDArray[np.int64] | None,
    sources: Sequence[Measured],
    assumed: Mapping[str, float],
    wanted: Wanted,
) -> Variances:
    """The spread of a task. clusters: a code per item of the whole task, None where every item is alone."""
    commons = [common_items(a, b) for a, b in combinations(sources, 2)]
    score, single = _single(bounded, sources, assumed, wanted)
    paired = _paired(bounded, commons, single, assumed, wanted)
    design = _design(clusters, sources, commons, assumed, wanted)
    counts = bounded and "variance" not in assumed and all(_counted(source) for source in sources)
    return Variances(score, single, paired, design, counts)


def common_items(a: Measured, b: Measured) -> Common:
    """The items that both runs have, in the order of the first."""
    import numpy as np

    places = {name: place for place, name in enumerate(b.ids)}
    pairs = [(place, places[name]) for place, name in enumerate(a.ids) if name in places]
    left = np.array([pair[0] for pair in pairs], dtype=np.int64)
    right = np.array([pair[1] for pair in pairs], dtype=np.int64)
    codes = None if a.clusters is None else a.clusters[left]
    return Common(a.means[left], b.means[right], codes, f"{a.run.label} and {b.run.label}")


def on_items(n: int, names: str, level: float) -> str:
    """What a measured number rests on, in words."""
    return f"measured on {counted(n, 'item')} of {names}, {100 * level:g}% limits"


def _single(
    bounded: bool, sources: Sequence[Measured], assumed: Mapping[str, float], wanted: Wanted
) -> tuple[Amount, Amount]:
    """Mean score and variance of one item's score; of several runs those of the one that varies most."""
    if "accuracy" in assumed and bounded:
        p = assumed["accuracy"]
        return Amount(p, basis=ASSUMED), Amount(p * (1 - p), basis=f"accuracy {p:g}, {ASSUMED}")
    value_range = (0.0, 1.0) if bounded else None
    found = []
    for source in sources:
        means, ids = source.means, source.clusters
        limits = score_variance(means, clusters=ids, value_range=value_range, level=wanted.level)
        estimate = mean_interval(means, clusters=ids, value_range=value_range, level=wanted.level)
        basis = on_items(estimate.n, source.run.label, wanted.level)
        variance = _amount(limits, basis)
        if variance is not None:
            low, high = _finite(estimate.low), _finite(estimate.high)
            found.append((variance, Amount(estimate.value, low, high, basis)))
    if found:
        variance, score = max(found, key=lambda pair: pair[0].value or 0.0)
        return score, variance
    if bounded:
        return Amount(0.5, 0.0, 1.0, WORST), Amount(0.25, basis=f"{WORST}: half of the answers right")
    unknown = "scores of this metric have no limits, so only runs of it can say how much they vary"
    return Amount(None, basis=unknown), Amount(None, basis=unknown)


def _paired(
    bounded: bool, commons: Sequence[Common], single: Amount, assumed: Mapping[str, float], wanted: Wanted
) -> Amount:
    if "variance" in assumed:
        return Amount(assumed["variance"], basis=ASSUMED)
    if "discordant" in assumed:
        share = assumed["discordant"]
        value = float(discordant_variance(share, min(wanted.difference, share)))
        return Amount(value, basis=f"{100 * share:g}% of the items discordant, {ASSUMED}")
    found = []
    for common in commons:
        limits = difference_variance(
            common.a,
            common.b,
            wanted.difference,
            clusters=common.clusters,
            value_range=(0.0, 1.0) if bounded else None,
            level=wanted.level,
        )
        amount = _amount(limits, on_items(_both(common), common.names, wanted.level))
        if amount is not None:
            found.append(amount)
    if found:
        return max(found, key=lambda amount: amount.value or 0.0)
    basis = f"two models that err independently; {single.basis}" if single.known else single.basis
    return single.times(2.0).because(basis)


def _design(
    clusters: NDArray[np.int64] | None,
    sources: Sequence[Measured],
    commons: Sequence[Common],
    assumed: Mapping[str, float],
    wanted: Wanted,
) -> Amount:
    if "design_effect" in assumed:
        return Amount(assumed["design_effect"], basis=ASSUMED)
    weight = 1.0 if clusters is None else cluster_weight(clusters)
    if weight == 1.0:
        return Amount(1.0, basis="every item is alone")
    seen = [(common.a - common.b, common.clusters, common.names) for common in commons]
    seen = seen or [(source.means, source.clusters, source.run.label) for source in sources]
    found = []
    for values, ids, names in seen:
        if ids is None:
            continue
        limits = cluster_correlation(values, ids, level=wanted.level)
        if not math.isnan(limits.value):
            value, low, high = (design_effect(x, weight) for x in (limits.value, limits.low, limits.high))
            basis = f"correlation within clusters {limits.value:.2f}, {on_items(len(values), names, wanted.level)}"
            found.append(Amount(value, low, high, basis))
    if found:
        return max(found, key=lambda amount: amount.value or 0.0)
    return Amount(weight, 1.0, weight, "worst case: items of one cluster are alike")


def _amount(limits: Limits, basis: str) -> Amount | None:
    """Limits as an amount. Where no spread was seen, the upper limit is what counts; None where there is nothing."""
    if math.isnan(limits.value) or (limits.value == 0.0 and math.isnan(limits.high)):
        return None
    if limits.value == 0.0:
        return Amount(
            limits.high, limits.low, limits.high, f"{basis}; no spread was seen, so the upper limit counts"
        )
    return Amount(limits.value, _finite(limits.low), _finite(limits.high), basis)


def _counted(source: Measured) -> bool:
    """Whether all items of a run are right or wrong."""
    import numpy as np

    means = source.means
    return bool((np.isnan(means) | (means == 0.0) | (means == 1.0)).all())


def _both(common: Common) -> int:
    import numpy as np

    return int(np.count_nonzero(~np.isnan(common.a - common.b)))


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None
