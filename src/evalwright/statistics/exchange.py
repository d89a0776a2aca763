"""Whether one answer to each item comes from the model whose repeated answers are beside it.

If it does, it and the repeats of an item are exchangeable: each is as likely as the others to be
the candidate. Items may differ in any way, and no model of the scores is needed. Both tests are
exact, given what was answered to each item.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import normal_quantile

N_PERMUTATIONS = 9_999
_BLOCK = 1_000
"""Permutations computed together, which bounds the memory."""


@dataclass(frozen=True, slots=True)
class ExchangeTest:
    """Scores of a candidate against those of repeats.

    Attributes:
        n: number of items.
        candidate: the candidate's mean score.
        repeats: the repeats' mean score.
        difference: the first minus the second.
        p: two-sided p-value; 1 where all scores of every item are equal.
        visible: the difference that is seen with a chance of 80% at 1%; nan where nothing varies.
    """

    n: int
    candidate: float
    repeats: float
    difference: float
    p: float
    visible: float


@dataclass(frozen=True, slots=True)
class OddOneOut:
    """Texts of a candidate against those of two repeats.

    Attributes:
        n: number of items.
        n_same: items of which the candidate's text is that of a repeat.
        n_repeats_same: items of which both repeats have the same text.
        n_one_differs: items of which exactly one of the three texts differs from the others.
        n_candidate_differs: those of them where it is the candidate's.
        p: the chance of so many, if each of the three is the odd one equally often.
    """

    n: int
    n_same: int
    n_repeats_same: int
    n_one_differs: int
    n_candidate_differs: int
    p: float


def compare_exchanged(
    candidate: npt.ArrayLike, repeats: npt.ArrayLike, *, seed: int = 0
) -> ExchangeTest:
    """Test whether a candidate's mean score is that of the repeats, by exchanging them by item.

    Args:
        candidate: (items,), without nan.
        repeats: (repeats, items), without nan.
        seed: seeds the permutations; the p-value is valid for any number of them.

    Raises:
        ValueError: shapes differ, or there are no items.
    """
    scores = np.vstack(
        [np.asarray(candidate, np.float64), np.asarray(repeats, np.float64)]
    )
    n_answers, n_items = scores.shape
    if n_answers < 2 or not n_items:
        raise ValueError("the test needs items with a candidate and a repeat each")
    totals = scores.sum(axis=0)
    # Candidate minus mean of the others is a (candidate - mean of all) for a constant a.
    factor = n_answers / (n_answers - 1)
    deviations = (scores - totals / n_answers) * factor
    observed = float(deviations[0].mean())
    random = np.random.default_rng(seed)
    n_as_large = 0
    items = np.arange(n_items)
    remaining = N_PERMUTATIONS
    while remaining:
        n_block = min(_BLOCK, remaining)
        chosen = random.integers(n_answers, size=(n_block, n_items))
        means = deviations[chosen, items].mean(axis=1)
        n_as_large += int((np.abs(means) >= abs(observed) - 1e-12).sum())
        remaining -= n_block
    variance = float((deviations**2).mean(axis=0).sum()) / n_items**2
    quantiles = normal_quantile(0.995) + normal_quantile(0.8)
    others = scores[1:].mean()
    return ExchangeTest(
        n=n_items,
        candidate=float(scores[0].mean()),
        repeats=float(others),
        difference=observed,
        p=(1 + n_as_large) / (1 + N_PERMUTATIONS),
        visible=quantiles * math.sqrt(variance) if variance > 0 else math.nan,
    )


def find_odd_one_out(candidate: npt.ArrayLike, repeats: npt.ArrayLike) -> OddOneOut:
    """Test whether a candidate's text is the odd one of three more often than by chance.

    Args:
        candidate: (items,), a number for each distinct text of an item.
        repeats: (2, items), likewise.

    Raises:
        ValueError: shapes differ, or there are not two repeats.
    """
    from scipy.stats import binom

    texts = np.asarray(candidate, np.int64)
    first, second = np.asarray(repeats, np.int64)
    if texts.shape != first.shape:
        raise ValueError("candidate and repeats must have the same items")
    repeats_same = first == second
    like_first = texts == first
    like_second = texts == second
    candidate_differs = repeats_same & ~like_first
    a_repeat_differs = ~repeats_same & (like_first | like_second)
    n_differs = int(candidate_differs.sum())
    n_one_differs = n_differs + int(a_repeat_differs.sum())
    return OddOneOut(
        n=len(texts),
        n_same=int((like_first | like_second).sum()),
        n_repeats_same=int(repeats_same.sum()),
        n_one_differs=n_one_differs,
        n_candidate_differs=n_differs,
        p=float(binom.sf(n_differs - 1, n_one_differs, 1 / 3)),
    )


def largest_unseen_share(n: int, level: float = 0.95) -> float:
    """Return the share of items that can differ with none of them among `n` drawn at random.

    Args:
        n: number of items that were looked at, at least 1.
        level: the confidence that the share is not larger.
    """
    return float(1 - (1 - level) ** (1 / n))
