"""What a setting is: a way to make data whose truth is known, and how often what we say of them is
right.

A module of this folder that has a tuple `SETTINGS` is a family: its first docstring line is the
heading of the family's table, its `ABOUT` the sentence above it.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class KnownMethod:
    """What a method that every reviewer knows gave in the same trials: whether it was right, and
    how wide it was.
    """

    name: str
    hits: Bools
    widths: F64


@dataclass(frozen=True)
class Covered:
    """What trials gave: whether each was right (trials,), how wide each interval was (trials,), nan
    for no interval.

    `method` is what made the intervals; where trials differ, the most frequent one. `note` is what
    else the table should say. `known_method`: the same of a method that every reviewer knows
    (`known_methods.py`).
    """

    hits: Bools
    widths: F64
    method: str
    note: str = ""
    known_method: KnownMethod | None = None

    @property
    def share(self) -> float:
        """The share of trials that were right."""
        return float(np.mean(self.hits))

    @property
    def monte_carlo_error(self) -> float:
        """The standard error of the share, with half a hit and half a miss added so that it is
        never 0.
        """
        n = len(self.hits)
        p = (float(np.count_nonzero(self.hits)) + 0.5) / (n + 1)
        return math.sqrt(p * (1 - p) / n)


@dataclass(frozen=True)
class Setting:
    """One row of the table.

    `run(seed, trials)` simulates; `least` and `most` are what its coverage should lie between.

    `cost` is the third root of how many times dearer than a plain setting a trial is. The command
    divides the trials by it, the tests by its cube: a dear setting is given more time and yet fewer
    trials. `short`: the trials that the tests give it. `contrast`: a method that we do not use,
    shown because its coverage lies outside the limits; where it does not, the simulation could not
    have told a wrong interval.
    """

    name: str
    run: Callable[[int, int], Covered]
    least: float = 0.93
    most: float = 0.97
    cost: int = 1
    contrast: bool = False
    short: int = 1000

    def within(self, covered: Covered) -> bool:
        """Whether the coverage lies between the limits, give or take two Monte Carlo errors."""
        slack = 2 * covered.monte_carlo_error
        return self.least - slack <= covered.share <= self.most + slack

    def good(self, covered: Covered) -> bool:
        """Whether the coverage is what it should be: within the limits, or for a contrast surely
        outside of them.
        """
        if not self.contrast:
            return self.within(covered)
        slack = 2 * covered.monte_carlo_error
        return covered.share < self.least - slack or covered.share > self.most + slack


@dataclass(frozen=True)
class Family:
    """The settings of one module: `name` is the module's, `title` and `about` stand above its
    table.
    """

    name: str
    title: str
    about: str
    settings: tuple[Setting, ...]


def all_families() -> list[Family]:
    """Import the families of this folder, in the order of the modules' names."""
    families = []
    for name in sorted(
        module_info.name
        for module_info in pkgutil.iter_modules([str(Path(__file__).parent)])
    ):
        module = importlib.import_module(f"coverage_settings.{name}")
        if settings := getattr(module, "SETTINGS", ()):
            title = (module.__doc__ or name).split(":")[0].strip()
            families.append(Family(name, title, module.ABOUT, tuple(settings)))
    return families


def all_settings() -> list[Setting]:
    """The settings of all families."""
    return [setting for family in all_families() for setting in family.settings]


def coverage_of_intervals(
    lows: Sequence[float],
    highs: Sequence[float],
    methods: Sequence[str],
    truth: float | F64,
    note: str = "",
) -> Covered:
    """Covered from one interval a trial. Counts that differ from trial to trial are left out of the
    method's name.
    """
    low = np.array(lows)
    high = np.array(highs)
    method = re.sub(r" \((G=|df = )[^)]*\)", "", max(set(methods), key=methods.count))
    return Covered(
        (low <= truth + 1e-12) & (high >= truth - 1e-12), high - low, method, note
    )


def repeat_trials(
    make: Callable[[np.random.Generator, int], Any],
    truth: float,
    note: Callable[[list[Any]], str] | None = None,
) -> Callable[[int, int], Covered]:
    """A setting's `run` from a function of the random numbers and the trial's number that gives one
    interval.

    What it gives has `low`, `high` and `method`, `interval_method` or `test`; `note` makes the note
    of all of them.
    """

    def run(seed: int, trials: int) -> Covered:
        rng = np.random.default_rng(seed)
        intervals = [make(rng, trial) for trial in range(trials)]
        methods = [
            next(
                getattr(interval, name)
                for name in ("method", "interval_method", "test")
                if hasattr(interval, name)
            )
            for interval in intervals
        ]
        note_text = "" if note is None else note(intervals)
        return coverage_of_intervals(
            [interval.low for interval in intervals],
            [interval.high for interval in intervals],
            methods,
            truth,
            note_text,
        )

    return run


@dataclass(frozen=True)
class Plain:
    """An interval computed outside the package, for contrasts."""

    low: float
    high: float
    method: str
