"""Dates in their common forms, in digits and with month names in several languages.

"2024-10-09", "9 October 2024", "the 9th of October, 2024", "Oct. 9, 2024", "October 2024", "9 October", "2024年10月9日". "09/10/2024"
has two readings, and either may match.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.text.cues import cues, last_revision, months
from evalwright.scorers.text.locate import Said
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

MONTHS = months()
_NAME = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")(?![^\W\d_])\.?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:[12]\d{3}|[3-9]\d{2})"
_ONES = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_DAY_WORDS = {
    **{word: day for day, word in enumerate([*_ONES, *["tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth", "twentieth"]], 1)},
    **{f"twenty-{word}": 20 + day for day, word in enumerate(_ONES, 1)},
    "thirtieth": 30,
    "thirty-first": 31,
}  # fmt: skip
_SPELLED_DAY = "|".join(sorted((word.replace("-", "[ -]") for word in _DAY_WORDS), key=len, reverse=True))
_ANY_DAY = rf"(?:{_DAY}|{_SPELLED_DAY})"
_DATE = re.compile(
    rf"(?<![\w.,/-])(?:ika-)?(?:"
    rf"(?P<y1>[12]\d{{3}})\s?(?P<s1>[-/.])\s?(?P<m1>0?[1-9]|1[0-2])(?:\s?(?P=s1)\s?(?P<d1>{_DAY}))?(?!(?!T\d\d:)[\w/-]|\.\d)"
    rf"|(?P<a2>{_DAY})\s?(?P<s2>[-/.])\s?(?P<b2>{_DAY})\s?(?P=s2)\s?(?P<y2>[12]\d{{3}})(?!\w|\.\d)"
    rf"|(?P<d3>{_ANY_DAY})(?:st|nd|rd|th|er|º|o|\.)?,?[\s-](?:of |de |day of |ng |di )?(?P<m3>{_NAME})(?:,?[\s-](?:of |de |del |in |ng |พ\.ศ\. ?|ค\.ศ\. ?|ปี ?)?(?P<y3>{_YEAR})(?![\w]|[.,]\d))?"
    rf"|(?P<m4>{_NAME})[\s-](?:the )?(?P<d4>{_ANY_DAY})(?:st|nd|rd|th)?(?!\d|[.,:]\d|\s?%)(?:(?:,|\s|-)\s?(?:in |of )?(?P<y4>{_YEAR})(?![\w]|[.,]\d))?"
    rf"|(?P<m5>{_NAME}),?[\s-](?:of |de )?(?P<y5>[12]\d{{3}})(?![\w]|[.,]\d)"
    rf"|(?P<y6>[12]\d{{3}})\s?[年년]\s?(?:(?P<m6>1[0-2]|0?[1-9])\s?[月월])?\s?(?:(?P<d6>{_DAY})\s?[日일])?"
    rf"|ngày (?P<d9>{_DAY}) tháng (?P<m9>1[0-2]|0?[1-9])(?: năm (?P<y9>[12]\d{{3}}))?(?!\w)"
    rf"|(?P<a7>{_DAY})(?P<s7>[-/.])(?P<b7>{_DAY})(?P=s7)(?P<y7>\d{{2}})(?![\w/-]|\.\d)"
    rf")",
    re.IGNORECASE,
)
_MONTH_OF_YEAR = re.compile(r"(?<![\w.,/-])(?P<month>0?[1-9]|1[0-2])/(?P<year>[12]\d{3})(?![\w/]|[.,]\d)")
_BASIC = re.compile(r"\s*(?P<year>[12]\d{3})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])[\s.]*")
_BUDDHIST = 543
"""Years of the Thai era count from 543 BC."""
_YEAR_ALONE = re.compile(r"(?<![\w.,:/-])(?P<year>[12]\d{3})(?![\w]|[.,:/]\d|-\d)")
_DAY_IN_WORDS = frozenset(word.split("-")[-1] for word in _DAY_WORDS)
_DIGIT = re.compile(r"\d")
_HINT = re.compile(r"\d\s?[-/.]\s?\d{1,2}\s?[-/.]|\d{4}\s?[-/.]\s?\d|\d\s?[年년]")
"""What a date without a month's name has; looking for this first is much faster than for every form."""
_MOST = 24


