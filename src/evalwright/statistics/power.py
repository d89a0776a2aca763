"""How many items a question needs, what a number of items can show, and how many draws are worth their price.

All formulas are the normal approximation: a difference delta is seen with probability `power` at `level` if

    n = (z_{1 - alpha/2} + z_power)^2 (omega_d^2 + sigma_A^2 / K_A + sigma_B^2 / K_B) / delta^2

(Miller 2024, "Adding error bars to evals", section on power). omega_d^2 is the variance over items of the
difference of the two models' true scores, sigma^2 the variance of one draw around its item's score, K the
draws an item. Variances and differences may be numbers or arrays that fit each other; results are then
arrays.

A finite benchmark limits n: items beyond its N do not exist, and repeated draws help only down to omega_d^2
/ N.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import check_level, normal_quantile

F64 = npt.NDArray[np.float64]
_COUNTABLE = 2.0**53


def paired_variance(
    between: npt.ArrayLike,
    *,
    within_a: npt.ArrayLike = 0.0,
    within_b: npt.ArrayLike = 0.0,
    draws_a: npt.ArrayLike = 1,
    draws_b: npt.ArrayLike = 1,
) -> F64:
    """Variance of one item's measured difference: omega_d^2 + sigma_A^2 / K_A + sigma_B^2 / K_B.

    Raises ValueError for a negative variance or fewer than one draw.
    """
    parts = [_not_negative(value, name) for value, name in
             ((between, "between"), (within_a, "within_a"), (within_b, "within_b"))]  # fmt: skip
    draws = [np.asarray(count, dtype=np.float64) for count in (draws_a, draws_b)]
    if not all((count >= 1).all() for count in draws):
        raise ValueError("draws_a and draws_b must be at least 1")
    return np.asarray(parts[0] + parts[1] / draws[0] + parts[2] / draws[1], dtype=np.float64)


def discordant_variance(discordant: npt.ArrayLike, difference: npt.ArrayLike = 0.0) -> F64:
    """Variance of a difference of right-or-wrong answers: the discordant share less difference^2.

    Raises ValueError unless |difference| <= discordant <= 1.
    """
    share, delta = np.asarray(discordant, dtype=np.float64), np.asarray(difference, dtype=np.float64)
    if not ((np.abs(delta) <= share) & (share <= 1)).all():
        raise ValueError("the discordant share must be between the size of the difference and 1")
    return np.asarray(share - delta * delta, dtype=np.float64)


def items_for_difference(
    difference: npt.ArrayLike, variance: npt.ArrayLike, *, level: float = 0.95, power: float = 0.8
) -> npt.NDArray[np.int64]:
    """Items (whole numbers) that show `difference` with probability `power`; `variance` is that of one
    item's difference.

    Raises ValueError for a difference of 0, a negative variance, or a level or power outside (0, 1).
    """
    delta = _not_zero(difference, "difference")
    return _whole(_critical(level, power) ** 2 * _not_negative(variance, "variance") / (delta * delta))


def smallest_visible_difference(
    n: npt.ArrayLike, variance: npt.ArrayLike, *, level: float = 0.95, power: float = 0.8
) -> F64:
    """The difference that n items show with probability `power`: (z + z) sqrt(variance / n)."""
    items = np.asarray(n, dtype=np.float64)
    if not (items >= 1).all():
        raise ValueError("n must be at least 1")
    return np.asarray(_critical(level, power) * np.sqrt(_not_negative(variance, "variance") / items))


def items_for_half_width(
    half_width: npt.ArrayLike, variance: npt.ArrayLike, *, level: float = 0.95
) -> npt.NDArray[np.int64]:
    """Items with which one mean is known to +-half_width: z^2 variance / half_width^2."""
    check_level(level)
    width = _not_zero(half_width, "half_width")
    z = normal_quantile(0.5 + level / 2)
    return _whole(z * z * _not_negative(variance, "variance") / (width * width))


def best_draws(within: float, between: float, *, per_item: float, per_draw: float, most: int) -> int:
    """Draws an item, 1 to `most`, with the least variance for the money: sqrt(within / between x per_item / per_draw).

    Minimises (between + within / K) (per_item + K per_draw); of the two whole numbers beside the optimum the cheaper
    one is taken. Without a price per item one draw is best, without spread between items `most`. Raises ValueError for
    negative variances or prices, or `per_draw` = 0.
    """
    finite = all(map(math.isfinite, (within, between, per_item, per_draw)))
    if not finite or min(within, between, per_item) < 0 or per_draw <= 0:
        raise ValueError(
            "within, between and per_item must be finite and not negative, and per_draw finite and above 0"
        )

    def price(draws: int) -> float:
        return (between + within / draws) * (per_item + draws * per_draw)

    ratio = within * per_item
    exact = math.sqrt(ratio / (between * per_draw)) if between > 0 else (math.inf if ratio > 0 else 0.0)
    low = int(min(max(1.0, math.floor(min(exact, most))), most))
    return min((low, min(low + 1, most)), key=lambda draws: (price(draws), draws))


def _critical(level: float, power: float) -> float:
    check_level(level)
    check_level(power, "power")
    return normal_quantile(0.5 + level / 2) + normal_quantile(power)


def _not_negative(value: npt.ArrayLike, name: str) -> F64:
    array = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ValueError(f"{name} must be finite and not negative")
    return array


def _not_zero(value: npt.ArrayLike, name: str) -> F64:
    array = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(array) & (array != 0)).all():
        raise ValueError(f"{name} must be finite and not 0")
    return array


def _whole(items: npt.ArrayLike) -> npt.NDArray[np.int64]:
    exact = np.asarray(items, dtype=np.float64)
    if not (exact < _COUNTABLE).all():
        raise ValueError(
            "so small a difference or half width needs more items than can be counted; give a larger one"
        )
    return np.asarray(np.ceil(exact - 1e-9 * exact), dtype=np.int64)  # 400.0000000001 items are 400
