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
_FIT_STEPS = 30
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
    """

    looks: tuple[DriftLook, ...]
    alarm: int | None
    alpha: float
    n_items: int
    repeat_variance: float


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
    for number in range(1, len(tables)):
        so_far = slice(0, number + 1)
        variance = _variance(table, number + 1, spread)
        effects, weights = _round_effects(
            table.means[so_far], table.counts[so_far], is_complete=is_complete
        )
        floor = float(weights.max()) * (FLOOR_ITEMS * spread / n_items) ** 2
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
    return Drift(tuple(looks), alarm, alpha, n_items, variance)


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
        known = np.where(has_score, scores, 0.0)
        counts[number] = has_score.sum(axis=0)
        means[number] = known.sum(axis=0) / np.maximum(counts[number], 1)
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
    means = _clip_outliers(effects[places], sizes, variance)
    n_rounds = len(places)
    starts = np.arange(ROUNDS_TO_CONFIRM, n_rounds - ROUNDS_TO_CONFIRM + 1)
    starts = starts[places[starts] >= first_possible] if len(starts) else starts
    if not len(starts):
        return NO_LOOK
    total = sizes.sum()
    center = means - (means * sizes).sum() / total
    before = sizes.cumsum()[starts - 1]
    after = total - before
    sum_before = (center * sizes).cumsum()[starts - 1]
    change = -sum_before / after - sum_before / before
    unshared = 1 / before + 1 / after
    within = np.maximum((center**2 * sizes).sum() - change**2 / unshared, 0)
    # The nearest of the changes that do not matter is the hypothesis that has to be wrong.
    explained = np.maximum(np.abs(change) - negligible, 0) ** 2 / unshared
    known = PRIOR_DEGREES * variance
    prior = size**2 / variance
    shrinkage = prior / (unshared + prior)
    power = (PRIOR_DEGREES + n_rounds - 1) / 2
    log_ratios = 0.5 * np.log(unshared / (unshared + prior)) + power * (
        np.log(known + within + explained)
        - np.log(known + within + (1 - shrinkage) * explained)
    )
    shares = 1 / (starts * (starts - 1.0))
    ratios = np.exp(np.minimum(log_ratios, _LARGEST_LOG))
    # Starts that are not possible yet have a ratio of 1.
    evidence = float((shares * ratios).sum() + 1 - shares.sum())
    best = int(np.argmax(log_ratios + np.log(shares)))
    low, high = _interval(
        float(change[best]),
        unshared=float(unshared[best]),
        shrinkage=float(shrinkage[best]),
        unexplained=known + float(within[best]),
        power=power,
        level=alpha * float(shares[best]),
        spread=spread,
    )
    return DriftLook(
        evidence, int(places[starts[best]]), float(change[best]), low, high
    )


def _clip_outliers(effects: F64, weights: F64, variance: float) -> F64:
    """Move a round that is far from those about it to the edge of what they would do.

    A lasting change is not far from the middle one of five, once three rounds are changed. Far is
    relative to the usual step from one round to the next, at least to that which repeats explain.
    """
    n_rounds = len(effects)
    if n_rounds < MIN_ROUNDS_TO_TRIM:
        return effects
    steps = np.sort(np.abs(np.diff(effects)))
    usual = STEP_TO_DEVIATION * float(steps[len(steps) // 2])
    reach = CLIP_AT_DEVIATIONS * np.maximum(usual, np.sqrt(variance / weights))
    width = min(CLIP_WINDOW, n_rounds)
    windows = np.sort(np.lib.stride_tricks.sliding_window_view(effects, width))
    middles = (windows[:, (width - 1) // 2] + windows[:, width // 2]) / 2
    places = np.clip(np.arange(n_rounds) - width // 2, 0, n_rounds - width)
    return np.clip(effects, middles[places] - reach, middles[places] + reach)


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
    first = np.atleast_2d(np.asarray(baseline, np.float64))
    later = [np.atleast_2d(np.asarray(scores, np.float64)) for scores in rounds]
    if any(scores.shape[1] != first.shape[1] for scores in later):
        raise ValueError("baseline and rounds must have the same items")
    distances = [_mean_distances(first, scores) for scores in later]
    return _detect_between_later(distances, alpha, spread)


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
    own = 1 - _mean_known(_own_share_alike(first))
    looks, alarm = _detect_between_later(alike, alpha, 1.0)
    described = tuple(
        TextLook(
            1 - _mean_known(shares),
            own,
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
    known = shares[~np.isnan(shares)]
    return float(known.mean()) if known.size else math.nan
