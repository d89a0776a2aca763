"""What stopping rules save, and how often an early decision is another one than the full run's: a
Markdown table.

    python -m benchmarks until [--seeds 100] [--items 1000 3000 10000] [--end-to-end 3]

Two models answer N items, right or wrong; B knows 70%, A more by the difference, with a correlation
of 0.5 (about a fifth of the items tell them apart). Their scores go through the same glue as in a
run (order of units, tables, analysis, places of looks); some seeds of the smallest N are also run
through `evaluate` with scripted models and must end in the same place. "True" is a decision that
holds of the full run: its verdict, or a difference below the margin. The exit status is 1 where
that is so in fewer than 95% of the seeds.
"""

from __future__ import annotations

import os
import sys
import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coverage_settings.sequential import correlated_pair
from evalwright import ModelSpec, ScriptedModel, evaluate
from evalwright.core.requests import Generate, Request
from evalwright.core.samples import SampleRecord, Score
from evalwright.core.tasks import Task
from evalwright.evaluation.rules import UnitOrder, resolve_rules, unit_order
from evalwright.evaluation.schedule import InterimAnalysis, look_places
from evalwright.models.scripted import last_text
from evalwright.statistics import compare_paired
from evalwright.tasks.loading import task_from_definition
from measuring import option_parser

HEAD = """| rule | difference | N | true of the full run | false | stopped early \
| median saved | mean saved |
|---|---|---|---|---|---|---|---|"""
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


def row(text: str, gap: float, n: int, outcomes: Sequence[Outcome]) -> tuple[str, bool]:
    """The table's row, and whether at least 95% say what is true of the full run."""
    right = sum(run.true for run in outcomes) / len(outcomes)
    saved = [1 - run.units / n for run in outcomes]
    early = sum(run.units < n for run in outcomes) / len(outcomes)
    cells = [
        text,
        f"{100 * gap:.0f} point{'' if gap == 0.01 else 's'}",
        f"{n:,}",
        f"{right:.0%}",
        f"{1 - right:.0%}",
        f"{early:.0%}",
        f"{float(np.median(saved)):.0%}",
        f"{float(np.mean(saved)):.0%}",
    ]
    return f"| {' | '.join(cells)} |", right >= 0.95


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


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--items", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument(
        "--end-to-end",
        type=int,
        default=3,
        help="seeds that are also run through evaluate",
    )
    arguments = parser.parse_args(words)
    good = True
    print(HEAD, flush=True)
    for n in arguments.items:
        task = questions(n)
        orders = [order_of(task, n, seed) for seed in range(arguments.seeds)]
        for text in RULES:
            for gap in GAPS:
                outcomes = [
                    outcome(task, order, text, *pair(seed, n, gap))
                    for seed, order in enumerate(orders)
                ]
                line, enough = row(text, gap, n, outcomes)
                good &= enough
                print(line, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EVALWRIGHT_HOME"] = str(Path(folder) / "home")
        os.chdir(folder)
        runs = [
            (text, gap, seed)
            for text in RULES
            for gap in GAPS
            for seed in range(arguments.end_to_end)
        ]
        equal = [
            same_end_to_end(min(arguments.items), gap, seed, text)
            for text, gap, seed in runs
        ]
        print(
            f"\nThrough `evaluate`: {sum(equal)} of {len(equal)} runs end with the same"
            " decision at the same place."
        )
    return 0 if good and all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
