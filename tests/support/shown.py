"""Results as a reader gets them: documents in each of their renderers."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.analysis.board import Board
from evalwright.analysis.comparison import Comparison, compare_runs
from evalwright.analysis.gate import Gate
from evalwright.analysis.several import SeveralComparison
from evalwright.reports.board_page import leaderboard_page
from evalwright.reports.conclusions import worded_comparison
from evalwright.reports.document import Document
from evalwright.reports.documents.board import board_document
from evalwright.reports.documents.comparison import (
    comparison_document,
    several_document,
)
from evalwright.reports.markdown import to_markdown
from evalwright.reports.terminal import show
from evalwright.runs.reader import Run


def terminal(*documents: Document, width: int = 120) -> str:
    """What a pipe gets."""
    stream = io.StringIO()
    show(*documents, file=stream, width=width)
    return stream.getvalue()


def in_a_terminal(
    script: str, *arguments: str, stream: str, environment: Mapping[str, str]
) -> tuple[int, str, str]:
    """A Python program one of whose streams ("stdout" or "stderr") is a terminal: its exit
    status, what the terminal got, and the other stream.
    """
    ours, theirs = pty.openpty()
    streams: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.DEVNULL,
        stream: theirs,
    }
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments], **streams, env=environment
    ) as process:
        os.close(theirs)
        terminal_output = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end was closed
                break
            if not piece:
                break
            terminal_output += piece
        other_output = process.stdout.read() if process.stdout is not None else b""
    os.close(ours)
    return process.returncode, terminal_output.decode(), other_output.decode()


def compare_two(a: Run, b: Run, **settings: Any) -> Comparison:
    """A comparison of two runs, with its sentences."""
    return worded_comparison(compare_runs(a, b, **settings))


def compared(
    comparison: Comparison | SeveralComparison, gates: Sequence[Gate] = ()
) -> Document:
    """A comparison of two runs or more."""
    if isinstance(comparison, Comparison):
        return comparison_document(comparison, gates)
    return several_document(comparison, gates)


def board_html(
    board: Board,
    runs: Sequence[Run] = (),
    *,
    title: str = "Leaderboard",
    links: Sequence[str] = (),
) -> str:
    """The page of a board."""
    return leaderboard_page(board, runs, title=title, links=links)


def board_markdown(board: Board, links: Sequence[str] = ()) -> str:
    """The table and the notes of a board."""
    return to_markdown(board_document(board, links=links), 0)
