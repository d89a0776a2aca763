"""Data with little or no spread, in every comparison: no p-value is 0, and no interval that is
given has no width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.statistics import (
    cohen_kappa,
    compare_paired,
    compare_unpaired,
    contamination_check,
    corrected_difference,
    equivalence_paired,
    krippendorff_alpha,
    mean_interval,
    raw_agreement,
    swap_consistency,
)

UNIT = (0.0, 1.0)
Rows = list[list[float]]


def _paired(rows: Rows) -> Iterator[Any]:
    a, b, c, d = np.array(rows).T
    pairs = np.arange(len(a)) // 2
    for span in (UNIT, None):
        yield compare_paired(a, b, value_range=span)
        yield compare_paired(a, b, clusters=pairs, value_range=span)
        yield contamination_check(a, b, c, d, value_range=span)
    yield equivalence_paired(a, b, margin=0.1, value_range=UNIT)


def _unpaired(rows: Rows) -> Iterator[Any]:
    a, b, _, _ = np.array(rows).T
    for span in (UNIT, None):
        yield compare_unpaired(a, b[: max(1, len(b) // 2)], value_range=span)


def _corrected(rows: Rows) -> Iterator[Any]:
    a, b, c, d = np.array(rows).T
    for labelled in {2, (len(a) + 1) // 2, len(a)}:
        human = [np.where(np.arange(len(a)) < labelled, one, np.nan) for one in (c, d)]
        for span in (UNIT, None):
            yield corrected_difference(a, human[0], b, human[1], value_range=span)


def _judges(rows: Rows) -> Iterator[Any]:
    table = np.array(rows)
    yield swap_consistency(np.round(table[:, 0]), np.round(table[:, 1]))
    yield mean_interval(table[:, 0], value_range=UNIT)
    for agreement in (raw_agreement, krippendorff_alpha):
        yield agreement(np.round(table[:, :2]))
    yield cohen_kappa(*np.round(table[:, :2]).T)


VALUE = st.sampled_from([0.0, 1.0, 1.0, 0.5, 1 - 1e-9])
ROWS = st.lists(st.lists(VALUE, min_size=4, max_size=4), min_size=2, max_size=12)


@pytest.mark.parametrize("results", [_paired, _unpaired, _corrected, _judges])
@settings(max_examples=60, deadline=None)
@given(rows=ROWS, repeat=st.sampled_from([1, 1, 8]))
def test_little_spread_is_never_certainty(
    results: Callable[[Rows], Iterator[Any]], rows: Rows, repeat: int
) -> None:
    for found in results(rows * repeat):
        p_value = getattr(found, "p_value", None)
        assert p_value is None or math.isnan(p_value) or 0 < p_value <= 1, found
        low = getattr(found, "low", math.nan)
        high = getattr(found, "high", math.nan)
        assert math.isnan(low) or math.isnan(high) or low < high, found


def test_two_labels_without_spread_show_little() -> None:
    """Both labels say the same of two models: that is two labels, not proof."""
    a = np.ones(40)
    b = np.zeros(40)
    human = (
        np.where(np.arange(40) < 2, 1.0, np.nan),
        np.where(np.arange(40) < 2, 0.0, np.nan),
    )
    found = corrected_difference(a, human[0], b, human[1])
    assert found.value == 1
    assert found.p_value is not None
    assert found.p_value > 0.05
    assert found.low < 0 < found.high
    unknown = corrected_difference(a, human[0], b, human[1], value_range=None)
    assert math.isnan(unknown.p_value or math.nan)
    assert math.isnan(unknown.low)
