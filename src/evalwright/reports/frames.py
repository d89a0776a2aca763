"""Rows as a data frame of pandas or polars, or as CSV in which a spreadsheet executes nothing."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, get_args

from evalwright.core.errors import MissingExtra, UnknownName
from evalwright.core.samples import SampleRecord
from evalwright.core.shown import FrameLibrary
from evalwright.reports.text import inert_cell
from evalwright.runs.reader import Run

LIBRARIES: tuple[str, ...] = get_args(FrameLibrary)


def frame_of(rows: Iterable[Mapping[str, Any]], library: str | None = None) -> Any:
    """Convert rows to a data frame with a column for every key, None where a row lacks it.

    Args:
        rows: The rows; dictionaries in them become JSON.
        library: "pandas" or "polars". By default the one that is imported, else the one that is
            installed, pandas first.

    Raises:
        MissingExtra: The library is not installed.
        UnknownName: There is no such library.
    """
    if library is not None and library not in LIBRARIES:
        raise UnknownName(
            "data frame library", library, LIBRARIES, f"Known: {', '.join(LIBRARIES)}."
        )
    candidates = (
        [library]
        if library
        else sorted(LIBRARIES, key=lambda name: name not in sys.modules)
    )
    library_name = next(
        (name for name in candidates if name in sys.modules or find_spec(name)), None
    )
    if library_name is None:
        raise MissingExtra("A data frame", candidates[0], " or ".join(candidates))
    settings = (
        {"strict": False, "infer_schema_length": None}
        if library_name == "polars"
        else {}
    )
    return import_module(library_name).DataFrame(columns_of(rows), **settings)


def columns_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn rows into columns of equal length, in the order in which their keys first occur."""
    columns: dict[str, list[Any]] = {}
    for count, row in enumerate(rows):
        for name, cell in row.items():
            stored = (
                json.dumps(cell, ensure_ascii=False, default=str)
                if isinstance(cell, Mapping)
                else cell
            )
            columns.setdefault(name, [None] * count).append(stored)
        for column in columns.values():
            if len(column) == count:
                column.append(None)
    return columns


def csv_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Convert rows to CSV with a header; lines end with line feeds.

    A text that a spreadsheet would run as a formula starts with an apostrophe.
    """
    columns = columns_of(rows)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([inert_cell(name) for name in columns])
    writer.writerows(
        [_cell(cell) for cell in row] for row in zip(*columns.values(), strict=True)
    )
    return buffer.getvalue()


def _cell(content: Any) -> Any:
    if content is None or (isinstance(content, float) and math.isnan(content)):
        return ""
    if isinstance(content, float):
        return repr(float(content))
    if isinstance(content, list | tuple):
        content = json.dumps(content, ensure_ascii=False, default=str)
    return inert_cell(content, lines=True) if isinstance(content, str) else content


# -- the rows of a run -----------------------------------------------------------------


def run_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield a row for each sample and draw: question, targets, answer, scores and metadata."""
    for record in run.samples():
        yield sample_row(record)


def sample_row(record: SampleRecord) -> dict[str, Any]:
    """Convert one record to a row.

    A score is named like its scorer and its label NAME_label. Metadata with the name of one of our
    columns becomes metadata.NAME.
    """
    sample = record.sample
    answer = record.answer
    row: dict[str, Any] = {
        "task": record.task,
        "id": sample.id,
        "draw": record.draw,
        "input": sample.input,
        "target": _joined(sample.targets),
        "answer": answer.text if answer is not None else None,
        "outcome": record.outcome,
    }
    if sample.choices:
        row |= {"choices": list(sample.choices), "gold": list(sample.gold)}
    if answer is not None and answer.choice is not None:
        row["choice"] = answer.choice
    for name, score in record.scores.items():
        row |= {
            name: score.value,
            **({f"{name}_label": score.label} if score.label else {}),
        }
    row |= {
        f"{name}_unsure": score.unsure
        for name, score in record.scores.items()
        if score.unsure
    }
    failures = [
        *([record.failure] if record.failure else []),
        *record.score_failures.values(),
    ]
    if failures:
        row["failure"] = "; ".join(
            f"{failure.label}: {failure.message}" for failure in failures
        )
    for name, metadata_value in sample.metadata.items():
        row[f"metadata.{name}" if name in row else str(name)] = metadata_value
    return row


def _joined(texts: Sequence[str]) -> str | None:
    return " | ".join(texts) if texts else None
