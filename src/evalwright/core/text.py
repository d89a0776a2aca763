"""Text from outside, made fit to be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """A name without control characters, not longer than a name is."""
    if len(text) <= 200 and text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text[:200])
