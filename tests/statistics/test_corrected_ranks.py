"""Corrected scores of many models, their differences, the judge's errors, and what to label next."""

from __future__ import annotations

import numpy as np
import pytest

from evalwright.statistics import corrected_mean, rank_sets
from evalwright.statistics.corrected_ranks import (
    FEWEST_LABELS,
    LabelledModel,
    correct_scores,
)
from evalwright.statistics.judge_errors import error_rates, pool_rates
from evalwright.statistics.labelling import judged_sample
from evalwright.statistics.labels_for_ranks import FEWEST_IN_STRATUM, plan_labels

Random = np.random.Generator
ITEMS = 600


def make_model(
    rng: Random,
    wrong: float,
    labels: int,
    *,
    miss: float = 0.2,
    alarm: float = 0.1,
    chosen: np.ndarray | None = None,
) -> tuple[LabelledModel, np.ndarray]:
    """A model with random labels, and what people would say of all its answers."""
    right = (rng.random(ITEMS) >= wrong).astype(float)
    errs = rng.random(ITEMS) < np.where(right == 1, alarm, miss)
    verdict = np.where(errs, 1 - right, right)
    indices = rng.choice(ITEMS, labels, replace=False) if chosen is None else chosen
    human = np.full(ITEMS, np.nan)
    human[indices] = right[indices]
    return LabelledModel(verdict, human), right


@pytest.fixture
def rng() -> Random:
    return np.random.default_rng(5)


def test_a_corrected_score_is_that_of_judge_calibrate(rng: Random) -> None:
    models = [make_model(rng, wrong, 100)[0] for wrong in (0.05, 0.2, 0.5)]
    corrected = correct_scores(models)
    for model, score in zip(models, corrected.scores, strict=True):
        alone = corrected_mean(model.judge, model.human)
        assert score.estimate is not None
        assert (score.estimate.value, score.estimate.low, score.estimate.high) == (
            alone.value,
            alone.low,
            alone.high,
        )
    assert corrected.differences is not None
    values = [score.estimate.value for score in corrected.scores if score.estimate]
    assert corrected.differences.difference[0, 1] == pytest.approx(
        values[0] - values[1]
    )
    sets = rank_sets(corrected.differences)
    assert (sets.low[2], sets.high[2]) == (3, 3)


def test_a_judge_that_favours_a_model_is_overruled(rng: Random) -> None:
    """By the judge a is 20 points better than b; by people b is better."""
    favoured, _ = make_model(rng, 0.4, 300, miss=0.7, alarm=0.0)
    other, _ = make_model(rng, 0.2, 300, miss=0.05, alarm=0.3)
    corrected = correct_scores([favoured, other])
    assert corrected.scores[0].judge_mean > corrected.scores[1].judge_mean + 0.1
    assert corrected.differences is not None
    assert corrected.differences.differs[0, 1]
    assert corrected.differences.difference[0, 1] < 0


def test_interval_p_value_and_verdict_of_a_pair_agree(rng: Random) -> None:
    models = [make_model(rng, wrong, 80)[0] for wrong in (0.1, 0.15, 0.25, 0.4)]
    differences = correct_scores(models).differences
    assert differences is not None
    upper = np.triu_indices(4, 1)
    excludes = (differences.low > 0) | (differences.high < 0)
    assert (excludes == differences.differs)[upper].all()
    assert (differences.low == -differences.high.T)[upper].all()
    assert (differences.p_value == differences.p_value.T)[upper].all()


def test_labels_on_the_same_items_are_paired(rng: Random) -> None:
    """Two models that err on the same items: their difference is known better."""
    hardness = rng.random(ITEMS)
    chosen = rng.choice(ITEMS, 150, replace=False)
    apart = rng.choice(ITEMS, 150, replace=False)
    right = [(hardness >= wrong).astype(float) for wrong in (0.3, 0.34)]

    def compare(places: tuple[np.ndarray, np.ndarray]) -> float:
        models = []
        for truth, indices in zip(right, places, strict=True):
            human = np.full(ITEMS, np.nan)
            human[indices] = truth[indices]
            noise = rng.random(ITEMS)  # a judge that knows nothing
            models.append(LabelledModel((noise > 0.5).astype(float), human))
        differences = correct_scores(models).differences
        assert differences is not None
        return float(differences.standard_error[0, 1])

    assert compare((chosen, chosen)) < 0.6 * compare((chosen, apart))


