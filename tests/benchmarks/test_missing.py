"""The rows of `benchmarks/missing.py`, with few trials: each counts what it says, and holds; with
more of them where time is given.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
TRIALS = [20, pytest.param(60, marks=pytest.mark.slow)]

_SPEC = importlib.util.spec_from_file_location(
    "missing_command", BENCHMARKS / "missing.py"
)
assert _SPEC is not None and _SPEC.loader is not None
missing: ModuleType = importlib.util.module_from_spec(_SPEC)
sys.modules["missing_command"] = missing
_SPEC.loader.exec_module(missing)


@pytest.mark.parametrize("trials", TRIALS)
@pytest.mark.parametrize("family", ["given", "provisional", "false", "unmarked"])
def test_a_family_holds(family: str, trials: int) -> None:
    rows = list(missing.FAMILIES[family](trials, 3))
    assert rows
    assert [row.name for row in rows if not row.holds] == []


def test_a_model_that_lacks_its_wrong_answers_is_called_better_with_the_mark() -> None:
    values = np.ones((2, 400))
    values[:, 300:] = 0.0
    values[0, 300:350] = np.nan  # half of what the first one gets wrong
    assert missing.compare_values(values) == ("no difference seen", True)
    values[1, 280:300] = 0.0
    assert missing.compare_values(values) == ("better", True)


def test_answers_have_the_rates_that_are_asked_for() -> None:
    scores = missing.answers(np.random.default_rng(1), 200_000, 0.7, 0.4)
    assert scores.mean(axis=1) == pytest.approx([0.7, 0.4], abs=0.01)
