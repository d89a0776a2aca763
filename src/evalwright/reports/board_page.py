"""The page of a leaderboard: one self-contained HTML file, read with or without scripts.

The headline table, the notes and what is below them are in the HTML. With scripts the page has one
JSON block, the board's record as `board_files` writes it, and `templates/board.js` makes tabs,
filters and tables of it. Everything in the record is made inert here and escaped where it is shown.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.board import Board, BoardRow
from evalwright.analysis.board_tree import OVERALL
from evalwright.analysis.factual import SHARES
from evalwright.analysis.words import normalise_label
from evalwright.core.plain import plain
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.board_files import board_json
from evalwright.reports.columns import CORRECTED, JUDGE_ERROR_PREFIX
from evalwright.reports.documents.board import (
    DRIFT_MARK,
    FAULT_TITLES,
    JUDGE_MARK,
    PROVISIONAL_MARK,
    page_sections,
    summary_line,
)
from evalwright.reports.documents.run import prompt_text
from evalwright.reports.html import fill_page
from evalwright.reports.text import inert
from evalwright.runs.reader import Run

SIGNIFICANT_DIGITS = 6
"""Digits of a number in the page's copy of the record; `board.json` has all of them."""

MAX_STATIC_CELLS = 6_000
"""Most cells of parts in the table for readers without scripts; else it has the headline alone."""

POINTS_SCALE = "0 to 1"
"""The scale of a node whose values are shown in points of 100."""

LEFT_OUT = frozenset({"columns", "ratings", "settings", "citation", "judges"})
"""What the page's copy of a record lacks, because the nodes or the HTML have it."""

LEFT_OUT_OF_MODELS = frozenset({"scores", "outcomes", "samples_sha256"})


@dataclass(frozen=True, slots=True)
class StaticScore:
    """A number of the static table.

    Attributes:
        value: The number, or that there is none.
        interval: Its interval; "" without one.
        size: How many items it is of; "" without a number.
        absence: Why there is no number, or no interval.
    """

    value: str
    interval: str
    size: str
    absence: str


@dataclass(frozen=True, slots=True)
class StaticRow:
    """A row of the static table."""

    rank: str
    label: str
    prompt: str
    page: str
    scores: tuple[StaticScore, ...]


def leaderboard_page(
    board: Board,
    runs: Sequence[Run] = (),
    *,
    title: str = "Leaderboard",
    links: Sequence[str] = (),
    pivot: Sequence[str] = (),
) -> str:
    """Render a board with its runs as a page.

    Args:
        board: The board.
        runs: Its runs, in the order in which it was made of them. Their tasks and, where models
            have no pages, their details are below the table.
        title: The page's title.
        links: The address of each row's own page, if there are such pages.
        pivot: The keys of the rows and the columns, if the page opens as a pivot.
    """
    record = board_json(board, title, list(links) or None, runs)
    for model, row in zip(record["models"], board.rows, strict=True):
        model |= plain(_page_fields(row))
    if pivot:
        rows, columns = pivot
        record["view"] = {"view": "pivot", "rows": rows, "columns": columns}
    sections = page_sections(board, runs, links)
    return board_page(record, summary_line(board), sections)


def _page_fields(row: BoardRow) -> dict[str, Any]:
    """Return what the page says of a model beside what `board.json` does."""
    together = row.together
    faults = {
        FAULT_TITLES[outcome]: row.faults[outcome]
        for outcome in FAULT_TITLES
        if row.faults.get(outcome)
    }
    return {
        **({"other_judge": True} if row.other_judge else {}),
        **({"faults": faults} if faults else {}),
        **({"simultaneous": [together.low, together.high]} if together else {}),
    }


