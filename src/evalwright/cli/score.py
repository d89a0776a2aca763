"""`evalwright score`: recorded answers, new scores."""

from __future__ import annotations

from typing import Any

import click

from evalwright.cli.dialect import dialect_settings, folder_options
from evalwright.cli.output import print_json


@click.command()
@click.argument("run")
@click.option(
    "--scorer",
    "scorers",
    multiple=True,
    metavar="NAME",
    help="One of the run's own scorers again, the rest stays; or others in place of them all. Repeatable.",
)
@click.option(
    "-S", "options", multiple=True, metavar="NAME.KEY=VALUE", help="An option of a scorer. Repeatable."
)
@click.option(
    "--role", "roles", multiple=True, metavar="ROLE=MODEL", help="A model that scorers ask, e.g. judge=..."
)
@click.option(
    "-R", "role_arguments", multiple=True, metavar="ROLE.KEY=VALUE", help="An argument for a role's model."
)
@click.option(
    "--name", default="", metavar="ID", help="The new run's name. Default: the old one with '.rescored'."
)
@click.option(
    "--out", "runs_folder", default="runs", metavar="DIR", help="Where runs given by name lie. Default: runs."
)
@click.option(
    "--home",
    metavar="DIR",
    help="Where judges' answers are stored. Default: $EVALWRIGHT_HOME or .evalwright.",
)
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE",
    help="A Python file with scorers or models; a TOML file with providers.",
)
@folder_options
@click.option("--json", "as_json", is_flag=True, help="Print the new record as JSON.")
def score(
    run: str,
    scorers: tuple[str, ...],
    options: tuple[str, ...],
    roles: tuple[str, ...],
    role_arguments: tuple[str, ...],
    name: str,
    runs_folder: str,
    home: str | None,
    plugins: tuple[str, ...],
    as_json: bool,
    **dialect: Any,
) -> int:
    """Score the answers of RUN again and write the result as a new run. No model under test is asked."""
    from evalwright.api import open_run
    from evalwright.cli import say
    from evalwright.cli.arguments import key_values, load_plugins, role_specs
    from evalwright.core.errors import UnknownName
    from evalwright.evaluation.rescoring import score_run
    from evalwright.reports.documents.run import run_document
    from evalwright.reports.terminal import show

    load_plugins(plugins)
    given = key_values(options, "-S")
    for scorer in given:
        if scorer not in scorers:
            raise UnknownName("scorer in -S", scorer, scorers, "Name it with --scorer first.")
    made = score_run(
        open_run(run, runs_folder),
        scorers=[{scorer: given.get(scorer, {})} for scorer in scorers],
        roles=role_specs(roles, role_arguments),
        name=name,
        home=home,
        dialect=dialect_settings(dialect),
    )
    if as_json:
        print_json({**made.data, "folder": str(made.folder)})
    else:
        show(run_document(made))
    if made.n_failed:
        what = "1 sample has" if made.n_failed == 1 else f"{made.n_failed} samples have"
        say(f"{what} no score: the answer or the scorer failed.")
        return 1
    return 0
