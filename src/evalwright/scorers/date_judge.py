"""Is the date in the answer the target?"""

from __future__ import annotations

import re

from evalwright.scorers.abstention import abstains
from evalwright.scorers.assertion import unasserted
from evalwright.scorers.dates import Date, Found, find_dates
from evalwright.scorers.polarity import negated, taken_back
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.verdict import Verdict, correct, incorrect, not_attempted

_OTHER_DAY = re.compile(r"\d(?:st|nd|rd|th)?\s*(?:or|to|and|-|–|/)\s*(?:the )?$", re.IGNORECASE)
_END_OF_RANGE = re.compile(r"\b(?:between|from)\b[^.;!?]{1,40}\b(?:and|to)\s+(?:the\s+)?$", re.IGNORECASE)
_BOUND = re.compile(r"\b(?:before|after|prior to|later than|earlier than)\s+(?:the\s+)?$", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|from|either)\s+(?:the\s+)?$", re.IGNORECASE)


def judge_date(
    words: Words, targets: tuple[Date, ...], question: str, language: str = "en"
) -> Verdict | None:
    """Whether the answer gives one of the dates; None where there is no date in it and it does not abstain."""
    found = find_dates(words)
    asked = {reading for date in find_dates(Words(plain(question[:1000]))) for reading in date.readings}
    kept = [date for date in found if asked.isdisjoint(date.readings)] or found
    if not kept:
        if abstention := abstains(words):
            return not_attempted(f"gives no answer: {abstention}", abstention)
        return None
    fewest = min(date.parts for date in targets)
    full = [date for date in kept if max(reading.parts for reading in date.readings) >= fewest]
    reason = ""
    for position, date in enumerate(full or kept):
        shown = words.quote_between(date.start, date.end)
        place = _tokens_between(words, date)
        if denial := negated(words, place, language):
            reason = f"{shown} is denied by {denial}"
            continue
        if why := unasserted(words, place, question, names=False):
            reason = f"{shown} is {why}"
            continue
        following = full[position + 1 : position + 2]
        if following and taken_back(words, place):
            reason = f"{shown} is taken back"
            continue
        if not _agrees(date, targets):
            return incorrect(f"{shown} is not the date" + ("" if full else ", or not all of it"), shown)
        if _one_of_several(words, date, following, targets):
            return incorrect(f"{shown} is a bound or one of several dates", shown)
        return correct(f"{shown} is the date", shown)
    return incorrect(reason or "no date in the answer")


def _one_of_several(words: Words, date: Found, following: list[Found], targets: tuple[Date, ...]) -> bool:
    before = words.text[max(0, date.start - 48) : date.start]
    if _OTHER_DAY.search(before) is not None or _END_OF_RANGE.search(before) is not None:
        return True
    if _BOUND.search(before) is not None:
        return True
    if not following or _agrees(following[0], targets):
        return False
    between = words.text[date.end : following[0].start].strip()
    opened = _BETWEEN.search(words.text[max(0, date.start - 20) : date.start]) is not None
    return between in ("or", "to", "-", "–", "/") or (between == "and" and opened)


def _agrees(found: Found, targets: tuple[Date, ...]) -> bool:
    """Whether a reading has all parts of a target and contradicts none of the fullest targets.

    An alias without a year ("14 June") does not let another year in where a fuller alias names one.
    """
    most = max(target.parts for target in targets)
    fullest = [target for target in targets if target.parts == most]
    return any(
        reading.covers(target) and any(not reading.conflicts(full) for full in fullest)
        for reading in found.readings
        for target in targets
    )


def _tokens_between(words: Words, date: Found) -> tuple[int, int]:
    inside = [
        index for index, (start, end) in enumerate(words.spans) if start < date.end and end > date.start
    ]
    return inside[0], inside[-1] + 1
