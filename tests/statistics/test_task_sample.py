"""Tasks as a sample of tasks: by hand, against a t test of the tasks' means, and where tasks
share their items.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evalwright.statistics import (
    compare_paired,
    macro_average,
    macro_difference,
    mean_interval,
)
from evalwright.statistics.task_sample import (
    all_sampled_differences,
    sampled_average,
    sampled_difference,
    shared_covariance,
)


def test_without_shared_items_it_is_a_t_test_of_the_tasks() -> None:
    rng = np.random.default_rng(1)
    tasks = [
        (rng.random((2, 200)) < [[0.5 + gap], [0.5]]).astype(float)
        for gap in (0.3, 0.0, 0.1, -0.2, 0.25)
    ]
    parts = [compare_paired(*task) for task in tasks]
    gaps = [
        (task[0] - task[1], np.arange(200) + 1000 * place)
        for place, task in enumerate(tasks)
    ]
    found = sampled_difference(parts, gaps, value_range=(0, 1))
    oracle = stats.ttest_1samp([part.difference for part in parts], 0.0)
    ends = oracle.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.p_value == pytest.approx(oracle.pvalue)
    fixed = macro_difference(parts, value_range=(0, 1))
    assert (
        found.difference == fixed.difference
        and found.high - found.low > fixed.high - fixed.low
    )
    assert (found.tasks_are, fixed.tasks_are) == ("sample", "fixed")
    scores = [mean_interval(task[0]) for task in tasks]
    mean = sampled_average(scores)
    ends = stats.ttest_1samp(
        [score.value for score in scores], 0.0
    ).confidence_interval(0.95)
    assert (mean.low, mean.high) == pytest.approx((ends.low, ends.high))


def test_it_is_never_surer_of_tasks_like_these_than_of_these() -> None:
    task = (np.random.default_rng(2).random((2, 100)) < [[0.6], [0.5]]).astype(float)
    parts = [compare_paired(*task)] * 3
    gaps = [(task[0] - task[1], np.arange(100) + 1000 * place) for place in range(3)]
    found = sampled_difference(parts, gaps)
    fixed = macro_difference(parts)
    assert (found.low, found.high, found.p_value) == (
        fixed.low,
        fixed.high,
        fixed.p_value,
    )
    scores = [mean_interval(task[0])] * 3
    assert sampled_average(scores).low == macro_average(scores).low
    with pytest.raises(ValueError, match="at least 3"):
        sampled_difference(parts[:2], gaps[:2])


def test_the_covariance_of_tasks_that_share_items_is_that_of_their_means() -> None:
    rng = np.random.default_rng(3)
    common = rng.normal(0, 1, 300)
    values = [common + rng.normal(0, 1, 300) for _ in range(4)]
    codes = np.arange(300)
    found, freedom = shared_covariance([(one, codes) for one in values])
    matrix = np.cov(values) / 300
    assert found == pytest.approx(matrix[~np.eye(4, dtype=bool)].mean(), rel=0.01)
    assert freedom == 299
    apart = [(one, codes + 1000 * place) for place, one in enumerate(values)]
    assert shared_covariance(apart)[0] == 0.0
    order = rng.permutation(300)  # codes tell what belongs together, not places
    assert shared_covariance([(values[0], codes), (values[1][order], codes[order])])[
        0
    ] == pytest.approx(np.cov(values[:2])[0, 1] / 300, rel=0.01)


@pytest.mark.parametrize("shared", [False, True])
def test_all_pairs_at_once_are_the_single_ones_and_wider(shared: bool) -> None:
    rng = np.random.default_rng(4)
    rates = rng.uniform(0.3, 0.7, (6, 3))
    ease = rng.random(150)
    tasks = [
        ((np.where(rng.random((3, 150)) < 0.7 * shared, ease, rng.random((3, 150))) < rate[:, None]).astype(float),
         np.arange(150) + (0 if shared else 1000 * place))
        for place, rate in enumerate(rates)
    ]  # fmt: skip
    found = all_sampled_differences(tasks)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        parts = [compare_paired(rows[a], rows[b]) for rows, _ in tasks]
        one = sampled_difference(
            parts,
            [(rows[a] - rows[b], codes) for rows, codes in tasks],
            value_range=(0, 1),
        )
        assert found.difference[a, b] == pytest.approx(one.difference)
        assert found.p_value[a, b] == pytest.approx(one.p_value, rel=1e-3)
        assert found.low[a, b] < one.low and found.high[a, b] > one.high
