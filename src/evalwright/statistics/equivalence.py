"""Equivalence: are two models (or a model and a target) the same, up to a margin named beforehand?

"No difference seen" is not "no difference". Two one-sided tests (TOST, Schuirmann 1987) reject "differs by the margin or
more"; with the intervals that the package uses anyway this is the same as asking whether the interval at level
1 - 2 alpha lies inside the margin. So the answer can never contradict the interval, and the p-value is the alpha at which it
just fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level
from evalwright.statistics.paired import paired
from evalwright.statistics.units import Clusters, Range


@dataclass(frozen=True, slots=True)
class Equivalence(Plain):
    """Whether `difference` lies inside (`least`, `most`), at error rate `alpha`.

    [`low`, `high`] is its interval at `level` = 1 - 2 alpha, whatever the `n_missing` items that failed would have scored. `p_value` is the greater of `p_least` (not below `least`)
    and `p_most` (not above `most`); 0.5 stands for 0.5 or more where the test is not a t test. nan without an interval.
    """

    difference: float
    low: float
    high: float
    level: float
    least: float
    most: float
    alpha: float
    p_value: float
    p_least: float
    p_most: float
    equivalent: bool
    n: int
    n_missing: int
    n_clusters: int | None
    method: str


def equivalence_paired(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    margin: float | Range,
    alpha: float = 0.05,
    missing: npt.ArrayLike | None = None,
    clusters: Clusters = None,
    binary: bool | None = None,
    value_range: Range | None = (0.0, 1.0),
) -> Equivalence:
    """TOST of mean_a - mean_b on common items, with the interval that `compare_paired` gives: equivalent whatever failed.

    `margin`: the smallest difference that would matter, > 0, or (least, most). The other arguments and the errors are
    those of `compare_paired`; a margin without room or an alpha outside (0, 0.5) is a ValueError too.
    """
    least, most = _margin(margin, alpha)
    both = paired(a, b, missing=missing, clusters=clusters, binary=binary, value_range=value_range)
    found = both.comparison(1 - 2 * alpha)
    p_least, p_most = float(both.found.tail(least)[0, 1]), float(both.found.tail(most, above=False)[0, 1])
    return Equivalence(
        difference=found.difference,
        low=found.low,
        high=found.high,
        level=1 - 2 * alpha,
        least=least,
        most=most,
        alpha=alpha,
        p_value=max(p_least, p_most),
        p_least=p_least,
        p_most=p_most,
        equivalent=bool(found.low >= least and found.high <= most),
        n=found.n,
        n_missing=found.n_missing,
        n_clusters=found.n_clusters,
        method=f"TOST, {found.test}",
    )


def _margin(margin: float | Range, alpha: float) -> Range:
    check_level(alpha, "alpha")
    if alpha >= 0.5:
        raise ValueError(f"alpha must be below 0.5, but is {alpha}")
    least, most = margin if isinstance(margin, tuple) else (-margin, margin)
    if not (math.isfinite(least) and math.isfinite(most) and least < most):
        raise ValueError(
            f"margin must be a number above 0 or a pair (least, most), but is {margin}; "
            "it is the smallest difference that would matter to you"
        )
    return float(least), float(most)
