"""A leaderboard as an HTML fragment for another page: one table with a style of its own.

The fragment has no script and loads nothing. Its style applies below its own class alone, and its
colours are made of the page's text colour, so that it suits light and dark pages. It is plain
ASCII, so that it reads the same in a page of any encoding, and in a frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalwright.analysis.board import Board
from evalwright.analysis.board_tree import BoardNode, find_in
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import axis_of
from evalwright.reports.board_nodes import letters_at, rank_at, reason_at
from evalwright.reports.columns import as_of
from evalwright.reports.documents.board import board_labels
from evalwright.reports.html import to_notebook
from evalwright.reports.numbers import Unit

MAX_PARTS = 6
"""Most parts of the ranking node that get a column; with more, only the node itself does."""
HOW_TO = """\
<!-- Paste this into a page, or show the file in a frame:
<iframe src="FILE" title="Leaderboard" sandbox="" loading="lazy"
  style="width: 100%; height: 40rem; border: 0"></iframe>
-->
"""
"""What the file says first. Without permissions a frame can run, send and open nothing."""


def board_embed(board: Board, title: str) -> str:
    """Write the board as an HTML fragment for another page."""
    fragment = HOW_TO + to_notebook(embed_document(board, title)).strip() + "\n"
    return fragment.encode("ascii", "xmlcharrefreplace").decode()


def embed_document(board: Board, title: str) -> doc.Document:
    """Build the document of the fragment: a row for each model, at the node that ranks."""
    node = ranking_node(board)
    models = numbers.counted(len(board.rows), "model")
    lede = f"{models}; the newest run is of {as_of(board)}"
    blocks: list[doc.Block] = [_table(board, node)]
    notes = ["Each score is shown with its 95% interval."]
    if any(node.ranks):
        notes.append(
            "A rank is a range: the best and the worst rank that the model can have;"
            " all ranges hold together at 95%."
        )
    return doc.Document(title, [*blocks, doc.Notes(notes)], lede)


def ranking_node(board: Board) -> BoardNode:
    """Return the node by which the board is ranked; the first one if it names none."""
    nodes = list(find_in(board.tree))
    return next((node for node in nodes if node.id == board.rank_by), nodes[0])


def _table(board: Board, node: BoardNode) -> doc.Table:
    parts = [part for part in node.parts if part.kind != "slice"]
    shown_parts: Sequence[BoardNode] = parts if len(parts) <= MAX_PARTS else ()
    unit: Unit = "points" if node.bounded else "plain"
    estimates = [estimate for estimate in node.estimates if estimate]
    columns = [
        doc.Column("Rank", right=True),
        doc.Column("Model", folds=True, key=True),
        doc.Column("Tied", under=True),
        doc.Column(node.title, _note_of(node), name=True, axis=axis_of(estimates, unit)),
        *(doc.Column(part.title, _note_of(part), name=True) for part in shown_parts),
        doc.Column("Items", right=True),
        doc.Column("Missing", right=True),
    ]  # fmt: skip
    rows: list[Sequence[doc.Content]] = []
    for i, label in enumerate(board_labels(board)):
        estimate = node.estimates[i]
        rows.append(
            (
                numbers.ranks(rank_at(node, i)),
                doc.Cell(label, "strong", name=True),
                letters_at(node, i),
                _score(node, i, "strong"),
                *(_score(part, i) for part in shown_parts),
                numbers.count(estimate.n) if estimate else "",
                numbers.count(estimate.n_missing) if estimate else "",
            )
        )
    return doc.Table(columns, rows, node.title)


def _score(node: BoardNode, row: int, tone: doc.Tone = "") -> doc.Cell:
    """Show a number with its interval, or why there is none."""
    estimate = node.estimates[row]
    if estimate is None or math.isnan(estimate.value):
        return doc.Cell(numbers.NOTHING, tone, note=reason_at(node, row))
    return doc.Cell(doc.Number(estimate, "points" if node.bounded else "plain"), tone)


def _note_of(node: BoardNode) -> str:
    """Say how a column's numbers are made, of how many items, and which are better."""
    metric = "" if node.metric == "accuracy" else node.metric
    counts = [estimate.n for estimate in node.estimates if estimate]
    items = ""
    if counts:
        ends = dict.fromkeys((min(counts), max(counts)))
        items = f"{' to '.join(map(numbers.count, ends))} items"
    direction = "lower is better" if node.lower_is_better else ""
    phrases = (node.measure or metric, items, direction)
    return ", ".join(phrase for phrase in phrases if phrase)
