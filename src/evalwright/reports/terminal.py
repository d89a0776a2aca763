"""Shows runs, boards and comparisons on the terminal: plain text always, coloured only where somebody is looking."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from evalwright.reports.comparison_page import MOST_FLIPS, comparison_blocks, gate_blocks
from evalwright.reports.layout import Block, Column, Heading, Line, Segment, Table, lay_out
from evalwright.reports.pages import board_blocks, runs_blocks
from evalwright.reports.run_page import run_blocks
from evalwright.reports.several_page import several_blocks
from evalwright.reports.text import inert
from evalwright.runs.writer import RUN_FILE

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.analysis.comparison import Comparison
    from evalwright.analysis.gate import Gate
    from evalwright.analysis.several import SeveralComparison
    from evalwright.runs.reader import Run

PIPED_WIDTH = 120
"""Cells of a line where nobody says how wide it may be (a file, a pipe); $COLUMNS wins."""

_STYLES = {"": "", "strong": "bold", "quiet": "dim", "good": "green", "bad": "red", "warn": "yellow"}


def show_board(board: Board, *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print a leaderboard to `file` (standard output), `width` cells wide (the terminal's)."""
    show(board_blocks(board), file=file, width=width)


def show_run(run: Run, *, slices: bool = True, file: TextIO | None = None, width: int | None = None) -> None:
    """Print what one run found (by slice too, where asked for), what failed, what it used and where its files are."""
    names = [run.folder / RUN_FILE, run.samples_file]
    files = Table((Column("", folds=True),), tuple((inert(name),) for name in names), {}, indent=2)
    more = []
    if not slices and any(task.slices for task in run.tasks):
        keys = sorted({key for task in run.tasks for key in task.slices})
        command = f"evalwright runs show {run.folder}"
        more = [Line(f"Scores by {', '.join(map(inert, keys))}: {inert(command)}", "quiet", indent=2)]
    show([*run_blocks(run, slices=slices), Heading("Files"), files, *more], file=file, width=width)


def show_comparison(
    comparison: Comparison | SeveralComparison,
    gates: Sequence[Gate] = (),
    *,
    most_flips: int = MOST_FLIPS,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print a comparison of two or more runs; the last line is its conclusion in words, or that of its last gate."""
    from evalwright.analysis.comparison import Comparison

    if isinstance(comparison, Comparison):
        blocks = comparison_blocks(comparison, most_flips)
    else:
        blocks = several_blocks(comparison)
    show([*blocks, *(block for gate in gates for block in gate_blocks(gate))], file=file, width=width)


def show_runs(runs: Sequence[Run], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print a line per run."""
    show(runs_blocks(runs), file=file, width=width)


def show(blocks: Sequence[Block], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print a page of blocks."""
    out = file or sys.stdout
    lines = list(lay_out(blocks, max(40, width or terminal_width(out))))
    if is_live_terminal(out):
        _print_coloured(lines, out)
    else:
        write_text("".join(f"{''.join(segment.text for segment in line).rstrip()}\n" for line in lines), out)


def is_live_terminal(file: TextIO) -> bool:
    """Whether somebody looks at `file` on a terminal that understands more than plain lines."""
    return bool(file.isatty()) and os.environ.get("TERM") != "dumb"


def terminal_width(file: TextIO) -> int:
    """Cells of a line: $COLUMNS, else the terminal's own width, else PIPED_WIDTH."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(file.fileno()).columns or PIPED_WIDTH
    except (OSError, ValueError):
        return shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if file.isatty() else PIPED_WIDTH


def write_text(text: str, file: TextIO) -> None:
    """Write text to a file whose encoding may lack some of its characters; those become "?"."""
    encoding = getattr(file, "encoding", None) or "utf-8"
    file.write(text.encode(encoding, "replace").decode(encoding))
    file.flush()


def _print_coloured(lines: Sequence[Sequence[Segment]], file: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=file, markup=False, highlight=False, emoji=False)
    text = Text(no_wrap=True, end="", overflow="ignore")
    for line in lines:
        for segment in line:
            text.append(segment.text, _STYLES[segment.tone] or None)
        text.append("\n")
    console.print(text, soft_wrap=True, end="")
