"""The bootstrap over units against scipy.stats.bootstrap, the t interval, and its own shortcuts."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from evalwright.statistics.bootstrap import collapse, resampled_interval

F64 = npt.NDArray[np.float64]


def _ratio(sums: F64) -> F64:
    result: F64 = sums[..., 0] / sums[..., 1]
    return result


def _pairs(n: int, seed: int) -> F64:
    rng = np.random.default_rng(seed)
    lengths = rng.gamma(2.0, 5.0, n) + 1
    return np.column_stack([lengths * rng.gamma(4.0, 0.5, n), lengths])


def test_bca_is_that_of_scipy() -> None:
    pairs = _pairs(400, 1)
    ours = resampled_interval(pairs, _ratio, draws=20_000, seed=3)
    oracle = stats.bootstrap(
        (pairs[:, 0], pairs[:, 1]),
        lambda x, y, axis: x.sum(axis=axis) / y.sum(axis=axis),
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        batch=2000,
        method="BCa",
        rng=np.random.default_rng(4),
    )
    width = oracle.confidence_interval.high - oracle.confidence_interval.low
    assert ours.low == pytest.approx(oracle.confidence_interval.low, abs=0.03 * width)
    assert ours.high == pytest.approx(oracle.confidence_interval.high, abs=0.03 * width)
    assert ours.standard_error == pytest.approx(oracle.standard_error, rel=0.03)
    assert ours.method == "BCa bootstrap over clusters, 20000 draws"


def test_few_units_are_widened_like_t() -> None:
    values = np.array([0.1, 0.25, 0.3, 0.42, 0.5, 0.58, 0.7, 0.75, 0.9])
    ours = resampled_interval(
        values[:, None], lambda sums: sums[..., 0] / 9, draws=40_000, seed=1
    )
    low, high = stats.t.interval(0.95, 8, values.mean(), stats.sem(values))
    plain = 2 * 1.96 * values.std() / 3
    assert ours.high - ours.low == pytest.approx(high - low, rel=0.06)
    assert ours.high - ours.low > 1.1 * plain


def test_equal_units_drawn_together_are_the_same_bootstrap() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [3.0, 2.0]])
    counts = np.array([40, 30, 20])
    together = resampled_interval(rows, _ratio, counts=counts, draws=20_000, seed=1)
    apart = resampled_interval(
        np.repeat(rows, counts, axis=0), _ratio, draws=20_000, seed=2
    )
    width = apart.high - apart.low
    assert together.low == pytest.approx(apart.low, abs=0.04 * width)
    assert together.high == pytest.approx(apart.high, abs=0.04 * width)
    assert together.standard_error == pytest.approx(apart.standard_error, rel=0.04)


def test_the_jackknife_for_many_units_agrees_with_the_bootstrap() -> None:
    pairs = _pairs(25_000, 5)
    jackknife = resampled_interval(pairs, _ratio, seed=1)
    bootstrap = resampled_interval(pairs, _ratio, draws=1500, seed=1)
    assert jackknife.method == "jackknife over clusters, t (G=25000)"
    assert bootstrap.method == "BCa bootstrap over clusters, 1500 draws"
    assert jackknife.standard_error == pytest.approx(bootstrap.standard_error, rel=0.1)
    width = jackknife.high - jackknife.low
    assert jackknife.low == pytest.approx(bootstrap.low, abs=0.1 * width)
    assert jackknife.high == pytest.approx(bootstrap.high, abs=0.1 * width)


def test_no_spread_is_an_error_of_exactly_zero() -> None:
    assert resampled_interval(np.ones((30, 2)) * 0.1, _ratio).standard_error == 0.0


def test_one_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two clusters"):
        resampled_interval(np.ones((1, 2)), _ratio)


@pytest.mark.parametrize("values", [[3, 1, 3, 3, 0], [10**12, 5, 10**12], []])
def test_collapse_counts_what_occurs(values: list[int]) -> None:
    names, repeats = collapse(np.array(values, dtype=np.int64))
    assert dict(zip(names.tolist(), repeats.tolist(), strict=True)) == {
        v: values.count(v) for v in values
    }