def board_page(
    record: Mapping[str, Any], lede: str = "", below: Sequence[doc.Block] = ()
) -> str:
    """Render the page of a board. The same record gives the same bytes.

    Args:
        record: The board's record, as `board_json` makes it: nodes in pre-order, and for each node
            its numbers in the order of the models.
        lede: The line below the title.
        below: What follows the notes: tasks, ratings, details of the models.
    """
    from markupsafe import Markup

    page_record = compact_record(record)
    page_json = json.dumps(page_record, ensure_ascii=False, separators=(",", ":"))
    shown_nodes = _static_nodes(page_record)
    return fill_page(
        "board",
        page_record["title"],
        styles=("page.css", "board.css"),
        scripts=("page.js", "board.js"),
        lede=lede,
        # No "<" of a name may end the block or begin a comment in it.
        data=Markup(page_json.replace("<", "\\u003c")),
        notes=doc.Notes(page_record.get("notes", ())),
        heads=[_static_head(node) for node in shown_nodes],
        rows=_static_rows(page_record, shown_nodes),
        bibtex=str((record.get("citation") or {}).get("bibtex", "")),
        below=below,
    )


def compact_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the page's copy of a record: texts are inert, numbers have six digits.

    What the page does not read is left out: each model's scores by column, which the nodes have
    too.
    """
    copy: dict[str, Any] = {
        key: _compact(content) for key, content in record.items() if key not in LEFT_OUT
    }
    _name_as_columns(copy["nodes"], record)
    copy["nodes"] += _nodes_of_columns(record)
    for model in copy["models"]:
        for key in LEFT_OUT_OF_MODELS:
            model.pop(key, None)
    return copy


def _name_as_columns(
    nodes: Sequence[dict[str, Any]], record: Mapping[str, Any]
) -> None:
    """Give roots the titles of their columns: "Hallucination rate" in place of its task's name."""
    columns = record.get("columns", ())
    if not columns:
        return
    for node, original in zip(nodes, record["nodes"], strict=True):
        is_corrected = (
            node["id"] == record["rank_by"] and columns[0]["name"] == CORRECTED
        )
        if not is_corrected and (
            node["parent"] is not None
            or not (node["kind"] == "task" or node["id"] == OVERALL)
        ):
            continue
        for column in columns:
            if _numbers_of(_column_numbers(record, column)) == _numbers_of(original):
                node["title"] = inert(column["title"])
                break


def _nodes_of_columns(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Make further roots of the columns that no node has the numbers of.

    These are the further metrics of a hallucination board, and the shares of a factual one. They
    have no anchors on the models' pages. The judge's error rates are columns of the models.
    """
    nodes = record["nodes"]
    numbers_of_nodes = {_numbers_of(node) for node in nodes}
    # A share over several tasks may be the number of one of them, and is something else.
    numbers_of_roots = {_numbers_of(node) for node in nodes if node["parent"] is None}
    further_nodes = []
    for column in record.get("columns", ()):
        node = {
            "id": f"column: {column['name']}",
            "parent": None,
            "title": column["title"],
            "kind": "task" if column["task"] else "group",
            "keys": {},
            "metric": column["metric"],
            "scale": column["scale"],
            "measure": "" if column["scale"] in (POINTS_SCALE, "its own") else column["scale"],
            "lower_is_better": column["lower_is_better"],
            "tasks": [column["task"]] if column["task"] else [],
            **_column_numbers(record, column),
            "rank": [],
            "tied": [],
            "reasons": {},
            "has_anchor": False,
        }  # fmt: skip
        is_error_rate = column["name"].startswith(JUDGE_ERROR_PREFIX)
        is_share = column["name"] in SHARES
        shown_numbers = numbers_of_roots if is_share else numbers_of_nodes
        if not is_error_rate and _numbers_of(node) not in shown_numbers:
            further_nodes.append(_compact(node))
    return further_nodes


def _column_numbers(
    record: Mapping[str, Any], column: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Return the arrays of a column's numbers, as nodes have them."""
    scores = [model["scores"].get(column["name"]) for model in record["models"]]
    arrays = {
        name: [score[name] if score else None for score in scores]
        for name in ("value", "low", "high", "n")
    }
    arrays["missing"] = [score["n_missing"] if score else None for score in scores]
    return arrays


def _numbers_of(node: Mapping[str, Any]) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(node[name]) for name in ("value", "low"))


