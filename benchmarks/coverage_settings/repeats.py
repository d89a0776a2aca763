"""Repeats, slices, samples of tasks: what a plan predicts, how many findings among many slices are
false, other tasks.

The settings are of three kinds: a plan's prediction against comparisons that were then made, false
findings over many slices, and the mean over tasks that are a sample.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from coverage_settings.registry import F64, Covered, Setting
from coverage_settings.trial import pairs_at_once
from evalwright.statistics import compare_paired
from evalwright.statistics.designs import Design, variance_parts
from evalwright.statistics.macro import macro_difference
from evalwright.statistics.multiplicity import (
    Adjustment,
    adjusted_p_values,
    interval_level,
)
from evalwright.statistics.paired import paired_differences
from evalwright.statistics.task_sample import (
    all_sampled_differences,
    sampled_difference,
)

ABOUT = (
    "A plan made from runs of two models should name the items with which a comparison"
    " sees their difference in 80% of the trials, whatever the repeats (77 to 83%; its"
    " interval's half width is in the note, as predicted and as simulated). Of slices:"
    " 1 - the mean share of false findings, which Benjamini-Hochberg keeps at 95% or"
    " more, or for Holm the share of trials without any false one; and the share of"
    " intervals of findings that hold their truth. Of tasks: the interval of the mean"
    " over tasks should hold the mean of all such tasks."
)
Run = Callable[[int, int], Covered]
Ids = npt.NDArray[np.int64] | None


def _answers(
    rng: np.random.Generator, n: int, draws: int, gap: float, cluster: int = 0
) -> tuple[F64, F64]:
    """Right-or-wrong answers (n, draws) of two models, whose logits differ by `gap` on average and
    vary over items.
    """
    base = rng.normal(0.6, 1.4, n)
    if cluster:
        base = rng.normal(0.6, 1.0, n) + np.repeat(
            rng.normal(0, 1, n // cluster), cluster
        )
    a, b = (
        (
            rng.random((n, draws))
            < (1 / (1 + np.exp(-base - rng.normal(more, 0.8, n))))[:, None]
        ).astype(float)
        for more in (gap, 0.0)
    )
    return a, b


def _planned(pilot_repeats: int, repeats: int, gap: float, cluster: int = 0) -> Setting:
    """The power of a comparison planned for 80%.

    The number of items for `repeats` is planned from runs of 40,000 items with `pilot_repeats`.
    """

    def ids(n: int) -> Ids:
        return np.arange(n) // cluster if cluster else None

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        a, b = _answers(rng, 200_000, 1, gap, cluster)
        truth = float(a.mean() - b.mean())
        a, b = _answers(rng, 40_000, pilot_repeats, gap, cluster)
        pairs = paired_differences(a.mean(axis=1), b.mean(axis=1), clusters=ids(40_000))
        parts = variance_parts(a[:, None], b[:, None], clusters=ids(40_000))
        design = Design(pairs, 40_000, parts=parts)
        n = design.items_for(truth, repeats) or 2
        n = -(-n // cluster) * cluster if cluster else n
        hits = np.zeros(trials, dtype=bool)
        widths = np.zeros(trials)
        for trial in range(trials):
            x, y = _answers(rng, n, repeats, gap, cluster)
            comparison = compare_paired(x, y, clusters=ids(n))
            hits[trial], widths[trial] = (
                comparison.low > 0,
                comparison.high - comparison.low,
            )
        note = (
            f"n = {n}; half width {design.half_width(n, repeats):.4f} predicted,"
            f" {widths.mean() / 2:.4f} simulated"
        )
        return Covered(hits, widths, "power of the planned comparison", note)

    cluster_note = f", clusters of {cluster}" if cluster else ""
    name = f"plan from {pilot_repeats} repeats for {repeats}{cluster_note}, logits {gap:g} apart"
    return Setting(name, run, 0.77, 0.83)


def _slices(
    how: Adjustment, different: int, what: str, contrast: bool = False
) -> Setting:
    """20 slices of 60 items, of which `different` have a true difference of 20 points."""

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials)
        widths = np.zeros(trials)
        seen = 0
        truth = np.where(np.arange(20) < different, 0.2, 0.0)
        chances = np.stack([0.5 + truth, 0.5 + 0 * truth])[:, :, None]
        for trial in range(trials):
            alike = rng.random((2, 20, 60)) < 0.5
            gaps = np.subtract(
                *(
                    np.where(alike, rng.random((20, 60)), rng.random((2, 20, 60)))
                    < chances
                )
                * 1.0
            )
            core = pairs_at_once(gaps)
            p = core.p_values()
            findings = adjusted_p_values(p, how) < 0.05
            seen += int(np.count_nonzero(findings[:different]))
            low, high = core.limits(1 - interval_level(p, how))
            widths[trial] = float(np.mean(high - low))
            false = (
                findings & (truth == 0)
                if what == "findings"
                else (low > truth) | (high < truth)
            )
            if how != "holm":  # of findings; Holm's intervals hold for all
                false &= findings
            wrong = int(np.count_nonzero(false))
            discoveries = int(np.count_nonzero(findings))
            hits[trial] = 1 - (
                wrong > 0 if how == "holm" else wrong / max(1, discoveries)
            )
        note = (
            f"{seen / trials / different:.0%} of those that differ found"
            if different
            else ""
        )
        names = {"bh": "Benjamini-Hochberg", "holm": "Holm", "none": "no adjustment"}
        return Covered(hits, widths, names[how], note)  # type: ignore[arg-type]

    name = f"20 slices, {different or 'none'} different: {what}, {how}"
    return Setting(name, run, 0.95, 1.0, contrast=contrast)


def _tasks(
    count: int,
    spread: float,
    shared: bool = False,
    fixed: bool = False,
    items: int = 100,
) -> Setting:
    """`count` tasks drawn from those whose differences vary by `spread` around 4 points; shared:
    all about the same items.
    """

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        lows = np.zeros(trials)
        highs = np.zeros(trials)
        for trial in range(trials):
            common = rng.normal(0, 0.25, items)
            parts = []
            gaps = []
            for task in range(count):
                ours = common if shared else rng.normal(0, 0.25, items)
                scores = rng.normal(0.5, 0.15, (2, items)) + np.stack(
                    [ours, np.zeros(items)]
                )
                scores[0] += 0.04 + rng.normal(0, spread)
                parts.append(compare_paired(*scores, value_range=None))
                codes = np.arange(items) + (0 if shared else task * items)
                gaps.append((scores[0] - scores[1], codes))
            difference = (
                macro_difference(parts) if fixed else sampled_difference(parts, gaps)
            )
            lows[trial], highs[trial] = difference.low, difference.high
        method = "mean over fixed tasks" if fixed else "mean over tasks as a sample"
        return Covered((lows <= 0.04) & (highs >= 0.04), highs - lows, method)

    what = ("the same items in all" if shared else f"{items} items each") + (
        ", as if fixed" if fixed else ""
    )
    # Never narrower than for the fixed tasks: where they hardly differ, that covers more.
    most = 0.97 if spread >= 0.05 and not shared else 1.0
    return Setting(
        f"{count} tasks of a sample, {100 * spread:g} points apart, {what}",
        run,
        most=most,
        contrast=fixed,
    )


def _board(models: int, tasks: int) -> Setting:
    """All pairs of equal models over a sample of tasks, on each of which models differ."""

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        widths = np.zeros(trials)
        for trial in range(trials):
            parts = []
            for _ in range(tasks):
                chance = np.clip(0.6 + rng.normal(0, 0.08, models), 0, 1)
                parts.append(
                    ((rng.random((models, 100)) < chance[:, None]).astype(float), None)
                )
            board = all_sampled_differences(parts)
            off = ~np.eye(models, dtype=bool)
            hits[trial] = not board.differs.any()
            widths[trial] = float((board.high - board.low)[off].mean())
        return Covered(hits, widths, board.method)

    return Setting(
        f"{models} equal models over {tasks} tasks of a sample: all pairs",
        run,
        most=1.0,
        cost=3,
    )


SETTINGS: tuple[Setting, ...] = (
    _planned(4, 1, 0.5),
    _planned(4, 4, 0.5),
    _planned(1, 1, 0.5),
    _planned(2, 8, 0.3),
    _planned(4, 2, 0.3, cluster=5),
    _slices("bh", 0, "findings"),
    _slices("bh", 5, "findings"),
    _slices("bh", 5, "intervals"),
    _slices("holm", 0, "findings"),
    _slices("holm", 5, "findings"),
    _slices("holm", 5, "intervals"),
    _slices("none", 0, "findings", contrast=True),
    _tasks(3, 0.05),
    _tasks(7, 0.05),
    _tasks(7, 0.05, fixed=True),
    _tasks(7, 0.02),
    _tasks(7, 0.05, shared=True),
    _board(8, 7),
)
