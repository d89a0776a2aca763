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
    from evalwright.statistics.asymptotic import AsymptoticSequence, asymptotic_half_width
    from evalwright.statistics.confidence_sequences import BettingSequence, betting_sequence, cluster_totals
    from evalwright.statistics.e_values import pair_e_value
    from evalwright.statistics.estimate import Estimate
    from evalwright.statistics.intervals import mean_interval, wilson
    from evalwright.statistics.labels import accuracy, balanced_accuracy, macro_f1
    from evalwright.statistics.macro import MacroDifference, macro_average, macro_difference, macro_p_value
    from evalwright.statistics.paired import PairedComparison, compare_paired
    from evalwright.statistics.pairwise import PairwiseDifferences, pairwise_differences
    from evalwright.statistics.perplexities import bits_per_byte, perplexity
    from evalwright.statistics.power import (
        Plan,
        best_draws,
        items_for_difference,
        items_for_half_width,
        plan_comparison,
        smallest_visible_difference,
    )
    from evalwright.statistics.sentences import sentence
    from evalwright.statistics.stopping import Decision, Monitor
    from evalwright.statistics.stopping_rules import Rule, parse_rule
    from evalwright.statistics.units import VarianceComponents, clustered_standard_error, variance_components

__all__ = [
    "AsymptoticSequence",
    "BettingSequence",
    "Decision",
    "Estimate",
    "MacroDifference",
    "Monitor",
    "PairedComparison",
    "PairwiseDifferences",
    "Plan",
    "Rule",
    "VarianceComponents",
    "accuracy",
    "asymptotic_half_width",
    "balanced_accuracy",
    "best_draws",
    "betting_sequence",
    "bits_per_byte",
    "cluster_totals",
    "clustered_standard_error",
    "compare_paired",
    "items_for_difference",
    "items_for_half_width",
    "macro_average",
    "macro_difference",
    "macro_f1",
    "macro_p_value",
    "mean_interval",
    "pair_e_value",
    "pairwise_differences",
    "parse_rule",
    "perplexity",
    "plan_comparison",
    "sentence",
    "smallest_visible_difference",
    "variance_components",
    "wilson",
]

_HOME = {
    "AsymptoticSequence": "asymptotic",
    "BettingSequence": "confidence_sequences",
    "Decision": "stopping",
    "Estimate": "estimate",
    "MacroDifference": "macro",
    "Monitor": "stopping",
    "PairedComparison": "paired",
    "PairwiseDifferences": "pairwise",
    "Plan": "power",
    "Rule": "stopping_rules",
    "VarianceComponents": "units",
    "accuracy": "labels",
    "asymptotic_half_width": "asymptotic",
    "balanced_accuracy": "labels",
    "best_draws": "power",
    "betting_sequence": "confidence_sequences",
    "bits_per_byte": "perplexities",
    "cluster_totals": "confidence_sequences",
    "clustered_standard_error": "units",
    "compare_paired": "paired",
    "items_for_difference": "power",
    "items_for_half_width": "power",
    "macro_average": "macro",
    "macro_difference": "macro",
    "macro_f1": "labels",
    "macro_p_value": "macro",
    "mean_interval": "intervals",
    "pair_e_value": "e_values",
    "pairwise_differences": "pairwise",
    "parse_rule": "stopping_rules",
    "perplexity": "perplexities",
    "plan_comparison": "power",
    "sentence": "sentences",
    "smallest_visible_difference": "power",
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
