"""`evalwright check drift`: whether a model, or a judge, has changed under its name."""

from __future__ import annotations

from typing import Any

import click

from evalwright.cli.options import AS_JSON, RUNS_FOLDER, open_runs, repeatable_option
from evalwright.cli.output import print_result


@click.command()
@click.argument("runs", nargs=-1, required=True)
@repeatable_option(
    "--baseline",
    "RUN",
    "A round that is known to be as the model was at first. Default: the first round.",
)
@RUNS_FOLDER
@AS_JSON
def drift(
    runs: tuple[str, ...], baseline: tuple[str, ...], as_json: bool, **_: Any
) -> int:
    """Find out whether a model has changed between RUNS, its rounds (`run --round NAME`), or a
    judge between those of one run (`score --round NAME`).

    The test may be looked at after every round: in all of them and over all tasks together, a model
    that does not change gives an alarm with a chance of 5% at most. Exit code 1 if there is one.
    """
    from evalwright.analysis.drift import measure_drift
    from evalwright.reports.documents.drift import drift_document

    first = open_runs(*baseline) if baseline else []
    named = {run.id for run in first}
    rounds = [run for run in open_runs(*runs) if run.id not in named]
    measured = measure_drift(rounds, first)
    print_result(as_json, measured.as_dict(), drift_document(measured))
    return int(bool(measured.alarms))
