"""Leaderboards as CSV and JSON, for programs and spreadsheets, with the same columns as for people.

Values are in the metric's own scale, with all digits: a rate of 3.3% is 0.0330042.
"""

from __future__ import annotations

import math
from typing import Any

from evalwright.analysis.board import Board
from evalwright.core.outcomes import NO_ANSWER
from evalwright.reports.board_extras import (
    extra_fields,
    extra_of_model,
    extra_record,
)
from evalwright.reports.columns import (
    ScoreColumn,
    as_of,
    columns_with_tasks,
    data_columns,
)
from evalwright.reports.documents.board import board_labels
from evalwright.reports.frames import csv_of
from evalwright.reports.text import inert


def board_rows(board: Board) -> list[dict[str, Any]]:
    """Convert the board to one dictionary per model; None where there is no number."""
    columns = columns_with_tasks(board)
    machines = any(row.hardware for row in board.rows)
    prompts = any(row.prompt for row in board.rows)
    rows = []
    for i, (row, label) in enumerate(
        zip(board.rows, map(inert, board_labels(board)), strict=True)
    ):
        best, worst = row.ranks or (None, None)
        record: dict[str, Any] = {
            "rank_best": best,
            "rank_worst": worst,
            "tied": row.letters,
        }
        record |= {
            "model": inert(row.model),
            "label": label,
            "run": inert(row.run),
            "date": inert(row.date),
        }
        if prompts:
            record["prompt"] = inert(row.prompt.get("name", ""))
            record["prompt_hash"] = inert(row.prompt.get("hash", ""))
        for column in columns:
            estimate = column.estimates[i]
            name = inert(column.name.replace(" ", "_"))
            if name in record:  # a task may be called like a share, or like one of ours
                name = f"task.{name}"
            record[name] = _number(estimate.value) if estimate else None
            record[f"{name}_low"], record[f"{name}_high"] = (
                (_number(estimate.low), _number(estimate.high))
                if estimate
                else (None, None)
            )
        record |= {"items": row.n, "asked": row.n_asked, "not_asked": row.n_not_asked}
        record |= {"missing": row.n_missing, "unsure": row.n_unsure}
        for outcome in NO_ANSWER:
            # A factual board has the share of refused questions under the same name.
            name = f"{outcome}_answers" if outcome in record else outcome
            record[name] = row.outcomes.get(outcome, 0)
        record |= extra_fields(board, i, record)
        record |= {
            "cost": _number(row.cost),
            **({"hardware": inert(row.hardware)} if machines else {}),
        }
        if board.numbers_from:
            record["numbers_from"] = inert(board.numbers_from.get(row.run, "samples"))
        rows.append(record)
    return rows


def board_csv(board: Board) -> str:
    """Convert the board to CSV: a header, then a line per model, terminated by line feeds.

    A text that a spreadsheet would run as a formula starts with an apostrophe.
    """
    return csv_of(board_rows(board))


def _number(number: float | None) -> float | None:
    return None if number is None or math.isnan(number) else float(number)


def board_json(
    board: Board, title: str, pages: list[str] | None = None
) -> dict[str, Any]:
    """Convert the board to a JSON-compatible dictionary: its columns, models and notes.

    Args:
        board: The board.
        title: The board's title.
        pages: The address of each model's page, in the order of the rows.
    """
    columns = data_columns(board)
    return {
        "title": title,
        "as_of": as_of(board),
        "columns": [
            {
                "name": column.name,
                "title": column.title,
                "task": column.task or None,
                "metric": column.metric,
                "scale": (
                    "0 to 1" if column.unit == "points" else column.measure or "its own"
                ),
                "lower_is_better": column.lower_is_better,
            }
            for column in columns
        ],
        **extra_record(board),
        "models": [
            {
                "rank": list(row.ranks) if row.ranks else None,
                "tied": row.letters,
                "model": row.model,
                "label": label,
                **({"prompt": dict(row.prompt)} if row.prompt else {}),
                "run": row.run,
                "date": row.date,
                "scores": {column.name: _score(column, i) for column in columns},
                "items": row.n,
                "asked": row.n_asked,
                "not_asked": row.n_not_asked,
                "missing": row.n_missing,
                "unsure": row.n_unsure,
                "provisional": row.provisional,
                "outcomes": dict(row.outcomes),
                "cost": row.cost,
                **({"hardware": row.hardware} if row.hardware else {}),
                **extra_of_model(board, i),
                **({"page": pages[i]} if pages else {}),
            }
            for i, (row, label) in enumerate(
                zip(board.rows, map(inert, board_labels(board)), strict=True)
            )
        ],
        "notes": list(board.notes),
        **({"numbers_from": dict(board.numbers_from)} if board.numbers_from else {}),
        **({"ratings": board.ratings.as_dict()} if board.ratings else {}),
    }


def _score(column: ScoreColumn, i: int) -> dict[str, Any] | None:
    estimate = column.estimates[i]
    if estimate is None or math.isnan(estimate.value):
        return None
    names = ("value", "low", "high", "level", "n", "n_missing", "method")
    return {name: getattr(estimate, name) for name in names}
