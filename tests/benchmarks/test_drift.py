"""The simulation of drift: a year with a change gives an alarm, one without none."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
_SPEC = importlib.util.spec_from_file_location(
    "drift_benchmark", BENCHMARKS / "drift.py"
)
assert _SPEC is not None and _SPEC.loader is not None
drift: ModuleType = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = drift
_SPEC.loader.exec_module(drift)


@pytest.mark.parametrize("name", ["never varies", "20 items, 20 points", "graded"])
def test_an_alarm_is_given_after_the_change_and_not_before(name: str) -> None:
    setting = next(setting for setting in drift.SETTINGS if setting.name == name)
    random = np.random.default_rng(3)
    year = drift.Year(setting, random)
    assert 10 <= drift.alarm_week(year.play(17, 10)) <= 17
    assert drift.alarm_week(year.play(17, None)) == 0


def test_missing_answers_are_counted_too() -> None:
    setting = drift.Setting("missing", n_items=30, missing=0.2)
    n_false, n_seen = drift.count_alarms(setting, 2, 0)
    assert 0 <= n_false <= 2 and 0 <= n_seen <= 2
