"""Whether a model has changed since its answers were first recorded, looked at as often as wished.

A fixed set of items is asked again at every round. A change after round k moves the rounds after
it away from those before it, and stays. Round t's mean (over the items, adjusted for those that
lack a score) scatters with variance v / w_t, where w_t is its number of scores. For every k the
likelihood ratio of "the rounds after k differ from those before by an unknown amount" against
"nothing has changed", with normal weights on the amount and inverse chi-squared ones on v, is

    e(k, t) = sqrt(c / (c + g)) ((A + S) / (A + S - Q g / (c + g)))^((d + t - 1) / 2)

S: weighted sum of squares of the rounds' means about their mean. Q: the part of S between the two
groups. c = 1 / W_before + 1 / W_after. g = T^2 / s^2, for T the size of a change that matters.
A = d s^2: what is known of v beforehand, d rounds' worth of the variance s^2 between repeats.

The mean before the change is removed, so it need not be known, and while nothing changes, e(k, t)
is a martingale in t (Lai & Xing 2010; Robbins 1970). A weighted mean over k is one, too, and
exceeds 1 / alpha with a chance of at most alpha, however often one looks (Ville 1939). This is
exact for rounds that scatter as those weights on v say, and nearly so where they all scatter more
than repeats do, because a server has good and bad days: the rounds themselves then show v. With
v known (d to infinity) a bad day would be a change. Days of another kind than all others are not
covered by any distribution of v, so that such days are moved to the edge of those about them, and
an alarm needs two rounds before the change and two since.

The items are fixed: a change is about these items, and the variance is that of repeating them,
not that of drawing others.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level
from evalwright.statistics.units import F64

SIZE_THAT_MATTERS = 0.03
"""The change of a mean for which the test is most powerful, as a share of the greatest one."""
PRIOR_FLIPS = 2.0
"""Flips that are added to those seen between repeats, because none seen does not mean none."""
NEGLIGIBLE_ITEMS = 1.0
"""Items that may change for good without an alarm: one may, of a model that never varies."""
FLOOR_ITEMS = 0.6
"""The least scatter of a round's sum of scores, in items: so few are no change of a model."""
PRIOR_DEGREES = 2.0
"""How many rounds' worth of scatter the variance between repeats counts for."""
ROUNDS_TO_CONFIRM = 2
"""Rounds before a change and since, for an alarm: one bad day is no change of the model."""
MIN_ROUNDS_TO_TRIM = 3
"""Differences of rounds from which on the largest is left out, as it may be the change."""
STEP_TO_DEVIATION = 1.0484
"""Standard deviation of a round as a multiple of the median step between two: 1 / (0.6745 √2)."""
CLIP_AT_DEVIATIONS = 3.0
"""Where a round that is unlike the rounds about it counts as a bad day."""
CLIP_WINDOW = 5
"""Rounds about a round, with itself: three bad ones among them are a change."""
FORECAST_ROUNDS = 8
"""Rounds within which a change should be seen, for the smallest change that can be seen."""
FORECAST_POWER = 0.8
"""How likely it should be seen."""
MIN_FORECAST_ROUNDS = 3
"""Rounds before the change that a forecast assumes at least."""
MATTERING_CHANGE = 0.04
"""A change that a maintainer wants to hear of, as a share of the greatest one."""
DAYS_DIFFER_FROM = 1.5
"""Standard deviation of rounds, relative to what repeats explain, that shows good and bad days."""
ITEM_NUMBERS = (20, 30, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1200, 1600)
"""Numbers of items of which one is advised."""
_FIT_STEPS = 30
_FORECAST_PATHS = 100
_FORECAST_STEPS = 10
_FORECAST_SEED = 0
_LARGEST_LOG = 500.0
"""Largest logarithm of a likelihood ratio that is not rounded down."""


@dataclass(frozen=True, slots=True)
class DriftLook:
    """What is known after a round.

    Attributes:
        evidence: the e-value; at 1 / alpha it is an alarm.
        since: the round from which on a change is most likely, counted from 1 for the first one
            after the baseline; 0 for none.
        change: mean of the rounds since then minus that of the rounds before; nan for none.
        low: low end of the change's interval; nan while there are too few rounds for one.
        high: its high end.
    """

    evidence: float
    since: int
    change: float
    low: float
    high: float


