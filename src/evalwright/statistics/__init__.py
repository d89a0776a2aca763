"""Statistics with their uncertainty: arrays in, small typed results out.

Nothing here does any I/O or knows what a run or a task is. Every result says how many items it
is based on, how many are missing, its interval and the method used. Three rules hold
everywhere:

* the unit is the item (or the cluster of items that belong together), never a repeated draw;
* a zero-width interval is never shown as certainty: where the data have no spread, a
  conservative bound is used and named;
* a missing item is not a wrong one: it is left out, counted beside the estimate, and bounded
  for those who want the worst case.

The names below load their module (and NumPy) on first use.
"""

from typing import TYPE_CHECKING

from evalwright.core.lazy import lazy_names

if TYPE_CHECKING:
    from evalwright.statistics.agreement import (
        JudgeAgreement,
        cohen_kappa,
        gwet_ac1,
        judge_agreement,
        krippendorff_alpha,
        raw_agreement,
    )
    from evalwright.statistics.calibration import (
        BrierScore,
        CalibrationError,
        RiskCoverage,
        SelectiveAccuracy,
        accuracy_at_coverage,
        auroc,
        brier_score,
        calibration_error,
        risk_coverage,
    )
    from evalwright.statistics.contamination import (
        ContaminationCheck,
        contamination_check,
    )
    from evalwright.statistics.estimate import Estimate
    from evalwright.statistics.intervals import mean_interval, wilson
    from evalwright.statistics.judge_bias import (
        AcquiescenceProbe,
        LengthProbe,
        RepeatProbe,
        SwapProbe,
        acquiescence_bias,
        length_bias,
        repeat_flips,
        swap_consistency,
    )
    from evalwright.statistics.judge_correction import (
        JudgeCorrection,
        RoganGladen,
        corrected_difference,
        corrected_mean,
        rogan_gladen,
    )
    from evalwright.statistics.labelling import draw_labelling_set
    from evalwright.statistics.labels import (
        balanced_accuracy,
        macro_f1,
        null_weighted_f1,
    )
    from evalwright.statistics.macro import (
        MacroDifference,
        macro_average,
        macro_difference,
    )
    from evalwright.statistics.many_models import (
        AllDifferences,
        all_differences,
        rank_sets,
        simultaneous_means,
    )
    from evalwright.statistics.multiplicity import benjamini_hochberg, holm
    from evalwright.statistics.paired import (
        PairedComparison,
        compare_paired,
        equivalence_paired,
    )
    from evalwright.statistics.power import (
        items_for_difference,
        items_for_half_width,
        smallest_visible_difference,
    )
    from evalwright.statistics.stopping import Decision, Monitor
    from evalwright.statistics.stopping_rules import Rule, parse_rule
    from evalwright.statistics.sums import (
        attempted_accuracy,
        attempted_f,
        bits_per_byte,
        perplexity,
        pooled_f1,
        pooled_share,
    )
    from evalwright.statistics.unpaired import UnpairedComparison, compare_unpaired

_NAMES = {
    "agreement": (
        "JudgeAgreement cohen_kappa gwet_ac1 judge_agreement krippendorff_alpha"
        " raw_agreement"
    ),
    "calibration": (
        "BrierScore CalibrationError RiskCoverage SelectiveAccuracy"
        " accuracy_at_coverage auroc brier_score calibration_error risk_coverage"
    ),
    "contamination": "ContaminationCheck contamination_check",
    "estimate": "Estimate",
    "intervals": "mean_interval wilson",
    "judge_bias": (
        "AcquiescenceProbe LengthProbe RepeatProbe SwapProbe acquiescence_bias"
        " length_bias repeat_flips swap_consistency"
    ),
    "judge_correction": (
        "JudgeCorrection RoganGladen corrected_difference corrected_mean rogan_gladen"
    ),
    "labelling": "draw_labelling_set",
    "labels": "balanced_accuracy macro_f1 null_weighted_f1",
    "macro": "MacroDifference macro_average macro_difference",
    "many_models": "AllDifferences all_differences rank_sets simultaneous_means",
    "multiplicity": "benjamini_hochberg holm",
    "paired": "PairedComparison compare_paired equivalence_paired",
    "power": "items_for_difference items_for_half_width smallest_visible_difference",
    "stopping": "Decision Monitor",
    "stopping_rules": "Rule parse_rule",
    "sums": (
        "attempted_accuracy attempted_f bits_per_byte perplexity pooled_f1 pooled_share"
    ),
    "unpaired": "UnpairedComparison compare_unpaired",
}

__all__ = [
    "AcquiescenceProbe",
    "AllDifferences",
    "BrierScore",
    "CalibrationError",
    "ContaminationCheck",
    "Decision",
    "Estimate",
    "JudgeAgreement",
    "JudgeCorrection",
    "LengthProbe",
    "MacroDifference",
    "Monitor",
    "PairedComparison",
    "RepeatProbe",
    "RiskCoverage",
    "RoganGladen",
    "Rule",
    "SelectiveAccuracy",
    "SwapProbe",
    "UnpairedComparison",
    "accuracy_at_coverage",
    "acquiescence_bias",
    "all_differences",
    "attempted_accuracy",
    "attempted_f",
    "auroc",
    "balanced_accuracy",
    "benjamini_hochberg",
    "bits_per_byte",
    "brier_score",
    "calibration_error",
    "cohen_kappa",
    "compare_paired",
    "compare_unpaired",
    "contamination_check",
    "corrected_difference",
    "corrected_mean",
    "draw_labelling_set",
    "equivalence_paired",
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
    "mean_interval",
    "null_weighted_f1",
    "parse_rule",
    "perplexity",
    "pooled_f1",
    "pooled_share",
    "rank_sets",
    "raw_agreement",
    "repeat_flips",
    "risk_coverage",
    "rogan_gladen",
    "simultaneous_means",
    "smallest_visible_difference",
    "swap_consistency",
    "wilson",
]

__getattr__, __dir__ = lazy_names(__name__, _NAMES)
