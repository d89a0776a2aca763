"""Decision quality: forty ordinary questions with a known answer, put to the package and to the
best valid method for each.

    python -m benchmarks decisions [--trials 200] [--only WORD ...] [--seed 0]
        [--numbers FILE] [--before FILE] [--write PAGE]

Every trial simulates scores, writes them as records of runs, and asks `compare`, the gate or
`leaderboard`. An answer counts as decided rightly, decided wrongly (a provisional verdict counts
like any other, and is counted beside), or as not decided. The same scores go to the best valid
method (`decision_questions/methods.py`), which is computed with scipy alone.

The last lines are the number: the share decided rightly, over the questions whose right answer
their form can give, and the share decided wrongly, over all. The same seed gives the same data on
any version of the package.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from measuring import add_numbers, option_parser, table_lines

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before numpy loads: one process is one core

import numpy as np

from decision_questions.pages import add_output_options, write_numbers, write_page
from decision_questions.product import Verdict
from decision_questions.questions import Question, all_questions

PAGE_ROWS = "decisions"
NOT_ASKED = "–"
"""In place of a share of right decisions where the question's form has no right answer."""


@dataclass(frozen=True)
class Tally:
    """What became of the trials of one question: shares of them."""

    kind: str
    setting: str
    truth: str
    can_be_answered: bool
    trials: int
    right: float
    right_provisional: float
    wrong: float
    wrong_provisional: float
    open: float
    method: str
    method_right: float
    method_wrong: float


def seed_of(question: Question, seed: int) -> list[int]:
    """Seeds by the question's words, so that others may come and go."""
    digest = blake2b(
        f"{question.kind} {question.setting}".encode(), digest_size=6
    ).digest()
    return [seed, int.from_bytes(digest, "big")]


def tally(question: Question, trials: int, seed: int) -> Tally:
    """Ask one question many times."""
    rng = np.random.default_rng(seed_of(question, seed))
    verdicts: list[Verdict] = []
    by_method: list[str | None] = []
    for _ in range(trials):
        models = question.make(rng)
        verdicts.append(question.ask(models))
        by_method.append(question.decide(models))

    right = [verdict for verdict in verdicts if verdict.decision == question.truth]
    wrong = [
        verdict
        for verdict in verdicts
        if verdict.decision not in (None, question.truth)
    ]
    return Tally(
        kind=question.kind,
        setting=question.setting,
        truth=question.truth,
        can_be_answered=question.can_be_answered,
        trials=trials,
        right=len(right) / trials,
        right_provisional=sum(verdict.provisional for verdict in right) / trials,
        wrong=len(wrong) / trials,
        wrong_provisional=sum(verdict.provisional for verdict in wrong) / trials,
        open=1 - (len(right) + len(wrong)) / trials,
        method=question.method,
        method_right=sum(decision == question.truth for decision in by_method) / trials,
        method_wrong=sum(
            decision not in (None, question.truth) for decision in by_method
        )
        / trials,
    )


def percent(share: float, provisional: float = 0.0) -> str:
    """A share, and the part of it that is provisional."""
    return f"{share:.0%} ({provisional:.0%})" if provisional else f"{share:.0%}"


def columns(counts: Tally, before: Tally | None) -> dict[str, str]:
    """The cells of a question's row, by the heads of the columns."""
    earlier = {}
    if before is not None:
        earlier = {
            "right before": (
                percent(before.right) if counts.can_be_answered else NOT_ASKED
            ),
            "wrong before": percent(before.wrong),
        }
    cells = {
        "question": counts.kind,
        "setting": counts.setting,
        "best valid method": counts.method,
        "right by it": (
            percent(counts.method_right) if counts.can_be_answered else NOT_ASKED
        ),
        "right before": "",
        "right (provisional)": (
            percent(counts.right, counts.right_provisional)
            if counts.can_be_answered
            else NOT_ASKED
        ),
        "wrong by it": percent(counts.method_wrong),
        "wrong before": "",
        "wrong (provisional)": percent(counts.wrong, counts.wrong_provisional),
        "open": percent(counts.open),
    }
    return {
        head: earlier.get(head, cell)
        for head, cell in cells.items()
        if cell or head in earlier
    }


