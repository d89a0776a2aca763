"""Rank ranges of a board of many models: how wide they are, and how often they hold the true ranks.

    python benchmarks/board_ranks.py FOLDER [--models 96] [--boards 200] [--seed 0]

FOLDER holds recorded runs of the HHEM leaderboard engine (`<company>/<model>/judgments.jsonl`). Their hallucination rates and answer rates
are spread over `--models` models by their quantiles. How hard the passages are, and how alike the models are, is taken from the
same runs: a latent difficulty per passage, with the spread that gives the correlation of two real models. Passages that a model did not
answer have no score and are left out of its pairs. The table has the rank ranges on the same boards with missing answers left out, and in
the worst case.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy loads: one process is one core

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from evalwright.statistics import rank_sets
from evalwright.statistics.many_models import all_differences

F64 = npt.NDArray[np.float64]
HALLUCINATED_BELOW = 0.5
WORST_CASE_BOARDS = 3


def read_models(folder: Path) -> dict[str, F64]:
    """By model, of each recorded passage: 1 where the summary is a hallucination, nan where the model did not answer."""
    found = {}
    for file in sorted(folder.glob("*/*/judgments.jsonl")):
        judged = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        found[str(file.parent.relative_to(folder))] = np.array(
            [float(one["hhem_score"] < HALLUCINATED_BELOW) if one["is_valid"] else np.nan for one in judged]
        )
    return found


def mean_correlation(values: F64) -> float:
    """The mean correlation of two models on the passages that both answered."""
    found = []
    for a, b in combinations(range(len(values)), 2):
        both = ~np.isnan(values[a] + values[b])
        found.append(np.corrcoef(values[a, both], values[b, both])[0, 1])
    return float(np.mean(found))


def spread_for(correlation: float, rate: float, rng: np.random.Generator) -> float:
    """The share of a latent normal variable that is the passage's, which gives two models of this rate the correlation."""
    passage = rng.normal(size=400_000)
    low, high = 0.0, 0.99
    for _ in range(25):
        middle = (low + high) / 2
        chance = ndtr((ndtri(rate) + np.sqrt(middle) * passage) / np.sqrt(1 - middle))
        reached = float(chance.var()) / (rate * (1 - rate))
        low, high = (middle, high) if reached < correlation else (low, middle)
    return (low + high) / 2


def board(rng: np.random.Generator, rates: F64, answered: F64, share: float, n: int) -> F64:
    """(models, passages) of one board."""
    passage = rng.normal(size=n)
    own = rng.normal(size=(len(rates), n))
    latent = np.sqrt(share) * passage + np.sqrt(1 - share) * own
    values = (latent < ndtri(rates)[:, None]).astype(np.float64)
    values[rng.random(values.shape) > answered[:, None]] = np.nan
    return values


def main() -> int:
    """Print the table; 1 where the true ranks are inside in fewer than 95% of the boards, but for two Monte Carlo errors."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, default=96)
    parser.add_argument("--boards", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    real = read_models(arguments.folder)
    rate = np.array([np.nanmean(values) for values in real.values()])
    answer_rate = np.array([1 - np.isnan(values).mean() for values in real.values()])
    n = max(map(len, real.values()))
    # Records have no passage ids; complete ones are in the order of the passages.
    correlation = mean_correlation(np.stack([values for values in real.values() if len(values) == n]))
    share = spread_for(correlation, float(np.median(rate)), rng)
    at = (np.arange(arguments.models) + 0.5) / arguments.models
    rates = np.sort(np.quantile(rate, at))
    answered = rng.permutation(np.quantile(answer_rate, at))
    better = np.array([np.count_nonzero(rates < own) for own in rates])
    worse = np.array([np.count_nonzero(rates > own) for own in rates])
    models = arguments.models
    inside, widths, worst_widths = 0, list[float](), list[float]()
    first = ""
    for number in range(arguments.boards):
        values = board(rng, rates, answered, share, n)
        sets = rank_sets(all_differences(values, missing=False), higher_is_better=False)
        inside += bool(((sets.low <= 1 + better) & (sets.high >= models - worse)).all())
        widths.append(float(np.mean(sets.high - sets.low + 1)))
        if number < WORST_CASE_BOARDS:
            bounded = all_differences(values, missing_policy="worst-case")
            worst = rank_sets(bounded, higher_is_better=False)
            worst_widths.append(float(np.mean(worst.high - worst.low + 1)))
            if not first:
                shown = [0, models // 4, models // 2, models - 1]
                first = "; ".join(
                    f"row {place + 1}: {sets.low[place]}-{sets.high[place]} (worst case {worst.low[place]}-{worst.high[place]})"
                    for place in shown
                )
    held = inside / arguments.boards
    print(
        f"{len(real)} real models, {n:,} passages, rates {100 * rate.min():.1f} to {100 * rate.max():.1f}%, answered "
        f"{100 * answer_rate.min():.1f} to {100 * answer_rate.max():.1f}%, mean correlation {correlation:.2f}."
    )
    print(f"{models} models, {arguments.boards} boards: all true ranks inside in {held:.1%} of the boards.")
    print(
        f"Mean number of ranks in a range: {np.mean(widths):.1f}; in the worst case {np.mean(worst_widths):.1f}."
    )
    print(first)
    return int(held < 0.95 - 2 * np.sqrt(0.95 * 0.05 / arguments.boards))


if __name__ == "__main__":
    sys.exit(main())
