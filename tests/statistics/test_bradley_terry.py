"""Bradley-Terry fits against statsmodels' logit with clustered errors, in closed form, and under separation."""

import json
import math

import numpy as np
import pytest
import statsmodels.api as sm

from evalwright.statistics import fit_bradley_terry, rank_sets, simultaneous_from_covariance

TRUE = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])


def _verdicts(n: int, seed: int = 0, ties: float = 0.1, effect: float = 0.4) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    i = rng.integers(0, 5, n)
    j = (i + rng.integers(1, 5, n)) % 5
    x = rng.normal(size=n)
    y = (rng.random(n) < 1 / (1 + np.exp(-(TRUE[i] - TRUE[j] + effect * x)))).astype(float)
    y[rng.random(n) < ties] = 0.5
    return i, j, y, x, rng.integers(0, n // 6, n)


@pytest.mark.parametrize("clustered", [False, True])
def test_fit_and_sandwich_are_those_of_statsmodels(clustered: bool) -> None:
    i, j, y, x, ids = _verdicts(1200)
    found = fit_bradley_terry(i, j, y, covariates=x, clusters=ids if clustered else None)
    columns = np.zeros((1200, 5))
    columns[np.arange(1200), i] += 1
    columns[np.arange(1200), j] -= 1
    design = np.column_stack([columns[:, 1:], x])
    groups = ids if clustered else np.arange(1200)
    fit = sm.GLM(y, design, family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": groups}
    )
    theta = np.append(0.0, fit.params[:4])
    assert found.strengths == pytest.approx(theta - theta.mean(), abs=1e-7)
    assert found.coefficients == pytest.approx(fit.params[4:], abs=1e-7)
    # statsmodels has (n - 1) / (n - parameters) more.
    covariance = np.asarray(fit.cov_params()) * (1200 - 5) / 1199
    centre = np.vstack([np.full(4, -0.2), np.eye(4) - 0.2])
    assert found.covariance == pytest.approx(centre @ covariance[:4, :4] @ centre.T, rel=1e-5, abs=1e-9)
    assert found.coefficients_covariance[0, 0] == pytest.approx(covariance[4, 4], rel=1e-5)
    assert found.strengths.sum() == pytest.approx(0, abs=1e-12)
    assert not found.separated
    assert (found.n, found.n_ties) == (1200, int((y == 0.5).sum()))


def test_two_models_in_closed_form() -> None:
    found = fit_bradley_terry([0] * 40, [1] * 40, [1] * 24 + [0] * 10 + [0.5] * 6)
    assert found.strengths[0] - found.strengths[1] == pytest.approx(math.log(27 / 13), abs=1e-7)
    assert found.chance(0, 1) == pytest.approx(27 / 40)


def test_sides_may_be_swapped_and_failures_are_counted() -> None:
    i, j, y, x, ids = _verdicts(400, seed=2)
    one = fit_bradley_terry(i, j, y, covariates=x, clusters=ids)
    two = fit_bradley_terry(j, i, 1 - y, covariates=-x, clusters=ids)
    assert two.covariance == pytest.approx(one.covariance, rel=1e-6, abs=1e-12)
    assert two.strengths == pytest.approx(one.strengths, abs=1e-8)
    y[:7] = np.nan
    assert fit_bradley_terry(i, j, y).n_failed == 7
    assert json.loads(json.dumps(one.as_dict(), allow_nan=False))["n"] == 400


def test_a_model_that_wins_all_is_said_and_never_certain() -> None:
    first, second = [0] * 10 + [1] * 4 + [2] * 4, [1] * 5 + [2] * 5 + [2] * 4 + [1] * 4
    found = fit_bradley_terry(first, second, [1] * 10 + [1, 1, 1, 0] * 2)
    assert found.separated
    assert "no finite maximum" in found.method
    assert np.isfinite(found.strengths).all()
    assert found.strengths[0] > found.strengths[1:].max() + 1
    assert (found.high - found.low > 1.5).all()
    once = fit_bradley_terry([0, 0], [1, 1], [1, 1])
    assert once.low[0] < 0 < once.high[0]
    by_length = fit_bradley_terry([0, 1] * 30, [1, 0] * 30, [1, 0, 0, 1] * 15, covariates=[1, -1, -1, 1] * 15)
    assert by_length.separated
    assert math.sqrt(by_length.coefficients_covariance[0, 0]) > 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 2], [1, 3], [1, 0]), "groups that never met"),
        (([0, 1], [0, 1], [1, 0]), "with itself"),
        (([0, 1], [1, 0], [1, 2]), "0.5"),
        (([0, 1], [1, 0], [1]), "one entry"),
        (([0.0, 1.0], [1, 0], [1, 1]), "integers"),
        (([0], [1], [1]), "at least two"),
        (([0, -1], [1, 0], [1, 1]), "numbered 0 to"),
    ],
)
def test_bad_verdicts_are_refused(arguments: tuple[list[int], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_bradley_terry(*arguments)
    with pytest.raises(ValueError, match="covariates"):
        fit_bradley_terry([0, 1], [1, 0], [1, 1], covariates=[1.0])
    with pytest.raises(ValueError, match="leave it out"):
        fit_bradley_terry([0, 1], [1, 0], [1, 1], covariates=[0.0, 0.0])


def test_differences_feed_rank_sets_and_cover() -> None:
    hits, ranks = [], []
    for seed in range(150):
        i, j, y, x, _ = _verdicts(300, seed=seed, ties=0.0)
        found = fit_bradley_terry(i, j, y, covariates=x)
        hits.append((found.low <= TRUE) & (found.high >= TRUE))
        differences = simultaneous_from_covariance(found.strengths, found.covariance, units=found.units)
        sets = rank_sets(differences)
        ranks.append(((sets.low <= [5, 4, 3, 2, 1]) & (sets.high >= [5, 4, 3, 2, 1])).all())
    assert 0.92 <= np.mean(hits) <= 0.975
    assert np.mean(ranks) >= 0.95


def test_separation_shared_by_strengths_and_an_effect_is_seen() -> None:
    # The first place always wins for model 1 and half the time for model 0: strengths and the effect run off together.
    found = fit_bradley_terry([0, 0, 1] * 20, [1, 1, 0] * 20, [1, 0, 1] * 20, covariates=[1.0] * 60)
    assert found.separated
    assert "no finite maximum" in found.method
    fine = fit_bradley_terry(
        [0, 0, 1] * 20, [1, 1, 0] * 20, [1, 0, 1] * 19 + [1, 0, 0], covariates=[1.0] * 60
    )
    assert not fine.separated
