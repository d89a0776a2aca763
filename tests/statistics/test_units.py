"""Units, clustered standard errors and variance components against statsmodels and brute force."""

import math

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg

from evalwright.statistics import mean_interval
from evalwright.statistics.units import (
    Spread,
    cluster_codes,
    item_units,
    standard_error,
    variance_components,
)


def _spread(values: npt.ArrayLike, clusters: npt.ArrayLike) -> Spread:
    units = item_units(values, clusters)
    return standard_error(units.means, units.codes, units.n_clusters)


def test_clusters_of_one_size_have_the_spread_of_statsmodels() -> None:
    rng = np.random.default_rng(5)
    clusters = rng.permutation(np.repeat(np.arange(40), 12))
    values = rng.random(40)[clusters] + rng.normal(0, 0.3, 480)
    ours, df, worth = _spread(values, clusters)
    fit = sm.OLS(values, np.ones(480)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": True}
    )
    # statsmodels multiplies by G/(G-1) (n-1)/(n-k), and k = 1 here.
    assert ours == pytest.approx(float(fit.bse[0]), rel=1e-12)
    assert df == pytest.approx(39)
    assert worth == pytest.approx(40)


@pytest.mark.parametrize("seed", range(4))
def test_unequal_clusters_by_matrices(seed: int) -> None:
    """Bell & McCaffrey (2002) written out: symmetric roots of I - H, and the eigenvalues of
    their quadratic form.
    """
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(7), rng.integers(1, 9, 7))
    n = len(clusters)
    values = rng.random(7)[clusters] + rng.normal(0, 0.5, n)
    same = clusters[:, None] == clusters
    hat = np.full((n, n), 1 / n)
    residuals = values - values.mean()
    product = (np.outer(residuals, residuals)[same & ~np.eye(n, dtype=bool)]).mean()
    rho = min(1.0, max(0.0, product / values.var(ddof=1)))
    working = np.where(same, rho, 0.0) + (1 - rho) * np.eye(n)
    squares = 0.0
    columns = []
    for name in range(7):
        inside = clusters == name
        block = np.eye(inside.sum()) - hat[np.ix_(inside, inside)]
        root = linalg.inv(linalg.sqrtm(block).real)
        weights = root @ np.ones(inside.sum()) / n
        squares += float(weights @ residuals[inside]) ** 2
        columns.append((np.eye(n) - hat)[:, inside] @ weights)
    form = np.stack(columns, axis=1).T @ working @ np.stack(columns, axis=1)
    values_of = np.linalg.eigvalsh(form)
    found = _spread(values, clusters)
    assert found.error == pytest.approx(np.sqrt(squares))
    assert found.freedom == pytest.approx(values_of.sum() ** 2 / (values_of**2).sum())
    assert found.units == pytest.approx(n**2 / (np.bincount(clusters) ** 2).sum())


@pytest.mark.parametrize(
    ("sizes", "square", "expected"),
    [
        (
            (1, 2, 3, 5, 8, 13),
            True,
            (0.0424514679245526, 2.9021132158108, 0.360410638927466, 0.635839361072534),
        ),
        (
            (12, 3, 3, 3, 3),
            False,
            (
                0.0410109112465188,
                2.57894736842106,
                0.329061621120023,
                0.615938378879977,
            ),
        ),
        (
            (4, 4, 4, 4),
            True,
            (0.0976921184128996, 3, 0.151600078701529, 0.773399921298471),
        ),
    ],
)
def test_unequal_clusters_by_clubsandwich(
    sizes: tuple[int, ...], square: bool, expected: tuple[float, ...]
) -> None:
    """What R 4.2.2 and clubSandwich 0.5.8 print: f <- lm(y ~ 1); v <- vcovCR(f, cluster = g,
    type = "CR2"); coef_test(f, vcov = v, test = "Satterthwaite"); conf_int(f, vcov = v). The
    correlation within clusters is not above 0 or the sizes are equal, so that its working model,
    independent items, has our degrees of freedom too.
    """
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    i = np.arange(sum(sizes))
    values = ((37 * i * i + 11 * i if square else 59 * i) % 101) / 100
    found = _spread(values, clusters)
    assert (found.error, found.freedom) == pytest.approx(expected[:2], rel=1e-12)
    interval = mean_interval(values, clusters=clusters)
    assert (interval.low, interval.high) == pytest.approx(expected[2:], rel=1e-8)


@given(
    st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 6), min_size=1, max_size=60)
)
def test_codes_are_a_renumbering(ids: list[int]) -> None:
    codes, count = cluster_codes(np.array(ids, dtype=np.int64))
    if len(set(ids)) == len(ids):
        assert codes is None
        assert count is None
        return
    assert codes is not None
    assert count == len(set(ids))
    assert set(codes.tolist()) == set(range(count))
    assert len(set(zip(ids, codes.tolist(), strict=True))) == count


def test_item_means_over_the_draws_there_are() -> None:
    nan = math.nan
    units = item_units(
        [[1.0, 0.0, nan], [nan, nan, nan], [1.0, 1.0, 1.0]], clusters=[5, 6, 5]
    )
    assert units.means.tolist() == [0.5, 1.0]
    assert (units.n, units.n_left_out, units.n_draws, units.n_clusters) == (2, 1, 5, 1)


def test_variance_components_match_brute_force_with_unequal_draws() -> None:
    nan = math.nan
    scores = np.array([[1, 0, 1], [0, 0, nan], [1, nan, nan], [0.5, 0.25, 0.75]])
    rows = [row[~np.isnan(row)] for row in scores]
    within = float(np.mean([row.var(ddof=1) for row in rows if len(row) > 1]))
    means = np.array([row.mean() for row in rows])
    between = means.var(ddof=1) - np.mean([within / len(row) for row in rows])
    found = variance_components(scores)
    assert found.within == pytest.approx(within)
    assert found.between == pytest.approx(max(between, 0))


def test_variance_components_without_repeats_are_unknown() -> None:
    assert all(math.isnan(part) for part in variance_components([0.0, 1.0, 1.0]))
    assert all(math.isnan(part) for part in variance_components([[0.0, 1.0]]))


@pytest.mark.parametrize(
    ("values", "clusters", "message"),
    [
        ([[[1.0]]], None, "shape"),
        ([1.0, math.inf], None, "finite"),
        ([1.0, 0.0], [1], "one id for each of the 2 items"),
        ([1.0, 0.0], [0.5, 1.5], "must be integers"),
        ([1.0, 0.0], ["a", "b"], "must be integers"),
        (np.empty((2, 0)), None, "shape"),
    ],
)
def test_bad_arrays_are_refused(values: object, clusters: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        item_units(values, clusters)  # type: ignore[arg-type]
