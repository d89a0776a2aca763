"""Formats numbers, in one place, so that a number looks the same everywhere.

Scores of bounded metrics are shown in points of 100 with one decimal, perplexities with four
significant digits, and other metrics with as many decimals as their interval supports. The
minus is plain ASCII, so that numbers can be copied into a program; a range of ranks has an en
dash. A missing number is "n/a".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from evalwright.analysis.words import count as count
from evalwright.analysis.words import counted as counted
from evalwright.analysis.words import duration as duration
from evalwright.analysis.words import plural as plural
from evalwright.metrics.registry import BOUNDED, LOWER_IS_BETTER
from evalwright.statistics import Estimate

NOTHING = "n/a"

Unit = Literal["points", "perplexity", "plain"]
"""How a metric's values are shown.

"points": times 100, with one decimal; "perplexity": with four significant digits; "plain": with
as many decimals as the interval supports.
"""


def unit_of(kind: str) -> Unit:
    """Return the unit of a kind of metric."""
    if kind in BOUNDED:
        return "points"
    return "perplexity" if kind in LOWER_IS_BETTER else "plain"


def value(estimate: Estimate, unit: Unit, decimals: int | None = None) -> str:
    """Format an estimate's value without its interval: "62.5".

    Args:
        estimate: The estimate.
        unit: The metric's unit.
        decimals: How many decimals there are; by default as many as its interval is worth.
    """
    return number(estimate.value, unit, _decimals(estimate, unit, decimals))


def limits(
    estimate: Estimate, unit: Unit, decimals: int | None = None
) -> tuple[str, str] | None:
    """Format both ends of the interval, with the value's decimals; None without an interval."""
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return None
    return _ends(estimate, (estimate.low, estimate.high), unit, decimals)


def _ends(
    estimate: Estimate,
    ends: tuple[float, float],
    unit: Unit,
    decimals: int | None = None,
) -> tuple[str, str]:
    decimals = _decimals(estimate, unit, decimals)
    return number(ends[0], unit, decimals), number(ends[1], unit, decimals)


def _decimals(estimate: Estimate, unit: Unit, decimals: int | None) -> int:
    if decimals is not None:
        return decimals
    return count_decimals(estimate.value, estimate.low, estimate.high, unit)


def common_decimals(estimates: Sequence[Estimate | None], unit: Unit) -> int | None:
    """Count the decimals that most numbers of a column have, the more of two equally frequent ones.

    None where there is no number.
    """
    counts = Counter(
        count_decimals(estimate.value, estimate.low, estimate.high, unit)
        for estimate in estimates
        if estimate is not None and math.isfinite(estimate.value)
    )
    return max(counts, key=lambda decimals: (counts[decimals], decimals), default=None)


def interval(
    estimate: Estimate,
    unit: Unit,
    without: str = f"[{NOTHING}]",
    decimals: int | None = None,
) -> str:
    """Format the interval without the value: "[57.1, 67.6]".

    Args:
        estimate: The estimate.
        unit: The metric's unit.
        without: The text to return where there is no interval.
        decimals: As of `value`.
    """
    ends = limits(estimate, unit, decimals)
    return f"[{ends[0]}, {ends[1]}]" if ends else without


def score(estimate: Estimate | None, unit: Unit, decimals: int | None = None) -> str:
    """Format the value with its interval: "62.5 [57.1, 67.6]"; "n/a" where nothing was scored."""
    if estimate is None or math.isnan(estimate.value):
        return NOTHING
    bracket = interval(estimate, unit, decimals=decimals)
    return f"{value(estimate, unit, decimals)} {bracket}"


def aligned_scores(
    estimates: Sequence[Estimate | None], unit: Unit, decimals: int | None = None
) -> list[str]:
    """Format the scores of a column, padded so that values and limits are aligned."""
    scored = [
        estimate if estimate and not math.isnan(estimate.value) else None
        for estimate in estimates
    ]
    rows = [
        (
            value(estimate, unit, decimals),
            *(limits(estimate, unit, decimals) or ("", "")),
        )
        if estimate
        else ("", "", "")
        for estimate in scored
    ]
    widths = [
        max(map(len, column), default=0) for column in zip(*rows, strict=True)
    ] or [0, 0, 0]
    texts = []
    for estimate, cells in zip(scored, rows, strict=True):
        text, low, high = (
            cell.rjust(width) for cell, width in zip(cells, widths, strict=True)
        )
        bracket = f"[{low}, {high}]"
        if estimate and not cells[1]:
            bracket = f"[{NOTHING}]".ljust(len(bracket))
        texts.append(f"{text} {bracket}" if estimate else NOTHING)
    return texts


