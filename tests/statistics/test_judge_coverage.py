"""The coverage settings of judges, short and seeded: 95% intervals hold the truth about 95 times in 100."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

_PATH = Path(__file__).parents[2] / "benchmarks" / "coverage_settings" / "judges.py"
_SPEC = importlib.util.spec_from_file_location("coverage_settings_judges", _PATH)
assert _SPEC is not None and _SPEC.loader is not None
judges = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(judges)

REPETITIONS = {"kappa_100": 120, "ac1_60": 120, "alpha_100": 120, "ece_300": 120}


@pytest.mark.parametrize(
    "name",
    [
        "ppi_200_of_2000",
        "ppi_40_of_2000",
        "ppi_graded_40",
        "ppi_weighted_200",
        "ppi_stratified_200",
        "ppi_clusters_40",
        "ppi_difference_200",
        "rogan_gladen_200",
        "rogan_gladen_small",
        "kappa_100",
        "ac1_60",
        "alpha_100",
        "ece_300",
        "auroc_50",
        "auroc_clusters_40",
        "aurc_100",
        "contamination_150",
        "contamination_clusters_30",
    ],
)
def test_intervals_cover(name: str) -> None:
    repetitions = REPETITIONS.get(name, 300)
    row = judges.SETTINGS[name](np.random.default_rng(17), repetitions)
    chance = 2.5 * math.sqrt(0.95 * 0.05 / repetitions)
    assert 0.93 - chance <= row["coverage"] <= min(0.999, 0.97 + chance)
    assert 0 < row["width"] < 1
