"""What the command line says of an imported run of open-factual-bench: its counts, then row by row what differs and why."""

from __future__ import annotations

from typing import Any

from evalwright.core.text import printable
from evalwright.runs.reader import Run

_SHOWN = 60


def lines_of(run: Run) -> list[str]:
    """The lines to print."""
    imported = run.data["configuration"]["imported"]
    scoring = ", as published" if imported["scoring"] == "published" else ""
    lines = [f"Imported: {run.folder} ({run.model}: {run.data['samples']['records']:,} rows{scoring})"]
    for task in run.tasks:
        metrics = ", ".join(
            f"{one.label} {round(one.estimate.value * one.estimate.n)} of {one.estimate.n}"
            for one in task.metrics
            if one.estimate.n
        )
        failed = f"; not scored: {task.n_failed}" if task.n_failed else ""
        lines.append(f"  {task.name}: {metrics or 'no score'}{failed}")
    counts = [
        f"{name} {found['correct']} of {found['graded']}"
        for name, found in imported["counts"].items()
        if found
    ]
    lines.append(f"  Correct: {', '.join(counts)}")
    for one in imported["differences"]:
        reference = f" (reference '{_short(one['reference'])}')" if one["reference"] else ""
        said = ", ".join(f"{key} {one[key]}" for key in ("recorded", "published", "corrected") if one[key])
        why = f": {printable(one['why'])}" if one["why"] else ""
        lines.append(f"  Differs: {one['task_id']} '{_short(one['response'])}'{reference}: {said}{why}")
    return lines + [f"  Note: {note}." for note in imported["notes"]]


def as_record(run: Run) -> dict[str, Any]:
    """The run for other programs."""
    imported = run.data["configuration"]["imported"]
    kept = ("scoring", "hardware", "run_id", "published", "counts", "differences", "notes")
    return {
        "id": run.id,
        "model": run.model,
        "folder": str(run.folder),
        **{key: imported[key] for key in kept},
        "metrics": {
            task.name: {metric.label: metric.estimate.as_dict() for metric in task.metrics}
            for task in run.tasks
        },
    }


def _short(text: str) -> str:
    line = printable(" ".join(text.split())[:200])
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
