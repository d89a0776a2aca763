"""Cuts a long premise into chunks that fit, at sentences where it can, at words or characters where
it must.

Nothing is estimated: whether a stretch fits is asked of the tokenizer itself, and every character
that is not white space between chunks is in exactly one of them. What a judge says of a whole
premise is then the highest of what it says of the chunks: a claim is supported where some part of
the premise supports it (as in MiniCheck, Tang et al. 2024).
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
    """The argument `chunk`: "auto" by the judge's window, "none" never, or a number of tokens.

    Raises ConfigurationError.
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
    """`text` in as few stretches as a greedy reading gives, each of which fits.

    One stretch, the whole, where it fits.

    fits: whether a stretch of the text fits; what is contained in a fitting stretch should fit too.
    Raises NoChunkFits.
    """
    if fits(text):
        return [text]
    return [
        text[start:end]
        for start, end in _packed(text, sentence_spans(text, lines=True), fits, _words)
    ]


Splitter = Callable[[str, Span], Sequence[Span]]


def _words(text: str, span: Span) -> list[Span]:
    return [found.span() for found in _WORD.finditer(text, *span)]


def _characters(text: str, span: Span) -> list[Span]:
    return [(place, place + 1) for place in range(*span)]


def _nothing(text: str, span: Span) -> list[Span]:
    raise NoChunkFits


def _packed(
    text: str, units: Sequence[Span], fits: Fits, finer: Splitter
) -> list[Span]:
    """Neighbouring units joined for as long as they fit; a unit that does not fit alone is cut by
    `finer`.
    """
    out: list[Span] = []
    place = 0
    while place < len(units):
        count = _most(text, units, place, fits)
        if count == 0:
            below = _characters if finer is _words else _nothing
            out += _packed(text, finer(text, units[place]), fits, below)
            place += 1
        else:
            out.append((units[place][0], units[place + count - 1][1]))
            place += count
    return out


def _most(text: str, units: Sequence[Span], place: int, fits: Fits) -> int:
    """How many units from `place` on fit together, found by doubling and halving."""

    def too_many(count: int) -> bool:
        return not fits(text[units[place][0] : units[place + count - 1][1]])

    left = len(units) - place
    tried = 1
    while tried < left and not too_many(tried):
        tried *= 2
    return bisect_left(
        range(1, min(tried, left) + 1), True, lo=tried // 2, key=too_many
    )
