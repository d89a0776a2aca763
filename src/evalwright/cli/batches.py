"""`evalwright batches`: the batch jobs of this store."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from evalwright.cli.output import print_json

_HOME = click.option(
    "--home", metavar="DIR", help="The store's folder. Default: $EVALWRIGHT_HOME or .evalwright."
)


@click.group()
def batches() -> None:
    """List the batch jobs of this store; forget one."""


@batches.command("list")
@_HOME
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def list_(home: str | None, as_json: bool) -> None:
    """List all batches, the newest first. To fetch one, run the command that made it again."""
    from evalwright.evaluation.configuration import home_folder
    from evalwright.models.remote.batch.journal import FILE, Journal

    entries = []
    if (home_folder(home) / FILE).is_file():
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
            "made": datetime.fromtimestamp(entry.created, UTC).isoformat(timespec="seconds"),
            "state": "ended" if entry.ended else "open" if entry.batch else "not known to have arrived",
        }
        for entry in entries
    ]
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("No batch was made with this store.")
    for row in rows if not as_json else ():
        click.echo("  ".join(str(value) for value in row.values()))


@batches.command()
@click.argument("number", type=int)
@_HOME
def forget(number: int, home: str | None) -> None:
    """Give up batch NUMBER: its requests may then be sent again, and its answers are paid for in vain."""
    from evalwright.core.errors import ConfigurationError
    from evalwright.evaluation.configuration import home_folder
    from evalwright.models.remote.batch.journal import FILE, Journal

    known = None
    if (home_folder(home) / FILE).is_file():
        journal = Journal(home_folder(home))
        known = journal.entry(number)
        if known is not None:
            journal.forget(number)
        journal.close()
    if known is None:
        raise ConfigurationError(f"No batch has the number {number}: see 'evalwright batches list'.")
    click.echo(
        f"Forgotten: batch {known.batch or '(never confirmed)'} of {known.n} requests to {known.name}."
    )
