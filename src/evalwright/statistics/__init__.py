"""Numbers with their uncertainty: arrays in, small typed results out.

Nothing here reads or writes anything, and nothing here knows what a run or a task is. Every result says how many
items it rests on, what failed, its interval and the name of the method that made it. Three rules hold everywhere:

* the unit is the item (or the cluster of items that belong together), never a repeated draw;
* a zero-width interval never poses as certainty: where the data show no spread, a conservative bound is used
  and named;
* what failed is not wrong: it is counted beside the estimate and bounded.

The names below load their module (and numpy) on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.statistics.estimate import Estimate
    from evalwright.statistics.intervals import mean_interval, wilson
    from evalwright.statistics.labels import accuracy, balanced_accuracy, macro_f1
    from evalwright.statistics.macro import MacroDifference, macro_average, macro_difference, macro_p_value
    from evalwright.statistics.paired import PairedComparison, compare_paired
    from evalwright.statistics.pairwise import PairwiseDifferences, pairwise_differences
    from evalwright.statistics.perplexities import bits_per_byte, perplexity
    from evalwright.statistics.sentences import sentence
    from evalwright.statistics.units import VarianceComponents, clustered_standard_error, variance_components

__all__ = [
    "Estimate",
    "MacroDifference",
    "PairedComparison",
    "PairwiseDifferences",
    "VarianceComponents",
    "accuracy",
    "balanced_accuracy",
    "bits_per_byte",
    "clustered_standard_error",
    "compare_paired",
    "macro_average",
    "macro_difference",
    "macro_f1",
    "macro_p_value",
    "mean_interval",
    "pairwise_differences",
    "perplexity",
    "sentence",
    "variance_components",
    "wilson",
]

_HOME = {
    "Estimate": "estimate",
    "MacroDifference": "macro",
    "PairedComparison": "paired",
    "PairwiseDifferences": "pairwise",
    "VarianceComponents": "units",
    "accuracy": "labels",
    "balanced_accuracy": "labels",
    "bits_per_byte": "perplexities",
    "clustered_standard_error": "units",
    "compare_paired": "paired",
    "macro_average": "macro",
    "macro_difference": "macro",
    "macro_f1": "labels",
    "macro_p_value": "macro",
    "mean_interval": "intervals",
    "pairwise_differences": "pairwise",
    "perplexity": "perplexities",
    "sentence": "sentences",
    "variance_components": "units",
    "wilson": "intervals",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
