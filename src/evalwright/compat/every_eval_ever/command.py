"""`evalwright import every-eval-ever` and `evalwright export every-eval-ever`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from evalwright.compat.programs import Exporter, Exports, Importer, Imports, option, record_of
from evalwright.runs.reader import Run


def _import(path: Path, out: Path, name: str) -> Imports:
    from evalwright.compat.every_eval_ever.importing import import_eee

    runs = import_eee(path, out, name)
    lines = []
    for run in runs:
        lines.append(
            f"Imported: {run.folder} ({run.model}: {', '.join(task.name for task in run.tasks[:10])})"
        )
        lines += [f"  Note: {note}" for note in run.data["configuration"]["imported"]["notes"]]
    return Imports(lines, {"runs": [record_of(run, ("format", "file", "notes")) for run in runs]})


def _export(runs: Sequence[Run], out: Path, *, organisation: str, relationship: str) -> Exports:
    from evalwright.compat.every_eval_ever.exporting import export_eee

    return Exports(*export_eee(runs, out, organisation, relationship))


IMPORTER = Importer(
    "Import the records of Every Eval Ever in PATH: an aggregate (.json, its samples beside it), or a folder with some.",
    _import,
    "the model and the evaluation",
)
EXPORTER = Exporter(
    "Write each task of each RUN as a record of Every Eval Ever: data/TASK/ORGANISATION/MODEL/ID.json and its samples.",
    _export,
    ".",
    "Where the folder 'data' is made.",
    several=True,
    options=(
        option("--organisation", metavar="NAME", default="unknown", help="Who ran the evaluation."),
        option(
            "--relationship",
            type=click.Choice(["first_party", "third_party", "collaborative", "other"]),
            default="other",
            help="How the evaluator is related to the model's maker. Default: other.",
        ),
    ),
)
