"""Evidence that may be looked at after every item: e-values for pairs of right-or-wrong answers.

An e-value is a bet against "no difference" that no strategy can win on average while that holds. So the
chance that it ever reaches 1 / alpha is at most alpha (Ville 1939), however often one looks and whenever
one stops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt


def log_pair_e_value(
    wins: npt.ArrayLike, losses: npt.ArrayLike, *, prior: float = 0.5
) -> npt.NDArray[np.float64]:
    """Natural logarithm of the e-value against "a discordant item favours either model alike".

    e = B(p + w, p + l) / B(p, p) 2^(w + l), the mixture of all shares with a Beta(p, p) prior (`prior`).
    `wins` and `losses` are counts of discordant items (only a right, only b right), numbers or arrays of
    one shape; the result has that shape. Items on which both agree carry no evidence. Assumes that items
    come in an order that does not depend on the answers. Raises ValueError for counts that are negative or
    no whole numbers, or a `prior` not above 0.

    Source: Robbins (1970), "Statistical methods related to the law of the iterated logarithm"; Ramdas et
    al. (2023), "Game-theoretic statistics and safe anytime-valid inference".
    """
    from scipy.special import betaln

    if not (prior > 0 and math.isfinite(prior)):
        raise ValueError(f"prior must be a number above 0, but is {prior!r}")
    w, lost = _counts(wins, "wins"), _counts(losses, "losses")
    total: Any = betaln(prior + w, prior + lost) - betaln(prior, prior) + (w + lost) * math.log(2.0)
    return np.asarray(total, dtype=np.float64)


def pair_e_value(wins: int, losses: int, *, prior: float = 0.5) -> float:
    """The e-value of `log_pair_e_value` itself; infinite where it is too large for a float. Stop at 1 /
    alpha."""
    log_value = float(log_pair_e_value(wins, losses, prior=prior))
    return math.exp(log_value) if log_value < 700.0 else math.inf


def _counts(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    counts = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(counts).all() and (counts >= 0).all() and (counts == np.floor(counts)).all()):
        raise ValueError(f"{name} must be whole numbers from 0 up")
    return counts
