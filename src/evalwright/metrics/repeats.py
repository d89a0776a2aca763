"""Metrics over repeats, from n draws of each item: pass@k, pass^k and maj@k.

pass@k: at least one of k draws is right; pass^k: all are; maj@k: their majority is. Each is the
exact mean over all choices of k of an item's n draws: 1 - C(n - c, k) / C(n, k) with c right
ones (Chen et al. 2021, arXiv 2107.03374), C(c, k) / C(n, k) (Yao et al. 2024, arXiv
2406.12045), and for maj@k a sum over the answers. That is unbiased for k new draws. Items are
the units: the interval is that of the mean of their values, over clusters where there are any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from math import comb, fsum
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.means import over_items

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate

KINDS = frozenset({"maj@k", "pass@k", "pass^k"})
OF_VOTES = frozenset({"maj@k"})
SAID = "said"
"""The part of a score that encodes which answer was given, by which maj@k counts votes.

Below 0 where no answer could be read.
"""
_RIGHT_SCORE = 1.0


def pass_at_k(
    column: Column, *, k: int, threshold: float = _RIGHT_SCORE, level: float = 0.95
) -> Estimate:
    """The chance that at least one of k draws scores `threshold` or more.

    Args:
        column: the scores by item and draw.
        k: number of draws.
        threshold: the least score of a success.
        level: confidence level of the interval.
    """
    return _estimate(
        column, "pass@k", pass_at_k_values(column, k=k, threshold=threshold), k, level
    )


def pass_all_k(
    column: Column, *, k: int, threshold: float = _RIGHT_SCORE, level: float = 0.95
) -> Estimate:
    """The chance that all of k draws score `threshold` or more.

    Arguments as for `pass_at_k`.
    """
    return _estimate(
        column, "pass^k", pass_all_k_values(column, k=k, threshold=threshold), k, level
    )


def maj_at_k(column: Column, *, k: int, level: float = 0.95) -> Estimate:
    """The mean score of the answer that most of k draws give, with ties broken at random.

    Draws without a readable answer have no vote.
    """
    return _estimate(column, "maj@k", maj_at_k_values(column, k=k), k, level)


def pass_at_k_values(
    column: Column, *, k: int, threshold: float = _RIGHT_SCORE
) -> NDArray[np.float64]:
    """Compute 1 - C(n - c, k) / C(n, k) of each item, (n,); nan with fewer than k scored draws."""
    return _of_counts(
        column,
        k,
        threshold,
        lambda n, right: (comb(n, k) - comb(n - right, k)) / comb(n, k),
    )


def pass_all_k_values(
    column: Column, *, k: int, threshold: float = _RIGHT_SCORE
) -> NDArray[np.float64]:
    """Compute C(c, k) / C(n, k) of each item, (n,); nan with fewer than k scored draws."""
    return _of_counts(
        column, k, threshold, lambda n, right: comb(right, k) / comb(n, k)
    )


def maj_at_k_values(column: Column, *, k: int) -> NDArray[np.float64]:
    """Compute the expected score of the majority of k draws of each item, (n,).

    nan for an item with fewer than k scored draws.
    """
    import numpy as np

    scores = _checked_draws(column, k)
    if len(scores) and SAID not in column.parts:
        raise ConfigurationError(
            "The scores do not say what each answer says, so there is nothing to vote"
            " on: score them with the metric in the task."
        )
    numbers_by_part = column.parts if column.draws is None else column.part_draws
    answer_codes = (
        numbers_by_part[SAID].reshape(len(scores), -1) if len(scores) else scores
    )
    majorities = np.full(len(scores), np.nan)
    for row, (values, answers) in enumerate(zip(scores, answer_codes, strict=True)):
        readable = ~np.isnan(values) & ~np.isnan(answers)
        if readable.sum() < k:
            continue
        scores_by_answer = [
            (values[readable & (answers == code)])
            for code in np.unique(answers[readable & (answers >= 0)])
        ]
        silent = values[readable & (answers < 0)]
        classes = tuple(
            sorted(
                (len(answer_scores), float(answer_scores.mean()))
                for answer_scores in scores_by_answer
            )
        )
        majorities[row] = majority(
            classes, len(silent), float(silent.mean()) if len(silent) else 0.0, k
        )
    return majorities


@lru_cache(maxsize=4096)
def majority(
    classes: tuple[tuple[int, float], ...], silent: int, silent_worth: float, k: int
) -> float:
    """The expected score of the answer with the most votes among k draws, over all choices of k.

    An answer wins with t votes alone, or tied with e - 1 others; a tie is won with chance 1/e,
    which equals the integral of y^(e-1) over [0, 1]. The choices in which each rival has fewer than
    t votes (factor y^0) or exactly t (factor y) are the coefficient of x^(k - t) in a product of
    polynomials, one per rival, and Gauss-Legendre nodes make the integral over y exact.

    Args:
        classes: each answer's number of draws and score.
        silent: number of draws without a vote.
        silent_worth: their score, which counts where no draw has a vote.
        k: draws in a vote.
    """
    import numpy as np

    total = [comb(silent, k) * silent_worth]
    quiet = np.array([comb(silent, size) for size in range(k + 1)], dtype=float)
    for votes in range(1, k + 1):
        nodes, weights = np.polynomial.legendre.leggauss(k // votes // 2 + 1)
        for winner in dict.fromkeys(
            candidate
            for candidate in classes
            if candidate[0] >= votes and candidate[1] > 0
        ):
            rivals = list(classes)
            rivals.remove(winner)
            ways = np.tile(quiet[: k - votes + 1], (len(nodes), 1))
            for draws, _ in rivals:
                rival_ways = np.array(
                    [comb(draws, size) for size in range(min(draws, votes) + 1)],
                    dtype=float,
                )
                ways = _multiply_polynomials(ways, rival_ways, votes, (nodes + 1) / 2)
            chance = float((weights / 2 * ways[:, -1]).sum())
            total.append(
                classes.count(winner) * winner[1] * comb(winner[0], votes) * chance
            )
    n = silent + sum(draws for draws, _ in classes)
    return fsum(total) / comb(n, k)


def _multiply_polynomials(
    ways: NDArray[np.float64],
    rival_ways: NDArray[np.float64],
    votes: int,
    equal: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Multiply polynomials (nodes, size) by that of one more rival answer.

    The term in which the rival has `votes` votes, a tie, is weighted by `equal` (nodes,).
    """
    import numpy as np

    product = np.zeros_like(ways)
    for size, count in enumerate(rival_ways):
        if size < ways.shape[1]:
            factor = count * (equal if size == votes else np.ones_like(equal))
            product[:, size:] += factor[:, None] * ways[:, : ways.shape[1] - size]
    return product


