"""How often early decisions on several pairs are wrong, and what they save: a Markdown table.

    python -m benchmarks until_pairs [--trials 1500] [--items 1000] [--seed 0]

Prompts of one model answer N items; each knows a share of them, and what they know is correlated
(0.5 in the latent scale, as for prompts that differ much). All pairs are watched as `--until "all
pairs"` watches them, with a look after every twentieth of the items, and each prompt is asked
until its last pair is decided. A trial has

- another verdict: some early decision is not what Holm's procedure says of the full run;
- a false claim: some pair of equally good prompts is called different, early or at the end.

Both should be so in at most 5% of the trials. "Uncorrected" rows watch every pair by itself, at 5%
each, as the same rules do for two models. The exit status is 1 where a corrected row exceeds 5% by
more than three standard errors.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from evalwright.statistics import Monitor, compare_paired, holm, parse_rule
from evalwright.statistics.stopping_pairs import PairFamily, PairMonitor
from measuring import option_parser

HEAD = """| prompts | scores | right | method | another verdict than the full run | false claim \
| false claim of the full run | requests saved |
|---|---|---|---|---|---|---|---|"""
ALPHA = 0.05
LOOKS = 20
LEAST_STEP = 50
CORRELATION = 0.5
RULE = parse_rule("A beats B")
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """Prompts by the share of items that each gets right, how scores are, and the method."""

    shares: tuple[float, ...]
    graded: bool = False
    corrected: bool = True

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Every two prompts."""
        return list(combinations(range(len(self.shares)), 2))


SETTINGS = (
    Setting((0.7, 0.7, 0.7)),
    Setting((0.7, 0.7, 0.7), corrected=False),
    Setting((0.78, 0.7, 0.7)),
    Setting((0.85, 0.7, 0.7)),
    Setting((0.7, 0.7, 0.7, 0.7)),
    Setting((0.7, 0.7, 0.7), graded=True),
    Setting((0.78, 0.7, 0.7), graded=True),
)


@dataclass(frozen=True)
class Trial:
    """What one trial showed, see the module."""

    differs_from_full: bool
    false_claim: bool
    false_claim_in_full: bool
    saved: float


def draw_scores(setting: Setting, n_items: int, rng: np.random.Generator) -> F64:
    """Scores of each prompt on each item, (prompts, items); graded ones lie between 0 and 1."""
    n_prompts = len(setting.shares)
    common = rng.standard_normal((1, n_items)) * CORRELATION**0.5
    own = rng.standard_normal((n_prompts, n_items)) * (1 - CORRELATION) ** 0.5
    known = norm.cdf(common + own)
    shares = np.array(setting.shares)[:, None]
    if setting.graded:
        return np.asarray(known ** ((1 - shares) / shares), dtype=np.float64)
    return np.asarray(known < shares, dtype=np.float64)


def run_trial(setting: Setting, n_items: int, rng: np.random.Generator) -> Trial:
    """Watch all pairs of one draw of scores, look by look."""
    scores = draw_scores(setting, n_items, rng)
    pairs = setting.pairs
    monitors: list[Monitor] = [
        (
            PairMonitor(RULE, n_items, n_pairs=len(pairs), binary=not setting.graded)
            if setting.corrected
            else Monitor(RULE, n_items, binary=not setting.graded)
        )
        for _ in pairs
    ]
    family = PairFamily(
        [monitor for monitor in monitors if isinstance(monitor, PairMonitor)]
    ) if setting.corrected else None  # fmt: skip
    step = max(LEAST_STEP, -(-n_items // LOOKS))
    n_asked = [0] * len(setting.shares)
    for start in range(0, n_items, step):
        end = min(start + step, n_items)
        watched = [
            (monitor, pair)
            for monitor, pair in zip(monitors, pairs, strict=True)
            if not monitor.decision().decided
        ]
        for monitor, (a, b) in watched:
            n_asked[a] = n_asked[b] = end
            for item in range(start, end):
                monitor.submit(item, float(scores[a, item]), float(scores[b, item]))
        if family is not None:
            family.look()
    verdicts = [monitor.decision().verdict for monitor in monitors]
    full = full_verdicts(setting, scores)
    equal = [setting.shares[a] == setting.shares[b] for a, b in pairs]
    return Trial(
        differs_from_full=verdicts != full,
        false_claim=claims_difference(verdicts, equal),
        false_claim_in_full=claims_difference(full, equal),
        saved=1 - sum(n_asked) / (n_items * len(n_asked)),
    )


def full_verdicts(setting: Setting, scores: F64) -> list[str]:
    """What the comparison of all items says of each pair, in the words of a decision."""
    comparisons = [
        compare_paired(
            scores[a], scores[b], binary=None if not setting.graded else False
        )
        for a, b in setting.pairs
    ]
    p_values = np.array([comparison.p_value for comparison in comparisons])
    if setting.corrected:
        p_values = holm(p_values)
    return [
        "no difference seen"
        if p_value >= ALPHA
        else f"{RULE.a if comparison.difference > 0 else RULE.b} better"
        for p_value, comparison in zip(p_values, comparisons, strict=True)
    ]


def claims_difference(verdicts: Sequence[str], equal: Sequence[bool]) -> bool:
    """Whether a pair of equally good prompts is called different."""
    return any(
        is_equal and verdict.endswith("better")
        for verdict, is_equal in zip(verdicts, equal, strict=True)
    )


def row(setting: Setting, trials: Sequence[Trial]) -> str:
    """The table's row."""
    shares = [
        np.mean([trial.differs_from_full for trial in trials]),
        np.mean([trial.false_claim for trial in trials]),
        np.mean([trial.false_claim_in_full for trial in trials]),
    ]
    cells = [
        str(len(setting.shares)),
        "graded" if setting.graded else "right or wrong",
        ", ".join(f"{share:.0%}" for share in setting.shares),
        "Holm" if setting.corrected else "uncorrected",
        *(f"{share:.1%}" for share in shares),
        f"{np.mean([trial.saved for trial in trials]):.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def exceeds(trials: Sequence[Trial]) -> bool:
    """Whether one of the two errors is clearly above 5%."""
    bound: float = ALPHA + 3 * (ALPHA * (1 - ALPHA) / len(trials)) ** 0.5
    wrong = float(np.mean([trial.differs_from_full for trial in trials]))
    false = float(np.mean([trial.false_claim for trial in trials]))
    return bool(max(wrong, false) > bound)


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--trials", type=int, default=1500)
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(words)
    good = True
    print(HEAD, flush=True)
    for number, setting in enumerate(SETTINGS):
        rng = np.random.default_rng([arguments.seed, number])
        trials = [
            run_trial(setting, arguments.items, rng) for _ in range(arguments.trials)
        ]
        good &= not setting.corrected or not exceeds(trials)
        print(row(setting, trials), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
