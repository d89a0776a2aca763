"""What several commands print in one way."""

from __future__ import annotations

from typing import Any

import click


def print_json(data: Any) -> None:
    """One JSON document on standard output, for other programs."""
    import json

    click.echo(json.dumps(data, indent=2, ensure_ascii=False))
