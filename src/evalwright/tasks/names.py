"""Which names a task may have; they become file names, columns and URLs, so they are plain."""

from __future__ import annotations

import re

RULE = "letters, digits and . _ + - only, beginning with a letter or digit"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,127}")


def is_name(name: str) -> bool:
    """Return whether a task or group can have that name."""
    return bool(_NAME.fullmatch(name))


SOURCES = ("path", "hub", "rows", "needles", "common_words")
"""The keys of a dataset that say where its rows come from; exactly one is set."""
