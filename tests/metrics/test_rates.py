"""The rate of what should not happen is one minus the share of what should, interval and bounds mirrored."""

from __future__ import annotations

import numpy as np
import pytest

from evalwright.metrics.means import accuracy
from evalwright.metrics.rates import hallucination_rate
from evalwright.metrics.registry import BOUNDED, LOWER_IS_BETTER, Column, compute
from evalwright.statistics import wilson


def test_it_mirrors_the_share() -> None:
    column = Column(np.array([1.0, 1.0, 0.0, 1.0]), {}, n_failed=1)
    found, share = hallucination_rate(column), accuracy(column)
    assert found.value == 0.25
    assert (found.low, found.high) == pytest.approx(wilson(1, 4))
    assert (found.n, found.n_failed, found.standard_error) == (4, 1, share.standard_error)
    assert found.bounds == pytest.approx((0.4, 0.2))
    assert compute("hallucination-rate", column, {"level": 0.9}).high < found.high


def test_nothing_scored_is_no_number() -> None:
    assert np.isnan(hallucination_rate(Column(np.zeros(0), {})).value)


def test_it_is_known_as_a_rate_of_which_less_is_better() -> None:
    assert "hallucination-rate" in BOUNDED & LOWER_IS_BETTER
