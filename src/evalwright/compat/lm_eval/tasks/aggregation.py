"""Aggregates the scores of all rows to one number with its published standard error.

The published standard error of a mean is the sample deviation over the root of n. For some other
metrics it is the spread of bootstrap replicates, drawn with Python's generator in chunks of 1,000,
each seeded with its number; the rest have none. The draws are reproduced exactly, but made and
summed as arrays.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks import labels
from evalwright.compat.lm_eval.tasks.registered import registered_aggregation
from evalwright.extend import (
    MissingExtra,
    TaskError,
    check_known,
    corpus_counts,
    corpus_score,
)
from evalwright.statistics import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Items = Sequence[Any]
Aggregation = Callable[[Items], Any]

CHUNK = 1_000
CONFIDENCE_LEVEL = 0.95
_Z95 = 1.959963984540054
CORPUS_METRICS = frozenset({"bleu", "chrf", "chrf++", "ter"})
"""Corpus metrics, for which only 100 bootstrap replicates are drawn."""


def mean(items: Items) -> Any:
    """The mean."""
    return sum(items) / len(items)


def nanmean(items: Items) -> float:
    """The mean, ignoring nan."""
    numbers = [float(item) for item in items if not math.isnan(item)]
    return sum(numbers) / len(numbers) if numbers else math.nan


def upper_median(items: Items) -> Any:
    """The median; of two middle values the upper one."""
    return sorted(items)[len(items) // 2]


def perplexity(items: Items) -> float:
    """exp of minus the mean log-likelihood."""
    return math.exp(-mean(items))


def weighted(items: Items) -> float:
    """The sum of values over the sum of weights."""
    likelihoods, weights = zip(*items, strict=True)
    return float(sum(likelihoods) / sum(weights))


def weighted_perplexity(items: Items) -> float:
    """exp of minus the summed log-likelihood over the summed words or bytes."""
    return math.exp(-weighted(items))


def bits_per_byte(items: Items) -> float:
    """Minus the summed log2-likelihood over the summed bytes."""
    return -weighted(items) / math.log(2)


BRIER_RANGE = (0.0, 2.0)


def brier_losses(items: Items) -> NDArray[np.float64]:
    """The squared distance of each item's probabilities from the gold choice, from 0 to 2."""
    import numpy as np

    golds, predictions = zip(*items, strict=True)
    table = np.array(predictions, dtype=float)
    losses: NDArray[np.float64] = np.sum(
        (table - np.eye(table.shape[1])[list(golds)]) ** 2, axis=1
    )
    return losses


def brier_score(items: Items) -> float:
    """The mean squared distance of the probabilities from the gold choice."""
    return float(brier_losses(items).mean())


def score_corpus(name: str, items: Items) -> float:
    """BLEU, chrF, chrF++ or TER from sacrebleu, over (reference or references, text) pairs."""
    return float(corpus_score(name, count_items(name, items).sum(axis=0)))


def count_items(name: str, items: Items) -> NDArray[np.float64]:
    """The counts (items, counts) whose column sums determine the score.

    All items are scored with as many references as the one with fewest.
    """
    import numpy as np

    require_sacrebleu(f"The metric '{name}'")
    references_by_item = [
        (references,) if isinstance(references, str) else tuple(references)
        for references, _ in items
    ]
    n_references = min(map(len, references_by_item))
    plain = [text if isinstance(text, str) else text[0] for _, text in items]
    return np.array(
        [
            _counts(name, text, references[:n_references])
            for text, references in zip(plain, references_by_item, strict=True)
        ]
    )


