"""The estimate record and the bounds for what failed."""

import json
import math

import pytest

from evalwright.statistics import Estimate
from evalwright.statistics.estimate import failure_bounds


def test_as_dict_is_json_without_nan() -> None:
    estimate = Estimate(0.5, math.nan, math.inf, 0.95, 1, 2, None, None, "one item", (0.2, 0.9))
    text = json.dumps(estimate.as_dict(), allow_nan=False)
    assert json.loads(text) == {
        "value": 0.5,
        "low": None,
        "high": None,
        "level": 0.95,
        "n": 1,
        "n_failed": 2,
        "n_clusters": None,
        "standard_error": None,
        "method": "one item",
        "bounds": [0.2, 0.9],
    }


def test_bounds_are_all_wrong_and_all_right() -> None:
    assert failure_bounds(0.75, 8, 2, (0.0, 1.0)) == pytest.approx((0.6, 0.8))
    assert failure_bounds(3.0, 1, 1, (1.0, 5.0)) == pytest.approx((2.0, 4.0))
    assert failure_bounds(math.nan, 0, 3, (0.0, 1.0)) == (0.0, 1.0)
    assert failure_bounds(0.75, 8, 0, (0.0, 1.0)) is None
    assert failure_bounds(0.75, 8, 2, None) is None
