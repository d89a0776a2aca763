"""AUROC against scikit-learn, with what is missing counted."""

from __future__ import annotations

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.registry import BOUNDED, Column, compute


def test_the_value_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the oracle")
    draws = np.random.default_rng(4)
    gold = draws.integers(0, 2, 200).astype(np.float64)
    # Rounded, so that there are ties.
    noise = draws.normal(0, 0.2, 200)
    said = np.asarray(np.round(np.clip(0.5 + 0.15 * (gold - 0.5) + noise, 0, 1), 1), dtype=np.float64)
    clusters = np.repeat(np.arange(50), 4)
    for groups in (None, clusters):
        found = compute(
            "auroc", Column(gold, {"gold": gold, "probability": said}, clusters=groups, n_failed=3)
        )
        assert found.value == pytest.approx(metrics.roc_auc_score(gold, said))
        assert found.low < found.value < found.high
        assert (found.n, found.n_failed) == (200, 3)
    assert "auroc" in BOUNDED


def test_what_has_no_probability_is_counted_as_failed() -> None:
    gold = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    said = np.array([0.1, 0.9, np.nan, 0.2, 0.8])
    found = compute("auroc", Column(gold, {"gold": gold, "probability": said}))
    assert (found.value, found.n, found.n_failed) == (1.0, 4, 1)


def test_one_class_alone_has_no_number() -> None:
    found = compute("auroc", Column(np.ones(3), {"gold": np.ones(3), "probability": np.full(3, 0.5)}))
    assert np.isnan(found.value)
    assert np.isnan(compute("auroc", Column(np.array([]), {}, n_failed=2)).value)


def test_scores_without_probabilities_or_with_more_classes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="scorer 'classification'"):
        compute("auroc", Column(np.ones(2), {"gold": np.ones(2)}))
    with pytest.raises(ConfigurationError, match="two classes"):
        compute("auroc", Column(np.ones(2), {"gold": np.array([0.0, 2.0]), "probability": np.ones(2)}))
