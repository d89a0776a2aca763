"""What the commands of several systems share: options, and functions that are imported on use."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

import click

from evalwright.extend import SCORINGS


def import_later(target: str) -> Callable[..., Any]:
    """Return a function that imports its target when called.

    target: "module:function" in this package.
    """

    def call(*arguments: Any, **options: Any) -> Any:
        function = resolve_name(f"evalwright.compat.{target}")
        return function(*arguments, **options)

    return call


def option(*declarations: str, **settings: Any) -> click.Option:
    """Create an option, with the arguments of click's decorator."""
    return click.Option(declarations, **settings)


def scoring_option(text: str, **settings: Any) -> click.Option:
    """Create `--scoring corrected|published`."""
    return option("--scoring", type=click.Choice(SCORINGS), help=text, **settings)