class Date(NamedTuple):
    """A date as far as it is known; 0 for a part that is not."""

    year: int = 0
    month: int = 0
    day: int = 0

    @property
    def parts(self) -> int:
        """How many of the three parts are known."""
        return (self.year > 0) + (self.month > 0) + (self.day > 0)

    def covers(self, other: Date) -> bool:
        """Whether every part that `other` has is here, and the same."""
        return all(not theirs or mine == theirs for mine, theirs in zip(self, other, strict=True))

    def conflicts(self, other: Date) -> bool:
        """Whether a part that both have differs."""
        return any(mine and theirs and mine != theirs for mine, theirs in zip(self, other, strict=True))


@dataclass(frozen=True, slots=True)
class Found:
    """A date in a text, with the readings that its form allows and its place."""

    readings: tuple[Date, ...]
    start: int
    end: int


def find_dates(words: Words, years: bool = True) -> list[Found]:
    """All dates of a text in order, at most 24. years: whether a year that stands alone counts."""
    text = words.text
    if _DIGIT.search(text) is None and _DAY_IN_WORDS.isdisjoint(words.tokens):
        return []
    if years and (basic := _BASIC.fullmatch(text)) is not None:
        return [Found((Date(*map(int, basic.groups())),), *basic.span())]
    found: list[Found] = []
    hinted = (
        not text.isascii() or not MONTHS.keys().isdisjoint(words.tokens) or _HINT.search(text) is not None
    )
    for match in _DATE.finditer(text) if hinted else ():
        readings = _readings(match)
        if readings and not _is_common_word(match):
            found.append(Found(readings, *match.span()))
        if len(found) == _MOST:
            return found
    if years:
        found += [
            Found((Date(int(match["year"]), int(match["month"])),), *match.span())
            for match in (_MONTH_OF_YEAR.finditer(text) if "/" in text else ())
        ]
        taken = [(one.start, one.end) for one in found]
        for match in _YEAR_ALONE.finditer(text):
            if not any(start <= match.start() < end for start, end in taken):
                found.append(Found((Date(int(match.group("year"))),), *match.span()))
            if len(found) == _MOST:
                break
        found.sort(key=lambda one: one.start)
    return found


@lru_cache(maxsize=4096)
def parse_date(text: str) -> tuple[Date, ...]:
    """The readings of a text that is nothing but a date; empty for any other."""
    text = text.strip().removesuffix(".")
    text = re.sub(
        r"^(?:on |in )?(?:the )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?(?:the )?",
        "",
        text,
        flags=re.IGNORECASE,
    )
    found = find_dates(Words(text))
    if len(found) == 1 and found[0].start == 0 and found[0].end == len(text):
        return found[0].readings
    return ()


def _readings(match: re.Match[str]) -> tuple[Date, ...]:
    group = match.groupdict()
    if group["y1"]:
        if group["s1"] == "." and not group["d1"]:
            return ()  # a decimal number
        return _valid(Date(int(group["y1"]), int(group["m1"]), int(group["d1"] or 0)))
    if group["y2"]:
        first, second, year = int(group["a2"]), int(group["b2"]), int(group["y2"])
        return _valid(Date(year, second, first), Date(year, first, second))
    if group["m3"]:
        found = Date(int(group["y3"] or 0), _month(group["m3"]), _day(group["d3"]))
        thai = found.year > 2300 and group["m3"][0] > "\u0e00"
        return _valid(found._replace(year=found.year - _BUDDHIST) if thai else found)
    if group["m4"]:
        return _valid(Date(int(group["y4"] or 0), _month(group["m4"]), _day(group["d4"])))
    if group["m9"]:
        return _valid(Date(int(group["y9"] or 0), int(group["m9"]), int(group["d9"])))
    if group["y7"]:
        first, second, short = int(group["a7"]), int(group["b7"]), int(group["y7"])
        days = ((second, first), (first, second))
        return _valid(*(Date(century + short, *day) for century in (2000, 1900) for day in days))
    if group["m5"]:
        return _valid(Date(int(group["y5"]), _month(group["m5"])))
    if not group["m6"] and group["d6"]:
        return ()
    return _valid(Date(int(group["y6"]), int(group["m6"] or 0), int(group["d6"] or 0)))


