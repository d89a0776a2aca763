"""Decides which of a reply's dates is its answer, and whether it is a target.

The forms of a date are read in `scorers/text/dates.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.scorers.answers.reply import ParsedReply
from evalwright.scorers.answers.verdict import Verdict, correct, incorrect, unreadable
from evalwright.scorers.text.contrast import behind_turn, is_set_against
from evalwright.scorers.text.cues import cue_words, cues_of
from evalwright.scorers.text.dates import MONTHS, Date, FoundDate, find_dates
from evalwright.scorers.text.folded import FUNCTION_WORDS, fold_text
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import find_numbers
from evalwright.scorers.text.tokens import Words, fold

_CLAUSE = re.compile(
    r",\s(?=[^\W\d_])|[;(—|\n。]|\.\s|\s(?:and|und|et|y|e|и|та|i|ve|dan|và)\s"
)

BOUND_BEFORE = re.compile(
    r"(?:before|after|since|until|by|between|from|early|late|not|vor|nach|avant|apr[eè]s|antes"
    r"|despu[eé]s|до|после)\s+(?:the\s+)?$"
)

_BEFORE_CHRIST = re.compile(
    r"\s?(?:B\.?\s?C|v\. ?Chr|av\. ?J|a\. ?C|до н|p\.n\.e)", re.IGNORECASE
)

_BC_BEFORE = re.compile(r"(?:公元前|紀元前|기원전)\s?$")

_OTHER_CALENDAR = re.compile(r"単紀|단기|हिजरी|विक्रम|هـ|\bA\.?H\b")
"""Signs of a calendar that counts its years from another epoch."""

AROUND_CHARS = 24

_SENTENCE_PART = re.compile(r"[;!?。；！？]|\.\s")

MAX_SHORT_PAST_CHARS = 6

_RELATIVE = re.compile(
    r",\s(?:which|who|whose|that|having|where)\s[^,;.]*$", re.IGNORECASE
)
"""A relative clause that only adds information: "the war, which began in 1939, ended in 1945"."""


@dataclass(frozen=True)
class DateReader:
    """Judges replies against the target dates of one sample."""

    targets: Sequence[Date]
    question: str
    language: str

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge whether a reply, neither empty nor declining, gives a target date."""
        text = reply.text
        dates = find_dates(Words(text))
        if not dates:
            return _read_date_in_words(text, self.targets, self.language)
        dates = [
            date for date in dates if not is_set_against(text, date.start, date.end)
        ] or dates
        question_stems = {
            _stem_word(token)
            for token in fold_text(plain(self.question[:2000])).tokens
            if token not in FUNCTION_WORDS and len(token) > 2
        }
        date, is_firm = _choose_date(dates, reply, question_stems, self.targets)
        quoted = f"'{text[date.start : date.end]}'"
        before = text[max(0, date.start - AROUND_CHARS) : date.start].casefold()
        around = behind_turn(_SENTENCE_PART.split(before)[-1], cues_of(self.language))
        is_target = _covers_target(date, self.targets)
        is_denied = cues_of(self.language).denies(fold(around).split(), around[-4:])
        if is_denied or is_set_against(text, date.start, date.end):
            return incorrect(
                f"{quoted} is denied", "" if is_target else "a date that is denied"
            )
        if _BEFORE_CHRIST.match(text, date.end) or _BC_BEFORE.search(
            text[: date.start]
        ):
            return incorrect(f"{quoted} is before Christ")
        if is_target and BOUND_BEFORE.search(around):
            return incorrect(f"{quoted} is a bound", "a bound")
        if cues_of(self.language).offers(
            fold(around).split()[-3:], around[-4:]
        ) or _is_alternative(text, date, dates, self.language):
            return incorrect(
                f"{quoted} is one of several",
                "one of several days" if is_target else "",
            )
        rivals = [
            rival
            for rival in dates
            if rival is not date and _covers_target(rival, self.targets) != is_target
        ]
        if is_target:
            return correct(
                f"{quoted} is the target date",
                "several dates" if rivals and not is_firm else "",
            )
        if any(
            not reading.conflicts(target)
            for reading in date.readings
            for target in self.targets
        ):
            return incorrect(
                f"{quoted} is not the whole target", "not every part of the date"
            )
        if _OTHER_CALENDAR.search(text):
            return incorrect(f"{quoted} is another date", "another calendar")
        return incorrect(
            f"{quoted} is another date",
            "several dates" if rivals and not is_firm else "",
        )


def _covers_target(date: FoundDate, targets: Sequence[Date]) -> bool:
    return any(
        reading.covers(target) for reading in date.readings for target in targets
    )


def _is_alternative(
    text: str, date: FoundDate, dates: Sequence[FoundDate], language: str
) -> bool:
    """Return whether another date is offered right after this one: "1912 or 1913"."""
    following = next((later for later in dates if later.start >= date.end), None)
    if following is None or following.start - date.end > AROUND_CHARS:
        return False
    between = text[date.end : following.start]
    return cues_of(language).offers(fold(between.casefold()).split(), between)


