"""Names in messages."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.extend import printable

MOST_NAMES = 20


def listed(names: Sequence[str]) -> str:
    """Names of columns: not all of a million, and none that is a page long."""
    listing = ", ".join(printable(str(name))[:60] for name in names[:MOST_NAMES])
    n_further = len(names) - MOST_NAMES
    return f"{listing} and {n_further:,} more" if n_further > 0 else listing
