"""`evalwright import every-eval-ever` and `evalwright export every-eval-ever`."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright import Run
from evalwright.compat.programs import import_later, option
from evalwright.extend import Exporter, Importer, ImportSummary, summarise_import


def _import(path: Path, folder: Path, name: str) -> ImportSummary:
    from evalwright.compat.every_eval_ever.importing import import_eee

    return summarise_import(
        import_eee(path, folder, name), _describe_run, ("format", "file", "notes")
    )


def _describe_run(run: Run) -> list[str]:
    names = ", ".join(task.name for task in run.tasks[:10])
    return [f"({run.model}: {names})"]


IMPORTER = Importer(
    "Import the records of Every Eval Ever in PATH: an aggregate (.json, its samples"
    " beside it), or a folder with some.",
    _import,
    "the model and the evaluation",
)
EXPORTER = Exporter(
    "Write each task of each RUN as a record of Every Eval Ever:"
    " data/TASK/ORGANISATION/MODEL/ID.json and its samples.",
    import_later("every_eval_ever.exporting:export_eee"),
    ".",
    "Where the folder 'data' is made.",
    takes_several_runs=True,
    options=(
        option(
            "--organisation",
            metavar="NAME",
            default="unknown",
            help="Who ran the evaluation.",
        ),
        option(
            "--relationship",
            type=click.Choice(["first_party", "third_party", "collaborative", "other"]),
            default="other",
            help="How the evaluator is related to the model's maker. Default: other.",
        ),
    ),
)
