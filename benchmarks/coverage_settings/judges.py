"""Settings that test whether the intervals of judged scores, agreement and confidence cover what they say.

Each setting draws data whose truth is known, `repetitions` times, and returns one row: how often the interval held the
truth, how wide it was on average, and the simulation's own standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from evalwright.statistics.agreement import cohen_kappa, gwet_ac1, krippendorff_alpha
from evalwright.statistics.calibration import brier_score, calibration_error
from evalwright.statistics.contamination import contamination_check
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.judge_correction import corrected_difference, corrected_mean
from evalwright.statistics.judge_rates import rogan_gladen
from evalwright.statistics.selection import auroc, risk_coverage

F64 = npt.NDArray[np.float64]
Setting = Callable[[np.random.Generator, int], dict[str, object]]
LEVEL = 0.95


def _row(what: str, truth: float, found: list[Any]) -> dict[str, object]:
    held = float(np.mean([one.low <= truth <= one.high for one in found]))
    return {
        "what": what,
        "truth": truth,
        "level": LEVEL,
        "coverage": held,
        "simulation_error": math.sqrt(held * (1 - held) / len(found)),
        "width": float(np.mean([one.high - one.low for one in found])),
        "repetitions": len(found),
    }


def _judged(rng: np.random.Generator, items: int, rate: float = 0.6) -> tuple[F64, F64]:
    """People's labels, and a judge that is right in 85% and says yes to a tenth more whatever they are."""
    truth = (rng.random(items) < rate).astype(np.float64)
    verdict = np.where(rng.random(items) < 0.85, truth, 1 - truth)
    return truth, np.maximum(verdict, rng.random(items) < 0.1).astype(np.float64)


def _shown(truth: F64, labelled: npt.NDArray[Any]) -> F64:
    return np.where(labelled, truth, np.nan)


def ppi_random(labels: int, items: int = 2000) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = []
        for _ in range(repetitions):
            truth, verdict = _judged(rng, items)
            found.append(corrected_mean(verdict, _shown(truth, np.arange(items) < labels)))
        return _row(f"PPI++, {labels} random labels of {items}, biased judge", 0.6, found)

    return setting


def ppi_graded(labels: int, items: int = 2000) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = []
        for _ in range(repetitions):
            truth = rng.beta(2, 2, items)
            verdict = np.clip(truth + 0.1 + rng.normal(0, 0.15, items), 0, 1)
            found.append(corrected_mean(verdict, _shown(truth, np.arange(items) < labels)))
        return _row(f"PPI++, {labels} graded labels of {items}", 0.5, found)

    return setting


def ppi_weighted(labels: int, items: int = 2000) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = []
        for _ in range(repetitions):
            truth, verdict = _judged(rng, items)
            chance = np.where(verdict == 1, 0.7, 1.5) * (0.5 + rng.random(items))
            chance *= labels / chance.sum()
            found.append(
                corrected_mean(verdict, _shown(truth, rng.random(items) < chance), probabilities=chance)
            )
        return _row(f"PPI++, about {labels} labels of {items} with unequal chances", 0.6, found)

    return setting


