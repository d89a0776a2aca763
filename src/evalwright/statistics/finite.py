"""Exactly these items: what sampling n of a benchmark's N items leaves open.

The usual interval speaks of items like these. For the score on a fixed benchmark of N items, of which n were drawn at
random without replacement, the items not drawn are the only unknown: the variance gets the factor 1 - n/N (Cochran
1977, chapter 2). What random draws of the model add does not shrink with it: with item means of K draws, variance s_b^2
and draw variance sigma^2, Var = ((1 - f) s_b^2 + f sigma^2 / K) / n with f = n/N (two-stage sampling, Cochran 1977,
chapter 10). At n = N this is the noise of the draws alone.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from evalwright.statistics.estimate import Estimate
from evalwright.statistics.units import Units, standard_error, variance_components


def check_population(population: int, n: int) -> None:
    """Raise ValueError unless `population` is a whole number of items that can hold the n that were scored."""
    if isinstance(population, bool) or not isinstance(population, (int, np.integer)):
        raise ValueError(f"population must be a whole number of items, but is {population!r}")
    if population < max(n, 1):
        raise ValueError(
            f"population must be at least the {n} items that were scored, but is {population}; "
            "it is the number of items from which they were drawn"
        )


def within_population(
    estimate: Estimate, units: Units, population: int, value_range: tuple[float, float] | None
) -> Estimate:
    """`estimate` of the mean over items like these as one over exactly these `population` items.

    Both ends come nearer by the same factor, which for a t interval is exact. Where one unit alone was scored its whole
    range stays, unless it is the whole population. With one draw an item the scores seen also limit the mean: the
    items not scored can do no more than get the least or the greatest score. And a count of right answers moves in
    steps of one, so its interval is wider by half a step at both ends (a continuity correction: without it coverage
    falls to 88% at n = 50 of N = 100, with it it is 94% and more).
    """
    if units.n == 0:
        return estimate
    factor = _factor(units, population)
    if units.size == 1 and units.n < population:
        factor = 1.0
    error = estimate.standard_error
    if units.n == population and units.n == units.n_draws:
        error = 0.0  # nothing is left to draw, so this certainty is real
    elif error is not None:
        error *= factor
    low = estimate.value - factor * (estimate.value - estimate.low)
    high = estimate.value + factor * (estimate.high - estimate.value)
    if value_range is not None and units.scores.shape[1] == 1:
        bottom, top = value_range
        step = (top - bottom) / population if np.isin(units.scores[:, 0], value_range).all() else 0.0
        share = units.n / population
        low = max(low - step / 2, share * estimate.value + (1 - share) * bottom)
        high = min(high + step / 2, share * estimate.value + (1 - share) * top)
    return replace(
        estimate,
        low=min(low, estimate.value),
        high=max(high, estimate.value),
        standard_error=error,
        method=f"{estimate.method}; mean over exactly these {population:,} items, {units.n:,} scored",
    )


def _factor(units: Units, population: int) -> float:
    """The ratio of the standard errors: exactly these items to items like these."""
    share = units.n / population
    return math.sqrt(max(0.0, 1.0 - share + share * _draw_share(units)))


def _draw_share(units: Units) -> float:
    """The part of the squared standard error that is noise of the draws, 0..1; 0 where no item has two draws.

    Draws are independent even where items of a cluster are not, so in clusters their part is smaller.
    """
    if units.n_draws == units.n:
        return 0.0
    within = variance_components(units.scores).within
    error, _ = standard_error(units.means, units.codes, units.n_clusters)
    if math.isnan(error):  # one cluster: its items alone say how they vary
        error, _ = standard_error(units.means, None, None)
    if not error > 0 or math.isnan(within):
        return 1.0 if within > 0 or not units.n > 1 else 0.0
    counts = np.count_nonzero(~np.isnan(units.scores), axis=1)
    return min(1.0, within * float((1.0 / counts).mean()) / units.n / error**2)
