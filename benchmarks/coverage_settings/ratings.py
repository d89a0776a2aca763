"""Ratings: strengths of models from who scores higher, over tasks that may share items."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from coverage_settings.registry import F64, Bools, Covered, Setting
from evalwright.statistics.bradley_terry import Scored, bradley_terry

ABOUT = (
    "The 95% interval of a model's Bradley-Terry strength should hold the strength that"
    " all items of such tasks would give in 95% of the trials, ties and all, also where"
    " the model of strengths is wrong (tasks differ in how far apart they set the"
    " models, and items in how hard they are). Each trial looks at one model, drawn at"
    " random."
)


def _truth(chances: F64, weights: F64) -> F64:
    """The strengths by which all items of a kind would be fitted. chances: (tasks, models, kinds)
    of a right answer.
    """
    a = chances[:, :, None]
    b = chances[:, None]
    won = np.einsum(
        "t,tabk->ab",
        weights / weights.sum(),
        a * (1 - b) + 0.5 * (a * b + (1 - a) * (1 - b)),
    )
    np.fill_diagonal(won, 0.0)

    def loss(strengths: F64) -> float:
        return -float((won * np.log(expit(strengths[:, None] - strengths))).sum())

    strengths: F64 = minimize(loss, np.zeros(len(won)), tol=1e-10).x
    return np.asarray(strengths - strengths.mean())


def _setting(
    name: str,
    models: int,
    sizes: tuple[int, ...],
    *,
    apart: float = 1.0,
    translated: bool = False,
    cluster: int = 1,
    weights: tuple[float, ...] = (),
    blind: bool = False,
    most: float = 0.97,
) -> Setting:
    """sizes: items of each task. translated: the tasks have the same items; cluster: items of a
    passage; blind: as if all items stood alone, the contrast.
    """
    fixed = np.random.default_rng(5)
    tasks = len(sizes)
    kinds = 20
    spread = np.linspace(-apart, apart, models)[:, None]
    chances = np.stack(
        [
            expit(spread * (1 + 0.3 * t) - fixed.normal(0, 1.2, kinds))
            for t in range(tasks)
        ]
    )
    counts = np.array(weights or (1.0,) * tasks)
    truth = _truth(chances, counts)

    def trial(rng: np.random.Generator) -> tuple[Bools, F64]:
        scored_tasks = []
        kind = rng.integers(0, kinds, max(sizes))
        luck = rng.random((models, max(sizes)))
        for t, size in enumerate(sizes):
            task_kinds = rng.integers(0, kinds, size)
            passages = np.arange(size) // cluster
            at = np.repeat(
                (kind if translated else task_kinds)[: -(-size // cluster)], cluster
            )[:size]
            drawn = rng.random((models, size))
            same = translated & (rng.random((models, size)) < 0.8)
            right = np.where(same, luck[:, :size], drawn) < chances[t][:, at]
            units = np.arange(size) if blind else passages
            scored_tasks.append(
                Scored(
                    right.astype(float),
                    units + (t * 100_000 if blind or not translated else 0),
                    counts[t],
                )
            )
        ratings = bradley_terry(scored_tasks)
        return (ratings.low <= truth) & (
            truth <= ratings.high
        ), ratings.high - ratings.low

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        outcomes = [trial(rng) for _ in range(trials)]
        # One model of each trial, so that trials are independent.
        model = rng.integers(0, models, trials)
        hits, widths = (
            np.array(
                [outcome[part][at] for outcome, at in zip(outcomes, model, strict=True)]
            )
            for part in (0, 1)
        )
        return Covered(
            hits, widths, "sandwich, independent" if blind else "sandwich, shared units"
        )

    return Setting(name, run, most=most, contrast=blind, short=150)


SETTINGS = (
    _setting("ratings of 4 models, one task of 200 items", 4, (200,)),
    _setting("ratings of 3 models, one task of 20 items", 3, (20,), most=0.98),
    _setting(
        "ratings of 3 models far apart, one task of 20 items",
        3,
        (20,),
        apart=3.0,
        most=0.985,
    ),
    _setting(
        "ratings of 6 models, 5 tasks of 20 to 200 items of unequal weight",
        6,
        (20, 40, 60, 100, 200),
        weights=(1, 2, 3, 1, 1),
    ),
    _setting(
        "ratings of 4 models, 7 translations of 60 items", 4, (60,) * 7, translated=True
    ),
    _setting(
        "ratings of 4 models, 7 translations of 60 items, as if independent",
        4,
        (60,) * 7,
        translated=True,
        blind=True,
    ),
    _setting(
        "ratings of 4 models, 3 tasks about 20 passages of 10 items",
        4,
        (200,) * 3,
        cluster=10,
    ),
    _setting("ratings of 2 models, 2 tasks of 100 items", 2, (100, 100), apart=0.5),
)