def ppi_stratified(labels: int, items: int = 2000) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = []
        for _ in range(repetitions):
            truth, verdict = _judged(rng, items)
            place = np.zeros(items, dtype=np.int64)
            for value in (0.0, 1.0):
                mine = np.flatnonzero(verdict == value)
                place[mine] = rng.permutation(len(mine))
            strata = verdict.astype(np.int64)
            found.append(corrected_mean(verdict, _shown(truth, place < labels // 2), strata=strata))
        return _row(f"PPI++, {labels} of {items}, half of them from each verdict", 0.6, found)

    return setting


def ppi_clustered(labelled: int, clusters: int = 400) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        ids = np.repeat(np.arange(clusters), 5)
        found = []
        for _ in range(repetitions):
            truth = (rng.random(5 * clusters) < rng.beta(3, 2, clusters)[ids]).astype(np.float64)
            verdict = np.where(rng.random(5 * clusters) < 0.85, truth, 1 - truth)
            found.append(corrected_mean(verdict, _shown(truth, ids < labelled), clusters=ids))
        return _row(f"PPI++, {labelled} labelled clusters of {clusters}, five items each", 0.6, found)

    return setting


def ppi_difference(labels: int, items: int = 2000) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = []
        for _ in range(repetitions):
            truth_a, verdict_a = _judged(rng, items, 0.65)
            truth_b, verdict_b = _judged(rng, items, 0.6)
            chosen = np.arange(items) < labels
            found.append(
                corrected_difference(verdict_a, _shown(truth_a, chosen), verdict_b, _shown(truth_b, chosen))
            )
        return _row(f"PPI++ difference of two models, {labels} labels of {items}", 0.05, found)

    return setting


def corrected_by_rates(
    rate: float, sensitivity: float, specificity: float, right: int, wrong: int
) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        passing = rate * sensitivity + (1 - rate) * (1 - specificity)
        found = [
            rogan_gladen(
                int(rng.binomial(2000, passing)), 2000, int(rng.binomial(right, sensitivity)), right,
                int(rng.binomial(wrong, specificity)), wrong,
            )
            for _ in range(repetitions)
        ]  # fmt: skip
        return _row(f"Rogan-Gladen, {right} right and {wrong} wrong labelled", rate, found)

    return setting


def _raters(rng: np.random.Generator, items: int, share: float, care: float) -> F64:
    """Two raters who each see the truth (a share of ones) with chance `care`."""
    truth = rng.random(items) < share
    return np.where(rng.random((2, items)) < care, truth, ~truth).T.astype(np.float64)


def agreement_of_two(kind: str, items: int, share: float, care: float) -> Setting:
    agree = care**2 + (1 - care) ** 2
    one = share * care + (1 - share) * (1 - care)
    expected = {
        "kappa": 1 - 2 * one * (1 - one),
        "ac1": 2 * one * (1 - one),
        "alpha": 1 - 2 * one * (1 - one),
    }[kind]
    truth = (agree - expected) / (1 - expected)

    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found: list[Estimate] = []
        for turn in range(repetitions):
            table = _raters(rng, items, share, care)
            if kind == "kappa":
                found.append(cohen_kappa(table[:, 0], table[:, 1], draws=1000, seed=turn))
            elif kind == "ac1":
                found.append(gwet_ac1(table, draws=1000, seed=turn))
            else:
                found.append(krippendorff_alpha(table, draws=1000, seed=turn))
        return _row(f"{kind} of two raters, {items} items, {share:.0%} of one label", truth, found)

    return setting


def _stated(rng: np.random.Generator, items: int, over: float) -> tuple[F64, F64]:
    """Confidence spread over [0.3, 1), and right answers as often as confidence less `over` says."""
    confidence = 0.3 + 0.7 * rng.random(items)
    return confidence, (rng.random(items) < confidence - over).astype(np.float64)


def calibration_gap(items: int, over: float) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = [
            calibration_error(*_stated(rng, items, over), bins=10, draws=500, seed=turn)
            for turn in range(repetitions)
        ]
        return _row(f"ECE, {items} items, {over:.0%} too sure", over, found)

    return setting


def brier(items: int) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = [brier_score(*_stated(rng, items, 0.1)).score for _ in range(repetitions)]
        # E (c - y)^2 = E p(1 - p) + over^2 with p = c - over uniform on [0.2, 0.9]
        truth = 0.55 - (0.55**2 + 0.49 / 12) + 0.01
        return _row(f"Brier score, {items} items", truth, found)

    return setting


def _two_normals(rng: np.random.Generator, items: int) -> tuple[F64, F64]:
    right = (rng.random(items) < 0.7).astype(np.float64)
    return 1 / (1 + np.exp(-rng.normal(right, 1.0))), right


def area_under_curve(items: int) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = [auroc(*_two_normals(rng, items)) for _ in range(repetitions)]
        return _row(f"AUROC, {items} items, 70% right", 0.5 * math.erfc(-0.5), found)

    return setting


def area_clustered(clusters: int) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        ids = np.repeat(np.arange(clusters), 5)
        found = []
        for _ in range(repetitions):
            right = (rng.random(len(ids)) < rng.beta(3, 1.5, clusters)[ids]).astype(np.float64)
            shift = rng.normal(0, math.sqrt(0.5), clusters)[ids]
            logit = right + shift + rng.normal(0, math.sqrt(0.5), len(ids))
            found.append(auroc(1 / (1 + np.exp(-logit)), right, clusters=ids))
        return _row(f"AUROC, {clusters} clusters of five", 0.5 * math.erfc(-0.5), found)

    return setting


def area_of_risk(items: int) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        # Confidence uniform on [0.3, 1): the risk above 1 - 0.7 u is 0.1 + 0.35 u, over u from 0 to 1 on average 0.275.
        found = [risk_coverage(*_stated(rng, items, 0.1)).area for _ in range(repetitions)]
        return _row(f"AURC, {items} items", 0.1 + 0.35 / 2, found)

    return setting


def contaminated(items: int, control: int) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        found = []
        for _ in range(repetitions):
            sides = []
            for size, before, after in ((items, 0.8, 0.65), (control, 0.6, 0.55)):
                ease = rng.random(size)
                sides += [ease < before, np.where(rng.random(size) < 0.8, ease, rng.random(size)) < after]
            found.append(contamination_check(*(side.astype(np.float64) for side in sides)))
        return _row(f"difference in differences, {items} items and {control} controls", 0.1, found)

    return setting


def contaminated_clusters(clusters: int) -> Setting:
    def setting(rng: np.random.Generator, repetitions: int) -> dict[str, object]:
        ids = np.repeat(np.arange(clusters), 4)
        found = []
        for _ in range(repetitions):
            gaps = [
                np.clip(mean + rng.normal(0, 0.1, clusters)[ids] + rng.normal(0, 0.15, len(ids)), -1, 1)
                for mean in (0.15, 0.05)
            ]
            zero = np.zeros(len(ids))
            found.append(
                contamination_check(
                    gaps[0],
                    zero,
                    gaps[1],
                    zero,
                    clusters=ids,
                    control_clusters=ids + clusters,
                    value_range=(-1, 1),
                )
            )
        return _row(f"difference in differences, {clusters} clusters of four a side", 0.1, found)

    return setting


SETTINGS: dict[str, Setting] = {
    "ppi_200_of_2000": ppi_random(200),
    "ppi_40_of_2000": ppi_random(40),
    "ppi_graded_200": ppi_graded(200),
    "ppi_graded_40": ppi_graded(40),
    "ppi_weighted_200": ppi_weighted(200),
    "ppi_stratified_200": ppi_stratified(200),
    "ppi_stratified_40": ppi_stratified(40),
    "ppi_clusters_40": ppi_clustered(40),
    "ppi_difference_200": ppi_difference(200),
    "rogan_gladen_200": corrected_by_rates(0.6, 0.9, 0.8, 120, 80),
    "rogan_gladen_small": corrected_by_rates(0.3, 0.9, 0.8, 24, 36),
    "kappa_100": agreement_of_two("kappa", 100, 0.5, 0.9),
    "kappa_skewed_200": agreement_of_two("kappa", 200, 0.9, 0.95),
    "ac1_60": agreement_of_two("ac1", 60, 0.9, 0.95),
    "ac1_200": agreement_of_two("ac1", 200, 0.9, 0.95),
    "alpha_100": agreement_of_two("alpha", 100, 0.5, 0.9),
    "ece_1000": calibration_gap(1000, 0.1),
    "ece_300": calibration_gap(300, 0.1),
    "brier_200": brier(200),
    "auroc_50": area_under_curve(50),
    "auroc_300": area_under_curve(300),
    "auroc_clusters_40": area_clustered(40),
    "aurc_100": area_of_risk(100),
    "aurc_500": area_of_risk(500),
    "contamination_150": contaminated(150, 100),
    "contamination_clusters_30": contaminated_clusters(30),
}
