"""The tree of SEA-HELM: tasks, competencies, languages and all of them, over eight runs and
translated items.

The data: items have an ease of their own, which all eight runs and, where languages ask the same
items, all languages share; an answer is right by chance beside it. The contrast is the interval of
SEA-HELM's notebook, which draws runs and no items.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coverage_settings.registry import F64, Covered, Plain, Setting, repeat_trials
from evalwright.compat.sea_helm.over_runs import over_runs
from evalwright.metrics.registry import Column, compute, metric_range
from evalwright.statistics import Estimate, macro_average
from evalwright.statistics.shared_units import unit_sums
from evalwright.statistics.units import I64

ABOUT = (
    "The 95% interval of SEA-HELM's numbers in corrected scoring should hold the truth,"
    " which is that of other items of the same kind, in 95% of the trials: of a task, a"
    " competency, a language and all seven, over eight runs, with items that are"
    " translations of each other and items of one language. Its own interval is shown"
    " as the contrast."
)
CLASSES = 4
RUNS = 8
RANGE = metric_range("chance-normalised", {"chance": 1 / CLASSES})
Part = tuple[Estimate, F64, I64]


def _task(
    rng: np.random.Generator,
    ease: F64,
    kind: str,
    ids: I64,
    runs: int = RUNS,
    sizes: Sequence[int] = (),
) -> Part:
    """A task's chance-normalised number, its items' scores and their units. ease: of the items,
    (n,); sizes: of its four classes.
    """
    n = len(ease)
    gold = np.repeat(np.arange(CLASSES), sizes) if sizes else np.arange(n) % CLASSES
    right = rng.random((n, runs)) < ease[:, None]
    predicted = np.where(
        right,
        gold[:, None],
        (gold[:, None] + rng.integers(1, CLASSES, (n, runs))) % CLASSES,
    ).astype(float)
    values = right.astype(float)
    column = Column(
        values.mean(axis=1),
        {"gold": gold.astype(float), "predicted": predicted.mean(axis=1)},
        draws=values,
        part_draws={
            "gold": np.repeat(gold[:, None], runs, axis=1).astype(float),
            "predicted": predicted,
        },
    )
    return (
        compute("chance-normalised", column, {"chance": 1 / CLASSES, "of": kind}),
        column.values,
        ids,
    )


def _ease(rng: np.random.Generator, n: int, mean: float) -> F64:
    ease: F64 = rng.beta(2 * mean, 2 * (1 - mean), n)
    return ease


def _over(parts: list[Part], weights: list[float] | None = None) -> Estimate:
    units = [unit_sums(values, ids) for _, values, ids in parts]
    return macro_average(
        [part for part, _, _ in parts], weights=weights, units=units, value_range=RANGE
    )


def _truth(*means: float) -> float:
    return float(np.mean([(mean - 1 / CLASSES) / (1 - 1 / CLASSES) for mean in means]))


def _single_task(
    name: str,
    n: int,
    mean: float,
    kind: str,
    runs: int = RUNS,
    most: float = 0.97,
    sizes: Sequence[int] = (),
) -> Setting:
    def make(rng: np.random.Generator, trial: int) -> Estimate:
        return _task(rng, _ease(rng, n, mean), kind, np.arange(n), runs, sizes)[0]

    return Setting(
        f"a task, {name}",
        repeat_trials(make, _truth(mean)),
        least=0.935,
        most=most,
        short=60,
    )


def _competency(
    kind: str, name: str = "", means: tuple[float, ...] = (0.5, 0.7, 0.85)
) -> Setting:
    sizes = (60, 120, 200)

    def make(rng: np.random.Generator, trial: int) -> Estimate:
        begins = (0, 1_000, 2_000)
        pairs = zip(sizes, means, begins, strict=True)
        return _over(
            [
                _task(rng, _ease(rng, n, mean), kind, begin + np.arange(n))
                for n, mean, begin in pairs
            ]
        )

    return Setting(
        f"a competency of 3 tasks, {kind}, 8 runs{name}",
        repeat_trials(make, _truth(*means)),
        least=0.935,
        short=40,
    )


def _languages(name: str, languages: int, shared: bool) -> Setting:
    """Each language: one competency of two tasks, the first translated, and one of one task of its
    own.
    """
    n = 80
    means = (0.6, 0.75, 0.7)

    def make(rng: np.random.Generator, trial: int) -> Estimate:
        common = _ease(rng, n, means[0])
        parts = []
        weights = []
        for language in range(languages):
            task_ids = [
                1_000 * (3 * language + place + 1) + np.arange(n) for place in range(3)
            ]
            # A translated item is about as hard in each language.
            turned = rng.random(n) < 0.2
            first = (
                np.where(turned, _ease(rng, n, means[0]), common)
                if shared
                else _ease(rng, n, means[0])
            )
            parts.append(
                _task(rng, first, "accuracy", np.arange(n) if shared else task_ids[0])
            )
            parts += [
                _task(rng, _ease(rng, n, mean), "accuracy", ids)
                for mean, ids in zip(means[1:], task_ids[1:], strict=True)
            ]
            weights += [1 / 4, 1 / 4, 1 / 2]
        return _over(parts, [weight / languages for weight in weights])

    truth = _truth(means[0], means[1]) / 2 + _truth(means[2]) / 2
    return Setting(name, repeat_trials(make, truth), least=0.935, most=0.975, short=40)


def _notebook() -> Setting:
    """A task as the notebook has it: 30 means over drawn runs, their spread over the root of 30."""
    n = 100
    mean = 0.7
    config = {
        "run_args": {"skip_task": []},
        "tasks": {"task": {"competency": "nlu", "languages": {"id": {}}}},
    }

    def make(rng: np.random.Generator, trial: int) -> Plain:
        ease = _ease(rng, n, mean)
        labels = [f"label {place}" for place in range(n)]
        scores = (rng.random((RUNS, n)) < ease).astype(float).tolist()
        data = {
            "id": {
                "nlu": {
                    "task": {
                        "scores": scores,
                        "length": [n] * RUNS,
                        "labels": [labels] * RUNS,
                    }
                }
            }
        }
        summary = over_runs(config, data, seed=trial)[0]
        return Plain(
            summary["mean"] - 1.96 * summary["stderr"],
            summary["mean"] + 1.96 * summary["stderr"],
            "SEA-HELM's notebook",
        )

    def run(seed: int, trials: int) -> Covered:
        return repeat_trials(make, 100 * mean)(seed, trials)

    return Setting("a task, 8 runs, as the notebook", run, contrast=True, short=60)


SETTINGS = (
    _single_task(
        "100 items in 4 classes, balanced accuracy, 8 runs",
        100,
        0.7,
        "balanced-accuracy",
    ),
    _single_task(
        "60 items in 4 classes, 90% right, balanced accuracy, 8 runs",
        60,
        0.9,
        "balanced-accuracy",
        most=0.985,
    ),
    _single_task(
        "100 items, balanced accuracy, one run", 100, 0.7, "balanced-accuracy", runs=1
    ),
    _notebook(),
    _competency("balanced-accuracy"),
    _single_task(
        "100 items in 4 classes, a model that guesses, balanced accuracy, 8 runs",
        100,
        0.25,
        "balanced-accuracy",
    ),
    _competency("balanced-accuracy", ", a model that guesses", (0.25, 0.25, 0.25)),
    *(
        _single_task(
            f"classes of {class_sizes} items, balanced accuracy, {runs}",
            42,
            0.7,
            "balanced-accuracy",
            n_runs,
            1.0,
            sizes,
        )
        for class_sizes, sizes in (
            ("39, 1, 1 and 1", (39, 1, 1, 1)),
            ("24, 8, 8 and 2", (24, 8, 8, 2)),
        )
        for runs, n_runs in (("8 runs", RUNS), ("one run", 1))
    ),
    _languages("a language of 2 competencies, 8 runs", 1, False),
    _languages("all of 7 languages, 8 runs, every task of its own items", 7, False),
    _languages(
        "all of 7 languages, 8 runs, a third of the tasks translations", 7, True
    ),
)
