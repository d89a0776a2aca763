"""`evalwright store batches`: batch jobs at providers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import AS_JSON, HOME
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError
from evalwright.core.private import home_folder

if TYPE_CHECKING:
    from evalwright.models.remote.batch.journal import BatchEntry


@click.group(cls=CommandGroup)
def batches() -> None:
    """List batch jobs at providers; forget one."""


@batches.command("list")
@HOME
@AS_JSON
def list_(home: str | None, as_json: bool) -> None:
    """List all batch jobs, newest first. To fetch one, run the command that created it again."""
    from evalwright.models.remote.batch.journal import Journal

    jobs = []
    if Journal.is_there(home_folder(home)):
        journal = Journal(home_folder(home))
        jobs = journal.entries()
        journal.close()
    rows = [_job_row(job) for job in jobs]
    if as_json:
        print_json(rows)
        return

    if not rows:
        echo("This store has no batch jobs.")
    for row in rows:
        echo("  ".join(str(cell) for cell in row.values()))


def _job_row(job: BatchEntry) -> dict[str, Any]:
    state = "never confirmed"
    if job.ended:
        state = "ended"
    elif job.batch:
        state = "open"
    created = datetime.fromtimestamp(job.created, UTC)
    return {
        "number": job.number,
        "model": job.name,
        "at": job.place,
        "batch": job.batch,
        "requests": job.n,
        "made": created.isoformat(timespec="seconds"),
        "state": state,
    }


@batches.command()
@click.argument("number", type=int)
@HOME
def forget(number: int, home: str | None) -> None:
    """Forget batch NUMBER: its requests may then be sent again, and you pay for its answers
    although they are lost.
    """
    from evalwright.models.remote.batch.journal import Journal

    job = None
    if Journal.is_there(home_folder(home)):
        journal = Journal(home_folder(home))
        job = journal.entry(number)
        if job is not None:
            journal.forget(number)
        journal.close()
    if job is None:
        raise ConfigurationError(
            f"No batch has the number {number}: see 'evalwright store batches list'."
        )
    echo(
        f"Forgotten: batch {job.batch or '(never confirmed)'} of {job.n} requests"
        f" to {job.name}."
    )
