"""Paired comparisons against statsmodels and scipy, and by simulation of level, coverage and
power.
"""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from evalwright.statistics import PairedComparison, compare_paired, equivalence_paired
from support.clustered import clustered_standard_error
from support.graded_pairs import GradedPair


def _table(
    only_a: int, only_b: int, both: int, neither: int
) -> tuple[list[int], list[int]]:
    a = [1] * only_a + [0] * only_b + [1] * both + [0] * neither
    b = [0] * only_a + [1] * only_b + [1] * both + [0] * neither
    return a, b


def test_binary_items_are_counted() -> None:
    a, b = _table(30, 12, 150, 48)
    found = compare_paired(a, b)
    assert found.discordant == (30, 12)
    assert (found.n, found.n_clusters, found.n_missing) == (240, None, 0)
    assert found.difference == pytest.approx(18 / 240)
    assert found.test == "score test"
    assert found.correlation == pytest.approx(np.corrcoef(a, b)[0, 1])
    assert found.verdict == "better"
    assert compare_paired(a, b, binary=False).discordant is None


@pytest.mark.parametrize("equal", [0.0, 0.5, 0.9])
def test_graded_scores_get_a_skewness_adjusted_t(equal: float) -> None:
    rng = np.random.default_rng(1)
    a = rng.random(50) / 2
    b = a + np.where(rng.random(50) < equal, 0.0, rng.exponential(0.1, 50))
    for value_range, test in (((0.0, 5.0), "skewness-adjusted t"), (None, "t")):
        found = compare_paired(a, b, value_range=value_range)
        by_hand = GradedPair.of(a - b, skewed=value_range is not None)
        assert found.p_value == pytest.approx(by_hand.p_value(), rel=1e-6)
        assert (found.low, found.high) == pytest.approx(by_hand.interval(), rel=1e-6)
        assert (found.test, found.discordant) == (test, None)
    assert found.n_differing == np.count_nonzero(a - b)
    assert found.degrees_of_freedom == pytest.approx(by_hand.freedom)
    within = compare_paired(a, np.minimum(b, 1.0))
    assert within.test == "skewness-adjusted t"


def test_normal_differences_get_students_t() -> None:
    rng = np.random.default_rng(2)
    widths = []
    for _ in range(200):
        d = rng.normal(0.05, 0.1, 30)
        found = compare_paired(d, 0 * d, value_range=None)
        interval = stats.ttest_1samp(d, 0).confidence_interval()
        widths.append((found.high - found.low) / (interval.high - interval.low))
    assert np.mean(widths) == pytest.approx(1.0, abs=0.02)


def test_clusters_get_their_own_spread() -> None:
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(20), 6)
    a, b = rng.integers(0, 2, (2, 120))
    found = compare_paired(a, b, clusters=clusters, value_range=None)
    se, df = clustered_standard_error(a - b, clusters)
    d = a - b
    sums = np.bincount(clusters, d - d.mean())
    differing = int(np.count_nonzero(np.bincount(clusters, np.abs(d))))
    by_hand = GradedPair.of(
        d, error=se, freedom=df, units=sums, differing=differing, skewed=False
    )
    assert found.p_value == pytest.approx(by_hand.p_value())
    assert (found.low, found.high) == pytest.approx(by_hand.interval(), rel=1e-6)
    assert found.standard_error == pytest.approx(se)
    assert (found.test, found.n_clusters) == ("clustered t", 20)
    assert found.effective_units == pytest.approx(20)
    assert found.discordant == (int((a > b).sum()), int((b > a).sum()))
    assert compare_paired(a, b, clusters=clusters).standard_error == pytest.approx(se)


def test_draws_are_averaged_and_may_differ_in_number() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, (60, 4)).astype(float)
    b = rng.integers(0, 2, (60, 2)).astype(float)
    found = compare_paired(a, b)
    assert found.n == 60
    assert compare_paired(a, b, value_range=None).p_value == pytest.approx(
        GradedPair.of(a.mean(axis=1) - b.mean(axis=1), skewed=False).p_value()
    )
    copied = compare_paired(np.repeat(a, 3, axis=1), b)
    assert (copied.low, copied.high) == pytest.approx((found.low, found.high))