_COMMON_WORDS = frozenset(
    ("may", "mar", "march", "set", "dis", "des", "ago", "gen", "out", "dec", "mag", "mai")
)


def _is_common_word(match: re.Match[str]) -> bool:
    """Whether a day and a month without a year may be other words: "it may 5 times"."""
    name = match.group("m3") or match.group("m4")
    year = match.group("y3") or match.group("y4")
    return name is not None and not year and name.rstrip(".") in _COMMON_WORDS


def _day(text: str) -> int:
    return int(text) if text.isdecimal() else _DAY_WORDS[text.casefold().replace(" ", "-")]


def _month(name: str) -> int:
    return MONTHS[name.casefold().rstrip(".")]


_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _valid(*dates: Date) -> tuple[Date, ...]:
    kept = [
        date for date in dates if date.month <= 12 and (not date.day or date.day <= _DAYS[date.month - 1])
    ]
    return tuple(dict.fromkeys(kept))


def judge_date(said: Said, targets: Sequence[Date], language: str) -> Verdict:
    """Whether the answer surely gives a target date, or another."""
    change = last_revision(said.text)
    text = said.text[change[1] :] if change is not None and not said.marked else said.text
    found = find_dates(Words(text))
    first = re.split(r",\s(?=[^\W\d_])|[;(]|\.\s", text, maxsplit=1)[0]
    if len(found) > 1 and len(first.split()) <= 6 and len(find_dates(Words(first))) == 1:
        found, text = find_dates(Words(first)), first
    if len(found) > 1 and len(said.bold) == 1 and find_dates(Words(said.bold[0])):
        found, text = find_dates(Words(said.bold[0])), said.bold[0]
    if not found:
        return undecided("no date that can be read")
    readings = {reading for date in found for reading in date.readings}
    shown = f"'{text[found[0].start : found[0].end]}'"
    around = text[max(0, found[0].start - 24) : found[0].start].casefold()
    if re.search(r"\d\.?\s?(?:-|–|or|to|and|oder|bis|und|/)\s?$", around):
        return undecided(f"{shown} is one of several days")
    if "?" in text or cues(language).denies(around.split(), around[-4:]) or _BOUND.search(around):
        return undecided(f"{shown} is denied, a bound or a question")
    if len(found) > 1 and cues(language).offers(text.casefold().split(), text):
        return undecided("several dates")
    right = {
        reading
        for reading in readings
        if any(reading.covers(target) and not _narrowed(reading, target, targets) for target in targets)
    }
    if (
        len(found) > 1
        and right != readings
        and (right.isdisjoint(found[0].readings) or found[1].start - found[0].end < 8)
    ):
        return undecided("several dates")
    if right:
        return correct(f"{shown} is the target date")
    if any(
        not reading.conflicts(target) and not reading.covers(target)
        for reading in readings
        for target in targets
    ):
        return undecided(f"{shown} has not every part of the target")
    if (
        len(found) > 1
        or len(text.split()) > 14
        or not any(reading.parts >= one.parts for reading in readings for one in targets)
    ):
        return undecided(f"{shown} may be one date of several, or a part of one")
    if _OFFSET.search(text.casefold()):
        return undecided(f"{shown}, and what is said from it on")
    return incorrect(f"{shown} is another date")


def _narrowed(reading: Date, target: Date, targets: Sequence[Date]) -> bool:
    """Whether an alias says more than a target, and the reading is not as it says ("14 June 2024" for "14 June", "14 June 2025")."""
    return any(other.covers(target) and reading.conflicts(other) for other in targets)


_OFFSET = re.compile(r"\b(?:later|earlier|following|next|previous|tags darauf|später|suivant|siguiente)\b")


_BOUND = re.compile(
    r"(?:before|after|since|until|by|around|about|circa|between|from|early|late|not|ca\.?|vor|nach|avant|apr[eè]s|antes|despu[eé]s|до|после)\s+(?:the\s+)?$"
)
