"""Metrics over classes against scikit-learn, with what names no option or has no probability;
the agreement of raters by hand.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.metrics.classes import rater_agreement
from evalwright.metrics.registry import Column, compute
from evalwright.scorers.stress.rules import CLASSES
from evalwright.statistics import cohen_kappa, gwet_ac1

GOLD = np.array([0, 1, 2, 2, 1, 0, 0, 1, 2, 0], dtype=np.float64)
SAID = np.array([0, 1, 2, 1, 1, -1, 0, 2, 2, 1], dtype=np.float64)


def column(
    gold: np.ndarray[tuple[int], np.dtype[np.float64]],
    said: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> Column:
    return Column(
        (gold == said).astype(np.float64),
        {"gold": gold, "predicted": said},
        n_missing=1,
    )


def test_values_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip(
        "sklearn.metrics", reason="scikit-learn is the oracle"
    )
    f1 = compute("macro-f1", column(GOLD, SAID))
    assert f1.value == pytest.approx(
        metrics.f1_score(GOLD, SAID, average="macro", zero_division=0)
    )
    recall = compute("balanced-accuracy", column(GOLD, SAID))
    assert recall.value == pytest.approx(
        metrics.recall_score(GOLD, SAID, average="macro", labels=[0, 1, 2])
    )
    assert f1.n_missing == recall.n_missing == 1
    assert f1.low <= f1.value <= f1.high


def test_a_constant_answer_is_at_chance() -> None:
    assert compute(
        "balanced-accuracy", column(GOLD, np.zeros(10))
    ).value == pytest.approx(1 / 3)


def test_samples_with_several_right_options_are_left_out_and_said() -> None:
    gold = GOLD.copy()
    gold[:2] = np.nan
    found = compute("balanced-accuracy", column(gold, SAID))
    assert found.n == 8
    assert "2 samples with several right options left out" in found.method
    assert (
        "no sample has exactly one"
        in compute("macro-f1", column(np.full(10, np.nan), SAID)).method
    )


def test_draws_are_used_where_they_are_given_and_named_where_averaged() -> None:
    gold = np.array([0.0, 1.0, 1.0])
    draws = np.array([[0, 1], [1, 1], [0, 1]], dtype=np.float64)
    parts = {"gold": gold, "predicted": draws.mean(axis=1)}
    values = (draws == gold[:, None]).mean(axis=1)
    averaged = compute("macro-f1", Column(values, parts))
    assert np.isnan(averaged.value)
    assert "draws were averaged" in averaged.method
    found = compute(
        "balanced-accuracy", Column(values, parts, part_draws={"predicted": draws})
    )
    assert found.value == pytest.approx((0.5 + 0.75) / 2)
    draws[0, 0] = np.nan
    missing = compute(
        "balanced-accuracy", Column(values, parts, part_draws={"predicted": draws})
    )
    assert (missing.n, missing.n_missing) == (2, 1)


def test_scores_without_classes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="scorer 'choice'"):
        compute("macro-f1", Column(np.ones(3), {}))


# -- a probability
# -------------------------------------------------------------------------------------------------------


def test_the_value_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip(
        "sklearn.metrics", reason="scikit-learn is the oracle"
    )
    draws = np.random.default_rng(4)
    gold = draws.integers(0, 2, 200).astype(np.float64)
    # Rounded, so that there are ties.
    noise = draws.normal(0, 0.2, 200)
    said = np.asarray(
        np.round(np.clip(0.5 + 0.15 * (gold - 0.5) + noise, 0, 1), 1), dtype=np.float64
    )
    clusters = np.repeat(np.arange(50), 4)
    for groups in (None, clusters):
        found = compute(
            "auroc",
            Column(
                gold, {"gold": gold, "probability": said}, clusters=groups, n_missing=3
            ),
        )
        assert found.value == pytest.approx(metrics.roc_auc_score(gold, said))
        assert found.low < found.value < found.high
        assert (found.n, found.n_missing) == (200, 3)


def test_what_has_no_probability_is_counted_as_failed() -> None:
    gold = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    said = np.array([0.1, 0.9, np.nan, 0.2, 0.8])
    found = compute("auroc", Column(gold, {"gold": gold, "probability": said}))
    assert (found.value, found.n, found.n_missing) == (1.0, 4, 1)


def test_one_class_alone_has_no_number() -> None:
    found = compute(
        "auroc",
        Column(np.ones(3), {"gold": np.ones(3), "probability": np.full(3, 0.5)}),
    )
    assert np.isnan(found.value)
    assert np.isnan(compute("auroc", Column(np.array([]), {}, n_missing=2)).value)


def test_scores_without_probabilities_or_with_more_classes_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="scorer 'classification'"):
        compute("auroc", Column(np.ones(2), {"gold": np.ones(2)}))
    with pytest.raises(ConfigurationError, match="two classes"):
        compute(
            "auroc",
            Column(
                np.ones(2), {"gold": np.array([0.0, 2.0]), "probability": np.ones(2)}
            ),
        )


# -- raters
# ---------------------------------------------------------------------------------------------------------------

LABELS = ["refusal", "correction", "partial", "fabricated", "fabricated", "empty"]
JUDGE = ["refusal", "correction", "fabricated", "fabricated", None, "empty"]


def rated() -> Column:
    parts = {
        "handled": np.array([float(label in CLASSES[:2]) for label in LABELS]),
        "rules class": np.array([float(CLASSES.index(label)) for label in LABELS]),
        "judge class": np.array(
            [float(CLASSES.index(label)) if label else math.nan for label in JUDGE]
        ),
    }
    return Column(np.zeros(len(LABELS)), parts)


def test_agreement_is_of_what_both_judged() -> None:
    found = rater_agreement(rated())
    assert found.value == pytest.approx(4 / 5)
    assert (found.n, found.n_missing) == (5, 0)
    a = np.array(
        [
            CLASSES.index(label)
            for label, other in zip(LABELS, JUDGE, strict=True)
            if other
        ],
        float,
    )
    b = np.array([CLASSES.index(other) for other in JUDGE if other], float)
    assert rater_agreement(rated(), coefficient="kappa") == cohen_kappa(a, b)
    expected = gwet_ac1(np.column_stack([a, b]), labels=len(CLASSES))
    assert rater_agreement(rated(), coefficient="ac1") == expected
    # By hand: the rules say refusal, correction, partial, fabricated, empty; the judge fabricated
    # instead of partial.
    kappa = (4 / 5 - 5 / 25) / (1 - 5 / 25)
    assert rater_agreement(rated(), coefficient="kappa").value == pytest.approx(kappa)


def test_a_rater_that_judged_nothing_is_no_number() -> None:
    found = rater_agreement(rated(), second="other")
    assert math.isnan(found.value)
    assert "'rules' and 'other' judged no answer both" in found.method
    with pytest.raises(UnknownName, match="kappa"):
        rater_agreement(rated(), coefficient="kapa")  # type: ignore[arg-type]
