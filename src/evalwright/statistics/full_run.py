"""Predicts, after the first n of N pairs, what the comparison of all N pairs will conclude.

A benchmark has N items, so the comparison at its end is a fact about a finite list, of which
the first n items in random order are a draw without replacement. A run may stop as soon as
every outcome that the draw has not refuted leads to the same verdict; the chance that the full
run would have said something else is at most alpha, however often one looks. This is sharper
than asking whether the models differ on items like these, needs no such assumption about the
items, and can also tell when "no difference seen" is all that the rest of the run could add.

Independent right-or-wrong items: exact. The full run's verdict depends on D, the number of
discordant items among N, and W, those that only a got right. D gets a confidence sequence
(`kept_counts`) with a tenth of alpha; for each D in it, those W are dropped that the wins among
the discordant items refute. Each (W, D) has one bet against it for the whole run, which is
weighted towards the side where the verdict would change next, so the truth is ever dropped with
probability at most alpha.

Anything else (graded, repeated draws, clusters): asymptotic confidence sequences without
replacement for the final difference and (with a tenth of alpha) for its final standard error.

`kept_counts`: how many of all N items will have a property, after the first n of them in random
order; exact, at every n. For every number K that is still possible, the items seen are a draw
without replacement from N items of which K have it. A bet against K (a mixture of shares around
K / N) divided by the exact probability under K is a martingale if K is true, so it ever reaches
1 / alpha with probability at most alpha; what it has not refuted makes the confidence sequence.
At n = N only the true K is left.

Source: Waudby-Smith & Ramdas (2020), "Confidence sequences for sampling without replacement"
(the martingale as a ratio of a mixture and the hypergeometric likelihood; here the mixture is
centred on the number it bets against).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import normal_quantile, t_quantile
from evalwright.statistics.confidence_sequences import asymptotic_half_width
from evalwright.statistics.pairwise import ADDED, mid_p_deviate
from evalwright.statistics.units import F64

Settled = Literal["a better", "b better", "no difference seen", "open"]

NUISANCE = 0.1
"""Share of alpha spent on nuisance parameters: the number of discordant items, the variance."""
_STAKE = 0.85
_FEWEST_UNITS = 30
_FEWEST_DIFFERING = 8


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the full run will conclude: a verdict, or "open" if undecided, and its interval."""

    verdict: Settled
    low: float
    high: float


def least_wins(discordant: F64, level: float) -> F64:
    """The fewest wins with which `compare_paired` says "better", by number of discordant items.

    The test at 0 rejects where w - l > z sqrt(w + l + 1/2) or McNemar's mid-p does.

    Args:
        discordant: (m,), numbers of discordant items D.
        level: confidence level of the comparison.

    Returns:
        (m,) whole numbers; D + 1 where even D wins would not be enough.
    """
    d = np.asarray(discordant, dtype=np.float64)
    critical = normal_quantile(0.5 + level / 2)
    least: F64 = np.minimum(
        np.floor((d + critical * np.sqrt(d + 2 * ADDED)) / 2) + 1, d + 1
    )
    while True:
        fewer = least - 1
        enough = (2 * fewer > d) & (mid_p_deviate(fewer, d - fewer) > critical)
        if not enough.any():
            return least
        least = np.where(enough, fewer, least)


def binary_outlook(
    wins: int,
    losses: int,
    n: int,
    n_total: int,
    *,
    level: float = 0.95,
    alpha: float = 0.05,
    interval: bool = True,
    directed: bool = True,
) -> Outlook:
    """Predict the verdict of the full run over right-or-wrong pairs, after the first `n` of them.

    Args:
        wins: items so far that only a got right.
        losses: items so far that only b got right.
        n: pairs so far.
        n_total: pairs in the full run.
        level: confidence level of the full run's comparison.
        alpha: the chance that the verdict (or the interval) is ever wrong.
        interval: False where only the verdict is needed, which is faster.
        directed: bet on the side that would change the verdict; without it verdict and interval
            come from the same bet, so that both together are wrong with probability at most alpha.
    """
    seen = wins + losses
    spread = np.array([float(seen + round((n_total - n) * (seen / n if n else 0.5)))])
    quick = _verdict(wins, seen, spread, n_total, level, alpha, directed)
    if quick == "open" and not interval:
        return Outlook("open", math.nan, math.nan)
    fewest, most = kept_counts(
        seen, n, np.array([float(n_total)]), alpha * NUISANCE, max(1.0, n_total / 24)
    )
    totals = np.arange(fewest[0], most[0] + 1.0)
    share = alpha * (1 - NUISANCE)
    verdict = (
        quick
        if quick == "open"
        else _verdict(wins, seen, totals, n_total, level, share, directed)
    )
    if not interval:
        return Outlook(verdict, math.nan, math.nan)
    least, greatest = kept_counts(wins, seen, totals, share, _weight(totals))
    low = float((2 * least - totals).min())
    high = float((2 * greatest - totals).max())
    return Outlook(verdict, low / n_total, high / n_total)


