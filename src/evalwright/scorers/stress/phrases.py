"""Phrases, by language, with which a reply rejects a question or accepts it.

They are read from `phrases.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from evalwright.scorers.text.language import identify
from evalwright.scorers.text.languages import short_code

KINDS = (
    "denying",
    "unknown",
    "negating",
    "asking",
    "instead",
    "doubting",
    "turning",
    "because",
    "still",
    "lived",
    "and",
    "courtesy",
)
LEAST_LANGUAGE_SHARE = 0.6
"""The least share of evidence at which a reply is also read in its own language.

The other language in which it is read is the declared one.
"""
LEAST_WORDS_TO_IDENTIFY = 5

_SCRIPTS = (
    ("ko", "\uac00", "\ud7a3"),
    ("ja", "\u3040", "\u30ff"),
    ("zh", "\u4e00", "\u9fff"),
    ("th", "\u0e00", "\u0e7f"),
    ("lo", "\u0e80", "\u0eff"),
    ("ta", "\u0b80", "\u0bff"),
    ("hi", "\u0900", "\u097f"),
    ("my", "\u1000", "\u109f"),
    ("km", "\u1780", "\u17ff"),
    ("ar", "\u0600", "\u06ff"),
    ("ru", "\u0400", "\u04ff"),
)
_ALIKE = {"id": ("id", "ms"), "ms": ("ms", "id"), "jv": ("id",), "su": ("id",)}
_ARABIC_VOWEL_SIGNS = re.compile("[\u064b-\u0652\u0640]")
_NOTHING = re.compile(r"(?!)")


class Phrases:
    """The phrases of one language."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        edge = r"(?<![^\W_])" if row.get("spaced", True) else ""

        def any_of(kind: str) -> re.Pattern[str]:
            if not row.get(kind):
                return _NOTHING
            alternatives = unicodedata.normalize("NFKC", "|".join(row[kind]))
            return re.compile(f"{edge}(?:{alternatives})")

        self.patterns = {kind: any_of(kind) for kind in KINDS}
        self._harmless = any_of("harmless")

    def without_harmless(self, text: str) -> str:
        """Blank out, character by character, what looks like a negation but is none."""
        return self._harmless.sub(lambda match: " " * len(match.group()), text)


def lowered(text: str) -> str:
    """Normalise a text like the table of phrases: lower case, no apostrophes, single spaces."""
    low = " ".join(text.casefold().replace("'", "").split())
    if low.isascii():
        return low
    # Lower-casing turns the Turkish capital İ into i and a combining dot.
    return _ARABIC_VOWEL_SIGNS.sub("", low).replace("i̇", "i")


@cache
def table() -> dict[str, Phrases]:
    """Load the phrases of every language, by ISO 639-1 code."""
    rows = tomllib.loads(
        Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8")
    )
    return {code: Phrases(row) for code, row in rows.items()}


def phrases_for(declared: str, question: str, reply: str) -> tuple[list[Phrases], bool]:
    """Choose the phrases to read a reply with.

    Args:
        declared: the sample's language; "" takes the question's.
        question: the question.
        reply: the reply; its language counts, too.

    Returns:
        The phrases of each language, and whether the reply's language is one of them.
    """
    code = short_code(declared) or (identify(question)[0] if question else "")
    codes = _list_codes(code, reply)
    codes_in_table = [name for name in dict.fromkeys(codes) if name in table()]
    covered = bool(codes_in_table)
    return [table()[name] for name in codes_in_table or ["en"]], covered


@lru_cache(maxsize=1024)
def _list_codes(code: str, reply: str) -> tuple[str, ...]:
    """List the sample's language, those of the reply's scripts, and the reply's likely language."""
    scripts = [
        name
        for name, low, high in _SCRIPTS
        if any(low <= char <= high for char in reply)
    ]
    if "zh" in scripts and ("ja" in scripts or code == "ja"):
        scripts.remove("zh")
    codes = [*_ALIKE.get(code, (code,)), *scripts]
    spoken, share = identify(reply)
    # "No" is Portuguese for "in the", so English words are looked for only if the reply is English.
    if spoken == "en" or (
        len(reply.split()) >= LEAST_WORDS_TO_IDENTIFY and share >= LEAST_LANGUAGE_SHARE
    ):
        codes += _ALIKE.get(spoken, (spoken,))
    return tuple(codes)


def first_of(
    languages: Sequence[Phrases], kind: str, text: str, besides: str = ""
) -> re.Match[str] | None:
    """Find the earliest phrase of a kind in a lowered text, except those in `besides`."""
    searches = [
        _find_first(language.patterns[kind], text, besides) for language in languages
    ]
    matches = [match for match in searches if match is not None]
    return min(matches, key=lambda match: match.start(), default=None)


def _find_first(
    pattern: re.Pattern[str], text: str, besides: str
) -> re.Match[str] | None:
    if not besides:
        return pattern.search(text)
    return next(
        (match for match in pattern.finditer(text) if match.group() not in besides),
        None,
    )


def is_courtesy(low: str, languages: Sequence[Phrases]) -> bool:
    """Return whether a lowered text is nothing but thanks and greetings."""
    remainder = low
    for language in languages:
        remainder = language.patterns["courtesy"].sub(" ", remainder)
    return remainder != low and not any(map(str.isalnum, remainder))
