"""Measures how much of a reply is in a language, sentence by sentence.

What may appear in any language is left out first: code, formulas, addresses, quotations, brackets
beside words of the language, and names. A sentence of the rest counts with its number of letters,
for the language as which it is identified (`language.py`) or that of most of its letters; what is
too short to identify does not count, so "B", "42" and "Seoul" are in every language. If a language
of another script is expected, a whole reply of two or more words only in Latin letters is judged by
its letters, unless it is a name: "Hello world" and "King Sejong the Great" are not Korean, "Guido
van Rossum" may be.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from evalwright.core.sentences import sentences
from evalwright.scorers.text.language import (
    identify,
    in_script,
    is_small_word,
    speaks,
    unique_script,
)
from evalwright.scorers.text.languages import check_language, short_code
from evalwright.scorers.text.marks import SPACELESS
from evalwright.scorers.text.normalise import MAX_REPLY_CHARS

_EXCUSED = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`|\$\$.{0,1000}?\$\$|\$[^$\n]{1,400}\$"
    r"|\\\[.{0,1000}?\\\]|\\\(.{0,1000}?\\\)"
    r"|\\(?:boxed|text)\{[^{}\n]{0,200}\}|\\[a-zA-Z]{2,}|</?[a-zA-Z][^<>\n]{0,200}>"
    r"|(?:https?://|www\.)[^\s<>\"'가-힣]+|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.]{2,64}",
    re.DOTALL,
)
_QUOTED = re.compile(
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|‘[^’\n]{1,400}’|(?<!\w)'[^'\n]{1,400}'(?![a-z])"
    r"|「[^」\n]{1,400}」|『[^』\n]{1,400}』|《[^》\n]{1,400}》|〈[^〉\n]{1,400}〉|«[^»\n]{1,400}»|"
    r"(?m:^[^\S\n]*>[^\n]{1,400}$)"
)
_BRACKET = re.compile(r"[(（\[【][^()（）\[\]【】\n]{1,120}[)）\]】]")
_PART = (
    r"(?:[A-Z][A-Za-z\dÀ-ɏ.'’&+#-]{0,30}|[a-z]{0,20}\d[A-Za-z\d-]{0,20}"
    r"|[a-z]{1,12}[A-Z][A-Za-z\d-]{0,20})"
)
_NAME = re.compile(
    rf"(?<![A-Za-zÀ-ɏ]){_PART}(?:[ -](?:(?:van|von|der|de|da|of|the|and|la|le)"
    rf" ){{0,2}}{_PART}){{0,3}}(?![a-zÀ-ɏ])"
)
"""Words in Latin letters that are written like names: "Guido van Rossum", "GPT-4", "iPhone"."""
_LATIN_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SPACELESS_LETTER = re.compile(f"[{SPACELESS}]")
FEWEST_OWN_LETTERS = 4
LEAST_OWN_SHARE = 0.1
MOST_SMALL_WORDS = 5
"""Among this many foreign terms at most one is a small word ("state of the art")."""
_FEWEST_WORDS = 3
_FEWEST_LETTERS = 7
"""A text of fewer letters in a script without spaces may be a name or the text of an option."""


LATIN_REPLY_WORDS = 2
"""Least words only in Latin letters that are a reply in the wrong script; one word may be a name.
"""
_ENGLISH_IN_NAMES = re.compile(r"\b(?:of|the|and)\b")
_BETWEEN_NAMES = re.compile(r"[,;/\n]")
_ABBREVIATION = re.compile(r"[A-Z]{1,5}")
_UNDETERMINED = "und"
"""ISO 639's code for an undetermined language."""


class Spoken(NamedTuple):
    """How much of a reply is in the expected language.

    Attributes:
        share: share of the identified letters that are in the language; 1 if none were identified.
        letters: number of identified letters.
        others: the other languages that were identified, in order.
    """

    share: float
    letters: int
    others: tuple[str, ...] = ()


