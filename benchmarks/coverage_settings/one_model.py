"""One model: intervals of a mean in clusters, of few items, near 0 and 1, of repeated draws, of
fixed tasks and benchmarks.
"""

from __future__ import annotations

import math

import numpy as np

from coverage_settings.registry import F64, Plain, Setting, repeat_trials
from evalwright.statistics import Estimate, macro_average, mean_interval

ABOUT = (
    "The 95% interval of one model's mean should hold the true mean in 95% of the"
    " trials."
)


def _by_the_limit(scores: F64) -> Plain:
    """Mean +- 1.96 standard errors, as the central limit theorem has it."""
    mean = float(scores.mean())
    error = float(scores.std(ddof=1)) / math.sqrt(len(scores))
    return Plain(
        mean - 1.96 * error, mean + 1.96 * error, "mean +- 1.96 standard errors"
    )


def _clusters(
    a: float, b: float, groups: int, size: int, kind: str = "right or wrong"
) -> Setting:
    """`kind`: "right or wrong", "graded", or "as if alone", the contrast in which clusters are not
    told.
    """
    ids = np.repeat(np.arange(groups), size)

    def make(rng: np.random.Generator, trial: int) -> Estimate:
        chance = rng.beta(a, b, groups)[ids]
        graded = kind == "graded"
        scores = (
            rng.beta(3 * chance, 3 * (1 - chance))
            if graded
            else (rng.random(len(ids)) < chance) * 1.0
        )
        return mean_interval(scores, clusters=None if kind == "as if alone" else ids)

    what = (
        f"right or wrong, as if {groups * size} single items"
        if kind == "as if alone"
        else kind
    )
    name = f"{groups} clusters of {size}, {what}, mean {a / (a + b):g}"
    return Setting(
        name, repeat_trials(make, a / (a + b)), contrast=kind == "as if alone"
    )


def _few(n: int, kind: str) -> Setting:
    """Few graded items; `kind` is "t" or "z", the contrast with the normal quantile in place of
    Student's.
    """

    def make(rng: np.random.Generator, trial: int) -> Estimate | Plain:
        scores: F64 = np.clip(rng.normal(0.5, 0.1, n), 0.0, 1.0)
        return mean_interval(scores) if kind == "t" else _by_the_limit(scores)

    name = f"{n} items, graded" + (", normal quantile" if kind == "z" else "")
    return Setting(name, repeat_trials(make, 0.5), 0.94, 0.96, contrast=kind == "z")


def _items(n: int, p: float, least: float = 0.93, most: float = 0.97) -> Setting:
    def make(rng: np.random.Generator, trial: int) -> Estimate:
        return mean_interval((rng.random(n) < p) * 1.0)

    return Setting(
        f"{n} items, right or wrong, p = {p:g}", repeat_trials(make, p), least, most
    )


def _by_limit(n: int, p: float) -> Setting:
    def make(rng: np.random.Generator, trial: int) -> Plain:
        return _by_the_limit((rng.random(n) < p).astype(np.float64))

    return Setting(
        f"{n} items, right or wrong, p = {p:g}, normal limit",
        repeat_trials(make, p),
        contrast=True,
    )


def _draws_as_items(n: int, draws: int, a: float, b: float) -> Setting:
    def make(rng: np.random.Generator, trial: int) -> Estimate:
        return mean_interval(
            ((rng.random((n, draws)) < rng.beta(a, b, (n, 1))) * 1.0).ravel()
        )

    name = f"{n} items x {draws} draws, as if {n * draws} items, mean {a / (a + b):g}"
    return Setting(name, repeat_trials(make, a / (a + b)), contrast=True)


def _draws(n: int, draws: int, a: float, b: float, most: float = 0.97) -> Setting:
    def make(rng: np.random.Generator, trial: int) -> Estimate:
        return mean_interval((rng.random((n, draws)) < rng.beta(a, b, (n, 1))) * 1.0)

    return Setting(
        f"{n} items x {draws} draws, mean {a / (a + b):g}",
        repeat_trials(make, a / (a + b)),
        most=most,
    )


def _macro(sizes: tuple[int, ...], chances: tuple[float, ...]) -> Setting:
    def make(rng: np.random.Generator, trial: int) -> Estimate:
        parts = [
            mean_interval((rng.random(n) < p) * 1.0)
            for n, p in zip(sizes, chances, strict=True)
        ]
        return macro_average(parts, value_range=(0.0, 1.0))

    name = f"macro average of {len(sizes)} tasks of {min(sizes)} to {max(sizes)} items"
    return Setting(name, repeat_trials(make, float(np.mean(chances))))


SETTINGS = (
    _clusters(2, 2, 30, 10),
    _clusters(2, 2, 30, 10, "as if alone"),
    _clusters(9, 1, 30, 10),
    _clusters(2, 2, 30, 10, "graded"),
    _few(6, "t"),
    _few(6, "z"),
    _items(20, 0.9, most=0.98),
    _by_limit(20, 0.9),
    _items(100, 0.95, most=0.98),
    _by_limit(100, 0.95),
    _items(50, 0.02, most=0.99),
    _items(200, 0.01, most=0.99),
    _draws(20, 4, 9.5, 0.5, most=0.985),
    _draws(50, 10, 5, 5),
    _draws_as_items(50, 10, 5, 5),
    _macro((40, 100, 300, 60, 150), (0.9, 0.5, 0.75, 0.95, 0.6)),
    _macro((20, 25, 40, 30), (0.95, 0.9, 0.95, 0.85)),
)