def test_items_without_both_scores_are_left_out_and_counted() -> None:
    nan = math.nan
    found = compare_paired([1, nan, 0, 1], [0, 1, nan, 1], clusters=[1, 1, 2, 3])
    assert (found.n, found.n_missing, found.mean_a, found.mean_b) == (2, 2, 1.0, 0.5)
    nothing = compare_paired([nan], [1.0])
    assert (nothing.n, nothing.verdict, nothing.test) == (
        0,
        "no difference seen",
        "none: no item scored in both",
    )
    assert (
        json.loads(json.dumps(nothing.as_dict(), allow_nan=False))["difference"] is None
    )


@pytest.mark.parametrize("clusters", [None, np.repeat(np.arange(20), 5)])
@pytest.mark.parametrize("shift", [0.0, 0.25])
def test_equal_differences_are_no_certainty(clusters: object, shift: float) -> None:
    a = np.tile([0.5, 0.25, 0.75, 0.5], 25)
    found = compare_paired(a + shift, a, clusters=clusters)  # type: ignore[arg-type]
    assert found.low < found.difference < found.high
    assert found.smallest_visible_difference > (0.005 if shift else 0.02)
    assert (found.standard_error is None) == (shift == 0)
    assert (found.p_value == 1.0) == (shift == 0)


@pytest.mark.parametrize(("n", "step"), [(5, 0.1), (8, 0.1), (20, 0.1), (50, 0.02)])
@pytest.mark.parametrize("value_range", [(0.0, 1.0), None])
def test_nearly_equal_differences_are_read_as_equal_ones(
    n: int, step: float, value_range: tuple[float, float] | None
) -> None:
    b = np.full(n, 0.5)
    comparisons = []
    for off in (0.0, 1e-9, 1e-4, 0.1 * step):
        a = b + step
        a[0] += off
        comparisons.append(compare_paired(a, b, value_range=value_range))
    equal = comparisons[0]
    assert equal.verdict == ("better" if n > 5 else "no difference seen")
    for comparison in comparisons:
        # No more than a sign test shows, and no less.
        assert comparison.p_value == pytest.approx(2 * 0.5**n)
        assert (comparison.low, comparison.high) == pytest.approx(
            (equal.low, equal.high), abs=0.05 * step
        )
        hidden = step * (1 - 0.025 ** (1 / n))
        assert (comparison.high - comparison.low) / 2 > 0.5 * hidden


def test_equal_differences_at_a_level_that_their_number_does_not_reach() -> None:
    a = np.full(20, 0.6)
    b = np.full(20, 0.5)
    assert compare_paired(a, b, level=1 - 1.8e-6).verdict == "no difference seen"
    assert compare_paired(a, b, level=1 - 2.0e-6).verdict == "better"
    below_zero = compare_paired(a, b, level=1 - 1e-6).low
    assert below_zero < 0
    assert equivalence_paired(
        a, b, margin=(below_zero, 1.0), alpha=0.5e-6
    ).p_least == pytest.approx(0.5e-6)


def test_rounding_is_no_spread() -> None:
    # Means of three draws: all differences are alike but for their last bits.
    a = np.tile([0.3, 0.7, 0.3], (60, 1))
    b = np.tile([0.7, 0.7, 1.0], (60, 1))
    found = compare_paired(a, b)
    plain = compare_paired(np.full(64, 0.25), np.full(64, 0.625))
    assert (
        0 < found.p_value < 0.01
        and 0.5 < (found.high - found.low) / (plain.high - plain.low) < 2
    )
    assert found.smallest_visible_difference > found.high - found.difference > 0.01


@pytest.mark.parametrize("apart", [0.001, 0.15, 0.5])
@pytest.mark.parametrize("n", [20, 100])
def test_the_smallest_visible_difference_fits_the_interval_however_few_items_differ(
    n: int, apart: float
) -> None:
    multiples = []
    for n_differing in range(1, 13):
        b = np.full(n, 0.5)
        a = b.copy()
        a[:n_differing] -= apart
        comparison = compare_paired(a, b)
        half_width = (comparison.high - comparison.low) / 2
        multiples.append(comparison.smallest_visible_difference / half_width)
    assert all(1 <= multiple < 1.5 for multiple in multiples)
    assert all(abs(after - before) < 0.15 for before, after in pairwise(multiples))


