"""Which options of a question a text names in words: an option's whole text, a word that only one of them has, or its number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalwright.scorers.match import FUNCTION
from evalwright.scorers.number import find_numbers
from evalwright.scorers.text.marks import SPACELESS
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import fold

_WORD = re.compile(rf"(?:(?![{SPACELESS}])[^\W_])+|[{SPACELESS}]+")
_MOST_CHARACTERS = 4_000
_MOST_PIECES = 1_000
_LONGEST_WORD = 400


class Texts:
    """The words of the options: which each has alone, and the numbers where each is one."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.language = language
        self.whole_of = [_folded(one) for one in choices]
        pieces = [_pieces(one) for one in self.whole_of]
        asked = _pieces(_stem(_folded(plain(question)), self.whole_of))
        self._holders: dict[str, set[int]] = {}
        for place, mine in enumerate(pieces):
            for piece in mine:
                self._holders.setdefault(piece, set()).add(place)
        self._joined = [piece for piece in self._holders if _within_words(piece)]
        self.own = [
            {
                piece
                for piece in mine
                if not any(one in piece for one in asked) and not self._elsewhere(piece, place)
            }
            for place, mine in enumerate(pieces)
        ]
        numbers = [find_numbers(plain(one), language) for one in choices]
        for place, one in enumerate(choices):
            if any(map(str.isdigit, one)) and not any(
                any(map(str.isdigit, piece)) for piece in self.own[place]
            ):
                self.own[place] = set()
        values = [one[0].value if len(one) == 1 else None for one in numbers]
        self.values = values if None not in values and len(set(values)) == len(values) else []

    def _elsewhere(self, piece: str, place: int) -> bool:
        """Whether another option than that at a place has a word, or one that is the same with an ending."""
        if len(self._holders[piece]) > 1:
            return True
        if not _within_words(piece):
            return False
        if len(self._joined) > _MOST_PIECES:
            return True
        near = (
            one for one in self._joined if (one in piece or piece in one) and self._holders[one] != {place}
        )
        return any(_same(one, piece) or _same(piece, one) for one in near)

    def whole(self, text: str) -> int | None:
        """The option that a text is, and nothing else."""
        bare = _folded(text)
        found = [place for place, one in enumerate(self.whole_of) if one and one == bare]
        return found[0] if len(found) == 1 else None

    def named(self, text: str) -> Iterator[tuple[int, int, int]]:
        """The options whose words stand in a text, with their places."""
        text = text[:_MOST_CHARACTERS]
        folded = fold(text.casefold())
        if len(folded) != len(text):
            folded = text.casefold() if len(text.casefold()) == len(text) else text
        if self.values:
            for number in find_numbers(text, self.language):
                if number.value in self.values:
                    yield self.values.index(number.value), number.start, number.end
            return
        for place in sorted(range(len(self.own)), key=lambda one: -len(self.whole_of[one])):
            whole = re.escape(self.whole_of[place])
            if whole and (match := re.search(rf"(?<!\w){whole}(?!\w)", folded)) is not None:
                yield place, *match.span()
                folded = folded[: match.start()] + " " * len(match.group()) + folded[match.end() :]
        for word in _WORD.finditer(folded):
            for place, own in enumerate(self.own):
                if any(_same(word.group(), one) for one in own):
                    yield place, *word.span()


def _stem(question: str, options: list[str]) -> str:
    """A question without the options that it lists at its end."""
    for option in sorted(options, key=len, reverse=True):
        before, found, after = f" {question} ".rpartition(f" {option} ")
        if not found:
            return question
        question = f"{before} {after}"
    return question


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(fold(plain(text).casefold())))


def _pieces(text: str) -> set[str]:
    """The words of a folded text, and in scripts without spaces all runs of half a word's length."""
    out = set()
    for word in text.split():
        if re.match(f"[{SPACELESS}]", word):
            if len(word) > _LONGEST_WORD:
                continue
            size = min(len(word), max(2 if word > "\u2fff" else 4, -(-len(word) // 2)))
            out |= {word[at : at + size] for at in range(len(word) - size + 1)}
        elif word not in FUNCTION and (len(word) > 2 or word.isdigit() or not word.isascii()):
            out.add(word)
    return out


def _within_words(own: str) -> bool:
    """Whether a word of an option can be part of a longer one: in scripts without spaces, and in Korean before endings."""
    return "가" <= own[0] <= "힣" or re.match(f"[{SPACELESS}]", own) is not None


def _same(word: str, own: str) -> bool:
    """Whether a word of a reply is an option's, with an ending or without."""
    if re.match(f"[{SPACELESS}]", own):
        return own in word
    return word.startswith(own) if "가" <= own[0] <= "힣" else word == own
