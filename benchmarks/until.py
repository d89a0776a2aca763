"""What stopping rules save, and how often an early decision is another one than the full run's.

    python -m benchmarks until [--only rules,pairs,evaluate] [--seeds 100]
        [--items 1000 3000 10000] [--end-to-end 3] [--trials 1500]

`rules`: two models answer N items, right or wrong; B knows 70%, A more by the difference, with a
correlation of 0.5 (about a fifth of the items tell them apart). Their scores go through the same
glue as in a run (order of units, tables, analysis, places of looks). "True" is a decision that
holds of the full run: its verdict, or a difference below the margin; the exit status is 1 where
that is so in fewer than 95% of the seeds.

`pairs`: prompts of one model answer the smallest N; each knows a share of the items, and what they
know is correlated (0.5 in the latent scale, as for prompts that differ much). All pairs are watched
as `--until "all pairs"` watches them, and each prompt is asked until its last pair is decided.
Counted are trials in which an early decision is not what Holm's procedure says of the full run, and
those in which two equally good prompts are called different, early or at the end. "Uncorrected"
watches every pair by itself, at 5% each. The exit status is 1 where a corrected row exceeds 5% by
more than three standard errors.

`evaluate`: some seeds of the smallest N of `rules` are also run through `evaluate` with scripted
models, and must end in the same place.
"""

from __future__ import annotations

import os
import sys
import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from coverage_settings.sequential import correlated_pair
from evalwright import ModelSpec, ScriptedModel, evaluate
from evalwright.core.requests import Generate, Request
from evalwright.core.samples import SampleRecord, Score
from evalwright.core.tasks import Task
from evalwright.evaluation.rules import UnitOrder, resolve_rules, unit_order
from evalwright.evaluation.schedule import InterimAnalysis, look_places
from evalwright.models.scripted import last_text
from evalwright.statistics import Monitor, compare_paired, holm, parse_rule
from evalwright.statistics.stopping_pairs import PairFamily, PairMonitor
from evalwright.tasks.loading import task_from_definition
from measuring import Table, add_numbers, option_parser

RULE_COLUMNS = (
    "rule",
    "difference",
    "N",
    "true of the full run",
    "false",
    "stopped early",
    "median saved",
    "mean saved",
)
PAIR_COLUMNS = (
    "prompts",
    "scores",
    "right",
    "method",
    "another verdict than the full run",
    "false claim",
    "false claim of the full run",
    "requests saved",
)
ALPHA = 0.05
LOOKS = 20
LEAST_STEP = 50
CORRELATION = 0.5
PAIR_RULE = parse_rule("A beats B")
RULES = ("A beats B", "A differs from B or not by 0.03")
GAPS = (0.04, 0.01, 0.0)
SPECS = (ModelSpec("scripted/a"), ModelSpec("scripted/b"))

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """One seed: the early verdict, the verdict of the full run, and the items it took."""

    verdict: str
    full: str
    true: bool
    units: int


def pair(seed: int, n: int, gap: float) -> tuple[F64, F64]:
    """Scores of A and B on n items: B knows 70%, A more by the gap, with a correlation of 0.5."""
    return correlated_pair(
        np.random.default_rng([seed, n, round(1000 * gap)]), n, 0.7 + gap, 0.7
    )


def questions(n: int) -> Task:
    """A task of n questions; B's and A's answers are right or wrong."""
    return task_from_definition(
        {
            "task": "items",
            "dataset": {
                "rows": [
                    {"id": str(i), "input": f"Item {i}", "target": "yes"}
                    for i in range(n)
                ]
            },
            "scorers": ["exact-match"],
        }
    )


def outcome(task: Task, order: UnitOrder, text: str, a: F64, b: F64) -> Outcome:
    """One run by the glue of `evaluate`: record by record into the analysis, and a look at every
    place.
    """
    (rule,) = resolve_rules([text], SPECS)
    analysis = InterimAnalysis(rule, (0, 1), 0, task, order, 1)
    start = 0
    for end in look_places(len(a)):
        for index in order.items[start:end]:
            for model, scores in enumerate((a, b)):
                analysis.tables[model].add(record(index, scores[index]))
        analysis.look()
        start = end
        if not analysis.open:
            break
    full = compare_paired(a, b).verdict
    expected = {"better": "scripted/a better", "worse": "scripted/b better"}.get(
        full, full
    )
    decision = analysis.decision
    margin = analysis.rule.margin
    close = margin is not None and decision.verdict.startswith("no difference of")
    open_end = decision.verdict == "undecided" and expected == "no difference seen"
    true = (
        abs(float((a - b).mean())) < (margin or 0.0)
        if close
        else decision.verdict == expected or open_end
    )
    return Outcome(decision.verdict, expected, true, decision.units)


_NOTHING: Any = None


def record(index: int, score: float) -> SampleRecord:
    """A record with the fields that the analysis reads."""
    return SampleRecord(
        "items", index, 0, _NOTHING, None, {"exact-match": Score(float(score))}
    )


def print_rule(
    table: Table, text: str, gap: float, n: int, outcomes: Sequence[Outcome]
) -> bool:
    """Print a row; return whether at least 95% say what is true of the full run."""
    right = sum(run.true for run in outcomes) / len(outcomes)
    saved = [1 - run.units / n for run in outcomes]
    early = sum(run.units < n for run in outcomes) / len(outcomes)
    table.add(
        text,
        f"{100 * gap:.0f} point{'' if gap == 0.01 else 's'}",
        f"{n:,}",
        f"{right:.0%}",
        f"{1 - right:.0%}",
        f"{early:.0%}",
        f"{float(np.median(saved)):.0%}",
        f"{float(np.mean(saved)):.0%}",
    )
    return right >= 0.95