@lru_cache(maxsize=1 << 14)
def _counts(name: str, text: str, references: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(corpus_counts(name, text, references))


def require_sacrebleu(feature: str) -> None:
    """Raise MissingExtra if the library of corpus metrics is not installed."""
    if find_spec("sacrebleu") is None:
        raise MissingExtra(feature, "lm-eval", "sacrebleu")


BUILT_IN: dict[str, Aggregation] = {
    "bits_per_byte": bits_per_byte,
    "brier_score": brier_score,
    "bypass": lambda items: 999,
    "mean": mean,
    "median": upper_median,
    "nanmean": nanmean,
    "perplexity": perplexity,
    "weighted_perplexity": weighted_perplexity,
    **{name: partial(score_corpus, name) for name in CORPUS_METRICS},
    **{
        name: partial(labels.label_metric, name) for name in ("f1", "matthews_corrcoef")
    },
}

BOOTSTRAPPED = CORPUS_METRICS | {
    "f1",
    "macro_f1",
    "matthews_corrcoef",
    "median",
    "nanmean",
    "perplexity",
}
"""Aggregations whose standard error is bootstrapped."""


def resolve_aggregation(
    setting: Any, metric: str, task: str
) -> tuple[str, Aggregation]:
    """Return an aggregation's name and function; the name is "" for a function of the task.

    Raises UnknownName, or TaskError if a metric names no aggregation and has no default.
    """
    if callable(setting):
        return "", setting
    name = TABLES["aggregations"].get(metric) if setting is None else str(setting)
    if name is None:
        raise TaskError(
            f"The task '{task}': the metric '{metric}' needs the key `aggregation`,"
            " such as mean."
        )
    if name not in BUILT_IN and (function := registered_aggregation(name)) is not None:
        return "", function
    check_known(f"aggregation of the task '{task}'", [name], BUILT_IN)
    return name, BUILT_IN[name]


def standard_error(
    name: str, items: Items, metric: str, iterations: int
) -> float | None:
    """The published standard error of an aggregation; None if it has none.

    iterations: bootstrap replicates.
    """
    if len(items) < 2 or iterations < 1:
        return None
    if name == "mean":
        return deviation([float(item) for item in items]) / math.sqrt(len(items))
    if name not in BOOTSTRAPPED:
        return None
    if metric in CORPUS_METRICS:
        iterations = min(iterations, 100)
    size = min(CHUNK, iterations)
    score_draws = _bootstrap_scorer(name, items)
    chunks = [
        score_draws(_draws(chunk, size, len(items)))
        for chunk in range(iterations // size)
    ]
    return deviation([value for chunk in chunks for value in chunk])


def by_error(
    value: float,
    error: float | None,
    n: int,
    n_missing: int,
    method: str,
    value_range: Any = None,
) -> Estimate:
    """Build an Estimate with the normal interval of a standard error, or without an interval.

    value_range: limits the interval, unless the value is outside.
    """
    if error is None or not math.isfinite(error):
        return Estimate(
            value,
            math.nan,
            math.nan,
            CONFIDENCE_LEVEL,
            n,
            n_missing,
            None,
            None,
            method,
        )
    low = value - _Z95 * error
    high = value + _Z95 * error
    if value_range is not None:
        low = max(low, min(value_range[0], value))
        high = min(high, max(value_range[1], value))
    return Estimate(
        value, low, high, CONFIDENCE_LEVEL, n, n_missing, None, error, method
    )


def deviation(values: Sequence[float]) -> float:
    """The sample standard deviation."""
    centre = sum(values) / len(values)
    return math.sqrt(sum((value - centre) ** 2 for value in values) / (len(values) - 1))


def _draws(seed: int, rows: int, n: int) -> NDArray[np.int64]:
    """`rows` draws as by `random.Random(seed).choices(range(n), k=n)`: shape (rows, n).

    Both generators are MT19937.
    """
    import numpy as np

    _, state, _ = random.Random(seed).getstate()
    generator = np.random.RandomState()
    generator.set_state(
        ("MT19937", np.array(state[:-1], dtype=np.uint32), state[-1], 0, 0.0)
    )
    return np.floor(generator.random_sample((rows, n)) * n).astype(np.int64)


def _bootstrap_scorer(
    name: str, items: Items
) -> Callable[[NDArray[np.int64]], list[float]]:
    import numpy as np

    if name in labels.LABEL_METRICS:
        return labels.label_metric_over_draws(name, items)
    if name in CORPUS_METRICS:
        table = count_items(name, items)
        return lambda draws: [
            float(corpus_score(name, table[row].sum(axis=0))) for row in draws
        ]
    values = np.array(items, dtype=float)
    if name == "perplexity":
        return lambda draws: np.exp(-values[draws].mean(axis=1)).tolist()
    if name == "median":
        return lambda draws: np.sort(values[draws], axis=1)[:, len(items) // 2].tolist()
    return lambda draws: _nanmeans(values[draws])


def _nanmeans(values: NDArray[np.float64]) -> list[float]:
    import numpy as np

    is_number = ~np.isnan(values)
    sums = np.where(is_number, values, 0.0).sum(axis=1)
    counts = is_number.sum(axis=1)
    return [
        float(row_mean)
        for row_mean in np.divide(
            sums, counts, out=np.full(counts.shape, math.nan), where=counts > 0
        )
    ]
