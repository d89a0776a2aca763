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
    from evalwright.statistics.agreement import (
        cohen_kappa,
        fleiss_kappa,
        gwet_ac1,
        krippendorff_alpha,
        raw_agreement,
    )
    from evalwright.statistics.asymptotic import AsymptoticSequence, asymptotic_half_width
    from evalwright.statistics.attempts import attempted_accuracy, attempted_f
    from evalwright.statistics.bradley_terry import BradleyTerry, fit_bradley_terry
    from evalwright.statistics.calibration import BrierScore, CalibrationError, brier_score, calibration_error
    from evalwright.statistics.confidence_sequences import BettingSequence, betting_sequence, cluster_totals
    from evalwright.statistics.contamination import ContaminationCheck, contamination_check
    from evalwright.statistics.draws import (
        DrawPlan,
        majority_at_k,
        pass_at_k,
        pass_hat_k,
        plan_draws,
        plurality_at_k,
    )
    from evalwright.statistics.e_values import pair_e_value
    from evalwright.statistics.equivalence import Equivalence, equivalence_mean, equivalence_paired
    from evalwright.statistics.estimate import Estimate
    from evalwright.statistics.intervals import mean_interval, wilson
    from evalwright.statistics.judge_bias import (
        DriftProbe,
        LeanProbe,
        LengthProbe,
        RepeatProbe,
        SwapProbe,
        canary_drift,
        length_bias,
        repeat_flips,
        swap_consistency,
        yes_lean,
    )
    from evalwright.statistics.judge_ceiling import JudgeAgreement, judge_agreement
    from evalwright.statistics.judge_correction import JudgeCorrection, corrected_difference, corrected_mean
    from evalwright.statistics.judge_rates import RoganGladen, rogan_gladen
    from evalwright.statistics.labelling import LabellingSet, draw_labelling_set
    from evalwright.statistics.labels import accuracy, balanced_accuracy, macro_f1
    from evalwright.statistics.macro import MacroDifference, macro_average, macro_difference, macro_p_value
    from evalwright.statistics.multiplicity import benjamini_hochberg, holm
    from evalwright.statistics.paired import PairedComparison, compare_paired
    from evalwright.statistics.pairwise import PairwiseDifferences, pairwise_differences
    from evalwright.statistics.perplexities import bits_per_byte, perplexity
    from evalwright.statistics.pooled import pooled_f1, pooled_share
    from evalwright.statistics.power import (
        Plan,
        best_draws,
        items_for_difference,
        items_for_half_width,
        plan_comparison,
        smallest_visible_difference,
    )
    from evalwright.statistics.quantile_sketch import QuantileSketch
    from evalwright.statistics.ranks import RankSets, rank_sets
    from evalwright.statistics.selection import (
        RiskCoverage,
        SelectiveAccuracy,
        accuracy_at_coverage,
        auroc,
        risk_coverage,
    )
    from evalwright.statistics.sentences import sentence
    from evalwright.statistics.simultaneous import (
        SimultaneousDifferences,
        simultaneous_differences,
        simultaneous_from_covariance,
        simultaneous_means,
    )
    from evalwright.statistics.simultaneous_unpaired import all_differences
    from evalwright.statistics.stopping import Decision, Monitor
    from evalwright.statistics.stopping_rules import Rule, parse_rule
    from evalwright.statistics.units import VarianceComponents, clustered_standard_error, variance_components
    from evalwright.statistics.unpaired import UnpairedComparison, compare_unpaired

__all__ = [
    "AsymptoticSequence",
    "BettingSequence",
    "BradleyTerry",
    "BrierScore",
    "CalibrationError",
    "ContaminationCheck",
    "Decision",
    "DrawPlan",
    "DriftProbe",
    "Equivalence",
    "Estimate",
    "JudgeAgreement",
    "JudgeCorrection",
    "LabellingSet",
    "LeanProbe",
    "LengthProbe",
    "MacroDifference",
    "Monitor",
    "PairedComparison",
    "PairwiseDifferences",
    "Plan",
    "QuantileSketch",
    "RankSets",
    "RepeatProbe",
    "RiskCoverage",
    "RoganGladen",
    "Rule",
    "SelectiveAccuracy",
    "SimultaneousDifferences",
    "SwapProbe",
    "UnpairedComparison",
    "VarianceComponents",
    "accuracy",
    "accuracy_at_coverage",
    "all_differences",
    "asymptotic_half_width",
    "attempted_accuracy",
    "attempted_f",
    "auroc",
    "balanced_accuracy",
    "benjamini_hochberg",
    "best_draws",
    "betting_sequence",
    "bits_per_byte",
    "brier_score",
    "calibration_error",
    "canary_drift",
    "cluster_totals",
    "clustered_standard_error",
    "cohen_kappa",
    "compare_paired",
    "compare_unpaired",
    "contamination_check",
    "corrected_difference",
    "corrected_mean",
    "draw_labelling_set",
    "equivalence_mean",
    "equivalence_paired",
    "fit_bradley_terry",
    "fleiss_kappa",
    "gwet_ac1",
    "holm",
    "items_for_difference",
    "items_for_half_width",
    "judge_agreement",
    "krippendorff_alpha",
    "length_bias",
    "macro_average",
    "macro_difference",
    "macro_f1",
    "macro_p_value",
    "majority_at_k",
    "mean_interval",
    "pair_e_value",
    "pairwise_differences",
    "parse_rule",
    "pass_at_k",
    "pass_hat_k",
    "perplexity",
    "plan_comparison",
    "plan_draws",
    "plurality_at_k",
    "pooled_f1",
    "pooled_share",
    "rank_sets",
    "raw_agreement",
    "repeat_flips",
    "risk_coverage",
    "rogan_gladen",
    "sentence",
    "simultaneous_differences",
    "simultaneous_from_covariance",
    "simultaneous_means",
    "smallest_visible_difference",
    "swap_consistency",
    "variance_components",
    "wilson",
    "yes_lean",
]

