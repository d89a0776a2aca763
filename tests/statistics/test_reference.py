"""Every formula of the reference statistics beside ours, to the last digits (betting sequences:
`test_confidence_sequences`).
"""

from types import ModuleType

import numpy as np
import pytest

from evalwright.statistics import (
    compare_paired,
    corrected_mean,
    holm,
    items_for_difference,
    mean_interval,
    rank_sets,
    rogan_gladen,
    smallest_visible_difference,
    wilson,
)
from evalwright.statistics._evidence import pair_e_value
from evalwright.statistics.many_models import all_differences
from evalwright.statistics.units import standard_error, variance_components


def test_one_model(reference: ModuleType) -> None:
    rng = np.random.default_rng(1)
    for k, n in ((0, 7), (3, 9), (57, 60), (200, 200)):
        assert wilson(k, n) == pytest.approx(reference.wilson(k, n), abs=1e-12)
    scores = rng.random((40, 5))
    assert tuple(variance_components(scores)) == pytest.approx(
        reference.variance_components(scores)
    )
    ids = np.repeat(np.arange(12), 5)  # clusters of one size: CR2 is CR1
    found = standard_error(scores.ravel()[:60], ids, 12)
    assert (found.error, found.freedom) == pytest.approx(
        reference.clustered_se(scores.ravel()[:60], ids)
    )


def test_two_models(reference: ModuleType) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 35))
    difference, ends, p_value = reference.paired_t(a, b)
    found = compare_paired(a, b, value_range=None)
    # Student's t but for the skewness.
    assert found.difference == pytest.approx(difference)
    assert (found.low, found.high, found.p_value) == pytest.approx(
        (*ends, p_value), abs=0.02
    )
    within = compare_paired(a, b)
    assert (within.low, within.high, within.p_value) == pytest.approx(
        (found.low, found.high, found.p_value), abs=0.02
    )
    right = np.r_[np.ones(9), np.zeros(51)]
    wrong = np.r_[np.zeros(9), np.ones(2), np.zeros(49)]
    found = compare_paired(right, wrong)
    assert found.p_value == pytest.approx(reference.mcnemar_exact(9, 2), rel=0.2)
    assert (found.low, found.high) == pytest.approx(
        reference.bonett_price(9, 2, 60), abs=0.02
    )


def test_power(reference: ModuleType) -> None:
    assert smallest_visible_difference(300, 0.2) == pytest.approx(
        reference.mde_paired(300, 0.2)
    )
    assert (
        int(items_for_difference(0.02, 0.2))
        == reference.n_for_effect(0.02, 0.2)
        == 3925
    )


def test_many_models(reference: ModuleType) -> None:
    p = np.array([0.2, 0.01, 0.04, 0.9, 0.003])
    assert holm(p) == pytest.approx(reference.holm(p))
    rng = np.random.default_rng(3)
    scores = (
        rng.random((5, 300)) < np.array([0.5, 0.52, 0.7, 0.72, 0.9])[:, None]
    ).astype(float)
    low, high, _ = reference.rank_sets(scores)
    ours = rank_sets(all_differences(scores))
    # Theirs take the largest |t| of a resample, ours Holm's p.
    assert (np.abs(ours.low - low) <= 1).all() and (np.abs(ours.high - high) <= 1).all()


def test_a_bet_on_pairs(reference: ModuleType) -> None:
    for wins, losses in ((0, 0), (9, 2), (40, 41)):
        assert pair_e_value(wins, losses) == pytest.approx(
            reference.paired_evalue(wins, losses)
        )


def test_judges(reference: ModuleType) -> None:
    rng = np.random.default_rng(4)
    truth = (rng.random(600) < 0.6).astype(float)
    verdict = np.where(rng.random(600) < 0.85, truth, 1 - truth)
    labels = np.where(np.arange(600) < 200, truth, np.nan)
    value, ends, _ = reference.ppi_mean(truth[:200], verdict[:200], verdict[200:])
    found = corrected_mean(verdict, labels)
    assert found.value == pytest.approx(value, abs=0.005)
    assert (found.low, found.high) == pytest.approx(ends, abs=0.01)
    rates = (700, 1000, 170, 200, 160, 200)
    assert rogan_gladen(*rates).value == pytest.approx(
        reference.rogan_gladen(*rates)[0], abs=0.005
    )


def test_a_graded_mean_is_students(reference: ModuleType) -> None:
    a = np.random.default_rng(5).random(30)
    _, ends, _ = reference.paired_t(a, np.zeros(30))
    found = mean_interval(a)
    assert (found.low, found.high) == pytest.approx(ends)
