"""What a setting is: a way to make data whose truth is known, and how often our interval holds it.

A module of this folder that has a tuple `SETTINGS` is part of `benchmarks/coverage.py`.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Covered:
    """What trials gave: whether each held the truth (trials,), and how wide each was (trials,).

    `method` is what made the intervals; where trials differ, the most frequent one.
    """

    hits: npt.NDArray[np.bool_]
    widths: F64
    method: str

    @property
    def share(self) -> float:
        """The share of trials that held the truth."""
        return float(np.mean(self.hits))

    @property
    def monte_carlo_error(self) -> float:
        """The standard error of the share, with half a hit and half a miss added so that it is never 0."""
        n = len(self.hits)
        p = (float(np.count_nonzero(self.hits)) + 0.5) / (n + 1)
        return math.sqrt(p * (1 - p) / n)


@dataclass(frozen=True)
class Setting:
    """One row of the table. `run(seed, trials)` simulates; `least` and `most` are what its coverage should lie between.

    `cost` is how many times dearer than a plain setting a trial is: the command divides the trials by it.
    """

    name: str
    run: Callable[[int, int], Covered]
    least: float = 0.93
    most: float = 0.97
    cost: int = 1

    def within(self, covered: Covered) -> bool:
        """Whether the coverage lies between the limits, give or take two Monte Carlo errors."""
        slack = 2 * covered.monte_carlo_error
        return self.least - slack <= covered.share <= self.most + slack


def all_settings() -> list[Setting]:
    """The settings of all modules of this folder, in the order of the modules' names."""
    found: list[Setting] = []
    for module in sorted(each.name for each in pkgutil.iter_modules([str(Path(__file__).parent)])):
        found += getattr(importlib.import_module(f"coverage_settings.{module}"), "SETTINGS", ())
    return found


def held(lows: list[float], highs: list[float], methods: list[str], truth: float | F64) -> Covered:
    """Covered from one interval a trial."""
    low, high = np.array(lows), np.array(highs)
    most_frequent = max(set(methods), key=methods.count)
    return Covered((low <= truth + 1e-12) & (high >= truth - 1e-12), high - low, most_frequent)
