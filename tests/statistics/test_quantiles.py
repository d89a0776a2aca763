"""Quantiles and tails against scipy.stats."""

import math

import pytest
from scipy import stats

from evalwright.statistics._quantiles import (
    beta_quantile,
    check_level,
    half_binomial_cdf,
    normal_cdf,
    normal_quantile,
    t_quantile,
    t_two_sided,
)


@pytest.mark.parametrize("p", [1e-10, 0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 0.9995, 1 - 1e-12])
def test_normal(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12, abs=1e-15)
    assert normal_cdf(normal_quantile(p)) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 3, 7, 30, 999, 1_000_000])
@pytest.mark.parametrize("p", [0.0005, 0.2, 0.5, 0.8, 0.975, 0.9995])
def test_t(df: int, p: float) -> None:
    quantile = t_quantile(p, df)
    assert quantile == pytest.approx(stats.t.ppf(p, df), rel=1e-9, abs=1e-12)
    assert t_two_sided(quantile, df) == pytest.approx(2 * stats.t.sf(abs(quantile), df), rel=1e-9)


@pytest.mark.parametrize(("k", "n"), [(-1, 4), (0, 1), (3, 7), (40, 100), (210_030, 420_888)])
def test_half_binomial(k: int, n: int) -> None:
    assert half_binomial_cdf(k, n) == pytest.approx(stats.binom.cdf(k, n, 0.5), rel=1e-9)


def test_beta_quantile() -> None:
    assert beta_quantile(0.8, 6, 95) == pytest.approx(stats.beta.ppf(0.8, 6, 95), rel=1e-10)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 95.0, math.nan])
def test_level_must_be_a_probability(level: float) -> None:
    with pytest.raises(ValueError, match="level must be above 0 and below 1"):
        check_level(level)