def table(tallies: Sequence[Tally], before: Mapping[str, Tally]) -> list[str]:
    """The Markdown table. before: earlier results by the questions' settings."""
    rows = [
        columns(counts, before.get(counts.setting) if before else None)
        for counts in tallies
    ]
    heads = list(dict.fromkeys(head for cells in rows for head in cells))
    return table_lines(
        heads, ([cells.get(head, "") for head in heads] for cells in rows)
    )


def summary(tallies: Sequence[Tally]) -> dict[str, Any]:
    """Shares over all questions: right over those that can be answered, wrong over all."""
    answerable = [counts for counts in tallies if counts.can_be_answered]

    def mean(shares: Sequence[float]) -> float:
        return float(np.mean(shares)) if shares else float("nan")

    return {
        "questions": len(tallies),
        "answerable": len(answerable),
        "right": mean([counts.right for counts in answerable]),
        "right_provisional": mean([counts.right_provisional for counts in answerable]),
        "wrong": mean([counts.wrong for counts in tallies]),
        "wrong_provisional": mean([counts.wrong_provisional for counts in tallies]),
        "method_right": mean([counts.method_right for counts in answerable]),
        "method_wrong": mean([counts.method_wrong for counts in tallies]),
    }


def sentences(tallies: Sequence[Tally], before: Mapping[str, Tally]) -> list[str]:
    """The number, in words."""
    shares = summary(tallies)
    earlier = summary(
        [before[counts.setting] for counts in tallies if counts.setting in before]
    )
    right = f"; before {earlier['right']:.1%}" if before else ""
    wrong = f"; before {earlier['wrong']:.1%}" if before else ""
    return [
        (
            f"**Decided rightly: {shares['right']:.1%}**"
            f" ({shares['right_provisional']:.1%} provisional) of"
            f" {shares['answerable']} questions that have an answer; by the best valid"
            f" methods {shares['method_right']:.1%}{right}."
        ),
        "",
        (
            f"**Decided wrongly: {shares['wrong']:.1%}**"
            f" ({shares['wrong_provisional']:.1%} provisional) of all"
            f" {shares['questions']}; by the best valid methods"
            f" {shares['method_wrong']:.1%}{wrong}."
        ),
    ]


def read_tallies(file: Path) -> dict[str, Tally]:
    """What `--numbers` wrote, by the questions' settings."""
    printed = json.loads(file.read_text(encoding="utf-8"))
    return {cells["setting"]: Tally(**cells) for cells in printed["questions"]}


def read_options(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = option_parser(__doc__)
    parser.add_argument(
        "--only",
        nargs="*",
        default=[],
        metavar="WORD",
        help="questions with one of these words",
    )
    add_numbers(parser, trials=200, seed=0)
    add_output_options(parser)
    options = parser.parse_args(words)
    if options.trials < 1:
        parser.error("--trials must be at least 1")
    return options


def main(words: Sequence[str] | None = None) -> int:
    """The command."""
    options = read_options(words)
    before = read_tallies(options.before) if options.before else {}
    started = time.monotonic()
    tallies = []
    for question in all_questions():
        title = f"{question.kind} {question.setting}"
        if options.only and not any(word in title for word in options.only):
            continue
        tallies.append(tally(question, options.trials, options.seed))
        print(f"{len(tallies)}: {title}", file=sys.stderr)

    if not tallies:
        raise SystemExit("No question has one of these words.")
    seconds = time.monotonic() - started
    print(
        f"{options.trials} trials, seed {options.seed}, {seconds:.0f} s.",
        file=sys.stderr,
    )
    lines = [*table(tallies, before), "", *sentences(tallies, before)]
    if options.write:
        write_page(options.write, PAGE_ROWS, lines)
    if options.numbers:
        questions = [asdict(counts) for counts in tallies]
        numbers = {"summary": summary(tallies), "questions": questions}
        write_numbers(options.numbers, numbers)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
