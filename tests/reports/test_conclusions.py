"""The sentences about comparisons say what may be concluded, and no more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evalwright.reports.conclusions import conclusion, sentence
from evalwright.statistics import PairedComparison, compare_paired, macro_difference


def paired(right_a: int, right_b: int, n: int = 200) -> PairedComparison:
    """Independent answers of which so many of `n` are right."""
    chance = np.random.default_rng(right_a * 1000 + right_b)

    def answers(right: int) -> NDArray[np.float64]:
        scores = np.zeros(n)
        scores[:right] = 1.0
        chance.shuffle(scores)
        return scores

    return compare_paired(answers(right_a), answers(right_b))


def said(**tasks: PairedComparison) -> str:
    return conclusion(macro_difference(list(tasks.values())), tasks, "A", "B")


def test_narrow_intervals_get_the_decimals_they_deserve() -> None:
    rng = np.random.default_rng(0)
    a = rng.random(200_000)
    text = sentence(
        compare_paired(a, np.clip(a - 0.001 + rng.normal(0, 0.02, 200_000), 0, 1)),
        "A",
        "B",
    )
    assert text.startswith("A scores 0.") and "points higher" in text
    assert "interval 0.0" in text or "interval 0.1" in text


def test_the_better_one_is_named_first_and_its_interval_is_positive() -> None:
    text = said(x=paired(60, 180), y=paired(80, 170))
    assert "B scores 52.5 points higher than A (95% interval 4" in text
    assert "-" not in text.split("(95%")[1].split(")")[0]
    assert (
        "By task (Holm-corrected, 5%), B scores higher on x (by 60.0) and y (by 45.0)."
        in text
    )


def test_opposite_directions_are_not_hidden_by_a_mean_of_nothing() -> None:
    text = said(x=paired(150, 50), y=paired(50, 150))
    assert (
        "no significant difference between A and B was found (A minus B: +0.0 points"
        in text
    )
    assert "would often go undetected" in text
    assert "A scores higher on x (by 50.0) and B scores higher on y (by 50.0)." in text
    assert "By task" not in said(x=paired(100, 101), y=paired(90, 92))


def test_numbers_without_intervals_are_the_reason_and_not_a_lack_of_items() -> None:
    from evalwright.analysis.ranking import Pair
    from evalwright.reports.conclusions import _not_compared

    nan = float("nan")
    for units, why in (
        (40, "this number has no intervals"),
        (1, "too few scored items in common"),
    ):
        pair = Pair(0, 1, 5.0, nan, nan, nan, nan, nan, units, units, "not compared")
        assert why in _not_compared([pair], [pair], ["a", "b"])
