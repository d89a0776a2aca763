"""Metrics over pairs of gold and predicted labels, as scikit-learn defines them, without needing it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

Pairs = Sequence[tuple[Any, Any]]


def counts(pairs: Iterable[Any]) -> tuple[Counter[Any], Counter[Any], Counter[Any]]:
    """(right by label, gold by label, predicted by label)."""
    right: Counter[Any] = Counter()
    golds: Counter[Any] = Counter()
    predictions: Counter[Any] = Counter()
    for gold, predicted in pairs:
        golds[gold] += 1
        predictions[predicted] += 1
        if gold == predicted:
            right[gold] += 1
    return right, golds, predictions


def weighted_f1(pairs: Pairs) -> float:
    """Each label's F1, weighted by how often it is gold."""
    right, golds, predictions = counts(pairs)
    total = sum(golds.values())
    return (
        sum(gold * _f1(right[label], gold, predictions[label]) for label, gold in golds.items()) / total
        if total
        else 0.0
    )


def binary_f1(pairs: Pairs) -> float:
    """F1 of label 1. Raises ValueError where there are more than two labels, or two that are not 0 and 1."""
    right, golds, predictions = counts(pairs)
    labels = set(golds) | set(predictions)
    if len(labels) > 2 or (1 not in labels and len(labels) == 2):
        raise ValueError(f"binary F1 needs the labels 0 and 1, not {sorted(labels, key=str)}")
    return _f1(right[1], golds[1], predictions[1])


def macro_f1(pairs: Pairs) -> float:
    """The mean of the labels' F1."""
    right, golds, predictions = counts(pairs)
    labels = set(golds) | set(predictions)
    return sum(_f1(right[label], golds[label], predictions[label]) for label in labels) / len(labels)


def matthews(pairs: Pairs) -> float:
    """Matthews's correlation, for any number of labels (Gorodkin 2004); 0 where one side is constant."""
    right, golds, predictions = counts(pairs)
    n = sum(golds.values())
    both = sum(right.values()) * n - sum(golds[label] * predictions[label] for label in golds)
    gold_spread = n * n - sum(count * count for count in golds.values())
    predicted_spread = n * n - sum(count * count for count in predictions.values())
    if not gold_spread or not predicted_spread:
        return 0.0
    return float(both / (gold_spread * predicted_spread) ** 0.5)


def _f1(right: int, gold: int, predicted: int) -> float:
    return 2 * right / (gold + predicted) if gold + predicted else 0.0
