"""`evalwright check`: what scores rest on."""

from __future__ import annotations

import click

from evalwright.cli.groups import LazyGroup

_COMMANDS = {
    "judge": (
        "judge:judge",
        "Check a judge against people, and correct its scores.",
    ),
    "calibration": (
        "calibration:calibration",
        "Check whether models know when they are right.",
    ),
    "drift": (
        "drift:drift",
        "Find out whether a model has changed under its name.",
    ),
    "contamination": (
        "contamination:contamination",
        "Look for signs that a model has memorised questions.",
    ),
}


@click.group(cls=LazyGroup, table=_COMMANDS)
def check() -> None:
    """Check what scores rest on: judges, calibration, drift, contamination.

    `evalwright tasks check` looks at tasks, `evalwright runs check` at the files of runs.
    """
