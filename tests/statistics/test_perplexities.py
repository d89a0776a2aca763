"""Perplexity and bits per byte: arithmetic, the ratio's standard error, and coverage."""

import math

import numpy as np
import pytest
from scipy import stats

from evalwright.statistics import bits_per_byte, perplexity


def _documents(n: int, seed: int, clusters: int | None = None) -> tuple[np.ndarray, np.ndarray]:
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
    bits, byte = bits_per_byte(likelihoods, counts), perplexity(likelihoods, counts)
    assert bits.value == pytest.approx(-likelihoods.sum() / counts.sum() / math.log(2))
    for name in ("value", "low", "high"):
        assert getattr(byte, name) == pytest.approx(2 ** getattr(bits, name))


@pytest.mark.parametrize("clustered", [False, True])
def test_standard_error_is_that_of_the_bootstrap(clustered: bool) -> None:
    n, groups = 300, 30
    likelihoods, counts = _documents(n, 2, groups if clustered else None)
    ids = np.arange(n) % groups if clustered else np.arange(n)
    found = bits_per_byte(likelihoods, counts, clusters=ids)
    sums, totals = np.bincount(ids, weights=likelihoods), np.bincount(ids, weights=counts)
    drawn = np.random.default_rng(3).integers(0, len(sums), (8000, len(sums)))
    bootstrap = -(sums[drawn].sum(axis=1) / totals[drawn].sum(axis=1)) / math.log(2)
    assert found.standard_error == pytest.approx(bootstrap.std(), rel=0.06)
    assert found.n_clusters == (groups if clustered else None)
    critical = stats.t.ppf(0.975, len(sums) - 1)
    # Lengths differ a little, so there are a few degrees of freedom less.
    assert found.standard_error is not None
    assert critical <= (found.high - found.value) / found.standard_error <= 1.01 * critical


def test_failed_documents_are_counted_not_guessed() -> None:
    found = perplexity([-10.0, math.nan, -12.0], [4, 4, 5], n_failed=2)
    assert (found.n, found.n_failed, found.bounds) == (2, 3, None)
    assert found.value == pytest.approx(math.exp(22 / 9))


@pytest.mark.parametrize(
    ("likelihoods", "counts", "value", "method"),
    [
        ([], [], math.nan, "no interval: nothing was scored"),
        ([-4.0], [2], math.exp(2), "no interval: one document"),
        ([-4.0, -8.0], [2, 4], math.exp(2), "no interval: 2 documents alike, range not known"),
        ([-4.0, -math.inf], [2, 4], math.inf, "no interval: a document has probability 0"),
        ([-9e5, -1e5], [1, 1], math.inf, "delta method, t"),
    ],
)
def test_edges(likelihoods: list[float], counts: list[int], value: float, method: str) -> None:
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
def test_bad_arrays_are_refused(likelihoods: object, counts: object, message: str) -> None:
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


def test_a_few_unequal_clusters_are_not_certain() -> None:
    """One of 15 clusters has half of the text; without its leverage and with 14 degrees of freedom 22% of the intervals miss."""
    rng = np.random.default_rng(4)
    ids, missed = np.repeat(np.arange(15), [3] * 14 + [42]), 0
    for _ in range(300):
        lengths = rng.integers(5, 30, len(ids))
        rate = 2 + 0.5 * rng.normal(size=15)[ids] + 0.3 * rng.normal(size=len(ids))
        found = perplexity(-np.maximum(rate, 0) * lengths, lengths, clusters=ids)
        missed += not found.low <= math.exp(2) <= found.high
    assert missed <= 24
