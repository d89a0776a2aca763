"""`evalwright score`: recorded answers, new scores."""

from __future__ import annotations

from typing import Any

import click

from evalwright.cli.options import (
    AS_JSON,
    HOME,
    JUDGES,
    PLUGINS,
    ROLE_ARGUMENTS,
    ROLES,
    RUNS_FOLDER,
    SANDBOX,
    opened,
    option,
    scoring_options,
    several,
)
from evalwright.cli.output import print_result
from evalwright.core.errors import UnknownName


@click.command()
@click.argument("run")
@several(
    "--scorer scorers",
    "NAME",
    "One of the run's own scorers, to compute again; or other scorers, to replace them"
    " all.",
)
@several("-S options", "NAME.KEY=VALUE", "An option of a scorer.")
@JUDGES
@ROLES
@ROLE_ARGUMENTS
@option(
    "--name",
    "ID",
    "The new run's name. Default: the old one with '.rescored'.",
    default="",
)
@RUNS_FOLDER
@HOME
@PLUGINS
@scoring_options
@SANDBOX
@AS_JSON
def score(run: str, **given: Any) -> int:
    """Score the answers of RUN again and write the result as a new run.

    The model under test gets no request.
    """
    from evalwright.cli import arguments, conclude, say
    from evalwright.evaluation.rescoring import score_run
    from evalwright.reports.documents.summary import run_summary
    from evalwright.reports.endings import (
        judge_failed_throughout,
        remarks,
        unscored_sentences,
    )

    arguments.load_plugins(given["plugins"])
    scorers = given["scorers"]
    options = arguments.key_values(given["options"], "-S")
    for scorer in options:
        if scorer not in scorers:
            raise UnknownName(
                "scorer in -S", scorer, scorers, "Name it with --scorer first."
            )
    made = score_run(
        opened(run)[0],
        scorers=[{scorer: options.get(scorer, {})} for scorer in scorers],
        roles=arguments.role_specs(
            given["roles"], given["role_arguments"], given["judges"]
        ),
        unsure=arguments.judge_settings({"rubric": (), "columns": (), **given}, {}).get(
            "unsure"
        ),
        name=given["name"],
        home=given["home"],
        dialect=arguments.dialect_settings(given),
        sandbox=given["sandbox"],
    )
    print_result(
        given["as_json"], {**made.data, "folder": str(made.folder)}, run_summary(made)
    )
    for remark in remarks([made]):
        say(remark)
    code = conclude(unscored_sentences([made]))
    return 1 if judge_failed_throughout([made]) else code
