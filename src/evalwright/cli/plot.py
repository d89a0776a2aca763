"""`evalwright runs plot`: a figure of finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.options import METRIC, RUNS_FOLDER, open_runs, option
from evalwright.tasks.safe_files import write_file


@click.command()
@click.argument("kind")
@click.argument("runs", nargs=-1, required=True)
@RUNS_FOLDER
@METRIC
@option("--into", "FILE", "The figure: FILE.svg, .png or .pdf.", required=True)
@option("--title", "TEXT", "Its title. Default: what it shows.", default="")
def plot(
    kind: str,
    runs: tuple[str, ...],
    metric: str | None,
    into: str,
    title: str,
    **_: Any,
) -> None:
    """Draw a figure of RUNS. No request is sent.

    KIND is scores, differences, cost, latency, date (a score against these), length (of the
    answers), calibration or agreement (of judges).
    """
    from evalwright.core.errors import check_known
    from evalwright.reports.figures import KINDS, figure
    from evalwright.reports.plot import check_plot

    check_known("figure", [kind], KINDS)  # before a library is needed
    suffix = check_plot(into)
    picture = figure(kind, open_runs(*runs), suffix, title, metric)
    say(f"Written: {into}" if write_file(Path(into), picture) else f"Unchanged: {into}")
