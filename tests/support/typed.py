"""What a person types, run in this process: interpreters are slow to start."""

from __future__ import annotations

from click.testing import CliRunner

from evalwright import cli
from support.command import Done


def typed(*arguments: str) -> Done:
    """`evalwright ARGUMENTS`, with what it printed."""
    with CliRunner().isolation() as streams:
        code = cli.main(list(arguments))
        return Done(code, streams[0].getvalue().decode(), streams[1].getvalue().decode())
