"""How often the test for drift gives a false alarm in a year, and how soon it sees a change.

    python -m benchmarks drift [--repetitions N] [--seed S] [--only NAME ...]

Items are answered by chance: some always alike, others otherwise now and then. A change flips
the verdict of a tenth of the items in such a way that the score moves by 4 points, or of more of
them where a setting says so. Days may be good or bad for all items together, answers may be
missing, and scores may be graded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.drift import ALPHA, SCORE_SHARE, TEXT_SHARE, VERDICT_SHARE
from evalwright.statistics.drift import (
    detect_changed_texts,
    detect_changed_verdicts,
    detect_drift,
)
from measuring import Table, option_parser

WEEKS = 52
SEEN_WITHIN = 8
CHANGE_IN_WEEK = 10
CHANGED_SHARE = 0.10
CHANGED_SCORE = 0.04


BAD_DAY_SHARE = 0.2
"""Share of items that fail on a bad day."""


@dataclass(frozen=True)
class Setting:
    """Items, repeats, how noisy answers are, and what days do to all of them.

    Attributes:
        name: what `--only` takes.
        n_items: number of items.
        n_repeats: repeats in each round.
        later_repeats: repeats in the rounds after the first one; 0 for as many.
        noisy: share of items whose answers vary.
        rare: how often such an item gets its rarer verdict.
        texts: number of wordings that an answer has, all equally likely.
        day: standard deviation of what a day adds to the score.
        bad_days: chance of a day on which a fifth of the items fail.
        missing: share of answers that are missing, more of them of hard items.
        is_graded: whether scores are graded in place of right and wrong.
        changed_share: share of items whose verdict the change flips.
        changed_score: what it adds to the score.
    """

    name: str
    n_items: int = 200
    n_repeats: int = 2
    later_repeats: int = 0
    noisy: float = 0.1
    rare: float = 0.1
    texts: int = 2
    day: float = 0.0
    bad_days: float = 0.0
    missing: float = 0.0
    is_graded: bool = False
    changed_share: float = CHANGED_SHARE
    changed_score: float = CHANGED_SCORE


SETTINGS = (
    Setting("never varies", noisy=0.0, rare=0.0, texts=1),
    Setting("varies little"),
    Setting("varies", noisy=0.3, rare=0.2, texts=3),
    Setting("varies much", noisy=0.5, rare=0.3, texts=3),
    Setting("600 items, varies much", n_items=600, noisy=0.5, rare=0.3, texts=5),
    Setting("without repeats", n_repeats=1, noisy=0.3, rare=0.2, texts=3),
    Setting("graded", noisy=0.2, rare=0.2, texts=1, is_graded=True),
    Setting("a tenth missing", noisy=0.3, rare=0.2, missing=0.1),
    Setting("days of 1 point", day=0.01),
    Setting("days of 4 points", day=0.04),
    Setting("bad days, one in 20", bad_days=0.05),
    Setting("20 items", n_items=20),
    Setting("two repeats, then one", later_repeats=1, noisy=0.3, rare=0.2),
    Setting("50 items", n_items=50),
    Setting("100 items", n_items=100),
    Setting("20 items, 10 points", n_items=20, changed_share=0.2, changed_score=0.1),
    Setting("20 items, 20 points", n_items=20, changed_share=0.3, changed_score=0.2),
    Setting("50 items, 10 points", n_items=50, changed_share=0.2, changed_score=0.1),
    Setting("100 items, 5 points", n_items=100, changed_share=0.1, changed_score=0.05),
)

Floats = NDArray[np.float64]


def draw_chances(setting: Setting, random: np.random.Generator) -> Floats:
    """The chance of each item to be answered right."""
    usually_right = random.random(setting.n_items) < 0.7
    is_noisy = random.random(setting.n_items) < setting.noisy
    rare = np.where(is_noisy, setting.rare, 0.0)
    return np.where(usually_right, 1 - rare, rare)


def change_some(
    chances: Floats, random: np.random.Generator, setting: Setting
) -> Floats:
    """Turn the verdict of some items that do not vary, more of them to right than to wrong."""
    n_items = len(chances)
    n_up = round((setting.changed_share + setting.changed_score) / 2 * n_items)
    n_down = round((setting.changed_share - setting.changed_score) / 2 * n_items)
    up = random.permutation(np.flatnonzero(chances == 0))[:n_up]
    down = random.permutation(np.flatnonzero(chances == 1))[:n_down]
    changed = chances.copy()
    changed[up] = 1 - changed[up]
    changed[down] = 1 - changed[down]
    return changed


class Year:
    """A model that is asked every week, and may change.

    Args:
        setting: the items and what happens to them.
        random: draws everything.
    """

    def __init__(self, setting: Setting, random: np.random.Generator) -> None:
        self.setting = setting
        self.random = random
        self.chances = draw_chances(setting, random)
        self.changed = change_some(self.chances, random, setting)
        self.quality = random.normal(0, 0.15, setting.n_items)

    def ask(self, chances: Floats, n_repeats: int) -> tuple[Floats, NDArray[np.int64]]:
        """Draw the scores and texts of a round, (repeats, items) each."""
        setting = self.setting
        random = self.random
        shift = random.normal(0, setting.day)
        is_shifted = random.random(setting.n_items) < abs(shift)
        right = np.where(is_shifted, float(shift > 0), chances)
        if random.random() < setting.bad_days:
            fails = random.random(setting.n_items) < BAD_DAY_SHARE
            right = np.where(fails, 0.0, right)
        shape = (n_repeats, setting.n_items)
        scores = (random.random(shape) < right).astype(np.float64)
        texts = scores * setting.texts + random.integers(setting.texts, size=shape)
        if setting.is_graded:
            graded = 0.2 + 0.6 * scores + self.quality + random.normal(0, 0.05, shape)
            scores = np.clip(graded, 0, 1)
        is_missing = random.random(shape) < setting.missing * (1.5 - chances)
        return (
            np.where(is_missing, np.nan, scores),
            np.where(is_missing, -1, texts.astype(np.int64)),
        )

    def play(
        self, weeks: int, change_in: int | None
    ) -> list[tuple[Floats, NDArray[np.int64]]]:
        """Draw the baseline and the rounds after it; weeks count from 1."""
        rounds = [self.ask(self.chances, self.setting.n_repeats)]
        n_repeats = self.setting.later_repeats or self.setting.n_repeats
        for week in range(1, weeks + 1):
            is_changed = change_in is not None and week >= change_in
            chances = self.changed if is_changed else self.chances
            rounds.append(self.ask(chances, n_repeats))
        return rounds


Rounds = list[tuple[Floats, NDArray[np.int64]]]


def alarm_week(rounds: Rounds) -> int:
    """The week of a year's first alarm by the tests that `check drift` makes; 0 for none."""
    first, *later = [scores for scores, _ in rounds]
    first_texts, *later_texts = [texts for _, texts in rounds]
    alarms = (
        detect_drift(first, later, alpha=SCORE_SHARE * ALPHA).alarm,
        detect_changed_verdicts(first, later, alpha=VERDICT_SHARE * ALPHA)[1],
        detect_changed_texts(first_texts, later_texts, alpha=TEXT_SHARE * ALPHA)[1],
    )
    return min((week for week in alarms if week is not None), default=0)


def count_alarms(setting: Setting, repetitions: int, seed: int) -> tuple[int, int]:
    """Count the years with a false alarm, and those in which the change is seen in time."""
    random = np.random.default_rng(seed)
    last = CHANGE_IN_WEEK + SEEN_WITHIN - 1
    n_false = n_seen = 0
    for _ in range(repetitions):
        unchanged = Year(setting, random).play(WEEKS, None)
        changed = Year(setting, random).play(last, CHANGE_IN_WEEK)
        n_false += alarm_week(unchanged) > 0
        n_seen += alarm_week(changed) >= CHANGE_IN_WEEK
    return n_false, n_seen


def main(words: Sequence[str] | None = None) -> int:
    parser = option_parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=())
    arguments = parser.parse_args(words)
    table = Table(["setting", "false alarms in 52 weeks", "seen within 8"])
    for setting in SETTINGS:
        if arguments.only and setting.name not in arguments.only:
            continue
        counts = count_alarms(setting, arguments.repetitions, arguments.seed)
        shares = [f"{100 * n / arguments.repetitions:.1f}%" for n in counts]
        table.add(setting.name, *shares)
    return 0


if __name__ == "__main__":
    sys.exit(main())
