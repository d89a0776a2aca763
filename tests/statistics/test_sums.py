"""Ratios of sums (attempts and F, perplexities, pooled shares): equal to the definitions written
out, inside the range, and with intervals that cover.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalwright.statistics import (
    attempted_accuracy,
    attempted_f,
    bits_per_byte,
    perplexity,
    pooled_f1,
    pooled_share,
    wilson,
)


def outcomes(n: int, right: int, attempted: int) -> tuple[np.ndarray, np.ndarray]:
    return (np.arange(n) < right).astype(float), (np.arange(n) < attempted).astype(
        float
    )


@given(
    st.integers(2, 60).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
    )
)
def test_f_is_the_harmonic_mean_of_both_shares(found: tuple[int, int, int]) -> None:
    n, one, other = found
    right = min(one, other)
    attempted = max(one, other)
    f = attempted_f(*outcomes(n, right, attempted))
    correct = right / n
    precision = right / attempted if attempted else 0.0
    wanted = 2 * correct * precision / (correct + precision) if right else 0.0
    assert f.value == pytest.approx(wanted)
    assert 0.0 <= f.low <= f.value <= f.high <= 1.0
    assert f.high > f.low
    given_attempted = attempted_accuracy(*outcomes(n, right, attempted))
    assert given_attempted.n == attempted
    if attempted > 1:
        assert given_attempted.value == pytest.approx(precision)
        assert (given_attempted.low, given_attempted.high) == pytest.approx(
            wilson(right, attempted)
        )


def test_what_failed_is_bounded_by_all_wrong_and_all_right() -> None:
    right, attempted = outcomes(10, 4, 8)
    f = attempted_f(right, attempted, n_missing=5)
    assert f.bounds == pytest.approx(
        (
            max(0.0, 2 * 4 / (15 + 13) - (f.value - f.low)),
            min(1.0, 2 * 9 / (15 + 13) + f.high - f.value),
        )
    )
    assert (f.n, f.n_missing) == (10, 5)
    share = attempted_accuracy(right, attempted, n_missing=5)
    assert share.bounds == pytest.approx((wilson(4, 13)[0], wilson(9, 13)[1]))


def test_draws_are_no_items() -> None:
    right, attempted = outcomes(40, 20, 30)
    once = attempted_f(right, attempted)
    twice = attempted_f(*(np.c_[v, v] for v in (right, attempted)))
    assert (once.value, once.low, once.high, once.n) == pytest.approx(
        (twice.value, twice.low, twice.high, twice.n)
    )
    share = attempted_accuracy(np.c_[right, right], np.c_[attempted, attempted])
    assert (share.value, share.n) == (20 / 30, 30)
    mixed = attempted_accuracy([[1.0, np.nan], [0.0, 1.0]], [[1.0, np.nan], [0.0, 1.0]])
    assert (mixed.value, mixed.n) == (1.0, 2)


def test_clusters_widen_the_interval_and_nothing_is_no_number() -> None:
    right = np.tile([1.0, 1.0, 0.0, 0.0], 20)
    attempted = np.tile([1.0, 1.0, 1.0, 0.0], 20)
    order = np.argsort(-right - attempted, kind="stable")
    clusters = np.arange(80) // 4
    alone = attempted_f(right, attempted)
    together = attempted_f(right[order], attempted[order], clusters=clusters)
    assert together.value == alone.value
    assert together.high - together.low > 1.3 * (alone.high - alone.low)
    assert together.n_clusters == 20
    empty = attempted_f([], [])
    assert np.isnan(empty.value) and empty.n == 0
    assert np.isnan(attempted_accuracy([0.0, 0.0], [0.0, 0.0]).value)


@pytest.mark.parametrize(
    ("right", "attempted", "words"),
    [
        ([1.0], [0.0], "cannot be right"),
        ([2.0], [2.0], "between 0 and 1"),
        ([1.0, 0.0], [1.0], "one shape"),
        ([1.0], [np.nan], "the same places"),
    ],
)
def test_what_cannot_be_is_refused(
    right: list[float], attempted: list[float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        attempted_f(right, attempted)


@pytest.mark.parametrize(
    ("correct", "wrong", "n"),
    [(0.4, 0.3, 60), (0.1, 0.2, 40), (0.85, 0.1, 60), (0.03, 0.9, 80)],
)
def test_the_interval_of_f_covers(correct: float, wrong: float, n: int) -> None:
    rng = np.random.default_rng(7)
    true = 2 * correct / (1 + correct + wrong)
    hits = 0
    times = 1200
    for kinds in rng.choice(
        3, size=(times, n), p=[correct, wrong, 1 - correct - wrong]
    ):
        found = attempted_f((kinds == 0).astype(float), (kinds < 2).astype(float))
        hits += found.low <= true <= found.high
    assert hits / times > 0.93


def test_a_few_unequal_clusters_are_not_certain() -> None:
    """One of 15 clusters has half of the questions; with 14 degrees of freedom 18% of the
    intervals of F miss.
    """
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(15), [3] * 14 + [42])
    missed = 0
    for _ in range(300):
        own = (
            rng.normal(size=(2, 15))[:, ids] * 0.63
            + rng.normal(size=(2, len(ids))) * 0.775
        )
        attempted = (own[0] < 0.842).astype(float)
        found = attempted_f(attempted * (own[1] < 0.2533), attempted, clusters=ids)
        missed += not found.low <= 2 * 0.48 / 1.8 <= found.high
    assert missed <= 24


def test_the_value_is_the_ratio_of_sums() -> None:
    found = pooled_share([1, 0, 3, 0], [1, 2, 4, 0], n_missing=2)
    assert found.value == pytest.approx(4 / 7)
    assert 0 <= found.low < found.value < found.high <= 1
    assert (found.n, found.n_missing, found.n_clusters) == (4, 2, None)


def test_f1_by_hand() -> None:
    supporting = [1, 0, 2]
    cited = [2, 1, 2]
    supported = [1, 0, 1]
    claims = [1, 1, 2]
    precision = 3 / 5
    recall = 2 / 4
    found = pooled_f1(supporting, cited, supported, claims)
    assert found.value == pytest.approx(2 * precision * recall / (precision + recall))
    assert pooled_f1([0, 0], [0, 0], [0, 0], [1, 1]).value == 0.0, (
        "claims without a citation"
    )


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    quality = np.repeat(rng.uniform(0.2, 0.9, 30), 8)
    total = rng.integers(1, 4, 240)
    right = rng.binomial(total, quality)
    alone = pooled_share(right, total)
    together = pooled_share(right, total, clusters=np.repeat(np.arange(30), 8))
    assert together.value == alone.value
    assert together.n_clusters == 30
    assert together.high - together.low > 1.3 * (alone.high - alone.low)


def test_no_certainty_from_likeness_or_little() -> None:
    alike = pooled_share([2, 2, 2, 2], [2, 2, 2, 2])
    assert alike.value == alike.high == 1.0
    assert alike.low < 0.5
    assert alike.standard_error is None
    # Items that hold nothing add no confidence.
    assert pooled_share([2] * 4 + [0] * 96, [2] * 4 + [0] * 96).low == alike.low
    one = pooled_share([1], [2])
    assert (one.low, one.high) == (0.0, 1.0)
    nothing = pooled_share([0, 0], [0, 0])
    assert math.isnan(nothing.value)
    assert "nothing to share" in nothing.method


@pytest.mark.parametrize(
    ("right", "total"),
    [([2], [1]), ([1, 1], [1]), ([-1], [1]), ([math.nan], [1]), ([[1]], [[1]])],
)
def test_counts_that_do_not_fit_are_refused(right: object, total: object) -> None:
    with pytest.raises(ValueError, match="must"):
        pooled_share(right, total)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_interval_covers(share: float) -> None:
    """Clusters of four answers with 0 to 3 citations each, of a quality of their own: 95%
    intervals hold the truth about as often.
    """
    rng = np.random.default_rng(7)
    clusters = np.repeat(np.arange(25), 4)
    spread = 6.0
    hits = 0
    times = 300
    for _ in range(times):
        quality = np.repeat(rng.beta(share * spread, (1 - share) * spread, 25), 4)
        total = rng.integers(0, 4, 100)
        found = pooled_share(rng.binomial(total, quality), total, clusters=clusters)
        hits += found.low <= share <= found.high
    assert 0.905 <= hits / times <= 0.99


def _documents(
    n: int, seed: int, clusters: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    counts = rng.integers(20, 400, n)
    hardness = rng.normal(0, 0.3, clusters or n)[np.arange(n) % (clusters or n)]
    return -counts * (2.0 + hardness + rng.normal(0, 0.2, n)), counts


def test_perplexity_is_of_the_sums() -> None:
    found = perplexity([-10.0, -30.0, -5.0], [4, 10, 6])
    assert found.value == pytest.approx(math.exp(45 / 20))
    assert (found.n, found.bounds, found.method) == (3, None, "delta method, t")
    assert found.low < found.value < found.high


def test_bits_per_byte_and_byte_perplexity_say_the_same() -> None:
    likelihoods, counts = _documents(40, 1)
    bits = bits_per_byte(likelihoods, counts)
    byte = perplexity(likelihoods, counts)
    assert bits.value == pytest.approx(-likelihoods.sum() / counts.sum() / math.log(2))
    for name in ("value", "low", "high"):
        assert getattr(byte, name) == pytest.approx(2 ** getattr(bits, name))


@pytest.mark.parametrize("clustered", [False, True])
def test_standard_error_is_that_of_the_bootstrap(clustered: bool) -> None:
    n = 300
    groups = 30
    likelihoods, counts = _documents(n, 2, groups if clustered else None)
    ids = np.arange(n) % groups if clustered else np.arange(n)
    found = bits_per_byte(likelihoods, counts, clusters=ids)
    sums = np.bincount(ids, weights=likelihoods)
    totals = np.bincount(ids, weights=counts)
    drawn = np.random.default_rng(3).integers(0, len(sums), (8000, len(sums)))
    bootstrap = -(sums[drawn].sum(axis=1) / totals[drawn].sum(axis=1)) / math.log(2)
    assert found.standard_error == pytest.approx(bootstrap.std(), rel=0.06)
    assert found.n_clusters == (groups if clustered else None)
    critical = stats.t.ppf(0.975, len(sums) - 1)
    # Lengths differ a little, so there are a few degrees of freedom less.
    assert found.standard_error is not None
    assert (
        critical <= (found.high - found.value) / found.standard_error <= 1.01 * critical
    )


def test_failed_documents_are_counted_not_guessed() -> None:
    found = perplexity([-10.0, math.nan, -12.0], [4, 4, 5], n_missing=2)
    assert (found.n, found.n_missing, found.bounds) == (2, 3, None)
    assert found.value == pytest.approx(math.exp(22 / 9))


@pytest.mark.parametrize(
    ("likelihoods", "counts", "value", "method"),
    [
        ([], [], math.nan, "no interval: nothing was scored"),
        ([-4.0], [2], math.exp(2), "no interval: one document"),
        (
            [-4.0, -8.0],
            [2, 4],
            math.exp(2),
            "no interval: 2 documents alike, range not known",
        ),
        (
            [-4.0, -math.inf],
            [2, 4],
            math.inf,
            "no interval: a document has probability 0",
        ),
        ([-9e5, -1e5], [1, 1], math.inf, "delta method, t"),
    ],
)
def test_edges(
    likelihoods: list[float], counts: list[int], value: float, method: str
) -> None:
    found = perplexity(likelihoods, counts)
    assert found.value == pytest.approx(value, nan_ok=True)
    assert found.method == method
    if "no interval" in method:
        assert math.isnan(found.low)
        assert math.isnan(found.high)


@pytest.mark.parametrize(
    ("likelihoods", "counts", "message"),
    [
        ([-1.0], [1, 2], "same length"),
        ([-1.0], [-1], "not negative"),
        ([-1.0], [0], "no tokens"),
        ([[-1.0]], [[1]], "same length"),
    ],
)
def test_bad_arrays_are_refused(
    likelihoods: object, counts: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        perplexity(likelihoods, counts)  # type: ignore[arg-type]


def test_interval_covers() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(1000):
        counts = rng.integers(20, 400, 25)
        losses = counts * rng.gamma(20, 0.1, 25)
        found = perplexity(-losses, counts)
        covered += found.low <= math.exp(2.0) <= found.high
    assert 0.92 <= covered / 1000 <= 0.97


def test_a_few_unequal_clusters_of_documents_are_not_certain() -> None:
    """One of 15 clusters has half of the text; without its leverage and with 14 degrees of
    freedom 22% of the intervals miss.
    """
    rng = np.random.default_rng(4)
    ids = np.repeat(np.arange(15), [3] * 14 + [42])
    missed = 0
    for _ in range(300):
        lengths = rng.integers(5, 30, len(ids))
        rate = 2 + 0.5 * rng.normal(size=15)[ids] + 0.3 * rng.normal(size=len(ids))
        found = perplexity(-np.maximum(rate, 0) * lengths, lengths, clusters=ids)
        missed += not found.low <= math.exp(2) <= found.high
    assert missed <= 24
