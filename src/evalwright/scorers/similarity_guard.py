"""What no similarity may hide: another number, another name, or the contrary of yes or no.

"Built in 1889" and "built in 1899" are neighbours for every embedder and share most of their characters. So a text that
contradicts a target in a number or a name is never similar to it, whatever the measure says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.core.samples import Answer, Sample
from evalwright.scorers.numbers.agree import TargetNumber, Tolerance, agrees, read_tolerance
from evalwright.scorers.numbers.parse import Number, find_numbers
from evalwright.scorers.short_answer import short_answer
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.yes_no import polarity_of

EXACT = ("name", "number", "date", "yes_no")
"""Kinds of answers that are right or wrong and not more or less alike (`metadata["answer_type"]`)."""

_NOUNS_ARE_CAPITALISED = ("de", "lb")
_ENDS_SENTENCE = re.compile(r"(?:^|[.!?:;…\n])[\s\"'“„«(\[]*$")


def language_of(metadata: Mapping[str, Any]) -> str:
    """The language that a sample says it is in, "en" where it says none."""
    return str(metadata.get("language") or "en")


def not_the_answer(sample: Sample, answer: Answer) -> str:
    """Why an answer that must be exact is not right, by the rules of `short-answer`; "" where it is, or need not be exact."""
    metadata = sample.metadata
    kind = str(metadata.get("answer_type") or "")
    if kind not in EXACT and (kind or not polarity_of(sample.targets, language_of(metadata))):
        return ""
    verdict = short_answer(sample, answer)
    return "" if verdict.label == "correct" else verdict.explanation


def conflict(target: str, text: str, question: str, metadata: Mapping[str, Any]) -> str:
    """Which number or name of the text contradicts the target, in words; "" where none does.

    A contradiction has two sides: a number (or name) of the target that the text lacks, and one in the text that neither the
    target nor the question has. Numbers agree across notations, units and, with `metadata["tolerance"]`, within it. Names are
    read by their capitals: not in German and Luxembourgish, not in scripts without capitals, and not from the first word of a
    sentence alone. What cannot be read contradicts nothing.
    """
    wanted, given, asked = (Words(plain(part)) for part in (target, text, question))
    language = language_of(metadata)
    return _other_number(
        wanted, given, asked, language, read_tolerance(metadata.get("tolerance"))
    ) or _other_name(wanted, given, asked, language)


def _other_number(wanted: Words, given: Words, asked: Words, language: str, tolerance: Tolerance) -> str:
    targets, found, known = (_numbers(words, language) for words in (wanted, given, asked))
    missing = [one for one in targets if not any(_agree(other, one, tolerance) for other in found)]
    more = [one for one in found if not any(_agree(one, other, tolerance) for other in (*targets, *known))]
    if not missing or not more:
        return ""
    return f"{_shown(given, more[0])} in place of {_shown(wanted, missing[0])}"


def _numbers(words: Words, language: str) -> list[Number]:
    return [number for number in find_numbers(words, language) if not number.weak]


def _agree(found: Number, target: Number, tolerance: Tolerance) -> str:
    return agrees(found, TargetNumber(target.value, target.unit, target.digits), tolerance)


def _shown(words: Words, number: Number) -> str:
    return words.quote_between(number.start, max(number.end, number.unit_end))


def _other_name(wanted: Words, given: Words, asked: Words, language: str) -> str:
    if language.split("-")[0] in _NOUNS_ARE_CAPITALISED:
        return ""
    targets, found = _names(wanted), _names(given)
    missing = [name for name in targets if not _has(given, name)]
    more = [name for name in found if not _has(wanted, name) and not _has(asked, name)]
    if not missing or not more:
        return ""
    return f"'{' '.join(more[0])}' in place of '{' '.join(missing[0])}'"


def _names(words: Words) -> list[tuple[str, ...]]:
    """Runs of capitalised words; a single one at the beginning of a sentence is any word."""
    runs: list[tuple[str, ...]] = []
    run: list[str] = []
    opens = False
    for index, word in enumerate(words.cased):
        begins = _ENDS_SENTENCE.search(words.text[: words.spans[index][0]]) is not None
        if run and (begins or not word[:1].isupper() or words.gap(index).strip(" .'-&")):
            runs += [tuple(run)] if len(run) > 1 or not opens else []
            run = []
        if word[:1].isupper() and word.casefold() not in ("i", "i'm", "i'd", "i've", "i'll"):
            opens = opens if run else begins
            run.append(word)
    runs += [tuple(run)] if len(run) > 1 or (run and not opens) else []
    return runs


def _has(words: Words, name: tuple[str, ...]) -> bool:
    """Whether a word of the name stands in the text: "Curie" is no contradiction of "Marie Curie"."""
    there = set(words.folded_tokens)
    return any(fold(part.casefold().replace("'", "")) in there for part in name if len(part) > 1)
