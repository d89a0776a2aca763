"""Verdicts where answers are missing: how often they are given, how often wrong, and how often
called provisional.

    python -m benchmarks missing [--trials 1000] [--seed 0] [--only WORD]

Right-or-wrong answers of two models to the same items, which have difficulties in common (a
logistic model with a normal difficulty). Every row says what should hold; the exit status is 1
where a row misses its aim by more than two Monte Carlo errors.

- given: of the trials in which the items that both have show a difference, those in which the
  comparison gives that verdict
- provisional: verdicts and non-verdicts that are marked, although answers are missing at random
- false: verdicts on equal models
- unmarked: a model that lacks half of the answers that it would get wrong, called better without
  the mark
- until: how many more items a stopping rule needs, and how often it says something else than the
  full run
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from measuring import Table, option_parser

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before numpy loads: one process is one core

import numpy as np
import numpy.typing as npt

from evalwright.analysis.robustness import explain_provisional
from evalwright.analysis.trees import Average
from evalwright.runs.measures import Matrix, Measure, paired_of
from evalwright.statistics import Monitor, compare_paired, parse_rule

F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

LOOK_EVERY = 50
"""Units between two looks of a stopping rule, as runs have it for up to 1,000 units."""


@dataclass(frozen=True)
class Row:
    """A line of the table. aim: the limit of `share`; at_most: whether it is an upper one."""

    name: str
    share: float
    trials: int
    aim: float
    at_most: bool
    note: str = ""

    @property
    def error(self) -> float:
        """Monte Carlo error of the share."""
        return math.sqrt(max(self.aim * (1 - self.aim), 1e-9) / max(1, self.trials))

    @property
    def holds(self) -> bool:
        """Whether the aim is met, but for two Monte Carlo errors."""
        return (
            self.share <= self.aim + 2 * self.error
            if self.at_most
            else self.share >= self.aim - 2 * self.error
        )


def answers(rng: np.random.Generator, n: int, first: float, second: float) -> F64:
    """(2, n) right-or-wrong scores with these expected rates."""
    difficulty = rng.normal(0, 1.5, n)
    rates = np.stack(
        [1 / (1 + np.exp(-(_centre(rate) - difficulty))) for rate in (first, second)]
    )
    return (rng.random((2, n)) < rates).astype(np.float64)


def _centre(rate: float) -> float:
    """The log odds at which the mean over the difficulties is `rate`."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    low = -12.0
    high = 12.0
    for _ in range(50):
        middle = (low + high) / 2
        mean = float(
            (weights / weights.sum() / (1 + np.exp(-(middle - 1.5 * nodes)))).sum()
        )
        low, high = (middle, high) if mean < rate else (low, middle)
    return middle


def at_random(rng: np.random.Generator, scores: F64, share: float) -> F64:
    """Every answer is missing with this probability."""
    return np.where(rng.random(scores.shape) < share, np.nan, scores)


def half_of_the_wrong(rng: np.random.Generator, scores: F64, share: float = 0.5) -> F64:
    """The first model lacks this share of what it gets wrong."""
    lost = (scores[0] == 0) & (rng.random(scores.shape[1]) < share)
    return np.stack([np.where(lost, np.nan, scores[0]), scores[1]])


def matrix(values: F64) -> Matrix:
    """The scores of two runs as comparisons have them."""
    measure = Measure("task", "accuracy", "scorer", "accuracy", True, False, "score")
    everything = np.ones(values.shape, bool)
    nothing = np.zeros(values.shape, bool)
    keys = np.arange(values.shape[1])
    return Matrix(
        measure, keys, values, everything, np.isnan(values), nothing, None, {}
    )


def compare_values(values: F64) -> tuple[str, bool]:
    """The verdict, and whether it is provisional."""
    score_matrix = matrix(values)
    provisional = explain_provisional(Average((score_matrix,)), ("A", "B"))
    return paired_of(score_matrix).verdict, bool(provisional)


def repeated_verdict_rows(trials: int, seed: int) -> Iterator[Row]:
    """Verdicts where the scored items show one, at 5% missing."""
    for n, first, second in ((1000, 0.66, 0.60), (300, 0.70, 0.60), (200, 0.75, 0.60)):
        rng = np.random.default_rng(seed)
        verdicts = repeated_verdicts = full = 0
        for _ in range(trials):
            complete = answers(rng, n, first, second)
            values = at_random(rng, complete, 0.05)
            there = ~np.isnan(values).any(axis=0)
            alone = compare_paired(*values[:, there]).verdict
            full += compare_paired(*complete).verdict != "no difference seen"
            if alone != "no difference seen":
                verdicts += 1
                repeated_verdicts += compare_values(values)[0] == alone
        note = (
            f"shown in {verdicts / trials:.1%} of the trials; with nothing missing in"
            f" {full / trials:.1%}"
        )
        yield Row(
            f"given: n {n}, {100 * (first - second):.0f} points",
            repeated_verdicts / verdicts,
            verdicts,
            0.98,
            False,
            note,
        )


