"""Leaderboards as CSV, Parquet and JSON, for programs and spreadsheets.

Values are in the metric's own scale, with all digits: a rate of 3.3% is 0.0330042. `board.json`
has a published schema, `schemas/board.schema.json`.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from evalwright.analysis.board import Board, BoardRow
from evalwright.core.errors import MissingExtra
from evalwright.core.outcomes import NO_ANSWER
from evalwright.core.plain import plain
from evalwright.reports.board_citation import (
    citation_dict,
    judge_dicts,
    runs_of_rows,
    samples_hash,
)
from evalwright.reports.board_extras import (
    extra_fields,
    extra_of_model,
    extra_record,
)
from evalwright.reports.board_nodes import (
    PlacedNode,
    finite,
    letters_at,
    node_dicts,
    place_nodes,
    rank_at,
    reason_at,
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
from evalwright.runs.reader import Run
from evalwright.statistics import Estimate

BOARD_SCHEMA = 1
"""The version of `board.json`: it grows when a field changes its meaning or goes away."""
_TABLE_TYPES = {
    "model": "string",
    "label": "string",
    "run": "string",
    "samples_sha256": "string",
    "node": "string",
    "parent": "string",
    "title": "string",
    "kind": "string",
    "keys": "string",
    "metric": "string",
    "lower_is_better": "bool_",
    "value": "float64",
    "low": "float64",
    "high": "float64",
    "n": "int64",
    "n_missing": "int64",
    "rank_best": "int64",
    "rank_worst": "int64",
    "tied": "string",
    "reason": "string",
}
"""Columns of the long table, and their types in Parquet."""


@cache
def board_schema() -> dict[str, Any]:
    """Read the published JSON schema of `board.json`."""
    file = files("evalwright.reports") / "schemas" / "board.schema.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


def board_rows(board: Board) -> list[dict[str, Any]]:
    """Convert the board to one dictionary per model; None where there is no number.

    Every node of the board's tree has a group of columns: its value, low, high and n.
    """
    columns = columns_with_tasks(board)
    further_nodes = _nodes_without_column(board, columns)
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
            _add_group(record, column.name, column.estimates[i], "task")
        for placed in further_nodes:
            node = placed.node
            _add_group(record, node.id, node.estimates[i], "node")
        record |= {"items": row.n, "asked": row.n_asked, "not_asked": row.n_not_asked}
        record |= {"missing": row.n_missing, "unsure": row.n_unsure}
        for outcome in NO_ANSWER:
            # A factual board has the share of refused questions under the same name.
            name = f"{outcome}_answers" if outcome in record else outcome
            record[name] = row.outcomes.get(outcome, 0)
        record |= extra_fields(board, i, record)
        record |= {
            "cost": finite(row.cost),
            **({"hardware": inert(row.hardware)} if machines else {}),
        }
        if board.numbers_from:
            record["numbers_from"] = inert(board.numbers_from.get(row.run, "samples"))
        rows.append(record)
    return rows


def _add_group(
    record: dict[str, Any], name: str, estimate: Estimate | None, prefix: str
) -> None:
    """Add a number's columns to a row; a name that is taken gets the prefix."""
    name = inert(name.replace(" ", "_"))
    suffixes = ("", "_low", "_high", "_n")
    while any(f"{name}{suffix}" in record for suffix in suffixes):
        name = f"{prefix}.{name}"
    record[name] = finite(estimate.value) if estimate else None
    record[f"{name}_low"] = finite(estimate.low) if estimate else None
    record[f"{name}_high"] = finite(estimate.high) if estimate else None
    record[f"{name}_n"] = estimate.n if estimate else None


def _nodes_without_column(
    board: Board, columns: Sequence[ScoreColumn]
) -> list[PlacedNode]:
    """List the nodes whose numbers are in none of the columns."""
    tasks = {(column.task, column.metric) for column in columns if column.task}
    names = {column.name for column in columns}
    without = []
    for placed in place_nodes(board):
        node = placed.node
        if node.kind == "task":
            is_shown = any((task, node.metric) in tasks for task in node.tasks)
        elif node.kind == "group":
            is_headline = placed.index == 0 and board.has_overall
            is_shown = is_headline or f"tree.{node.title}" in names
        else:
            is_shown = False
        if not is_shown and node.id not in names:
            without.append(placed)
    return without


def board_csv(board: Board) -> str:
    """Convert the board to CSV: a header, then a line per model, terminated by line feeds.

    A text that a spreadsheet would run as a formula starts with an apostrophe.
    """
    return csv_of(board_rows(board))


# -- a row for each model and node -----------------------------------------------------


def node_rows(board: Board, runs: Sequence[Run] = ()) -> Iterator[dict[str, Any]]:
    """Iterate over all numbers of a board, a dictionary for each model and node.

    Args:
        board: The board.
        runs: Its runs, in the order in which the board was made of them, for the samples' hashes.
    """
    placed_nodes = place_nodes(board)
    labels = list(map(inert, board_labels(board)))
    hashes: Sequence[str | None] = [None] * len(board.rows)
    if runs:
        hashes = [samples_hash(run) for run in runs_of_rows(board, runs)]
    parents = [
        "" if placed.parent is None else inert(placed_nodes[placed.parent].node.id)
        for placed in placed_nodes
    ]
    for i, row in enumerate(board.rows):
        model = {
            "model": inert(row.model),
            "label": labels[i],
            "run": inert(row.run),
            "samples_sha256": hashes[i],
        }
        for placed in placed_nodes:
            yield model | _node_row(placed, i, parents[placed.index])


