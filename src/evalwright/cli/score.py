"""`evalwright score`: recorded answers, new scores, of one run or many, with the price first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    flag,
    open_runs,
    option,
    repeatable_option,
    scoring_options,
)
from evalwright.cli.output import print_result
from evalwright.core.errors import ConfigurationError, RunError, UnknownName

if TYPE_CHECKING:
    from evalwright.evaluation.rescoring import Rescoring
    from evalwright.runs.reader import Run


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
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
    "The new run's name, in which {} is the old one's. Default: {}.rescored.",
    default="",
)
@option(
    "--round",
    "NAME",
    "Ask judges again, as in no other round. Added to the new run's name.",
    default="",
)
@flag("--plan", "Send nothing: say what it takes, in requests, tokens and dollars.")
@repeatable_option(
    "--budget",
    "SUM",
    "Spend no more than '5 USD', '2M tokens' or '1000 requests' on all runs together.",
)
@repeatable_option(
    "--price",
    "IN/OUT",
    "US dollars per million tokens of a judge; MODEL=IN/OUT for one of several.",
)
@RUNS_FOLDER
@HOME
@PLUGINS
@scoring_options
@SANDBOX
@AS_JSON
def score(runs: tuple[str, ...], **params: Any) -> int:
    """Score the answers of RUNs again and write the results as new runs.

    The models under test get no request, and the old results stay. Of several runs, those that were
    scored so already are left as they are: the same command continues one that was interrupted.
    """
    from evalwright.cli import arguments
    from evalwright.evaluation.rescoring import prepare_rescoring

    arguments.load_plugins(params["plugins"])
    if len(runs) > 1 and params["name"] and "{}" not in params["name"]:
        raise ConfigurationError(
            "Several runs need several names: put {} into --name, for the old run's name,"
            f" as in --name '{{}}.{params['name']}'."
        )
    settings = _scoring_settings(params)
    old_runs = open_runs(*runs, writes_beside=True)
    rescorings: list[Rescoring] = []
    without_samples: dict[str, str] = {}
    opened: dict[str, Any] = {}
    for old in old_runs:
        try:
            if len(old_runs) > 1 or params["plan"]:
                old.require_samples()
        except RunError as error:
            without_samples[old.name] = str(error)
            continue
        rescorings.append(prepare_rescoring(old, **settings, opened=opened))
    if params["plan"]:
        return print_price(rescorings, params, without_samples)
    if len(old_runs) == 1:
        return _score_one(rescorings[0], params)
    return score_several(rescorings, params, without_samples)


def _scoring_settings(params: dict[str, Any]) -> dict[str, Any]:
    """Return how runs are scored again, as `prepare_rescoring` takes it."""
    from evalwright.cli import arguments

    scorers = params["scorers"]
    options = arguments.key_values(params["options"], "-S")
    for scorer in options:
        if scorer not in scorers:
            raise UnknownName(
                "scorer in -S", scorer, scorers, "Name it with --scorer first."
            )
    judging = arguments.judge_settings({"rubric": (), "columns": (), **params}, {})
    return {
        "scorers": [{scorer: options.get(scorer, {})} for scorer in scorers],
        "roles": arguments.role_specs(
            params["roles"], params["role_arguments"], params["judges"]
        ),
        "unsure": judging.get("unsure"),
        "panel": judging.get("panel"),
        "name": params["name"],
        "home": params["home"],
        "dialect": arguments.dialect_settings(params),
        "sandbox": params["sandbox"],
        "asked_in": params["round"],
    }


def print_price(
    rescorings: Sequence[Rescoring],
    params: dict[str, Any],
    without_samples: dict[str, str],
) -> int:
    """Print what scoring runs again takes.

    Args:
        rescorings: the runs.
        params: the command's parameters.
        without_samples: by name, why a run cannot be scored again.

    Returns:
        The exit code: 1 if a run cannot be scored again.
    """
    from evalwright.cli.exit_codes import say
    from evalwright.evaluation.rescoring_price import price_rescorings
    from evalwright.reports.documents.rescoring import price_document, total

    check_names(rescorings)
    prices = price_rescorings(rescorings, home=params["home"], price=params["price"])
    record = {
        "runs": [price.as_dict() for price in prices],
        "requests": sum(price.requests for price in prices),
        "input_tokens": sum(price.input_tokens for price in prices),
        "output_tokens": sum(price.output_tokens for price in prices),
        "dollars": total(price.dollars for price in prices),
        "most_dollars": total(price.most_dollars for price in prices),
        "without_samples": sorted(without_samples),
    }
    print_result(params["as_json"], record, price_document(prices, without_samples))
    if not any(price.requests for price in prices) and not without_samples:
        say("No request is needed.")
    return int(bool(without_samples))


def check_names(rescorings: Sequence[Rescoring]) -> None:
    """Raise ConfigurationError if one of several runs would replace another judge's verdicts."""
    from evalwright.runs.reader import open_run
    from evalwright.runs.writer import RUN_FILE

    if len(rescorings) < 2:
        return
    folders: dict[Path, str] = {}
    for rescoring in rescorings:
        folder = rescoring.new.folder
        old = rescoring.new.old
        if folder in folders:
            raise ConfigurationError(
                f"The new runs of '{folders[folder]}' and '{old.id}' would both be"
                f" '{folder}': put {{}} into --name."
            )
        folders[folder] = old.id
        if not (folder / RUN_FILE).is_file() or rescoring.is_done:
            continue
        prints = {
            role: model["fingerprint"]
            for role, model in open_run(folder).data.get("roles", {}).items()
        }
        if any(
            prints.get(role, model.fingerprint) != model.fingerprint
            for role, model in rescoring.models.items()
        ):
            raise ConfigurationError(
                f"'{folder}' has the verdicts of another judge, which stay: choose other"
                " names, as in --name '{}.2026'."
            )


