"""`evalwright import sea-helm` and `evalwright export sea-helm`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

from evalwright import Run
from evalwright.compat.programs import import_later, option, scoring_option
from evalwright.extend import Exporter, Importer, ImportSummary, summarise_import

_KEPT = ("scoring", "runs", "git", "published", "totals", "notes")
"""What of an imported run other programs are told."""


_OVER_RUNS = option(
    "--over-runs",
    is_flag=True,
    help=(
        "Also write the numbers of SEA-HELM's notebook results_aggregation.ipynb,"
        " MODEL_scores.yaml: means over runs, 30 bootstraps, its seed."
    ),
)


def _import(
    path: Path,
    runs_folder: Path,
    name: str,
    *,
    scoring: str,
    task_root: str | None,
    over_runs: bool,
) -> ImportSummary:
    from evalwright.compat.sea_helm.importing import import_sea_helm

    if over_runs:
        from evalwright.compat.sea_helm.over_runs import check_over_runs
        from evalwright.compat.sea_helm.results import find_runs

        for numbered_runs in find_runs(path):
            check_over_runs(numbered_runs)
    runs, left_out = import_sea_helm(
        path,
        runs_folder,
        name,
        scoring=scoring,
        task_root=Path(task_root) if task_root else None,
    )
    imports = summarise_import(runs, _summary_lines, _KEPT, left_out)
    return (
        replace(imports, lines=[*imports.lines, *_over_runs(path, runs_folder)])
        if over_runs
        else imports
    )


def _over_runs(path: Path, folder: Path) -> list[str]:
    """The lines of the notebook's numbers, which are written beside the runs."""
    from evalwright.compat.sea_helm.over_runs import write_over_runs
    from evalwright.compat.sea_helm.results import find_runs

    lines: list[str] = []
    for numbered_runs in find_runs(path):
        named = "--".join(PurePosixPath(numbered_runs[0].model).parts[-2:])
        lines += write_over_runs(numbered_runs, folder / f"{named}_scores.yaml")
    return lines


def _summary_lines(run: Run) -> list[str]:
    imported = run.data["configuration"]["imported"]
    failed = f", {run.n_missing:,} samples failed" if run.n_missing else ""
    subject = (
        f"{_counted(len(run.tasks), 'task')},"
        f" {_counted(len(imported['runs']), 'run')}{failed}"
    )
    return [f"({run.model}: {subject}; {imported['scoring']})"]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


IMPORTER = Importer(
    "Import results of SEA-HELM in PATH: a results folder, the folder of one model, or"
    " one of its run_N.",
    _import,
    "the model and the time",
    (
        scoring_option(
            "Take scores as recorded, or score the recorded answers again. Default:"
            " published.",
            default="published",
        ),
        option(
            "--task-root",
            metavar="DIR",
            help=(
                "SEA-HELM's own folder: the run then has its rows, is paired with runs"
                " of ours and can be scored again."
            ),
        ),
        _OVER_RUNS,
    ),
)
EXPORTER = Exporter(
    "Write the SEA-HELM tasks of each RUN as SEA-HELM writes its results:"
    " ORGANISATION/MODEL/run_N with configs, results and inferences.",
    import_later("sea_helm.exporting:export_sea_helm"),
    "exports",
    "Where the folders of the models are made.",
    takes_several_runs=True,
    options=(_OVER_RUNS,),
)
