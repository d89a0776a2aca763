"""Metrics that are not means: paired differences of macro-F1, balanced accuracy, perplexity, corpus
chrF, correlations and AUROC.

Two models answer the same items; the truth is the difference of the metric over two million items
made in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from coverage_settings.registry import F64, Covered, Setting, repeat_trials
from evalwright.statistics import PairedComparison, compare_paired
from evalwright.statistics.jackknife import (
    MOST_GROUPS,
    MOST_REMADE,
    jackknife_groups,
    pseudo_values,
)
from evalwright.statistics.units import I64

ABOUT = (
    "The 95% interval of the difference of two models in a metric that is not a mean"
    " over items, by the jackknife that leaves out one group of clusters at a time,"
    " should hold the true difference in 95% of the trials."
)

Sums = tuple[F64, F64]
"""What each item adds to the sums of model a and of model b, (items, parts) each."""


@dataclass(frozen=True)
class Kind:
    """A metric: `make(rng, shared)` gives the rows of both models from what the items of a cluster
    share (items,), N(0, 1); `over(rows)` is the metric over (..., parts) sums, or over rows where
    `of_rows`.
    """

    name: str
    make: Callable[[np.random.Generator, F64], Sums]
    over: Callable[[F64], F64]
    of_rows: bool = False


def _labels(
    shares: tuple[float, ...], skill: tuple[float, float]
) -> Callable[[np.random.Generator, F64], Sums]:
    """Hits, gold and predicted labels by class, (items, 3 classes): models with these skills, and a
    liking for the first class.
    """

    def make(rng: np.random.Generator, shared: F64) -> Sums:
        n = len(shared)
        classes = len(shares)
        gold = rng.choice(classes, n, p=shares)
        hard = 0.7 * shared + 0.7 * rng.standard_normal(n)
        label_sums = []
        for ability in skill:
            right = ability - 0.3 * gold + hard + rng.standard_normal(n) > 0
            guess = np.where(rng.random(n) < 0.5, 0, rng.integers(0, classes, n))
            predicted = np.where(right, gold, guess)
            is_gold = gold == np.arange(classes)[:, None]
            is_predicted = predicted == np.arange(classes)[:, None]
            label_counts = np.concatenate(
                [is_gold & is_predicted, is_gold, is_predicted]
            )
            label_sums.append(label_counts.astype(np.float64).T)
        return label_sums[0], label_sums[1]

    return make


def _split(sums: F64) -> tuple[F64, F64, F64]:
    third = sums.shape[-1] // 3
    return sums[..., :third], sums[..., third : 2 * third], sums[..., 2 * third :]


def _over_present(above: F64, below: F64) -> F64:
    ratio = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    average: F64 = ratio.sum(axis=-1) / (below > 0).sum(axis=-1)
    return average


def _macro_f1(sums: F64) -> F64:
    hits, gold, predicted = _split(sums)
    return _over_present(2 * hits, gold + predicted)


def _balanced(sums: F64) -> F64:
    hits, gold, _ = _split(sums)
    return _over_present(hits, gold)


def _texts(rng: np.random.Generator, shared: F64) -> Sums:
    """Log-likelihoods and words of documents of very different lengths."""
    n = len(shared)
    words = np.ceil(np.exp(rng.normal(4.5, 0.8, n)))
    hard = 2.5 + 0.3 * shared + 0.3 * rng.standard_normal(n)
    return tuple(
        np.stack(
            [-words * (hard + advantage + 0.1 * rng.standard_normal(n)), words], axis=1
        )
        for advantage in (0.0, 0.05)
    )  # type: ignore[return-value]


def _perplexity(sums: F64) -> F64:
    perplexity: F64 = np.exp(-sums[..., 0] / sums[..., 1])
    return perplexity


def _translations(rng: np.random.Generator, shared: F64) -> Sums:
    """Matching, said and reference n-grams of one to six characters, (items, 18)."""
    n = len(shared)
    orders = np.arange(6)[:, None]
    length = np.ceil(np.exp(rng.normal(4.3, 0.5, n)))
    hard = 0.6 * shared + 0.6 * rng.standard_normal(n)
    ngram_sums = []
    for ability in (0.9, 0.8):
        written = np.ceil(length * np.exp(rng.normal(0, 0.1, n)))
        good = 1 / (1 + np.exp(-(ability + hard + 0.4 * rng.standard_normal(n))))
        theirs = np.maximum(length - orders, 0)
        ours = np.maximum(written - orders, 0)
        hits = np.floor(np.minimum(theirs, ours) * good ** (1 + 0.7 * orders))
        ngram_sums.append(np.concatenate([hits, ours, theirs]).T)
    return ngram_sums[0], ngram_sums[1]


def _chrf(sums: F64) -> F64:
    hits, written, there = _split(sums)
    precision = (hits / written).mean(axis=-1)
    recall = (hits / there).mean(axis=-1)
    f_score: F64 = 500 * precision * recall / (4 * precision + recall)
    return f_score


def _ratings(rng: np.random.Generator, shared: F64) -> Sums:
    """Gold ratings and two models' scores, with outliers: the rows, (items, 2)."""
    n = len(shared)
    gold = 0.6 * shared + 0.8 * rng.standard_normal(n)
    same = rng.standard_normal(n)
    return tuple(
        np.stack(
            [
                np.exp(gold / 2),
                gold + slope * (0.6 * same + 0.8 * rng.standard_normal(n)),
            ],
            axis=1,
        )
        for slope in (0.8, 1.0)
    )  # type: ignore[return-value]


