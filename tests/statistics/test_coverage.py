"""The coverage settings of `benchmarks/coverage.py` in a short seeded form, and the command itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARKS))
    from coverage_settings.registry import Covered, Setting, all_settings

    SETTINGS = [setting for setting in all_settings() if "sequential" not in setting.name]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_interval_covers(setting: Setting) -> None:
    covered = setting.run(12, 300 // (2 * setting.cost))
    # Three Monte Carlo errors: a true coverage within its limits fails less than once in 700 seeds, and the seed is fixed.
    slack = 3 * covered.monte_carlo_error
    assert setting.least - slack <= covered.share <= setting.most + slack
    assert len(covered.hits) == len(covered.widths) == 300 // (2 * setting.cost)
    assert np.isfinite(covered.widths).all()
    assert covered.method


def test_names_are_there_once() -> None:
    names = [setting.name for setting in SETTINGS]
    assert len(names) == len(set(names)) >= 20


def test_a_wrong_interval_is_seen() -> None:
    narrow = Covered(np.arange(2000) % 100 < 90, np.ones(2000), "too narrow")
    assert narrow.share == 0.9
    assert not Setting("any", lambda seed, trials: narrow).within(narrow)
    assert 0 < Covered(np.ones(100, dtype=bool), np.ones(100), "all").monte_carlo_error < 0.01


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "coverage.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_prints_a_table() -> None:
    done = _command("--trials", "200", "--only", "20 items, right")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 3
    assert lines[2].startswith("| 20 items, right or wrong, p = 0.9 | Wilson | 9")
    nothing = _command("--only", "no such setting")
    assert nothing.returncode == 2
    assert "--list" in nothing.stderr
