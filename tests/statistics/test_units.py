"""Units, clustered standard errors and variance components against statsmodels and brute force."""

import math

import numpy as np
import numpy.typing as npt
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st

from evalwright.statistics.units import cluster_codes, item_units, standard_error, variance_components


def _standard_error(values: npt.ArrayLike, clusters: npt.ArrayLike) -> tuple[float, int]:
    units = item_units(values, clusters)
    return standard_error(units.means, units.codes, units.n_clusters)


def test_clustered_standard_error_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(5)
    clusters = rng.integers(0, 40, 500)
    values = rng.random(40)[clusters] + rng.normal(0, 0.3, 500)
    ours, df = _standard_error(values, clusters)
    fit = sm.OLS(values, np.ones(500)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": True}
    )
    # statsmodels multiplies by G/(G-1) (n-1)/(n-k), and k = 1 here.
    assert ours == pytest.approx(float(fit.bse[0]), rel=1e-12)
    assert df == len(np.unique(clusters)) - 1


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 6), min_size=1, max_size=60))
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
    units = item_units([[1.0, 0.0, nan], [nan, nan, nan], [1.0, 1.0, 1.0]], clusters=[5, 6, 5])
    assert units.means.tolist() == [0.5, 1.0]
    assert (units.n, units.n_missing, units.n_draws, units.n_clusters) == (2, 1, 5, 1)


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
