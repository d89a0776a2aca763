"""`evalwright compare`: two runs, paired by item."""

from __future__ import annotations

import click

from evalwright.cli.output import print_json


@click.command()
@click.argument("a")
@click.argument("b")
@click.option(
    "--out", "runs_folder", default="runs", metavar="DIR", help="Where runs given by name lie. Default: runs."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def compare(a: str, b: str, runs_folder: str, as_json: bool) -> None:
    """Compare run A with run B on the items that both have: difference, interval, test, and what flipped."""
    from evalwright.api import compare as compare_runs
    from evalwright.reports.terminal import show_comparison

    comparison = compare_runs(a, b, runs_folder=runs_folder)
    if as_json:
        print_json(comparison.as_dict())
    else:
        show_comparison(comparison)
