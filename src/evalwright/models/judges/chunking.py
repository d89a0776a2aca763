"""Cuts a long premise into chunks that fit, at sentences if possible, else at words or characters.

Nothing is estimated: the tokenizer itself decides whether a chunk fits, and every character except
white space between chunks is in exactly one of them. A judge's verdict on a whole premise is the
highest over its chunks: a claim is supported if some part of the premise supports it (as in
MiniCheck, Tang et al. 2024).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.sentences import Span, sentence_spans

_WORD = re.compile(r"\S+")

Fits = Callable[[str], bool]


class NoChunkFits(Exception):
    """Not even one character of the premise fits beside the hypothesis."""


def read_chunking(value: Any) -> str | int:
    """Read the argument `chunk`: "auto", "none" or a number of tokens.

    Raises:
        ConfigurationError: it is none of these.
    """
    if value in ("auto", "none"):
        return str(value)
    number = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ConfigurationError(
            f"chunk={value!r} must be 'auto' (by the judge's window), 'none', or a"
            " number of tokens of at least 1."
        )
    return number


def chunks(text: str, fits: Fits) -> list[str]:
    """Cut a text greedily into chunks that fit; a single chunk if the whole text fits.

    Args:
        text: the text.
        fits: whether a chunk fits; any part of a fitting chunk should fit too.

    Raises:
        NoChunkFits: not even one character fits.
    """
    if fits(text):
        return [text]
    return [
        text[start:end]
        for start, end in _pack_units(
            text, sentence_spans(text, lines=True), fits, _words
        )
    ]


Splitter = Callable[[str, Span], Sequence[Span]]


def _words(text: str, span: Span) -> list[Span]:
    return [match.span() for match in _WORD.finditer(text, *span)]


def _characters(text: str, span: Span) -> list[Span]:
    return [(index, index + 1) for index in range(*span)]


def _no_finer_split(text: str, span: Span) -> list[Span]:
    raise NoChunkFits


def _pack_units(
    text: str, units: Sequence[Span], fits: Fits, finer: Splitter
) -> list[Span]:
    """Join neighbouring units while they fit; a unit too long for a chunk is cut by `finer`."""
    spans: list[Span] = []
    index = 0
    while index < len(units):
        count = _count_fitting(text, units, index, fits)
        if count == 0:
            below = _characters if finer is _words else _no_finer_split
            spans += _pack_units(text, finer(text, units[index]), fits, below)
            index += 1
        else:
            spans.append((units[index][0], units[index + count - 1][1]))
            index += count
    return spans


def _count_fitting(text: str, units: Sequence[Span], start: int, fits: Fits) -> int:
    """Return how many units from `start` on fit together, found by doubling and halving."""

    def too_many(count: int) -> bool:
        return not fits(text[units[start][0] : units[start + count - 1][1]])

    left = len(units) - start
    tried = 1
    while tried < left and not too_many(tried):
        tried *= 2
    return bisect_left(
        range(1, min(tried, left) + 1), True, lo=tried // 2, key=too_many
    )
