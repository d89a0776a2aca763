"""Dates in a text: which forms are read, and what each may mean.

"2024-10-09", "9 October 2024", "the 9th of October, 2024", "Oct. 9, 2024", "October 2024", "9
October", "2024年10月9日". "09/10/2024" has two readings, and either may match. Which date of a
reply counts is decided in `scorers/answers/date_reader.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.text.cues import months
from evalwright.scorers.text.han_numerals import read_numerals
from evalwright.scorers.text.tokens import Words, word_list, word_set

MONTHS = months()
_ONES = word_list("first second third fourth fifth sixth seventh eighth ninth")
_TEENS = word_list(
    "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth"
    " eighteenth nineteenth twentieth"
)
_DAY_WORDS = {
    word: day
    for day, word in enumerate(
        [
            *_ONES,
            *_TEENS,
            *(f"twenty-{ordinal}" for ordinal in _ONES),
            "thirtieth",
            "thirty-first",
        ],
        1,
    )
}
_DAY_IN_WORDS = frozenset(word.split("-")[-1] for word in _DAY_WORDS)
_NAME = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")(?![^\W\d_])\.?"
_D = r"(?:0?[1-9]|[12]\d|3[01])"
_DAY_WORD_FORMS = sorted(
    (word.replace("-", "[ -]") for word in _DAY_WORDS), key=len, reverse=True
)
_DAY = rf"(?:{_D}|{'|'.join(_DAY_WORD_FORMS)})"
_M = r"(?:1[0-2]|0?[1-9])"
_Y = r"[12]\d{3}"
_LINK = r"(?:of |de |del |in |ng |พ\.ศ\. ?|ค\.ศ\. ?|ปี ?)?"
_LETTERS = "A-Za-zÀ-ɏЀ-ӿ"
"""Letters of scripts with spaces, which make a word of the digits beside them."""
_FORMS = tuple(
    re.compile(rf"(?<![{_LETTERS}\d_.,/-]){form}", re.IGNORECASE)
    for form in (
        rf"(?P<y>{_Y})\s?(?P<s>[-/.])\s?(?P<m>{_M})(?:\s?(?P=s)\s?(?P<d>{_D}))?(?!"
        rf"(?!T\d\d:)[\w/-]|\.\d)",
        rf"(?P<a>{_D})\s?(?P<s>[-/.])\s?(?P<b>{_D})\s?(?P=s)\s?(?:(?P<y>{_Y})|'?"
        rf"(?P<short>\d\d))(?![\w/-]|\.\d)",
        (
            rf"(?:ika-)?(?P<d>{_DAY})(?:st|nd|rd|th|er|º|o|\.)?,?[\s-](?:of |de |day of"
            r" |ng |di"
            rf" )?(?P<n>{_NAME})(?:,?[\s-]{_LINK}(?P<y>[12]\d{{3}}|[3-9]\d{{2}})(?!\w|[.,]\d))?"
        ),
        (
            rf"(?P<n>{_NAME})[\s-](?:the"
            rf" )?(?P<d>{_DAY})(?:st|nd|rd|th)?(?!\d|[.,:]\d|\s?%)(?:(?:,|\s|-)\s?(?:in"
            r" |of )?(?P<y>[12]\d{3}|[3-9]\d{2})(?!\w|[.,]\d))?"
        ),
        rf"(?P<n>{_NAME}),?[\s-](?:of |de )?(?P<y>{_Y})(?!\w|[.,]\d)",
        rf"(?P<y>{_Y})\s?[年년]\s?(?:(?P<m>{_M})\s?[月월])?\s?(?:(?P<d>{_D})\s?[日일号])?",
        rf"(?P<m>{_M})\s?[月월]\s?(?P<d>{_D})\s?[日일号]",
        rf"ngày (?P<d>{_D}) tháng (?P<m>{_M})(?: năm (?P<y>{_Y}))?(?!\w)",
        rf"(?P<m>{_M})/(?P<y>{_Y})(?![\w/]|[.,]\d)",
    )
)
"""y, m, d: numbers; n: a month's name; a, b: day and month in either order; short: a year without
its century.
"""
_YEAR = re.compile(
    rf"(?<![{_LETTERS}\d_.,:/-])(?:(?P<y>[12]\d{{3}})(?![{_LETTERS}\d]|[.,:/]\d|-\d)|(?<!\d)'"
    rf"(?P<short>\d\d)(?!\w))"
)
_ERA_BEGINS = {
    "明治": 1867,
    "大正": 1911,
    "昭和": 1925,
    "平成": 1988,
    "令和": 2018,
    "民國": 1911,
    "民国": 1911,
}
"""The year before the first of an era."""
_HAN = "〇零一二三四五六七八九十"
_MONTHS_IN_WORDS = {"시": "십", "유": "육"}
"""Korean numbers of months as they are said and not counted: "시월" is October, "유월" June."""
_SPELLED = re.compile(
    rf"(?P<era>{'|'.join(_ERA_BEGINS)})\s?(?P<number>元|\d{{1,3}}|[{_HAN}]{{1,4}})(?=年)"
    rf"|(?P<han>[{_HAN}]{{1,4}})(?=[年月日号])|(?<![가-힣])(?P<month>[시유])(?=월"
    r" ?(?:\d|[일이삼사오육칠팔구십]))|(?<![가-힣])"
    r"(?P<hangul>[영공일이삼사오육칠팔구십백천]{1,9})(?="
    r" ?[년월일])"
)
_ARABIC_ERA = re.compile(r"(?<=\d)م(?!\w)")
BUDDHIST_YEARS = range(2300, 2700)
"""Years of the Thai era, which count from 543 BC."""
_HINT = re.compile(
    r"\d\s?[-/.]\s?\d{1,2}\s?[-/.]|\d{4}\s?[-/.]\s?\d|\d\s?[年년]|\d/[12]\d"
)
"""What a date without a month's name has; looking for this first is much faster than for every
form.
"""
_COMMON_WORDS = word_set(
    "may mar march set dis des ago gen out dec mag mai maj mac mart"
)
MAX_DATES = 24
DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Date(NamedTuple):
    """A date as far as it is known; 0 for a part that is not."""

    year: int = 0
    month: int = 0
    day: int = 0

    @property
    def parts(self) -> int:
        """How many of the three parts are known."""
        return (self.year > 0) + (self.month > 0) + (self.day > 0)

    def covers(self, date: Date) -> bool:
        """Whether every part that `date` has is here, and the same."""
        return all(
            not theirs or mine == theirs
            for mine, theirs in zip(self, date, strict=True)
        )

    def conflicts(self, date: Date) -> bool:
        """Whether a part that both have differs."""
        return any(
            mine and theirs and mine != theirs
            for mine, theirs in zip(self, date, strict=True)
        )


@dataclass(frozen=True, slots=True)
class FoundDate:
    """A date in a text, with the readings that its form allows and its place."""

    readings: tuple[Date, ...]
    start: int
    end: int


def find_dates(found_words: Words, years: bool = True) -> list[FoundDate]:
    """All dates of a text in order, at most 24. years: whether a year that stands alone counts."""
    text, places = _write_in_digits(_ARABIC_ERA.sub(" ", found_words.text))
    if not any(map(str.isdigit, text)) and _DAY_IN_WORDS.isdisjoint(found_words.tokens):
        return []
    dates: list[FoundDate] = []
    hinted = (
        not text.isascii()
        or not MONTHS.keys().isdisjoint(found_words.tokens)
        or _HINT.search(text) is not None
    )
    for form in (*(_FORMS if hinted else ()), *((_YEAR,) if years else ())):
        for match in form.finditer(text):
            if len(dates) >= MAX_DATES:
                break
            readings = _possible_dates(match)
            start, end = (
                _place_in_original(position, places) for position in match.span()
            )
            if readings and not any(
                earlier.start < end and start < earlier.end for earlier in dates
            ):
                dates.append(FoundDate(readings, start, end))
    return _join_year_and_day(sorted(dates, key=lambda date: date.start))


def _write_in_digits(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A text with the numbers of East Asian dates in digits; for each replaced stretch, its end in
    the new text and in the old.
    """
    if text.isascii():
        return text, []
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    length = old_end = 0
    for match in _SPELLED.finditer(text):
        era = match["era"]
        number = match["number"] or match["han"] or match["hangul"]
        number = number or _MONTHS_IN_WORDS[match["month"]]
        if era is None:
            year_or_day = read_numerals(number)
        else:
            year_or_day = _ERA_BEGINS[era] + (
                1
                if number == "元"
                else int(number)
                if number.isdecimal()
                else read_numerals(number)
            )
        pieces += [text[old_end : match.start()], str(year_or_day)]
        length += len(pieces[-2]) + len(pieces[-1])
        old_end = match.end()
        places.append((length, old_end))
    return "".join([*pieces, text[old_end:]]), places


