"""Numbers in the words of another language, read from tokens with the tables of `languages.py`.

A number is groups below a thousand, each with a scale word that is smaller than the one before it ("deux millions trois cent
mille cinq"), then decimals ("virgule cinq") or a half ("et demi", of the scale word where one stands before it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.numbers.languages import Language, Phrases, language_of
from evalwright.scorers.text.tokens import fold

_LONGEST_PHRASE = 6
_LONGEST_WORD = 80
_MOST_PARTS = 12


class Said(NamedTuple):
    """A number in words: its value, the tokens from start to end, and whether its words mostly mean something else."""

    value: Decimal
    start: int
    end: int
    ordinal: bool = False
    weak: bool = False


class _Piece(NamedTuple):
    """A word or a part of a word that is written together with others, and the token that it is from."""

    text: str
    token: int


def said_numbers(
    tokens: Sequence[str],
    code: str,
    ends_clause: Callable[[int], bool],
    comma: Callable[[int], bool] = lambda index: False,
) -> list[Said]:
    """All numbers in the words of the language `code` among casefolded tokens, left to right, as long as possible.

    ends_clause: whether punctuation stands between token i - 1 and i; a number does not reach over it. comma: whether that is
    nothing but a comma, which may follow a scale word ("dois mil, quatrocentos").
    """
    language = language_of(code)
    if language is None:
        return []
    pieces = _pieces(tokens, code, language)
    reader = _Reader(pieces, language, ends_clause, comma)
    found: list[Said] = []
    index = 0
    while index < len(pieces):
        said = reader.read(index)
        # Words that are written together are a number as a whole or not at all.
        if said is None or _inside_word(pieces, index, said[1]):
            index += 1
            continue
        value, end, ordinal = said
        start, last = pieces[index].token, pieces[end - 1].token
        weak = end == index + 1 and pieces[index].text in language.weak
        found.append(Said(value, start, last + 1, ordinal, weak))
        index = end
    return found


def _inside_word(pieces: list[_Piece], start: int, end: int) -> bool:
    before = start > 0 and pieces[start - 1].token == pieces[start].token
    return before or (end < len(pieces) and pieces[end].token == pieces[end - 1].token)


def _pieces(tokens: Sequence[str], code: str, language: Language) -> list[_Piece]:
    pieces: list[_Piece] = []
    for index, token in enumerate(tokens):
        word = token if code[:2] == "vi" else fold(token)
        parts = _parts(word, code) if language.compound and len(word) > 5 else (word,)
        pieces += [_Piece(part, index) for part in parts]
    return pieces


@lru_cache(maxsize=4096)
def _parts(word: str, code: str) -> tuple[str, ...]:
    """A word cut into words of numbers, the longest first; the word itself where that cannot be done."""
    language = language_of(code)
    if language is None or len(word) > _LONGEST_WORD:
        return (word,)
    known = _vocabulary(code)
    if word in known:
        return (word,)
    done: dict[int, tuple[str, ...] | None] = {len(word): ()}
    for start in range(len(word) - 1, -1, -1):
        done[start] = None
        for end in range(len(word), start, -1):
            rest = done[end]
            if rest is not None and word[start:end] in known and len(rest) < _MOST_PARTS:
                done[start] = (word[start:end], *rest)
                break
    return done[0] or (word,)


@lru_cache(maxsize=16)
def _vocabulary(code: str) -> frozenset[str]:
    language = language_of(code)
    if language is None:
        return frozenset()
    tables: list[Phrases] = [language.units, language.hundreds]
    words = {word for table in tables for phrase in table for word in phrase}
    words |= {word for phrase in language.scales for word in phrase}
    return frozenset(words | language.halves | language.links)


class _Reader:
    def __init__(
        self,
        pieces: list[_Piece],
        language: Language,
        ends_clause: Callable[[int], bool],
        comma: Callable[[int], bool],
    ) -> None:
        self.pieces = pieces
        self.language = language
        self.ends_clause = ends_clause
        self.comma = comma
        self.origin = 0
        self.linked = 0

    def word(self, index: int) -> str:
        """The piece at `index`, "" past the end or past punctuation after the number's first word."""
        if index >= len(self.pieces):
            return ""
        token = self.pieces[index].token
        if (
            index > self.origin
            and token != self.pieces[index - 1].token
            and any(self.ends_clause(place) for place in range(self._joined_until() + 1, token + 1))
        ):
            return ""
        return self.pieces[index].text

    def _joined_until(self) -> int:
        """The token up to which punctuation was looked at."""
        return max(self.pieces[self.origin].token, self.linked)

    def phrase(self, index: int, table: Phrases) -> tuple[int, int] | None:
        """The longest phrase of a table at `index`: its value and the place after it."""
        words: list[str] = []
        best: tuple[int, int] | None = None
        for place in range(index, index + _LONGEST_PHRASE):
            word = self.word(place)
            if not word:
                break
            words.append(word)
            if (value := table.get(tuple(words))) is not None:
                best = value, place + 1
        return best

    def read(self, index: int) -> tuple[Decimal, int, bool] | None:
        """A number at `index`: value, the place after it, whether it is an ordinal."""
        self.origin, self.linked = index, 0
        if (ordinal := self.phrase(index, self.language.ordinals)) is not None:
            return Decimal(ordinal[0]), ordinal[1], True
        total, limit, place, scale = Decimal(0), Decimal("Infinity"), index, Decimal(1)
        read = False
        while True:
            group = self.group(place, first=not read)
            if group is None:
                break
            value, after = group
            found = self.scale(after)
            if found is None or found[0] >= limit:
                if read and value >= limit:
                    break
                total, place, scale, read = total + value, after, Decimal(1), True
                break
            scale, place = found
            total, limit, read = total + value * scale, scale, True
            self._step_over_comma(place)
            while (again := self.scale(place)) is not None and again[0] > limit:
                total, scale, limit, place = total * again[0], scale * again[0], again[0], again[1]
        if not read:
            return None
        return (*self.tail(total, place, scale), False)

    def _step_over_comma(self, index: int) -> None:
        """Let the number go on after "dois mil," where a group below the scale follows."""
        if index >= len(self.pieces) or not self.comma(self.pieces[index].token):
            return
        before = self.linked
        self.linked = self.pieces[index].token
        table = (self.language.hundreds, self.language.units)
        if not any((found := self.phrase(index, one)) is not None and found[0] >= 100 for one in table):
            self.linked = before

    def group(self, index: int, first: bool) -> tuple[Decimal, int] | None:
        """A number below a thousand; a bare scale word at the start is one of it ("mil", "tausend")."""
        if not first and self.word(index) in self.language.links:
            index += 1
        if self.word(index) in self.language.bare:
            return Decimal(1), index
        hundreds = self.phrase(index, self.language.hundreds)
        if hundreds is None:
            units = self.phrase(index, self.language.units)
            return None if units is None else (Decimal(units[0]), units[1])
        value, after = hundreds
        for place in (after, after + 1 if self.word(after) in self.language.links else after):
            units = self.phrase(place, self.language.units)
            if units is not None and units[0]:
                return Decimal(value + units[0]), units[1]
        return Decimal(value), after

    def scale(self, index: int) -> tuple[Decimal, int] | None:
        word = self.word(index)
        value = self.language.scales.get((word,)) if word else None
        if value is None and word in ("de", "d") and index > self.origin:
            return None
        return None if value is None else (value, index + 1)

    def tail(self, value: Decimal, index: int, scale: Decimal) -> tuple[Decimal, int]:
        """Decimals or a half after a whole number."""
        word = self.word(index)
        if word in self.language.points:
            digits, place = "", index + 1
            while (digit := self.phrase(place, self.language.units)) is not None and len(digits) < 20:
                digits += str(digit[0])
                place = digit[1]
            if digits:
                value += Decimal(f"0.{digits}")
                found = self.scale(place)
                return (value * found[0], found[1]) if found is not None else (value, place)
        place = index + 1 if word in self.language.links else index
        if self.word(place) in self.language.halves:
            value += scale / 2
            place += 1
            if scale == 1 and (found := self.scale(place)) is not None:
                return value * found[0], found[1]
            return value, place
        return value, index


