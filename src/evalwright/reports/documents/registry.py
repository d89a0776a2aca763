"""The index of a folder of runs: a row per run, and for each task what the runs score by domain and
the like; and what `runs check` shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.analysis.run_checks import Checked
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.documents.run import missing_cell

_MOST_VALUES = 40


def registry_document(index: Mapping[str, Any]) -> doc.Document:
    """The page. index: as `analysis.run_index.index_of` makes it."""
    runs = index["runs"]
    blocks: list[doc.Block] = (
        [_runs(runs)] if runs else [doc.Note("There are no runs here yet.")]
    )
    for task, keys in index["by_slice"].items():
        for key, values in keys.items():
            blocks += _slices(task, key, values, runs)
    if index["damaged"]:
        blocks.append(doc.Heading("Not readable"))
        blocks.append(
            doc.Notes([f"{one['folder']}: {one['error']}" for one in index["damaged"]])
        )
    return doc.Document("Runs", blocks)


def _runs(runs: Sequence[Mapping[str, Any]]) -> doc.Table:
    shares = list(dict.fromkeys(name for run in runs for name in run.get("shares", ())))
    hardware = any("hardware" in run for run in runs)
    columns = doc.columns("Run*", "Model~", "Hardware~")
    columns += [doc.Column(name.capitalize()) for name in shares] or doc.columns(
        "Scores~"
    )
    columns += doc.columns("Missing>", "Date")
    rows: list[Sequence[doc.Content]] = []
    for run in runs:
        # A task's main metric is its first.
        mains = "; ".join(
            f"{name} {label} {_score(found)}"
            for name, task in run["tasks"].items()
            for label, found in list(task["metrics"].items())[:1]
        )
        scores = [
            _score(run.get("shares", {}).get(name), 100.0) for name in shares
        ] or [mains]
        rows.append(
            (
                doc.Cell(run["folder"], name=True),
                doc.Cell(run["label"], name=True),
                run.get("hardware", numbers.NOTHING) if hardware else "",
                *scores,
                missing_cell(run.get("n_missing", 0)),
                run["date"],
            )
        )
    return doc.Table(columns, rows, "Runs")


def _slices(
    task: str,
    key: str,
    values: Mapping[str, Mapping[str, Any]],
    runs: Sequence[Mapping[str, Any]],
) -> Iterator[doc.Block]:
    there = [
        run for run in runs if any(run["folder"] in found for found in values.values())
    ]
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(value, name=True),
            *(_score(found.get(run["folder"])) for run in there),
        )
        for value, found in list(values.items())[:_MOST_VALUES]
    ]
    yield doc.Heading(f"{task} by {key}")
    columns = [
        doc.Column(key.capitalize(), folds=True, key=True),
        *(doc.Column(run["folder"], name=True) for run in there),
    ]
    yield doc.Table(columns, rows, f"{task} by {key}")
    if len(values) > _MOST_VALUES:
        yield doc.Note(
            f"The other {len(values) - _MOST_VALUES} values are in index.json."
        )


def _score(found: Mapping[str, Any] | None, scale: float | None = None) -> str:
    """A number with its interval and n, in points of 100 where it lies between 0 and 1, or times
    `scale`.
    """
    if found is None or found["value"] is None or math.isnan(found["value"]):
        return numbers.NOTHING
    ends = [found[name] for name in ("low", "high")]
    known = [x for x in (found["value"], *ends) if x is not None and not math.isnan(x)]
    times = scale or (100.0 if all(0 <= x <= 1 for x in known) else 1.0)
    interval = (
        f" [{ends[0] * times:.1f}, {ends[1] * times:.1f}]" if len(known) == 3 else ""
    )
    return f"{found['value'] * times:.1f}{interval}, n {found['n']:,}"


def checks_document(found: Sequence[Checked]) -> doc.Document:
    """A line per run, with how many of their tasks are whole, and what is wrong."""
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(one.run, "warn" if one.problems else "strong", name=True),
            doc.Cell(one.model, name=True),
            f"{one.tasks} of {one.of_tasks}",
            "; ".join(one.problems) or "no problems",
        )
        for one in found
    ]
    broken = sum(bool(one.problems) for one in found)
    notes = [
        (
            f"{broken} of {numbers.counted(len(found), 'run')}"
            f" {numbers.plural(broken, 'has', 'have')} problems."
            if broken
            else "No problems found."
        )
    ]
    notes += [f"{one.run}: {note}" for one in found for note in one.notes]
    return doc.Document(
        "",
        [
            doc.Table(
                doc.columns("Run*", "Model~", "Complete tasks>", "Found~"), rows, "Runs"
            ),
            doc.Notes(notes),
        ],
    )