def test_a_pair_is_compared_on_common_items(rng: Random) -> None:
    model, _ = make_model(rng, 0.2, 200)
    judge = model.judge.copy()
    judge[: ITEMS // 2] = np.nan
    corrected = correct_scores([model, LabelledModel(judge, model.human)])
    assert corrected.differences is not None
    assert corrected.differences.n[0, 1] == ITEMS // 2
    # the same answers on the common items, though the scores of all items differ
    assert corrected.differences.difference[0, 1] == pytest.approx(0.0)
    values = [score.estimate.value for score in corrected.scores if score.estimate]
    assert values[0] != values[1]


def test_models_with_too_few_labels_stay_uncorrected(rng: Random) -> None:
    models = [make_model(rng, 0.2, n)[0] for n in (100, FEWEST_LABELS - 1, 100, 0)]
    corrected = correct_scores(models)
    assert corrected.compared == (0, 2)
    assert [score.reason for score in corrected.scores] == [
        "",
        "it has 19 labels, fewer than 20",
        "",
        "it has no labels",
    ]
    assert corrected.false_alarm is not None
    assert corrected.false_alarm.models == 3


def test_graded_labels_have_no_rates(rng: Random) -> None:
    grades = rng.beta(4, 2, ITEMS)
    human = np.full(ITEMS, np.nan)
    human[:100] = np.clip(grades[:100] - 0.1, 0, 1)
    score = correct_scores([LabelledModel(grades, human)]).scores[0]
    assert score.estimate is not None
    assert score.estimate.value == pytest.approx(grades.mean() - 0.1, abs=0.01)
    assert score.false_alarm is None


def test_a_scale_makes_the_mean_over_tasks(rng: Random) -> None:
    """Two tasks of 100 and 500 items that count the same."""
    model, right = make_model(rng, 0.2, ITEMS)
    right[:100] = 0.0
    scale = np.where(np.arange(ITEMS) < 100, 0.5 * ITEMS / 100, 0.5 * ITEMS / 500)
    corrected = correct_scores([LabelledModel(model.judge, right, scale=scale)])
    estimate = corrected.scores[0].estimate
    assert estimate is not None
    assert estimate.value == pytest.approx(right[100:].mean() / 2)


# -- the judge's errors ----------------------------------------------------------------


def test_error_rates_by_hand() -> None:
    human = np.array([1, 1, 1, 1, 0, 0, np.nan])
    judge = np.array([1, 1, 1, 0, 1, 0, 1.0])
    alarm, miss = error_rates(judged_sample(judge, human, None, None))
    assert (alarm.value, alarm.estimate.n) == (0.25, 4)
    assert (miss.value, miss.estimate.n) == (0.5, 2)


def test_error_rates_are_weighted_by_strata() -> None:
    """Half of the labels are on the few answers called wrong; the rates are of all answers."""
    right = np.array([1.0] * 900 + [0.0] * 100)
    judge = right.copy()
    judge[:90] = 0.0  # 10% false alarms
    judge[900:950] = 1.0  # 50% misses
    rng = np.random.default_rng(0)
    human = np.full(1000, np.nan)
    for verdict in (0.0, 1.0):
        chosen = rng.choice(np.flatnonzero(judge == verdict), 130, replace=False)
        human[chosen] = right[chosen]
    sample = judged_sample(judge, human, None, judge.astype(int))
    alarm, miss = error_rates(sample)
    assert alarm.value == pytest.approx(0.1, abs=0.03)
    assert alarm.estimate.low < 0.1 < alarm.estimate.high
    assert miss.estimate.low < 0.5 < miss.estimate.high


def test_the_test_for_equal_errors() -> None:
    rng = np.random.default_rng(1)

    def p_values(alarms: list[float]) -> list[float]:
        found = []
        for _ in range(200):
            rates = []
            for chance in alarms:
                judge = (rng.random(40) >= chance).astype(float)
                sample = judged_sample(judge, np.ones(40), None, None)
                rates.append(error_rates(sample)[0])
            pooled = pool_rates(rates)
            assert pooled is not None
            found.append(pooled.p_equal)
        return found

    equal = np.array(p_values([0.05] * 10))
    assert (equal < 0.05).mean() < 0.09
    unequal = np.array(p_values([0.02] * 5 + [0.3] * 5))
    assert (unequal < 0.05).mean() > 0.9


# -- what to label next ----------------------------------------------------------------


def test_labels_go_to_neighbours_that_are_open(rng: Random) -> None:
    settled = make_model(rng, 0.6, 200)[0]
    near = [make_model(rng, wrong, 60)[0] for wrong in (0.1, 0.16)]
    plan = plan_labels([settled, *near], 100)
    numbers = [len(planned.indices) for planned in plan.models]
    assert numbers[0] == 0
    assert sum(numbers) == 100
    assert min(numbers[1:]) > 0
    assert plan.open_pairs == 1
    assert 0 < plan.expected_settled < 1
    for model, planned in zip([settled, *near], plan.models, strict=True):
        assert np.isnan(model.human[list(planned.indices)]).all()
        if planned.indices:
            assert planned.expected_half_width < planned.half_width
            counts = np.bincount(planned.strata[~np.isnan(model.human)], minlength=2)
            counts += np.bincount(planned.strata[list(planned.indices)], minlength=2)
            sizes = np.bincount(planned.strata)
            assert (counts >= np.minimum(FEWEST_IN_STRATUM, sizes)).all()


def test_a_plan_says_when_it_cannot_help(rng: Random) -> None:
    far = [make_model(rng, wrong, 300)[0] for wrong in (0.05, 0.7)]
    with pytest.raises(ValueError, match="every rank is settled"):
        plan_labels(far, 100)
    unlabelled = [make_model(rng, 0.2, 0)[0] for _ in range(3)]
    with pytest.raises(ValueError, match="two models need at least 40"):
        plan_labels(unlabelled, 30)
    plan = plan_labels(unlabelled, 40)
    assert sorted(len(planned.indices) for planned in plan.models) == [0, 20, 20]


def test_the_same_seed_draws_the_same_answers(rng: Random) -> None:
    models = [make_model(rng, 0.2, 40)[0] for _ in range(2)]
    first, second, third = (
        [planned.indices for planned in plan_labels(models, 60, seed=seed).models]
        for seed in (1, 1, 2)
    )
    assert first == second
    assert first != third
