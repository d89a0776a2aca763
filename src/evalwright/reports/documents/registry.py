"""Documents on folders of runs: their index, scores by slice, and the result of `runs check`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.analysis.run_checks import RunCheck
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.documents.run import missing_cell

_MOST_VALUES = 40


def registry_document(index: Mapping[str, Any]) -> doc.Document:
    """Build the index of a folder of runs.

    Args:
        index: The index that `analysis.run_index.build_index` returns.
    """
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
            doc.Notes(
                [
                    f"{damaged_run['folder']}: {damaged_run['error']}"
                    for damaged_run in index["damaged"]
                ]
            )
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
            f"{name} {label} {_score(metric)}"
            for name, task in run["tasks"].items()
            for label, metric in list(task["metrics"].items())[:1]
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
    sliced_runs = [
        run
        for run in runs
        if any(run["folder"] in scores_by_run for scores_by_run in values.values())
    ]
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(slice_value, name=True),
            *(_score(scores_by_run.get(run["folder"])) for run in sliced_runs),
        )
        for slice_value, scores_by_run in list(values.items())[:_MOST_VALUES]
    ]
    yield doc.Heading(f"{task} by {key}")
    columns = [
        doc.Column(key.capitalize(), folds=True, key=True),
        *(doc.Column(run["folder"], name=True) for run in sliced_runs),
    ]
    yield doc.Table(columns, rows, f"{task} by {key}")
    if len(values) > _MOST_VALUES:
        yield doc.Note(
            f"The other {len(values) - _MOST_VALUES} values are in index.json."
        )


def _score(estimate: Mapping[str, Any] | None, scale: float | None = None) -> str:
    """Format a number with interval and n, times `scale`; by default in points if from 0 to 1."""
    if estimate is None or estimate["value"] is None or math.isnan(estimate["value"]):
        return numbers.NOTHING
    bounds = [estimate[name] for name in ("low", "high")]
    finite = [
        number
        for number in (estimate["value"], *bounds)
        if number is not None and not math.isnan(number)
    ]
    times = scale or (100.0 if all(0 <= number <= 1 for number in finite) else 1.0)
    interval = (
        f" [{bounds[0] * times:.1f}, {bounds[1] * times:.1f}]"
        if len(finite) == 3
        else ""
    )
    return f"{estimate['value'] * times:.1f}{interval}, n {estimate['n']:,}"


def checks_document(checks: Sequence[RunCheck]) -> doc.Document:
    """Write a line per run: how many of its tasks are complete, and what is wrong with it."""
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(check.run, "warn" if check.problems else "strong", name=True),
            doc.Cell(check.model, name=True),
            f"{check.tasks} of {check.of_tasks}",
            "; ".join(check.problems) or "no problems",
        )
        for check in checks
    ]
    n_with_problems = sum(bool(check.problems) for check in checks)
    notes = [
        (
            f"{n_with_problems} of {numbers.counted(len(checks), 'run')}"
            f" {numbers.plural(n_with_problems, 'has', 'have')} problems."
            if n_with_problems
            else "No problems found."
        )
    ]
    notes += [f"{check.run}: {note}" for check in checks for note in check.notes]
    return doc.Document(
        "",
        [
            doc.Table(
                doc.columns("Run*", "Model~", "Complete tasks>", "Found~"), rows, "Runs"
            ),
            doc.Notes(notes),
        ],
    )
