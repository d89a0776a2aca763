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
        "Set up an evaluation: choose a job, get its files, run its first command.",
    ),
    "run": ("run:run", "Evaluate models on tasks."),
    "plan": (
        "plan:plan",
        "Estimate what a run costs and what it can detect, before any request is sent.",
    ),
    "view": ("view:view", "Look at runs and their samples in a browser."),
    "compare": (
        "compare:compare",
        "Compare runs, paired by item; fail where one is worse.",
    ),
    "leaderboard": ("leaderboard:leaderboard", "Make a leaderboard of runs."),
    "entries": (
        "entries:entries",
        "Keep a leaderboard by pull requests: check entries, try, run, publish.",
    ),
    "runs": (
        "runs:runs",
        "List, show, plot, check, merge, rename and delete runs; submit them elsewhere.",
    ),
    "score": ("score:score", "Score a run's recorded answers again."),
    "export": ("foreign:export", "Export runs as files of other programs."),
    "import": ("foreign:import_", "Import results of other programs as runs."),
    "tasks": ("tasks:tasks", "List, show, preview and check tasks."),
    "models": (
        "models:models",
        "List model providers; check that a model can be used.",
    ),
    "proxy": (
        "proxy:proxy",
        "Serve models to other programs, paid once, in OpenAI's and Anthropic's shapes.",
    ),
    "check": (
        "check:check",
        "Check what scores rest on: judges, calibration, drift, contamination.",
    ),
    "store": (
        "store:store",
        "Show, check, prune, export, import and merge stored responses; batch jobs.",
    ),
    "jobs": (
        "jobs:jobs",
        "Print job files that run an evaluation on a cluster, by workers or in shards.",
    ),
    "doctor": (
        "doctor:doctor",
        "Say what works here; with --live, try real providers, the hub and devices.",
    ),
    "completion": ("completion:completion", "Print the shell-completion script."),
    **FOREIGN_COMMANDS,
}
SECTIONS = {
    "Start": ("init", "run", "plan", "view", "compare"),
    "Results": ("leaderboard", "entries", "runs", "score", "export", "import"),
    "Tasks and models": ("tasks", "models", "proxy", "check"),
    "Operations": ("store", "jobs", "doctor", "completion"),
    "Other programs": tuple(FOREIGN_COMMANDS),
}
"""The headings of the help."""
MOVED = {
    "aggregate": "runs aggregate",
    "batches": "store batches",
    "calibration": "check calibration",
    "contamination": "check contamination",
    "judge": "check judge",
    "plot": "runs plot",
    "submit": "runs submit",
}
"""Earlier names of commands."""

COMPLETE = "_EVALWRIGHT_COMPLETE"
"""The environment variable that a shell sets to request completions."""


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    sections=SECTIONS,
    moved=MOVED,
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
