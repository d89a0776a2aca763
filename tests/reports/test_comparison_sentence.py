"""The sentence about a comparison, word for word."""

import math
from dataclasses import replace

import numpy as np
import pytest

from evalwright.reports.comparison_sentence import sentence
from evalwright.statistics import PairedComparison, compare_paired

BASE = PairedComparison(
    n=240,
    n_missing=0,
    n_clusters=None,
    mean_a=0.7,
    mean_b=0.638,
    difference=0.062,
    low=0.031,
    high=0.093,
    level=0.95,
    p_value=0.00041,
    test="exact McNemar mid-p",
    interval_method="Bonett-Price",
    standard_error=0.0158,
    correlation=0.5,
    smallest_visible_difference=0.044,
    power=0.8,
    discordant=(20, 5),
    verdict="better",
)
NONE = replace(
    BASE, difference=-0.012, low=-0.0301, high=0.0099, p_value=0.45, verdict="no difference seen", n_missing=3
)


@pytest.mark.parametrize(
    ("comparison", "unit", "expected"),
    [
        (
            BASE,
            "points",
            "A scores 6.2 points higher than B (95% interval 3.1 to 9.3, exact McNemar mid-p = 0.00041, n = 240).",
        ),
        (
            replace(
                BASE,
                difference=-0.062,
                low=-0.093,
                high=-0.031,
                verdict="worse",
                test="clustered t",
                n_clusters=31,
            ),
            "points",
            "A scores 6.2 points lower than B (95% interval -9.3 to -3.1, clustered t, p = 0.00041, n = 240 in 31 clusters).",
        ),
        (
            replace(BASE, p_value=1e-9, level=0.99, n=12_400),
            "chrF",
            "A scores 0.062 chrF higher than B (99% interval 0.031 to 0.093, exact McNemar mid-p < 0.0001, n = 12,400).",
        ),
        (
            NONE,
            "points",
            "No difference between A and B was seen (A minus B: -1.2 points, 95% interval -3.0 to 1.0, "
            "exact McNemar mid-p = 0.45, n = 240, 3 left out without a score); "
            "differences under 4.4 points could not have been seen reliably.",
        ),
        (
            replace(NONE, smallest_visible_difference=1.0, n_missing=0),
            "points",
            "No difference between A and B was seen (A minus B: -1.2 points, 95% interval -3.0 to 1.0, "
            "exact McNemar mid-p = 0.45, n = 240); with so few items no difference could have been seen reliably.",
        ),
        (
            replace(
                NONE,
                low=math.nan,
                high=math.nan,
                p_value=math.nan,
                smallest_visible_difference=math.nan,
                n_missing=0,
            ),
            "",
            "No difference between A and B was seen (A minus B: 0.0, no interval, n = 240); "
            "how small a difference could have been seen is not known.",
        ),
        (replace(NONE, n=0), "points", "A and B cannot be compared: no item has a score from both."),
    ],
)
def test_sentence(comparison: PairedComparison, unit: str, expected: str) -> None:
    assert sentence(comparison, "A", "B", unit) == expected


@pytest.mark.parametrize(
    ("p", "shown"),
    [(1.0, "= 1.00"), (0.0504, "= 0.0504"), (0.04996, "= 0.04996"), (0.032, "= 0.032"), (0.0001, "= 0.0001")],
)
def test_p_values_are_never_rounded_onto_the_threshold(p: float, shown: str) -> None:
    assert f"mid-p {shown}, n" in sentence(replace(BASE, p_value=p), "A", "B")


def test_narrow_intervals_get_the_decimals_they_deserve() -> None:
    rng = np.random.default_rng(0)
    a = rng.random(200_000)
    text = sentence(compare_paired(a, np.clip(a - 0.001 + rng.normal(0, 0.02, 200_000), 0, 1)), "A", "B")
    assert text.startswith("A scores 0.")
    assert "points higher" in text
    assert "interval 0.0" in text or "interval 0.1" in text