def _weight(totals: F64) -> F64:
    return np.maximum(1.0, totals / 24)


def _verdict(
    wins: int,
    seen: int,
    totals: F64,
    n_total: int,
    level: float,
    alpha: float,
    directed: bool,
) -> Settled:
    """The verdict that all unrefuted numbers of wins lead to, or "open" if they disagree.

    Every number of discordant items in `totals` has to lead to it.
    """
    bar = -math.log(alpha)
    a_wins = least_wins(totals, level)
    b_wins = totals - a_wins
    weight = _weight(totals)

    def refuted(candidate: F64) -> bool:
        inside = (candidate >= 0) & (candidate <= totals)
        w = np.clip(candidate, 0, totals)
        stake = _stake_share(w, totals, a_wins, b_wins) if directed else 0.5
        return bool(
            (log_evidence(wins, seen, w, totals, weight, stake)[inside] >= bar).all()
        )

    # Evidence grows with the distance, so of each range with one stake the number nearest to the
    # observed rate decides.
    rate = wins / seen if seen else 0.5
    if (rate * totals >= a_wins).all():
        settled = (
            refuted(a_wins - 1)
            and refuted(np.ceil(totals / 2))
            and refuted(np.ceil(totals / 2) - 1)
        )
        return "a better" if settled else "open"
    if (rate * totals <= b_wins).all():
        settled = (
            refuted(b_wins + 1)
            and refuted(np.floor(totals / 2))
            and refuted(np.floor(totals / 2) + 1)
        )
        return "b better" if settled else "open"
    return "no difference seen" if refuted(a_wins) and refuted(b_wins) else "open"


def _stake_share(w: F64, totals: F64, a_wins: F64, b_wins: F64) -> F64:
    """The share of the stake on more wins than w, the rest being on fewer.

    Where w means "no difference seen" the larger share is away from the middle, elsewhere towards
    it.
    """
    inside = (w < a_wins) & (w > b_wins)
    stakes_on_more = np.where(inside, w > totals / 2, w <= b_wins)
    return np.where(w == totals / 2, 0.5, np.where(stakes_on_more, _STAKE, 1 - _STAKE))


def graded_outlook(
    differences: F64,
    sizes: F64,
    n_units: int,
    n_items: float | None = None,
    *,
    level: float = 0.95,
    alpha: float = 0.05,
) -> Outlook:
    """Predict the verdict of the full run's t test after the first units.

    Asymptotic: "open" with fewer than 30 units or 8 that differ from the mean, and the variance
    always includes one extra unit, as far off as the farthest one seen.

    Args:
        differences: (g,), the sum of a - b over the items of each unit so far.
        sizes: (g,), the number of items of each.
        n_units: units in the full run.
        n_items: items in the full run, where known.
        level: confidence level of the full run's comparison.
        alpha: the chance that the verdict (or the interval) is ever wrong.

    Returns:
        The verdict, and the interval of the mean difference over all items.
    """
    g = len(differences)
    if g == 0:
        return Outlook("open", math.nan, math.nan)
    mean_size = float(sizes.mean()) if n_items is None else n_items / n_units
    mean = float(differences.sum() / sizes.sum())
    if g >= n_units:
        return Outlook("open", mean, mean)
    residuals = differences - mean * sizes
    squares = residuals * residuals
    if g < _FEWEST_UNITS or np.count_nonzero(squares > 1e-24) < _FEWEST_DIFFERING:
        return Outlook("open", math.nan, math.nan)
    spread = math.sqrt(padded_variance(residuals))
    half = asymptotic_half_width(spread, g, n_units, alpha=alpha * (1 - NUISANCE))
    low = mean - half / mean_size
    high = mean + half / mean_size
    centre = float(squares.mean())
    wobble = math.sqrt(padded_variance(squares - centre))
    slack = asymptotic_half_width(wobble, g, n_units, alpha=alpha * NUISANCE)
    scale = t_quantile(0.5 + level / 2, n_units - 1) / (
        mean_size * math.sqrt(n_units - 1.0)
    )
    least = scale * math.sqrt(max(centre - slack, 0.0))
    most = scale * math.sqrt(centre + slack)
    if low > most:
        return Outlook("a better", low, high)
    if high < -most:
        return Outlook("b better", low, high)
    settled = high < least and low > -least
    return Outlook("no difference seen" if settled else "open", low, high)


