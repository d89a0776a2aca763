"""Metrics over classes: balanced accuracy, F1, AUROC, and the agreement of raters.

They read parts of the scores: "gold" and "predicted" of `choice`, "probability", and the
classes that several raters assign. An answer from which no option could be extracted has the
predicted class -1: always wrong, and for macro-F1 a class of its own, with F1 = 0, as in
scikit-learn. Failed samples are counted, but their gold class is not in the column, so these
metrics have no bounds.
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
    """The mean recall over the gold classes; a constant answer scores 1 / number of classes.

    Args:
        column: scores with the parts "gold" and "predicted".
        level: confidence level of the interval.
        seed: unused, as nothing is resampled.
    """
    return _over_labels(column, statistics.balanced_accuracy, level)


def macro_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean F1 over all classes that occur as gold label or prediction.

    Args:
        column: scores with the parts "gold" and "predicted".
        level: of the interval.
        seed: of the bootstrap interval.
    """
    return _over_labels(column, statistics.macro_f1, level, seed=seed)


def null_weighted_f1(column: Column, *, level: float = 0.95, seed: int = 0) -> Estimate:
    """The mean F1 over the gold classes, times the share of answers with a readable class.

    An unreadable answer counts twice: its gold class has one hit less, and the whole mean is
    multiplied by a lower share.

    Args:
        column: scores with the parts "gold" and "predicted".
        level: confidence level of the interval.
        seed: seeds the bootstrap of the interval.
    """
    return _over_labels(column, statistics.null_weighted_f1, level, seed=seed)


def _over_labels(
    column: Column, metric: Callable[..., Estimate], level: float, **resampling: int
) -> Estimate:
    import numpy as np

    if not len(column.values):
        return nothing_scored(column, level)
    gold, predicted, single_gold, complete = _classes(column)
    if not single_gold.any():
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
    left_out = int((~single_gold).sum())
    note = (
        f"; {left_out} samples with several right options left out" if left_out else ""
    )
    n_missing = column.n_missing + int(single_gold.sum() - complete.sum())
    return replace(estimate, n_missing=n_missing, method=estimate.method + note)


def label_sums(
    column: Column, groups: Groups, *, kind: str, seed: int = 0
) -> GroupSums:
    """Count hits, gold labels and predicted labels by class: the sums that these metrics depend on.

    Args:
        column: scores with the parts "gold" and "predicted".
        groups: the groups to sum over.
        kind: the metric.
        seed: unused; there is no bootstrap here.
    """
    from evalwright.statistics.labels import grouped_labels

    gold, predicted, _, complete = _classes(column)
    return grouped_labels(gold, predicted, groups.codes[complete], groups.count, kind)


def _classes(
    column: Column,
) -> tuple[
    NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]
]:
    """Collect the gold and predicted classes of the items that have both, and two masks.

    The masks are over all items: those with exactly one right option, and those of them that also
    have a prediction.
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
    single_gold = ~np.isnan(gold)
    complete = single_gold & ~np.isnan(predicted.reshape(len(gold), -1)).any(axis=1)
    return gold[complete], predicted[complete], single_gold, complete


def auroc(column: Column, *, level: float = 0.95) -> Estimate:
    """The chance that a random sample of class 1 has a higher probability than one of class 0.

    Ties count half. Needs exactly two classes, and a scorer with the parts "gold" (0 or 1) and
    "probability" (of class 1), such as `classification`; independent of any threshold. No number
    where all samples are of one class.
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
    complete = ~(np.isnan(gold) | np.isnan(probability))
    if not np.isin(gold[complete], (0.0, 1.0)).all():
        raise ConfigurationError("AUROC is for two classes, and the samples have more.")
    estimate = statistics.auroc(
        probability[complete],
        gold[complete],
        clusters=column.clusters_of(complete),
        level=level,
    )
    return replace(estimate, n_missing=column.n_missing + int((~complete).sum()))


def rater_agreement(
    column: Column,
    *,
    coefficient: Literal["raw", "kappa", "ac1"] = "raw",
    first: str = "rules",
    second: str = "judge",
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """How far two raters agree: raw agreement, Cohen's kappa or Gwet's AC1.

    Only the first draw of each sample is used. Answers that only one rater judged are left out and
    are no failures: with `judge: unsure` the agreement is over unsure answers only.

    Args:
        column: scores with the raters' classes as parts.
        coefficient: "raw", "kappa" or "ac1".
        first: "rules" or the role of a judge.
        second: likewise.
        level: confidence level of the interval.
        seed: seeds the bootstrap of the interval.
    """
    import numpy as np

    from evalwright.scorers.stress.rules import CLASSES

    check_known("coefficient", [coefficient], ("raw", "kappa", "ac1"))
    if not len(column.values):
        return nothing_scored(column, level)
    first_classes = _classes_of_rater(column, first)
    second_classes = _classes_of_rater(column, second)
    rated_by_both = ~(np.isnan(first_classes) | np.isnan(second_classes))
    if not rated_by_both.any():
        empty = statistics.mean_interval(first_classes[rated_by_both], level=level)
        return replace(
            empty, method=f"no number: '{first}' and '{second}' judged no answer both"
        )
    clusters = column.clusters_of(rated_by_both)
    pairs = np.column_stack(
        [first_classes[rated_by_both], second_classes[rated_by_both]]
    )
    if coefficient == "raw":
        return statistics.raw_agreement(pairs, clusters=clusters, level=level)
    if coefficient == "kappa":
        return statistics.cohen_kappa(
            pairs[:, 0], pairs[:, 1], clusters=clusters, level=level, seed=seed
        )
    # All classes of the scorer `stress` count, of other scorers only those that occur.
    labels = (
        len(CLASSES)
        if "handled" in column.parts or "rules" in (first, second)
        else None
    )
    return statistics.gwet_ac1(
        pairs, labels=labels, clusters=clusters, level=level, seed=seed
    )


def _classes_of_rater(column: Column, rater: str) -> NDArray[np.float64]:
    """Return the class that a rater assigned to each answer, (n,); nan where there is none."""
    import numpy as np

    name = f"{rater} class"
    if (rated_draws := column.part_draws.get(name)) is not None:
        return rated_draws[:, 0]
    single = column.parts.get(name)
    return np.full(len(column.values), np.nan) if single is None else single
