"""`evalwright import sea-helm` and `evalwright export sea-helm`."""

from __future__ import annotations

from pathlib import Path

from evalwright.compat.programs import Exporter, Importer, Imports, imports_of, later, option, scoring_option
from evalwright.runs.reader import Run

_KEPT = ("scoring", "runs", "git", "published", "totals", "notes")
"""What of an imported run other programs are told."""


def _import(path: Path, out: Path, name: str, *, scoring: str, task_root: str | None) -> Imports:
    from evalwright.compat.sea_helm.importing import import_sea_helm

    runs, left_out = import_sea_helm(
        path, out, name, scoring=scoring, task_root=Path(task_root) if task_root else None
    )
    return imports_of(runs, _told, _KEPT, left_out)


def _told(run: Run) -> list[str]:
    from evalwright.reports.numbers import counted

    imported = run.data["configuration"]["imported"]
    failed = f", {run.n_missing:,} samples failed" if run.n_missing else ""
    what = f"{counted(len(run.tasks), 'task')}, {counted(len(imported['runs']), 'run')}{failed}"
    return [f"{what}; {imported['scoring']})"]


IMPORTER = Importer(
    "Import results of SEA-HELM in PATH: a results folder, the folder of one model, or one of its run_N.",
    _import,
    "the model and the time",
    (
        scoring_option(
            "Take scores as recorded, or score the recorded answers again. Default: published.",
            default="published",
        ),
        option(
            "--task-root",
            metavar="DIR",
            help="SEA-HELM's own folder: the run then has its rows, is paired with runs of ours and can be scored again.",
        ),
    ),
)
EXPORTER = Exporter(
    "Write the SEA-HELM tasks of each RUN as SEA-HELM writes its results: ORGANISATION/MODEL/run_N with configs, results and inferences.",
    later("sea_helm.exporting:export_sea_helm"),
    "exports",
    "Where the folders of the models are made.",
    several=True,
)
