"""The shared logistic regression against statsmodels."""

import numpy as np
import pytest
import statsmodels.api as sm

from evalwright.statistics.judge_bias import fit_logistic


def _data(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(0, 1, n), rng.integers(-1, 2, n)])
    chance = 1 / (1 + np.exp(-x @ np.array([0.3, 0.8, -0.5])))
    return x, (rng.random(n) < chance).astype(float), np.repeat(np.arange(n // 5), 5)


def test_coefficients_and_clustered_covariance_are_those_of_statsmodels() -> None:
    x, y, clusters = _data(1)
    coefficients, covariance = fit_logistic(x, y, clusters=clusters)
    oracle = sm.GLM(y, x, family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": True}, tol=1e-12
    )
    assert coefficients == pytest.approx(oracle.params, abs=1e-8)
    ratio = np.asarray(oracle.cov_params()) / covariance
    # Both correct for few clusters; statsmodels' GLM may leave the (n - 1)/(n - k) out.
    assert ratio == pytest.approx(np.full((3, 3), ratio[0, 0]), rel=1e-6)
    assert ratio[0, 0] in (pytest.approx(1.0, rel=1e-6), pytest.approx(297 / 299, rel=1e-6))


def test_rows_alone_get_the_heteroscedastic_sandwich() -> None:
    x, y, _ = _data(2)
    oracle = sm.GLM(y, x, family=sm.families.Binomial()).fit(cov_type="HC0", tol=1e-12)
    _, covariance = fit_logistic(x, y)
    assert covariance == pytest.approx(np.asarray(oracle.cov_params()) * 300 / 297, rel=1e-6)


def test_separation_is_refused() -> None:
    x = np.column_stack([np.ones(20), np.arange(20) - 9.5])
    y = (x[:, 1] > 0).astype(float)
    with pytest.raises(ValueError, match="no finite fit"):
        fit_logistic(x, y)
    with pytest.raises(ValueError, match="no finite fit"):
        fit_logistic(np.column_stack([x, x[:, 1]]), (np.arange(20) % 2).astype(np.float64))
    assert fit_logistic(x, np.full(20, 0.5))[0] == pytest.approx(np.zeros(2), abs=1e-8)
