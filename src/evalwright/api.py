"""The calls around `evaluate` that work on finished runs: open, compare, score again, make a board."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalwright.rescoring import score_run
from evalwright.runs.board import Board, make_board
from evalwright.runs.comparison import Comparison, compare_runs
from evalwright.runs.reader import Run
from evalwright.runs.reader import open_run as _open_run

__all__ = ["compare", "leaderboard", "open_run", "score_run"]

RunLike = Run | str | Path


def open_run(run: RunLike, runs_folder: str | Path = "runs") -> Run:
    """The run at a folder, or of that name in `runs_folder`. Raises UnknownName with the closest names."""
    return run if isinstance(run, Run) else _open_run(run, Path(runs_folder))


def compare(a: RunLike, b: RunLike, *, runs_folder: str | Path = "runs") -> Comparison:
    """Compare two runs, paired by item; `.conclusion` is the result in a sentence. Raises RunError if they share no item."""
    return compare_runs(open_run(a, runs_folder), open_run(b, runs_folder))


def leaderboard(runs: RunLike | Sequence[RunLike], *, runs_folder: str | Path = "runs") -> Board:
    """A leaderboard of some runs as data; `evalwright.reports` shows it. Raises RunError for none."""
    several = [runs] if isinstance(runs, (Run, str, Path)) else runs
    return make_board([open_run(run, runs_folder) for run in several])
