"""Perplexities and bits per byte over a whole corpus: sums of log-likelihoods over sums of lengths, never means of ratios.

They read the parts that the scorers `perplexity` and `likelihood` leave: "log_likelihood" and "tokens", "words" or "bytes".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.metrics.registry import Column, Groups, GroupSums
    from evalwright.statistics import Estimate


def token_perplexity(column: Column, *, level: float = 0.95) -> Estimate:
    """exp(-log-likelihood per token). It depends on the tokenizer: compare only models that share one.

    Empty where the model does not say how many tokens it scored.
    """
    if "log_likelihood" in column.parts and "tokens" not in column.parts:
        empty = nothing_scored(column, level)
        return replace(empty, method="no number: the model does not say how many tokens it scored")
    return _perplexity(column, "tokens", level)


def word_perplexity(column: Column, *, level: float = 0.95) -> Estimate:
    """exp(-log-likelihood per word), words as the scorer counts them; comparable across tokenizers."""
    return _perplexity(column, "words", level)


def byte_perplexity(column: Column, *, level: float = 0.95) -> Estimate:
    """exp(-log-likelihood per UTF-8 byte); comparable across tokenizers and languages without spaces."""
    return _perplexity(column, "bytes", level)


def bits_per_byte(column: Column, *, level: float = 0.95) -> Estimate:
    """-log2-likelihood per UTF-8 byte; comparable across tokenizers."""
    from evalwright import statistics

    if not len(column.values):
        return nothing_scored(column, level)
    likelihoods, counts = _part(column, "log_likelihood"), _part(column, "bytes")
    try:
        return statistics.bits_per_byte(
            likelihoods, counts, clusters=column.clusters, n_failed=column.n_failed, level=level
        )
    except ValueError as error:
        raise ConfigurationError(f"The bits per byte cannot be computed: {error}.") from error


def nothing_scored(column: Column, level: float) -> Estimate:
    """The estimate over no scores: every number nan, with what failed counted."""
    from evalwright.statistics import Estimate

    nan = math.nan
    return Estimate(nan, nan, nan, level, 0, column.n_failed, None, None, "no interval: nothing was scored")


def _perplexity(column: Column, unit: str, level: float) -> Estimate:
    from evalwright import statistics

    if not len(column.values):
        return nothing_scored(column, level)
    likelihoods, counts = _part(column, "log_likelihood"), _part(column, unit)
    try:
        return statistics.perplexity(
            likelihoods, counts, clusters=column.clusters, n_failed=column.n_failed, level=level
        )
    except ValueError as error:
        raise ConfigurationError(f"The perplexity per {unit} cannot be computed: {error}.") from error


def _part(column: Column, name: str) -> NDArray[np.float64]:
    part = column.parts.get(name)
    if part is None:
        raise ConfigurationError(
            f"A perplexity needs the part '{name}' of its scorer's scores, which this scorer does not give. "
            "Use the scorer 'perplexity'."
        )
    return part


def perplexity_sums(column: Column, groups: Groups, *, unit: str) -> GroupSums:
    """Losses and lengths, of which a perplexity is exp(the ratio)."""
    import numpy as np

    return groups.sums(-_part(column, "log_likelihood"), _part(column, unit)), lambda sums: np.exp(
        ratio(sums)
    )


def bits_sums(column: Column, groups: Groups) -> GroupSums:
    """Losses and bytes, of which the bits per byte are the ratio over ln 2."""
    sums, _ = perplexity_sums(column, groups, unit="bytes")
    return sums, lambda sums: ratio(sums) / math.log(2)


def ratio(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first of two sums (..., 2) over the second; nan where that is 0."""
    import numpy as np

    above, below = sums[..., 0], sums[..., 1]
    found: NDArray[np.float64] = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
    return found
