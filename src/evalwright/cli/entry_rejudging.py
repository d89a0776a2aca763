"""`evalwright entries rejudge`: the answers of a board's results, scored again by another judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.entries import BOARD_OPTION, TRUST_BOARD
from evalwright.cli.options import (
    AS_JSON,
    HOME,
    JUDGES,
    PANEL,
    ROLE_ARGUMENTS,
    flag,
    option,
    repeatable_option,
)

if TYPE_CHECKING:
    from evalwright.evaluation.rescoring import Rescoring
    from evalwright.runs.reader import Run

RUNS_FOLDER = "runs"


@click.command("rejudge")
@click.argument("names", nargs=-1)
@JUDGES
@PANEL
@ROLE_ARGUMENTS
@flag("--plan", "Send nothing: say what it takes, in requests, tokens and dollars.")
@repeatable_option(
    "--budget",
    "SUM",
    "Spend no more than '20 USD', '2M tokens' or '1000 requests' on all results together.",
)
@repeatable_option(
    "--price",
    "IN/OUT",
    "US dollars per million tokens of a judge. Default: the board's prices, then the"
    " tables'.",
)
@option(
    "--runs samples_runs",
    "DIR",
    "Where the runs with the answers are. Default: runs in the home folder.",
)
@BOARD_OPTION
@TRUST_BOARD
@HOME
@AS_JSON
def rejudge(names: tuple[str, ...], **params: Any) -> int:
    """Score the answers of a board's results again (of entries NAMES, or all) by another judge.

    The old results stay, and the new ones are written beside them. The same command continues one
    that was interrupted, or that ran out of budget.
    """
    from evalwright.cli import arguments
    from evalwright.cli.exit_codes import say
    from evalwright.cli.score import print_price, score_several
    from evalwright.core.errors import RunError
    from evalwright.core.private import home_folder
    from evalwright.entries.board_file import read_board
    from evalwright.entries.rejudging import (
        JudgedResult,
        SamplesFinder,
        judged_results,
        new_run_name,
        publish_rejudged,
    )
    from evalwright.evaluation.rescoring import prepare_rescoring

    if not params["judges"]:
        raise click.UsageError(
            "Name the judge: evalwright entries rejudge --judge provider/name --plan"
        )
    board = read_board(Path(params["board_file"]))
    board.require_allowed(params["trust_file"])
    roles = arguments.role_specs((), params["role_arguments"], params["judges"])
    judge_models = [spec.model for spec in roles.values()]
    board_prices = [
        f"{name}={text}"
        for name, text in board.entries.price_texts.items()
        if name in judge_models
    ]
    params["price"] = [*params["price"]] or board_prices
    judging = arguments.judge_settings({"rubric": (), "columns": (), **params}, {})
    folder = home_folder(params["home"]) / RUNS_FOLDER
    if params["samples_runs"]:
        folder = Path(params["samples_runs"])
    results = judged_results(board, names)
    finder = SamplesFinder(board, folder)
    rescorings: list[Rescoring] = []
    without_samples: dict[str, str] = {}
    result_by_folder: dict[Path, JudgedResult] = {}
    opened: dict[str, Any] = {}
    for result in results:
        try:
            old = finder.find(result)
        except RunError as error:
            without_samples[result.shown_name] = str(error)
            continue
        rescoring = prepare_rescoring(
            old,
            roles=roles,
            unsure=judging.get("unsure"),
            panel=judging.get("panel"),
            name=new_run_name(judge_models),
            home=params["home"],
            opened=opened,
        )
        rescorings.append(rescoring)
        result_by_folder[rescoring.new.folder.resolve()] = result
    if params["plan"]:
        return print_price(rescorings, params, without_samples)

    def publish(run: Run) -> None:
        target = publish_rejudged(board, result_by_folder[run.folder.resolve()], run)
        if not params["as_json"]:
            say(f"Written: {target}")

    return score_several(rescorings, params, without_samples, publish)
