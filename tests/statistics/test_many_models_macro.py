"""All pairs of models over several tasks, against the pair-by-pair average and a simulation of
false alarms.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.statistics import compare_paired, macro_difference
from evalwright.statistics.many_models import all_differences
from evalwright.statistics.many_models_macro import Part, all_macro_differences
from evalwright.statistics.shared_units import unit_sums


def tasks(seed: int = 0) -> list[Part]:
    """Right or wrong with holes, right or wrong, graded in clusters, and one on which a pair
    shows no spread.
    """
    rng = np.random.default_rng(seed)
    holes = (rng.random((4, 80)) < 0.5 + 0.1 * np.arange(4)[:, None]).astype(float)
    holes[0, :5] = holes[2, 40:] = np.nan
    return [
        (holes, None),
        ((rng.random((4, 50)) < 0.6).astype(float), None),
        (rng.random((4, 60)), np.arange(60) // 5),
        (np.repeat([[1.0], [0.0], [1.0], [1.0]], 12, axis=1), None),
        (np.repeat([[0.25], [0.5], [0.25], [0.25]], 12, axis=1), np.arange(12) // 2),
    ]


@pytest.mark.parametrize("weights", [None, [1, 2, 3, 4, 5]])
def test_every_pair_is_the_average_of_its_paired_comparisons(
    weights: list[float] | None,
) -> None:
    parts = tasks()  # the third and the last task share six units
    found = all_macro_differences(parts, weights=weights)
    for i in range(4):
        for j in range(4):
            if i == j:
                assert math.isnan(found.low[i, j])
                continue
            pairs = [
                (np.asarray(rows)[i], np.asarray(rows)[j], ids) for rows, ids in parts
            ]
            alone = macro_difference(
                [compare_paired(a, b, clusters=ids) for a, b, ids in pairs],
                weights=weights,
                units=[
                    None if ids is None else unit_sums(a - b, ids)
                    for a, b, ids in pairs
                ],
                value_range=(0.0, 1.0),
            )
            assert found.difference[i, j] == pytest.approx(alone.difference)
            assert found.standard_error[i, j] == pytest.approx(
                alone.standard_error, rel=1e-9
            )
            assert found.n[i, j] == alone.n
            assert found.p_value[i, j] == pytest.approx(alone.p_value, rel=1e-6)
            assert found.low[i, j] <= alone.low < alone.high <= found.high[i, j]
            assert found.low[i, j] == pytest.approx(-found.high[j, i])
    assert ((found.low > 0) | (found.high < 0))[found.differs].all()
    assert ((found.p_adjusted >= found.p_value) | np.isnan(found.p_value)).all()


def test_one_task_has_the_verdicts_of_all_differences() -> None:
    rng = np.random.default_rng(4)
    rows = (rng.random((6, 400)) < np.linspace(0.4, 0.7, 6)[:, None]).astype(float)
    macro = all_macro_differences([(rows, None)])
    alone = all_differences(rows)
    assert (macro.differs == alone.differs).all() and macro.differs.any()
    assert macro.difference == pytest.approx(alone.difference)


def test_false_alarms_among_equal_models_are_rare() -> None:
    """Six equal models, three small tasks, shared difficulty, holes: 5% of boards at most may
    find anything.
    """
    wrong = 0
    boards = 100
    for seed in range(boards):
        rng = np.random.default_rng(seed)
        parts: list[Part] = []
        for items in (25, 40, 60):
            ease = rng.random(items)
            rows = (rng.random((6, items)) < ease).astype(float)
            rows[rng.random((6, items)) < 0.05] = np.nan
            parts.append((rows, None))
        found = all_macro_differences(parts)
        wrong += bool((found.low > 0).any() or (found.high < 0).any())
    assert wrong <= 0.05 * boards + 2 * math.sqrt(0.05 * 0.95 * boards)


def test_tasks_that_share_all_units_are_one_sample() -> None:
    """Seven copies of one task: every interval is that of the task alone."""
    rng = np.random.default_rng(6)
    rows = (rng.random((5, 90)) < 0.6).astype(float)
    rows[0, :7] = np.nan
    units = np.arange(90) // 3
    one, seven = (all_macro_differences([(rows, units)] * copies) for copies in (1, 7))
    apart = all_macro_differences([(rows, units + 100 * copy) for copy in range(7)])
    assert seven.standard_error == pytest.approx(one.standard_error)
    assert seven.low == pytest.approx(one.low, nan_ok=True)
    # The interval of one task is a little shorter because the range of a score ends.
    np.testing.assert_allclose(
        apart.standard_error, one.standard_error / math.sqrt(7), rtol=0.03
    )


def test_a_pair_without_common_items_on_one_task_has_no_answer() -> None:
    rows = np.array(
        [[1.0, 0, 1, np.nan], [0.0, 0, 1, np.nan], [np.nan, np.nan, np.nan, 1]]
    )
    found = all_macro_differences(
        [(rows, None), (np.ones((3, 4)), None)], missing=[False, False]
    )
    assert not math.isnan(found.low[0, 1])
    assert math.isnan(found.low[0, 2]) and math.isnan(found.p_adjusted[1, 2])


def test_errors() -> None:
    with pytest.raises(ValueError, match="at least one task"):
        all_macro_differences([])
    with pytest.raises(ValueError, match="same models"):
        all_macro_differences([(np.ones((2, 3)), None), (np.ones((3, 3)), None)])
    with pytest.raises(ValueError, match="outside value_range"):
        all_macro_differences([(np.full((2, 3), 7.0), None)])
