"""Brier parts, calibration error, AUROC and risk-coverage against scikit-learn and brute force."""

import json
import math

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

from evalwright.statistics import (
    accuracy_at_coverage,
    auroc,
    brier_score,
    calibration_error,
    risk_coverage,
    wilson,
)
from evalwright.statistics.calibration import equal_mass_bins

NAN = math.nan


def _answers(
    seed: int, n: int = 200, digits: int = 2, over: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    confidence = np.round(0.2 + 0.8 * rng.random(n), digits)
    return confidence, (rng.random(n) < confidence - over).astype(float)


@pytest.mark.parametrize("digits", [1, 3])
def test_brier_parts_add_up(digits: int) -> None:
    confidence, right = _answers(1, digits=digits)
    found = brier_score(confidence, right, bins=8)
    assert found.score.value == pytest.approx(brier_score_loss(right, confidence))
    parts = found.reliability - found.resolution + found.uncertainty + found.within_bin
    assert parts == pytest.approx(found.score.value, abs=1e-12)
    if (
        digits == 1
    ):  # one bin for each distinct confidence: Murphy's three parts are all there is
        whole = brier_score(confidence, right, bins=1000)
        assert whole.within_bin == pytest.approx(0.0, abs=1e-12)
        assert whole.bins == len(np.unique(confidence))
    json.dumps(found.as_dict(), allow_nan=False)


def test_bins_are_of_equal_mass_and_hold_ties_together() -> None:
    confidence = np.random.default_rng(2).random(1000)
    sizes = np.bincount(equal_mass_bins(confidence, 15))
    assert len(sizes) == 15 and sizes.min() >= 66 and sizes.max() <= 67
    tied = np.array([0.1] * 3 + [0.5] * 90 + [0.9] * 7)
    assert len(np.unique(equal_mass_bins(tied, 10)[3:93])) == 1
    assert (np.diff(equal_mass_bins(np.sort(confidence), 7)) >= 0).all()


def test_raw_error_by_brute_force() -> None:
    confidence, right = _answers(3, digits=6)
    found = calibration_error(confidence, right, bins=10)
    order = np.argsort(confidence)
    parts = np.array_split(order, 10)
    by_hand = (
        sum(len(p) * abs(confidence[p].mean() - right[p].mean()) for p in parts) / 200
    )
    assert found.raw == pytest.approx(by_hand)
    assert found.overconfidence == pytest.approx((confidence - right).mean())
    assert found.low <= found.value <= found.raw <= 1
    json.dumps(found.as_dict(), allow_nan=False)


def test_error_of_calibrated_confidence_is_bias_and_said_to_be() -> None:
    found = [
        calibration_error(*_answers(seed, 150, 6, 0.0), draws=300)
        for seed in range(100)
    ]
    raw = np.mean([one.raw for one in found])
    assert raw > 0.08  # far from the truth, which is 0
    assert np.mean([one.if_calibrated for one in found]) == pytest.approx(raw, rel=0.08)
    assert np.mean([one.value for one in found]) < 0.45 * raw
    assert np.mean([one.miscalibrated for one in found]) <= 0.11
    assert np.mean([one.low == 0.0 for one in found]) >= 0.9
    assert calibration_error(*_answers(1, 2000, 6, 0.15), draws=300).miscalibrated


def test_clusters_widen_the_interval_of_the_error() -> None:
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(40), 10)
    confidence = 0.3 + 0.7 * rng.random(400)
    right = (rng.random(40)[ids] < confidence - 0.1).astype(float)
    alone = calibration_error(confidence, right)
    together = calibration_error(confidence, right, clusters=ids)
    assert together.raw == alone.raw and together.n_clusters == 40
    assert together.standard_error is not None and alone.standard_error is not None
    assert together.standard_error > 1.2 * alone.standard_error
    assert together.high - together.low > alone.high - alone.low


def test_certain_and_right_is_no_proof() -> None:
    found = calibration_error(np.ones(30), np.ones(30))
    assert (found.raw, found.value, found.low) == (0.0, 0.0, 0.0)
    assert 0.05 < found.high < 0.2
    assert math.isnan(calibration_error([], []).value)
    one = calibration_error([0.5], [1])
    assert (one.low, one.high) == (0.0, 1.0)


# ---- sorting right from wrong ------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 6])
def test_auroc_is_that_of_scikit_learn(digits: int) -> None:
    confidence, right = _answers(6, digits=digits)
    found = auroc(confidence, right)
    assert found.value == pytest.approx(roc_auc_score(right, confidence))
    assert 0 < found.low < found.value < found.high < 1
    flipped = auroc(1 - confidence, right)
    assert (1 - flipped.high, 1 - flipped.low) == pytest.approx((found.low, found.high))