NO_LOOK = DriftLook(1.0, 0, math.nan, math.nan, math.nan)
"""What is known where too little has been asked to say anything."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The rounds of a fixed set of items.

    Attributes:
        looks: one for each round after the baseline.
        alarm: the first round with an alarm; None if there is none.
        alpha: the chance of a false alarm, ever.
        n_items: number of items.
        repeat_variance: variance of an item between repeats, averaged over items, at the last look.
        scores_by_round: the number of scores of each round, that of the baseline first.
        round_deviation: the standard deviation of the rounds' means; 0 for fewer than three rounds.
        size: the change for which the test is most powerful, in the unit of the scores.
        spread: the greatest possible difference of two scores.
    """

    looks: tuple[DriftLook, ...]
    alarm: int | None
    alpha: float
    n_items: int
    repeat_variance: float
    scores_by_round: tuple[float, ...] = ()
    round_deviation: float = 0.0
    size: float = SIZE_THAT_MATTERS
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class _Table:
    """The scores of rounds by item.

    Attributes:
        means: (rounds, items), mean over repeats; 0 where there is none.
        counts: (rounds, items), number of repeats with a score.
        squares: by round, sum of squares of repeats about their item's mean.
        degrees: by round, their degrees of freedom.
        step_squares: by round, half the sum of squares of the items' steps from the last round with
            scores to this one, about their mean.
        step_pairs: by round, their degrees of freedom.
    """

    means: F64
    counts: F64
    squares: F64
    degrees: F64
    step_squares: F64
    step_pairs: F64


def repeat_variance(repeats: npt.ArrayLike, *, spread: float = 1.0) -> float:
    """Estimate the variance of an item's score between repeats, averaged over items.

    Args:
        repeats: (repeats, items), nan is missing; items with fewer than two are left out.
        spread: the greatest possible difference of two scores.

    Raises:
        ValueError: no item has two repeats.
    """
    table = _tabulate([np.atleast_2d(np.asarray(repeats, np.float64))])
    if not table.degrees[0]:
        raise ValueError("the variation of the model itself needs items with repeats")
    return _with_prior(table.squares[0], table.degrees[0], spread)


def _with_prior(squares: float, degrees: float, spread: float) -> float:
    # A flip between two repeats adds half a squared difference.
    return float((squares + PRIOR_FLIPS * spread**2 / 2) / (degrees + PRIOR_FLIPS))


def detect_drift(
    baseline: npt.ArrayLike,
    rounds: Sequence[npt.ArrayLike],
    *,
    alpha: float = 0.05,
    size: float = SIZE_THAT_MATTERS,
    spread: float = 1.0,
    n_unchanged: int = 0,
) -> Drift:
    """Test after each round whether the mean over fixed items has changed, and stayed so.

    The variance is that between repeats within rounds; where no round has repeats, that between
    one round and the next.

    Args:
        baseline: the first round: (items,) or (repeats, items); nan is missing.
        rounds: in order of time, each (items,) or (repeats, items); nan is missing.
        alpha: the chance of ever giving a false alarm.
        size: the change that matters, as a share of `spread`.
        spread: the greatest possible difference of two scores, in their unit.
        n_unchanged: how many rounds after the baseline are known to be like it.

    Raises:
        ValueError: shapes differ.
    """
    check_level(alpha, "alpha")
    tables = [
        np.atleast_2d(np.asarray(scores, np.float64)) for scores in (baseline, *rounds)
    ]
    n_items = tables[0].shape[1]
    if any(scores.shape[1] != n_items for scores in tables):
        raise ValueError("baseline and rounds must have the same items")
    table = _tabulate(tables)
    is_complete = bool((table.counts == table.counts[:, :1]).all())
    looks: list[DriftLook] = []
    alarm = None
    variance = math.nan
    effects = weights = np.zeros(0)
    for number in range(1, len(tables)):
        so_far = slice(0, number + 1)
        variance = _variance(table, number + 1, spread)
        effects, weights = _round_effects(
            table.means[so_far], table.counts[so_far], is_complete=is_complete
        )
        floor = least_variance(float(weights.max()), n_items, spread)
        variance = max(variance, floor)
        look = _look(
            effects,
            weights,
            variance,
            size * spread,
            alpha,
            spread,
            negligible=NEGLIGIBLE_ITEMS * spread / n_items,
            first_possible=n_unchanged + 1,
        )
        looks.append(look)
        if alarm is None and look.evidence >= 1 / alpha:
            alarm = number
    return Drift(
        looks=tuple(looks),
        alarm=alarm,
        alpha=alpha,
        n_items=n_items,
        repeat_variance=variance,
        scores_by_round=tuple(weights.tolist()),
        round_deviation=_deviation_of_rounds(effects, weights, variance),
        size=size * spread,
        spread=spread,
    )


