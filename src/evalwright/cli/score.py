"""`evalwright score`: recorded answers, new scores."""

from __future__ import annotations

from typing import Any

import click

from evalwright.cli.options import (
    AS_JSON,
    HOME,
    JUDGES,
    PANEL,
    PLUGINS,
    ROLE_ARGUMENTS,
    ROLES,
    RUNS_FOLDER,
    SANDBOX,
    open_runs,
    option,
    repeatable_option,
    scoring_options,
)
from evalwright.cli.output import print_result
from evalwright.core.errors import UnknownName


@click.command()
@click.argument("run")
@repeatable_option(
    "--scorer scorers",
    "NAME",
    "One of the run's own scorers, to compute again; or other scorers, to replace them"
    " all.",
)
@repeatable_option("-S options", "NAME.KEY=VALUE", "An option of a scorer.")
@JUDGES
@PANEL
@ROLES
@ROLE_ARGUMENTS
@option(
    "--name",
    "ID",
    "The new run's name. Default: the old one with '.rescored'.",
    default="",
)
@option(
    "--round",
    "NAME",
    "Ask judges again, as in no other round. Added to the new run's name.",
    default="",
)
@RUNS_FOLDER
@HOME
@PLUGINS
@scoring_options
@SANDBOX
@AS_JSON
def score(run: str, **params: Any) -> int:
    """Score the answers of RUN again and write the result as a new run.

    The model under test gets no request.
    """
    from evalwright.cli import arguments
    from evalwright.cli.exit_codes import conclude, say
    from evalwright.evaluation.rescoring import score_run
    from evalwright.reports.documents.summary import run_summary
    from evalwright.reports.endings import (
        judge_failed_throughout,
        remarks,
        unscored_sentences,
    )

    arguments.load_plugins(params["plugins"])
    scorers = params["scorers"]
    options = arguments.key_values(params["options"], "-S")
    for scorer in options:
        if scorer not in scorers:
            raise UnknownName(
                "scorer in -S", scorer, scorers, "Name it with --scorer first."
            )
    judging = arguments.judge_settings({"rubric": (), "columns": (), **params}, {})
    rescored = score_run(
        open_runs(run, writes_beside=True)[0],
        scorers=[{scorer: options.get(scorer, {})} for scorer in scorers],
        roles=arguments.role_specs(
            params["roles"], params["role_arguments"], params["judges"]
        ),
        unsure=judging.get("unsure"),
        panel=judging.get("panel"),
        name=params["name"],
        home=params["home"],
        dialect=arguments.dialect_settings(params),
        sandbox=params["sandbox"],
        asked_in=params["round"],
    )
    print_result(
        params["as_json"],
        {**rescored.data, "folder": str(rescored.folder)},
        run_summary(rescored),
    )
    for remark in remarks([rescored]):
        say(remark)
    code = conclude(unscored_sentences([rescored]))
    return 1 if judge_failed_throughout([rescored]) else code
