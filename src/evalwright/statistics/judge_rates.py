"""A pass rate corrected by the judge's sensitivity and specificity (Rogan & Gladen 1978).

The judge's own figures may come from other items than those it is to judge now, which `corrected_mean` does not
allow; in return the judge must err alike on both, and where it hardly tells right from wrong nothing can be said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level, normal_quantile

_LEAST_POWER = 0.1
"""Below this sensitivity + specificity - 1, the interval is more than ten times as wide as that of the raw rate."""

_SHRINK = 0.25
"""Successes and failures added to sensitivity and specificity. With none, eight labelled wrong answers give intervals
that cover 88%; with the one of Lang & Reiczigel nearly all cover more than 99%."""


@dataclass(frozen=True, slots=True)
class RoganGladen(Plain):
    """The corrected pass rate, clipped to [0, 1], with its interval.

    `raw` is the judge's pass rate. `separation` is sensitivity + specificity - 1: 1 for a perfect judge, 0 for one
    that says the same of right and wrong; [`separation_low`, `separation_high`] is its interval. `useful` is False
    where that interval reaches 0 or the separation is under 0.1: then `value` is nan, the interval is [0, 1], and
    `reason` says why ("" otherwise).
    """

    value: float
    low: float
    high: float
    level: float
    standard_error: float | None
    raw: float
    sensitivity: float
    specificity: float
    separation: float
    separation_low: float
    separation_high: float
    useful: bool
    reason: str
    n_judged: int
    n_labels: int
    method: str


def rogan_gladen(
    passed: int,
    judged: int,
    true_positives: int,
    positives: int,
    true_negatives: int,
    negatives: int,
    *,
    level: float = 0.95,
) -> RoganGladen:
    """p = (q + sp - 1) / (se + sp - 1) from q = passed/judged, se = true_positives/positives, sp = true_negatives/negatives.

    `positives` and `negatives` count labelled items that are right and wrong, apart from the `judged` ones. Variance
    by the delta method, (q(1-q)/n + p^2 se(1-se)/n_pos + (1-p)^2 sp(1-sp)/n_neg) / (se+sp-1)^2, for the interval at
    shrunken rates (after Lang & Reiczigel 2014): z^2/2 more of each kind in q, a quarter in se and sp.

    Raises ValueError for counts that cannot be.
    """
    check_level(level)
    for part, whole, name in (
        (passed, judged, "passed of judged"),
        (true_positives, positives, "true_positives of positives"),
        (true_negatives, negatives, "true_negatives of negatives"),
    ):
        if not 0 <= part <= whole:
            raise ValueError(f"{name}: {part} of {whole} cannot be")
    raw, sensitivity, specificity = (
        k / n if n else math.nan
        for k, n in ((passed, judged), (true_positives, positives), (true_negatives, negatives))
    )
    separation = sensitivity + specificity - 1
    z = normal_quantile(0.5 + level / 2)
    size_se, size_sp = positives + 2 * _SHRINK, negatives + 2 * _SHRINK
    smooth_se, smooth_sp = (true_positives + _SHRINK) / size_se, (true_negatives + _SHRINK) / size_sp
    part_se, part_sp = (smooth_se * (1 - smooth_se) / size_se, smooth_sp * (1 - smooth_sp) / size_sp)
    smooth_j, half_j = smooth_se + smooth_sp - 1, z * math.sqrt(part_se + part_sp)
    separation_low, separation_high = max(-1.0, smooth_j - half_j), min(1.0, smooth_j + half_j)
    reason = _useless(judged, positives, negatives, separation, separation_low)
    value, low, high, error = math.nan, 0.0, 1.0, None
    if not reason:
        value = min(1.0, max(0.0, (raw + specificity - 1) / separation))
        size = judged + z * z
        smooth_q = (passed + z * z / 2) / size
        centre = min(1.0, max(0.0, (smooth_q + smooth_sp - 1) / smooth_j))
        inner = smooth_q * (1 - smooth_q) / size + centre**2 * part_se + (1 - centre) ** 2 * part_sp
        error = math.sqrt(inner) / smooth_j
        low, high = max(0.0, min(value, centre - z * error)), min(1.0, max(value, centre + z * error))
    return RoganGladen(
        value=value,
        low=low,
        high=high,
        level=level,
        standard_error=error,
        raw=raw,
        sensitivity=sensitivity,
        specificity=specificity,
        separation=separation,
        separation_low=separation_low,
        separation_high=separation_high,
        useful=not reason,
        reason=reason,
        n_judged=judged,
        n_labels=positives + negatives,
        method="useless: the whole range" if reason else "Rogan-Gladen, delta method (shrunken rates)",
    )


def _useless(judged: int, positives: int, negatives: int, separation: float, separation_low: float) -> str:
    """Why nothing can be said, or ""."""
    if judged == 0:
        return "the judge judged no item beside the labelled ones, so there is no pass rate to correct"
    if positives == 0 or negatives == 0:
        missing = "right" if positives == 0 else "wrong"
        return f"no labelled item is {missing}, so the judge's rate on such items is unknown"
    if separation_low <= 0:
        return "on these labels the judge may give the same verdicts to right and wrong items"
    if separation < _LEAST_POWER:
        return "the judge barely separates right from wrong items, so its pass rate says almost nothing"
    return ""
