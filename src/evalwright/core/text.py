"""Makes text from outside safe to display."""

from __future__ import annotations


def printable(text: str) -> str:
    """Make a text from outside fit to be shown on one line.

    Args:
        text: a name, a file's path or the like.

    Returns:
        Its first 200 characters, with "?" in place of each control character.
    """
    if len(text) <= 200 and text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in text[:200])
