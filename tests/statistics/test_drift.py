"""Drift: false alarms at any number of looks, and what is seen of a change."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.statistics.drift import (
    detect_changed_texts,
    detect_changed_verdicts,
    detect_drift,
    forecast_detectable,
    forecast_detectable_verdicts,
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
    always = np.ones(200)
    one_other = np.ones(200)
    one_other[0] = 0.0
    assert detect_drift(always, [always] * 4 + [one_other] * 40).alarm is None
    ten_others = np.ones(200)
    ten_others[:10] = 0.0
    assert detect_drift(always, [always] * 3 + [ten_others] * 4).alarm is not None


def test_rounds_that_scatter_together_are_no_change() -> None:
    """Days that are good or bad for all items: repeats within a day do not show them."""
    random = np.random.default_rng(9)
    n_alarms = n_bad_days = 0
    right = np.arange(200) < 140
    for _ in range(60):
        days = []
        for _ in range(53):
            shift = random.normal(0, 0.02)
            flips = random.random(200) < abs(shift)
            days.append(np.where(flips, float(shift > 0), right * 1.0))
        drift = detect_drift(np.stack([days[0]] * 2), days[1:])
        n_alarms += drift.alarm is not None
        bad = [
            np.where((random.random(200) < 0.2) & (random.random() < 0.02), 0.0, right)
            for _ in range(53)
        ]
        n_bad_days += detect_drift(np.stack([right] * 2), bad).alarm is not None
    # The test that knows the variance between repeats alone gives 39 and more of 60.
    assert n_alarms <= 7 and n_bad_days <= 8


def test_one_far_round_is_a_bad_day_and_three_are_a_change() -> None:
    good = np.ones(200)
    bad = np.where(np.arange(200) < 60, 0.0, 1.0)
    assert detect_drift(good, [good] * 8 + [bad] + [good] * 8).alarm is None
    drift = detect_drift(good, [good] * 8 + [bad] * 3)
    assert drift.alarm in (10, 11) and drift.looks[-1].since == 9


def test_missing_scores_are_left_out_item_by_item() -> None:
    """The hard items' failures must not look like a better model."""
    right = np.r_[np.zeros(100), np.ones(100)]
    lacking = right.copy()
    lacking[:50] = NAN
    drift = detect_drift(right, [right] * 3 + [lacking] * 6)
    assert drift.looks[-1].change == pytest.approx(0.0, abs=1e-3)
    assert drift.alarm is None
    nothing = np.full(200, NAN)
    with_gaps = detect_drift(right, [right, nothing, right, right])
    assert with_gaps.looks[1] == with_gaps.looks[0]


def test_repeats_of_a_round_count_as_such() -> None:
    random = np.random.default_rng(8)
    chances = noisy_chances(random, 200)
    rounds = [np.stack([draw(random, chances) for _ in range(3)]) for _ in range(9)]
    thrice = detect_drift(rounds[0], rounds[1:]).looks[-1]
    once = detect_drift(rounds[0], [scores[0] for scores in rounds[1:]]).looks[-1]
    assert thrice.high - thrice.low < once.high - once.low


def test_verdicts_change_where_the_mean_does_not() -> None:
    random = np.random.default_rng(7)
    chances = noisy_chances(random, 200)
    changed = chances.copy()
    changed[np.flatnonzero(chances == 0.0)[:12]] = 1.0
    changed[np.flatnonzero(chances == 1.0)[:12]] = 0.0
    rounds = [draw(random, chances) for _ in range(7)]
    rounds += [draw(random, changed) for _ in range(8)]
    assert detect_drift(rounds[0], rounds[1:]).alarm is None
    looks, alarm = detect_changed_verdicts(rounds[0], rounds[1:])
    assert alarm is not None and looks[-1].since == 7
    still, no_alarm = detect_changed_verdicts(rounds[0], rounds[1:7])
    assert no_alarm is None and len(still) == 6


def test_a_change_between_the_first_two_rounds_is_no_variation() -> None:
    random = np.random.default_rng(2)
    chances = np.where(np.arange(200) < 140, 1.0, 0.0)
    changed = np.where(np.arange(200) < 120, 1.0, 0.0)
    rounds = [draw(random, chances), *(draw(random, changed) for _ in range(8))]
    assert detect_drift(rounds[0], rounds[1:]).repeat_variance < 0.01


def test_scores_without_limits_are_seen_in_their_own_unit() -> None:
    random = np.random.default_rng(1)
    quality = random.normal(50, 10, 200)
    quality[0] = 4_000
    rounds = [quality + random.normal(0, 1, 200) for _ in range(6)]
    rounds += [quality - 2 + random.normal(0, 1, 200) for _ in range(6)]
    drift = detect_drift(rounds[0], rounds[1:], spread=50.0)
    assert drift.alarm is not None
    assert drift.looks[-1].change == pytest.approx(-2, abs=0.3)


def test_variance_is_that_between_repeats() -> None:
    # 40 flips in 100 items: half a squared difference each, and two flips added.
    flips = np.r_[np.ones(40), np.zeros(60)]
    baseline = np.stack([np.zeros(100), flips])
    assert repeat_variance(baseline) == pytest.approx((20 + 1) / (100 + 2))
    with pytest.raises(ValueError, match="repeats"):
        repeat_variance(np.zeros((1, 5)))


