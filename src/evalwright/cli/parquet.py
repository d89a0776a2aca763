"""`evalwright export parquet` and `evalwright import parquet`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.extend import (
    Exporter,
    ExportSummary,
    ImportDestination,
    Importer,
    ImportSummary,
)
from evalwright.runs.reader import Run


def import_tables(path: Path, runs_folder: Path, name: str) -> ImportSummary:
    """Import the run in a file of samples."""
    from evalwright.runs.parquet_tables import restore_run

    def choose_folder(run_record: Mapping[str, Any]) -> Path:
        destination = ImportDestination(
            runs_folder, name or run_record["id"], alone=True
        )
        return destination.place("", [], str(run_record.get("identity"))).path

    run = restore_run(path, choose_folder)
    n_records = run.data["samples"]["records"]
    return ImportSummary(
        [f"Imported: {run.folder} ({run.model}: {n_records:,} records)"],
        {"runs": [{"id": run.id, "model": run.model, "folder": str(run.folder)}]},
    )


def export_tables(runs: Sequence[Run], folder: Path) -> ExportSummary:
    """Write the tables of runs."""
    from evalwright.runs.parquet_tables import write_tables

    return ExportSummary([file for run in runs for file in write_tables(run, folder)])


IMPORTER = Importer(
    "Import a run that `evalwright export parquet` wrote: PATH is its file of samples.",
    import_tables,
    "that of the run exported",
)
EXPORTER = Exporter(
    "Write each RUN as two Parquet files: NAME.samples.parquet, a row for each sample"
    " and draw, and NAME.scores.parquet, a row for each score.",
    export_tables,
    "parquet",
    "Where the files are written.",
    takes_several_runs=True,
)
