"""Drift: false alarms at any number of looks, and what is seen of a change."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.statistics.drift import (
    detect_changed_texts,
    detect_drift,
    repeat_variance,
)

NAN = math.nan


def draw(random: np.random.Generator, chances: np.ndarray) -> np.ndarray:
    return (random.random(len(chances)) < chances).astype(float)


def noisy_chances(random: np.random.Generator, n_items: int) -> np.ndarray:
    return random.choice([0.0, 0.2, 0.8, 1.0], size=n_items, p=[0.2, 0.15, 0.15, 0.5])


def test_a_year_of_looks_gives_few_false_alarms() -> None:
    random = np.random.default_rng(3)
    n_alarms = 0
    for _ in range(120):
        chances = noisy_chances(random, 80)
        baseline = np.stack([draw(random, chances) for _ in range(2)])
        rounds = [draw(random, chances) for _ in range(52)]
        n_alarms += detect_drift(baseline, rounds, alpha=0.2).alarm is not None
    # At 20%, 24 of 120 are the mean of the worst case that is allowed, and 38 is 3 errors above.
    assert n_alarms < 38


def test_a_lasting_change_is_seen_and_dated() -> None:
    random = np.random.default_rng(4)
    chances = noisy_chances(random, 300)
    changed = chances.copy()
    changed[np.flatnonzero(chances == 0.0)[:30]] = 1.0
    baseline = np.stack([draw(random, chances) for _ in range(2)])
    before = [draw(random, chances) for _ in range(6)]
    after = [draw(random, changed) for _ in range(6)]
    drift = detect_drift(baseline, [*before, *after])
    assert drift.alarm is not None and 7 <= drift.alarm <= 10
    last = drift.looks[-1]
    assert last.since == 7
    assert last.low <= 0.1 <= last.high and last.low > 0


def test_a_model_that_never_varies_needs_more_than_one_other_verdict() -> None:
    baseline = np.ones((2, 200))
    one_other = np.ones(200)
    one_other[0] = 0.0
    assert detect_drift(baseline, [one_other]).alarm is None
    ten_others = np.ones(200)
    ten_others[:10] = 0.0
    assert detect_drift(baseline, [ten_others] * 3).alarm is not None


def test_missing_scores_are_left_out_item_by_item() -> None:
    """The hard items' failures must not look like a better model."""
    random = np.random.default_rng(5)
    chances = np.r_[np.zeros(100), np.ones(100)]
    baseline = np.stack([draw(random, chances) for _ in range(2)])
    lacking = draw(random, chances)
    lacking[:50] = NAN
    look = detect_drift(baseline, [lacking]).looks[0]
    assert look.change == 0.0
    nothing = detect_drift(baseline, [np.full(200, NAN)]).looks[0]
    assert nothing.evidence == pytest.approx(1.0) and nothing.since == 0


def test_repeats_of_a_round_count_as_such() -> None:
    baseline = np.zeros((2, 4))
    twice = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, NAN, 0.0, 0.0]])
    once = np.array([1.0, 0.0, 0.0, 0.0])
    looks = [detect_drift(baseline, [scores]).looks[0] for scores in (twice, once)]
    assert looks[0].change == looks[1].change == 0.25
    assert looks[0].high - looks[0].low < looks[1].high - looks[1].low


def test_variance_is_that_between_repeats() -> None:
    # 40 flips in 100 items: half a squared difference each, and two flips added.
    flips = np.r_[np.ones(40), np.zeros(60)]
    baseline = np.stack([np.zeros(100), flips])
    assert repeat_variance(baseline) == pytest.approx((20 + 1) / (100 + 2))
    with pytest.raises(ValueError, match="repeats"):
        repeat_variance(np.zeros((1, 5)))


def test_texts_change_more_than_repeats_do() -> None:
    random = np.random.default_rng(6)
    baseline = random.integers(3, size=(2, 200))
    alike = random.integers(3, size=(4, 200))
    looks, alarm = detect_changed_texts(baseline, alike)
    assert alarm is None
    assert looks[0].changed == pytest.approx(2 / 3, abs=0.1)
    assert looks[0].own == pytest.approx(2 / 3, abs=0.1)
    others = random.integers(3, 6, size=(1, 200))
    looks, alarm = detect_changed_texts(baseline, np.concatenate([alike, others]))
    assert alarm == 5 and looks[4].changed == 1.0


def test_missing_texts_are_left_out() -> None:
    baseline = np.zeros((2, 10), np.int64)
    texts = np.array([[-1] * 9 + [0]])
    looks, alarm = detect_changed_texts(baseline, texts)
    assert looks[0].n == 1 and looks[0].changed == 0.0 and alarm is None


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="same items"):
        detect_drift(np.zeros((2, 3)), [np.zeros(4)])
    with pytest.raises(ValueError, match="same items"):
        detect_changed_texts(np.zeros((2, 3)), np.zeros((1, 4)))
    with pytest.raises(ValueError, match="two repeats"):
        detect_changed_texts(np.zeros((1, 3)), np.zeros((1, 3)))