def _stem_word(token: str) -> str:
    """Shorten a word so that its forms compare equal.

    It keeps the first four letters of a long word, the consonants of a short one ("sank",
    "sink"), and the verb of a short past tense ("ended" is "end").
    """
    if token.isascii() and len(token) <= MAX_SHORT_PAST_CHARS and token.endswith("ed"):
        token = token[:-1] if token.endswith("eed") else token[:-2]
    return (
        re.sub("[aeiou]", "", token)
        if token.isascii() and len(token) <= 5
        else token[:4]
    )


def _has_parts_of(reading: Date, target: Date) -> bool:
    """Return whether a date lacks no part that a target has."""
    return all(
        read_part or not target_part
        for read_part, target_part in zip(reading, target, strict=True)
    )


def _choose_date(
    dates: Sequence[FoundDate],
    reply: ParsedReply,
    question_stems: set[str],
    targets: Sequence[Date],
) -> tuple[FoundDate, bool]:
    """Choose the date that answers the question, and say whether that choice is certain.

    In this order: the only date; the only one in bold; the one that opens the reply; the one whose
    clause has most of the question's words; the first. Dates that lack a part which every target
    has are passed over.
    """
    text = reply.text
    complete = [
        date
        for date in dates
        if any(_has_parts_of(date.readings[0], target) for target in targets)
    ]
    dates = complete or dates
    if len({date.readings for date in dates}) == 1:
        return dates[0], True
    bold = [
        date
        for date in dates
        if len(reply.bold) == 1 and text[date.start : date.end] in reply.bold[0]
    ]
    if len(bold) == 1:
        return bold[0], True

    edges = [0, *(match.start() for match in _CLAUSE.finditer(text)), len(text)]
    shared = []
    is_alone = []
    for date in dates:
        start = max(edge for edge in edges if edge <= date.start)
        end = min((edge for edge in edges if edge >= date.end), default=len(text))
        tokens = fold_text(text[start : date.start] + " " + text[date.end : end]).tokens
        shared.append({_stem_word(token) for token in tokens} & question_stems)
        is_alone.append(
            all(not token.isalpha() or token in FUNCTION_WORDS for token in tokens)
        )
    if is_alone[0] and not _CLAUSE.search(text, 0, dates[0].start):
        return dates[0], True
    is_main = [
        not (
            _RELATIVE.search(text, 0, date.start)
            and text[date.end : date.end + 1] == ","
        )
        for date in dates
    ]
    best = max(
        range(len(dates)),
        key=lambda index: (len(shared[index]), is_main[index], -index),
    )
    others = [words for index, words in enumerate(shared) if index != best]
    return dates[best], all(words < shared[best] for words in others)


def _read_date_in_words(text: str, targets: Sequence[Date], language: str) -> Verdict:
    """Judge a reply whose date is written in words; only a correct date can be recognised."""
    tokens = [token.casefold() for token in Words(text).tokens]
    integers = (
        number
        for number in find_numbers(text, language)
        if number.value == int(number.value)
    )
    numbers = {int(number.value) for number in integers if not number.bound}
    named = {MONTHS[token] for token in tokens if token in MONTHS}
    for target in targets:
        if (
            target.year in numbers
            and (not target.month or named == {target.month})
            and (not target.day or target.day in numbers)
            and len(numbers) <= 2
        ):
            return correct("the target date in words")
    return unreadable(
        "no date that can be read", _doubt_about_words(text, targets, named, language)
    )


def _doubt_about_words(
    text: str, targets: Sequence[Date], named: set[int], language: str
) -> str:
    """Return why a reply without a readable date might still give one; "" if it cannot."""
    if language != "en":
        return "perhaps a date in words or in a form that is not read"
    numbers = find_numbers(text, language)
    integers = [number for number in numbers if number.value == int(number.value)]
    centuries = {(target.year - 1) // 100 + 1 for target in targets if target.year}
    if any(number.ordinal and number.value in centuries for number in integers):
        return "the century of the target, not its date"
    if any(
        target.parts == len(target)
        and f"{target.year}{target.month:02}{target.day:02}" in text
        for target in targets
    ):
        return "the target's digits without anything between them"
    if named:
        is_month = any(target.month in named for target in targets)
        return (
            "the month of the target, and no day or year that can be read"
            if is_month
            else ""
        )
    in_digits = [number for number in integers if not number.word]
    days = {target.day for target in targets if target.day}
    if any(number.value in days and not number.bound for number in in_digits):
        return "the day of the target, and no month or year that can be read"
    if any(number.word for number in integers):
        return "perhaps a date in words that are not read"
    return ""


def asks_for_date(question: str, language: str) -> bool:
    """Return whether a question asks when something happened, or for a year."""
    folded = fold(question[:2000].casefold())
    return not cue_words("when", language).isdisjoint(
        re.findall(r"[^\W\d_]+", folded)
    ) or any(year_word in folded for year_word in _YEAR_WORDS)


_YEAR_WORDS = (
    "年",
    "연도",
    "년",
    "언제",
    "ปี",
    "เมื่อ",
    "いつ",
    "ஆண்டு",
    "எப்போது",
    "वर्ष",
    "साल",
)