_WORD_AFTER = re.compile(r"[ -]?([^\W\d_]+)")
_OTHER_SCALES = {
    **dict.fromkeys(("ล้าน", "மில்லியன்", "मिलियन"), 6),
    **dict.fromkeys(("แสน", "लाख", "லட்சம்", "இலட்சம்"), 5),
    **dict.fromkeys(("พัน", "हज़ार", "हजार", "ஆயிரம்"), 3),
    **dict.fromkeys(("करोड़", "கோடி"), 7),
    **dict.fromkeys(("अरब", "பில்லியன்"), 9),
    "หมื่น": 4,
}


def scale_after(text: str, position: int, code: str) -> tuple[Decimal, int] | None:
    """The scale word of another language after digits ("48 millions", "3,5 Milliarden", "5 लाख"), and the place after it."""
    language = language_of(code)
    if language is not None:
        found = _WORD_AFTER.match(text, position)
        if found is None:
            return None
        word = found.group(1).casefold()
        word = word if code[:2] == "vi" else fold(word)
        value = None if word in language.bare and word.startswith("se") else language.scales.get((word,))
        return None if value is None else (value, found.end())
    if position < len(text) and not text.isascii():
        rest = text[position : position + 12].lstrip()
        for word, power in _OTHER_SCALES.items():
            if rest.startswith(word):
                return Decimal(10) ** power, text.index(word, position) + len(word)
    return None
