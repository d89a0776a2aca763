"""A leaderboard as a Markdown table that says the same in every renderer and never runs what a name contains.

Names stand in code spans, where Markdown, HTML, links, mentions and images are plain characters. The bytes depend on the
runs alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from evalwright.analysis.board import SIMULTANEOUS_NOTE
from evalwright.reports import numbers
from evalwright.reports.columns import ScoreColumn, as_of, is_hallucination_board, score_columns
from evalwright.reports.pages import board_labels, coverage, has_ties, together
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalwright.analysis.board import Board

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def board_markdown(board: Board, links: Sequence[str] = ()) -> str:
    """The board as a table, a row per run, with the board's notes below. links: the address of each row's own page."""
    columns, tied = score_columns(board), has_ties(board)
    simultaneous = any(row.together for row in board.rows) and not is_hallucination_board(board)
    intervals = together(board) if simultaneous else []
    header = ["Rank", "Model", *(["Tied"] if tied else [])]
    scores = [_title(column) for column in columns]
    header += [scores[0], *(["Simultaneous"] if intervals else []), *scores[1:], "Items", "Failed"]
    machines = any(row.hardware for row in board.rows)
    header += [*(["Hardware"] if machines else []), "Date"]
    ends_left = 1 + machines
    rule = ["--:", ":--", *["--:"] * (len(header) - 2 - ends_left), *[":--"] * ends_left]
    names, items = [code(label) for label in board_labels(board)], coverage(board)
    if links:
        names = [f"[{name}]({link})" if link else name for name, link in zip(names, links, strict=True)]
    rows = []
    for i, row in enumerate(board.rows):
        first, *more = [_score(column, i) for column in columns]
        ends = [" ".join(intervals[i].split()).replace("[ ", "[")] if intervals else []
        who = [numbers.ranks(row.ranks), names[i], *([row.letters] if tied else [])]
        where = [escape(row.hardware)] if machines else []
        rows.append(
            [*who, first, *ends, *more, items[i], numbers.count(row.n_failed), *where, escape(row.date)]
        )
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))
    notes = "\n".join(f"- {escape(note)}" for note in _shown_notes(board, bool(intervals)))
    return f"{table}\n\n{notes}\n" if notes else f"{table}\n"


def readme_block(board: Board, links: Sequence[str] = (), picture: str = "", title: str = "") -> str:
    """What stands between the markers of a README: the day of the newest run, the picture, the table and its notes.

    It has no date of its own making, so that the same runs give the same bytes. picture: its relative address.
    """
    when = as_of(board)
    dated = f"{numbers.counted(len(board.rows), 'model')}; the newest run is of {escape(when)}.\n\n"
    image = (
        f"![{escape(f'{title}: a bar for each model, with its interval')}]({picture})\n\n" if picture else ""
    )
    return f"{dated}{image}{board_markdown(board, links)}"


def _shown_notes(board: Board, simultaneous: bool) -> list[str]:
    """The board's notes, without what is said of a column that is not there."""
    return [note for note in board.notes if simultaneous or note != SIMULTANEOUS_NOTE]


def _title(column: ScoreColumn) -> str:
    less = " (less is better)" if column.lower_is_better else ""
    if column.measure:
        return f"{column.title}, {column.measure}{less}"
    if not column.task:
        return column.title
    name = code(column.task)
    return name if column.metric == "accuracy" else f"{name} {code(column.metric)}{less}"


def _score(column: ScoreColumn, i: int) -> str:
    shown = numbers.score(column.estimates[i], column.unit)
    return f"**{shown}**" if not column.task and shown != numbers.NOTHING else shown


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
