"""Label metrics as scikit-learn defines them, without needing it.

They are computed from counts of (gold, predicted) pairs, of which there are few, for one set of
rows or for many resampled sets at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Table = NDArray[np.float64]

LABEL_METRICS = ("f1", "macro_f1", "matthews_corrcoef", "weighted_f1")
"""f1 is of label 1; macro_f1 and weighted_f1 are means over labels, unweighted or by gold
frequency.

matthews_corrcoef works for any number of labels (Gorodkin 2004), and is 0 if one side is constant.
"""


def label_metric(metric: str, pairs: Sequence[tuple[Any, Any]]) -> float:
    """Compute a metric over all pairs; 0 if there are none."""
    import numpy as np

    return (
        label_metric_over_draws(metric, pairs)(np.arange(len(pairs))[None, :])[0]
        if len(pairs)
        else 0.0
    )


def label_metric_over_draws(
    metric: str, items: Sequence[Any]
) -> Callable[[NDArray[np.int64]], list[float]]:
    """Return a function that computes a metric over many sets of row indices, shape (sets, rows).

    Raises ValueError for `f1` with labels other than 0 and 1.
    """
    import numpy as np

    pairs = sorted({(gold, predicted) for gold, predicted in items}, key=repr)
    codes = np.array([pairs.index((gold, predicted)) for gold, predicted in items])
    names = sorted({label for pair in pairs for label in pair}, key=repr)
    if metric == "f1" and (len(names) > 2 or (len(names) == 2 and 1 not in names)):
        raise ValueError(f"binary F1 needs the labels 0 and 1, not {names}")
    gold = np.array(
        [[pair[0] == label for label in names] for pair in pairs], dtype=float
    )
    predicted = np.array(
        [[pair[1] == label for label in names] for pair in pairs], dtype=float
    )

    def compute(draws: NDArray[np.int64]) -> list[float]:
        drawn = codes[draws]
        table = np.stack(
            [(drawn == code).sum(axis=1) for code in range(len(pairs))], axis=1
        ).astype(float)
        hits = table @ (gold * predicted)
        golds = table @ gold
        predictions = table @ predicted
        if metric == "matthews_corrcoef":
            return _matthews(hits, golds, predictions)
        f1_by_label = _ratio(2 * hits, golds + predictions)
        if metric == "f1":
            scores = (
                f1_by_label[:, names.index(1)]
                if 1 in names
                else np.zeros(len(f1_by_label))
            )
        elif metric == "weighted_f1":
            scores = (golds * f1_by_label).sum(axis=1) / golds.sum(axis=1)
        else:
            scores = f1_by_label.sum(axis=1) / (golds + predictions > 0).sum(axis=1)
        return [float(score) for score in scores]

    return compute


def _matthews(hits: Table, golds: Table, predictions: Table) -> list[float]:
    import numpy as np

    n = golds.sum(axis=1)
    covariance = hits.sum(axis=1) * n - (golds * predictions).sum(axis=1)
    spread = (n * n - (golds**2).sum(axis=1)) * (n * n - (predictions**2).sum(axis=1))
    return [float(coefficient) for coefficient in _ratio(covariance, np.sqrt(spread))]


def _ratio(numerator: Table, denominator: Table) -> Table:
    """Divide; 0 where the denominator is 0."""
    import numpy as np

    return np.divide(
        numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0
    )
