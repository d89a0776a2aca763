"""Intervals of a mean: against statsmodels and scipy, by coverage simulation, and by their
invariants.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from evalwright.statistics import mean_interval, wilson
from evalwright.statistics.intervals import unlike_share
from support.bounds import ends
from support.clustered import clustered_standard_error

SCORES = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1, width=32))
BINARY = hnp.arrays(np.int64, st.integers(1, 40), elements=st.integers(0, 1))


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(
    ("k", "n"), [(0, 1), (0, 20), (1, 20), (10, 20), (20, 20), (999, 1000), (7, 300)]
)
def test_wilson_is_that_of_statsmodels(k: int, n: int, level: float) -> None:
    assert wilson(k, n, level) == pytest.approx(
        proportion_confint(k, n, 1 - level, method="wilson"), abs=1e-12
    )


def test_binary_items_get_wilson() -> None:
    found = mean_interval([1, 1, 0, 1, 1, 1, 0, 1])
    assert (found.low, found.high) == pytest.approx(wilson(6, 8))
    assert (found.value, found.n, found.n_clusters, found.method) == (
        0.75,
        8,
        None,
        "Wilson",
    )


def test_graded_items_get_t() -> None:
    values = np.random.default_rng(1).beta(3, 3, 60)
    found = mean_interval(values)
    oracle = stats.t.interval(0.95, 59, values.mean(), stats.sem(values))
    assert (found.low, found.high) == pytest.approx(oracle, rel=1e-9)
    assert found.method == "t"
    assert found.standard_error == pytest.approx(stats.sem(values))


def test_graded_clusters_get_clustered_t() -> None:
    rng = np.random.default_rng(2)
    clusters = np.repeat(np.arange(31), 7)
    values = np.clip(rng.normal(0.5, 0.1, 31)[clusters] + rng.normal(0, 0.1, 217), 0, 1)
    found = mean_interval(values, clusters=clusters)
    se, df = clustered_standard_error(values, clusters)
    oracle = stats.t.interval(0.95, df, values.mean(), se)
    assert (found.low, found.high) == pytest.approx(oracle, rel=1e-9)
    assert (found.method, found.n_clusters) == ("clustered t (G=31)", 31)


def test_binary_clusters_get_wilson_of_the_effective_n() -> None:
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(25), 8)
    values = (rng.random(200) < rng.beta(2, 1, 25)[clusters]).astype(float)
    found = mean_interval(values, clusters=clusters)
    se, df = clustered_standard_error(values, clusters)
    p = values.mean()
    t = stats.t.ppf(0.975, df)
    size = p * (1 - p) / se**2
    assert size < 200
    # The two ends are the roots of (p - x)^2 = t^2 x (1 - x) / n*, solved here as a polynomial.
    roots = np.sort(np.roots([1 + t * t / size, -2 * p - t * t / size, p * p]).real)
    assert (found.low, found.high) == pytest.approx(tuple(roots), rel=1e-9)
    assert found.method == "clustered Wilson (effective n)"


def test_effective_n_is_at_most_n() -> None:
    # one right and one wrong in each: far below binomial variance
    clusters = np.repeat(np.arange(50), 2)
    found = mean_interval(np.tile([0, 1], 50), clusters=clusters)
    low, high = wilson(50, 100)
    assert found.low < low
    assert found.high > high


def test_all_right_in_clusters_is_worth_as_many_items_as_clusters() -> None:
    found = mean_interval(np.ones(300), clusters=np.repeat(np.arange(30), 10))
    t = stats.t.ppf(0.975, 29)
    assert found.high == 1.0
    assert found.low == pytest.approx(30 / (30 + t * t))
    assert found.standard_error is None


@pytest.mark.parametrize(
    ("values", "clusters", "value_range", "low", "high", "method"),
    [
        ([], None, (0.0, 1.0), math.nan, math.nan, "no interval: nothing was scored"),
        ([0.3], None, (0.0, 1.0), 0.0, 1.0, "one item: the whole range"),
        ([1], None, (0.0, 1.0), 0.0, 1.0, "one item: the whole range"),
        ([7.0], None, None, math.nan, math.nan, "no interval: one item"),
        ([1, 0, 1], [4, 4, 4], (0.0, 1.0), 0.0, 1.0, "one cluster: the whole range"),
        (
            [3.0, 3.0],
            None,
            None,
            math.nan,
            math.nan,
            "no interval: 2 items alike, range not known",
        ),
    ],
)
def test_too_little_data_says_so(
    values: list[float],
    clusters: list[int] | None,
    value_range: tuple[float, float] | None,
    low: float,
    high: float,
    method: str,
) -> None:
    found = mean_interval(values, clusters=clusters, value_range=value_range)
    assert (found.low, found.high) == pytest.approx((low, high), nan_ok=True)
    assert found.method == method
    assert found.standard_error is None


def test_equal_graded_scores_are_no_certainty() -> None:
    found = mean_interval(np.full(60, 0.1 + 0.2))
    share = unlike_share(60, 0.975)
    assert (1 - share) ** 59 == pytest.approx(0.025)
    assert (found.low, found.high) == pytest.approx(
        (0.3 * (1 - share), 0.3 + 0.7 * share)
    )
    assert found.method == "rule of three (60 items alike)"
    clustered = mean_interval(np.full(60, 0.3), clusters=np.repeat(np.arange(6), 10))
    assert clustered.high - clustered.low == pytest.approx(unlike_share(6, 0.975))
    assert clustered.method == "rule of three (6 clusters alike)"


def test_t_never_leaves_the_range() -> None:
    found = mean_interval([1.0] * 9 + [0.5])
    plain = stats.t.interval(0.95, 9, 0.95, 0.05)
    assert plain[1] > 1
    assert found.high <= 1
    assert found.low < plain[0]
    assert found.method == "Wilson (effective n)"


def test_other_ranges_are_rescaled() -> None:
    unit = mean_interval([0, 1, 1, 1, 0.5, 0.25], n_missing=2)
    five = mean_interval([1, 5, 5, 5, 3, 2], n_missing=2, value_range=(1.0, 5.0))
    assert five.low == pytest.approx(1 + 4 * unit.low)
    assert five.high == pytest.approx(1 + 4 * unit.high)
    assert unit.bounds is not None
    assert five.bounds == pytest.approx(tuple(1 + 4 * x for x in unit.bounds))


def test_missing_items_count_as_failed() -> None:
    nan = math.nan
    found = mean_interval([[1.0, 1.0], [nan, nan], [0.0, nan]], n_missing=1)
    assert (found.n, found.n_missing, found.value) == (2, 2, 0.5)
    worst, best = (
        mean_interval([[1.0, 1.0], [end, end], [0.0, nan], [end, end]])
        for end in (0.0, 1.0)
    )
    assert found.bounds == pytest.approx(
        (min(found.low, worst.low), max(found.high, best.high))
    )
    assert mean_interval([nan, nan]).bounds == pytest.approx((0.0, 1.0), abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [0.2, 3.0]}, "outside value_range"),
        ({"values": [0.2], "value_range": (1.0, 0.0)}, "least first"),
        ({"values": [0.2], "n_missing": -1}, "n_missing"),
        ({"values": [0.2], "level": 95}, "level"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mean_interval(**arguments)  # type: ignore[arg-type]


# ---- invariants ----------------------------------------------------------------------------


@given(values=SCORES | BINARY, data=st.data())
def test_interval_holds_the_estimate_inside_the_range(
    values: np.ndarray, data: st.DataObject
) -> None:
    ids = data.draw(
        st.none() | hnp.arrays(np.int64, len(values), elements=st.integers(0, 5))
    )
    found = mean_interval(values, clusters=ids)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.high > found.low
    order = data.draw(st.permutations(range(len(values))))
    shuffled = mean_interval(
        values[order], clusters=None if ids is None else ids[order]
    )
    assert (shuffled.low, shuffled.high) == pytest.approx(
        (found.low, found.high), rel=1e-6, abs=1e-9
    )
    assert shuffled.method == found.method


@given(values=BINARY | SCORES, copies=st.integers(2, 5))
def test_copies_of_a_draw_do_not_shrink_the_interval(
    values: np.ndarray, copies: int
) -> None:
    once = mean_interval(values)
    again = mean_interval(np.repeat(values[:, None], copies, axis=1))
    assert again.n == once.n
    assert (again.low, again.high) == pytest.approx(
        (once.low, once.high), rel=1e-6, abs=1e-9
    )


@given(
    values=hnp.arrays(
        np.int64,
        st.tuples(st.integers(2, 20), st.integers(1, 4)),
        elements=st.integers(0, 1),
    )
)
def test_mirrored_scores_mirror_the_interval(values: np.ndarray) -> None:
    found = mean_interval(values)
    mirrored = mean_interval(1 - values)
    assert (mirrored.low, mirrored.high) == pytest.approx(
        (1 - found.high, 1 - found.low), abs=1e-9
    )


def test_a_million_items_in_clusters_take_no_time() -> None:
    rng = np.random.default_rng(5)
    values = rng.random(1_000_000)
    clusters = rng.integers(0, 2**40, 200_000)[rng.integers(0, 200_000, 1_000_000)]
    with ends():
        found = mean_interval(values, clusters=clusters)
    assert found.n == 1_000_000
    assert abs(found.value - 0.5) < 0.002


def test_an_interval_of_a_higher_level_holds_that_of_a_lower() -> None:
    # 95% of these scores is a t interval that ends at 0.9955; 96% would leave the range.
    for scores in (
        [0.0, 1.0, 0.5, 0.5, 0.0, 1.0, 1.0, 1.0],
        [0.9, 1.0, 0.8, 1.0, 0.7],
        [0.0, 0.2, 0.5, 0.1],
    ):
        found = [
            mean_interval(scores, level=level)
            for level in (0.8, 0.9, 0.95, 0.96, 0.97, 0.99, 0.999)
        ]
        for inner, outer in itertools.pairwise(found):
            assert outer.low <= inner.low <= inner.high <= outer.high
        assert len({one.method for one in found}) == 1
