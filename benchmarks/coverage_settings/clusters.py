"""Clusters: few, unequal, one with half of the items, sizes that go with the scores; one model,
two, and boards of twelve.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coverage_settings.known_methods import Ids
from coverage_settings.registry import F64, Covered, Setting
from coverage_settings.trial import Rng, equivalences, gates, means, pairs
from evalwright.statistics.many_models import all_differences
from evalwright.statistics.pairwise import common_differences

ABOUT = (
    "The settings of unequal clusters are the worst that we thought of, their kinds"
    ' listed before any was run. Sizes: "unequal" is log-normal with a standard'
    ' deviation of 1 (more than half of the items in a fifth of the clusters), "one'
    ' with half" has as many items in one cluster as in all others. Where two models'
    " are equal or differ by the margin, the share is that of trials without a false"
    " verdict: 94% or more. Coverage above 97% has one reason: with few clusters the"
    " error's own uncertainty cannot be known better than its degrees of freedom, and"
    " counts come in steps. In brackets: CR2 with Satterthwaite's degrees of freedom"
    " under independence (Bell & McCaffrey 2002), its mean width and how often it was"
    " right."
)
Sizes = Callable[[Rng], F64]


def unequal(groups: int, spread: float = 1.0) -> Sizes:
    """Log-normal sizes."""
    return lambda rng: np.maximum(1, np.round(np.exp(rng.normal(1.0, spread, groups))))


def one_large(groups: int, share: float = 0.5) -> Sizes:
    """One cluster with this share of all items; the others have three each."""
    return lambda rng: np.array(
        [round(3 * (groups - 1) * share / (1 - share))] + [3.0] * (groups - 1)
    )


def equal(groups: int, size: int) -> Sizes:
    """Clusters of one size."""
    return lambda rng: np.full(groups, float(size))


def ids_of(sizes: F64) -> Ids:
    """Cluster numbers of the items."""
    return np.repeat(np.arange(len(sizes)), sizes.astype(np.int64))


def answers(rng: Rng, sizes: F64, chance: float, alike: float) -> F64:
    """Right-or-wrong scores; items of one cluster correlate by `alike` (beta-binomial)."""
    scale = (1 - alike) / alike
    cluster_chances = rng.beta(chance * scale, (1 - chance) * scale, len(sizes))
    return (
        rng.random(int(sizes.sum()))
        < np.repeat(cluster_chances, sizes.astype(np.int64))
    ).astype(np.float64)


def _single_score(
    name: str, sizes: Sizes, chance: float = 0.7, alike: float = 0.5
) -> Setting:
    def draw(rng: Rng) -> tuple[F64, Ids]:
        here = sizes(rng)
        return answers(rng, here, chance, alike), ids_of(here)

    return means(
        f"one score, {name}, {chance:.0%} right, correlation {alike:g}", draw, chance
    )


def _graded(name: str, sizes: Sizes) -> Setting:
    def draw(rng: Rng) -> tuple[F64, Ids]:
        here = sizes(rng)
        ids = ids_of(here)
        chance = np.clip(rng.beta(2, 2, len(here)), 0.01, 0.99)[ids]
        return rng.beta(8 * chance, 8 * (1 - chance)), ids

    return means(f"one graded score, {name}", draw, 0.5)


def _repeats(name: str, sizes: Sizes, draws: int = 4) -> Setting:
    def draw(rng: Rng) -> tuple[F64, Ids]:
        here = sizes(rng)
        ids = ids_of(here)
        chance = rng.beta(3, 1, len(here))[ids]
        item_chances = rng.beta(4 * chance, 4 * (1 - chance))
        return (rng.random((len(item_chances), draws)) < item_chances[:, None]).astype(
            np.float64
        ), ids

    return means(f"one score, {draws} draws an item, {name}", draw, 0.75)


def _by_size(groups: int) -> Setting:
    """The larger a cluster, the harder its items: the mean over items is not that over clusters."""
    many = np.maximum(
        1, np.round(np.exp(np.random.default_rng(97).normal(1.0, 1.0, 2_000_000)))
    )
    truth = float((many * (1 - 0.6 * many / (many + 6))).sum() / many.sum())

    def draw(rng: Rng) -> tuple[F64, Ids]:
        here = unequal(groups)(rng)
        ids = ids_of(here)
        chance = (1 - 0.6 * here / (here + 6))[ids]
        return (rng.random(len(chance)) < chance).astype(np.float64), ids

    return means(
        f"one score, {groups} unequal clusters, larger ones harder", draw, truth
    )


def _two(
    name: str, sizes: Sizes, a: float = 0.7, b: float = 0.7, alike: float = 0.5
) -> Setting:
    def draw(rng: Rng) -> tuple[F64, F64, Ids]:
        here = sizes(rng)
        return answers(rng, here, a, alike), answers(rng, here, b, alike), ids_of(here)

    what = "equal models" if a == b else f"{a:g} against {b:g}"
    return pairs(f"two {what}, {name}, correlation {alike:g}", draw, a - b)


def _two_graded(name: str, sizes: Sizes) -> Setting:
    def draw(rng: Rng) -> tuple[F64, F64, Ids]:
        here = sizes(rng)
        ids = ids_of(here)
        gap = 0.1 * rng.normal(size=len(here))[ids] + 0.1 * rng.normal(
            size=int(here.sum())
        )
        return np.clip(0.5 + gap / 2, 0, 1), np.clip(0.5 - gap / 2, 0, 1), ids

    return pairs(f"two equal models, graded, {name}", draw, 0.0)


def losing(
    sizes: Sizes, lost: float, won: float = 0.0, together_share: float = 0.0
) -> Callable[[Rng], tuple[F64, F64, Ids]]:
    """b loses a share `lost` of the items that a has right, and wins a share `won`.

    In a share `together_share` of the clusters all items go together.
    """

    def draw(rng: Rng) -> tuple[F64, F64, Ids]:
        here = sizes(rng)
        ids = np.asarray(ids_of(here))
        together = (rng.random(len(here)) < together_share)[ids]
        u = np.where(together, rng.random(len(here))[ids], rng.random(len(ids)))
        return (
            (u >= won).astype(np.float64),
            np.where((u >= won) & (u < won + lost), 0.0, 1.0),
            ids,
        )

    return draw


def _board(
    models: int, name: str, sizes: Sizes, alike: float = 0.5, graded: bool = False
) -> Setting:
    """Equal models: no pair should be significantly different."""

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        widths = np.zeros(trials)
        method = ""
        off = ~np.eye(models, dtype=bool)
        for trial in range(trials):
            here = sizes(rng)
            ids = ids_of(here)
            rows = np.stack([answers(rng, here, 0.7, alike) for _ in range(models)])
            if graded:
                rows = 0.5 * rows + 0.5 * rng.random(rows.shape)
            board = all_differences(rows, ids)
            method = board.method
            hits[trial] = not board.differs.any()
            widths[trial] = float((board.high - board.low)[off].mean())
        return Covered(hits, widths, method)

    kind = ", graded" if graded else ""
    return Setting(
        f"board of {models} equal models{kind}, {name}",
        run,
        least=0.94,
        most=1.0,
        short=15,
    )


def _influences(sizes: Sizes, name: str) -> Setting:
    """The contrast: clusters of unequal size with the error of equal ones, CR1 and G - 1 degrees of
    freedom.
    """

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        hits = np.zeros(trials, dtype=bool)
        widths = np.zeros(trials)
        for trial in range(trials):
            here = sizes(rng)
            ids = ids_of(here)
            assert ids is not None
            gap = answers(rng, here, 0.7, 0.5) - answers(rng, here, 0.7, 0.5)
            differences = common_differences(np.stack([gap, np.zeros_like(gap)]))
            half = 1.96 * float(differences.error[0, 1])
            hits[trial], widths[trial] = abs(float(gap.mean())) <= half, 2 * half
        return Covered(hits, widths, "paired, clusters not told")

    return Setting(
        f"two equal models, {name}, as if items were alone",
        run,
        0.94,
        1.0,
        contrast=True,
        short=100,
    )


_TRIPLES = equal(19, 3)
SETTINGS: tuple[Setting, ...] = (
    _single_score("12 unequal clusters", unequal(12)),
    _single_score("20 unequal clusters", unequal(20)),
    _single_score("one of 15 clusters with half", one_large(15)),
    _single_score("one of 15 clusters with half", one_large(15), alike=0.1),
    _single_score("4 unequal clusters", unequal(4)),
    _single_score("6 unequal clusters", unequal(6)),
    _single_score("8 equal clusters of 10", equal(8, 10), alike=0.3),
    _single_score("12 unequal clusters", unequal(12), 0.9, 0.3),
    _single_score("20 very unequal clusters", unequal(20, 1.4), 0.7, 0.2),
    _graded("12 unequal clusters", unequal(12)),
    _graded("one of 15 clusters with half", one_large(15)),
    _repeats("19 clusters of 3", _TRIPLES),
    _repeats("12 unequal clusters", unequal(12)),
    _by_size(12),
    _by_size(30),
    _two("6 unequal clusters", unequal(6)),
    _two("10 unequal clusters", unequal(10)),
    _two("19 unequal clusters", unequal(19)),
    _influences(unequal(19), "19 unequal clusters"),
    _two("one of 15 clusters with half", one_large(15)),
    _two("one of 12 clusters with 80%", one_large(12, 0.8)),
    _two("4 clusters of 10", equal(4, 10), alike=0.9),
    _two("6 clusters of 10", equal(6, 10), alike=0.9),
    _two("8 clusters of 10", equal(8, 10), alike=0.9),
    _two("25 very unequal clusters", unequal(25, 1.4), alike=0.1),
    _two("10 unequal clusters", unequal(10), 0.8, 0.7, 0.3),
    _two("20 unequal clusters", unequal(20), 0.95, 0.9, 0.3),
    _two_graded("10 unequal clusters", unequal(10)),
    _two_graded("one of 15 clusters with half", one_large(15)),
    pairs("19 passages of 3, 3% lost and 3% won", losing(_TRIPLES, 0.03, 0.03), 0.0),
    pairs("19 passages of 3, 6% lost", losing(_TRIPLES, 0.06), 0.06),
    pairs(
        "19 passages of 3, 5% lost and 1% won, half of the passages as a whole",
        losing(_TRIPLES, 0.05, 0.01, 0.5),
        0.04,
    ),
    pairs(
        "30 unequal clusters, 8% lost and 4% won",
        losing(unequal(30), 0.08, 0.04, 0.2),
        0.04,
    ),
    equivalences(
        "at the margin: 19 passages of 3, 6% lost", losing(_TRIPLES, 0.06), 0.06
    ),
    equivalences(
        "at the margin: 19 passages of 3, 10% lost, half of the passages as a whole",
        losing(_TRIPLES, 0.1, 0.0, 0.5),
        0.1,
    ),
    equivalences(
        "at the margin: 30 clusters of 10, whole clusters lost, 5%",
        losing(equal(30, 10), 0.05, 0.0, 1.0),
        0.05,
    ),
    equivalences(
        "at the margin: 40 clusters of 5, whole clusters lost, 10%",
        losing(equal(40, 5), 0.1, 0.0, 1.0),
        0.1,
    ),
    gates(
        "gate shown, loss at its margin: 20 unequal clusters, 12% lost, 4% won",
        losing(unequal(20), 0.12, 0.04, 0.3),
        0.08,
        "shown",
    ),
    gates(
        "gate not-ruled-out, loss at its margin: 20 unequal clusters, 12% lost, 4% won",
        losing(unequal(20), 0.12, 0.04, 0.3),
        0.08,
        "not-ruled-out",
    ),
    _board(12, "8 unequal clusters", unequal(8)),
    _board(12, "15 unequal clusters", unequal(15)),
    _board(12, "15 unequal clusters", unequal(15), graded=True),
    _board(12, "one of 15 clusters with half", one_large(15)),
)