def _node_row(placed: PlacedNode, row: int, parent: str) -> dict[str, Any]:
    node = placed.node
    estimate = node.estimates[row]
    best, worst = rank_at(node, row) or (None, None)
    return {
        "node": inert(node.id),
        "parent": parent,
        "title": inert(node.title),
        "kind": node.kind,
        "keys": json.dumps(dict(node.keys), ensure_ascii=True),
        "metric": inert(node.metric),
        "lower_is_better": node.lower_is_better,
        "value": finite(estimate.value) if estimate else None,
        "low": finite(estimate.low) if estimate else None,
        "high": finite(estimate.high) if estimate else None,
        "n": estimate.n if estimate else None,
        "n_missing": estimate.n_missing if estimate else None,
        "rank_best": best,
        "rank_worst": worst,
        "tied": letters_at(node, row),
        "reason": inert(reason_at(node, row)),
    }


def board_parquet(board: Board, runs: Sequence[Run] = ()) -> bytes:
    """Write a Parquet table with a row for each model and node, and return its bytes.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    check_parquet()
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [(name, getattr(pa, kind)()) for name, kind in _TABLE_TYPES.items()]
    )
    table = pa.Table.from_pylist(list(node_rows(board, runs)), schema=schema)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def check_parquet() -> None:
    """Raise MissingExtra if pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise MissingExtra("Writing Parquet", "parquet", "pyarrow") from error


# -- JSON ------------------------------------------------------------------------------


def board_json(
    board: Board,
    title: str,
    pages: Sequence[str] | None = None,
    runs: Sequence[Run] = (),
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Convert the board to a JSON-compatible dictionary, as `schemas/board.schema.json` says.

    Args:
        board: The board.
        title: The board's title.
        pages: The address of each model's page, in the order of the rows.
        runs: The board's runs, in the order in which it was made of them. Without them there are
            no judges, no citation and no hashes of samples.
        settings: What it was made with that is not the default, such as a metric.
    """
    columns = data_columns(board)
    hashes = [samples_hash(run) for run in runs_of_rows(board, runs)] if runs else []
    labels = list(map(inert, board_labels(board)))
    models = []
    for i, row in enumerate(board.rows):
        model = _model_dict(row, labels[i], columns, i) | extra_of_model(board, i)
        if hashes:
            model["samples_sha256"] = hashes[i]
        if pages:
            model["page"] = pages[i]
        models.append(model)
    record = {
        "schema": BOARD_SCHEMA,
        "title": title,
        "as_of": as_of(board),
        "preset": board.preset,
        "settings": dict(settings or {}),
        "rank_by": board.rank_by,
        "dimensions": [
            {
                "key": dimension.key,
                "title": dimension.title,
                "values": [list(pair) for pair in dimension.values],
            }
            for dimension in board.dimensions
        ],
        "columns": [_column_dict(column) for column in columns],
        **extra_record(board),
        "nodes": node_dicts(board),
        "models": models,
        "judges": judge_dicts(board, runs) if runs else [],
        "notes": list(board.notes),
        "citation": citation_dict(board, title, runs) if runs else {},
        **({"numbers_from": dict(board.numbers_from)} if board.numbers_from else {}),
        **({"ratings": board.ratings.as_dict()} if board.ratings else {}),
    }
    json_record: dict[str, Any] = plain(record)
    return json_record


def _column_dict(column: ScoreColumn) -> dict[str, Any]:
    is_share = column.unit == "points"
    return {
        "name": column.name,
        "title": column.title,
        "task": column.task or None,
        "metric": column.metric,
        "scale": "0 to 1" if is_share else column.measure or "its own",
        "lower_is_better": column.lower_is_better,
    }


def _model_dict(
    row: BoardRow, label: str, columns: Sequence[ScoreColumn], i: int
) -> dict[str, Any]:
    return {
        "rank": list(row.ranks) if row.ranks else None,
        "tied": row.letters,
        "model": row.model,
        "label": label,
        **({"prompt": dict(row.prompt)} if row.prompt else {}),
        "run": row.run,
        "date": row.date,
        "facts": dict(row.facts),
        "scores": {column.name: _score(column, i) for column in columns},
        "items": row.n,
        "asked": row.n_asked,
        "not_asked": row.n_not_asked,
        "missing": row.n_missing,
        "unsure": row.n_unsure,
        "provisional": row.provisional,
        "outcomes": dict(row.outcomes),
        "cost": row.cost,
        "corrected": _estimate_dict(row.corrected),
        "judge_errors": {
            name: _estimate_dict(rate) if isinstance(rate, Estimate) else rate
            for name, rate in row.judge_errors.items()
        },
        **({"drift": row.drift.as_dict()} if row.drift else {}),
        **({"hardware": row.hardware} if row.hardware else {}),
        **(
            {"history": [entry.as_record() for entry in row.history]}
            if row.history
            else {}
        ),
    }


_ESTIMATE_FIELDS = ("value", "low", "high", "level", "n", "n_missing", "method")


def _estimate_dict(estimate: Estimate | None) -> dict[str, Any]:
    """Convert an estimate; an empty dictionary if there is none."""
    if estimate is None:
        return {}
    return {name: getattr(estimate, name) for name in _ESTIMATE_FIELDS}


def _score(column: ScoreColumn, i: int) -> dict[str, Any] | None:
    estimate = column.estimates[i]
    if estimate is None or math.isnan(estimate.value):
        return None
    return _estimate_dict(estimate)
