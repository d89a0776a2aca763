"""The names of `lm_eval.api.metrics` that scripts and task modules import.

They are metrics over all rows' scores, or over one text and its references.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import sqrt
from typing import Any

from evalwright.compat.lm_eval.tasks.aggregation import (
    BUILT_IN,
    bits_per_byte,
    brier_score,
    deviation,
    mean,
    nanmean,
    perplexity,
    weighted_perplexity,
)
from evalwright.compat.lm_eval.tasks.aggregation import upper_median as median
from evalwright.compat.lm_eval.tasks.aggregation import weighted as weighted_mean

__all__ = [
    "bits_per_byte",
    "bleu",
    "brier_score",
    "bypass",
    "bypass_agg",
    "chrf",
    "chrfpp",
    "f1_score",
    "matthews_corrcoef",
    "mean",
    "mean_stderr",
    "median",
    "metric_max_over_ground_truths",
    "nanmean",
    "perplexity",
    "sample_stddev",
    "ter",
    "weighted_mean",
    "weighted_perplexity",
]

bypass_agg = BUILT_IN["bypass"]
bleu, chrf, chrfpp, ter = (BUILT_IN[name] for name in ("bleu", "chrf", "chrf++", "ter"))
f1_score = BUILT_IN["f1"]
matthews_corrcoef = BUILT_IN["matthews_corrcoef"]
sample_stddev = deviation


def mean_stderr(items: Sequence[Any]) -> float:
    """The standard error of the mean."""
    return deviation(items) / sqrt(len(items))


def bypass(items: Any) -> None:
    """No score."""


def metric_max_over_ground_truths(
    metric_fn: Callable[[Any, Any], Any], prediction: Any, ground_truths: Sequence[Any]
) -> Any:
    """The best score of a prediction over several references."""
    return max(map(partial(metric_fn, prediction), ground_truths))