_HOME = {
    "AsymptoticSequence": "asymptotic",
    "BettingSequence": "confidence_sequences",
    "BradleyTerry": "bradley_terry",
    "BrierScore": "calibration",
    "CalibrationError": "calibration",
    "ContaminationCheck": "contamination",
    "Decision": "stopping",
    "DrawPlan": "draws",
    "DriftProbe": "judge_bias",
    "Equivalence": "equivalence",
    "Estimate": "estimate",
    "JudgeAgreement": "judge_ceiling",
    "JudgeCorrection": "judge_correction",
    "LabellingSet": "labelling",
    "LeanProbe": "judge_bias",
    "LengthProbe": "judge_bias",
    "MacroDifference": "macro",
    "Monitor": "stopping",
    "PairedComparison": "paired",
    "PairwiseDifferences": "pairwise",
    "QuantileSketch": "quantile_sketch",
    "Plan": "power",
    "RankSets": "ranks",
    "RepeatProbe": "judge_bias",
    "RiskCoverage": "selection",
    "RoganGladen": "judge_rates",
    "Rule": "stopping_rules",
    "SelectiveAccuracy": "selection",
    "SimultaneousDifferences": "simultaneous",
    "SwapProbe": "judge_bias",
    "UnpairedComparison": "unpaired",
    "VarianceComponents": "units",
    "accuracy": "labels",
    "accuracy_at_coverage": "selection",
    "all_differences": "simultaneous_unpaired",
    "asymptotic_half_width": "asymptotic",
    "attempted_accuracy": "attempts",
    "attempted_f": "attempts",
    "auroc": "selection",
    "balanced_accuracy": "labels",
    "benjamini_hochberg": "multiplicity",
    "best_draws": "power",
    "betting_sequence": "confidence_sequences",
    "bits_per_byte": "perplexities",
    "brier_score": "calibration",
    "calibration_error": "calibration",
    "canary_drift": "judge_bias",
    "cluster_totals": "confidence_sequences",
    "clustered_standard_error": "units",
    "cohen_kappa": "agreement",
    "compare_paired": "paired",
    "compare_unpaired": "unpaired",
    "contamination_check": "contamination",
    "corrected_difference": "judge_correction",
    "corrected_mean": "judge_correction",
    "draw_labelling_set": "labelling",
    "equivalence_mean": "equivalence",
    "equivalence_paired": "equivalence",
    "fit_bradley_terry": "bradley_terry",
    "fleiss_kappa": "agreement",
    "gwet_ac1": "agreement",
    "holm": "multiplicity",
    "items_for_difference": "power",
    "items_for_half_width": "power",
    "judge_agreement": "judge_ceiling",
    "krippendorff_alpha": "agreement",
    "length_bias": "judge_bias",
    "macro_average": "macro",
    "macro_difference": "macro",
    "macro_f1": "labels",
    "macro_p_value": "macro",
    "majority_at_k": "draws",
    "mean_interval": "intervals",
    "pair_e_value": "e_values",
    "pairwise_differences": "pairwise",
    "parse_rule": "stopping_rules",
    "pass_at_k": "draws",
    "pass_hat_k": "draws",
    "perplexity": "perplexities",
    "plan_comparison": "power",
    "plan_draws": "draws",
    "plurality_at_k": "draws",
    "pooled_f1": "pooled",
    "pooled_share": "pooled",
    "rank_sets": "ranks",
    "raw_agreement": "agreement",
    "repeat_flips": "judge_bias",
    "risk_coverage": "selection",
    "rogan_gladen": "judge_rates",
    "sentence": "sentences",
    "simultaneous_differences": "simultaneous",
    "simultaneous_from_covariance": "simultaneous",
    "simultaneous_means": "simultaneous",
    "smallest_visible_difference": "power",
    "swap_consistency": "judge_bias",
    "variance_components": "units",
    "wilson": "intervals",
    "yes_lean": "judge_bias",
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
