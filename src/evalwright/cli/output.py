"""What several commands print in one way."""

from __future__ import annotations

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
