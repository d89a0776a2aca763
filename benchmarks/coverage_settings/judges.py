"""Judged scores, agreement and confidence: corrected means, coefficients of agreement, calibration,
contamination.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from coverage_settings.registry import F64, Setting, repeat_trials
from evalwright.statistics import (
    Estimate,
    JudgeCorrection,
    RoganGladen,
    auroc,
    brier_score,
    calibration_error,
    cohen_kappa,
    contamination_check,
    corrected_difference,
    corrected_mean,
    gwet_ac1,
    krippendorff_alpha,
    mean_interval,
    risk_coverage,
    rogan_gladen,
)

ABOUT = (
    "The 95% interval should hold what people would have said of all items, the"
    " agreement of raters on all items, or the true calibration, in 95% of the trials."
    " The judge is right in 85% and says yes to a tenth more, whatever they are."
)
Random = np.random.Generator


def _judged(rng: Random, items: int, rate: float = 0.6) -> tuple[F64, F64]:
    """People's labels, and a judge that is right in 85% and says yes to a tenth more whatever they
    are.
    """
    truth = (rng.random(items) < rate).astype(np.float64)
    verdict = np.where(rng.random(items) < 0.85, truth, 1 - truth)
    return truth, np.maximum(verdict, rng.random(items) < 0.1).astype(np.float64)


def _mask_unlabelled(truth: F64, labelled: npt.NDArray[Any]) -> F64:
    return np.where(labelled, truth, np.nan)


def _random_labels(labels: int, items: int = 2000) -> Setting:
    def make(rng: Random, trial: int) -> JudgeCorrection:
        truth, verdict = _judged(rng, items)
        return corrected_mean(
            verdict, _mask_unlabelled(truth, np.arange(items) < labels)
        )

    return Setting(f"{labels} random labels of {items}", repeat_trials(make, 0.6))


def _labels_alone(labels: int, items: int = 2000) -> Setting:
    def make(rng: Random, trial: int) -> Estimate:
        return mean_interval(_judged(rng, items)[0][:labels])

    return Setting(
        f"{labels} random labels of {items}, without the judge",
        repeat_trials(make, 0.6),
    )


def _judge_alone(items: int = 2000) -> Setting:
    def make(rng: Random, trial: int) -> Estimate:
        return mean_interval(_judged(rng, items)[1])

    return Setting(
        f"{items} verdicts, without labels", repeat_trials(make, 0.6), contrast=True
    )


def _graded_labels(labels: int, items: int = 2000) -> Setting:
    def make(rng: Random, trial: int) -> JudgeCorrection:
        truth = rng.beta(2, 2, items)
        verdict = np.clip(truth + 0.1 + rng.normal(0, 0.15, items), 0, 1)
        return corrected_mean(
            verdict, _mask_unlabelled(truth, np.arange(items) < labels)
        )

    return Setting(f"{labels} graded labels of {items}", repeat_trials(make, 0.5))


def _stratified_labels(labels: int, items: int = 2000) -> Setting:
    def make(rng: Random, trial: int) -> JudgeCorrection:
        truth, verdict = _judged(rng, items)
        place = np.zeros(items, dtype=np.int64)
        for value in (0.0, 1.0):
            mine = np.flatnonzero(verdict == value)
            place[mine] = rng.permutation(len(mine))
        return corrected_mean(
            verdict,
            _mask_unlabelled(truth, place < labels // 2),
            strata=verdict.astype(np.int64),
        )

    return Setting(
        f"{labels} labels of {items}, half of them from each verdict",
        repeat_trials(make, 0.6),
    )


def _clustered_labels(labelled: int, clusters: int = 400) -> Setting:
    ids = np.repeat(np.arange(clusters), 5)

    def make(rng: Random, trial: int) -> JudgeCorrection:
        truth = (rng.random(len(ids)) < rng.beta(3, 2, clusters)[ids]).astype(
            np.float64
        )
        verdict = np.where(rng.random(len(ids)) < 0.85, truth, 1 - truth)
        return corrected_mean(
            verdict, _mask_unlabelled(truth, ids < labelled), clusters=ids
        )

    return Setting(
        f"{labelled} labelled clusters of {clusters}, five items each",
        repeat_trials(make, 0.6),
    )


def _label_difference(labels: int, items: int = 2000) -> Setting:
    chosen = np.arange(items) < labels

    def make(rng: Random, trial: int) -> JudgeCorrection:
        truth_a, verdict_a = _judged(rng, items, 0.65)
        truth_b, verdict_b = _judged(rng, items, 0.6)
        return corrected_difference(
            verdict_a,
            _mask_unlabelled(truth_a, chosen),
            verdict_b,
            _mask_unlabelled(truth_b, chosen),
        )

    return Setting(
        f"difference of two models, {labels} labels of {items}",
        repeat_trials(make, 0.05),
    )


def _by_rates(
    rate: float,
    sensitivity: float,
    specificity: float,
    right: int,
    wrong: int,
    judged: int = 2000,
    least: float = 0.93,
) -> Setting:
    passing = rate * sensitivity + (1 - rate) * (1 - specificity)

    def make(rng: Random, trial: int) -> RoganGladen:
        passed = int(rng.binomial(judged, passing))
        good = int(rng.binomial(right, sensitivity))
        return rogan_gladen(
            passed, judged, good, right, int(rng.binomial(wrong, specificity)), wrong
        )

    return Setting(
        f"{right} right and {wrong} wrong items labelled elsewhere, {judged:,} judged,"
        f" {rate:.0%} right",
        repeat_trials(make, rate),
        least,
    )


def _agreement(
    kind: str, items: int, share: float, care: float, most: float = 0.97
) -> Setting:
    """Two raters who each report the true label with probability `care`."""
    agree = care**2 + (1 - care) ** 2
    positive_rate = share * care + (1 - share) * (1 - care)
    expected = (
        2 * positive_rate * (1 - positive_rate)
        if kind == "AC1"
        else 1 - 2 * positive_rate * (1 - positive_rate)
    )

    def make(rng: Random, trial: int) -> Estimate:
        truth = rng.random(items) < share
        table = np.where(rng.random((2, items)) < care, truth, ~truth).T.astype(
            np.float64
        )
        if kind == "kappa":
            return cohen_kappa(table[:, 0], table[:, 1], draws=1000, seed=trial)
        if kind == "alpha":
            return krippendorff_alpha(table, draws=1000, seed=trial)
        return gwet_ac1(table, draws=1000, seed=trial)

    name = f"{kind} of two raters, {items} items, {share:.0%} of one label"
    return Setting(
        name,
        repeat_trials(make, (agree - expected) / (1 - expected)),
        most=most,
        cost=2,
    )


def _stated(rng: Random, items: int, over: float) -> tuple[F64, F64]:
    """Confidence spread over [0.3, 1); answers are right as often as it says, less `over`."""
    confidence = 0.3 + 0.7 * rng.random(items)
    return confidence, (rng.random(items) < confidence - over).astype(np.float64)


def _calibration(items: int, over: float) -> Setting:
    def make(rng: Random, trial: int) -> Any:
        return calibration_error(
            *_stated(rng, items, over), bins=10, draws=500, seed=trial
        )

    return Setting(
        f"calibration error, {items} items, {over:.0%} too sure",
        repeat_trials(make, over),
        cost=2,
    )


def _brier(items: int) -> Setting:
    def make(rng: Random, trial: int) -> Estimate:
        return brier_score(*_stated(rng, items, 0.1)).score

    # E (c - y)^2 = E p(1 - p) + over^2 with p = c - over uniform on [0.2, 0.9]
    truth = 0.55 - (0.55**2 + 0.49 / 12) + 0.01
    return Setting(f"Brier score, {items} items", repeat_trials(make, truth))


def _area(items: int) -> Setting:
    def make(rng: Random, trial: int) -> Estimate:
        right = (rng.random(items) < 0.7).astype(np.float64)
        return auroc(1 / (1 + np.exp(-rng.normal(right, 1.0))), right)

    return Setting(
        f"AUROC, {items} items, 70% right", repeat_trials(make, 0.5 * math.erfc(-0.5))
    )


def _area_in_clusters(clusters: int) -> Setting:
    ids = np.repeat(np.arange(clusters), 5)

    def make(rng: Random, trial: int) -> Estimate:
        right = (rng.random(len(ids)) < rng.beta(3, 1.5, clusters)[ids]).astype(
            np.float64
        )
        shift = rng.normal(0, math.sqrt(0.5), clusters)[ids]
        logit = right + shift + rng.normal(0, math.sqrt(0.5), len(ids))
        return auroc(1 / (1 + np.exp(-logit)), right, clusters=ids)

    return Setting(
        f"AUROC, {clusters} clusters of five",
        repeat_trials(make, 0.5 * math.erfc(-0.5)),
    )


def _area_of_risk(items: int) -> Setting:
    def make(rng: Random, trial: int) -> Estimate:
        return risk_coverage(*_stated(rng, items, 0.1)).area

    # Confidence uniform on [0.3, 1): the risk above 1 - 0.7 u is 0.1 + 0.35 u, over u from 0 to 1
    # on average 0.275.
    return Setting(
        f"area under risk and coverage, {items} items",
        repeat_trials(make, 0.1 + 0.35 / 2),
    )


def _contaminated(items: int, control: int) -> Setting:
    def make(rng: Random, trial: int) -> Any:
        sides = []
        for size, before, after in ((items, 0.8, 0.65), (control, 0.6, 0.55)):
            ease = rng.random(size)
            sides += [
                ease < before,
                np.where(rng.random(size) < 0.8, ease, rng.random(size)) < after,
            ]
        return contamination_check(*(side.astype(np.float64) for side in sides))

    return Setting(
        f"excess drop, {items} items and {control} controls", repeat_trials(make, 0.1)
    )


def _contaminated_clusters(clusters: int) -> Setting:
    ids = np.repeat(np.arange(clusters), 4)
    zero = np.zeros(len(ids))

    def make(rng: Random, trial: int) -> Any:
        gaps = [
            np.clip(
                mean
                + rng.normal(0, 0.1, clusters)[ids]
                + rng.normal(0, 0.15, len(ids)),
                -1,
                1,
            )
            for mean in (0.15, 0.05)
        ]
        return contamination_check(
            gaps[0],
            zero,
            gaps[1],
            zero,
            clusters=ids,
            control_clusters=ids + clusters,
            value_range=(-1, 1),
        )

    return Setting(
        f"excess drop, {clusters} clusters of four a side", repeat_trials(make, 0.1)
    )


SETTINGS: tuple[Setting, ...] = (
    _random_labels(200),
    _labels_alone(200),
    _judge_alone(),
    _random_labels(40),
    _graded_labels(200),
    _graded_labels(40),
    _stratified_labels(200),
    _stratified_labels(40),
    _clustered_labels(40),
    _label_difference(200),
    _by_rates(0.6, 0.9, 0.8, 120, 80),
    _by_rates(0.3, 0.9, 0.8, 24, 36),
    # Known to be weak: a judge that was right on all labels seems without error, and nothing is
    # left to widen the interval.
    _by_rates(1.0, 0.95, 0.9, 50, 10, judged=300, least=0.9),
    _agreement("kappa", 100, 0.5, 0.9),
    _agreement("kappa", 200, 0.9, 0.95),
    _agreement("AC1", 60, 0.9, 0.95, most=0.98),
    _agreement("AC1", 200, 0.9, 0.95),
    _agreement("alpha", 100, 0.5, 0.9),
    _calibration(1000, 0.1),
    _calibration(300, 0.1),
    _brier(200),
    _area(50),
    _area(300),
    _area_in_clusters(40),
    _area_of_risk(100),
    _area_of_risk(500),
    _contaminated(150, 100),
    _contaminated_clusters(30),
)
