"""`evalwright import lm-eval` and `evalwright export lm-eval`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalwright import Run
from evalwright.extend import Exporter, ExportSummary, Importer, ImportSummary


def _import(path: Path, folder: Path, name: str) -> ImportSummary:
    from evalwright.compat.lm_eval.runs.importing import import_lm_eval

    runs = import_lm_eval(path, folder, name)
    lines = []
    for run in runs:
        tasks = _counted(len(run.tasks), "task")
        samples = _counted(int(run.data["samples"]["records"]), "sample")
        failed = f", {run.n_missing} failed" if run.n_missing else ""
        lines.append(
            f"Imported: {run.folder} ({run.model}: {tasks}, {samples}{failed})"
        )
        notes = run.data["configuration"]["imported"].get("notes", ())
        lines += [f"  Note: {note.removesuffix('.')}." for note in notes]
    return ImportSummary(
        lines,
        [{"id": run.id, "model": run.model, "folder": str(run.folder)} for run in runs],
    )


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _export(runs: Sequence[Run], folder: Path) -> ExportSummary:
    from evalwright.compat.lm_eval.runs.exporting import export_lm_eval

    (run,) = runs
    files = export_lm_eval(run, folder)
    if not run.n_missing:
        return ExportSummary(files)
    failed = (
        "1 failed sample is"
        if run.n_missing == 1
        else f"{run.n_missing} failed samples are"
    )
    return ExportSummary(
        files,
        [
            f"{failed} in failures_*.jsonl, or in samples_*.jsonl without a value; they"
            " are in no metric."
        ],
    )


IMPORTER = Importer(
    "Import the results of lm-evaluation-harness in PATH: a results or samples file, or"
    " a folder with many.",
    _import,
    "the model and the time",
)
EXPORTER = Exporter(
    "Write RUN as lm-evaluation-harness writes its results: results_*.json and"
    " samples_*.jsonl.",
    _export,
    "exports",
    "Where the model's folder is made.",
)
