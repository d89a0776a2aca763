"""Facts about models and columns that are no scores, in a board's CSV and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evalwright.analysis.board import Board
from evalwright.reports.text import inert


def extra_fields(board: Board, row: int, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row's CSV fields of the columns that are no scores, by names not taken yet.

    Args:
        board: the board.
        row: index of the row.
        record: the row's other fields.
    """
    fields: dict[str, Any] = {}
    for column in board.extra_columns:
        name = inert(column.name.replace(" ", "_"))
        if name in record or name in fields:
            name = f"extra.{name}"
        if column.texts:
            fields[name] = inert(column.texts[row])
            continue
        estimate = column.estimates[row]
        fields[name] = _finite(estimate.value) if estimate else None
        fields[f"{name}_low"] = _finite(estimate.low) if estimate else None
        fields[f"{name}_high"] = _finite(estimate.high) if estimate else None
    return fields


def extra_record(board: Board) -> dict[str, Any]:
    """Return what a board's JSON says of columns that are no scores."""
    if not board.extra_columns:
        return {}
    return {"extra_columns": [column.as_dict() for column in board.extra_columns]}


def extra_of_model(board: Board, row: int) -> dict[str, Any]:
    """Return what each fact about a model was taken from, and its columns that are no scores."""
    board_row = board.rows[row]
    fields: dict[str, Any] = {}
    if board_row.facts:
        fields["fact_sources"] = dict(board_row.fact_sources)
    if board.extra_columns:
        fields["extra"] = {
            column.name: column.value_of(row) for column in board.extra_columns
        }
    return fields


def _finite(number: float) -> float | None:
    return None if math.isnan(number) else float(number)