def _tabulate(rounds: Sequence[F64]) -> _Table:
    means = np.zeros((len(rounds), rounds[0].shape[1]))
    counts = np.zeros_like(means)
    squares = np.zeros(len(rounds))
    degrees = np.zeros(len(rounds))
    step_squares = np.zeros(len(rounds))
    step_pairs = np.zeros(len(rounds))
    last = -1
    for number, scores in enumerate(rounds):
        has_score = ~np.isnan(scores)
        filled_scores = np.where(has_score, scores, 0.0)
        counts[number] = has_score.sum(axis=0)
        means[number] = filled_scores.sum(axis=0) / np.maximum(counts[number], 1)
        deviations = np.where(has_score, scores - means[number], 0.0)
        squares[number] = (deviations**2).sum()
        degrees[number] = np.maximum(counts[number] - 1, 0).sum()
        if not counts[number].any():
            continue
        has_both = (counts[number] > 0) & (counts[last] > 0)
        if last >= 0 and has_both.sum() > 1:
            steps = (means[number] - means[last])[has_both]
            step_squares[number] = ((steps - steps.mean()) ** 2).sum() / 2
            step_pairs[number] = len(steps) - 1
        last = number
    return _Table(means, counts, squares, degrees, step_squares, step_pairs)


def _variance(table: _Table, n_rounds: int, spread: float) -> float:
    """Estimate the variance of an item's score from the first rounds."""
    degrees = float(table.degrees[:n_rounds].sum())
    if degrees:
        return _with_prior(float(table.squares[:n_rounds].sum()), degrees, spread)
    squares = list(table.step_squares[1:n_rounds])
    pairs = list(table.step_pairs[1:n_rounds])
    if len(squares) >= MIN_ROUNDS_TO_TRIM:
        largest = int(np.argmax(np.asarray(squares) / np.maximum(pairs, 1)))
        del squares[largest], pairs[largest]
    return _with_prior(float(sum(squares)), float(sum(pairs)), spread)


def _round_effects(means: F64, counts: F64, *, is_complete: bool) -> tuple[F64, F64]:
    """Estimate each round's mean as if every round had scores of every item.

    Scores are fitted as an effect of the item plus one of the round, so that a round without the
    hard items does not look better.

    Returns:
        The effects, nan for a round without scores, and the number of scores behind each.
    """
    weights = counts.sum(axis=1)
    safe_weights = np.maximum(weights, 1)
    effects = (means * counts).sum(axis=1) / safe_weights
    if not is_complete:
        n_scores = np.maximum(counts.sum(axis=0), 1)
        for _ in range(_FIT_STEPS):
            items = (counts * (means - effects[:, None])).sum(axis=0) / n_scores
            effects = (counts * (means - items)).sum(axis=1) / safe_weights
    return np.where(weights > 0, effects, np.nan), weights


