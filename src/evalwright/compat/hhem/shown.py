"""What the command line says of an imported run: one line for it, one for what differs, and one for each thing to know."""

from __future__ import annotations

from typing import Any

from evalwright.runs.reader import Run

_NAMES = {"hallucination-rate": "hallucination rate", "answer-rate": "answer rate", "mean-words": "words"}


def lines_of(run: Run) -> list[str]:
    """The lines to print."""
    (task,) = run.tasks
    imported = run.data["configuration"]["imported"]
    rates = []
    for metric in task.metrics:
        if metric.label in _NAMES:
            scale = 1.0 if metric.label == "mean-words" else 100.0
            value = metric.estimate.value * scale
            rates.append(f"{_NAMES[metric.label]} {'n/a' if value != value else f'{value:.1f}'}")
    rows = f"{run.data['samples']['records']:,} rows"
    failed = f", {task.n_failed:,} failed or lost" if task.n_failed else ""
    scoring = ", as published" if imported["scoring"] == "published" else ""
    lines = [f"Imported: {run.folder} ({run.model}: {rows}{failed}{scoring}): {', '.join(rates)}"]
    differing = [
        f"{_NAMES[one['metric']]} {'n/a' if one['ours'] is None else one['ours']} "
        f"(published {one['published']})"
        for one in imported["differences"]
    ]
    if differing:
        lines.append(f"  Differs from what was published: {', '.join(differing)}")
    if imported["older_judgments_left_out"]:
        lines.append(f"  Of other dates, left out: {imported['older_judgments_left_out']} (--all-dates)")
    return lines + [f"  Note: {note}." for note in imported["notes"]]


def as_record(run: Run) -> dict[str, Any]:
    """The run for other programs."""
    (task,) = run.tasks
    imported = run.data["configuration"]["imported"]
    kept = (
        "scoring",
        "judge",
        "judgment_date",
        "pairing",
        "dataset",
        "lost",
        "published",
        "differences",
        "notes",
    )
    return {
        "id": run.id,
        "model": run.model,
        "folder": str(run.folder),
        **{key: imported[key] for key in kept},
        "metrics": {metric.label: metric.estimate.as_dict() for metric in task.metrics},
    }
