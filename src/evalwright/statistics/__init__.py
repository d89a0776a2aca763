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
    from evalwright.statistics.agreement import cohen_kappa as cohen_kappa
    from evalwright.statistics.agreement import gwet_ac1 as gwet_ac1
    from evalwright.statistics.agreement import krippendorff_alpha as krippendorff_alpha
    from evalwright.statistics.agreement import raw_agreement as raw_agreement
    from evalwright.statistics.attempts import attempted_accuracy as attempted_accuracy
    from evalwright.statistics.attempts import attempted_f as attempted_f
    from evalwright.statistics.calibration import BrierScore as BrierScore
    from evalwright.statistics.calibration import CalibrationError as CalibrationError
    from evalwright.statistics.calibration import brier_score as brier_score
    from evalwright.statistics.calibration import calibration_error as calibration_error
    from evalwright.statistics.contamination import ContaminationCheck as ContaminationCheck
    from evalwright.statistics.contamination import contamination_check as contamination_check
    from evalwright.statistics.equivalence import equivalence_paired as equivalence_paired
    from evalwright.statistics.estimate import Estimate as Estimate
    from evalwright.statistics.intervals import mean_interval as mean_interval
    from evalwright.statistics.intervals import wilson as wilson
    from evalwright.statistics.judge_bias import AcquiescenceProbe as AcquiescenceProbe
    from evalwright.statistics.judge_bias import LengthProbe as LengthProbe
    from evalwright.statistics.judge_bias import RepeatProbe as RepeatProbe
    from evalwright.statistics.judge_bias import SwapProbe as SwapProbe
    from evalwright.statistics.judge_bias import acquiescence_bias as acquiescence_bias
    from evalwright.statistics.judge_bias import length_bias as length_bias
    from evalwright.statistics.judge_bias import repeat_flips as repeat_flips
    from evalwright.statistics.judge_bias import swap_consistency as swap_consistency
    from evalwright.statistics.judge_ceiling import JudgeAgreement as JudgeAgreement
    from evalwright.statistics.judge_ceiling import judge_agreement as judge_agreement
    from evalwright.statistics.judge_correction import JudgeCorrection as JudgeCorrection
    from evalwright.statistics.judge_correction import corrected_difference as corrected_difference
    from evalwright.statistics.judge_correction import corrected_mean as corrected_mean
    from evalwright.statistics.judge_rates import RoganGladen as RoganGladen
    from evalwright.statistics.judge_rates import rogan_gladen as rogan_gladen
    from evalwright.statistics.labelling import draw_labelling_set as draw_labelling_set
    from evalwright.statistics.labels import balanced_accuracy as balanced_accuracy
    from evalwright.statistics.labels import macro_f1 as macro_f1
    from evalwright.statistics.macro import MacroDifference as MacroDifference
    from evalwright.statistics.macro import macro_average as macro_average
    from evalwright.statistics.macro import macro_difference as macro_difference
    from evalwright.statistics.multiplicity import holm as holm
    from evalwright.statistics.paired import PairedComparison as PairedComparison
    from evalwright.statistics.paired import compare_paired as compare_paired
    from evalwright.statistics.perplexities import bits_per_byte as bits_per_byte
    from evalwright.statistics.perplexities import perplexity as perplexity
    from evalwright.statistics.pooled import pooled_f1 as pooled_f1
    from evalwright.statistics.pooled import pooled_share as pooled_share
    from evalwright.statistics.power import items_for_difference as items_for_difference
    from evalwright.statistics.power import items_for_half_width as items_for_half_width
    from evalwright.statistics.power import smallest_visible_difference as smallest_visible_difference
    from evalwright.statistics.ranks import rank_sets as rank_sets
    from evalwright.statistics.selection import RiskCoverage as RiskCoverage
    from evalwright.statistics.selection import SelectiveAccuracy as SelectiveAccuracy
    from evalwright.statistics.selection import accuracy_at_coverage as accuracy_at_coverage
    from evalwright.statistics.selection import auroc as auroc
    from evalwright.statistics.selection import risk_coverage as risk_coverage
    from evalwright.statistics.simultaneous import SimultaneousDifferences as SimultaneousDifferences
    from evalwright.statistics.simultaneous import simultaneous_means as simultaneous_means
    from evalwright.statistics.simultaneous_unpaired import all_differences as all_differences
    from evalwright.statistics.stopping import Decision as Decision
    from evalwright.statistics.stopping import Monitor as Monitor
    from evalwright.statistics.stopping_rules import Rule as Rule
    from evalwright.statistics.stopping_rules import parse_rule as parse_rule
    from evalwright.statistics.unpaired import UnpairedComparison as UnpairedComparison
    from evalwright.statistics.unpaired import compare_unpaired as compare_unpaired

_NAMES = {
    "agreement": "cohen_kappa gwet_ac1 krippendorff_alpha raw_agreement",
    "attempts": "attempted_accuracy attempted_f",
    "calibration": "BrierScore CalibrationError brier_score calibration_error",
    "contamination": "ContaminationCheck contamination_check",
    "equivalence": "equivalence_paired",
    "estimate": "Estimate",
    "intervals": "mean_interval wilson",
    "judge_bias": "AcquiescenceProbe LengthProbe RepeatProbe SwapProbe acquiescence_bias length_bias repeat_flips swap_consistency",
    "judge_ceiling": "JudgeAgreement judge_agreement",
    "judge_correction": "JudgeCorrection corrected_difference corrected_mean",
    "judge_rates": "RoganGladen rogan_gladen",
    "labelling": "draw_labelling_set",
    "labels": "balanced_accuracy macro_f1",
    "macro": "MacroDifference macro_average macro_difference",
    "multiplicity": "holm",
    "paired": "PairedComparison compare_paired",
    "perplexities": "bits_per_byte perplexity",
    "pooled": "pooled_f1 pooled_share",
    "power": "items_for_difference items_for_half_width smallest_visible_difference",
    "ranks": "rank_sets",
    "selection": "RiskCoverage SelectiveAccuracy accuracy_at_coverage auroc risk_coverage",
    "simultaneous": "SimultaneousDifferences simultaneous_means",
    "simultaneous_unpaired": "all_differences",
    "stopping": "Decision Monitor",
    "stopping_rules": "Rule parse_rule",
    "unpaired": "UnpairedComparison compare_unpaired",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
