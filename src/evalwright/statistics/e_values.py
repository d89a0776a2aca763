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

from evalwright.statistics.units import F64


def log_pair_e_value(wins: npt.ArrayLike, losses: npt.ArrayLike) -> F64:
    """Natural logarithm of the e-value against "a discordant item favours either model alike".

    e = B(p + w, p + l) / B(p, p) 2^(w + l) with p = 1/2, the mixture of all shares with a Beta(p, p) prior. `wins` and
    `losses` are counts of discordant items (only a right, only b right), numbers or arrays of one shape; the result
    has that shape. Items on which both agree carry no evidence. Assumes that items come in an order that does not
    depend on the answers.

    Source: Robbins (1970), "Statistical methods related to the law of the iterated logarithm"; Ramdas et
    al. (2023), "Game-theoretic statistics and safe anytime-valid inference".
    """
    from scipy.special import betaln

    w, lost = np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    total: Any = betaln(0.5 + w, 0.5 + lost) - betaln(0.5, 0.5) + (w + lost) * math.log(2.0)
    return np.asarray(total, dtype=np.float64)


def pair_e_value(wins: int, losses: int) -> float:
    """The e-value of `log_pair_e_value` itself; infinite where it is too large for a float. Stop at 1 / alpha."""
    log_value = float(log_pair_e_value(wins, losses))
    return math.exp(log_value) if log_value < 700.0 else math.inf
