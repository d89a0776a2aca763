"""Whether a model has changed since its answers were first recorded, looked at as often as wished.

A fixed set of items is asked again at every round. While nothing changes, the rounds are
exchangeable, and their means scatter by the variation that repeats of one item show. A change
after round k moves the mean of the later rounds away from that of the earlier ones. For every k
the likelihood ratio of that contrast, with a normal prior on the size of the change,

    e(k, t) = sqrt(V / (V + T^2)) exp( M^2 T^2 / (2 V (V + T^2)) )

is a martingale in t while nothing changes (M: mean of rounds k to t minus that of the rounds
before k; V: its variance; T: the size of a change that matters). It is the likelihood ratio of
what is left when an unknown mean is removed, so the mean before the change need not be known
(Lai & Xing 2010; Robbins 1970 for the mixture). A weighted mean over k is one, too, and exceeds
1 / alpha with a chance of at most alpha, however often one looks (Ville 1939).

The items are fixed: a change is about these items, and the variance is that of repeating them,
not that of drawing others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from evalwright.statistics._evidence import pair_e_value
from evalwright.statistics._quantiles import check_level
from evalwright.statistics.units import F64

SIZE_THAT_MATTERS = 0.03
"""The change of a mean, as a share, for which the test is most powerful."""
PRIOR_FLIPS = 2.0
"""Flips that are added to those seen between repeats, because none seen does not mean none."""
_LARGEST_LOG = 500.0
"""Largest logarithm of a likelihood ratio that is not rounded down."""


@dataclass(frozen=True, slots=True)
class DriftLook:
    """What is known after a round.

    Attributes:
        evidence: the e-value; at 1 / alpha it is an alarm.
        since: the round from which on a change is most likely, counted from 1; 0 for none.
        change: mean of the rounds since then minus that of the rounds before.
        low: low end of the change's interval.
        high: its high end.
    """

    evidence: float
    since: int
    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Drift:
    """The rounds of a fixed set of items.

    Attributes:
        looks: one for each round after the baseline.
        alarm: the first round with an alarm; None if there is none.
        alpha: the chance of a false alarm, ever.
        n_items: number of items.
        repeat_variance: variance of an item between repeats, averaged over items.
    """

    looks: tuple[DriftLook, ...]
    alarm: int | None
    alpha: float
    n_items: int
    repeat_variance: float


def repeat_variance(repeats: npt.ArrayLike, *, spread: float = 1.0) -> float:
    """Estimate the variance of an item's score between repeats, averaged over items.

    Args:
        repeats: (repeats, items), nan is missing; items with fewer than two are left out.
        spread: the greatest possible difference of two scores.

    Raises:
        ValueError: no item has two repeats.
    """
    scores = np.asarray(repeats, np.float64)
    counts = (~np.isnan(scores)).sum(axis=0)
    repeated = scores[:, counts >= 2]
    if not repeated.size:
        raise ValueError("the variation of the model itself needs items with repeats")
    degrees = float((counts[counts >= 2] - 1).sum())
    squares = float(np.nansum((repeated - np.nanmean(repeated, axis=0)) ** 2))
    # A flip between two repeats adds half a squared difference.
    return (squares + PRIOR_FLIPS * spread**2 / 2) / (degrees + PRIOR_FLIPS)


def detect_drift(
    baseline: npt.ArrayLike,
    rounds: Sequence[npt.ArrayLike],
    *,
    alpha: float = 0.05,
    size: float = SIZE_THAT_MATTERS,
    spread: float = 1.0,
) -> Drift:
    """Test after each round whether the mean over fixed items has changed.

    Args:
        baseline: (repeats, items), at least two repeats; nan is missing.
        rounds: in order of time, each (items,) or (repeats, items); nan is missing.
        alpha: the chance of ever giving a false alarm.
        size: the change that matters, in the unit of the scores.
        spread: the greatest possible difference of two scores.

    Raises:
        ValueError: shapes differ, or nothing is repeated.
    """
    check_level(alpha, "alpha")
    first = np.atleast_2d(np.asarray(baseline, np.float64))
    later = [np.atleast_2d(np.asarray(scores, np.float64)) for scores in rounds]
    if any(scores.shape[1] != first.shape[1] for scores in later):
        raise ValueError("baseline and rounds must have the same items")
    variance = repeat_variance(first, spread=spread)
    sums, counts = _running_totals([first, *later])
    looks = []
    alarm = None
    for number in range(1, len(later) + 1):
        look = _look(sums[: number + 1], counts[: number + 1], variance, size, alpha)
        looks.append(look)
        if alarm is None and look.evidence >= 1 / alpha:
            alarm = number
    return Drift(tuple(looks), alarm, alpha, first.shape[1], variance)


def _running_totals(rounds: Sequence[F64]) -> tuple[F64, F64]:
    """Sum the scores of each item, and count them, up to each round: (rounds, items) each."""
    sums = np.stack([np.nansum(scores, axis=0) for scores in rounds])
    counts = np.stack([(~np.isnan(scores)).sum(axis=0) for scores in rounds])
    return sums.cumsum(axis=0), counts.cumsum(axis=0).astype(np.float64)


def _look(
    sums: F64, counts: F64, variance: float, size: float, alpha: float
) -> DriftLook:
    """Weigh all rounds at which a change may have happened; the last round is the newest.

    Args:
        sums: (rounds, items), running totals of the scores, the baseline's first.
        counts: (rounds, items), of how many scores.
        variance: of an item between repeats.
        size: the change that matters.
        alpha: the chance that the change's interval is ever wrong.
    """
    not_yet = 1.0
    evidence = 0.0
    strongest = -math.inf
    since, change, half = 0, math.nan, math.nan
    for first_changed in range(1, len(sums)):
        weight = 1 / (first_changed * (first_changed + 1))
        not_yet -= weight
        contrast, contrast_variance = _contrast(sums, counts, first_changed, variance)
        if math.isnan(contrast):
            evidence += weight
            continue
        total = contrast_variance + size**2
        shrinkage = size**2 / total
        log_ratio = (
            0.5 * math.log(contrast_variance / total)
            + 0.5 * contrast**2 * shrinkage / contrast_variance
        )
        evidence += weight * math.exp(min(log_ratio, _LARGEST_LOG))
        if log_ratio + math.log(weight) > strongest:
            strongest = log_ratio + math.log(weight)
            since, change = first_changed, contrast
            log_bound = 0.5 * math.log(total / contrast_variance) - math.log(
                alpha * weight
            )
            half = math.sqrt(2 * contrast_variance / shrinkage * log_bound)
    return DriftLook(evidence + not_yet, since, change, change - half, change + half)


def _contrast(
    sums: F64, counts: F64, first_changed: int, variance: float
) -> tuple[float, float]:
    """Compare the later rounds' mean with that of the earlier ones, item by item.

    Returns:
        The mean difference over the items that both have, and its variance; nan without such items.
    """
    n_before = counts[first_changed - 1]
    n_after = counts[-1] - n_before
    has_both = (n_before > 0) & (n_after > 0)
    n_items = int(has_both.sum())
    if not n_items:
        return math.nan, math.nan
    before, after = n_before[has_both], n_after[has_both]
    sum_before = sums[first_changed - 1][has_both]
    sum_after = sums[-1][has_both] - sum_before
    change = float((sum_after / after - sum_before / before).mean())
    unshared = float((1 / before + 1 / after).sum())
    return change, variance * unshared / n_items**2


@dataclass(frozen=True, slots=True)
class TextLook:
    """How many answer texts a round changed.

    Attributes:
        changed: share of items whose text is not that of a baseline repeat, averaged over repeats.
        own: the same share between the baseline's own repeats.
        n: number of items with a text in the round and in two repeats.
        evidence: the e-value of this round alone.
    """

    changed: float
    own: float
    n: int
    evidence: float


def detect_changed_texts(
    baseline: npt.ArrayLike, rounds: npt.ArrayLike, *, alpha: float = 0.05
) -> tuple[tuple[TextLook, ...], int | None]:
    """Test after each round whether more answer texts changed than between repeats.

    While nothing changes, a new text of an item and one of its baseline's are exchangeable, so that
    "the new one differs from the first repeat, and the second does not" is as likely as the
    reverse. The bet on that coin is averaged over all ordered pairs of repeats. Rounds share the
    baseline, so they get shares of alpha, 1 / (t (t + 1)), in place of being multiplied.

    Args:
        baseline: (repeats, items), a number for each distinct text of an item; negative is missing.
        rounds: (rounds, items), likewise.
        alpha: the chance of ever giving a false alarm.

    Returns:
        A look for each round, and the first round with an alarm.

    Raises:
        ValueError: shapes differ, or there are fewer than two repeats.
    """
    check_level(alpha, "alpha")
    first = np.atleast_2d(np.asarray(baseline, np.int64))
    later = np.atleast_2d(np.asarray(rounds, np.int64))
    if first.shape[1] != later.shape[1]:
        raise ValueError("baseline and rounds must have the same items")
    if len(first) < 2:
        raise ValueError("the baseline needs two repeats at least")
    looks = []
    alarm = None
    for number, texts in enumerate(later, 1):
        look = _text_look(first, texts)
        looks.append(look)
        if alarm is None and look.evidence * alpha >= number * (number + 1):
            alarm = number
    return tuple(looks), alarm


def _text_look(
    baseline: npt.NDArray[np.int64], texts: npt.NDArray[np.int64]
) -> TextLook:
    e_values = []
    n_changed = n_own = n_compared = 0
    for one, two in permutations(range(len(baseline)), 2):
        compared = (baseline[one] >= 0) & (baseline[two] >= 0) & (texts >= 0)
        new_differs = (texts != baseline[one]) & compared
        repeat_differs = (baseline[two] != baseline[one]) & compared
        e_values.append(
            pair_e_value(
                int((new_differs & ~repeat_differs).sum()),
                int((repeat_differs & ~new_differs).sum()),
            )
        )
        n_changed += int(new_differs.sum())
        n_own += int(repeat_differs.sum())
        n_compared += int(compared.sum())
    n_pairs = len(e_values)
    return TextLook(
        n_changed / n_compared if n_compared else math.nan,
        n_own / n_compared if n_compared else math.nan,
        n_compared // n_pairs,
        float(np.mean(e_values)),
    )
