"""What several commands print in one way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

OVERRIDES_HELP = (
    "A setting put over the tasks', e.g. dataset.path=mine.csv, prompt.file=mine.txt. Repeatable."
)
"""What `-T` does, wherever a command takes tasks."""


def print_json(data: Any) -> None:
    """One JSON document on standard output, for other programs."""
    import json

    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def write_file(path: Path, text: str) -> None:
    """Write a file that was asked for, whole or not at all. Raises ConfigurationError where that cannot be done."""
    from evalwright.core.errors import ConfigurationError
    from evalwright.runs.writer import write_text

    try:
        write_text(path, text)
    except OSError as error:
        raise ConfigurationError(f"'{path}' cannot be written: {error.strerror}.") from error
