"""Finds what no similarity may hide: another number or name, or a wrong exact answer.

"Built in 1889" and "built in 1899" are neighbours for every embedder and share most of their
characters. If the two numbers are written in one form, the answer is different, whatever the
measure says; if they are not ("2 kg", "2,000 grams"), and for names, rules cannot tell, and the
score is unsure.
"""

from __future__ import annotations

import re

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.short_answer import short_answer
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold

EXACT = ("name", "number", "date", "yes_no")
"""Kinds of answers that are either right or wrong, not more or less similar.

They are values of `metadata["answer_type"]`.
"""

_YES_OR_NO = frozenset(("yes", "no", "true", "false"))
_NOUNS_ARE_CAPITALISED = ("de", "lb")
_ENDS_SENTENCE = re.compile(r"(?:^|[.!?:;…\n])[\s\"'“„«(\[]*$")


def not_the_answer(sample: Sample, answer: Answer) -> Score | None:
    """Return the verdict of `short-answer` on an answer that must be exact.

    It is None if the answer is right or need not be exact.
    """
    kind = str(sample.metadata.get("answer_type") or "")
    yes_or_no = {
        target.casefold().strip(" .") for target in sample.targets
    } <= _YES_OR_NO
    if kind not in EXACT and (kind or not yes_or_no):
        return None
    verdict = short_answer(sample, answer)
    return None if verdict.label == "correct" else verdict


def conflict(target: str, text: str, question: str, language: str) -> tuple[str, bool]:
    """Find a number or name of the text that replaces one of the target.

    It is missing in the target and the question, and something of the target is missing in the
    text.

    Returns:
        The words that say so ("" for none), and whether it is certain.
    """
    target_words, text_words, question_words = (
        Words(plain(string)) for string in (target, text, question)
    )
    numbers = _find_numbers(text_words)
    expected_numbers = {*_find_numbers(target_words), *_find_numbers(question_words)}
    missing = [
        number for number in _find_numbers(target_words) if number not in numbers
    ]
    new_numbers = [number for number in numbers if number not in expected_numbers]
    if missing and new_numbers:
        certain = (
            len(missing) == len(new_numbers) == 1
            and len(missing[0]) == len(new_numbers[0]) >= 3
        )
        return (
            f"'{new_numbers[0]}' in place of '{missing[0]}'",
            certain and missing[0].isdigit() and new_numbers[0].isdigit(),
        )
    if language.split("-")[0] in _NOUNS_ARE_CAPITALISED:
        return "", False
    names = _find_names(target_words)
    lost = names and not any(_occurs(name, text_words) for name in names)
    new = [
        name
        for name in _find_names(text_words)
        if not _occurs(name, target_words) and not _occurs(name, question_words)
    ]
    return (
        (f"'{new[0]}' in place of '{names[0]}'", False) if lost and new else ("", False)
    )


def _find_numbers(words: Words) -> list[str]:
    """Return the numbers in digits, in ASCII and without thousands separators."""
    numbers = [token for token in words.tokens if token[:1].isdecimal()]
    return [
        "".join(str(int(c)) if c.isdecimal() else c for c in number if c != ",")
        for number in numbers
    ]


def _find_names(words: Words) -> list[str]:
    """Return the capitalised words; at the start of a sentence only before another one."""
    names = []
    for index, word in enumerate(words.cased):
        begins = (
            _ENDS_SENTENCE.search(words.text[: words.spans[index][0]][-8:]) is not None
        )
        followed = index + 1 < len(words.cased) and words.cased[index + 1][:1].isupper()
        if word[:1].isupper() and len(word) > 1 and (not begins or followed):
            names.append(word)
    return names


def _occurs(name: str, words: Words) -> bool:
    return fold(name.casefold().replace("'", "")) in words.folded_tokens
