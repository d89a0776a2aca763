"""What no similarity may hide: another number, another name, or an exact answer that is wrong.

"Built in 1889" and "built in 1899" are neighbours for every embedder and share most of their
characters. Where the two numbers are of one form, the answer is different, whatever the measure
says; where they are not ("2 kg", "2,000 grams"), and for names, rules cannot tell, and the score is
unsure.
"""

from __future__ import annotations

import re

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.short_answer import short_answer
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold

EXACT = ("name", "number", "date", "yes_no")
"""Kinds of answers that are right or wrong and not more or less alike (`metadata["answer_type"]`).
"""

_YES_OR_NO = frozenset(("yes", "no", "true", "false"))
_NOUNS_ARE_CAPITALISED = ("de", "lb")
_ENDS_SENTENCE = re.compile(r"(?:^|[.!?:;…\n])[\s\"'“„«(\[]*$")


def not_the_answer(sample: Sample, answer: Answer) -> Score | None:
    """What `short-answer` says of an answer that must be exact and is not certainly right; None
    where it is, or need not be.
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
    """Which number or name of the text stands in place of one of the target, and whether that is
    certain; ("", False): none.

    Two sides make a conflict: what the target has and the text lacks, and what the text has and
    neither the target nor the question.
    """
    wanted, given, asked = (Words(plain(part)) for part in (target, text, question))
    numbers = _numbers(given)
    known = {*_numbers(wanted), *_numbers(asked)}
    missing = [number for number in _numbers(wanted) if number not in numbers]
    more = [number for number in numbers if number not in known]
    if missing and more:
        certain = (
            len(missing) == len(more) == 1 and len(missing[0]) == len(more[0]) >= 3
        )
        return (
            f"'{more[0]}' in place of '{missing[0]}'",
            certain and missing[0].isdigit() and more[0].isdigit(),
        )
    if language.split("-")[0] in _NOUNS_ARE_CAPITALISED:
        return "", False
    names = _names(wanted)
    lost = names and not any(_occurs(name, given) for name in names)
    new = [
        name
        for name in _names(given)
        if not _occurs(name, wanted) and not _occurs(name, asked)
    ]
    return (
        (f"'{new[0]}' in place of '{names[0]}'", False) if lost and new else ("", False)
    )


def _numbers(words: Words) -> list[str]:
    """The numbers written in digits, those of other scripts in ours, without separators of
    thousands.
    """
    found = [token for token in words.tokens if token[:1].isdecimal()]
    return [
        "".join(str(int(c)) if c.isdecimal() else c for c in one if c != ",")
        for one in found
    ]


def _names(words: Words) -> list[str]:
    """The words with a capital; one that begins a sentence only where another one follows it."""
    found = []
    for index, word in enumerate(words.cased):
        begins = (
            _ENDS_SENTENCE.search(words.text[: words.spans[index][0]][-8:]) is not None
        )
        followed = index + 1 < len(words.cased) and words.cased[index + 1][:1].isupper()
        if word[:1].isupper() and len(word) > 1 and (not begins or followed):
            found.append(word)
    return found


def _occurs(name: str, words: Words) -> bool:
    return fold(name.casefold().replace("'", "")) in words.folded_tokens