def padded_variance(residuals: F64) -> float:
    """The variance of centred `residuals` (g,), with the largest square counted twice."""
    squares = residuals * residuals
    return float(squares.sum() + squares.max()) / len(squares)


# -- finite counts ---------------------------------------------------------------------


OPTIMUM = 7.93
"""The value of -2 log a + log(-2 log a + 1) at a = 0.05.

A mixture with the weight of n / 7.93 items bets best near n items.
"""


def log_evidence(
    k: float | F64, n: float, among: F64, total: F64, weight: F64, up: F64 | float = 0.5
) -> F64:
    """Log of the wealth of the bet against "K of the N items count" after k of n counted.

    The mixture is Beta(weight K/N, weight (1 - K/N)), with K/N kept off 0 and 1.

    Args:
        k: counting items seen, a number or an array.
        n: items seen.
        among: the candidates K.
        total: N, of the same shape.
        weight: concentration of the mixture, of the same shape.
        up: share of the stake on shares above K/N.

    Returns:
        An array of that shape; +inf where K is impossible.
    """
    from scipy.special import betaincc, betaln, gammaln

    missed = n - k
    possible = (among >= k) & (total - among >= missed)
    n_counting = np.where(possible, among, k)
    n_others = np.where(possible, total - among, missed)
    n_items = n_counting + n_others
    likelihood = (
        gammaln(n_counting + 1)
        - gammaln(n_counting - k + 1)
        + gammaln(n_others + 1)
        - gammaln(n_others - missed + 1)
        - gammaln(n_items + 1)
        + gammaln(n_items - n + 1)
    )
    centre = (n_counting + 0.5) / (n_items + 1.0)
    a = weight * centre
    b = weight * (1.0 - centre)
    mixture = betaln(a + k, b + missed) - betaln(a, b)
    if not (isinstance(up, float) and up == 0.5):
        prior = betaincc(a, b, centre)
        posterior = betaincc(a + k, b + missed, centre)
        share = up * posterior / prior + (1.0 - up) * (1.0 - posterior) / (1.0 - prior)
        mixture = mixture + np.log(np.maximum(share, 1e-300))
    return np.where(possible, mixture - likelihood, np.inf)


def kept_counts(
    k: int, n: int, total: npt.ArrayLike, alpha: float, weight: npt.ArrayLike
) -> tuple[F64, F64]:
    """The least and greatest K that the first n items, k of which counted, do not refute.

    Bisection on both sides of the most likely K, O(log N) steps for all N at once.

    Args:
        k: counting items seen.
        n: items seen.
        total: (m,), values of N, each at least n.
        alpha: the chance that the true K is ever refuted.
        weight: concentration of the mixture, a number or (m,).

    Returns:
        Two arrays (m,).
    """
    totals = np.asarray(total, dtype=np.float64)
    weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), totals.shape)
    bar = -math.log(alpha)
    share = k / n if n else 0.5
    middle = np.clip(np.round(share * totals), k, totals - (n - k))
    ends = []
    for limit in (np.full_like(totals, float(k)), totals - float(n - k)):
        inside = middle.copy()
        outside = limit.copy()
        is_decided = log_evidence(k, n, limit, totals, weights) < bar
        inside = np.where(is_decided, limit, inside)
        for _ in range(max(1, math.ceil(math.log2(float(totals.max()) + 2.0)))):
            half = np.trunc((inside + outside) / 2)
            keep = log_evidence(k, n, half, totals, weights) < bar
            inside = np.where(keep, half, inside)
            outside = np.where(keep, outside, half)
        ends.append(inside)
    return ends[0], ends[1]
