"""Does a reply have the target among its words or numbers?"""

from __future__ import annotations

import re

from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scored
from evalwright.scorers.answers.name_targets import find_mentions, parse_name_targets
from evalwright.scorers.answers.reply import ParsedReply, parse_reply
from evalwright.scorers.answers.verdict import correct, incorrect
from evalwright.scorers.text.folded import fold_text
from evalwright.scorers.text.languages import language_of
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import find_numbers

MAX_CLAIM_CHARS = 8000
"""Characters of a claim whose numbers are read."""
_HANGUL_LETTER = re.compile("[가-힣]")
"""As a whole target: too short to be told inside of other words."""


def mentions(sample: Sample, answer: Answer) -> Scored:
    """1.0 where what the reply claims, or all of it if it marks no claim, mentions a target, else
    0.0.

    Labels "correct" and "incorrect". A target that is a number counts wherever its value stands;
    words count whole ("Seoul" in "Seoul is", not "eoul"), with case endings and particles.
    """
    claim = parse_reply(answer.text, sample.input)
    language = language_of(sample) or "en"
    right = any(_is_mentioned(target, claim, language) for target in sample.targets)
    verdict = correct if right else incorrect
    return verdict(claim.rule or "the whole reply").outcome()


def _is_mentioned(target: str, claim: ParsedReply, language: str) -> bool:
    target_numbers = find_numbers(plain(target), language)
    if len(target_numbers) == 1 and not any(map(str.isalpha, target)):
        return any(
            number.value == target_numbers[0].value
            for number in find_numbers(claim.text[:MAX_CLAIM_CHARS], language)
        )
    words = target.strip()
    if find_mentions(fold_text(claim.text), parse_name_targets((words,))):
        return True
    if _HANGUL_LETTER.fullmatch(words):
        return False
    literal = rf"(?<![\w])(?<!\d[.,]){re.escape(words)}(?![A-Za-z0-9]|[.,]\d)"
    return re.search(literal, claim.as_written, re.IGNORECASE) is not None
