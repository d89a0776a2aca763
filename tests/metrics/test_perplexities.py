"""Perplexities over a corpus are ratios of sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.registry import Column, compute

PARTS = {
    "log_likelihood": np.array([-10.0, -30.0, -5.0]),
    "tokens": np.array([5.0, 10.0, 5.0]),
    "words": np.array([4.0, 8.0, 3.0]),
    "bytes": np.array([20.0, 50.0, 20.0]),
}
COLUMN = Column(PARTS["log_likelihood"] / PARTS["tokens"], PARTS, n_missing=1)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("token-perplexity", math.exp(45 / 20)),
        ("word-perplexity", math.exp(45 / 15)),
        ("byte-perplexity", math.exp(45 / 90)),
        ("bits-per-byte", 45 / 90 / math.log(2)),
    ],
)
def test_ratios_of_sums(kind: str, expected: float) -> None:
    found = compute(kind, COLUMN)
    assert found.value == pytest.approx(expected)
    assert found.low < found.value < found.high
    assert (found.n, found.n_missing, found.bounds) == (3, 1, None)


def test_documents_of_one_cluster_are_one_unit() -> None:
    clustered = Column(COLUMN.values, PARTS, clusters=np.array([0, 0, 1]))
    assert compute("bits-per-byte", clustered).n_clusters == 2


def test_scores_without_the_parts_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="'words'"):
        compute("word-perplexity", Column(np.ones(2), {"log_likelihood": np.ones(2)}))
    with pytest.raises(ConfigurationError, match="cannot be computed"):
        compute(
            "byte-perplexity",
            Column(
                np.ones(1),
                {"log_likelihood": np.array([-1.0]), "bytes": np.array([0.0])},
            ),
        )


def test_without_a_count_of_tokens_a_perplexity_per_token_is_empty() -> None:
    parts = {"log_likelihood": np.array([-8.0, -4.0]), "bytes": np.array([4.0, 4.0])}
    column = Column(np.array([-2.0, -1.0]), parts)
    empty = compute("token-perplexity", column)
    assert math.isnan(empty.value)
    assert (empty.n, empty.method) == (
        0,
        "no number: the model does not say how many tokens it scored",
    )
    assert compute("byte-perplexity", column).value == pytest.approx(math.exp(12 / 8))