def spoken(text: str, code: str) -> Spoken:
    """Measure how much of a reply is in the language `code`.

    It reads the first and the last 4,000 characters.

    Raises:
        ConfigurationError: `code` is not a language code.
        ScoringError: the language is one that cannot be recognised.
    """
    check_language(code)
    code = short_code(code)
    speaks("", code)  # raises if the language cannot be recognised
    if len(text) > MAX_REPLY_CHARS:
        text = f"{text[: MAX_REPLY_CHARS // 2]}\n\n{text[-MAX_REPLY_CHARS // 2 :]}"
    text = _EXCUSED.sub(" ", text)
    unquoted = _QUOTED.sub(" ", text)
    text = text if _is_brief(unquoted) else unquoted
    if _is_latin_reply(text, code):
        return Spoken(0.0, _count_letters(text), (identify(text)[0] or _UNDETERMINED,))
    letters_by_language: Counter[str] = Counter()
    brief = ""
    for sentence in (
        sentence_text for line in text.splitlines() for sentence_text in sentences(line)
    ):
        sentence = _without_names(sentence, code)
        tells = (
            unique_script(code) and in_script(sentence, code)
        ) or _in_another_script(sentence, code)
        if _is_brief(sentence) and not tells:
            brief = f"{brief} {sentence}"
        else:
            letters_by_language[_language_of_sentence(sentence, code)] += (
                _count_letters(sentence)
            )
    if not _is_brief(brief):
        letters_by_language[_language_of_sentence(brief, code)] += _count_letters(brief)
    del letters_by_language[""]
    total = letters_by_language.total()
    return Spoken(
        letters_by_language[code] / total if total else 1.0,
        total,
        tuple(sorted(letters_by_language.keys() - {code})),
    )


def _is_latin_reply(text: str, code: str) -> bool:
    """Return whether a reply is only in Latin letters although another script is expected.

    It has two words or more. Single letters are those of options and formulas; abbreviations
    ("DNA") and names without English small words ("Guido van Rossum") are written so in every
    language.
    """
    if in_script("a", code) or in_script(text, "en") < _count_letters(text):
        return False
    words = [word for word in _LATIN_WORD.findall(text) if len(word) > 1]
    if sum(not _ABBREVIATION.fullmatch(word) for word in words) < LATIN_REPLY_WORDS:
        return False
    segments = [segment.strip(" .*:") for segment in _BETWEEN_NAMES.split(text)]
    are_names = all(_NAME.fullmatch(segment) for segment in segments if segment)
    return not are_names or _ENGLISH_IN_NAMES.search(text) is not None


def _language_of_sentence(sentence: str, code: str) -> str:
    """Return the language of a sentence: `code` if it may be that, "" if it is unclear."""
    if speaks(sentence, code) or _has_foreign_terms(sentence, code):
        return code
    return identify(sentence)[0]


def _has_foreign_terms(sentence: str, code: str) -> bool:
    """Return whether a sentence in a non-Latin script only uses terms in Latin letters.

    It does if no small words connect them.
    """
    own_letters = in_script(sentence, code)
    if in_script("a", code) or own_letters < max(
        FEWEST_OWN_LETTERS, LEAST_OWN_SHARE * _count_letters(sentence)
    ):
        return False
    words = [
        word.casefold() for word in _LATIN_WORD.findall(sentence) if word.isascii()
    ]
    return sum(map(is_small_word, words)) * MOST_SMALL_WORDS <= len(words)


def _in_another_script(sentence: str, code: str) -> bool:
    """Return whether at least half of a text's letters are in neither its script nor the Latin one.

    It is for languages in another script than the Latin one; names are written in both.
    """
    if in_script("a", code):
        return False
    foreign = sum(
        char.isalpha()
        and not char.isascii()
        and not in_script(char, "en")
        and not in_script(char, code)
        for char in sentence
    )
    if code == "ja":  # Chinese characters are Japanese too
        foreign -= sum("\u3400" <= char <= "\u9fff" for char in sentence)
    return 2 * foreign >= max(1, _count_letters(sentence))


def _without_names(sentence: str, code: str) -> str:
    """Remove names and brackets in another script from a sentence that has other words."""
    latin = in_script("a", code) > 0
    if not latin and in_script(sentence, code):
        remaining = _NAME.sub(" ", _BRACKET.sub(" ", sentence))
    else:
        remaining = _BRACKET.sub(
            lambda bracket: (
                bracket.group()
                if 2 * in_script(bracket.group(), code)
                >= _count_letters(bracket.group())
                else " "
            ),
            sentence,
        )
    return remaining if _count_letters(remaining) else sentence


def _is_brief(text: str) -> bool:
    """Return whether a text may be a name, an option or a number, which are in every language."""
    if _NAME.fullmatch(text.strip(" .*:\n")):
        return True
    if _SPACELESS_LETTER.search(text):
        return _count_letters(text) < _FEWEST_LETTERS
    return len(_LATIN_WORD.findall(text)) < _FEWEST_WORDS


def _count_letters(text: str) -> int:
    return sum(map(str.isalpha, text))