def provisional_rows(trials: int, seed: int) -> Iterator[Row]:
    """How often 2% missing at random are called provisional."""
    for n in (200, 300, 1000, 5000):
        rng = np.random.default_rng(seed)
        marked = sum(
            compare_values(at_random(rng, answers(rng, n, 0.65, 0.6), 0.02))[1]
            for _ in range(trials)
        )
        yield Row(
            f"provisional: n {n}, 2% missing at random",
            marked / trials,
            trials,
            0.03,
            True,
        )


def false_rows(trials: int, seed: int) -> Iterator[Row]:
    """Equal models with answers missing at random."""
    for n, share in ((100, 0.05), (200, 0.05), (1000, 0.05), (1000, 0.10)):
        rng = np.random.default_rng(seed)
        wrong = sum(
            compare_values(at_random(rng, answers(rng, n, 0.6, 0.6), share))[0]
            != "no difference seen"
            for _ in range(trials)
        )
        yield Row(
            f"false: n {n}, {100 * share:.0f}% missing at random",
            wrong / trials,
            trials,
            0.06,
            True,
        )


def unmarked_rows(trials: int, seed: int) -> Iterator[Row]:
    """A model that lacks half of its wrong answers beside one that is as good."""
    for n in (200, 1000):
        for rate in (0.8, 0.65, 0.5):
            rng = np.random.default_rng(seed)
            better = unmarked = 0
            for _ in range(trials):
                verdict, provisional = compare_values(
                    half_of_the_wrong(rng, answers(rng, n, rate, rate))
                )
                better += verdict == "better"
                unmarked += verdict == "better" and not provisional
            name = f"unmarked: n {n}, {100 * (1 - rate) / 2:.0f}% of the items missing"
            yield Row(
                name,
                unmarked / trials,
                trials,
                0.01,
                True,
                f"called better in {better / trials:.1%}",
            )


def until_rows(trials: int, seed: int) -> Iterator[Row]:
    """`A beats B` and `accuracy +-0.05` with 5% of the answers missing, and with none missing."""
    for text, n, first, second in (
        ("A beats B", 1000, 0.70, 0.60),
        ("A beats B", 1000, 0.60, 0.60),
        ("A beats B", 1000, 0.65, 0.60),
        ("accuracy +-0.04", 1000, 0.65, 0.65),
    ):
        rng = np.random.default_rng(seed)
        units = np.zeros((2, trials))
        wrong = 0
        for trial in range(trials):
            complete = answers(rng, n, first, second)
            values = at_random(rng, complete, 0.05)
            units[0, trial] = _stopped(text, complete).units
            decision = _stopped(text, values)
            units[1, trial] = decision.units
            wrong += decision.early and _contradicts(decision, values)
        more = units[1].mean() / units[0].mean() - 1
        name = f"until '{text}': n {n}, {100 * (first - second):.0f} points, 5% missing"
        needed = f"{units[1].mean():.0f} units against {units[0].mean():.0f}"
        yield Row(f"{name}, more units", more, 10**9, 0.10, True, needed)
        yield Row(f"{name}, wrong", wrong / trials, trials, 0.05, True)


def _stopped(text: str, values: F64) -> Any:
    monitor = Monitor(parse_rule(text), values.shape[1])
    scores = [[None if math.isnan(x) else float(x) for x in row] for row in values]
    for unit in range(values.shape[1]):
        second = None if monitor.rule.kind == "precision" else scores[1][unit]
        monitor.submit(unit, scores[0][unit], second)
        if (unit + 1) % LOOK_EVERY == 0 and monitor.decision().decided:
            break
    return monitor.decision()


def _contradicts(decision: Any, values: F64) -> bool:
    """Whether an early decision says something else than the full run of the same answers."""
    if decision.verdict == "precise enough":
        mean = float(np.nanmean(values[0]))
        return not decision.low - 1e-9 <= mean <= decision.high + 1e-9
    full = compare_paired(*values).verdict
    verdict = {"better": "A better", "worse": "B better"}.get(full, full)
    return bool(decision.verdict != verdict)


FAMILIES: dict[str, Callable[[int, int], Iterator[Row]]] = {
    "given": repeated_verdict_rows,
    "provisional": provisional_rows,
    "false": false_rows,
    "unmarked": unmarked_rows,
    "until": until_rows,
}


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a row misses its aim."""
    parser = option_parser(__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=FAMILIES, action="append")
    arguments = parser.parse_args(words)
    table = Table(["row", "share", "aim", "trials", "verdict"])
    missed = False
    for name in arguments.only or FAMILIES:
        for row in FAMILIES[name](arguments.trials, arguments.seed):
            sign = "at most" if row.at_most else "at least"
            verdict = "holds" if row.holds else "MISSES"
            trials = "" if row.trials == 10**9 else f"{row.trials:,}"
            cells = [
                row.name,
                f"{row.share:.1%}",
                f"{sign} {row.aim:.0%}",
                trials,
                f"{verdict}. {row.note}",
            ]
            table.add(*cells)
            missed |= not row.holds
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