def difference(amount: float, low: float, high: float, *, bounded: bool) -> str:
    """Format a difference with its sign and interval: "+3.2 [-1.0, 7.4]".

    Args:
        amount: The difference, in the metric's own scale.
        low: The lower end of its interval, nan where there is none.
        high: The upper end.
        bounded: Whether to show it in points of 100.
    """
    if math.isnan(amount):
        return NOTHING
    unit: Unit = "points" if bounded else "plain"
    decimals = count_decimals(amount, low, high, unit)
    text = number(amount, unit, decimals)
    sign = "" if text.startswith("-") or float(text.replace(",", "")) == 0 else "+"
    if math.isnan(low) or math.isnan(high):
        return f"{sign}{text} [{NOTHING}]"
    return (
        f"{sign}{text} [{number(low, unit, decimals)}, {number(high, unit, decimals)}]"
    )


def points(amount: float) -> str:
    """Format a score or a difference in points of 100, with one decimal."""
    return number(amount, "points", 1)


def gap(amount: float, bounds: Any, *, bounded: bool = True) -> str:
    """Format a difference with the interval from `bounds.low` to `bounds.high`."""
    return difference(amount, bounds.low, bounds.high, bounded=bounded)


def number(amount: float, unit: Unit, decimals: int) -> str:
    """Format a number in its unit, without a minus before zero."""
    if math.isnan(amount):
        return NOTHING
    if math.isinf(amount):
        return "inf" if amount > 0 else "-inf"
    scaled = 100 * amount if unit == "points" else amount
    if abs(scaled) >= 1e7:
        return f"{scaled:.3e}"
    text = f"{scaled:,.{decimals}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def count_decimals(amount: float, low: float, high: float, unit: Unit) -> int:
    """Count the decimals of a number; nan for the ends of an interval that does not exist."""
    if unit == "points":
        return 1
    width = high - low
    if unit == "plain" and math.isfinite(width) and width > 0:
        return min(
            6, max(0, 1 - math.floor(math.log10(width)))
        )  # two significant digits of the interval's width
    if not math.isfinite(amount) or amount == 0:
        return 3
    return min(9, max(0, 3 - math.floor(math.log10(abs(amount)))))


def ranks(rank_range: tuple[int, int] | None) -> str:
    """Format a range of ranks: "1", "2–4", or "n/a"."""
    if rank_range is None:
        return NOTHING
    best, worst = rank_range
    return str(best) if best == worst else f"{best}–{worst}"


def items(
    n: int, n_missing: int, n_clusters: int | None = None, n_unsure: int = 0
) -> str:
    """Say how many items a number rests on: "240", "240, 3 missing", "240 in 60 clusters"."""
    text = count(n)
    if n_clusters is not None:
        text += f" in {count(n_clusters)} {plural(n_clusters, 'cluster')}"
    if n_unsure:
        text += f", {count(n_unsure)} of them unsure"
    if n_missing:
        text += f", {count(n_missing)} missing"
    return text


def unsure_range(estimate: Estimate, unit: Unit) -> tuple[str, str] | None:
    """Format the score if all unsure readings were wrong, and if all were right.

    Returns None where that range is within the interval.
    """
    if estimate.unsure_range is None or math.isnan(estimate.value):
        return None
    low, high = estimate.unsure_range
    if low >= estimate.low and high <= estimate.high:
        return None
    return _ends(estimate, (low, high), unit)


def tokens(n: int) -> str:
    """Format a number of tokens in a short form: "812", "12.3k", "4.56M"."""
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= size * 0.9995:
            scaled = n / size
            decimals = 2
            if scaled >= 99.95:
                decimals = 0
            elif scaled >= 9.995:
                decimals = 1
            return f"{scaled:.{decimals}f}{mark}"
    return str(n)


def money(dollars: float | None) -> str:
    """Format US dollars, with more digits for small sums: "$12.34", "$0.0021"; "n/a" if unknown."""
    if dollars is None or not math.isfinite(dollars):
        return NOTHING
    if dollars == 0:
        return "$0"
    if abs(dollars) >= 0.0995:
        return f"${dollars:,.2f}"
    return f"${dollars:.2g}" if abs(dollars) >= 1e-4 else "under $0.0001"


def rate(per_second: float) -> str:
    """Format a speed in a suitable unit: "1,240/s", "12.3/s", "4.0/min"."""
    if not math.isfinite(per_second) or per_second < 0:
        return NOTHING
    if per_second >= 99.95:
        return f"{per_second:,.0f}/s"
    return f"{per_second:.1f}/s" if per_second >= 0.95 else f"{per_second * 60:.1f}/min"


def p_value(p: float) -> str:
    """Format a p-value: "< 0.001", "0.013", "0.40"; more digits where rounding would give 5%."""
    if math.isnan(p):
        return NOTHING
    if p < 0.001:
        return "< 0.001"
    if 0.0495 < p < 0.0505:
        return f"{p:.4g}"
    return f"{p:.2g}" if p < 0.0995 else f"{p:.2f}"
