"""Adjusted p-values against statsmodels."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from statsmodels.stats.multitest import multipletests

from evalwright.statistics import benjamini_hochberg, holm
from evalwright.statistics.units import F64


def test_adjusted_p_values_are_those_of_statsmodels() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        # ties, zeros and ones
        p = np.round(rng.beta(0.3, 1, rng.integers(1, 40)), int(rng.integers(1, 9)))
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
        assert benjamini_hochberg(p) == pytest.approx(
            multipletests(p, method="fdr_bh")[1], abs=1e-12
        )


@pytest.mark.parametrize("adjusted", [holm, benjamini_hochberg])
def test_missing_tests_stay_missing_and_do_not_count(
    adjusted: Callable[[npt.ArrayLike], F64],
) -> None:
    p = [0.04, math.nan, 0.01, 0.03, math.nan]
    found = adjusted(p)
    assert np.isnan(found).tolist() == [False, True, False, False, True]
    assert found[[0, 2, 3]] == pytest.approx(adjusted([0.04, 0.01, 0.03]))
    assert len(adjusted([])) == 0
    for wrong in ([0.5, 1.5], [-0.1], [[0.1, 0.2]]):
        with pytest.raises(ValueError, match="p-values must"):
            adjusted(wrong)
