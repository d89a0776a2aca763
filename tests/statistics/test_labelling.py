"""Labelling sets: chances that are true, sizes that are asked for, and corrections that stay
unbiased.
"""

import math

import numpy as np
import pytest

from evalwright.statistics import corrected_mean, draw_labelling_set


def _verdicts(n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    verdicts = (rng.random(n) < 0.8).astype(float)
    verdicts[:10] = math.nan
    return verdicts, np.where(rng.random(n) < 0.3, 0.55, 0.97)


@pytest.mark.parametrize("design", ["random", "stratified"])
def test_size_chances_and_seed(design: str) -> None:
    verdicts, confidence = _verdicts()
    found = draw_labelling_set(
        verdicts,
        60,
        design=design,  # type: ignore[arg-type]
        confidence=confidence,
        seed=3,
    )
    assert len(set(found.indices)) == 60
    assert not np.isnan(verdicts[list(found.indices)]).any()
    assert sum(found.probabilities) == pytest.approx(60)
    assert found.probabilities[:10] == (0.0,) * 10 and found.strata[:10] == (-1,) * 10
    again = draw_labelling_set(
        verdicts,
        60,
        design=design,  # type: ignore[arg-type]
        confidence=confidence,
        seed=3,
    )
    other = draw_labelling_set(
        verdicts,
        60,
        design=design,  # type: ignore[arg-type]
        confidence=confidence,
        seed=4,
    )
    assert again == found != other


@pytest.mark.parametrize("design", ["random", "stratified"])
def test_items_are_chosen_as_often_as_said(design: str) -> None:
    verdicts, confidence = _verdicts(60)
    sets = [
        draw_labelling_set(
            verdicts,
            20,
            design=design,  # type: ignore[arg-type]
            confidence=confidence,
            seed=seed,
        )
        for seed in range(1500)
    ]
    chosen = (
        np.bincount(np.concatenate([one.indices for one in sets]), minlength=60) / 1500
    )
    assert chosen == pytest.approx(np.array(sets[0].probabilities), abs=0.055)


def test_doubtful_verdicts_are_chosen_more_often() -> None:
    verdicts, confidence = _verdicts()
    labelling_set = draw_labelling_set(
        verdicts, 80, design="stratified", confidence=confidence
    )
    chance = np.array(labelling_set.probabilities)
    judged = ~np.isnan(verdicts)
    assert (
        chance[judged & (confidence < 0.6)].mean()
        > 1.4 * chance[judged & (confidence > 0.9)].mean()
    )
    assert (
        np.bincount(np.array(labelling_set.strata)[list(labelling_set.indices)]).min()
        >= 2
    )


def test_corrections_from_such_sets_are_unbiased() -> None:
    rng = np.random.default_rng(7)
    verdicts = (rng.random(500) < 0.7).astype(float)
    doubtful = rng.random(500) < 0.3
    truth = np.where(
        rng.random(500) < np.where(doubtful, 0.4, 0.05), 1 - verdicts, verdicts
    )
    confidence = np.where(doubtful, 0.55, 0.95)
    values = []
    for seed in range(300):
        drawn = draw_labelling_set(
            verdicts, 80, design="stratified", confidence=confidence, seed=seed
        )
        labels = np.full(500, math.nan)
        labels[list(drawn.indices)] = truth[list(drawn.indices)]
        values.append(corrected_mean(verdicts, labels, strata=drawn.strata).value)
    assert np.mean(values) == pytest.approx(
        truth.mean(), abs=float(4 * np.std(values)) / math.sqrt(300)
    )
    assert np.std(values) < 0.9 * math.sqrt(truth.var() / 80)


def test_graded_verdicts_and_whole_sets() -> None:
    graded = np.random.default_rng(2).random(100)
    labelling_set = draw_labelling_set(graded, 40, design="stratified")
    assert len(set(labelling_set.strata)) == 5
    everything = draw_labelling_set(graded, 100, design="stratified")
    assert everything.probabilities == (1.0,) * 100
    assert len(draw_labelling_set([1.0, 0.0, 1.0], 1).indices) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "cannot be drawn"),
        ({"size": 9}, "cannot be drawn"),
        ({"size": 3, "design": "stratified"}, "too few for 2 strata"),
        ({"design": "quota"}, "unknown design"),
        ({"confidence": [2.0] * 8}, "between 0 and 1"),
        ({"confidence": [0.5]}, "one number for each"),
        ({"verdicts": [math.inf]}, "finite"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    defaults: dict[str, object] = {"verdicts": [0.0, 1.0] * 4, "size": 4}
    with pytest.raises(ValueError, match=message):
        draw_labelling_set(**(defaults | arguments))  # type: ignore[arg-type]
