"""Metrics over classes that scores leave as parts: "gold" and "predicted" of `choice`,
"probability", and what several raters say.

An answer from which no option could be extracted has the predicted class -1: always wrong, and for
macro-F1 a class of its own, with F1 = 0, as in scikit-learn. Failed samples are counted, but their
gold class is not in the column, so these metrics have no bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from evalwright import statistics
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.metrics.registry import Column, Groups, GroupSums, nothing_scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate


def balanced_accuracy(
    column: Column, *, level: float = 0.95, seed: int = 0
) -> Estimate:
    """The mean recall over the gold classes; a constant answer gets 1 / classes. seed: unused,
    nothing is resampled.
    """
    return _over_labels(column, statistics.balanced_accuracy, level)


def macro_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean F1 over the classes in gold or predictions. seed: of the bootstrap interval."""
    return _over_labels(column, statistics.macro_f1, level, seed=seed)


def null_weighted_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean F1 over the gold classes, times the share of answers from which a class could be
    read.

    An answer that could not be read counts twice: its class lacks a hit, and all classes are
    weighted down. seed: of the bootstrap interval.
    """
    return _over_labels(column, statistics.null_weighted_f1, level, seed=seed)


def _over_labels(
    column: Column, metric: Callable[..., Estimate], level: float, **resampling: int
) -> Estimate:
    import numpy as np

    if not len(column.values):
        return nothing_scored(column, level)
    gold, predicted, kept, complete = _classes(column)
    if not kept.any():
        return nothing_scored(
            column, level, "no interval: no sample has exactly one right option"
        )
    if (predicted != np.rint(predicted)).any():
        return nothing_scored(
            column, level, "no number: the classes of several draws were averaged"
        )
    estimate = metric(
        gold.astype(np.int64),
        predicted.astype(np.int64),
        clusters=column.clusters_of(complete),
        level=level,
        **resampling,
    )
    left_out = int((~kept).sum())
    more = (
        f"; {left_out} samples with several right options left out" if left_out else ""
    )
    n_missing = column.n_missing + int(kept.sum() - complete.sum())
    return replace(estimate, n_missing=n_missing, method=estimate.method + more)


def label_sums(
    column: Column, groups: Groups, *, kind: str, seed: int = 0
) -> GroupSums:
    """Hits, gold and predicted labels by class, of which these metrics are made. seed: of the
    metric's bootstrap, unused.
    """
    from evalwright.statistics.labels import grouped_labels

    gold, predicted, _, complete = _classes(column)
    return grouped_labels(gold, predicted, groups.codes[complete], groups.count, kind)


def _classes(
    column: Column,
) -> tuple[
    NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]
]:
    """Gold and predicted classes of the items that have both; which items have one right option,
    and which have both.
    """
    import numpy as np

    if "gold" not in column.parts or "predicted" not in column.parts:
        raise ConfigurationError(
            "Balanced accuracy and macro-F1 need the parts 'gold' and 'predicted' of"
            " the scores, which only samples with exactly one right option have. Use"
            " them with the scorer 'choice'."
        )
    gold = column.parts["gold"]
    predicted = column.part_draws.get("predicted", column.parts["predicted"])
    kept = ~np.isnan(gold)
    complete = kept & ~np.isnan(predicted.reshape(len(gold), -1)).any(axis=1)
    return gold[complete], predicted[complete], kept, complete


def auroc(column: Column, *, level: float = 0.95) -> Estimate:
    """The chance that a sample of the last class has a higher probability of it than one of the
    first, ties half.

    For two classes, with a scorer that leaves "gold" (0 or 1) and "probability" (of class 1), such
    as `classification`. It does not depend on a threshold. No number where the samples are all of
    one class.
    """
    import numpy as np

    if not len(column.values):
        return nothing_scored(column, level)
    if "gold" not in column.parts or "probability" not in column.parts:
        raise ConfigurationError(
            "AUROC needs the parts 'gold' and 'probability' of the scores. Use it with"
            " the scorer 'classification' and a model that gives class probabilities."
        )
    gold = column.parts["gold"]
    probability = column.parts["probability"]
    kept = ~(np.isnan(gold) | np.isnan(probability))
    if not np.isin(gold[kept], (0.0, 1.0)).all():
        raise ConfigurationError("AUROC is for two classes, and the samples have more.")
    found = statistics.auroc(
        probability[kept], gold[kept], clusters=column.clusters_of(kept), level=level
    )
    return replace(found, n_missing=column.n_missing + int((~kept).sum()))


def rater_agreement(
    column: Column,
    *,
    coefficient: Literal["raw", "kappa", "ac1"] = "raw",
    first: str = "rules",
    second: str = "judge",
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """How far two raters give the same class to answers that both judged: raw agreement, Cohen's
    kappa or Gwet's AC1.

    first, second: "rules" or the role of a judge. Of several draws the first counts. Answers that
    only one of them judged are left out and are no failures: with `judge: unsure` the agreement is
    that on unsure answers alone.
    """
    import numpy as np

    from evalwright.scorers.stress.rules import CLASSES

    check_known("coefficient", [coefficient], ("raw", "kappa", "ac1"))
    if not len(column.values):
        return nothing_scored(column, level)
    a = _rated(column, first)
    b = _rated(column, second)
    both = ~(np.isnan(a) | np.isnan(b))
    if not both.any():
        empty = statistics.mean_interval(a[both], level=level)
        return replace(
            empty, method=f"no number: '{first}' and '{second}' judged no answer both"
        )
    clusters = column.clusters_of(both)
    pairs = np.column_stack([a[both], b[both]])
    if coefficient == "raw":
        return statistics.raw_agreement(pairs, clusters=clusters, level=level)
    if coefficient == "kappa":
        return statistics.cohen_kappa(
            pairs[:, 0], pairs[:, 1], clusters=clusters, level=level, seed=seed
        )
    # Of the scorer `stress` all classes count, of other scorers those that occur.
    labels = (
        len(CLASSES)
        if "handled" in column.parts or "rules" in (first, second)
        else None
    )
    return statistics.gwet_ac1(
        pairs, labels=labels, clusters=clusters, level=level, seed=seed
    )


def _rated(column: Column, rater: str) -> NDArray[np.float64]:
    """The classes that a rater gave, nan where it gave none."""
    import numpy as np

    name = f"{rater} class"
    if (found := column.part_draws.get(name)) is not None:
        return found[:, 0]
    single = column.parts.get(name)
    return np.full(len(column.values), np.nan) if single is None else single