def _look(
    effects: F64,
    weights: F64,
    variance: float,
    size: float,
    alpha: float,
    spread: float,
    *,
    negligible: float,
    first_possible: int,
) -> DriftLook:
    """Weigh all rounds at which a change may have happened; the last round is the newest.

    Args:
        effects: by round, its mean; nan if it has no scores. The baseline is first.
        weights: by round, its number of scores.
        variance: of an item between repeats.
        size: the change that matters, in the unit of the scores.
        alpha: the chance that the change's interval is ever wrong.
        spread: the greatest possible change.
        negligible: a change that nobody wants to hear of, which is taken off.
        first_possible: the first round that may have changed.
    """
    places = np.flatnonzero(weights > 0)
    sizes = weights[places]
    means = clip_outliers(effects[places], sizes, variance)
    n_rounds = len(places)
    starts = np.arange(ROUNDS_TO_CONFIRM, n_rounds - ROUNDS_TO_CONFIRM + 1)
    starts = starts[places[starts] >= first_possible] if len(starts) else starts
    if not len(starts):
        return NO_LOOK
    weighed = weigh_changes(
        means, sizes, starts, variance=variance, size=size, negligible=negligible
    )
    evidence = float(weighed.evidence)
    best = int(np.argmax(weighed.log_ratios + np.log(weighed.shares)))
    low, high = _interval(
        float(weighed.change[best]),
        unshared=float(weighed.unshared[best]),
        shrinkage=float(weighed.shrinkage[best]),
        unexplained=PRIOR_DEGREES * variance + float(weighed.within[best]),
        power=weighed.power,
        level=alpha * float(weighed.shares[best]),
        spread=spread,
    )
    return DriftLook(
        evidence, int(places[starts[best]]), float(weighed.change[best]), low, high
    )


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What each round from which on there may be a change says, the last axis.

    Attributes:
        change: mean of the rounds since then minus that of the rounds before.
        unshared: 1 / the scores before, plus 1 / those since.
        shrinkage: the part of the change's variance that the weights on it explain.
        within: the sum of squares that the change leaves unexplained.
        power: the exponent of the likelihood ratio.
        log_ratios: its logarithm.
        shares: the weight of each such round.
    """

    change: F64
    unshared: F64
    shrinkage: F64
    within: F64
    power: float
    log_ratios: F64
    shares: F64

    @property
    def evidence(self) -> F64:
        """The e-value. Rounds that are not possible yet have a ratio of 1."""
        ratios = np.exp(np.minimum(self.log_ratios, _LARGEST_LOG))
        evidence: F64 = (self.shares * ratios).sum(axis=-1) + 1 - self.shares.sum()
        return evidence


def weigh_changes(
    means: F64,
    sizes: F64,
    starts: npt.NDArray[np.int64],
    *,
    variance: float | F64,
    size: float,
    negligible: float,
) -> _Weighed:
    """Weigh the rounds `starts` against no change at all.

    Args:
        means: (..., rounds), all with scores.
        sizes: by round, its number of scores.
        starts: the rounds that may be the first changed one.
        variance: of an item between repeats, one for all or (..., 1).
        size: the change that matters, in the unit of the scores.
        negligible: a change that nobody wants to hear of, which is taken off.
    """
    total = sizes.sum()
    center = means - (means * sizes).sum(axis=-1, keepdims=True) / total
    before = sizes.cumsum()[starts - 1]
    after = total - before
    sum_before = (center * sizes).cumsum(axis=-1)[..., starts - 1]
    change = -sum_before / after - sum_before / before
    unshared = 1 / before + 1 / after
    squares = (center**2 * sizes).sum(axis=-1, keepdims=True)
    within = np.maximum(squares - change**2 / unshared, 0)
    # The nearest of the changes that do not matter is the hypothesis that has to be wrong.
    explained = np.maximum(np.abs(change) - negligible, 0) ** 2 / unshared
    prior_squares = PRIOR_DEGREES * variance
    prior = size**2 / variance
    shrinkage = prior / (unshared + prior)
    power = (PRIOR_DEGREES + len(sizes) - 1) / 2
    log_ratios = 0.5 * np.log(unshared / (unshared + prior)) + power * (
        np.log(prior_squares + within + explained)
        - np.log(prior_squares + within + (1 - shrinkage) * explained)
    )
    shares = 1 / (starts * (starts - 1.0))
    return _Weighed(change, unshared, shrinkage, within, power, log_ratios, shares)


def least_variance(most_scores: float, n_items: int, spread: float) -> float:
    """The variance of an item below which rounds would have to scatter by less than an item."""
    return most_scores * (FLOOR_ITEMS * spread / n_items) ** 2


def _deviation_of_rounds(effects: F64, weights: F64, variance: float) -> float:
    """The standard deviation of the rounds' means, bad days aside; 0 for too few rounds."""
    places = np.flatnonzero(weights > 0)
    if len(places) < MIN_ROUNDS_TO_TRIM:
        return 0.0
    return float(clip_outliers(effects[places], weights[places], variance).std(ddof=1))