def _score_one(rescoring: Rescoring, params: dict[str, Any]) -> int:
    from evalwright.cli.exit_codes import conclude, say
    from evalwright.evaluation.rescoring import rescore_all
    from evalwright.reports.documents.summary import run_summary
    from evalwright.reports.endings import (
        judge_failed_throughout,
        remarks,
        unscored_sentences,
    )

    outcome = rescore_all(
        [rescoring],
        home=params["home"],
        budget=params["budget"],
        price=params["price"],
    )
    if outcome.not_done:
        return conclude(_budget_sentence(outcome.not_done, 1))
    (rescored,) = outcome.runs
    print_result(
        params["as_json"],
        {**rescored.data, "folder": str(rescored.folder)},
        run_summary(rescored),
    )
    for remark in remarks([rescored]):
        say(remark)
    code = conclude(unscored_sentences([rescored]))
    return 1 if judge_failed_throughout([rescored]) else code


def score_several(
    rescorings: Sequence[Rescoring],
    params: dict[str, Any],
    without_samples: dict[str, str],
    publish: Callable[[Run], None] | None = None,
) -> int:
    """Score several runs again within one budget, and print what came of it.

    Args:
        rescorings: the runs.
        params: the command's parameters.
        without_samples: by name, why a run cannot be scored again.
        publish: called with each new run that is complete.

    Returns:
        The exit code: 1 if a run is not scored, or an answer has no score.
    """
    from evalwright.cli.exit_codes import conclude, say
    from evalwright.evaluation.rescoring import rescore_all
    from evalwright.reports.documents.rescoring import rescored_document
    from evalwright.reports.endings import remarks, unscored_sentences
    from evalwright.runs.reader import open_run

    check_names(rescorings)
    finished_runs = [open_run(todo.new.folder) for todo in rescorings if todo.is_done]
    finished_folders = {run.folder for run in finished_runs}
    open_work = [todo for todo in rescorings if todo.new.folder not in finished_folders]
    outcome = rescore_all(
        open_work,
        home=params["home"],
        budget=params["budget"],
        price=params["price"],
        say=None if params["as_json"] else say,
    )
    for run in (*outcome.runs, *finished_runs):
        if publish is not None and not unscored_sentences([run]):
            publish(run)
    old_by_new = {todo.new.folder.name: todo.new.old for todo in rescorings}
    record = {
        "runs": [
            {"run": run.id, "from": old_by_new[run.id].id, "folder": str(run.folder)}
            for run in (*outcome.runs, *finished_runs)
        ],
        "not_done": [run.id for run in outcome.not_done],
        "without_samples": sorted(without_samples),
        **({} if outcome.spending is None else {"budget": dict(outcome.spending)}),
    }
    print_result(
        params["as_json"],
        record,
        rescored_document(outcome.runs, finished_runs, old_by_new),
    )
    for remark in remarks(outcome.runs):
        say(remark)
    sentences = [*without_samples.values(), unscored_sentences(outcome.runs)]
    if outcome.not_done:
        sentences.append(_budget_sentence(outcome.not_done, len(rescorings)))
    return conclude(*sentences)


def _budget_sentence(not_done: Sequence[Run], n_runs: int) -> str:
    from evalwright.analysis.words import listed

    names = listed([run.id for run in not_done], 5)
    of_all = f" ({len(not_done):,} of {n_runs:,} runs)" if n_runs > 1 else ""
    return (
        f"The budget is spent; not scored: {names}{of_all}. Their verdicts so far are kept:"
        " run the same command with more --budget to continue."
    )
