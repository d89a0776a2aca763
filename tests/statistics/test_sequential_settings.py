"""The settings of the coverage benchmark, in short: they run, and nothing is wrong more often than it says."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

HOME = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage_settings" / "sequential.py"


@pytest.fixture(scope="module")
def settings() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_settings_sequential", HOME)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_looking_often_is_no_mistake(settings: ModuleType) -> None:
    row = settings.SETTINGS["false alarms, every 1"](np.random.default_rng(1), 400)
    assert row["ever wrong"] <= 0.07
    assert row["ever wrong, z test at each look"] > 0.3


@pytest.mark.parametrize(
    ("name", "trials"),
    [
        ("betting with replacement, p = 0.7", 30),
        ("betting without replacement, p = 0.95", 30),
        ("exact counts", 300),
        ("asymptotic with replacement, clusters", 200),
        ("asymptotic without replacement, items", 200),
    ],
)
def test_sequences_seldom_ever_miss(settings: ModuleType, name: str, trials: int) -> None:
    row = settings.SETTINGS[name](np.random.default_rng(2), trials)
    assert row["ever wrong"] <= 0.05 + 3 * (0.05 * 0.95 / trials) ** 0.5


@pytest.mark.parametrize("gap", [0.04, 0.0])
def test_stopped_runs_agree_with_full_ones(settings: ModuleType, gap: float) -> None:
    row = settings.full_run_pairs(np.random.default_rng(3), 12, p_a=0.7 + gap, p_b=0.7, n=3000)
    assert row["agreement"] >= 0.9
    assert row["median saved"] > (0.2 if gap else 0.0)
    clusters = settings.full_run_clusters(np.random.default_rng(4), 20, difference=gap)
    assert clusters["agreement"] >= 0.9
