"""Lists of words, written as one string."""

from __future__ import annotations


def word_list(text: str) -> list[str]:
    """The words of a text, in order."""
    return text.split()


def word_set(*texts: str) -> frozenset[str]:
    """The words of some texts."""
    return frozenset(word for text in texts for word in text.split())
