"""BLEU, chrf, chrf++ and TER over a corpus: sacrebleu's arithmetic on sums of counts.

The counts come from the scorers of the same names. Numbers are on sacrebleu's own scale, from 0
to 100 (TER from 0 up), with its signature's defaults: BLEU with smoothing "exp" over n-grams 1
to 4, chrF with beta 2 over characters 1 to 6 (and words 1 and 2). An answer with several draws
counts with the mean of its counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError
from evalwright.metrics.registry import Column, Groups, GroupSums, nothing_scored
from evalwright.scorers.corpus import PARTS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate


def bleu(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Corpus BLEU from 0 to 100.

    Args:
        column: scores of the scorer `bleu`.
        level: confidence level of the interval.
        seed: seeds the bootstrap of the interval.
    """
    return _corpus("bleu", column, level, seed)


def chrf(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Corpus chrF from 0 to 100."""
    return _corpus("chrf", column, level, seed)


def chrf_plus(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Corpus chrF++ from 0 to 100."""
    return _corpus("chrf++", column, level, seed)


def ter(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """Corpus TER: edits per 100 words of the references; lower is better."""
    return _corpus("ter", column, level, seed)


def _corpus(kind: str, column: Column, level: float, seed: int) -> Estimate:
    from evalwright.statistics.sums import estimate_of_sums

    if not len(column.values):
        return nothing_scored(column, level)
    estimate = estimate_of_sums(
        _table(kind, column),
        partial(corpus_score, kind),
        clusters=column.clusters,
        n_missing=column.n_missing,
        level=level,
        seed=seed,
        scale=100.0,
        greatest=None if kind == "ter" else 100.0,
    )
    used = Counter(
        counts["tokenizer"]
        for counts in column.items
        if isinstance(counts, Mapping) and "tokenizer" in counts
    )
    if not used:
        return estimate
    mixed = len(used) > 1
    tokenizers = ", ".join(
        f"{name} ({n:,})" if mixed else str(name) for name, n in used.most_common()
    )
    return replace(
        estimate,
        method=f"{estimate.method}; tokeniser{'s' if mixed else ''} {tokenizers}",
    )


def _table(kind: str, column: Column) -> NDArray[np.float64]:
    import numpy as np

    if missing := [name for name in PARTS[kind] if name not in column.parts]:
        raise ConfigurationError(
            f"The metric '{kind}' needs the part '{missing[0]}' of its scorer's scores."
            f" Use it with the scorer '{kind}'."
        )
    return np.stack([column.parts[name] for name in PARTS[kind]], axis=1)


def corpus_sums(
    column: Column, groups: Groups, *, kind: str, seed: int = 0
) -> GroupSums:
    """Sum the counts over groups, and return the metric as a function of such sums.

    `seed` is not used; all metrics have it.
    """
    return groups.sums(*_table(kind, column).T), partial(corpus_score, kind)


def bleu_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute BLEU from sums (..., 10).

    The columns: length of answers and of references, matching n-grams (4), all n-grams (4).
    """
    import numpy as np

    answer = sums[..., 0]
    target = sums[..., 1]
    right = sums[..., 2:6]
    total = sums[..., 6:10]
    with np.errstate(divide="ignore", invalid="ignore"):
        shortness = np.where(answer < target, np.exp(1 - target / answer), 1.0)
        # Each order without a match gets half the share of the one before it: smoothing "exp".
        halved = 2.0 ** np.cumsum(right == 0, axis=-1)
        precision = np.where(right == 0, 1 / (halved * total), right / total)
        logs = np.log(100 * precision).mean(axis=-1)
        bleu: NDArray[np.float64] = np.where(
            (right.sum(axis=-1) > 0) & (total > 0).all(axis=-1),
            shortness * np.exp(logs),
            0.0,
        )
    return bleu


def chrf_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute chrF from sums (..., 3 * orders): n-grams of answers, of references, and matches.

    Orders that one side lacks do not count.
    """
    import numpy as np

    counts = sums.reshape(*sums.shape[:-1], -1, 3)
    answer = counts[..., 0]
    target = counts[..., 1]
    match = counts[..., 2]
    on_both_sides = (answer > 0) & (target > 0)
    orders = np.maximum(on_both_sides.sum(axis=-1), 1)

    def mean(total: NDArray[np.float64]) -> NDArray[np.float64]:
        shares = np.divide(match, total, out=np.zeros_like(match), where=on_both_sides)
        averaged: NDArray[np.float64] = shares.sum(axis=-1) / orders
        return averaged

    precision = mean(answer)
    recall = mean(target)
    above = 5 * precision * recall
    below = 4 * precision + recall
    return 100 * np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def ter_of_sums(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute TER from sums (..., 2): edits, and words of the references.

    It is 100 if there are edits but no words.
    """
    import numpy as np

    edits = sums[..., 0]
    words = sums[..., 1]
    error_rate = np.divide(
        edits, words, out=np.where(edits > 0, 1.0, 0.0), where=words > 0
    )
    return 100 * error_rate


def corpus_score(kind: str, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute a corpus metric, as sacrebleu does.

    Args:
        kind: "bleu", "chrf", "chrf++" or "ter".
        sums: sums over texts of their `corpus_counts`, (..., counts).

    Returns:
        The metric of each row of sums, from 0 to 100; TER from 0 up.
    """
    return SCORES[kind](sums)


SCORES: Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "bleu": bleu_of_sums,
    "chrf": chrf_of_sums,
    "chrf++": chrf_of_sums,
    "ter": ter_of_sums,
}
"""Each metric as a function of sums (..., parts), with the parts in the order of `PARTS`."""
