"""What a person types, run in this process: interpreters are slow to start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from evalwright import cli
from support.command import Done, environment


def typed(
    *arguments: str, folder: Path | None = None, extra: Mapping[str, str] | None = None
) -> Done:
    """`evalwright ARGUMENTS`, with what it printed; where a folder is named, there, and with no
    settings but `extra`.
    """
    before = dict(os.environ)
    if folder is not None:
        clean = environment(extra)
        os.environ.clear()
        os.environ.update(clean)
    try:
        with chdir(folder or "."), CliRunner().isolation() as streams:
            code = cli.main(list(arguments))
            stdout, stderr, interleaved = (
                stream.getvalue().decode() for stream in streams
            )
            return Done(code, stdout, stderr, interleaved=interleaved)
    finally:
        os.environ.clear()
        os.environ.update(before)
