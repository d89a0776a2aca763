"""Probes of a judge's habits, on made judges whose habit is known and against closed forms."""

import json
import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from evalwright.statistics import (
    acquiescence_bias,
    length_bias,
    repeat_flips,
    swap_consistency,
    wilson,
)
from evalwright.statistics.judge_bias import fit_logistic

NAN = math.nan


def test_swaps_by_hand() -> None:
    # A wins twice; B wins twice; first place twice; second place twice; tie and A; tie and tie;
    # nothing.
    forth = [1, 0, 1, 1, 0, 0.5, 0.5, NAN]
    back = [1, 0, 0, 0, 1, 1.0, 0.5, 1]
    found = swap_consistency(forth, back)
    assert (
        found.consistency.value,
        found.consistency.n,
        found.consistency.n_missing,
    ) == (3 / 7, 7, 1)
    # First-place shares of the pairs: 1/2, 1/2, 1, 1, 0, and of the one verdict that is no tie 0.
    assert found.first_rate.value == pytest.approx(3 / 6)
    assert (found.both_first, found.both_second) == (2, 2)
    assert found.p_value == pytest.approx(1.0)
    json.dumps(found.as_dict(), allow_nan=False)


def test_a_judge_that_likes_the_first_place_is_found_out() -> None:
    rng = np.random.default_rng(1)
    better = rng.random(200) < 0.5
    habit = rng.random((2, 200)) < 0.3
    forth = np.where(habit[0], 1.0, better)
    back = np.where(habit[1], 0.0, better)
    found = swap_consistency(forth, back)
    assert found.first_rate.low > 0.5
    assert found.first_rate.low < 0.65 < found.first_rate.high
    k = found.both_first
    m = found.both_second
    mid_p = 2 * stats.binom.cdf(min(k, m), k + m, 0.5) - stats.binom.pmf(
        min(k, m), k + m, 0.5
    )
    assert math.log(found.p_value) == pytest.approx(math.log(mid_p), rel=0.02)
    agree = round(found.consistency.value * 200)
    assert (found.consistency.low, found.consistency.high) == pytest.approx(
        wilson(agree, 200)
    )
    clustered = swap_consistency(forth, back, clusters=np.repeat(np.arange(40), 5))
    assert (clustered.test, clustered.consistency.n_clusters) == (
        "clustered score test",
        40,
    )
    assert clustered.p_value < 0.001


