"""The command `evalwright`, and the table of its commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pkgutil import resolve_name

import click

from evalwright._version import __version__
from evalwright.cli.exit_codes import run_command
from evalwright.cli.foreign_commands import FOREIGN_COMMANDS
from evalwright.cli.groups import LazyGroup

COMMANDS = {
    "init": (
        "init:init",
        "Write a task, a suite file and a GitHub workflow, from two questions.",
    ),
    "run": ("run:run", "Evaluate models on tasks."),
    "jobs": (
        "jobs:jobs",
        "Print job files that run an evaluation in shards on a cluster.",
    ),
    "plan": (
        "plan:plan",
        "Estimate what a run costs and what it can detect, before any request is sent.",
    ),
    "tasks": ("tasks:tasks", "List, show, preview and check tasks."),
    "models": (
        "models:models",
        "List model providers; check that a model can be used.",
    ),
    "doctor": (
        "doctor:doctor",
        "Say what works here; with --live, try real providers, the hub and devices.",
    ),
    "score": ("score:score", "Score a run's recorded answers again."),
    "aggregate": (
        "aggregate:aggregate",
        "Compute a run's metrics again from its recorded scores.",
    ),
    "compare": (
        "compare:compare",
        "Compare runs, paired by item; fail where one is worse.",
    ),
    "calibration": (
        "calibration:calibration",
        "Check whether models know when they are right.",
    ),
    "contamination": (
        "contamination:contamination",
        "Look for signs that a model has memorised questions.",
    ),
    "leaderboard": ("leaderboard:leaderboard", "Make a leaderboard of runs."),
    "plot": (
        "plot:plot",
        "Draw a figure of runs: scores, differences, cost, calibration and others.",
    ),
    "judge": ("judge:judge", "Check a judge against people, and correct its scores."),
    "batches": ("batches:batches", "List batch jobs at providers; forget one."),
    "store": (
        "store:store",
        "Show, check, prune, export, import and merge stored responses.",
    ),
    "submit": (
        "submit:submit",
        "Write, verify and add files of results for another leaderboard.",
    ),
    "runs": ("runs:runs", "List, show, check and merge runs; write their index."),
    "view": ("view:view", "Look at runs and their samples in a browser."),
    "import": ("foreign:import_", "Import results of other programs as runs."),
    "export": ("foreign:export", "Export runs as files of other programs."),
    **FOREIGN_COMMANDS,
    "completion": (
        "completion:completion",
        "Print what completes commands and names in a shell.",
    ),
}

COMPLETE = "_EVALWRIGHT_COMPLETE"
"""The environment variable that a shell sets to ask for completions."""


class _Commands(LazyGroup):
    table = COMMANDS


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=(
        "First steps: evalwright run factual-choice --model demo/small --model"
        " demo/large. For your own: evalwright init"
    ),
)
@click.version_option(__version__, message="evalwright %(version)s")
def cli() -> None:
    """Evaluate language models: any benchmark, any model, every number with its uncertainty."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; bad input never shows a traceback."""
    if os.environ.get(COMPLETE):
        code: int = resolve_name("evalwright.cli.completion:complete")()
        return code
    return run_command(cli, arguments, "evalwright")
