"""Measures how much of a question a text repeats, and what is new in it, in any script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalwright.scorers.stress.phrases import lowered
from evalwright.scorers.text.normalise import plain

_TOKEN = re.compile(r"[^\s.,;:!?()\[\]{}\"'«»„…،؛؟।။፣/-]+")
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]+"
)
_HAN_OR_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_GRAMMAR = re.compile("[\u3040-\u309f的了是在吗呢么嗎麼什哪谁誰几幾何於于与與和]")
"""Chinese and Japanese characters of question words and particles."""
_HANGUL = re.compile("[\uac00-\ud7a3]")
_INDIC = re.compile("[\u0900-\u0dff]")
_ARABIC = re.compile("[\u0600-\u06ff]")
_UNCASED = re.compile(
    "[\u0600-\u06ff\u0900-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff\uac00-\ud7a3]"
)
_ARABIC_PREFIX = re.compile(r"^(?:و|ف)?(?:ب|ك|ل)?(?:ال|لل)?(?=\w{3})")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_YEAR = re.compile(r"(?<![\d.,])[12]\d{3}(?![\d.,]\d)")
_CAPITALISED = re.compile(r"(?<![^\W_])[^\W\d_]{3,}")
_LETTERS_OF_A_STEM = 5
_LEAST_LETTERS = 4
_HANGUL_OF_A_STEM = 2
_LETTERS_OF_AN_INDIC_STEM = 4
_LETTERS_OF_AN_ARABIC_STEM = 4
_RUN = 4
_RUN_OF_HAN = 2
"""In a script without spaces, runs of this many characters stand for words."""
_RUNS_OF_A_WORD = 4
_RUNS_OF_A_HAN_WORD = 2
"""Number of such runs in an average word of such a script."""
_PREMISE_SAID = 0.75
"""The least share of the premise's words with which a sentence agrees with the premise."""
_LEAST_DIGITS = 3
"""Least digits of a premise's number; shorter ones occur in too many answers by chance."""


def stems(text: str) -> Iterator[str]:
    """Reduce the words of a lower-cased text to stems.

    A stem is the beginning of a word or, in scripts without spaces, a short run of characters.
    """
    for token in _TOKEN.findall(text):
        if _SPACELESS.search(token):
            yield from _NUMBER.findall(token)
            for run in _SPACELESS.findall(token):
                yield from _character_runs(run)
        elif _HANGUL.match(token):
            if len(token) >= _HANGUL_OF_A_STEM:
                yield token[:_HANGUL_OF_A_STEM]
        elif _INDIC.match(token):
            if len(token) >= _LETTERS_OF_AN_INDIC_STEM - 1:
                yield token[:_LETTERS_OF_AN_INDIC_STEM]
        elif _ARABIC.match(token):
            stem = _ARABIC_PREFIX.sub("", token)
            if len(stem) >= _LETTERS_OF_AN_ARABIC_STEM - 1:
                yield stem[:_LETTERS_OF_AN_ARABIC_STEM]
        elif token[0].isdigit() or len(token) >= _LEAST_LETTERS:
            yield token if token[0].isdigit() else token[:_LETTERS_OF_A_STEM]


def _word_pieces(low: str) -> Iterator[str]:
    """Reduce all words of a lowered text to their beginnings, short words included.

    In scripts without spaces these are pairs of characters.
    """
    for token in _TOKEN.findall(low):
        if _SPACELESS.search(token):
            yield from (token[start : start + 2] for start in range(len(token) - 1))
        else:
            yield (
                token[:_HANGUL_OF_A_STEM]
                if _HANGUL.match(token)
                else token[:_LETTERS_OF_A_STEM]
            )


def _character_runs(text: str) -> Iterator[str]:
    if not _HAN_OR_KANA.match(text):
        yield from (text[start : start + _RUN] for start in range(len(text) - _RUN + 1))
        return
    for start in range(len(text) - _RUN_OF_HAN + 1):
        run = text[start : start + _RUN_OF_HAN]
        if _GRAMMAR.search(run) is None:
            yield run