def test_identical_binary_answers_could_have_hidden_a_difference() -> None:
    found = compare_paired([1] * 60 + [0] * 40, [1] * 60 + [0] * 40)
    assert (found.p_value, found.difference) == (1.0, 0.0)
    assert found.smallest_visible_difference == pytest.approx(0.08, abs=0.01)
    assert compare_paired([1, 1, 0], [1, 0, 0]).smallest_visible_difference > 0.95


def test_too_few_units() -> None:
    one = compare_paired([0.5], [0.25])
    assert (one.low, one.high, one.smallest_visible_difference) == (-1.0, 1.0, 1.0)
    assert math.isnan(one.p_value)
    cluster = compare_paired([1, 0, 1], [0, 0, 0], clusters=[2, 2, 2])
    assert (cluster.low, cluster.high, cluster.test) == (-1.0, 1.0, "none: one cluster")
    unknown = compare_paired([7.0, 8.0], [7.0, 8.0], value_range=None)
    assert math.isnan(unknown.low)
    assert math.isnan(unknown.smallest_visible_difference)
    assert unknown.verdict == "no difference seen"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"a": [1, 0], "b": [1]}, "same items"),
        ({"a": [0.5], "b": [1], "binary": True}, "all 0 or 1"),
        ({"a": [3.0], "b": [1]}, "value_range"),
        ({"a": [1], "b": [1], "power": 1.0}, "power"),
        ({"a": [1], "b": [1], "clusters": [1, 2]}, "one id for each"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_paired(**arguments)  # type: ignore[arg-type]


# ---- invariants ----------------------------------------------------------------------------

SIDE = hnp.arrays(
    np.float64,
    st.shared(st.integers(1, 40), key="n"),
    elements=st.floats(0, 1, width=16),
)
BINARY = hnp.arrays(
    np.int64, st.shared(st.integers(1, 40), key="n"), elements=st.integers(0, 1)
)


@given(a=SIDE | BINARY, b=SIDE | BINARY, data=st.data())
def test_swap_permutation_and_containment(
    a: np.ndarray, b: np.ndarray, data: st.DataObject
) -> None:
    ids = data.draw(
        st.none() | hnp.arrays(np.int64, len(a), elements=st.integers(0, 6))
    )
    found = compare_paired(a, b, clusters=ids)
    swapped = compare_paired(b, a, clusters=ids)
    assert -1 <= found.low <= found.difference <= found.high <= 1
    assert found.high > found.low
    assert 0 < found.smallest_visible_difference <= 1
    _agree(found, swapped, sign=-1)
    assert swapped.verdict == {"better": "worse", "worse": "better"}.get(
        found.verdict, found.verdict
    )
    order = data.draw(st.permutations(range(len(a))))
    _agree(
        found,
        compare_paired(
            a[order], b[order], clusters=None if ids is None else ids[order]
        ),
        sign=1,
    )


def _agree(x: PairedComparison, y: PairedComparison, sign: int) -> None:
    low, high = (y.low, y.high) if sign > 0 else (-y.high, -y.low)
    assert (x.difference, x.low, x.high) == pytest.approx(
        (sign * y.difference, low, high), rel=1e-6, abs=1e-9
    )
    assert x.p_value == pytest.approx(y.p_value, rel=1e-6, abs=1e-9, nan_ok=True)
    assert x.smallest_visible_difference == pytest.approx(
        y.smallest_visible_difference, rel=1e-6
    )
    assert x.test == y.test


# ---- simulation ----------------------------------------------------------------------------


def _simulate(
    shift: float, n: int, runs: int, groups: int | None, seed: int
) -> list[PairedComparison]:
    """Right-or-wrong answers to items of shared difficulty; `shift` is the true difference of a
    to b.
    """
    rng = np.random.default_rng(seed)
    ids = None if groups is None else np.arange(n) % groups
    found = []
    for _ in range(runs):
        easy = rng.beta(2, 2, n) * (1 - 2 * abs(shift)) + abs(shift)
        lean = (
            0.0
            if ids is None
            else (rng.normal(0, 0.15, groups)[ids] * easy * (1 - easy))
        )
        a = rng.random(n) < np.clip(easy + shift / 2 + lean, 0, 1)
        b = rng.random(n) < np.clip(easy - shift / 2 - lean, 0, 1)
        found.append(compare_paired(a.astype(int), b.astype(int), clusters=ids))
    return found


@pytest.mark.parametrize("groups", [None, 40])
def test_the_smallest_visible_difference_is_seen_with_the_stated_power(
    groups: int | None,
) -> None:
    visible = float(
        np.median(
            [
                c.smallest_visible_difference
                for c in _simulate(0.0, 400, 30, groups, seed=1)
            ]
        )
    )
    seen = np.mean(
        [c.verdict == "better" for c in _simulate(visible, 400, 300, groups, seed=2)]
    )
    assert 0.74 <= seen <= 0.87


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.2])
def test_equivalence_is_two_one_sided_tests(shift: float) -> None:
    rng = np.random.default_rng(1)
    a = rng.random(60) * 0.7
    b = a + rng.normal(0.05, 0.05, 60) * 0.5 + shift * 0.5
    found = equivalence_paired(a, b, margin=(-0.06, 0.04), value_range=None)
    by_hand = GradedPair.of(a - b, skewed=False)
    p_least = by_hand.tail(-0.06)
    p_most = by_hand.tail(0.04, above=False)
    assert (found.p_least, found.p_most) == pytest.approx((p_least, p_most), rel=1e-6)
    assert found.equivalent == (max(p_least, p_most) < 0.05)
    p, _, _ = ttost_paired(a, b, -0.06, 0.04)
    assert found.equivalent == (p < 0.05)


