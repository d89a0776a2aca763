"""`evalwright view`: runs and their samples in a browser, as one file or served."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.options import RUNS_FOLDER


@click.command()
@click.argument("runs", nargs=-1, required=True)
@RUNS_FOLDER
@click.option("--html", metavar="FILE", help="Write one file that a browser opens without a network, and serve nothing.")
@click.option("--title", default="", metavar="TEXT", help="The page's title. Default: the runs' names.")
def view(runs: tuple[str, ...], runs_folder: str, html: str | None, title: str) -> None:
    """Look at RUNS (folders or names) and their samples in a browser; runs that are still going are followed."""
    from evalwright.api import open_run
    from evalwright.cli import say
    from evalwright.reports.explorer.page import write_page

    opened = [open_run(run, runs_folder) for run in runs]
    title = title or ", ".join(run.name for run in opened[:3])
    assert html
    write_page(opened, Path(html), title=title, progress=lambda words: None)
    say(f"Written: {html}")