def clip_outliers(effects: F64, weights: F64, variance: float | F64) -> F64:
    """Move a round that is far from those about it to the edge of what they would do.

    A lasting change is not far from the middle one of five, once three rounds are changed. Far is
    relative to the usual step from one round to the next, at least to that which repeats explain.
    """
    n_rounds = effects.shape[-1]
    if n_rounds < MIN_ROUNDS_TO_TRIM:
        return effects
    steps = np.sort(np.abs(np.diff(effects)))
    usual = STEP_TO_DEVIATION * steps[..., steps.shape[-1] // 2, None]
    reach = CLIP_AT_DEVIATIONS * np.maximum(usual, np.sqrt(variance / weights))
    width = min(CLIP_WINDOW, n_rounds)
    windows = np.sort(np.lib.stride_tricks.sliding_window_view(effects, width, axis=-1))
    middles = (windows[..., (width - 1) // 2] + windows[..., width // 2]) / 2
    places = np.clip(np.arange(n_rounds) - width // 2, 0, n_rounds - width)
    usual_place = middles[..., places]
    return np.clip(effects, usual_place - reach, usual_place + reach)


def _interval(
    change: float,
    *,
    unshared: float,
    shrinkage: float,
    unexplained: float,
    power: float,
    level: float,
    spread: float,
) -> tuple[float, float]:
    """Collect the changes whose likelihood ratio stays below 1 / level."""
    log_bound = -math.log(level) - 0.5 * math.log(1 - shrinkage)
    bound = math.exp(min(log_bound / power, _LARGEST_LOG))
    remaining = 1 - bound * (1 - shrinkage)
    if remaining <= 0:
        return math.nan, math.nan
    half = math.sqrt(unexplained * (bound - 1) / remaining * unshared)
    return max(change - half, -spread), min(change + half, spread)


@dataclass(frozen=True, slots=True)
class Detectable:
    """What a test of these items can see.

    Attributes:
        change: the smallest lasting change that gives an alarm within 8 rounds with a chance of
            80%, in the unit of the scores; nan if the greatest possible one does not.
        n_items_advised: how many items see a change of 4% of the greatest one; None if these do, or
            if no number of items does because days differ too much.
    """

    change: float
    n_items_advised: int | None


def forecast_detectable(drift: Drift, *, n_rounds: int = FORECAST_ROUNDS) -> Detectable:
    """Forecast the smallest change that the test would see if it happened after these rounds.

    Rounds scatter as the repeats and the steps between the rounds so far show, and the test is
    applied to drawn ones.

    Args:
        drift: the rounds so far.
        n_rounds: rounds within which the change should be seen.
    """
    scores = np.asarray(drift.scores_by_round)
    if not scores.any():
        return Detectable(math.nan, None)
    forecast = _Forecast(drift, scores[scores > 0], n_rounds)
    change = _smallest_change(forecast)
    matters = MATTERING_CHANGE * drift.spread
    if change <= matters:
        return Detectable(change, None)
    larger_numbers = [n_items for n_items in ITEM_NUMBERS if n_items > drift.n_items]
    advised = bisect.bisect_left(
        larger_numbers,
        FORECAST_POWER,
        key=lambda n_items: forecast.share_seen(matters, n_items),
    )
    return Detectable(
        change, larger_numbers[advised] if advised < len(larger_numbers) else None
    )


class _Forecast:
    """Draws rounds before and after a change, and counts how often it is seen.

    Args:
        drift: the rounds so far.
        scores: how many scores each of them has.
        n_after: rounds since the change, within which it is to be seen.
    """

    def __init__(self, drift: Drift, scores: F64, n_after: int) -> None:
        self.drift = drift
        self._scores_by_item = float(np.median(scores)) / drift.n_items
        by_repeats = drift.repeat_variance / float(np.median(scores))
        by_rounds = drift.round_deviation**2
        is_by_day = by_rounds > (DAYS_DIFFER_FROM**2) * by_repeats
        self._by_day = by_rounds - by_repeats if is_by_day else 0.0
        self._n_before = max(len(scores), MIN_FORECAST_ROUNDS)
        self._n_rounds = self._n_before + n_after
        random = np.random.default_rng(_FORECAST_SEED)
        self._noise = random.normal(size=(_FORECAST_PATHS, self._n_rounds))

    def share_seen(self, change: float, n_items: int) -> float:
        """The share of drawn rounds in which a change is seen, with this number of items."""
        drift = self.drift
        n_scores = self._scores_by_item * n_items
        least = least_variance(n_scores, n_items, drift.spread)
        variance = max(drift.repeat_variance, least)
        deviation = math.sqrt(self._by_day + variance / n_scores)
        is_after = np.arange(self._n_rounds) >= self._n_before
        unseen = deviation * self._noise + change * is_after
        # The last round sees most changes, and those need no other.
        first_with_alarm = self._n_before + ROUNDS_TO_CONFIRM
        for n_rounds in range(self._n_rounds, first_with_alarm - 1, -1):
            sizes = np.full(n_rounds, n_scores)
            weighed = weigh_changes(
                clip_outliers(unseen[:, :n_rounds], sizes, variance),
                sizes,
                np.arange(ROUNDS_TO_CONFIRM, n_rounds - ROUNDS_TO_CONFIRM + 1),
                variance=variance,
                size=drift.size,
                negligible=NEGLIGIBLE_ITEMS * drift.spread / n_items,
            )
            unseen = unseen[weighed.evidence < 1 / drift.alpha]
            if len(unseen) <= (1 - FORECAST_POWER) * _FORECAST_PATHS:
                break
        return 1 - len(unseen) / _FORECAST_PATHS


def _smallest_change(forecast: _Forecast) -> float:
    """Halve the range of possible changes until the smallest that is seen is known."""
    n_items = forecast.drift.n_items
    low, high = 0.0, forecast.drift.spread
    if forecast.share_seen(high, n_items) < FORECAST_POWER:
        return math.nan
    for _ in range(_FORECAST_STEPS):
        middle = (low + high) / 2
        if forecast.share_seen(middle, n_items) < FORECAST_POWER:
            low = middle
        else:
            high = middle
    return high


def forecast_detectable_verdicts(
    baseline: npt.ArrayLike,
    rounds: Sequence[npt.ArrayLike],
    *,
    alpha: float = 0.05,
    spread: float = 1.0,
) -> Detectable:
    """Forecast which share of the items has to be scored otherwise for good to be seen.

    Args:
        baseline: as for `detect_changed_verdicts`.
        rounds: likewise; with fewer than two, nothing is known.
        alpha: the chance of ever giving a false alarm.
        spread: the greatest possible difference of two scores.
    """
    distances = _distances_by_round(baseline, rounds)
    if len(distances) < 2:
        return Detectable(math.nan, None)
    drift = detect_drift(distances[0], distances[1:], alpha=alpha, spread=spread)
    return forecast_detectable(drift)


def detect_changed_verdicts(
    baseline: npt.ArrayLike,
    rounds: Sequence[npt.ArrayLike],
    *,
    alpha: float = 0.05,
    spread: float = 1.0,
) -> tuple[tuple[DriftLook, ...], int | None]:
    """Test after each round whether items' scores have become others, whatever their mean does.

    The mean distance of an item's scores from the baseline's is tested as scores are: whether it
    has changed between the rounds after the baseline. Where ten of 200 verdicts turn to right and
    eight to wrong, the mean hardly moves, and this does.

    Args:
        baseline: the first round: (items,) or (repeats, items); nan is missing.
        rounds: in order of time, likewise.
        alpha: the chance of ever giving a false alarm.
        spread: the greatest possible difference of two scores.

    Returns:
        A look for each round, in which `change` is that of the distance, and the first round with
        an alarm.

    Raises:
        ValueError: shapes differ.
    """
    check_level(alpha, "alpha")
    return _detect_between_later(_distances_by_round(baseline, rounds), alpha, spread)


def _distances_by_round(
    baseline: npt.ArrayLike, rounds: Sequence[npt.ArrayLike]
) -> list[F64]:
    first = np.atleast_2d(np.asarray(baseline, np.float64))
    later = [np.atleast_2d(np.asarray(scores, np.float64)) for scores in rounds]
    if any(scores.shape[1] != first.shape[1] for scores in later):
        raise ValueError("baseline and rounds must have the same items")
    return [_mean_distances(first, scores) for scores in later]


def mean_distance(baseline: F64, scores: F64) -> float | None:
    """Return the mean distance of items' scores from the baseline's; None where nothing is known.

    Args:
        baseline: (repeats, items), nan is missing.
        scores: (repeats, items), likewise.
    """
    distance = _mean_known(_mean_distances(baseline, scores))
    return None if math.isnan(distance) else distance


def _mean_distances(baseline: F64, scores: F64) -> F64:
    """For each repeat and item, the mean distance from the baseline's scores; nan if missing."""
    distances = np.abs(scores[:, None] - baseline[None])
    is_known = ~np.isnan(distances)
    n_known = is_known.sum(axis=1)
    total = np.where(is_known, distances, 0.0).sum(axis=1)
    return np.where(n_known > 0, total / np.maximum(n_known, 1), np.nan)


def _detect_between_later(
    rounds: Sequence[F64], alpha: float, spread: float
) -> tuple[tuple[DriftLook, ...], int | None]:
    """Test rounds after the baseline against each other; they count from 1."""
    if not rounds:
        return (), None
    if len(rounds) == 1:
        return (NO_LOOK,), None
    drift = detect_drift(rounds[0], rounds[1:], alpha=alpha, spread=spread)
    looks = [NO_LOOK]
    for look in drift.looks:
        since = look.since + 1 if look.since else 0
        looks.append(replace(look, since=since))
    return tuple(looks), drift.alarm + 1 if drift.alarm else None


@dataclass(frozen=True, slots=True)
class TextLook:
    """How many answer texts a round changed.

    Attributes:
        changed: share of items whose text is not that of a baseline repeat, averaged over repeats.
        own: the same share between the baseline's own repeats; nan without repeats.
        n: number of items with a text in the round and in the baseline.
        evidence: the e-value.
        since: the round from which on texts are most likely others; 0 for none.
    """

    changed: float
    own: float
    n: int
    evidence: float
    since: int


def detect_changed_texts(
    baseline: npt.ArrayLike, rounds: Sequence[npt.ArrayLike], *, alpha: float = 0.05
) -> tuple[tuple[TextLook, ...], int | None]:
    """Test after each round whether answer texts have become others, and stayed so.

    The share of texts that are the baseline's is tested as scores are: whether it has changed
    between the rounds after the baseline. The repeats within a round share a day and its servers,
    so that they are more alike than rounds are; they are shown, and not tested against.

    Args:
        baseline: (repeats, items), a number for each distinct text of an item; negative is missing.
        rounds: in order of time, each (items,) or (repeats, items), likewise.
        alpha: the chance of ever giving a false alarm.

    Returns:
        A look for each round, and the first round with an alarm.

    Raises:
        ValueError: shapes differ.
    """
    check_level(alpha, "alpha")
    first = np.atleast_2d(np.asarray(baseline, np.int64))
    later = [np.atleast_2d(np.asarray(texts, np.int64)) for texts in rounds]
    if any(texts.shape[1] != first.shape[1] for texts in later):
        raise ValueError("baseline and rounds must have the same items")
    alike = [_share_alike(first, texts) for texts in later]
    baseline_change = 1 - _mean_known(_own_share_alike(first))
    looks, alarm = _detect_between_later(alike, alpha, 1.0)
    described = tuple(
        TextLook(
            1 - _mean_known(shares),
            baseline_change,
            int((~np.isnan(shares)).any(axis=0).sum()),
            look.evidence,
            look.since,
        )
        for shares, look in zip(alike, looks, strict=True)
    )
    return described, alarm


def _share_alike(baseline: npt.NDArray[np.int64], texts: npt.NDArray[np.int64]) -> F64:
    """For each repeat and item, the share of the baseline's texts that it equals.

    It is nan where one of them is missing.
    """
    is_known = (baseline >= 0)[None] & (texts >= 0)[:, None]
    is_alike = (baseline[None] == texts[:, None]) & is_known
    n_known = is_known.sum(axis=1)
    shares = is_alike.sum(axis=1) / np.maximum(n_known, 1)
    return np.where(n_known > 0, shares, np.nan)


def _own_share_alike(baseline: npt.NDArray[np.int64]) -> F64:
    """For each repeat and item, the share of the other repeats' texts that it equals."""
    rows = [
        _share_alike(np.delete(baseline, repeat, axis=0), baseline[repeat : repeat + 1])
        for repeat in range(len(baseline))
        if len(baseline) > 1
    ]
    return np.concatenate(rows) if rows else np.full((1, baseline.shape[1]), np.nan)


def _mean_known(shares: F64) -> float:
    known_shares = shares[~np.isnan(shares)]
    return float(known_shares.mean()) if known_shares.size else math.nan
