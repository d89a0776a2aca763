"""Finds which options of a question a text names in words.

They are named by an option's whole text, by a word that only one of them has, or by its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from evalwright.scorers.text.folded import FUNCTION_WORDS
from evalwright.scorers.text.marks import SPACELESS
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import find_numbers
from evalwright.scorers.text.tokens import fold

MAX_SEARCHED_CHARS = 4_000
MAX_QUESTION_CHARS = 600
MAX_PIECES = 1_000
"""Most pieces of options in scripts without spaces; beyond it only whole texts are looked for."""
MAX_WORD_CHARS = 400
STEM_CHARS = 4
"""Two words whose first characters agree, at least this many, may be forms of one word."""
MAX_ENDING_CHARS = 3
MAX_STEMS = 200
"""Most words with the same beginning that are compared with each other."""

_WORD = re.compile(rf"(?:(?![{SPACELESS}])[^\W_])+|[{SPACELESS}]+")
_PLACE_BEHIND = re.compile(r"\s?(?:번(?!째)|番(?!目))")
_BARE_NUMBER = re.compile(
    r"[\s*\"']*([1-9])(?![)）])(?:입니다|이다|이에요|예요|です|だ)?[\s.。*\"']*"
)
_SPACELESS = re.compile(f"[{SPACELESS}]")
_LABEL_ALONE = re.compile(r"[(\[]?\s?([A-Za-z]|\d)\s?[)\].:]?")
_LISTED = re.compile(r"(?:(?<=\s)|^)[(\[]?([A-Z]|\d)[)\].:][ \t]*(?=\S)")


def read_option_texts(choices: Sequence[str], question: str) -> tuple[str, ...]:
    """Return the texts of options; options that are only letters are looked up in the question."""
    labels = [
        match[1].upper() if (match := _LABEL_ALONE.fullmatch(choice.strip())) else ""
        for choice in choices
    ]
    if not all(labels) or labels not in (
        list("ABCDEFGHIJ"[: len(labels)]),
        list("123456789"[: len(labels)]),
    ):
        return tuple(choices)
    listed = [
        (match[1], match.start(), match.end()) for match in _LISTED.finditer(question)
    ]
    for first in range(len(listed) - len(labels), -1, -1):
        run = listed[first : first + len(labels)]
        if [label for label, _, _ in run] == labels:
            ends = [start for _, start, _ in run[1:]]
            last_line = question.find("\n", run[-1][2])
            ends.append(last_line if last_line > 0 else len(question))
            return tuple(
                question[start:end].strip()
                for (_, _, start), end in zip(run, ends, strict=True)
            )
    return tuple(choices)


class OptionTexts:
    """Finds the options of one sample by their texts, and by words that only one of them has."""

    def __init__(self, choices: tuple[str, ...], language: str, question: str) -> None:
        self.language = language
        self.folded_options = [_folded(choice) for choice in choices]
        self.own_pieces = _find_own_pieces(self.folded_options, question)
        question_pieces = _pieces_of(
            _without_options(
                _folded(plain(question[-MAX_QUESTION_CHARS:])), self.folded_options
            )
        )
        self.question_pieces = question_pieces - {
            piece for folded in self.folded_options for piece in _pieces_of(folded)
        }
        for option, text in enumerate(choices):
            if _has_digit(text) and not any(map(_has_digit, self.own_pieces[option])):
                self.own_pieces[option] = (
                    set()
                )  # "9 cm" and "12 cm" differ only in their numbers
        numbers = [find_numbers(plain(choice), language) for choice in choices]
        values = [
            choice_numbers[0].value if len(choice_numbers) == 1 else None
            for choice_numbers in numbers
        ]
        self.values = (
            values if None not in values and len(set(values)) == len(values) else []
        )
        self.has_places = any(_PLACE_BEHIND.search(choice) for choice in choices)
        joined = {
            piece: option
            for option, own_pieces in enumerate(self.own_pieces)
            for piece in own_pieces
            if _within_words(piece)
        }
        self._joined = joined if len(joined) <= MAX_PIECES else {}
        self._pattern = re.compile(
            "|".join(
                (
                    re.escape(piece)
                    if _SPACELESS.match(piece)
                    else rf"(?<!\w){re.escape(piece)}"
                )
                for piece in sorted(self._joined, key=len, reverse=True)
            )
        )
        self._stems: dict[str, list[tuple[str, int]]] = {}
        for option, own_pieces in enumerate(self.own_pieces):
            for word in own_pieces:
                if not _within_words(word):
                    self._stems.setdefault(word[:STEM_CHARS], []).append((word, option))

    def option_equal_to(self, text: str) -> int | None:
        """Return the option with exactly this text; None for none or several."""
        folded = _folded(text)
        matching = [
            option
            for option, option_text in enumerate(self.folded_options)
            if option_text and option_text == folded
        ]
        return matching[0] if len(matching) == 1 else None

    def find_named(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Find the options whose words stand in a text.

        Yields:
            Option, start and end of each.
        """
        text = text[:MAX_SEARCHED_CHARS]
        folded = _folded_in_place(text)
        if self.values:
            for number in find_numbers(text, self.language):
                if number.value in self.values and not self._is_place(text, number.end):
                    yield self.values.index(number.value), number.start, number.end
        for option in sorted(
            range(len(self.folded_options)),
            key=lambda option: -len(self.folded_options[option]),
        ):
            for start, end in self._find_option_text(
                folded, self.folded_options[option]
            ):
                yield option, start, end
                folded = folded[:start] + " " * (end - start) + folded[end:]
        if self.values:
            return
        if self._joined:
            for match in self._pattern.finditer(folded):
                yield self._joined[match.group()], *match.span()
        for word in _WORD.finditer(folded):
            for own_word, option in self._stems.get(word.group()[:STEM_CHARS], ()):
                if _same_word(word.group(), own_word):
                    yield option, *word.span()

    def _is_place(self, text: str, end: int) -> bool:
        """Return whether a number is an option's position ("5번") and not its text."""
        return not self.has_places and _PLACE_BEHIND.match(text, end) is not None

    def place_or_text(self, text: str) -> bool:
        """Return whether a number could be an option's position or its text.

        It could if the number is "3" and the first option is "3개".
        """
        lone_number = _BARE_NUMBER.fullmatch(text.strip())
        if lone_number is None or not self.values:
            return False
        place_index = int(lone_number[1]) - 1
        named = [
            option
            for option, number in enumerate(self.values)
            if number == place_index + 1
        ]
        return (
            0 <= place_index < len(self.values)
            and bool(named)
            and named != [place_index]
        )

    def count_echoed_words(self, text: str) -> int:
        """Count the words of the question in a text."""
        folded = _folded(text)
        words = set(folded.split())
        return sum(
            piece in folded if _within_words(piece) else piece in words
            for piece in self.question_pieces
        )

    def _find_option_text(
        self, folded: str, option_text: str
    ) -> Iterator[tuple[int, int]]:
        if not option_text:
            return
        after = "" if _within_words(option_text[-1]) else r"(?!\w)"
        before = "" if _SPACELESS.match(option_text) else r"(?<!\w)"
        words = r"[\W_]+".join(map(re.escape, option_text.split()))
        for match in re.finditer(f"{before}{words}{after}", folded):
            yield match.span()


