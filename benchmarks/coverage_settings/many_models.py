"""Several models: paired and unpaired differences, all pairs at once, rank sets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import binom

from coverage_settings.clusters import Sizes, answers, ids_of, one_large, unequal
from coverage_settings.registry import (
    F64,
    Bools,
    Covered,
    KnownMethod,
    Setting,
    repeat_trials,
)
from evalwright.statistics import (
    PairedComparison,
    UnpairedComparison,
    compare_paired,
    compare_unpaired,
    holm,
    rank_sets,
    simultaneous_means,
)
from evalwright.statistics.many_models import all_differences
from evalwright.statistics.pairwise import common_differences

ABOUT = (
    "The 95% interval of a difference, all means of a board together, or all rank sets"
    " together should hold the truth in 95% of the trials. Of all pairs: the share of"
    " boards without a false finding (a pair of equal models called different, or a"
    " sign that is wrong), 94% or more; the note says what share of all pairs is found"
    " to differ, and in brackets Holm's procedure on McNemar's exact mid-p, in place of"
    " a width the share of pairs that it finds. Rank sets are conservative: models of"
    " one true rank share all of its ranks."
)
Run = Callable[[int, int], Covered]


def _answers(
    rng: np.random.Generator, chances: F64, items: int, share: float = 0.6
) -> F64:
    """(models, items) right-or-wrong answers with shared difficulty; a model's mean is exactly its
    chance.

    A `share` of the answers follow one uniform number of the item, which makes models agree; the
    others one of their own.
    """
    shared = rng.random(items)
    separate = rng.random((len(chances), items))
    alike = rng.random((len(chances), items)) < share
    return (np.where(alike, shared, separate) < chances[:, None]).astype(float)


def _pair(
    kind: str, n: int, chances: tuple[float, float], share: float
) -> tuple[Callable[[np.random.Generator], tuple[F64, F64]], float]:
    """A function that draws two models' scores, and their true difference."""
    groups = np.repeat(np.arange(n // 10), 10)

    def graded(rng: np.random.Generator) -> tuple[F64, F64]:
        base = rng.beta(3, 3, n) * 0.8
        return base + 0.1 * rng.beta(2, 1, n) + 0.05, base + 0.1 * rng.beta(1, 2, n)

    def clusters(rng: np.random.Generator) -> tuple[F64, F64]:
        chance = rng.beta(4, 2, n // 10)[groups]
        loss = rng.uniform(0.0, 0.3, n // 10)[groups]
        return (rng.random(n) < chance).astype(float), (
            rng.random(n) < chance * (1 - loss)
        ).astype(float)

    def binary(rng: np.random.Generator) -> tuple[F64, F64]:
        a, b = _answers(rng, np.array(chances), n, share)
        return a, b

    if kind == "graded":
        return graded, 0.1 / 3 + 0.05
    return (
        (clusters, 2 / 3 * 0.15)
        if kind == "clusters"
        else (binary, chances[0] - chances[1])
    )


def _paired(
    n: int,
    kind: str,
    chances: tuple[float, float] = (0.7, 0.6),
    share: float = 0.6,
    as_unpaired: bool = False,
    most: float = 0.97,
) -> Setting:
    """`as_unpaired`: the contrast that forgets that the items are the same; it covers too much and
    sees too little.
    """
    draw, truth = _pair(kind, n, chances, share)
    ids = np.repeat(np.arange(n // 10), 10) if kind == "clusters" else None

    def make(
        rng: np.random.Generator, trial: int
    ) -> PairedComparison | UnpairedComparison:
        a, b = draw(rng)
        return (
            compare_unpaired(a, b)
            if as_unpaired
            else compare_paired(a, b, clusters=ids)
        )

    def seen(comparisons: list[PairedComparison | UnpairedComparison]) -> str:
        significant = [comparison.p_value < 0.05 for comparison in comparisons]
        return f"difference seen in {np.mean(significant):.0%}"

    what = {
        "binary": "right or wrong",
        "graded": "graded",
        "clusters": "right or wrong in clusters of 10",
    }[kind]
    if kind == "binary":
        what += f", {chances[0]:g} against {chances[1]:g}" + (
            ", much alike" if share > 0.6 else ""
        )
    name = f"paired difference, {n} items, {what}" + (
        ", as if unpaired" if as_unpaired else ""
    )
    return Setting(
        name, repeat_trials(make, truth, seen), most=most, contrast=as_unpaired
    )


def _unpaired(n_a: int, n_b: int) -> Setting:
    def make(rng: np.random.Generator, trial: int) -> UnpairedComparison:
        return compare_unpaired(
            (rng.random(n_a) < 0.9) * 1.0, (rng.random(n_b) < 0.7) * 1.0
        )

    return Setting(
        f"unpaired difference, {n_a} and {n_b} items", repeat_trials(make, 0.2)
    )


def _unpaired_clusters(name: str, sizes: Sizes) -> Setting:
    """Two equal models, each on passages of its own."""

    def make(rng: np.random.Generator, trial: int) -> UnpairedComparison:
        sides = []
        for _ in range(2):
            here = sizes(rng)
            sides.append((answers(rng, here, 0.7, 0.5), ids_of(here)))
        (a, of_a), (b, of_b) = sides
        return compare_unpaired(a, b, clusters_a=of_a, clusters_b=of_b)

    return Setting(
        f"unpaired difference, two equal models, {name} each",
        repeat_trials(make, 0.0),
        most=1.0,
    )


def _pairs_alone(models: int, items: int) -> Setting:
    """The contrast: all pairs, each at 5%."""
    chances = np.repeat(np.linspace(0.5, 0.8, models // 2), 2)
    equal = np.triu(chances[:, None] == chances[None, :], 1)

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        widths = np.full(trials, np.nan)
        for trial in range(trials):
            differences = common_differences(
                _answers(rng, chances, items), value_range=(0.0, 1.0)
            )
            hits[trial] = not (differences.p_values() < 0.05)[equal].any()
        return Covered(hits, widths, "each pair alone")

    return Setting(
        f"{models} models, {items} items: all pairs, each alone",
        run,
        0.94,
        1.0,
        contrast=True,
    )


def _mid_p_holm(rows: F64) -> tuple[Bools, float]:
    """Which of all pairs Holm's procedure on McNemar's mid-p finds to differ, and their share."""
    first, second = np.triu_indices(len(rows), 1)
    wins = (rows[first] > rows[second]).sum(axis=1)
    losses = (rows[first] < rows[second]).sum(axis=1)
    few = np.minimum(wins, losses)
    total = wins + losses
    p = np.minimum(1.0, 2 * binom.cdf(few, total, 0.5) - binom.pmf(few, total, 0.5))
    significant = holm(np.where(total > 0, p, 1.0)) < 0.05
    return significant, float(significant.mean())


def _claims(
    models: int, items: int, spread: float, clusters: bool = False, gaps: float = 0.0
) -> Setting:
    """All pairs of a board, every two of whose models are equal: is any finding false, and how many
    are there?
    """
    chances = np.repeat(
        np.linspace(0.65 - spread / 2, 0.65 + spread / 2, models // 2), 2
    )
    truth = chances[:, None] - chances[None, :]
    upper = np.triu_indices(models, 1)
    ids = np.repeat(np.arange(items // 5), 5) if clusters else None

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        theirs = np.zeros(trials, dtype=bool)
        ours = np.zeros(trials)
        mid_p_share = np.zeros(trials)
        widths = np.zeros(trials)
        for trial in range(trials):
            rows = (
                _in_clusters(rng, chances, items)
                if clusters
                else _answers(rng, chances, items)
            )
            if not clusters:
                mid_p, mid_p_share[trial] = _mid_p_holm(rows)
                theirs[trial] = not (mid_p & (truth[upper] == 0)).any()
            if gaps:
                rows[rng.random(rows.shape) < gaps] = np.nan
            board = all_differences(rows, ids)
            false = board.differs & ~(np.sign(board.difference) * np.sign(truth) > 0)
            hits[trial], ours[trial] = (
                not false.any(),
                float(board.differs[upper].mean()),
            )
            widths[trial] = float(np.nanmean(board.high - board.low))
        note = f"{ours.mean():.2%} of pairs found"
        beside = (
            None if clusters else KnownMethod("mid-p, share found", theirs, mid_p_share)
        )
        return Covered(hits, widths, "Holm", note, beside)

    more = (", clusters of 5" if clusters else "") + (
        f", {gaps:.0%} missing" if gaps else ""
    )
    name = (
        f"{models} models within {100 * spread:g} points, {items} items{more}: all"
        " pairs"
    )
    return Setting(name, run, 0.94, 1.0, cost=3)


def _in_clusters(rng: np.random.Generator, chances: F64, items: int) -> F64:
    shared = np.repeat(rng.random((1, items // 5)), 5, axis=1)
    mixed = shared * 0.5 + rng.random((len(chances), items)) * 0.5
    return (mixed < _half_quantile(chances)[:, None]).astype(float)


def _family(models: int, items: int, what: str) -> Setting:
    """All means or all ranks of `models`, some of them equal, held together."""
    chances = np.repeat(np.linspace(0.5, 0.8, models // 2), 2)
    truth = chances[:, None] - chances[None, :]
    # Equal models share their ranks: each of those that some order would give must be held.
    best = 1 + np.count_nonzero(truth < 0, axis=1)
    worst = models - np.count_nonzero(truth > 0, axis=1)

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        widths = np.zeros(trials)
        method = ""
        for trial in range(trials):
            data = _answers(rng, chances, items)
            if what == "means":
                intervals = simultaneous_means(data)
                hits[trial] = all(
                    e.low <= p <= e.high
                    for e, p in zip(intervals, chances, strict=True)
                )
                widths[trial], method = (
                    np.mean([e.high - e.low for e in intervals]),
                    intervals[0].method,
                )
                continue
            sets = rank_sets(all_differences(data))
            hits[trial] = bool(((sets.low <= best) & (sets.high >= worst)).all())
            widths[trial], method = (
                float((sets.high - sets.low + 1).mean()),
                "rank sets",
            )
        return Covered(hits, widths, method)

    return Setting(
        f"{models} models, {items} items: all {what}", run, 0.945, 1.0, cost=2
    )


def _half_quantile(p: F64) -> F64:
    """The p quantile of the mean of two uniform numbers."""
    return np.where(p < 0.5, np.sqrt(p / 2), 1 - np.sqrt((1 - p) / 2))


SETTINGS: tuple[Setting, ...] = (
    _paired(50, "binary"),
    _paired(50, "binary", (0.98, 0.92), most=0.995),
    _paired(200, "binary"),
    _paired(200, "binary", share=0.9),
    _paired(200, "binary", share=0.9, as_unpaired=True),
    _paired(100, "graded"),
    _paired(300, "clusters"),
    _unpaired(60, 40),
    _unpaired_clusters("12 unequal clusters", unequal(12)),
    _unpaired_clusters("one of 15 clusters with half", one_large(15)),
    _claims(20, 40, 0.0),
    _claims(20, 40, 0.3),
    _claims(20, 400, 0.3),
    _pairs_alone(20, 400),
    _claims(20, 300, 0.3, clusters=True),
    _claims(20, 400, 0.3, gaps=0.05),
    _family(20, 400, "means"),
    _family(20, 400, "ranks"),
)