def test_texts_change_and_stay_others() -> None:
    random = np.random.default_rng(6)
    usual = np.zeros(200, np.int64)

    def ask(new: int = 0) -> np.ndarray:
        wording = np.where(random.random(200) < 0.1, random.integers(1, 9, 200), usual)
        return np.where(np.arange(200) < 40, wording + new, wording)

    baseline = np.stack([ask(), ask()])
    alike = [ask() for _ in range(6)]
    looks, alarm = detect_changed_texts(baseline, alike)
    assert alarm is None
    assert looks[0].changed == pytest.approx(0.2, abs=0.07)
    assert looks[0].own == pytest.approx(0.2, abs=0.07)
    looks, alarm = detect_changed_texts(baseline, alike + [ask(10) for _ in range(4)])
    assert alarm is not None and 7 < alarm <= 10
    assert looks[-1].since == 7 and looks[-1].changed > 0.3


def test_texts_that_differ_by_day_are_no_change() -> None:
    """Repeats within a day come from the same servers, so that they are more alike than days are."""
    random = np.random.default_rng(5)
    usual = np.zeros(200, np.int64)
    days = [
        np.where(random.random(200) < 0.25, random.integers(1, 9, 200), usual)
        for _ in range(30)
    ]
    baseline = np.stack([days[0], days[0]])
    looks, alarm = detect_changed_texts(baseline, days[1:])
    assert looks[0].own == 0.0 and looks[0].changed > 0.2 and alarm is None


def test_missing_texts_are_left_out() -> None:
    baseline = np.zeros((2, 10), np.int64)
    texts = np.array([[-1] * 9 + [0]])
    looks, alarm = detect_changed_texts(baseline, [texts])
    assert looks[0].n == 1 and looks[0].changed == 0.0 and alarm is None


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="same items"):
        detect_drift(np.zeros((2, 3)), [np.zeros(4)])
    with pytest.raises(ValueError, match="same items"):
        detect_changed_texts(np.zeros((2, 3), np.int64), [np.zeros(4, np.int64)])
    with pytest.raises(ValueError, match="same items"):
        detect_changed_verdicts(np.zeros((2, 3)), [np.zeros(4)])


def share_seen(chances: np.ndarray, change: float, n_years: int = 60) -> float:
    """How often a lasting change of so many items' verdicts is seen within 8 rounds."""
    random = np.random.default_rng(11)
    n_changed = round(change * len(chances))
    n_seen = 0
    for _ in range(n_years):
        changed = chances.copy()
        changed[random.permutation(np.flatnonzero(chances == 0.0))[:n_changed]] = 1.0
        baseline = np.stack([draw(random, chances) for _ in range(2)])
        rounds = [draw(random, chances) for _ in range(8)]
        rounds += [draw(random, changed) for _ in range(8)]
        n_seen += detect_drift(baseline, rounds, alpha=0.02).alarm is not None
    return n_seen / n_years


@pytest.mark.parametrize("n_items", [40, 200])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_smallest_change_that_is_seen_is_forecast(
    n_items: int, noise: float
) -> None:
    random = np.random.default_rng(10)
    chances = np.where(np.arange(n_items) % 5 < 2, 0.0, 1.0)
    chances = np.where(np.arange(n_items) % 10 == 3, 1 - noise, chances)
    baseline = np.stack([draw(random, chances) for _ in range(2)])
    rounds = [draw(random, chances) for _ in range(8)]
    forecast = forecast_detectable(detect_drift(baseline, rounds, alpha=0.02))
    assert share_seen(chances, forecast.change + 1 / n_items) > 0.75
    assert share_seen(chances, forecast.change / 2) < 0.5


def test_few_items_see_large_changes_only_and_how_many_would_do_is_said() -> None:
    always = np.ones(20)
    few = forecast_detectable(detect_drift(always, [always] * 8, alpha=0.02))
    assert 0.1 < few.change < 0.3
    assert few.n_items_advised is not None
    enough = np.ones(few.n_items_advised)
    advised = forecast_detectable(detect_drift(enough, [enough] * 8, alpha=0.02))
    assert advised.change <= 0.04 and advised.n_items_advised is None
    three = np.ones(3)
    none = forecast_detectable(detect_drift(three, [three] * 4, alpha=0.0001))
    assert math.isnan(none.change)


def test_what_is_not_known_is_not_forecast() -> None:
    nothing = forecast_detectable(detect_drift(np.full(9, NAN), [np.full(9, NAN)] * 3))
    assert math.isnan(nothing.change) and nothing.n_items_advised is None
    once = forecast_detectable_verdicts(np.ones(9), [np.ones(9)])
    assert math.isnan(once.change)


def test_changed_verdicts_are_forecast_as_a_share_of_the_items() -> None:
    always = np.ones(200)
    forecast = forecast_detectable_verdicts(always, [always] * 6, alpha=0.02)
    turned = np.where(np.arange(200) < round(200 * forecast.change) + 1, 0.0, 1.0)
    _, alarm = detect_changed_verdicts(always, [always] * 6 + [turned] * 8, alpha=0.02)
    assert alarm is not None
