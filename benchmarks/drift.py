"""How often the test for drift gives a false alarm in a year of weeks, and how soon it sees a change.

    python benchmarks/drift.py [--repetitions N] [--seed S]

Items are answered by chance: some always alike, others otherwise now and then. A change flips
the verdict of a tenth of the items in such a way that the score moves by 4 points.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.drift import SCORE_ALPHA, TEXT_ALPHA
from evalwright.statistics.drift import detect_changed_texts, detect_drift

WEEKS = 52
SEEN_WITHIN = 8
CHANGE_IN_WEEK = 10
CHANGED_SHARE = 0.10
CHANGED_SCORE = 0.04


@dataclass(frozen=True)
class Setting:
    """Items, repeats of the baseline, and how noisy answers are.

    Attributes:
        noisy: share of items whose answers vary.
        rare: how often such an item gets its rarer verdict.
        texts: number of wordings that an answer has, all equally likely.
    """

    n_items: int
    n_repeats: int
    noisy: float
    rare: float
    texts: int


SETTINGS = (
    Setting(200, 2, 0.0, 0.0, 1),
    Setting(200, 2, 0.1, 0.1, 2),
    Setting(200, 2, 0.3, 0.2, 3),
    Setting(200, 3, 0.3, 0.2, 3),
    Setting(100, 2, 0.2, 0.2, 3),
    Setting(200, 2, 0.5, 0.3, 3),
    Setting(500, 2, 0.5, 0.3, 5),
)

Floats = NDArray[np.float64]


def draw_chances(setting: Setting, random: np.random.Generator) -> Floats:
    """The chance of each item to be answered right."""
    usually_right = random.random(setting.n_items) < 0.7
    is_noisy = random.random(setting.n_items) < setting.noisy
    rare = np.where(is_noisy, setting.rare, 0.0)
    return np.where(usually_right, 1 - rare, rare)


def change_some(chances: Floats, random: np.random.Generator) -> Floats:
    """Turn the verdict of some items that do not vary, more of them to right than to wrong."""
    n_items = len(chances)
    n_up = round((CHANGED_SHARE + CHANGED_SCORE) / 2 * n_items)
    n_down = round((CHANGED_SHARE - CHANGED_SCORE) / 2 * n_items)
    up = random.permutation(np.flatnonzero(chances == 0))[:n_up]
    down = random.permutation(np.flatnonzero(chances == 1))[:n_down]
    changed = chances.copy()
    changed[up] = 1 - changed[up]
    changed[down] = 1 - changed[down]
    return changed


def alarm_week(
    setting: Setting, random: np.random.Generator, weeks: int, change_in: int | None
) -> int | None:
    """Play rounds through, and return the week of the first alarm; weeks count from 1."""
    chances = draw_chances(setting, random)
    after = change_some(chances, random)

    def ask(right: Floats) -> tuple[Floats, NDArray[np.int64]]:
        scores = (random.random(setting.n_items) < right).astype(np.float64)
        wording = random.integers(setting.texts, size=setting.n_items)
        return scores, (scores * setting.texts + wording).astype(np.int64)

    baseline = [ask(chances) for _ in range(setting.n_repeats)]
    rounds = [
        ask(chances if change_in is None or week < change_in else after)
        for week in range(1, weeks + 1)
    ]
    scores = detect_drift(
        np.stack([scores for scores, _ in baseline]),
        [scores for scores, _ in rounds],
        alpha=SCORE_ALPHA,
    )
    _, text_alarm = detect_changed_texts(
        np.stack([texts for _, texts in baseline]),
        np.stack([texts for _, texts in rounds]),
        alpha=TEXT_ALPHA,
    )
    alarms = [week for week in (scores.alarm, text_alarm) if week is not None]
    return min(alarms, default=None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| items | repeats | items that vary | rarer verdict | false alarms | seen |")
    print("|---|---|---|---|---|---|")
    for setting in SETTINGS:
        random = np.random.default_rng(arguments.seed)
        false = seen = 0
        for _ in range(arguments.repetitions):
            false += alarm_week(setting, random, WEEKS, None) is not None
            last = CHANGE_IN_WEEK + SEEN_WITHIN - 1
            week = alarm_week(setting, random, last, CHANGE_IN_WEEK)
            seen += week is not None and week >= CHANGE_IN_WEEK
        shares = [f"{100 * n / arguments.repetitions:.1f}%" for n in (false, seen)]
        print(
            f"| {setting.n_items} | {setting.n_repeats} | {setting.noisy:.0%} |"
            f" {setting.rare:.0%} | {shares[0]} | {shares[1]} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
