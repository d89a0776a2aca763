"""How many of all N items will count, after the first n of them in random order: exact, at every n.

For every number K that is still possible, the items seen are a draw without replacement from N items of
which K count. A bet against K (a mixture of shares around K / N) divided by the exact probability under K
is a martingale if K is true, so it ever reaches 1 / alpha with probability at most alpha; what it has not
refuted makes the confidence sequence. At n = N only the true K is left.

Source: Waudby-Smith & Ramdas (2020), "Confidence sequences for sampling without replacement" (the
martingale as a ratio of a mixture and the hypergeometric likelihood; here the mixture is centred on the
number it bets against).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]

OPTIMUM = 7.93
"""-2 log a + log(-2 log a + 1) at a = 0.05: a mixture with the weight of n / 7.93 items bets best near n items."""


def log_evidence(k: float | F64, n: float, among: F64, total: F64, weight: F64, up: F64 | float = 0.5) -> F64:
    """Log of the bet against "K of the N items count" after k of n counted; +inf where that is impossible.

    `among` (K), `total` (N) and `weight` are arrays of one shape, `k` a number or such an array. The
    mixture is Beta(weight K/N, weight (1 - K/N)) (with K/N kept off 0 and 1), of which the share `up` of
    the stake is on shares above K/N.
    """
    from scipy.special import betaincc, betaln, gammaln

    missed = n - k
    possible = (among >= k) & (total - among >= missed)
    kept, rest = np.where(possible, among, k), np.where(possible, total - among, missed)
    whole = kept + rest
    likelihood = (
        gammaln(kept + 1)
        - gammaln(kept - k + 1)
        + gammaln(rest + 1)
        - gammaln(rest - missed + 1)
        - gammaln(whole + 1)
        + gammaln(whole - n + 1)
    )
    centre = (kept + 0.5) / (whole + 1.0)
    a, b = weight * centre, weight * (1.0 - centre)
    mixture = betaln(a + k, b + missed) - betaln(a, b)
    if not (isinstance(up, float) and up == 0.5):
        prior = betaincc(a, b, centre)
        posterior = betaincc(a + k, b + missed, centre)
        share = up * posterior / prior + (1.0 - up) * (1.0 - posterior) / (1.0 - prior)
        mixture = mixture + np.log(np.maximum(share, 1e-300))
    return np.where(possible, mixture - likelihood, np.inf)


def kept_counts(k: int, n: int, total: npt.ArrayLike, alpha: float, weight: npt.ArrayLike) -> tuple[F64, F64]:
    """The least and greatest K that the first n items, k of which counted, do not refute; for each N in
    `total`.

    `total` (m,) whole numbers of at least n; `weight`: concentration of the mixture, a number or (m,).
    Bisection on both sides of the most likely K, O(log N) steps for all N at once.
    """
    totals = np.asarray(total, dtype=np.float64)
    weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), totals.shape)
    bar = -math.log(alpha)
    share = k / n if n else 0.5
    middle = np.clip(np.round(share * totals), k, totals - (n - k))
    ends = []
    for limit in (np.full_like(totals, float(k)), totals - float(n - k)):
        inside, outside = middle.copy(), limit.copy()
        done = log_evidence(k, n, limit, totals, weights) < bar
        inside = np.where(done, limit, inside)
        for _ in range(max(1, math.ceil(math.log2(float(totals.max()) + 2.0)))):
            half = np.trunc((inside + outside) / 2)
            keep = log_evidence(k, n, half, totals, weights) < bar
            inside, outside = np.where(keep, half, inside), np.where(keep, outside, half)
        ends.append(inside)
    return ends[0], ends[1]
