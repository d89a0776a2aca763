"""`evalwright runs submit`: results as one file, checked by scoring them again, put on a board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from evalwright.analysis.words import counted, listed
from evalwright.cli.exit_codes import say
from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import (
    AS_JSON,
    HOME,
    RUNS_FOLDER,
    flag,
    only_with,
    open_runs,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo, print_json

if TYPE_CHECKING:
    from evalwright.analysis.submission.asking_again import Rerun
    from evalwright.analysis.submission.verifying import Verification
    from evalwright.evaluation.configuration import ModelSpec

_PROBLEMS_SHOWN = 50
MAX_SHOWN_CHARS = 80
DATE_CHARS = len("2026-11-29")
TRUST_BOARD_OF_ENTRY = option(
    "--trust-file",
    "FILE",
    "The board's file again, read and trusted: it may name addresses, keys and plug-ins.",
)


@click.group(cls=CommandGroup)
def submit() -> None:
    """Write a run as a submission; verify one; add one to a folder of runs."""


@submit.command()
@click.argument("run")
@option(
    "--into",
    "FILE",
    "The file to write: .json, or .json.gz for a compressed one.",
    required=True,
)
@RUNS_FOLDER
@flag(
    "--allow-key-like",
    "Write also texts that have the form of a key but are none of yours.",
)
def make(run: str, into: str, allow_key_like: bool, **_: Any) -> None:
    """Write RUN as one file: raw answers, settings, environment and hashes; no path, no address, no
    key.
    """
    from evalwright.analysis.submission.submission_file import make_submission

    submission = make_submission(
        open_runs(run)[0], Path(into), allow_key_like=allow_key_like
    )
    echo(
        f"Written: {into} ({len(submission.document['samples']):,} answers, SHA-256"
        f" {submission.document['sha256'][:16]})"
    )
    n_judged = sum("judged" in row for row in submission.document["samples"])
    if n_judged:
        judges = listed(submission.run["judges"])
        echo(
            f"{counted(n_judged, 'answer')} read by a judge ({judges}): the file has both"
            " its scores and those of the rules, which are the ones that others can verify."
        )


@submit.command()
@click.argument("file")
@repeatable_option(
    "--task tasks", "FILE", "A task file of your own that the results use."
)
@option(
    "--rerun n_items",
    "N",
    "Ask the model for N random answered items again, twice each, and compare.",
    type=click.IntRange(min=1),
)
@option("--model", "NAME", "The model to ask with --rerun; the file does not name it.")
@repeatable_option(
    "-M arguments", "KEY=VALUE", "An argument of that model, such as base_url."
)
@option(
    "--entry",
    "FILE",
    "An entry of a board in place of --model, as far as the board allows it.",
)
@option("--board board_file", "FILE", "The board of --entry. Default: board.yaml.")
@TRUST_BOARD_OF_ENTRY
@repeatable_option("--budget", "SUM", "Spend no more than '2 USD' on --rerun.")
@repeatable_option(
    "--price", "IN/OUT", "US dollars per million tokens read and written."
)
@option("--rerun-seed seed", "HEX", "Draw the items of an earlier --rerun again.")
@HOME
@AS_JSON
def verify(file: str, tasks: tuple[str, ...], **params: Any) -> int:
    """Score the answers in FILE again with the installed tasks, and list every row whose scores
    differ.
    """
    rerun_options = (
        "model", "arguments", "entry", "board_file", "trust_file", "budget", "price",
        "seed", "home",
    )  # fmt: skip
    only_with(**dict.fromkeys(rerun_options, "n_items"))
    model = _read_model(params) if params["n_items"] else None
    verification = _verify_file(file, tasks)
    as_json = params["as_json"]
    if not as_json:
        _show(verification)
    rerun = _ask_again(verification, model, params) if model else None
    if as_json:
        record = verification.as_dict()
        print_json(record if rerun is None else {**record, "rerun": rerun.as_dict()})
    elif rerun is not None:
        _show_rerun(rerun)
    if model is not None and rerun is None:
        say("The model was not asked again, because the file is not verified.")
    return int(not verification.ok or (rerun is not None and not rerun.ok))


def _read_model(params: Mapping[str, Any]) -> tuple[ModelSpec, tuple[str, ...]]:
    """Return the model that the verifier names, and its price: by --model, or an entry."""
    from evalwright.cli.arguments import key_values
    from evalwright.evaluation.configuration import ModelSpec

    if bool(params["model"]) == bool(params["entry"]):
        raise click.UsageError(
            "--rerun needs the model that is asked: --model NAME (with -M base_url=... for"
            " another server), or --entry FILE of a board. The file cannot name it."
        )
    if params["model"]:
        arguments = key_values(params["arguments"], "-M")
        return ModelSpec(params["model"], arguments), tuple(params["price"])
    return _read_entry(params)


def _read_entry(params: Mapping[str, Any]) -> tuple[ModelSpec, tuple[str, ...]]:
    from evalwright.entries.board_file import read_board
    from evalwright.entries.checking import check_entries
    from evalwright.entries.entry_file import read_entry
    from evalwright.entries.problems import WrongFiles

    if params["arguments"]:
        raise click.UsageError("-M is for --model: an entry has its own arguments.")
    board = read_board(Path(params["board_file"] or "board.yaml"))
    board.require_allowed(params["trust_file"])
    entry = read_entry(Path(params["entry"]))
    checked = check_entries(board, [entry])
    if checked.problems:
        raise WrongFiles(checked.problems)
    prices = board.entries.price_texts
    price = [prices[entry.model]] if entry.model in prices else params["price"]
    return entry.model_spec(board), tuple(price)


def _ask_again(
    verification: Verification,
    model: tuple[ModelSpec, tuple[str, ...]],
    params: Mapping[str, Any],
) -> Rerun | None:
    """Ask again; None where the file is not verified."""
    from contextlib import nullcontext

    from evalwright.analysis.submission.asking_again import (
        RerunSettings,
        ask_again,
        can_ask_again,
    )
    from evalwright.reports.progress import TerminalProgress

    if not can_ask_again(verification):
        return None
    spec, price = model
    settings = RerunSettings(
        model=spec,
        n_items=params["n_items"],
        budget=tuple(params["budget"]),
        price=price,
        home=params["home"],
        seed=params["seed"] or "",
    )
    with nullcontext() if params["as_json"] else TerminalProgress() as progress:
        return ask_again(verification, settings, progress)


def _show_rerun(rerun: Rerun) -> None:
    cost = "" if rerun.dollars is None else f", ${rerun.dollars:,.2f}"
    echo(
        f"Asked again: {rerun.n_drawn:,} of {rerun.n_answered:,} answered items, twice"
        f" each, of {rerun.model}{cost}. Drawn with --rerun-seed {rerun.seed}."
    )
    for sentence in rerun.conclusions():
        echo(sentence)


@submit.command()
@click.argument("file")
@option("--to folder", "DIR", "The folder of runs.", required=True)
@repeatable_option(
    "--task tasks", "FILE", "A task file of your own that the results use."
)
def add(file: str, folder: str, tasks: tuple[str, ...]) -> int:
    """Verify FILE and write it as a run into a folder, for `evalwright leaderboard DIR/*`."""
    from evalwright.analysis.submission.adding import add_submission

    verification = _verify_file(file, tasks)
    _show(verification)
    if not verification.ok:
        return 1
    run = add_submission(verification, Path(folder))
    echo(f"Added: {run.folder}")
    if verification.n_judged:
        command = f"evalwright score {quote(str(run.folder))} --judge provider/name"
        echo(f"Its scores are those of the rules. With a judge of yours: `{command}`.")
    return 0


def _verify_file(file: str, tasks: tuple[str, ...]) -> Verification:
    from evalwright.analysis.submission.submission_file import read_submission
    from evalwright.analysis.submission.verifying import verify_submission

    return verify_submission(
        read_submission(Path(file)), task_files=[Path(task) for task in tasks]
    )


def _show(verification: Verification) -> None:
    for task in verification.results:
        for metric in task.metrics:
            estimate = metric.estimate
            echo(
                f"{task.name}: {metric.label} {estimate.value:.4g} [{estimate.low:.4g},"
                f" {estimate.high:.4g}], n {estimate.n}"
            )
    total = len(verification.submission.document["samples"])
    for problem in verification.problems[:_PROBLEMS_SHOWN]:
        echo(f"Wrong ({problem.kind}): {problem}")
    if len(verification.problems) > _PROBLEMS_SHOWN:
        echo(
            f"... and {len(verification.problems) - _PROBLEMS_SHOWN:,} more; --json has"
            " all of them."
        )
    if verification.ok:
        echo(f"Verified: all {total:,} answers have the scores given in the file.")
        _show_claims(verification)
        _show_judged(verification)
    else:
        echo(
            f"Not verified: {len(verification.problems):,} problems in {total:,} rows."
        )


def _show_claims(verification: Verification) -> None:
    """Say whose answers the file says they are, which no scoring of answers can confirm."""
    from evalwright.analysis.submission.submission_file import as_mapping
    from evalwright.core.text import printable

    run = verification.submission.run
    model = as_mapping(run.get("model"))
    name = printable(str(model.get("name", "")))[:MAX_SHOWN_CHARS]
    label = printable(str(model.get("label") or ""))[:MAX_SHOWN_CHARS]
    date = printable(str(run.get("started", "")))[:DATE_CHARS]
    named = f"'{name}', as '{label}'," if label and label != name else f"'{name}'"
    echo(
        f"Not verified: that they are answers of {named} of {date}, as the file says."
        " --rerun 50 asks the model for some of them."
    )


def _show_judged(verification: Verification) -> None:
    """Say which scores were verified where a judge read answers."""
    n_judged = verification.n_judged
    if not n_judged:
        return
    judges = listed(verification.judges) or "not named"
    echo(
        f"{counted(n_judged, 'answer')} read by a judge ({judges}): verified are the scores"
        " by the rules, not the judge's. After `add`: `evalwright score RUN --judge"
        " provider/name`."
    )
