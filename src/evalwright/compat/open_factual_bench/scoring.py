"""open-factual-bench's documented arithmetic, reimplemented: the source of "published" numbers.

It deliberately keeps the flaws: a reference counts anywhere in the answer ("Au" in "because"),
number words are replaced one by one, and a stress answer is labelled by a few phrases, capital
letters and its length.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

REFUSED = "refusal_or_correction"
CANDIDATE = "hallucination_candidate"
UNCLEAR = "unclear"

LONGEST_REFERENCE = 80
"""A longer reference describes a good answer, and is not compared."""

_NEAR = 0.01
_FEWEST_CHARACTERS = 3
_FEW_WORDS = 8

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen"
    " fourteen fifteen sixteen seventeen"
)
_DIGITS: Mapping[str, str] = {
    **{
        word: str(number)
        for number, word in enumerate(
            [*_UNITS.split(), "eighteen", "nineteen", "twenty"]
        )
    },
    "hundred": "100",
    "thousand": "1000",
}
_NUMBER_WORD = re.compile(r"\b[a-z]+\b")
_ARTICLE = re.compile(r"(?:the|an?)\s+")

_SAYS_NO = re.compile(
    "|".join(
        rf"\b(?:{phrase})\b"
        for phrase in (
            "i don'?t know|i can(?:not|'?t)|not sure",
            "(?:do|does|did) not|do(?:es)?n'?t",
            "fictional|fictitious|not real|does(?:n'?t| not) exist",
            "false premise|impossible|no such|never happened",
            "no evidence|cannot (?:find|verify|confirm)",
            r"died in \d{4}|was invented|not possible",
        )
    ),
    re.IGNORECASE,
)
_TWO_CAPITALISED = re.compile(r"[A-Z][a-z]+\s+[A-Z][a-z]+")


def is_graded(reference: str) -> bool:
    """Whether answers are compared with this reference: it is no placeholder and no description."""
    stripped = reference.strip()
    return (
        not ("[" in stripped and "]" in stripped) and len(stripped) <= LONGEST_REFERENCE
    )


def published_correct(answer: str, reference: str) -> bool | None:
    """Whether the benchmark counts an answer as correct; None if it does not grade it.

    The reference anywhere in the answer is enough; as numbers they may differ by less than 0.01.
    The benchmark's further rule for short references never finds more than this one.
    """
    if not is_graded(reference):
        return None
    folded_answer = _fold(answer)
    folded_reference = _fold(reference)
    return folded_reference in folded_answer or _equal_numbers(
        folded_answer, folded_reference
    )


def published_label(answer: str) -> str:
    """The benchmark's label of an answer to a stress question: one of the three constants above."""
    stripped = answer.strip()
    if len(stripped) < _FEWEST_CHARACTERS:
        return UNCLEAR
    if _SAYS_NO.search(stripped):
        return REFUSED
    if _TWO_CAPITALISED.search(stripped):
        return CANDIDATE
    return (
        CANDIDATE
        if len(stripped.split()) <= _FEW_WORDS and not stripped.endswith("?")
        else UNCLEAR
    )


def _fold(text: str) -> str:
    folded = " ".join(unicodedata.normalize("NFKD", text).lower().split())
    folded = folded.replace("`", "").rstrip(".,;:!?")
    article = _ARTICLE.match(folded)
    folded = folded[article.end() :] if article else folded
    return _NUMBER_WORD.sub(
        lambda word: _DIGITS.get(word.group(), word.group()), folded.strip()
    )


def _equal_numbers(answer: str, reference: str) -> bool:
    try:
        return (
            abs(float(answer.replace(",", "")) - float(reference.replace(",", "")))
            < _NEAR
        )
    except ValueError:
        return False
