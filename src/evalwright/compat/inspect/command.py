"""`evalwright import inspect` and `evalwright export inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalwright.compat.programs import Exporter, Exports, Importer, Imports
from evalwright.runs.reader import Run


def _import(path: Path, out: Path, name: str) -> Imports:
    from evalwright.compat.inspect.importing import imports

    return imports(path, out, name)


def _export(runs: Sequence[Run], out: Path) -> Exports:
    from evalwright.compat.inspect.exporting import export_inspect

    return Exports(*export_inspect(runs, out))


IMPORTER = Importer(
    "Import the logs of inspect_ai in PATH: a log (.eval or .json), or a folder with some; a run for each.",
    _import,
    "the model and the task",
)
EXPORTER = Exporter(
    "Write each task of each RUN as a log of inspect_ai (.eval).",
    _export,
    "logs",
    "Where the logs are written.",
    several=True,
)
