"""`evalwright import`: other programs' results as runs."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.output import print_json


@click.group("import")
def import_() -> None:
    """Make runs of results of other programs."""


@import_.command("lm-eval")
@click.argument("path")
@click.option("--name", default="", metavar="ID", help="The run's name. Default: the model and the time.")
@click.option("--out", default="runs", metavar="DIR", help="Where runs are written. Default: runs.")
@click.option("--json", "as_json", is_flag=True, help="Print the runs' names as JSON.")
def lm_eval(path: str, name: str, out: str, as_json: bool) -> None:
    """Make runs of results of lm-evaluation-harness in PATH: a results or samples file, or a folder with many."""
    from evalwright.reports.numbers import counted
    from evalwright.runs.formats.lm_eval_import import import_lm_eval

    runs = import_lm_eval(Path(path), Path(out), name)
    if as_json:
        print_json([{"id": run.id, "model": run.model, "folder": str(run.folder)} for run in runs])
        return
    for run in runs:
        tasks = counted(len(run.tasks), "task")
        samples = counted(int(run.data["samples"]["records"]), "sample")
        failed = f", {run.n_failed} failed" if run.n_failed else ""
        click.echo(f"Imported: {run.folder} ({run.model}: {tasks}, {samples}{failed})")
