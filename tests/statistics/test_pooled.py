"""Pooled shares: the value by hand, the interval by its coverage, and no certainty from what shows no spread."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.statistics import pooled_f1, pooled_share


def test_the_value_is_the_ratio_of_sums() -> None:
    found = pooled_share([1, 0, 3, 0], [1, 2, 4, 0], n_failed=2)
    assert found.value == pytest.approx(4 / 7)
    assert 0 <= found.low < found.value < found.high <= 1
    assert (found.n, found.n_failed, found.n_clusters) == (4, 2, None)


def test_f1_by_hand() -> None:
    supporting, cited, supported, claims = [1, 0, 2], [2, 1, 2], [1, 0, 1], [1, 1, 2]
    precision, recall = 3 / 5, 2 / 4
    found = pooled_f1(supporting, cited, supported, claims)
    assert found.value == pytest.approx(2 * precision * recall / (precision + recall))
    assert pooled_f1([0, 0], [0, 0], [0, 0], [1, 1]).value == 0.0, "claims without a citation"


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
    ("right", "total"), [([2], [1]), ([1, 1], [1]), ([-1], [1]), ([math.nan], [1]), ([[1]], [[1]])]
)
def test_counts_that_do_not_fit_are_refused(right: object, total: object) -> None:
    with pytest.raises(ValueError, match="must"):
        pooled_share(right, total)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_the_interval_covers(share: float) -> None:
    """Clusters of four answers with 0 to 3 citations each, of a quality of their own: 95% intervals hold the truth about as often."""
    rng = np.random.default_rng(7)
    clusters = np.repeat(np.arange(25), 4)
    spread = 6.0
    hits, times = 0, 300
    for _ in range(times):
        quality = np.repeat(rng.beta(share * spread, (1 - share) * spread, 25), 4)
        total = rng.integers(0, 4, 100)
        found = pooled_share(rng.binomial(total, quality), total, clusters=clusters)
        hits += found.low <= share <= found.high
    assert 0.905 <= hits / times <= 0.99