def test_delong_by_brute_force() -> None:
    confidence, right = _answers(7, 60, 1)
    good = confidence[right == 1]
    bad = confidence[right == 0]
    kernel = (good[:, None] > bad[None, :]) + 0.5 * (good[:, None] == bad[None, :])
    square = kernel.mean(axis=1).var(ddof=1) / len(good) + kernel.mean(axis=0).var(
        ddof=1
    ) / len(bad)
    found = auroc(confidence, right)
    assert found.standard_error == pytest.approx(math.sqrt(square))
    copied = auroc(
        np.repeat(confidence, 3),
        np.repeat(right, 3),
        clusters=np.repeat(np.arange(60), 3),
    )
    assert copied.standard_error == pytest.approx(math.sqrt(square), rel=0.03)


def test_auroc_at_the_edges() -> None:
    nothing = auroc([0.2, 0.4], [1, 1])
    assert math.isnan(nothing.value) and "all right" in nothing.method
    perfect = auroc(np.linspace(0, 1, 40), np.arange(40) >= 20)
    assert perfect.value == 1.0 and 0.7 < perfect.low < 0.95
    assert (auroc([0.2, 0.4], [0, 1]).low, auroc([0.2, 0.4], [0, 1]).high) == (0.0, 1.0)
    flat = auroc([0.5] * 30, [0, 1] * 15)
    assert flat.value == 0.5 and flat.low < 0.35 and flat.high > 0.65


def _area(confidence: np.ndarray, right: np.ndarray) -> float:
    """AURC, over many random orders of ties."""
    rng = np.random.default_rng(1)
    areas = []
    for _ in range(2000):
        mixed = rng.permutation(len(right))
        order = mixed[np.argsort(-confidence[mixed], kind="stable")]
        areas.append(
            (np.cumsum(1 - right[order]) / np.arange(1, len(right) + 1)).mean()
        )
    return float(np.mean(areas))


@pytest.mark.parametrize("digits", [1, 6])
def test_area_under_risk_coverage_by_brute_force(digits: int) -> None:
    confidence, right = _answers(8, 60, digits)
    found = risk_coverage(confidence, right)
    assert found.area.value == pytest.approx(
        _area(confidence, right), abs=2e-3 if digits == 1 else 1e-12
    )
    for coverage, risk, threshold in zip(
        found.coverage, found.risk, found.threshold, strict=True
    ):
        answered = confidence >= threshold
        assert (coverage, risk) == pytest.approx(
            (answered.mean(), 1 - right[answered].mean())
        )
    assert found.area_by_chance == pytest.approx(1 - right.mean())
    assert found.best_area <= found.area.value
    assert risk_coverage(right, right).area.value == pytest.approx(
        _area(right, right), abs=2e-3
    )
    json.dumps(found.as_dict(), allow_nan=False)


def test_jackknife_of_the_area_is_that_of_the_bootstrap() -> None:
    confidence, right = _answers(9, 150, 6)
    found = risk_coverage(confidence, right)
    rng = np.random.default_rng(2)
    drawn = []
    for _ in range(600):
        rows = rng.integers(0, 150, 150)
        order = rows[np.argsort(-confidence[rows], kind="stable")]
        drawn.append((np.cumsum(1 - right[order]) / np.arange(1, 151)).mean())
    assert found.area.standard_error == pytest.approx(np.std(drawn), rel=0.1)


def test_accuracy_at_a_coverage() -> None:
    confidence = np.array([0.9, 0.8, 0.8, 0.8, 0.5, 0.4, NAN])
    right = np.array([1, 1, 0, 1, 0, 1, 1.0])
    found = accuracy_at_coverage(confidence, right, 1 / 3)
    assert found.threshold == 0.8
    assert found.coverage == pytest.approx(4 / 6)
    assert found.accuracy.value == 0.75
    assert (found.accuracy.low, found.accuracy.high) == pytest.approx(wilson(3, 4))
    assert accuracy_at_coverage(confidence, right, 1.0).accuracy.n == 6
    json.dumps(accuracy_at_coverage([], [], 0.5).as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auroc([1.5], [1]), "between 0 and 1"),
        (lambda: auroc([0.5], [0.5]), "right must be"),
        (lambda: brier_score([0.5], [1, 0]), "one length"),
        (lambda: brier_score([0.5], [1], bins=0), "bins"),
        (lambda: accuracy_at_coverage([0.5], [1], 0.0), "coverage"),
    ],
)
def test_bad_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]
