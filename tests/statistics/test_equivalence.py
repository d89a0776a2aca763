"""Equivalence tests against statsmodels, against the interval, and by their error rate."""

import json
import math

import numpy as np
import pytest
from statsmodels.stats.weightstats import ttost_paired

from evalwright.statistics import compare_paired, equivalence_paired


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.2])
def test_paired_t_is_that_of_statsmodels(shift: float) -> None:
    rng = np.random.default_rng(1)
    a = rng.random(60) * 0.7
    b = a + rng.normal(0.05, 0.05, 60) * 0.5 + shift * 0.5
    found = equivalence_paired(a, b, margin=(-0.06, 0.04), value_range=None)
    p, (_, p_least, _), (_, p_most, _) = ttost_paired(a, b, -0.06, 0.04)
    assert (found.p_value, found.p_least, found.p_most) == pytest.approx((p, p_least, p_most), rel=1e-9)
    assert found.equivalent == (p < 0.05)


def test_clusters_and_the_interval_agree() -> None:
    rng = np.random.default_rng(2)
    ids = np.repeat(np.arange(25), 8)
    a, b = (rng.random((2, 200)) < 0.7).astype(float)
    found = equivalence_paired(a, b, margin=0.15, clusters=ids, alpha=0.1)
    interval = compare_paired(a, b, clusters=ids, level=0.8)
    assert (found.low, found.high, found.level) == pytest.approx((interval.low, interval.high, 0.8))
    assert found.method == "TOST, clustered score test"
    assert found.equivalent == (found.p_value < 0.1)


def test_the_p_value_is_the_rate_at_which_the_interval_fits() -> None:
    a = np.array([1] * 130 + [0] * 70)
    b = np.array([1] * 120 + [0] * 10 + [1] * 12 + [0] * 58)
    found = equivalence_paired(a, b, margin=0.05)
    interval = compare_paired(a, b, level=0.9)
    assert (found.low, found.high) == (interval.low, interval.high)
    fits = []
    for rate in found.p_value + np.array([-0.1, -0.001, 0.001, 0.1]) * min(1.0, found.p_value * 5):
        one = compare_paired(a, b, level=1 - 2 * rate)
        fits.append(one.low >= -0.05 and one.high <= 0.05)
    assert fits == [False, False, True, True]
    assert found.equivalent == (found.p_value < 0.05)
    assert equivalence_paired(a, b, margin=0.02).p_value > found.p_value


def test_equal_answers_are_equivalent_only_as_far_as_their_number_goes() -> None:
    few, many = np.full(20, 0.5), np.full(400, 0.5)
    assert not equivalence_paired(few, few, margin=0.05).equivalent
    found = equivalence_paired(many, many, margin=0.05)
    assert found.equivalent
    # 400 items that tie exclude that more than 5% differ, at an error rate of (1 - 0.05)^400 and a little more.
    assert 0.95**400 < found.p_value < 1e-4


def test_nothing_to_test() -> None:
    found = equivalence_paired([math.nan], [1.0], margin=0.1)
    assert not found.equivalent
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["p_value"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"margin": 0.0}, "margin"),
        ({"margin": (0.2, 0.1)}, "margin"),
        ({"margin": 0.1, "alpha": 0.6}, "below 0.5"),
        ({"margin": 0.1, "alpha": 0.0}, "alpha"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        equivalence_paired([1, 0], [1, 1], **arguments)  # type: ignore[arg-type]


def test_false_equivalence_is_rare_at_the_margin() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(0.05, 0.1, (1500, 40))
    found = [equivalence_paired(row, np.zeros(40), margin=0.05, value_range=None).equivalent for row in a]
    assert 0.03 <= np.mean(found) <= 0.065
