"""A text as tokens that can be compared: stems, numbers as values, names, and pairs of characters where a script has no spaces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from evalwright.models.judges.lexical.lexicon import (
    ANTONYMS,
    CALENDAR,
    FRACTIONS,
    FUNCTION_WORDS,
    IRREGULAR,
    MULTIPLES,
    NUMBER_WORDS,
    ORDINALS,
    SCALES,
    SYNONYMS,
    UNITS,
)

_MARKS = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0903\u093a-\u094f"
    r"\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a03\u0a3c-\u0a51\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03"
    r"\u0b3c-\u0b57\u0b82\u0bbe-\u0bd7\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d57"
)
"""Vowel signs and accents that belong to the letter before them, which Python does not count among a word's characters."""
_LETTERS = rf"[^\W\d_](?:[^\W\d_]|[{_MARKS}])*"
_TOKEN = re.compile(rf"\d+(?:[.,:]\d+)*|{_LETTERS}(?:['’]{_LETTERS})*|[%$€£°]|[^\w\s]")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese: scripts written without spaces between words."""


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, sign or, in scripts without spaces, pair of characters.

    stem: what is compared. content: it says what the text is about. name: it is written as a name. value: of a number.
    """

    text: str
    lower: str
    stem: str
    content: bool
    name: bool = False
    value: float | None = None

    @property
    def is_sign(self) -> bool:
        """Punctuation, by which clauses end."""
        return not self.content and not self.stem


def tokens_of(sentence: str) -> tuple[Token, ...]:
    """The tokens of one sentence. A capital at its very beginning is no sign of a name."""
    out: list[Token] = []
    started = False
    place = 0
    for run in _UNSPACED.finditer(sentence):
        started = _add_spaced(out, sentence[place : run.start()], started)
        out += [_plain_token(pair) for pair in _pairs(run.group())]
        started, place = True, run.end()
    _add_spaced(out, sentence[place:], started)
    return tuple(_with_numbers(out))


def _add_spaced(out: list[Token], text: str, started: bool) -> bool:
    for found in _TOKEN.finditer(text):
        word = found.group().replace("’", "'")
        if word[0].isdigit():
            out.append(Token(word, word, word, True, value=_number(word)))
            started = True
        elif word[0].isalpha():
            out.append(_word(word, started))
            started = True
        elif word in UNITS:
            out.append(Token(word, word, UNITS[word], False))
        else:
            out.append(Token(word, word, "", False))
    return started


def _word(word: str, started: bool) -> Token:
    lower = word.lower()
    name = word[0].isupper() and (started or not word[1:].islower()) and lower not in FUNCTION_WORDS
    if name and (lower in CALENDAR or len(word) == 1):
        name = False
    return Token(word, lower, stem(lower), lower not in FUNCTION_WORDS, name)


def _plain_token(pair: str) -> Token:
    return Token(pair, pair, pair, True)


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)] or [run]


def _number(word: str) -> float | None:
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", word):
        return float(word.replace(",", ""))
    if re.fullmatch(r"\d+:\d\d(:\d\d)?", word):
        hours, minutes = word.split(":")[:2]
        return int(hours) + int(minutes) / 60
    try:
        return float(word.replace(",", "."))
    except ValueError:
        return None


def _with_numbers(tokens: list[Token]) -> list[Token]:
    """Number words as one token with their value; a scale after a number multiplies it."""
    out: list[Token] = []
    for token in tokens:
        before = out[-1] if out else None
        word = token.lower
        if word in SCALES:
            out.append(_scaled(out.pop() if before and before.value is not None else None, token))
        elif word in NUMBER_WORDS and word != "one":
            out.append(_joined(out, token, NUMBER_WORDS[word]))
        elif word in MULTIPLES or word in ORDINALS or word in FRACTIONS:
            value = {**ORDINALS, **FRACTIONS, **MULTIPLES}[word]
            out.append(Token(token.text, word, token.stem, True, value=value))
        elif word == "one" and (joined := _joined(out, token, 1.0)).lower != "one":
            out.append(joined)
        else:
            out.append(token)
    return out


def _scaled(before: Token | None, token: Token) -> Token:
    value = SCALES[token.lower] * (before.value if before is not None and before.value is not None else 1.0)
    text = token.text if before is None else f"{before.text} {token.text}"
    return Token(text, text.lower(), f"{value:g}", True, value=value)


def _joined(out: list[Token], token: Token, value: float) -> Token:
    """ "twenty-one" is written as two words with a hyphen or without."""
    place = len(out) - 1
    if place >= 1 and out[place].text == "-":
        place -= 1
    before = out[place] if place >= 0 else None
    if before is not None and before.lower in NUMBER_WORDS and value < 10 and (before.value or 0) >= 20:
        del out[place:]
        total = (before.value or 0) + value
        return Token(
            f"{before.text}-{token.text}", f"{before.lower}-{token.lower}", f"{total:g}", True, value=total
        )
    return Token(token.text, token.lower, f"{value:g}", True, value=value)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A word without its common English endings. Not a word's true stem: only the same for most of its forms."""
    word = word.removesuffix("'s").removesuffix("'")
    word = IRREGULAR.get(word, word)
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, replacement in (
        ("ies", "y"),
        ("ied", "y"),
        ("sses", "ss"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("xes", "x"),
    ):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending) + replacement
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "edly", "ed", "ly", "est", "er"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= 4 - (ending == "ed") and re.search(r"[aeiouy]", rest):
            word = rest
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _groups(lists: tuple[str, ...]) -> dict[str, frozenset[int]]:
    out: dict[str, set[int]] = {}
    for number, words in enumerate(lists):
        for word in words.split():
            out.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in out.items()}


SYNONYM_GROUPS = _groups(SYNONYMS)
"""By stem, the numbers of the groups of `SYNONYMS` it is in."""

SIDES: dict[str, frozenset[tuple[int, int]]] = {}
"""By stem, (pair of `ANTONYMS`, side) it is on."""
for _number_of, _pair in enumerate(ANTONYMS):
    for _side, _words in enumerate(_pair):
        for _each in _words.split():
            SIDES[stem(_each)] = SIDES.get(stem(_each), frozenset()) | {(_number_of, _side)}
