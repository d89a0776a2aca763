"""A premise made ready: its sentences as tokens, where each stem stands, how rare it is, and vectors of character n-grams."""

from __future__ import annotations

import math
import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evalwright.models.consistency.lexical.words import SYNONYM_GROUPS, Token, tokens_of
from evalwright.models.consistency.sentences import sentences

WIDTH = 2048
"""Places of the hashed vector of character n-grams."""
SYNONYM, PREFIX = 0.8, 0.7
"""What a word's synonym, and a word of the same beginning, count as a match of it."""
_SAME_BEGINNING = 5
_LONGEST = 150
"""Tokens that are taken as one sentence at the most, so that a text without any does not take quadratic time."""
_MOST = 1500
"""Numbers of a premise of which sums and differences are taken."""
_CLOSE = 0.005
"""Numbers that differ by less than this share of themselves are one number: 2.2 and 2.21 million are not always kept apart."""

Where = dict[int, float]
"""Sentences by number, with how well they match."""


class Premise:
    """Answers where a token's like stands. All of it is computed once per premise."""

    def __init__(self, text: str) -> None:
        read = [piece for each in sentences(text) for piece in _pieces(each)] or [("", ())]
        self._texts = [each for each, _ in read]
        self.sentences: list[tuple[Token, ...]] = [tokens for _, tokens in read]
        self._stems: dict[str, set[int]] = {}
        self._beginnings: dict[str, set[int]] = {}
        self._names: set[str] = set()
        self._content = [[token.stem for token in tokens if token.content] for tokens in self.sentences]
        self._groups: dict[int, set[int]] = {}
        self._values: list[tuple[float, int]] = []
        for number, tokens in enumerate(self.sentences):
            for token in tokens:
                if token.value is not None:
                    self._values.append((token.value, number))
                if token.name:
                    self._names.add(token.stem)
                if token.stem:
                    self._stems.setdefault(token.stem, set()).add(number)
                    for group in SYNONYM_GROUPS.get(token.stem, ()):
                        self._groups.setdefault(group, set()).add(number)
                if len(token.stem) >= _SAME_BEGINNING and token.content:
                    self._beginnings.setdefault(token.stem[:_SAME_BEGINNING], set()).add(number)
        self.windows = self._windows()
        self._matches: dict[tuple[str, float | None], Where] = {}
        self._vectors: NDArray[np.float32] | None = None
        self._derived: NDArray[np.float64] | None = None

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

    def gives(self, value: float, tolerance: float) -> bool:
        """Whether the premise has this number, or two numbers in neighbouring sentences of which it is the sum or difference.

        tolerance: by what share of itself it may differ.
        """
        if not self._values:
            return False
        if self._derived is None:
            values, places = (
                np.array(column, dtype=np.float64) for column in zip(*self._values[:_MOST], strict=True)
            )
            near = np.abs(places[:, None] - places) <= 1
            sums, differences = np.add.outer(values, values), np.subtract.outer(values, values)
            own = [value for value, _ in self._values]
            apart = ~np.eye(len(values), dtype=bool)
            self._derived = np.unique(np.concatenate([own, sums[near & apart], differences[near]]))
        place = int(np.searchsorted(self._derived, value))
        nearest = self._derived[max(0, place - 1) : place + 1]
        return bool((np.abs(nearest - value) <= tolerance * abs(value) + 1e-9).any())

    def names(self, token: Token) -> bool:
        """Whether the token is a name, here or in the premise: at its beginning a sentence does not tell."""
        return token.name or token.stem in self._names

    def only(self, token: Token) -> int | None:
        """The number of the one sentence that has the token's stem; None where none or several have it."""
        found = self._stems.get(token.stem, ())
        return next(iter(found)) if len(found) == 1 else None

    def has_between(self, number: int, before: Token, after: Token, most: int) -> bool:
        """Whether a sentence has one token before another, with 1 to `most` words of content between them."""
        stems = self._content[number]
        if before.stem not in stems or after.stem not in stems:
            return False
        return 1 < stems.index(after.stem) - stems.index(before.stem) <= most + 1

    def has(self, stem: str) -> bool:
        """Whether the premise has this stem."""
        return stem in self._stems

    def vectors(self) -> NDArray[np.float32]:
        """Of each window, shape (windows, WIDTH), of length 1 each."""
        if self._vectors is None:
            single = np.stack([ngrams(text) for text in self._texts])
            summed = np.stack([single[list(window)].sum(axis=0) for window in self.windows])
            self._vectors = unit(summed)
        return self._vectors

    def _windows(self) -> list[tuple[int, ...]]:
        count = len(self.sentences)
        pairs = [(number, number + 1) for number in range(count - 1)]
        return [*((number,) for number in range(count)), *pairs]

    def _find(self, token: Token) -> Where:
        if token.value is not None:
            return {number: 1.0 for value, number in self._values if same_number(token.value, value)}
        out: Where = dict.fromkeys(self._stems.get(token.stem, ()), 1.0)
        for group in SYNONYM_GROUPS.get(token.stem, ()):
            for number in self._groups.get(group, ()):
                out.setdefault(number, SYNONYM)
        if len(token.stem) >= _SAME_BEGINNING and not token.name:
            for number in self._beginnings.get(token.stem[:_SAME_BEGINNING], ()):
                out.setdefault(number, PREFIX)
        return out


def _pieces(sentence: str) -> list[tuple[str, tuple[Token, ...]]]:
    """A sentence with its tokens; a text without ends of sentences in stretches of `_LONGEST` tokens."""
    tokens = tokens_of(sentence)
    if len(tokens) <= _LONGEST:
        return [(sentence, tokens)]
    stretches = [tokens[start : start + _LONGEST] for start in range(0, len(tokens), _LONGEST)]
    return [(" ".join(token.text for token in each), each) for each in stretches]


def same_number(one: float, other: float) -> bool:
    """Whether two numbers are as good as equal."""
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other)) if one != other else True


@lru_cache(maxsize=1 << 16)
def _place(gram: str) -> int:
    return zlib.crc32(gram.encode("utf-8", "surrogatepass")) % WIDTH


def ngrams(text: str) -> NDArray[np.float32]:
    """Counts of the text's character 3- and 4-grams, hashed to `WIDTH` places, damped by a square root."""
    padded = f" {' '.join(text.lower().split())} "
    out = np.zeros(WIDTH, dtype=np.float32)
    for size in (3, 4):
        for place in range(len(padded) - size + 1):
            out[_place(padded[place : place + size])] += 1
    damped: NDArray[np.float32] = np.sqrt(out)
    return damped


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return scaled
