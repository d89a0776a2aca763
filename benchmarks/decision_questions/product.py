"""The same questions put to the package: records are written, and its own calls give the answer."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decision_questions.records import METRIC, TaskScores, write_run
from evalwright import Run, compare, leaderboard
from evalwright.analysis.comparison import Comparison
from evalwright.analysis.gate import judge, parse_gate_rule

IN_MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory: short-lived records need no disk."""

Tasks = Mapping[str, TaskScores]


@dataclass(frozen=True)
class Verdict:
    """What was decided, None where nothing was. provisional: whether it is marked so."""

    decision: str | None
    provisional: bool = False


@contextmanager
def written_runs(models: Sequence[Tasks]) -> Iterator[list[Run]]:
    """Runs of some models in a folder that is removed afterwards, named A, B, ..."""
    place = IN_MEMORY if IN_MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, prefix="decisions-") as folder:
        names = [chr(ord("A") + number) for number in range(len(models))]
        yield [
            write_run(Path(folder), name, tasks)
            for name, tasks in zip(names, models, strict=True)
        ]


def is_provisional(*answers: Any) -> bool:
    """Whether any part of an answer is marked provisional."""
    return any(bool(getattr(answer, "provisional", False)) for answer in answers)


def which(models: Sequence[Tasks]) -> Verdict:
    """`compare A B`: which is better; over several tasks by their mean."""
    with written_runs(models) as (a, b):
        comparison = compare(a, b)
    assert isinstance(comparison, Comparison)
    if len(comparison.tasks) > 1:
        overall = comparison.overall
        assert overall is not None
        decision = "A" if overall.low > 0 else "B" if overall.high < 0 else None
        return Verdict(
            decision, decision is not None and is_provisional(comparison, overall)
        )
    (task,) = comparison.tasks
    verdict = str(task.paired.verdict if task.paired else "")
    decision = {"better": "A", "worse": "B"}.get(verdict)
    return Verdict(
        decision, decision is not None and is_provisional(comparison, task, task.paired)
    )


def dropped(models: Sequence[Tasks], points: float) -> Verdict:
    """`compare --fail-if`: is a drop by more than some points shown?"""
    failed, provisional = _gate(models, points, "shown")
    return Verdict("dropped" if failed else None, failed and provisional)


def drop_ruled_out(models: Sequence[Tasks], points: float) -> Verdict:
    """`compare --fail-if --gate not-ruled-out`: is a drop by more than some points ruled out?"""
    failed, provisional = _gate(models, points, "not-ruled-out")
    return Verdict(None if failed else "no drop", not failed and provisional)


def _gate(models: Sequence[Tasks], points: float, mode: Any) -> tuple[bool, bool]:
    rule = parse_gate_rule(f"{METRIC} drops by more than {points:g} points")
    with written_runs(models) as (reference, new):
        gate = judge(reference, new, [rule], mode=mode)
    return gate.failed, is_provisional(gate, *gate.outcomes)


def equivalent(models: Sequence[Tasks], margin: float) -> Verdict:
    """`compare A B --equivalent`: are they the same within the margin?"""
    with written_runs(models) as (a, b):
        comparison = compare(a, b, equivalent=margin)
    assert isinstance(comparison, Comparison)
    (task,) = comparison.tasks
    is_equivalent = task.equivalence is not None and task.equivalence.equivalent
    provisional = is_provisional(comparison, task, task.paired, task.equivalence)
    return Verdict(
        "equal enough" if is_equivalent else None, is_equivalent and provisional
    )


def best_of_several(models: Sequence[Tasks]) -> Verdict:
    """`leaderboard`: the one model whose rank can only be the first, by its number."""
    with written_runs(models) as runs:
        board = leaderboard(runs)
    best = [row for row in board.rows if row.ranks == (1, 1)]
    if len(best) != 1:
        return Verdict(None)
    number = ord(best[0].run) - ord("A") + 1
    return Verdict(str(number), is_provisional(board, best[0]))
