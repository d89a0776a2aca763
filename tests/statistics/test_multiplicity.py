"""Adjusted p-values against statsmodels."""

import math

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from evalwright.statistics import holm


@pytest.mark.parametrize("seed", range(20))
def test_holm_is_that_of_statsmodels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.3, 1, rng.integers(1, 40)), int(rng.integers(1, 9)))  # with ties, zeros and ones
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)


def test_missing_tests_stay_missing_and_do_not_count() -> None:
    p = [0.04, math.nan, 0.01, 0.03, math.nan]
    found = holm(p)
    assert np.isnan(found).tolist() == [False, True, False, False, True]
    assert found[[0, 2, 3]] == pytest.approx(holm([0.04, 0.01, 0.03]))
    assert len(holm([])) == 0
    for wrong in ([0.5, 1.5], [-0.1], [[0.1, 0.2]]):
        with pytest.raises(ValueError, match="p-values must"):
            holm(wrong)
