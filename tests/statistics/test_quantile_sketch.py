"""The sketch against the sorted values themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics.quantile_sketch import QuantileSketch


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=300),
    st.floats(0, 1),
    st.sampled_from([0.05, 0.01, 0.002]),
)
def test_a_quantile_is_within_its_accuracy(values: list[float], share: float, accuracy: float) -> None:
    sketch = QuantileSketch(accuracy)
    for value in values:
        sketch.add(value)
    exact = sorted(values)[math.floor(share * (len(values) - 1))]
    assert sketch.quantile(share) == pytest.approx(exact, rel=accuracy * (1 + 1e-9))
    assert (sketch.n, sketch.largest) == (len(values), max(values))
    assert sketch.total == pytest.approx(sum(values))


def test_memory_goes_by_the_range_and_not_by_the_number() -> None:
    sketch = QuantileSketch(0.01)
    values = np.random.default_rng(0).lognormal(0, 2, 50_000)
    for value in values:
        sketch.add(float(value))
    buckets = len(sketch._counts)
    assert buckets <= math.ceil(math.log(values.max() / values.min()) / math.log(1.01 / 0.99)) + 1 < 1300
    assert sketch.quantile(0.99) == pytest.approx(np.quantile(values, 0.99, method="lower"), rel=0.0101)


def test_nothing_zero_and_what_is_refused() -> None:
    sketch = QuantileSketch()
    assert math.isnan(sketch.quantile(0.5))
    sketch.add(0.0)
    sketch.add(3.0)
    assert sketch.quantile(0) == 0
    assert sketch.quantile(1) == pytest.approx(3.0, rel=0.01)
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="finite and not negative"):
            sketch.add(wrong)
    with pytest.raises(ValueError, match="between 0 and 1"):
        sketch.quantile(1.1)
    with pytest.raises(ValueError, match="accuracy"):
        QuantileSketch(0)
