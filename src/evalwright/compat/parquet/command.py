"""`evalwright export parquet` and `evalwright import parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalwright.compat.programs import Exporter, Exports, Importer, Imports
from evalwright.runs.reader import Run


def _import(path: Path, out: Path, name: str) -> Imports:
    from evalwright.compat.parquet.files import import_parquet

    run = import_parquet(path, out, name)
    return Imports(
        [f"Imported: {run.folder} ({run.model}: {run.data['samples']['records']:,} records)"],
        {"runs": [{"id": run.id, "model": run.model, "folder": str(run.folder)}]},
    )


def _export(runs: Sequence[Run], out: Path) -> Exports:
    from evalwright.compat.parquet.files import export_parquet

    return Exports([file for run in runs for file in export_parquet(run, out)])


IMPORTER = Importer(
    "Import a run that `evalwright export parquet` wrote: PATH is its file of samples.",
    _import,
    "that of the run exported",
)
EXPORTER = Exporter(
    "Write each RUN as two Parquet files: NAME.samples.parquet, a row for each sample and draw, and NAME.scores.parquet, "
    "a row for each score.",
    _export,
    "parquet",
    "Where the files are written.",
    several=True,
)
