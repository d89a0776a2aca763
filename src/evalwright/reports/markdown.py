"""A leaderboard as a Markdown table that says the same in every renderer and never runs what a name contains.

Names stand in code spans, where Markdown, HTML, links, mentions and images are plain characters. The bytes depend on the
runs alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalwright.reports import numbers
from evalwright.reports.pages import board_labels, coverage, has_ties, together
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.runs.board import Board, BoardRow, BoardTask

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def board_markdown(board: Board) -> str:
    """The board as a table, a row per run, with the board's notes below."""
    tied, intervals = has_ties(board), together(board) if any(row.together for row in board.rows) else []
    header = ["Rank", "Model", *(["Tied"] if tied else [])]
    scores = [*(["Overall"] if board.has_overall else []), *(_title(task) for task in board.tasks)]
    header += [scores[0], *(["Simultaneous"] if intervals else []), *scores[1:], "Items", "Failed", "Date"]
    rule = ["--:", ":--", *["--:"] * (len(header) - 3), ":--"]
    labels, items = board_labels(board), coverage(board)
    rows = []
    for i, row in enumerate(board.rows):
        first, *others = _scores(board, row)
        ends = [" ".join(intervals[i].split()).replace("[ ", "[")] if intervals else []
        names = [numbers.ranks(row.ranks), code(labels[i]), *([row.letters] if tied else [])]
        rows.append([*names, first, *ends, *others, items[i], numbers.count(row.n_failed), escape(row.date)])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))
    notes = "\n".join(f"- {escape(note)}" for note in board.notes)
    return f"{table}\n\n{notes}\n" if notes else f"{table}\n"


def _title(task: BoardTask) -> str:
    name = code(task.name)
    if task.metric == "accuracy":
        return name
    return f"{name} {code(task.metric)}{' (less is better)' if task.lower_is_better else ''}"


def _scores(board: Board, row: BoardRow) -> list[str]:
    cells = []
    if board.has_overall:
        cells.append(f"**{numbers.score(row.overall, 'points')}**" if row.overall else numbers.NOTHING)
    for task in board.tasks:
        cell = row.cells.get(task.name)
        cells.append(numbers.score(cell.estimate, numbers.unit_of(cell.kind)) if cell else numbers.NOTHING)
    return cells


def code(text: str) -> str:
    """Untrusted text as a code span in a table cell; as escaped text in the rare case that a code span cannot hold it."""
    shown = inert(text)
    if "\\|" in shown or not shown.strip():
        return escape(shown)
    shown = shown.replace("|", "\\|")  # a pipe ends the cell even inside a code span
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    space = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{fence}{space}{shown}{space}{fence}"


def escape(text: str) -> str:
    """Untrusted text as plain text in a table cell: what Markdown or HTML could act on is a character reference.

    References cannot begin markup in any renderer.
    """
    return _SPECIAL.sub(lambda match: f"&#{ord(match.group())};", inert(text)) or "&nbsp;"
