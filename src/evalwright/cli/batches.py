"""`evalwright batches`: batch jobs at providers."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import AS_JSON, HOME
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError
from evalwright.core.private import home_folder


@click.group(cls=CommandGroup)
def batches() -> None:
    """List batch jobs at providers; forget one."""


@batches.command("list")
@HOME
@AS_JSON
def list_(home: str | None, as_json: bool) -> None:
    """List all batch jobs, newest first. To fetch one, run the command that created it again."""
    from evalwright.models.remote.batch.journal import Journal

    entries = []
    if Journal.is_there(home_folder(home)):
        journal = Journal(home_folder(home))
        entries = journal.entries()
        journal.close()
    rows = [
        {
            "number": entry.number,
            "model": entry.name,
            "at": entry.place,
            "batch": entry.batch,
            "requests": entry.n,
            "made": (
                datetime.fromtimestamp(entry.created, UTC).isoformat(timespec="seconds")
            ),
            "state": (
                "ended" if entry.ended else "open" if entry.batch else "never confirmed"
            ),
        }
        for entry in entries
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        echo("This store has no batch jobs.")
    for row in rows if not as_json else ():
        echo("  ".join(str(value) for value in row.values()))


@batches.command()
@click.argument("number", type=int)
@HOME
def forget(number: int, home: str | None) -> None:
    """Forget batch NUMBER: its requests may then be sent again, and you pay for its answers
    although they are lost.
    """
    from evalwright.models.remote.batch.journal import Journal

    known = None
    if Journal.is_there(home_folder(home)):
        journal = Journal(home_folder(home))
        known = journal.entry(number)
        if known is not None:
            journal.forget(number)
        journal.close()
    if known is None:
        raise ConfigurationError(
            f"No batch has the number {number}: see 'evalwright batches list'."
        )
    echo(
        f"Forgotten: batch {known.batch or '(never confirmed)'} of {known.n} requests"
        f" to {known.name}."
    )
