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


def echo(text: str, *, before: str = "", error: bool = False, **style: bool) -> None:
    """Text to a person, whoever wrote it: what would act on a terminal is shown as its escape; lines and tabs stay.

    before: what stands before it, in that style (as click's, e.g. `dim=True`); without it the text has the style.
    """
    from evalwright.reports.text import inert_lines

    plain = inert_lines(text)
    shown = click.style(inert_lines(before), **style) + plain if before else click.style(plain, **style)
    click.echo(shown if style else plain, err=error)


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

    from evalwright.tasks.files import write_file

    text = data if isinstance(data, str | bytes) else json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    write_file(Path(file), text)
    echo(f"Written: {file}", error=True)
