"""Words as published scores split them: multilingual ROUGE, and F1 for Thai and Chinese.

They differ from those of `segmentation.py`: Thai by PyThaiNLP, Chinese by jieba, Burmese by
syllables, all other languages wherever letters, digits and signs meet. Multilingual ROUGE is that
of XL-Sum (Hasan et al. 2021). Thai and Chinese need the extra `published-words`.
"""

from __future__ import annotations

import re
import string
import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec

from evalwright.extend import MissingExtra, call_with_limits

LIBRARIES = {"th": "pythainlp", "zh": "jieba"}
"""The libraries that find words by a dictionary, by language."""
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LONG = 20_000


def require(language: str, feature: str) -> None:
    """Raise MissingExtra if the words of a language need a library that is not installed."""
    if language in LIBRARIES and find_spec(LIBRARIES[language]) is None:
        raise MissingExtra(
            f"{feature} for the language '{language}'",
            "published-words",
            LIBRARIES[language],
        )


def segmented(text: str, language: str) -> list[str]:
    """Split a text into words by PyThaiNLP's dictionary or by jieba.

    A long text is split in the bounded process.
    """
    if len(text) > _LONG:
        words: list[str] = call_with_limits(
            _segment_by_library, text, language, seconds=10.0
        )
        return words
    return _segment_by_library(text, language)


def _segment_by_library(text: str, language: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if language == "th":
            from pythainlp import word_tokenize

            return list(word_tokenize(text, engine="newmm"))
        import jieba

        jieba.setLogLevel("WARNING")
        return list(jieba.cut(text))


def answer_words(text: str, language: str) -> list[str]:
    """Return the words of F1: lower case, no ASCII punctuation; Thai and Chinese by dictionary."""
    if language in LIBRARIES:
        text = " ".join(segmented(text, language))
    return text.lower().translate(_NO_PUNCTUATION).split()


def rouge_words(text: str, language: str) -> list[str]:
    """Return the words of multilingual ROUGE: lower case, without punctuation.

    Thai is split by its dictionary, Burmese by syllables, Chinese into single characters, others
    where letters, digits and signs meet.
    """
    kept_text = "".join(
        " " if _is_space(char) else char
        for char in text.lower().strip()
        if not _is_dropped(char)
    )
    plain = " ".join(
        "".join(" " if _is_punctuation(char) else char for char in kept_text).split()
    )
    if language == "th":
        words = segmented(plain, "th")
    elif language == "my":
        words = _syllables(plain)
    else:
        words = []
    return [word for word in words if word] or _split_pieces(plain)


def _is_space(char: str) -> bool:
    return char in "\t\n\r" or unicodedata.category(char) == "Zs"


def _is_dropped(char: str) -> bool:
    return char == "\ufffd" or (
        unicodedata.category(char)[0] == "C" and char not in "\t\n\r"
    )


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char)[0] == "P"


def _split_pieces(text: str) -> list[str]:
    """Split into runs of letters or digits with combining marks, single signs, Han characters."""
    pieces: list[str] = []
    last = ""
    for char in text:
        category = "H" if _HAN.match(char) else unicodedata.category(char)[0]
        if category == "M" and last:
            pieces[-1] += char
            continue
        if category in "LNM" and category == last:
            pieces[-1] += char
        elif category != "Z":
            pieces.append(char)
        last = "" if category == "Z" else category
    return pieces


_HAN = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)
_ASAT = "\u103a"
_DOT = "\u1037"
_STACKED = "\u1039"
_DEPENDENT = frozenset(
    "\u102b\u102c\u102d\u102e\u102f\u1030\u1031\u1032"
    "\u1036\u1037\u1038\u103a\u103b\u103c\u103d\u103e"
)


def _syllables(text: str) -> list[str]:
    """Split into Burmese syllables (Ding et al. 2018).

    A syllable is a letter with its dependent signs and a following consonant marked as silent; a
    stack of consonants stays together.
    """
    units: list[str] = []
    for char in "".join(text.replace(_DOT + _ASAT, _ASAT + _DOT).split()):
        if units and char in _DEPENDENT:
            units[-1] += char
        else:
            units.append(char)
    for index in range(1, len(units)):
        if _ASAT in units[index] and len(units[index]) < 4:
            units[index - 1] += units[index]
            units[index] = ""
    return (
        " ".join(unit for unit in units if unit)
        .replace(f" {_STACKED} ", _STACKED)
        .split()
    )


def shared_f1(answer_tokens: Sequence[str], target_tokens: Sequence[str]) -> float:
    """F1 of two lists of words as multisets; 0 where one is empty."""
    common = (Counter(answer_tokens) & Counter(target_tokens)).total()
    if not common:
        return 0.0
    precision = common / len(answer_tokens)
    recall = common / len(target_tokens)
    return 2 * precision * recall / (precision + recall)


def f1_of_subsequence(
    target_tokens: Sequence[str], answer_tokens: Sequence[str]
) -> tuple[float, float, float]:
    """F1, precision and recall of the longest common subsequence of two lists of words."""
    common = _common_length(target_tokens, answer_tokens)
    if not common:
        return 0.0, 0.0, 0.0
    precision = common / len(answer_tokens)
    recall = common / len(target_tokens)
    return 2 * precision * recall / (precision + recall), precision, recall


def _common_length(target_tokens: Sequence[str], answer_tokens: Sequence[str]) -> int:
    """How many words the longest common subsequence has, by rows of bits (Hyyrö 2004): a bit is 0
    where it grows.
    """
    bits: dict[str, int] = {}
    for target_token_index, token in enumerate(target_tokens):
        bits[token] = bits.get(token, 0) | 1 << target_token_index
    full = (1 << len(target_tokens)) - 1
    row = full
    for token in answer_tokens:
        grown = row & bits.get(token, 0)
        row = (row + grown | row - grown) & full
    return len(target_tokens) - row.bit_count()
