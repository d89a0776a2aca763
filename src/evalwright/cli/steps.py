"""Shows on the terminal which step of a long command is going on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

from evalwright.reports.text import inert, shorten


def show_step(words: str) -> None:
    """Show progress in one line of the terminal that is overwritten; "" clears it."""
    if sys.stderr.isatty():
        # the text that clears the line is ours; the words are not
        stream = getattr(sys.stderr, "styled", sys.stderr)
        stream.write(
            f"\r\x1b[K{shorten(inert(words), get_terminal_size().columns - 1)}"
        )
        stream.flush()


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Give a function that shows a step; the line is cleared at the end, also after an error."""
    try:
        yield show_step
    finally:
        show_step("")
