"""Means over tasks in blocks, with pairs that are alike once, against the plain computation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalwright.statistics import many_tasks, pairwise
from evalwright.statistics.many_models import AllDifferences, all_differences
from evalwright.statistics.many_models_macro import Part, all_macro_differences
from evalwright.statistics.multiplicity import holm, holm_rows
from evalwright.statistics.shared_units import (
    AnyCorrelations,
    SetCorrelations,
    spread_of_mean,
)

MODELS = 12
FIELDS = (
    *("difference", "low", "high", "p_value", "p_adjusted", "own_low", "own_high"),
    *("own_p_adjusted", "standard_error", "n", "units", "n_missing"),
)


def parts(seed: int = 0) -> list[Part]:
    """Right or wrong with holes, in two sets of tasks that share units; graded; in clusters."""
    rng = np.random.default_rng(seed)
    tasks: list[Part] = []
    for number in range(9):
        chance = rng.random(30) * np.linspace(0.5, 1, MODELS)[:, None]
        rows = (rng.random((MODELS, 30)) < chance).astype(float)
        if number == 4:
            rows = np.round(rows * rng.random(rows.shape), 2)
        rows[rng.random(rows.shape) < 0.02] = np.nan
        codes = np.arange(30) + 1_000 * (number % 3 if number < 6 else number)
        tasks.append((rows, codes // 3 if number == 5 else codes))
    return tasks


def assert_same(first: AllDifferences, second: AllDifferences) -> None:
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(first, name), getattr(second, name), rtol=1e-9, atol=1e-13
        )


@pytest.mark.parametrize("policy", ["scored", "worst-case"])
def test_blocks_of_pairs_give_the_numbers_of_one_block(
    policy: pairwise.MissingPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = all_macro_differences(parts(), missing_policy=policy)
    monkeypatch.setattr(many_tasks, "_CELLS", 500)
    assert_same(all_macro_differences(parts(), missing_policy=policy), whole)


def test_pairs_that_are_alike_give_the_numbers_of_every_pair_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.asarray(parts()[0][0])
    several = all_macro_differences(parts())
    single = all_differences(rows)
    alike = len(pairwise.upper_sums(rows, None, graded=False)[0]["n"])
    assert alike < MODELS * (MODELS - 1) // 2
    monkeypatch.setattr(pairwise, "MOST_KINDS_IN_TABLE", 0)
    assert_same(all_differences(rows), single)
    monkeypatch.setattr(pairwise, "FEWEST_TO_COUNT", 1_000)
    assert_same(all_macro_differences(parts()), several)
    assert_same(all_differences(rows), single)


def test_correlations_by_set_are_those_of_the_whole_matrix() -> None:
    rng = np.random.default_rng(1)
    sets = np.array([0, 1, 0, 3, 1, 0])
    matrix = np.eye(6)
    connected: list[tuple[Any, Any]] = []
    for number in (0, 1):
        places = np.flatnonzero(sets == number)
        block = np.corrcoef(rng.normal(size=(len(places), 40)) + rng.normal(size=40))
        matrix[np.ix_(places, places)] = block
        connected.append((places, block))
    by_set = SetCorrelations(connected, sets == 3)
    whole = AnyCorrelations(matrix, sets)
    errors, freedom, half = (rng.random((20, 6)) + 0.1 for _ in range(3))
    errors[3] = np.nan
    errors[4, 3] = 0.0
    shift = 0.1 * rng.normal(size=(20, 6))
    amounts = (errors, 30 * freedom, half, shift, 1.1 * half)
    for one, other in zip(
        spread_of_mean(*amounts, by_set, 0.95),
        spread_of_mean(*amounts, whole, 0.95),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_holm_by_rows_is_holm_of_each_row() -> None:
    rng = np.random.default_rng(2)
    p_values = np.round(rng.random((30, 9)) ** 3, 2)
    p_values[rng.random(p_values.shape) < 0.2] = np.nan
    p_values[0] = np.nan
    expected = np.stack([holm(row) for row in p_values])
    np.testing.assert_array_equal(holm_rows(p_values), expected)
