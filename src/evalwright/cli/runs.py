"""`evalwright runs`: what was recorded."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.output import print_json


@click.group()
def runs() -> None:
    """List and show runs."""


@runs.command("list")
@click.option("--out", "folder", default="runs", metavar="DIR", help="Where runs lie. Default: runs.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def list_(folder: str, as_json: bool) -> None:
    """List the runs of a folder, oldest first."""
    from evalwright.reports.terminal import show_runs
    from evalwright.runs.reader import list_runs

    found = list_runs(Path(folder))
    if as_json:
        rows = [
            {"id": run.id, "model": run.model, "started": run.data["started"], "n_failed": run.n_failed}
            for run in found
        ]
        print_json(rows)
    elif found:
        show_runs(found)
    else:
        click.echo(f"No runs in '{folder}'. `evalwright run factual --model demo/small` makes one.")


@runs.command()
@click.argument("run")
@click.option(
    "--out", "folder", default="runs", metavar="DIR", help="Where runs given by name lie. Default: runs."
)
@click.option(
    "--verify", is_flag=True, help="Also check that the samples are those that the record describes."
)
@click.option("--json", "as_json", is_flag=True, help="Print run.json.")
def show(run: str, folder: str, verify: bool, as_json: bool) -> None:
    """Show one RUN: metrics with intervals, slices, failures and cost."""
    from evalwright.api import open_run
    from evalwright.reports.terminal import show_run

    found = open_run(run, folder)
    if verify:
        found.verify()
    if as_json:
        print_json(dict(found.data))
    else:
        show_run(found)
