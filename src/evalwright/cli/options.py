"""Options that several commands share, each with one name and one help text."""

from __future__ import annotations

import click

RUNS_FOLDER = click.option(
    "--out", "runs_folder", default="runs", metavar="DIR", help="Where runs given by name are. Default: runs."
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
PLUGINS = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    help="A Python file with models, tasks, scorers or metrics, or a TOML file with providers. Repeatable.",
)
MODEL_ARGUMENTS = click.option(
    "-M", "arguments", multiple=True, metavar="KEY=VALUE", help="An argument of the model. Repeatable."
)
ROLES = click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE=MODEL",
    help="A model for a role of a scorer, e.g. judge=...",
)
ROLE_ARGUMENTS = click.option(
    "-R", "role_arguments", multiple=True, metavar="ROLE.KEY=VALUE", help="An argument for a role's model."
)
OVERRIDES = click.option(
    "-T",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that overrides the task's, e.g. dataset.path=mine.csv, prompt.file=mine.txt. Repeatable.",
)
HOME = click.option(
    "--home", metavar="DIR", help="Where responses are stored. Default: $EVALWRIGHT_HOME or .evalwright."
)
