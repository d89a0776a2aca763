"""What several commands print in one way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evalwright.reports.document import Document


def print_json(data: Any) -> None:
    """One JSON document on standard output, for other programs."""
    import json

    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def print_result(as_json: bool, data: Any, *documents: Document) -> None:
    """The data as JSON, or its documents for people."""
    if as_json:
        print_json(data)
        return
    from evalwright.reports.terminal import show

    show(*documents)


def write_result(file: str, data: Any) -> None:
    """Write a file that a person named, text as it is and all else as JSON, and say so."""
    import json

    from evalwright.cli import say
    from evalwright.tasks.files import write_file

    text = data if isinstance(data, str | bytes) else json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    write_file(Path(file), text)
    say(f"Written: {file}")
