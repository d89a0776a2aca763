"""`evalwright import open-factual-bench`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from evalwright import Run
from evalwright.compat.programs import option, scoring_option
from evalwright.extend import Importer, ImportSummary, printable, summarise_import

_SHOWN = 60
_SHOWN_KEYS = (
    "scoring",
    "hardware",
    "run_id",
    "published",
    "counts",
    "differences",
    "notes",
)
"""Facts about an imported run that --json shows."""


def _import(
    path: Path,
    runs_folder: Path,
    name: str,
    *,
    scoring: str | None,
    tasks: str | None,
    task_files: str | None,
) -> ImportSummary:
    from evalwright.compat.open_factual_bench.importing import import_ofb
    from evalwright.compat.open_factual_bench.task_files import FOLDER

    if task_files and not tasks:
        raise click.UsageError("--task-files needs --tasks, the questions.")
    folder = Path(task_files or FOLDER)
    questions = Path(tasks) if tasks else None
    runs = import_ofb(
        path, runs_folder, name, scoring=scoring, tasks=questions, task_files=folder
    )
    imports = summarise_import(runs, _describe_run, _SHOWN_KEYS)
    if not questions:
        return imports
    hint = (
        f"Task files of the questions: {folder}. Ask them with: evalwright run"
        f" {folder}/*.yaml --model MODEL"
    )
    return replace(imports, lines=[*imports.lines, hint])


def _describe_run(run: Run) -> list[str]:
    """Describe the run's counts, then each row that differs and why."""
    imported = run.data["configuration"]["imported"]
    scoring = ", as published" if imported["scoring"] == "published" else ""
    rows = f"{run.data['samples']['records']:,} rows"
    lines = [f"({run.model}: {rows}{scoring})"]
    for task in run.tasks:
        metrics = ", ".join(
            f"{metric.label} {round(metric.estimate.value * metric.estimate.n)} of"
            f" {metric.estimate.n}"
            for metric in task.metrics
            if metric.estimate.n
        )
        failed = f"; not scored: {task.n_missing}" if task.n_missing else ""
        lines.append(f"  {task.name}: {metrics or 'no score'}{failed}")
    counts = [
        f"{name} {tally['correct']} of {tally['graded']}"
        for name, tally in imported["counts"].items()
        if tally
    ]
    lines.append(f"  Correct: {', '.join(counts)}")
    for difference in imported["differences"]:
        reference = (
            f" (reference '{_shorten(difference['reference'])}')"
            if difference["reference"]
            else ""
        )
        verdicts = ", ".join(
            f"{key} {difference[key]}"
            for key in ("recorded", "published", "corrected")
            if difference[key]
        )
        reason = f": {printable(difference['why'])}" if difference["why"] else ""
        lines.append(
            f"  Differs: {difference['task_id']} '{_shorten(difference['response'])}'{reference}:"
            f" {verdicts}{reason}"
        )
    return lines


def _shorten(text: str) -> str:
    line = printable(" ".join(text.split())[:200])
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


IMPORTER = Importer(
    "Import the recorded runs of open-factual-bench in PATH: a result file, or a folder"
    " with some.",
    _import,
    "the model and its run id",
    (
        scoring_option(
            "Score the answers again, or count as the benchmark does. Default:"
            " corrected with --tasks."
        ),
        option(
            "--tasks",
            metavar="FILE",
            help=(
                "The questions: the benchmark's Python file (read, never executed),"
                " JSON, JSON Lines or CSV."
            ),
        ),
        option(
            "--task-files",
            metavar="DIR",
            help=(
                "Where the questions are written as task files for `evalwright run`."
                " Default: open-factual-bench."
            ),
        ),
    ),
)
