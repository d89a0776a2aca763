"""Finds the words of an answer on which a score rests; they are shown to readers, never scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evalwright.core.samples import Score

_LONGEST = 20_000
"""They are looked for in this many characters at the end of an answer."""


def with_evidence(
    score: Score, text: str, claim: str = "", named: Sequence[str] = ()
) -> Score:
    """Add to a score the span of the answer on which it rests.

    Nothing is added if the span is unclear or the whole answer.

    Args:
        score: the score.
        text: the answer.
        claim: the text that was read as the answer, as it is written.
        named: texts that may stand in the claim; the longest is tried first, and its last
            occurrence counts.
    """
    span = _find_span(text, claim.strip(), named)
    return replace(score, evidence=(span,)) if span is not None else score


def _find_span(text: str, claim: str, named: Sequence[str]) -> tuple[int, int] | None:
    first = max(0, len(text) - _LONGEST)
    start = text.rfind(claim, first) if claim else first
    if start < 0:
        start = first
        claim = ""
    end = start + len(claim) if claim else len(text)
    folded = text[start:end].lower()
    # Otherwise a character that folds into two has shifted all positions after it.
    if len(folded) == end - start:
        for name in sorted(filter(None, named), key=len, reverse=True):
            if (place := _whole_word(folded, name.strip().lower())) >= 0:
                return start + place, start + place + len(name.strip())
    return (start, end) if claim and len(claim) < len(text.strip()) else None


def _whole_word(text: str, word: str) -> int:
    """Return the last position of a word in a text; -1 if it only occurs in longer words."""
    end = len(text)
    while word and (place := text.rfind(word, 0, end)) >= 0:
        around = (
            text[place - 1 : place] + text[place + len(word) : place + len(word) + 1]
        )
        if not any(sign.isascii() and sign.isalnum() for sign in around):
            return place
        end = place + len(word) - 1
    return -1
