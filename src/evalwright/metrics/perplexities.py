"""Perplexities and bits per byte over a whole corpus.

They divide the sum of log-likelihoods by the sum of lengths (never a mean of ratios), and read
the parts that the scorers `perplexity` and `likelihood` record: "log_likelihood" and "tokens",
"words" or "bytes".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from evalwright import statistics
from evalwright.core.errors import ConfigurationError
from evalwright.metrics.registry import Column, Groups, GroupSums, nothing_scored, ratio

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate


def token_perplexity(column: Column, *, level: float = 0.95) -> Estimate:
    """exp(-log-likelihood per token). No number where the model does not report how many it scored.

    It depends on the tokenizer: compare only models that share one.
    """
    if "log_likelihood" in column.parts and "tokens" not in column.parts:
        return nothing_scored(
            column, level, "no number: the model does not say how many tokens it scored"
        )
    return _of_sums(column, statistics.perplexity, "tokens", level)


def word_perplexity(column: Column, *, level: float = 0.95) -> Estimate:
    """exp(-log-likelihood per word), with words as the scorer counts them; for any tokenizer."""
    return _of_sums(column, statistics.perplexity, "words", level)


def byte_perplexity(column: Column, *, level: float = 0.95) -> Estimate:
    """exp(-log-likelihood per UTF-8 byte); comparable across tokenizers and scripts."""
    return _of_sums(column, statistics.perplexity, "bytes", level)


def bits_per_byte(column: Column, *, level: float = 0.95) -> Estimate:
    """-log2-likelihood per UTF-8 byte; comparable across tokenizers."""
    return _of_sums(column, statistics.bits_per_byte, "bytes", level)


def _of_sums(
    column: Column, metric: Callable[..., Estimate], unit: str, level: float
) -> Estimate:
    if not len(column.values):
        return nothing_scored(column, level)
    return metric(
        _require_part(column, "log_likelihood"),
        _require_part(column, unit),
        clusters=column.clusters,
        n_missing=column.n_missing,
        level=level,
    )


def _require_part(column: Column, name: str) -> NDArray[np.float64]:
    numbers = column.parts.get(name)
    if numbers is None:
        raise ConfigurationError(
            f"A perplexity needs the part '{name}' of its scorer's scores, which this"
            " scorer does not give. Use the scorer 'perplexity'."
        )
    return numbers


def perplexity_sums(column: Column, groups: Groups, *, unit: str) -> GroupSums:
    """Sum losses and lengths over groups; a perplexity is exp of their ratio."""
    import numpy as np

    return groups.sums(
        -_require_part(column, "log_likelihood"), _require_part(column, unit)
    ), lambda sums: np.exp(ratio(sums))


def bits_sums(column: Column, groups: Groups) -> GroupSums:
    """Sum losses and bytes over groups; bits per byte are their ratio divided by ln 2."""
    sums, _ = perplexity_sums(column, groups, unit="bytes")
    return sums, lambda sums: ratio(sums) / math.log(2)