def _find_own_pieces(wholes: Sequence[str], question: str) -> list[set[str]]:
    """Return, for each option, the words that only this option has.

    Words of the question count only for options without others.
    """
    pieces = [_pieces_of(option_text) for option_text in wholes]
    holders: dict[str, set[int]] = {}
    for option, mine in enumerate(pieces):
        for piece in mine:
            holders.setdefault(piece, set()).add(option)
    joined = [piece for piece in holders if _within_words(piece)]
    joined = joined if len(joined) <= MAX_PIECES else []
    stems: dict[str, list[str]] = {}
    for piece in holders:
        stems.setdefault(piece[:STEM_CHARS], []).append(piece)

    def is_own(piece: str, option: int) -> bool:
        if len(holders[piece]) > 1:
            return False
        if _within_words(piece):
            near = [
                near_piece
                for near_piece in joined
                if near_piece in piece or piece in near_piece
            ]
        else:
            near = [
                near_piece
                for near_piece in stems[piece[:STEM_CHARS]][:MAX_STEMS]
                if _same_word(near_piece, piece)
            ]
        return all(holders[near_piece] == {option} for near_piece in near)

    own_pieces = [
        {piece for piece in mine if is_own(piece, option)}
        for option, mine in enumerate(pieces)
    ]
    question_pieces = _pieces_of(
        _without_options(_folded(plain(question)), list(wholes))
    )
    new = [
        {piece for piece in mine if not any(word in piece for word in question_pieces)}
        for mine in own_pieces
    ]
    return [fresh or mine for fresh, mine in zip(new, own_pieces, strict=True)]


def _same_word(word: str, own_word: str) -> bool:
    """Return whether two words are the same, or one is the other with another ending."""
    if word == own_word:
        return True
    if min(len(word), len(own_word)) < STEM_CHARS or _has_digit(own_word):
        return False
    alike = next(
        (
            at
            for at, (letter, own_letter) in enumerate(zip(word, own_word, strict=False))
            if letter != own_letter
        ),
        min(len(word), len(own_word)),
    )
    needed = max(STEM_CHARS, len(own_word) - (1 if len(own_word) < 7 else 2))
    return alike >= needed and len(word) - alike <= MAX_ENDING_CHARS


def _without_options(question: str, options: list[str]) -> str:
    """Return the question without the options listed at its end."""
    for option in sorted(options, key=len, reverse=True):
        before, separator, after = f" {question} ".rpartition(f" {option} ")
        if not separator:
            return question
        question = f"{before} {after}"
    return question


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(fold(plain(text).casefold())))


def _folded_in_place(text: str) -> str:
    """Fold a text only as far as every character keeps its position."""
    lowered = text.casefold()
    if len(lowered) != len(text):
        return text
    folded = fold(lowered)
    return folded if len(folded) == len(text) else lowered


def _pieces_of(text: str) -> set[str]:
    """Return the words of a folded text; without spaces, all runs of half a word's length."""
    pieces = set()
    for word in text.split():
        if _SPACELESS.match(word):
            if len(word) > MAX_WORD_CHARS:
                continue
            size = min(len(word), max(2 if word > "\u2fff" else 4, -(-len(word) // 2)))
            pieces |= {word[at : at + size] for at in range(len(word) - size + 1)}
        elif word not in FUNCTION_WORDS and (
            len(word) > 2 or word.isdigit() or not word.isascii()
        ):
            pieces.add(word)
    return pieces


def _within_words(piece: str) -> bool:
    """Return whether a piece may be part of a longer word.

    It may in scripts without spaces, and in Korean before endings.
    """
    return "가" <= piece[-1] <= "힣" or _SPACELESS.match(piece) is not None


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