class QuestionWords:
    """The words of a question, and those of the truth about it."""

    def __init__(
        self, question: str, premise: str, corrections: tuple[str, ...]
    ) -> None:
        low = lowered(question)
        # The first word is usually a question word ("which", "wann").
        first = next(iter(_TOKEN.findall(low)), "")
        spaced = not _SPACELESS.search(first)
        self._question_stems = set(
            stems(low.removeprefix(first) if spaced and len(low.split()) > 3 else low)
        )
        self.spaceless = bool(_SPACELESS.search(low))
        self.question = low
        self._years = set(_YEAR.findall(question))
        self._han = _HAN_OR_KANA.search(low) is not None
        self._runs_of_a_word = 1
        if self.spaceless:
            self._runs_of_a_word = _RUNS_OF_A_HAN_WORD if self._han else _RUNS_OF_A_WORD
        known_text = plain(" ".join((question, premise, *corrections)))
        self._known_numbers = set(_NUMBER.findall(known_text))
        self._known_stems = set(stems(lowered(known_text)))
        asked_numbers = set(_NUMBER.findall(plain(question)))
        true = plain(premise)
        self._true_numbers = {
            number for number in _NUMBER.findall(true) if len(number) >= _LEAST_DIGITS
        } - asked_numbers
        names = [
            lowered(match.group())
            for match in _CAPITALISED.finditer(true)
            if match.start() and match.group()[0].isupper()
        ]
        all_asked = set(stems(low))
        self.premise = lowered(true)
        self._premise_pieces = set(_word_pieces(self.premise))
        self._new_pieces = self._premise_pieces.difference(_word_pieces(low))
        self._true_names = {
            name
            for name in names
            if len(name) >= _LEAST_LETTERS
            and name[:_LETTERS_OF_A_STEM] not in all_asked
        }

    def agrees_with_premise(self, low: str) -> bool:
        """Return whether a lower-cased text says what the premise says.

        It does if it has nearly all words of the premise, including those that are not in the
        question.
        """
        if not self._new_pieces:
            return False
        pieces_there = set(_word_pieces(low))
        overlap = len(self._premise_pieces & pieces_there) / len(self._premise_pieces)
        return (
            overlap >= _PREMISE_SAID
            and len(self._new_pieces & pieces_there) / len(self._new_pieces)
            >= _PREMISE_SAID
        )

    def share_in(self, low: str) -> float:
        """Return the share of the question's words that a lowered text has."""
        if not self._question_stems:
            return 0.0
        return len(self._question_stems.intersection(stems(low))) / len(
            self._question_stems
        )

    def count_in(self, low: str) -> int:
        """Count the words of the question in a lowered text.

        In a script without spaces, a word is a few runs of characters.
        """
        shared = len(self._question_stems.intersection(stems(low)))
        enough = self._han or not self.spaceless or shared > 1
        return -(-shared // self._runs_of_a_word) if enough else 0

    def has_others(self, low: str) -> bool:
        """Return whether a text has words without capitals that the question does not have."""
        return _UNCASED.search(low) is not None and not self._known_stems.issuperset(
            stems(low)
        )

    def news(self, text: str) -> str:
        """Find the first number or capitalised word that is new to question and truth, else "".

        The first word of the text does not count.
        """
        number = next(
            (
                number
                for number in _NUMBER.findall(text)
                if number.rstrip(",") not in self._known_numbers
            ),
            "",
        )
        if number:
            return number
        for match in _CAPITALISED.finditer(text):
            word = match.group()
            if (
                match.start()
                and word[0].isupper()
                and not self._known_stems.intersection(stems(lowered(word)))
            ):
                return word
        return ""

    def other_year(self, text: str) -> str:
        """Find a year in a text that shares no year with the question.

        Returns "" if there is none, or the question has no year.
        """
        years = _YEAR.findall(text)
        return (
            years[0] if self._years and years and self._years.isdisjoint(years) else ""
        )

    def premise_in(self, text: str) -> str:
        """Find a number or name of the truth that is in a text and not in the question, else ""."""
        number = next(
            (
                number
                for number in _NUMBER.findall(text)
                if number.rstrip(",") in self._true_numbers
            ),
            "",
        )
        if number:
            return number
        if not self._true_names:
            return ""
        return next(
            (
                word
                for word in _TOKEN.findall(lowered(text))
                if word in self._true_names
            ),
            "",
        )