def _compact(content: Any) -> Any:
    if isinstance(content, float):
        return _rounded(content)
    if isinstance(content, str):
        return inert(content)
    if isinstance(content, Mapping):
        return {inert(key): _compact(inner) for key, inner in content.items()}
    if isinstance(content, (list, tuple)):
        return [_compact(inner) for inner in content]
    return content


def _rounded(number: float) -> float | int | None:
    """Round a number so that it looks the same when it is rounded again, for the reader.

    A last digit of 5 could come from below: 0.77749976 would be 77.7, but 0.7775 is 77.8.
    """
    if not math.isfinite(number):
        return None
    rounded = number
    for digits in (SIGNIFICANT_DIGITS, 9, 12):
        text = f"{number:.{digits}g}"
        if not text.partition("e")[0].endswith("5") or float(text) == number:
            rounded = float(text)
            break
    # 1 is shorter than 1.0, and the same number in JSON
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


# -- the table that is read without scripts ---------------------------------------------


def _static_nodes(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Choose the columns: the node that ranks, its parts, and the other roots."""
    nodes = record["nodes"]
    if not nodes:
        return []
    headline = next(
        (node for node in nodes if node["id"] == record["rank_by"]), nodes[0]
    )
    columns = [node for node in nodes if node["parent"] == headline["id"]]
    columns += [
        node for node in nodes if node["parent"] is None and node is not headline
    ]
    if len(columns) * len(record["models"]) > MAX_STATIC_CELLS:
        columns = []
    return [headline, *columns]


def _static_head(node: Mapping[str, Any]) -> tuple[str, str]:
    """Return a column's title and its small print."""
    needless = ("accuracy", normalise_label(node["title"].partition(", ")[0]))
    metric = "" if normalise_label(node["metric"]) in needless else node["metric"]
    direction = "lower is better" if node["lower_is_better"] else ""
    small_print = [node["measure"] or metric, direction]
    return node["title"], ", ".join(filter(None, small_print))


def _static_rows(
    record: Mapping[str, Any], shown_nodes: Sequence[Mapping[str, Any]]
) -> list[StaticRow]:
    rows = []
    for i, model in enumerate(record["models"]):
        ranks = shown_nodes[0].get("rank") if shown_nodes else ()
        rank = ranks[i] if ranks else None
        rows.append(
            StaticRow(
                rank=numbers.ranks((rank[0], rank[1]) if rank else None)
                + (_marks(model) if rank else ""),
                label=model["label"],
                prompt=prompt_text(model["prompt"]) if model.get("prompt") else "",
                page=model.get("page") or "",
                scores=tuple(_static_score(node, i) for node in shown_nodes),
            )
        )
    return rows


def _marks(model: Mapping[str, Any]) -> str:
    """Return the marks of a model whose rank does not stand as it is."""
    provisional = PROVISIONAL_MARK if model.get("provisional") else ""
    judge = JUDGE_MARK if model.get("other_judge") else ""
    return provisional + judge + (DRIFT_MARK if model.get("drift") else "")


def _static_score(node: Mapping[str, Any], row: int) -> StaticScore:
    reason = (node.get("reasons") or {}).get(str(row), "")
    score, low, high = (_at(node, name, row) for name in ("value", "low", "high"))
    if score is None:
        return StaticScore(numbers.NOTHING, "", "", reason or "no number")
    n = _at(node, "n", row)
    size = "" if n is None else f"n {n:,}"
    unit: numbers.Unit = "points" if node["scale"] == POINTS_SCALE else "plain"
    if low is None or high is None:
        decimals = numbers.count_decimals(score, math.nan, math.nan, unit)
        text = numbers.number(score, unit, decimals)
        return StaticScore(text, "", size, reason or "no interval")
    decimals = numbers.count_decimals(score, low, high, unit)
    value_text, low_text, high_text = (
        numbers.number(amount, unit, decimals) for amount in (score, low, high)
    )
    return StaticScore(value_text, f"[{low_text}, {high_text}]", size, reason)


def _at(node: Mapping[str, Any], name: str, row: int) -> float | None:
    column = node.get(name) or ()
    return column[row] if row < len(column) else None
