"""The sentence about a comparison, word for word."""

from dataclasses import replace

import numpy as np
import pytest

from evalwright.reports.conclusions import sentence
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
