"""Balanced accuracy and macro-F1 against scikit-learn, with answers that name no option."""

from __future__ import annotations

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.registry import Column, compute

GOLD = np.array([0, 1, 2, 2, 1, 0, 0, 1, 2, 0], dtype=np.float64)
SAID = np.array([0, 1, 2, 1, 1, -1, 0, 2, 2, 1], dtype=np.float64)


def column(
    gold: np.ndarray[tuple[int], np.dtype[np.float64]], said: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> Column:
    return Column((gold == said).astype(np.float64), {"gold": gold, "predicted": said}, n_failed=1)


def test_values_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the oracle")
    f1 = compute("macro-f1", column(GOLD, SAID))
    assert f1.value == pytest.approx(metrics.f1_score(GOLD, SAID, average="macro", zero_division=0))
    recall = compute("balanced-accuracy", column(GOLD, SAID))
    assert recall.value == pytest.approx(metrics.recall_score(GOLD, SAID, average="macro", labels=[0, 1, 2]))
    assert f1.n_failed == recall.n_failed == 1
    assert f1.low <= f1.value <= f1.high


def test_a_constant_answer_is_at_chance() -> None:
    assert compute("balanced-accuracy", column(GOLD, np.zeros(10))).value == pytest.approx(1 / 3)


def test_samples_with_several_right_options_are_left_out_and_said() -> None:
    gold = GOLD.copy()
    gold[:2] = np.nan
    found = compute("balanced-accuracy", column(gold, SAID))
    assert found.n == 8
    assert "2 samples with several right options left out" in found.method
    assert "no sample has exactly one" in compute("macro-f1", column(np.full(10, np.nan), SAID)).method


def test_draws_are_used_where_they_are_given_and_named_where_averaged() -> None:
    gold = np.array([0.0, 1.0, 1.0])
    draws = np.array([[0, 1], [1, 1], [0, 1]], dtype=np.float64)
    parts = {"gold": gold, "predicted": draws.mean(axis=1)}
    values = (draws == gold[:, None]).mean(axis=1)
    averaged = compute("macro-f1", Column(values, parts))
    assert np.isnan(averaged.value)
    assert "draws were averaged" in averaged.method
    found = compute("balanced-accuracy", Column(values, parts, part_draws={"predicted": draws}))
    assert found.value == pytest.approx((0.5 + 0.75) / 2)
    draws[0, 0] = np.nan
    missing = compute("balanced-accuracy", Column(values, parts, part_draws={"predicted": draws}))
    assert (missing.n, missing.n_failed) == (2, 1)


def test_scores_without_classes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="scorer 'choice'"):
        compute("macro-f1", Column(np.ones(3), {}))
