"""The simulation of drift counts the alarms that `check drift` gives."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

_SPEC = importlib.util.spec_from_file_location(
    "drift_benchmark", Path(__file__).parents[2] / "benchmarks" / "drift.py"
)
assert _SPEC is not None and _SPEC.loader is not None
drift: ModuleType = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = drift
_SPEC.loader.exec_module(drift)

COMPLETE = [setting.name for setting in drift.SETTINGS if not setting.missing]


def setting_named(name: str) -> object:
    return next(setting for setting in drift.SETTINGS if setting.name == name)


@pytest.mark.parametrize("name", COMPLETE)
def test_many_years_at_once_are_those_one_by_one(name: str) -> None:
    setting = setting_named(name)
    random = np.random.default_rng(3)
    years = [drift.Year(setting, random).play(15, 8) for _ in range(4)]
    one_by_one = [drift.alarm_week(year) for year in years]
    assert drift.alarm_weeks(setting, years).tolist() == one_by_one


def test_counts_do_not_depend_on_how_many_are_drawn_at_once() -> None:
    setting = setting_named("20 items")
    counts = {drift.count_alarms(setting, 12, 1, at_once) for at_once in (5, 50)}
    assert len(counts) == 1


def test_missing_answers_are_counted_too() -> None:
    setting = drift.Setting("missing", n_items=30, missing=0.2)
    n_false, n_seen = drift.count_alarms(setting, 2, 0)
    assert 0 <= n_false <= 2 and 0 <= n_seen <= 2
