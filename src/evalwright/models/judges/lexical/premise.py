"""A premise made ready: its sentences as tokens, where each stem stands, how rare it is, and its quantities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from evalwright.models.judges.lexical.numbers import Quantity, quantities_of
from evalwright.models.judges.lexical.words import SYNONYM_GROUPS, Token, tokens_of

SYNONYM, PREFIX = 0.8, 0.7
"""What a word's synonym, and a word of the same beginning, count as a match of it."""
_SAME_BEGINNING = 5
_COMPUTED = 40
_MOST = 200
"""Places that are kept of a word; one that stands in more sentences says little about where a text comes from."""
_LONGEST, _SHOWN = 120, 2000
"""Tokens of a sentence that are read together, and characters of one that are shown whole."""
_CLOSE = 0.005
"""Numbers that differ by less than this share of themselves are one number: 2.2 and 2.21 million are not always kept apart."""

Where = dict[int, float]
"""Sentences by number, with how well they match."""


def parts_of(tokens: tuple[Token, ...]) -> list[tuple[Token, ...]]:
    """A sentence whole, or, where it is longer than any that is written to be read, in parts."""
    return [tokens[place : place + _LONGEST] for place in range(0, len(tokens), _LONGEST)] or [()]


class Premise:
    """Answers where a token's like stands. The index is computed once per premise, the answers when they are asked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        """texts: the premise's sentences."""
        self.texts: list[str] = []
        self.sentences: list[tuple[Token, ...]] = []
        for text in list(texts) or [""]:
            for part in parts_of(tokens_of(text)):
                self.sentences.append(part)
                self.texts.append(text if len(text) <= _SHOWN else " ".join(token.text for token in part))
        self._stems: dict[str, dict[int, None]] = {}
        self._beginnings: dict[str, dict[int, None]] = {}
        self._groups: dict[int, dict[int, None]] = {}
        self._names: set[str] = set()
        self._values: dict[float, dict[int, None]] = {}
        for number, tokens in enumerate(self.sentences):
            for token in tokens:
                self._add(token, number)
        self._matches: dict[tuple[str, float | None], Where] = {}
        self._quantities: dict[int, tuple[Quantity, ...]] = {}
        self._all: tuple[Quantity, ...] | None = None

    def _add(self, token: Token, number: int) -> None:
        if token.value is not None:
            self._values.setdefault(token.value, {})[number] = None
        if token.name:
            self._names.add(token.stem)
        if token.stem:
            self._stems.setdefault(token.stem, {})[number] = None
            for group in SYNONYM_GROUPS.get(token.stem, ()):
                self._groups.setdefault(group, {})[number] = None
        if len(token.stem) >= _SAME_BEGINNING and token.content:
            self._beginnings.setdefault(token.stem[:_SAME_BEGINNING], {})[number] = None

    def weight(self, token: Token) -> float:
        """How much a token says: more where few sentences have it, or it is a name or a number."""
        count = len(self._stems.get(token.stem, ()))
        rarity = math.log(1 + (len(self.sentences) + 1) / (count + 0.5))
        return rarity * (1.5 if token.name or token.value is not None else 1.0)

    def where(self, token: Token) -> Where:
        """In which sentences the token, a synonym, or a word of the same beginning stands, and how well it matches."""
        key = (token.stem, token.value)
        found = self._matches.get(key)
        if found is None:
            found = self._matches[key] = self._find(token)
        return found

    def quantities(self, number: int) -> tuple[Quantity, ...]:
        """The quantities of a sentence."""
        found = self._quantities.get(number)
        if found is None:
            found = self._quantities[number] = tuple(quantities_of(self.sentences[number]))
        return found

    def all_quantities(self) -> tuple[Quantity, ...]:
        """The quantities of the first sentences, up to a number that can be computed with."""
        if self._all is None:
            found: list[Quantity] = []
            for number in range(len(self.sentences)):
                if len(found) >= _COMPUTED:
                    break
                found += self.quantities(number)
            self._all = tuple(found[:_COMPUTED])
        return self._all

    def having(self, value: float) -> Iterable[int]:
        """The sentences that have a number."""
        return self._values.get(value, {})

    def names(self, token: Token) -> bool:
        """Whether the token is a name, here or in the premise: at its beginning a sentence does not tell."""
        return token.name or token.stem in self._names

    def has(self, stem: str) -> bool:
        """Whether the premise has this stem."""
        return stem in self._stems

    def around(self, numbers: Iterable[int]) -> list[int]:
        """These sentences and their neighbours, in order."""
        return sorted(
            {
                near
                for number in numbers
                for near in (number - 1, number, number + 1)
                if 0 <= near < len(self.sentences)
            }
        )

    def _find(self, token: Token) -> Where:
        if token.value is not None:
            same = [
                number
                for value, numbers in self._values.items()
                if same_number(token.value, value)
                for number in numbers
            ]
            return dict.fromkeys(same[:_MOST], 1.0)
        out: Where = dict.fromkeys(itertools.islice(self._stems.get(token.stem, ()), _MOST), 1.0)
        for group in SYNONYM_GROUPS.get(token.stem, ()):
            for number in itertools.islice(self._groups.get(group, ()), _MOST):
                out.setdefault(number, SYNONYM)
        if len(token.stem) >= _SAME_BEGINNING and not token.name:
            for number in itertools.islice(self._beginnings.get(token.stem[:_SAME_BEGINNING], ()), _MOST):
                out.setdefault(number, PREFIX)
        return out


def same_number(one: float, other: float) -> bool:
    """Whether two numbers are as good as equal."""
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other)) if one != other else True
