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
    from evalwright.statistics.bradley_terry import BradleyTerry, fit_bradley_terry
    from evalwright.statistics.draws import (
        DrawPlan,
        majority_at_k,
        pass_at_k,
        pass_hat_k,
        plan_draws,
        plurality_at_k,
    )
    from evalwright.statistics.equivalence import Equivalence, equivalence_mean, equivalence_paired
    from evalwright.statistics.estimate import Estimate
    from evalwright.statistics.intervals import mean_interval, wilson
    from evalwright.statistics.labels import accuracy, balanced_accuracy, macro_f1
    from evalwright.statistics.macro import MacroDifference, macro_average, macro_difference, macro_p_value
    from evalwright.statistics.multiplicity import benjamini_hochberg, holm
    from evalwright.statistics.paired import PairedComparison, compare_paired
    from evalwright.statistics.pairwise import PairwiseDifferences, pairwise_differences
    from evalwright.statistics.perplexities import bits_per_byte, perplexity
    from evalwright.statistics.ranks import RankSets, rank_sets
    from evalwright.statistics.sentences import sentence
    from evalwright.statistics.simultaneous import (
        SimultaneousDifferences,
        simultaneous_differences,
        simultaneous_from_covariance,
        simultaneous_means,
    )
    from evalwright.statistics.units import VarianceComponents, clustered_standard_error, variance_components
    from evalwright.statistics.unpaired import UnpairedComparison, compare_unpaired

__all__ = [
    "BradleyTerry",
    "DrawPlan",
    "Equivalence",
    "Estimate",
    "MacroDifference",
    "PairedComparison",
    "PairwiseDifferences",
    "RankSets",
    "SimultaneousDifferences",
    "UnpairedComparison",
    "VarianceComponents",
    "accuracy",
    "balanced_accuracy",
    "benjamini_hochberg",
    "bits_per_byte",
    "clustered_standard_error",
    "compare_paired",
    "compare_unpaired",
    "equivalence_mean",
    "equivalence_paired",
    "fit_bradley_terry",
    "holm",
    "macro_average",
    "macro_difference",
    "macro_f1",
    "macro_p_value",
    "majority_at_k",
    "mean_interval",
    "pairwise_differences",
    "pass_at_k",
    "pass_hat_k",
    "perplexity",
    "plan_draws",
    "plurality_at_k",
    "rank_sets",
    "sentence",
    "simultaneous_differences",
    "simultaneous_from_covariance",
    "simultaneous_means",
    "variance_components",
    "wilson",
]

_HOME = {
    "BradleyTerry": "bradley_terry",
    "DrawPlan": "draws",
    "Equivalence": "equivalence",
    "Estimate": "estimate",
    "MacroDifference": "macro",
    "PairedComparison": "paired",
    "PairwiseDifferences": "pairwise",
    "RankSets": "ranks",
    "SimultaneousDifferences": "simultaneous",
    "UnpairedComparison": "unpaired",
    "VarianceComponents": "units",
    "accuracy": "labels",
    "balanced_accuracy": "labels",
    "benjamini_hochberg": "multiplicity",
    "bits_per_byte": "perplexities",
    "clustered_standard_error": "units",
    "compare_paired": "paired",
    "compare_unpaired": "unpaired",
    "equivalence_mean": "equivalence",
    "equivalence_paired": "equivalence",
    "fit_bradley_terry": "bradley_terry",
    "holm": "multiplicity",
    "macro_average": "macro",
    "macro_difference": "macro",
    "macro_f1": "labels",
    "macro_p_value": "macro",
    "majority_at_k": "draws",
    "mean_interval": "intervals",
    "pairwise_differences": "pairwise",
    "pass_at_k": "draws",
    "pass_hat_k": "draws",
    "perplexity": "perplexities",
    "plan_draws": "draws",
    "plurality_at_k": "draws",
    "rank_sets": "ranks",
    "sentence": "sentences",
    "simultaneous_differences": "simultaneous",
    "simultaneous_from_covariance": "simultaneous",
    "simultaneous_means": "simultaneous",
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