def _classified(rng: np.random.Generator, shared: F64) -> Sums:
    """Gold class (three in ten) and two models' scores: the rows, (items, 2)."""
    n = len(shared)
    gold = (shared * 0.5 + 0.87 * rng.standard_normal(n) > 0.52) * 1.0
    same = rng.standard_normal(n)
    return tuple(
        np.stack(
            [gold, slope * gold + 0.6 * same + 0.8 * rng.standard_normal(n)], axis=1
        )
        for slope in (1.2, 1.0)
    )  # type: ignore[return-value]


def _pearson(rows: F64) -> F64:
    return np.asarray(np.atleast_2d(np.corrcoef(rows.T))[0, 1])


def _ranks(scores: F64) -> I64:
    """From 0, without ties."""
    order = scores.argsort()
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return ranks


def _spearman(rows: F64) -> F64:
    ranks = np.stack([_ranks(scores) for scores in rows.T])
    return np.asarray(np.atleast_2d(np.corrcoef(ranks))[0, 1])


def _auroc(rows: F64) -> F64:
    ranks = _ranks(rows[:, 1]) + 1
    gold = rows[:, 0] > 0
    ones = gold.sum()
    return np.asarray(
        (ranks[gold].sum() - ones * (ones + 1) / 2) / (ones * (len(gold) - ones))
    )


def _median(rows: F64) -> F64:
    return np.asarray(np.median(rows[:, 1]))


MACRO_F1 = Kind(
    "macro-F1, 3 unequal classes", _labels((0.6, 0.3, 0.1), (0.9, 0.7)), _macro_f1
)
BALANCED = Kind(
    "balanced accuracy, 3 unequal classes",
    _labels((0.6, 0.3, 0.1), (0.9, 0.7)),
    _balanced,
)
RARE = Kind(
    "macro-F1, a class of 3%", _labels((0.67, 0.3, 0.03), (0.9, 0.7)), _macro_f1
)
GOOD = Kind(
    "macro-F1, nearly all right", _labels((0.6, 0.3, 0.1), (2.6, 2.4)), _macro_f1
)
PERPLEXITY = Kind("word perplexity", _texts, _perplexity)
CHRF = Kind("corpus chrF", _translations, _chrf)
PEARSON = Kind("Pearson's correlation", _ratings, _pearson, True)
SPEARMAN = Kind("Spearman's correlation", _ratings, _spearman, True)
AUROC = Kind("AUROC", _classified, _auroc, True)
MEDIAN = Kind("median", _ratings, _median, True)


def _values(kind: Kind, rows: F64, groups: I64) -> F64:
    """The metric's pseudo-values."""
    count = int(groups.max()) + 1
    if kind.of_rows:
        without = np.array([kind.over(rows[groups != group]) for group in range(count)])
        return pseudo_values(float(kind.over(rows)), without)
    sums = np.stack([np.bincount(groups, part, count) for part in rows.T], axis=1)
    total = sums.sum(axis=0)
    return pseudo_values(float(kind.over(total)), kind.over(total - sums))


def _sizes(clusters: str, n: int, rng: np.random.Generator) -> I64:
    """Cluster numbers of n items: "none", "of 5", or "unequal" (20 of very different sizes)."""
    if clusters == "none":
        return np.arange(n)
    if clusters == "of 5":
        return np.arange(n) // 5
    return rng.choice(20, n, p=np.arange(1, 21) / 210)


@cache
def _truth(kind: Kind) -> float:
    rng = np.random.default_rng(7)
    a, b = kind.make(rng, rng.standard_normal(2_000_000))
    ends = [kind.over(rows if kind.of_rows else rows.sum(axis=0)) for rows in (a, b)]
    return float(ends[0] - ends[1])


def _setting(
    kind: Kind, n: int, clusters: str = "none", least: float = 0.93, most: float = 0.97
) -> Setting:
    def make(rng: np.random.Generator, trial: int) -> PairedComparison:
        codes = _sizes(clusters, n, rng)
        shared = rng.standard_normal(int(codes.max()) + 1)[codes]
        rows = kind.make(rng, shared)
        groups = jackknife_groups(codes, MOST_REMADE if kind.of_rows else MOST_GROUPS)
        return compare_paired(
            *(_values(kind, scores, groups) for scores in rows), value_range=None
        )

    def run(seed: int, trials: int) -> Covered:
        return repeat_trials(make, _truth(kind))(seed, trials)

    cluster_note = {
        "none": "",
        "of 5": f" in {n // 5} clusters of 5",
        "unequal": " in 20 unequal clusters",
    }[clusters]
    return Setting(f"{kind.name}, {n} items{cluster_note}", run, least, most)


SETTINGS = tuple(
    _setting(kind, n, clusters)
    for kind in (
        MACRO_F1,
        BALANCED,
        RARE,
        GOOD,
        PERPLEXITY,
        CHRF,
        PEARSON,
        SPEARMAN,
        AUROC,
        MEDIAN,
    )
    for n, clusters in ((100, "none"), (400, "none"), (200, "of 5"), (400, "unequal"))
)
