"""`evalwright import inspect` and `evalwright export inspect`."""

from __future__ import annotations

from evalwright.compat.programs import import_later
from evalwright.extend import (
    Exporter,
    Importer,
)

IMPORTER = Importer(
    "Import the logs of inspect_ai in PATH: a log (.eval or .json), or a folder with"
    " some; a run for each.",
    import_later("inspect.importing:imports"),
    "the model and the task",
)
EXPORTER = Exporter(
    "Write each task of each RUN as a log of inspect_ai (.eval).",
    import_later("inspect.exporting:export_inspect"),
    "logs",
    "Where the logs are written.",
    takes_several_runs=True,
)