def _place_in_original(place: int, places: Sequence[tuple[int, int]]) -> int:
    """A place of the text that `_in_digits` returns, in the text that it was given."""
    shift = 0
    for end, old_end in places:
        if place < end:
            break
        shift = old_end - end
    return place + shift


def _join_year_and_day(dates: list[FoundDate]) -> list[FoundDate]:
    """A year and a day that stand apart ("1912, on 15 April") are one date."""
    if (
        len(dates) == 2
        and {date.readings[0].parts for date in dates} <= {1, 2}
        and not dates[0].readings[0].conflicts(dates[1].readings[0])
    ):
        first = dates[0].readings[0]
        two = dates[1].readings[0]
        return [
            FoundDate(
                (
                    Date(
                        *(
                            mine or theirs
                            for mine, theirs in zip(first, two, strict=True)
                        )
                    ),
                ),
                dates[0].start,
                dates[1].end,
            )
        ]
    return dates


def _possible_dates(match: re.Match[str]) -> tuple[Date, ...]:
    group = match.groupdict()
    name = (group.get("n") or "").casefold().rstrip(".")
    year = int(group.get("y") or 0)
    if group.get("s") == "." and not group.get("d") and "m" in group:
        return ()  # a decimal number
    if name and not year and group["n"].rstrip(".") in _COMMON_WORDS:
        return ()  # "it may 5 times"
    if year in BUDDHIST_YEARS and ("n" not in group or name[0] > "\u0e00"):
        year -= 543
    years = (
        (
            2000 + int(group["short"]),
            1900 + int(group["short"]),
            1800 + int(group["short"]),
        )
        if group.get("short")
        else (year,)
    )
    days: tuple[tuple[int, int], ...]
    if "a" in group:
        days = ((int(group["b"]), int(group["a"])), (int(group["a"]), int(group["b"])))
    else:
        day = (group.get("d") or "0").casefold().replace(" ", "-")
        month = MONTHS[name] if name else int(group.get("m") or 0)
        days = ((month, int(day) if day.isdecimal() else _DAY_WORDS[day]),)
    if (
        "short" not in group
        and "年" in match.re.pattern
        and days[0][1]
        and not days[0][0]
    ):
        return ()
    dates = (
        Date(candidate_year, *month_and_day)
        for candidate_year in years
        for month_and_day in days
    )
    valid_dates = [
        date
        for date in dates
        if date.month <= 12
        and (not date.day or date.day <= DAYS_IN_MONTH[date.month - 1])
    ]
    return tuple(dict.fromkeys(valid_dates))


@lru_cache(maxsize=4096)
def parse_date(text: str) -> tuple[Date, ...]:
    """The readings of a text that is nothing but a date; empty for any other."""
    text = re.sub(
        r"^(?:on |in )?(?:the )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?"
        r" )?(?:the )?|พ\.ศ\. ?|ค\.ศ\. ?",
        "",
        text.strip().removesuffix("."),
        flags=re.IGNORECASE,
    )
    dates = find_dates(Words(text))
    return (
        dates[0].readings
        if len(dates) == 1 and (dates[0].start, dates[0].end) == (0, len(text))
        else ()
    )


# -- which date a reply gives ----------------------------------------------------------