def test_the_effect_of_length_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(2)
    n = 4000
    length = rng.normal(0, 0.7, n)
    chance = 1 / (1 + np.exp(-(0.1 + 0.9 * length)))
    verdict = (rng.random(n) < chance).astype(float)
    ids = np.repeat(np.arange(n // 4), 4)
    found = length_bias(verdict, length, clusters=ids)
    oracle = sm.Logit(verdict, np.column_stack([np.ones(n), length])).fit(disp=0)
    assert [effect.coefficient for effect in found.effects] == pytest.approx(
        oracle.params, abs=1e-6
    )
    for effect, truth in zip(found.effects, (0.1, 0.9), strict=True):
        assert effect.low < truth < effect.high
        assert effect.odds_ratio == pytest.approx(math.exp(effect.coefficient))
    assert [effect.name for effect in found.effects] == [
        "intercept",
        "log length difference",
    ]
    assert (found.n, found.n_clusters) == (n, 1000)
    gap = length_bias(np.where(np.arange(n) < 5, NAN, verdict), length)
    assert (gap.n, gap.n_missing, len(gap.effects)) == (n - 5, 5, 2)
    json.dumps(found.as_dict(), allow_nan=False)


def test_length_without_effect_is_seldom_seen() -> None:
    rng = np.random.default_rng(3)
    ids = np.repeat(np.arange(40), 5)
    seen = []
    for _ in range(400):
        length = rng.normal(0, 1, 40)[ids] + rng.normal(0, 0.5, 200)
        logit = rng.normal(0, 1, 40)[ids]
        verdict = (rng.random(200) < 1 / (1 + np.exp(-logit))).astype(float)
        seen.append(
            length_bias(verdict, length, clusters=ids).effects[1].p_value < 0.05
        )
    assert 0.02 <= np.mean(seen) <= 0.08


def test_a_lenient_judge() -> None:
    human = np.array([0.0] * 40 + [1.0] * 60 + [NAN])
    judge = np.array([1.0] * 12 + [0.0] * 28 + [0.0] * 3 + [1.0] * 57 + [1.0])
    found = acquiescence_bias(judge, human)
    assert (found.false_yes.value, found.false_yes.n) == (0.3, 40)
    assert (found.false_no.value, found.false_no.n) == (0.05, 60)
    assert (found.false_yes.low, found.false_yes.high) == pytest.approx(wilson(12, 40))
    assert found.excess.discordant == (12, 3)
    assert (found.excess.verdict, found.excess.n_missing) == ("better", 0)
    json.dumps(found.as_dict(), allow_nan=False)


def test_flips() -> None:
    found = repeat_flips(
        np.array([[1, 1, 1], [1, 0, 1], [0, 1, NAN], [2, NAN, NAN], [3, 3, NAN]])
    )
    assert found.flip_rate.value == pytest.approx((0 + 2 / 3 + 1 + 0) / 4)
    assert found.unstable.value == pytest.approx(0.5)
    assert (found.flip_rate.n, found.flip_rate.n_missing, found.repeats) == (4, 1, 3)
    steady = repeat_flips(np.ones((50, 2)))
    assert steady.flip_rate.value == 0.0 and steady.flip_rate.high > 0.02
    json.dumps(found.as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: swap_consistency([1, 2], [1, 0]), "a_first must be"),
        (lambda: swap_consistency([1], [1, 0]), "same items"),
        (lambda: length_bias([1, 0], [0.1, 0.2]), "too few"),
        (lambda: length_bias([1, 0], [0.1]), "one number for each"),
        (lambda: length_bias([1.0] * 20, np.arange(20.0)), "no finite fit"),
        (lambda: repeat_flips([1, 0]), "two repeats"),
        (lambda: acquiescence_bias([0.5], [1]), "judge must be"),
    ],
)
def test_bad_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


def _data(seed: int, n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.normal(0, 1, n), rng.integers(-1, 2, n)])
    chance = 1 / (1 + np.exp(-x @ np.array([0.3, 0.8, -0.5])))
    return x, (rng.random(n) < chance).astype(float), np.repeat(np.arange(n // 5), 5)


def test_coefficients_and_clustered_covariance_are_those_of_statsmodels() -> None:
    x, y, clusters = _data(1)
    coefficients, covariance = fit_logistic(x, y, clusters=clusters)
    oracle = sm.GLM(y, x, family=sm.families.Binomial()).fit(
        cov_type="cluster",
        cov_kwds={"groups": clusters, "use_correction": True},
        tol=1e-12,
    )
    assert coefficients == pytest.approx(oracle.params, abs=1e-8)
    ratio = np.asarray(oracle.cov_params()) / covariance
    # Both correct for few clusters; statsmodels' GLM may leave the (n - 1)/(n - k) out.
    assert ratio == pytest.approx(np.full((3, 3), ratio[0, 0]), rel=1e-6)
    assert ratio[0, 0] in (
        pytest.approx(1.0, rel=1e-6),
        pytest.approx(297 / 299, rel=1e-6),
    )


def test_rows_alone_get_the_heteroscedastic_sandwich() -> None:
    x, y, _ = _data(2)
    oracle = sm.GLM(y, x, family=sm.families.Binomial()).fit(cov_type="HC0", tol=1e-12)
    _, covariance = fit_logistic(x, y)
    assert covariance == pytest.approx(
        np.asarray(oracle.cov_params()) * 300 / 297, rel=1e-6
    )


def test_separation_is_refused() -> None:
    x = np.column_stack([np.ones(20), np.arange(20) - 9.5])
    y = (x[:, 1] > 0).astype(float)
    with pytest.raises(ValueError, match="no finite fit"):
        fit_logistic(x, y)
    with pytest.raises(ValueError, match="no finite fit"):
        fit_logistic(
            np.column_stack([x, x[:, 1]]), (np.arange(20) % 2).astype(np.float64)
        )
    assert fit_logistic(x, np.full(20, 0.5))[0] == pytest.approx(np.zeros(2), abs=1e-8)