def test_clusters_and_the_interval_agree() -> None:
    rng = np.random.default_rng(2)
    ids = np.repeat(np.arange(25), 8)
    a, b = (rng.random((2, 200)) < 0.7).astype(float)
    found = equivalence_paired(a, b, margin=0.15, clusters=ids, alpha=0.1)
    interval = compare_paired(a, b, clusters=ids, level=0.8)
    assert (found.low, found.high, found.level) == pytest.approx(
        (interval.low, interval.high, 0.8)
    )
    assert found.method == "TOST, clustered score test"
    assert found.equivalent == (found.p_value < 0.1)


def test_the_p_value_is_the_rate_at_which_the_interval_fits() -> None:
    a = np.array([1] * 130 + [0] * 70)
    b = np.array([1] * 120 + [0] * 10 + [1] * 12 + [0] * 58)
    found = equivalence_paired(a, b, margin=0.05)
    interval = compare_paired(a, b, level=0.9)
    assert (found.low, found.high) == (interval.low, interval.high)
    fits = []
    for rate in found.p_value + np.array([-0.1, -0.001, 0.001, 0.1]) * min(
        1.0, found.p_value * 5
    ):
        one = compare_paired(a, b, level=1 - 2 * rate)
        fits.append(one.low >= -0.05 and one.high <= 0.05)
    assert fits == [False, False, True, True]
    assert found.equivalent == (found.p_value < 0.05)
    assert equivalence_paired(a, b, margin=0.02).p_value > found.p_value


def test_equal_answers_are_equivalent_only_as_far_as_their_number_goes() -> None:
    few = np.full(20, 0.5)
    many = np.full(400, 0.5)
    assert not equivalence_paired(few, few, margin=0.05).equivalent
    found = equivalence_paired(many, many, margin=0.05)
    assert found.equivalent
    # 400 items that tie exclude that more than 5% differ, at an error rate of (1 - 0.05)^400 and a
    # little more.
    assert 0.95**400 < found.p_value < 1e-4


def test_nothing_to_test() -> None:
    found = equivalence_paired([math.nan], [1.0], margin=0.1)
    assert not found.equivalent
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["p_value"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"margin": 0.0}, "margin"),
        ({"margin": (0.2, 0.1)}, "margin"),
        ({"margin": 0.1, "alpha": 0.6}, "below 0.5"),
        ({"margin": 0.1, "alpha": 0.0}, "alpha"),
    ],
)
def test_bad_margins_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        equivalence_paired([1, 0], [1, 1], **arguments)  # type: ignore[arg-type]


def test_false_equivalence_is_rare_at_the_margin() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(0.05, 0.1, (1500, 40))
    found = [
        equivalence_paired(row, np.zeros(40), margin=0.05, value_range=None).equivalent
        for row in a
    ]
    assert 0.03 <= np.mean(found) <= 0.065