def same_end_to_end(n: int, gap: float, seed: int, text: str) -> bool:
    """Whether `evaluate` stops where the glue alone does, with the same verdict."""
    a, b = pair(seed, n, gap)

    def model(name: str, scores: F64) -> ScriptedModel:
        def says(request: Request) -> str:
            assert isinstance(request, Generate)
            return "yes" if scores[int(last_text(request.prompt).split()[-1])] else "no"

        return ScriptedModel(says, name=name, version=f"{n} {gap} {seed}")

    task = questions(n)
    expected = outcome(task, order_of(task, n, seed), text, a, b)
    models = [model("scripted/a", a), model("scripted/b", b)]
    run, _ = evaluate(
        task, models, until=text, seed=seed, name=f"{n}-{seed}", replace=True
    )
    (decision,) = run.data["stopping"]["decisions"]
    return (decision["verdict"], decision["units"]) == (
        expected.verdict,
        expected.units,
    )


def order_of(task: Task, n: int, seed: int) -> UnitOrder:
    """The order that `evaluate` asks in."""
    from evalwright.evaluation.task_choice import sample_order

    chosen: array[int] = sample_order(n, seed, None)
    return unit_order(task, chosen, seed)


# -- several pairs


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
    of_prompt = rng.standard_normal((n_prompts, n_items)) * (1 - CORRELATION) ** 0.5
    known = norm.cdf(common + of_prompt)
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
            PairMonitor(
                PAIR_RULE, n_items, n_pairs=len(pairs), binary=not setting.graded
            )
            if setting.corrected
            else Monitor(PAIR_RULE, n_items, binary=not setting.graded)
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
        else f"{PAIR_RULE.a if comparison.difference > 0 else PAIR_RULE.b} better"
        for p_value, comparison in zip(p_values, comparisons, strict=True)
    ]


def claims_difference(verdicts: Sequence[str], equal: Sequence[bool]) -> bool:
    """Whether a pair of equally good prompts is called different."""
    return any(
        is_equal and verdict.endswith("better")
        for verdict, is_equal in zip(verdicts, equal, strict=True)
    )


def print_pairs(table: Table, setting: Setting, trials: Sequence[Trial]) -> None:
    """Print a row."""
    shares = [
        np.mean([trial.differs_from_full for trial in trials]),
        np.mean([trial.false_claim for trial in trials]),
        np.mean([trial.false_claim_in_full for trial in trials]),
    ]
    table.add(
        len(setting.shares),
        "graded" if setting.graded else "right or wrong",
        ", ".join(f"{share:.0%}" for share in setting.shares),
        "Holm" if setting.corrected else "uncorrected",
        *(f"{share:.1%}" for share in shares),
        f"{np.mean([trial.saved for trial in trials]):.0%}",
    )


def exceeds(trials: Sequence[Trial]) -> bool:
    """Whether one of the two errors is clearly above 5%."""
    bound: float = ALPHA + 3 * (ALPHA * (1 - ALPHA) / len(trials)) ** 0.5
    wrong = float(np.mean([trial.differs_from_full for trial in trials]))
    false = float(np.mean([trial.false_claim for trial in trials]))
    return bool(max(wrong, false) > bound)


# -- all of it


def measure_rules(items: Sequence[int], seeds: int) -> bool:
    """Print a table of rules about two models; return whether enough decisions are true."""
    is_good = True
    table = Table(RULE_COLUMNS)
    for n in items:
        task = questions(n)
        orders = [order_of(task, n, seed) for seed in range(seeds)]
        for text in RULES:
            for gap in GAPS:
                outcomes = [
                    outcome(task, order, text, *pair(seed, n, gap))
                    for seed, order in enumerate(orders)
                ]
                is_good &= print_rule(table, text, gap, n, outcomes)
    return is_good


def measure_pairs(n_items: int, n_trials: int) -> bool:
    """Print a table of rules about all pairs; return whether errors are rare enough."""
    is_good = True
    table = Table(PAIR_COLUMNS)
    for number, setting in enumerate(SETTINGS):
        rng = np.random.default_rng([0, number])
        trials = [run_trial(setting, n_items, rng) for _ in range(n_trials)]
        is_good &= not setting.corrected or not exceeds(trials)
        print_pairs(table, setting, trials)
    return is_good


def measure_evaluations(n_items: int, seeds: int) -> bool:
    """Run some seeds through `evaluate`; return whether all end as the glue alone does."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EVALWRIGHT_HOME"] = str(Path(folder) / "home")
        os.chdir(folder)
        equal = [
            same_end_to_end(n_items, gap, seed, text)
            for text in RULES
            for gap in GAPS
            for seed in range(seeds)
        ]
        os.chdir("/")
    print(
        f"\nThrough `evaluate`: {sum(equal)} of {len(equal)} runs end with the same"
        " decision at the same place."
    )
    return all(equal)


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--only", default="rules,pairs,evaluate")
    parser.add_argument("--items", type=int, nargs="+", default=[1000, 3000, 10_000])
    add_numbers(parser, seeds=100, end_to_end=3, trials=1500)
    options = parser.parse_args(words)
    least = min(options.items)
    parts = {
        "rules": lambda: measure_rules(options.items, options.seeds),
        "pairs": lambda: measure_pairs(least, options.trials),
        "evaluate": lambda: measure_evaluations(least, options.end_to_end),
    }
    chosen = options.only.split(",")
    if unknown := [name for name in chosen if name not in parts]:
        parser.error(f"no such part: {', '.join(unknown)}")
    is_good = {name: parts[name]() for name in chosen}
    return 0 if all(is_good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
