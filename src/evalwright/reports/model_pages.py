"""A page of its own for each model of a board: static HTML that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError
from evalwright.reports.files import link_to, write_whole
from evalwright.reports.html import content_policy, environment, read_template
from evalwright.reports.model_view import ModelPage, model_page
from evalwright.reports.page_names import page_names
from evalwright.reports.pages import board_labels

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.runs.reader import Run

EXAMPLES = 5
"""Examples on a page, for each task."""


def page_files(board: Board, folder: Path) -> list[Path]:
    """Where the page of each row goes, in the order of the rows."""
    names = page_names(board_labels(board), [row.run for row in board.rows])
    return [folder / name for name in names]


def write_pages(
    board: Board,
    runs: Sequence[Run],
    folder: Path,
    *,
    title: str = "Leaderboard",
    board_page: Path | None = None,
    examples: int = EXAMPLES,
) -> list[Path]:
    """Write a page for each row into the folder, and return the files in the order of the rows.

    runs: those that the board was made of, in the same order. board_page: where the board's own page lies, to link back.
    examples: samples with a low score that each page shows for a task; 0 leaves out every text of the samples. Raises
    ConfigurationError where the folder cannot be written, RunError where samples cannot be read.
    """
    if examples < 0:
        raise ConfigurationError(f"--examples must be 0 or more, not {examples}.")
    files = page_files(board, folder)
    for place, file in enumerate(files):
        back = link_to(board_page, file) if board_page else ""
        page = model_page(board, place, runs[board.rows[place].place], title, back, examples)
        write_whole(file, model_html(page))
    return files


def model_html(page: ModelPage) -> str:
    """The page as HTML. The same page gives the same bytes."""
    from markupsafe import Markup

    style = read_template("board.css") + read_template("model.css")
    template = environment().from_string(read_template("model.html"))
    return template.render(page=page, style=Markup(style), policy=content_policy(style))
