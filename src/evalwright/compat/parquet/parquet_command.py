"""`evalwright export parquet` and `evalwright import parquet`."""

from __future__ import annotations

from evalwright.compat.programs import import_later
from evalwright.extend import Exporter, Importer

IMPORTER = Importer(
    "Import a run that `evalwright export parquet` wrote: PATH is its file of samples.",
    import_later("parquet.run_tables:imports"),
    "that of the run exported",
)
EXPORTER = Exporter(
    "Write each RUN as two Parquet files: NAME.samples.parquet, a row for each sample"
    " and draw, and NAME.scores.parquet, a row for each score.",
    import_later("parquet.run_tables:exports"),
    "parquet",
    "Where the files are written.",
    takes_several_runs=True,
)
