"""`evalwright runs submit`: results as one file, checked by scoring them again, put on a board."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from evalwright.analysis.words import counted, listed
from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import (
    AS_JSON,
    RUNS_FOLDER,
    flag,
    open_runs,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo, print_json

if TYPE_CHECKING:
    from evalwright.analysis.submission.verifying import Verification

_PROBLEMS_SHOWN = 50


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
@AS_JSON
def verify(file: str, tasks: tuple[str, ...], as_json: bool) -> int:
    """Score the answers in FILE again with the installed tasks, and list every row whose scores
    differ.
    """
    verification = _verify_file(file, tasks)
    if as_json:
        print_json(verification.as_dict())
    else:
        _show(verification)
    return int(not verification.ok)


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
        _show_judged(verification)
    else:
        echo(
            f"Not verified: {len(verification.problems):,} problems in {total:,} rows."
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
