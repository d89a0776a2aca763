"""A comparison in plain words that a careful statistician would sign."""

from __future__ import annotations

import math

from evalwright.statistics.paired import PairedComparison


def sentence(comparison: PairedComparison, name_a: str, name_b: str, unit: str = "points") -> str:
    """One sentence that says who is better by how much, or what could not have been seen.

    With unit "points" scores from 0 to 1 are shown times 100; any other unit shows them as they are, "" without a
    word for it. Numbers get the decimals that the interval deserves.
    """
    scale = 100.0 if unit == "points" else 1.0
    if comparison.n == 0:
        return f"{name_a} and {name_b} cannot be compared: no item has a score from both."
    decimals = _decimals((comparison.high - comparison.low) * scale)

    def show(x: float) -> str:
        text = f"{x * scale:.{decimals}f}"
        return text.removeprefix("-") if float(text) == 0 else text

    word = f" {unit}" if unit else ""
    details = _details(comparison, show(comparison.low), show(comparison.high))
    if comparison.verdict != "no difference seen":
        side = "higher" if comparison.verdict == "better" else "lower"
        return f"{name_a} scores {show(abs(comparison.difference))}{word} {side} than {name_b} ({details})."
    gap = f"{name_a} minus {name_b}: {show(comparison.difference)}{word}"
    seen = f"No difference between {name_a} and {name_b} was seen ({gap}, {details})"
    visible = comparison.smallest_visible_difference
    if math.isnan(visible):
        return f"{seen}; how small a difference could have been seen is not known."
    if visible >= 1.0 and unit == "points":
        return f"{seen}; with so few items no difference could have been seen reliably."
    return f"{seen}; differences under {show(visible)}{word} could not have been seen reliably."


def _details(comparison: PairedComparison, low: str, high: str) -> str:
    parts = []
    if math.isfinite(comparison.low) and math.isfinite(comparison.high):
        parts.append(f"{100 * comparison.level:g}% interval {low} to {high}")
    else:
        parts.append("no interval")
    if math.isfinite(comparison.p_value):
        parts.append(_p_value(comparison.test, comparison.p_value))
    items = f"n = {comparison.n:,}"
    if comparison.n_clusters is not None:
        items += f" in {comparison.n_clusters:,} cluster{'' if comparison.n_clusters == 1 else 's'}"
    parts.append(items)
    if comparison.n_missing:
        parts.append(f"{comparison.n_missing:,} left out without a score")
    return ", ".join(parts)


def _p_value(test: str, p: float) -> str:
    name = test if test.endswith("p") else f"{test}, p"
    if p < 0.0001:
        return f"{name} < 0.0001"
    if 0.0495 < p < 0.0505:  # two digits would round it onto the threshold that it misses or meets
        return f"{name} = {p:.4g}"
    return f"{name} = {p:.2g}" if p < 0.0995 else f"{name} = {p:.2f}"


def _decimals(width: float) -> int:
    """Decimals that show an interval of this width with two digits that count; 1 where there is no width."""
    if not math.isfinite(width) or width <= 0:
        return 1
    return min(6, max(1, 1 - math.floor(math.log10(width))))
