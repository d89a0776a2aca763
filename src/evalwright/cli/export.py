"""`evalwright export`: runs in other programs' files."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.output import print_json


@click.group()
def export() -> None:
    """Write runs as files of other programs."""


@export.command("lm-eval")
@click.argument("run")
@click.option(
    "--out", default="exports", metavar="DIR", help="Where the model's folder is made. Default: exports."
)
@click.option(
    "--runs",
    "runs_folder",
    default="runs",
    metavar="DIR",
    help="Where runs given by name lie. Default: runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the files' names as JSON.")
def lm_eval(run: str, out: str, runs_folder: str, as_json: bool) -> None:
    """Write RUN as lm-evaluation-harness writes its results: results_*.json and samples_*.jsonl."""
    from evalwright.api import open_run
    from evalwright.cli import say
    from evalwright.runs.formats.lm_eval_export import export_lm_eval

    found = open_run(run, runs_folder)
    files = export_lm_eval(found, Path(out))
    if as_json:
        print_json([str(file) for file in files])
    else:
        for file in files:
            click.echo(f"Written: {file}")
    if found.n_failed:
        failed = "1 failed sample stands" if found.n_failed == 1 else f"{found.n_failed} failed samples stand"
        say(f"{failed} in failures_*.jsonl, or in samples_*.jsonl without a value; no number counts them.")
