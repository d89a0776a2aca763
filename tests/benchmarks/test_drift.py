"""The simulation of drift counts the alarms that `check drift` gives."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.drift import (
    SETTINGS,
    Setting,
    Year,
    alarm_week,
    alarm_weeks,
    count_alarms,
)

COMPLETE = [setting for setting in SETTINGS if not setting.missing]


@pytest.mark.parametrize("setting", COMPLETE, ids=lambda setting: setting.name)
def test_many_years_at_once_are_those_one_by_one(setting: Setting) -> None:
    random = np.random.default_rng(3)
    years = [Year(setting, random).play(15, 8) for _ in range(4)]
    assert alarm_weeks(setting, years).tolist() == [alarm_week(year) for year in years]


def test_counts_do_not_depend_on_how_many_are_drawn_at_once() -> None:
    setting = next(setting for setting in SETTINGS if setting.name == "20 items")
    assert len({count_alarms(setting, 12, 1, at_once) for at_once in (5, 50)}) == 1


def test_missing_answers_are_counted_too() -> None:
    setting = Setting("missing", n_items=30, missing=0.2)
    n_false, n_seen = count_alarms(setting, 2, 0)
    assert 0 <= n_false <= 2 and 0 <= n_seen <= 2
