"""Metrics of labels against scikit-learn, brute force and short coverage simulations."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, recall_score

from evalwright.statistics import Estimate, balanced_accuracy, macro_f1

I64 = npt.NDArray[np.int64]
LABELS = st.lists(
    st.tuples(st.integers(-1, 3), st.integers(-1, 3)), min_size=1, max_size=40
)


def _recall(gold: I64, predicted: I64) -> float:
    # balanced_accuracy_score itself warns where a predicted label is not among gold.
    return float(
        recall_score(
            gold, predicted, average="macro", labels=np.unique(gold), zero_division=0
        )
    )


def _f1(gold: I64, predicted: I64) -> float:
    return float(f1_score(gold, predicted, average="macro", zero_division=0))


@given(LABELS)
def test_values_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    gold, predicted = np.array(pairs).T
    assert balanced_accuracy(gold, predicted).value == pytest.approx(
        _recall(gold, predicted)
    )
    assert macro_f1(gold, predicted).value == pytest.approx(_f1(gold, predicted))


@pytest.mark.parametrize(
    ("metric", "oracle"), [(balanced_accuracy, _recall), (macro_f1, _f1)]
)
@pytest.mark.parametrize("clustered", [False, True])
def test_intervals_are_as_wide_as_by_resampling_whole_clusters_one_by_one(
    metric: Callable[..., Estimate],
    oracle: Callable[[I64, I64], float],
    clustered: bool,
) -> None:
    rng = np.random.default_rng(4)
    gold = rng.choice(3, 120, p=[0.6, 0.28, 0.12])
    predicted = np.where(rng.random(120) < 0.7, gold, rng.integers(0, 3, 120))
    ids = np.repeat(np.arange(30), 4) if clustered else np.arange(120)
    members = [np.flatnonzero(ids == name) for name in np.unique(ids)]
    resampled = []
    for _ in range(400):
        rows = np.concatenate(
            [members[i] for i in rng.integers(0, len(members), len(members))]
        )
        resampled.append(oracle(gold[rows], predicted[rows]))
    found = metric(gold, predicted, clusters=ids)
    assert found.standard_error == pytest.approx(
        np.std(resampled), rel=0.12 if metric is macro_f1 else 0.15
    )
    low, high = np.quantile(resampled, [0.025, 0.975])
    assert found.high - found.low == pytest.approx(high - low, rel=0.15)
    if metric is macro_f1:
        assert (
            found.method
            == f"BCa bootstrap over {'clusters' if clustered else 'items'}, 2000 draws"
        )
    assert found.n_clusters == (30 if clustered else None)


@pytest.mark.parametrize("draws", [1, 8])
@pytest.mark.parametrize("counts", [(194, 1), (40, 7), (24, 8, 8, 2), (5, 5)])
def test_classes_of_a_handful_of_items_are_covered(
    counts: tuple[int, ...], draws: int
) -> None:
    """By the bootstrap the truth was in 46% of the intervals of the first, and in 88% of those
    of the third.
    """
    rng = np.random.default_rng(3)
    gold = np.repeat(np.arange(len(counts)), counts)
    covered = 0
    for _ in range(400):
        able = rng.beta(1.5, 0.7, len(gold))[:, None]
        predicted = np.where(rng.random((len(gold), draws)) < able, gold[:, None], -1)
        found = balanced_accuracy(gold, predicted)
        covered += found.low <= 1.5 / 2.2 <= found.high
    assert covered >= 0.925 * 400
    assert (
        found.method
        == f"t, by the spread within classes, the rarest of {min(counts)} item{'s' if min(counts) > 1 else ''}"
    )


def test_a_class_that_is_hardly_ever_recognised_makes_the_interval_wide() -> None:
    """Of 30 items with a recall of 2%, resamples of none right show no spread: 92% of their
    intervals held the truth.
    """
    rng = np.random.default_rng(8)
    able = np.array([0.9, 0.9, 0.02])
    gold = np.repeat(np.arange(3), (150, 120, 30))
    covered = 0
    for _ in range(400):
        found = balanced_accuracy(
            gold, np.where(rng.random(300) < able[gold], gold, -1)
        )
        covered += found.low <= able.mean() <= found.high
    assert covered >= 0.95 * 400


def test_rare_classes_in_clusters_are_covered() -> None:
    """One item in twenty is of the second class; by the bootstrap 84% of the intervals held the
    truth.
    """
    rng = np.random.default_rng(9)
    able = np.array([0.95, 0.4])
    ids = np.repeat(np.arange(12), 5)
    covered = 0
    for _ in range(400):
        gold = (rng.random(60) < 0.05).astype(np.int64)
        chance = rng.beta(2 * able[:, None], 2 - 2 * able[:, None], (2, 12))
        found = balanced_accuracy(
            gold, np.where(rng.random(60) < chance[gold, ids], gold, -1), clusters=ids
        )
        covered += found.low <= able[np.unique(gold)].mean() <= found.high
    assert covered >= 0.935 * 400


def test_a_constant_answer_is_at_chance_and_not_certain() -> None:
    found = balanced_accuracy([0] * 30 + [1] * 10, [1] * 40)
    assert found.value == 0.5
    assert found.high - found.low > 0.1
    # The rarer class decides: all of its 10 items are recognised, with an interval from 0.72 on.
    assert 0.35 < found.low < 0.45


def test_all_right_is_as_uncertain_as_the_rarest_class() -> None:
    common = macro_f1([0, 1] * 50, [0, 1] * 50)
    rare = macro_f1([0] * 97 + [1] * 3, [0] * 97 + [1] * 3)
    assert common.value == common.high == rare.value == rare.high == 1.0
    assert rare.low < 0.6 < 0.95 < common.low


def test_few_errors_do_not_fool_the_bootstrap() -> None:
    gold = np.arange(200) % 2
    predicted = gold.copy()
    predicted[0] = 1
    found = macro_f1(gold, predicted)
    assert found.method == "Wilson (effective n)"
    assert found.low < 0.975
    assert 0.995 < found.high < 1


def test_repeated_draws_are_one_item() -> None:
    rng = np.random.default_rng(4)
    gold = rng.integers(0, 2, 80)
    predicted = np.where(rng.random(80) < 0.8, gold, 1 - gold)
    once = macro_f1(gold, predicted)
    copied = macro_f1(gold, np.repeat(predicted[:, None], 5, axis=1))
    assert copied.value == pytest.approx(once.value)
    assert copied.n == once.n == 80
    assert copied.high - copied.low == pytest.approx(once.high - once.low, rel=0.1)


@pytest.mark.parametrize(
    ("metric", "oracle"), [(balanced_accuracy, _recall), (macro_f1, _f1)]
)
def test_failed_items_bound_the_value(
    metric: Callable[..., Estimate], oracle: Callable[[I64, I64], float]
) -> None:
    gold = np.array([0, 0, 1, 1, 1])
    predicted = np.array([0, 1, 1, 1, 0])
    failed = np.array([1, 2])
    found = metric(gold, predicted, failed_gold=failed)
    assert (found.n, found.n_missing) == (5, 2)
    assert found.bounds is not None
    low, high = found.bounds
    # They are ends of intervals, so they lie outside of what the fillings themselves give.
    best = metric(np.append(gold, failed), np.append(predicted, failed))
    assert best.value == pytest.approx(
        oracle(np.append(gold, failed), np.append(predicted, failed))
    )
    assert 1 >= high >= max(best.high, found.high) > best.value
    # All wrong: an answer that is no class at all, so nobody's false positive.
    spoiled = np.append(predicted, [9, 9])
    labels = np.array([0, 1, 2])
    truth = np.append(gold, failed)
    score = f1_score if metric is macro_f1 else recall_score
    assert low <= score(truth, spoiled, labels=labels, average="macro", zero_division=0)
    assert 0 <= low <= found.low <= found.value


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ([0.5], [1], "gold must contain integers"),
        ([1], ["a"], "predicted must contain integers"),
        ([1, 2], [1], "shape"),
    ],
)
def test_bad_labels_are_refused(
    gold: list[float], predicted: list[object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        macro_f1(gold, predicted)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n", "groups", "right"), [(100, None, 0.97), (100, None, 0.7), (160, 8, 0.7)]
)
def test_macro_f1_is_covered(n: int, groups: int | None, right: float) -> None:
    # Two balanced classes and symmetric errors: macro-F1 is the share that is right.
    rng = np.random.default_rng(6)
    covered = 0
    for seed in range(300):
        gold = rng.integers(0, 2, n)
        chance: object = right
        ids = None
        if groups is not None:
            ids = np.repeat(np.arange(groups), n // groups)
            chance = rng.beta(6 * right, 6 * (1 - right), groups)[ids]
        predicted = np.where(rng.random(n) < chance, gold, 1 - gold)  # type: ignore[operator]
        found = macro_f1(gold, predicted, clusters=ids, seed=seed)
        covered += found.low <= right <= found.high
    assert 0.92 <= covered / 300 <= 0.99