def check_k(kind: str, options: Mapping[str, Any], draws: int) -> None:
    """Raise ConfigurationError if a task has too few draws per sample for the metric."""
    k = options.get("k")
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise ConfigurationError(
            f"The option 'k' of '{kind}' is a whole number from 1 on, not {k!r}."
        )
    if k > draws:
        raise ConfigurationError(
            f"'{kind}' with k: {k} needs at least {k} draws of each sample, and"
            f" `answer.draws` is {draws}."
        )


def check_multiplied(
    kind: str, options: Mapping[str, Any], scorer: Mapping[str, Any]
) -> None:
    """Raise ConfigurationError if a language penalty would keep every affected draw below 1.

    A draw counts as right from a score of 1 on, which the multiplied penalty makes impossible for
    any answer with a sentence in another language.

    Args:
        kind: the metric.
        options: its options.
        scorer: the scorer's options.
    """
    penalty = scorer.get("language_penalty")
    if (
        penalty is None
        or penalty.get("combine") == "gate"
        or "threshold" in options
        or kind in OF_VOTES
    ):
        return
    raise ConfigurationError(
        f"'{kind}' counts draws with the full value of 1, and language_penalty with"
        " combine: multiply takes from that with any sentence in another language. Use"
        f" combine: gate, or give '{kind}' a threshold."
    )


def shown_name(kind: str, options: Mapping[str, Any]) -> str:
    """Return the name to show: "pass@5" for pass@k with k: 5."""
    return f"{kind[:-1]}{options['k']}" if kind in KINDS and "k" in options else kind


def _estimate(
    column: Column, kind: str, values: NDArray[np.float64], k: int, level: float
) -> Estimate:
    estimate = over_items(column, values, (0.0, 1.0), level)
    return replace(
        estimate,
        method=f"{estimate.method}; {shown_name(kind, {'k': k})} of each item, exactly",
    )


def _checked_draws(column: Column, k: int) -> NDArray[np.float64]:
    scores = column.by_draw()
    check_k(
        "A metric over repeats",
        {"k": k},
        max(scores.shape[1], k if not len(scores) else 1),
    )
    return scores


def _of_counts(
    column: Column, k: int, threshold: float, chance: Any
) -> NDArray[np.float64]:
    """Apply a function to each item's number of scored draws and of right ones among them."""
    import numpy as np

    scores = _checked_draws(column, k)
    scored = (~np.isnan(scores)).sum(axis=1)
    right = (np.nan_to_num(scores, nan=-np.inf) >= threshold).sum(axis=1)
    chances = {
        (n, c): chance(n, c)
        for n, c in set(zip(scored.tolist(), right.tolist(), strict=True))
        if n >= k
    }
    pairs = zip(scored.tolist(), right.tolist(), strict=True)
    return np.array([chances.get(pair, np.nan) for pair in pairs], dtype=float)
