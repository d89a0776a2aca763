"""Dates in a text: which forms are read, and what each may mean.

Examples: "2024-10-09", "9 October 2024", "the 9th of October, 2024", "Oct. 9, 2024", "October
2024", "9 October", "2024年10月9日". "09/10/2024" has two readings, and either may match. Which
date of a reply counts is decided in `scorers/answers/date_reader.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from evalwright.core.lazy import lazy_pattern
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
_DAY_WORD_FORMS = sorted(
    (word.replace("-", "[ -]") for word in _DAY_WORDS), key=len, reverse=True
)

# The parts of which the forms below are composed.
_LETTERS = "A-Za-zÀ-ɏЀ-ӿ"
"""Letters of scripts with spaces; digits next to one belong to a word."""
_DIGITS_OF_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_DIGITS_OF_MONTH = r"(?:1[0-2]|0?[1-9])"
_DIGITS_OF_YEAR = r"[12]\d{3}"
_DAY = rf"(?P<day>{_DIGITS_OF_DAY})"
_DAY_OR_WORD = rf"(?P<day>(?:{_DIGITS_OF_DAY}|{'|'.join(_DAY_WORD_FORMS)}))"
_MONTH = rf"(?P<month>{_DIGITS_OF_MONTH})"
_MONTH_NAME = (
    "(?P<name>(?:"
    + "|".join(sorted(MONTHS, key=len, reverse=True))
    + r")(?![^\W\d_])\.?)"
)
_YEAR = rf"(?P<year>{_DIGITS_OF_YEAR})"
_SHORT_YEAR = r"['’](?P<short_year>\d\d)(?!\w)"
_YEAR_BEHIND_DAY = rf"(?:(?P<year>[12]\d{{3}}|[3-9]\d{{2}})(?!\w|[.,]\d)|{_SHORT_YEAR})"
"""A year from 300 on, or one without its century."""
_BEFORE_YEAR = r"(?:of |de |del |in |ng |พ\.ศ\. ?|ค\.ศ\. ?|ปี ?)?"
_NOT_IN_WORD = r"(?![\w/-]|\.\d)"

_DATE_FORMS = {
    "2024-10-09": (
        rf"{_YEAR}\s?(?P<separator>[-/.])\s?{_MONTH}(?:\s?(?P=separator)\s?{_DAY})?"
        r"(?!(?!T\d\d:)[\w/-]|\.\d)"
    ),
    "09/10/2024": (
        rf"(?P<first>{_DIGITS_OF_DAY})\s?(?P<separator>[-/.])\s?"
        rf"(?P<second>{_DIGITS_OF_DAY})\s?(?P=separator)\s?"
        rf"(?:{_YEAR}|['’]?(?P<short_year>\d\d)){_NOT_IN_WORD}"
    ),
    "9th of October, 2024": (
        rf"(?:ika-)?{_DAY_OR_WORD}(?:st|nd|rd|th|er|º|o|\.)?,?[\s-]"
        rf"(?:of |de |day of |ng |di )?{_MONTH_NAME}"
        rf"(?:,?[\s-]{_BEFORE_YEAR}{_YEAR_BEHIND_DAY})?"
    ),
    "October the 9th, 2024": (
        rf"{_MONTH_NAME}[\s-](?:the )?{_DAY_OR_WORD}(?:st|nd|rd|th)?"
        rf"(?!\d|[.,:]\d|\s?%)(?:(?:,|\s|-)\s?(?:in |of )?{_YEAR_BEHIND_DAY})?"
    ),
    "October 2024": (
        rf"{_MONTH_NAME},?[\s-](?:of |de )?(?:{_YEAR}(?!\w|[.,]\d)|{_SHORT_YEAR})"
    ),
    "2024年10月9日": (
        rf"{_YEAR}\s?[年년]\s?(?:{_MONTH}\s?[月월])?\s?(?:{_DAY}\s?[日일号])?"
    ),
    "10月9日": rf"{_MONTH}\s?[月월]\s?{_DAY}\s?[日일号]",
    "ngày 9 tháng 10 năm 2024": (rf"ngày {_DAY} tháng {_MONTH}(?: năm {_YEAR})?(?!\w)"),
    "10/2024": rf"{_MONTH}/{_YEAR}(?![\w/]|[.,]\d)",
}
"""The forms in which a date is read, by example; earlier ones take precedence.

Groups: `first` and `second` are day and month in either order, `name` is a month's, `short_year` a
year without its century. To read another form, add a line with its groups.
"""
_PATTERNS = tuple(
    lazy_pattern(rf"(?<![{_LETTERS}\d_.,/-]){form}", re.IGNORECASE)
    for form in _DATE_FORMS.values()
)
_LONE_YEAR = lazy_pattern(
    rf"(?<![{_LETTERS}\d_.,:/-])"
    rf"(?:{_YEAR}(?![{_LETTERS}\d]|[.,:/]\d|-\d)|(?<!\d){_SHORT_YEAR})"
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
"""The year before the first year of each era."""
_HAN = "〇零一二三四五六七八九十"
_MONTHS_IN_WORDS = {"시": "십", "유": "육"}
"""Korean numbers of months that sound different from the numbers: "시월" October, "유월" June."""
_SPELLED = lazy_pattern(
    rf"(?P<era>{'|'.join(_ERA_BEGINS)})\s?(?P<number>元|\d{{1,3}}|[{_HAN}]{{1,4}})(?=年)"
    rf"|(?P<han>[{_HAN}]{{1,4}})(?=[年月日号])|(?<![가-힣])(?P<month>[시유])(?=월"
    r" ?(?:\d|[일이삼사오육칠팔구십]))|(?<![가-힣])"
    r"(?P<hangul>[영공일이삼사오육칠팔구십백천]{1,9})(?="
    r" ?[년월일])"
)
_ARABIC_ERA = lazy_pattern(r"(?<=\d)م(?!\w)")
BUDDHIST_YEARS = range(2300, 2700)
BUDDHIST_OFFSET = 543
"""Years of the Thai era count from 543 BC."""
_HINT = lazy_pattern(
    r"\d\s?[-/.]\s?\d{1,2}\s?[-/.]|\d{4}\s?[-/.]\s?\d|\d\s?[年년]|\d/[12]\d"
)
"""Matches where there may be a date without a month's name.

Looking for this first is much faster than trying every form.
"""
_COMMON_WORDS = word_set(
    "may mar march set dis des ago gen out dec mag mai maj mac mart"
)
MAX_DATES = 24
MAX_WORDS_BETWEEN = 5
"""Words between a year and the day that it belongs to: "15 April of the same year, 1912"."""
MAX_CHARS_BETWEEN = 60
"""Enough for so many words, and a bound on the work."""
_SENTENCE_END = lazy_pattern(r"[.!?]\s+(?=[^\Wa-zà-ÿа-я])|[。！？]")
"""The end of a sentence: an abbreviation, "Oct. of that year", has small letters behind it."""
_WEEKDAY_OR_ERA = lazy_pattern(
    r"^(?:on |in )?(?:the )?"
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,? )?(?:the )?|พ\.ศ\. ?|ค\.ศ\. ?",
    re.IGNORECASE,
)
_WORD_FOR_YEAR = lazy_pattern(r"(?<=\d) ?(?:r|roku|г|года?|р|року)$", re.IGNORECASE)
"""The Polish, Russian or Ukrainian word after a year: "3 maja 1997 r."."""
DAYS_IN_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class Date(NamedTuple):
    """A date; unknown parts are 0."""

    year: int = 0
    month: int = 0
    day: int = 0

    @property
    def parts(self) -> int:
        """Return how many parts are known."""
        return (self.year > 0) + (self.month > 0) + (self.day > 0)

    def covers(self, date: Date) -> bool:
        """Return whether this date has every known part of another one."""
        return all(
            not theirs or mine == theirs
            for mine, theirs in zip(self, date, strict=True)
        )

    def conflicts(self, date: Date) -> bool:
        """Return whether a part that both dates know differs."""
        return any(
            mine and theirs and mine != theirs
            for mine, theirs in zip(self, date, strict=True)
        )


@dataclass(frozen=True, slots=True)
class FoundDate:
    """A date in a text, with all readings of its form."""

    readings: tuple[Date, ...]
    start: int
    end: int


def find_dates(text_words: Words, years: bool = True) -> list[FoundDate]:
    """Find the dates of a text, in order, at most `MAX_DATES`.

    Args:
        text_words: the words of the text.
        years: whether a year alone counts.
    """
    text, replaced = _write_in_digits(_ARABIC_ERA.sub(" ", text_words.text))
    has_digits = any(map(str.isdigit, text))
    if not has_digits and _DAY_IN_WORDS.isdisjoint(text_words.tokens):
        return []

    may_have_day_or_month = (
        not text.isascii()
        or not MONTHS.keys().isdisjoint(text_words.tokens)
        or _HINT.search(text) is not None
    )
    patterns = [*_PATTERNS] if may_have_day_or_month else []
    if years:
        patterns.append(_LONE_YEAR)
    dates: list[FoundDate] = []
    for pattern in patterns:
        for match in pattern.finditer(text):
            if len(dates) >= MAX_DATES:
                break
            readings = _possible_dates(match)
            start = _place_in_original(match.start(), replaced)
            end = _place_in_original(match.end(), replaced)
            overlaps = any(date.start < end and start < date.end for date in dates)
            if readings and not overlaps:
                dates.append(FoundDate(readings, start, end))
    dates.sort(key=lambda date: date.start)
    if len(dates) == 2 and _stand_together(text_words.text, dates[0], dates[1]):
        return _join_year_and_day(dates)
    return dates


def _write_in_digits(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Write the numbers of East Asian dates in digits.

    Returns:
        The new text and, for each replaced number, where it ends in the new and in the old text.
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
        if number == "元":
            number_read = 1
        elif number.isdecimal():
            number_read = int(number)
        else:
            number_read = read_numerals(number)
        year_or_day = _ERA_BEGINS.get(era, 0) + number_read
        pieces += [text[old_end : match.start()], str(year_or_day)]
        length += len(pieces[-2]) + len(pieces[-1])
        old_end = match.end()
        places.append((length, old_end))
    return "".join([*pieces, text[old_end:]]), places


def _place_in_original(place: int, replaced: Sequence[tuple[int, int]]) -> int:
    """Map a position in a text from `_write_in_digits` back to the original text."""
    shift = 0
    for end, original_end in replaced:
        if place < end:
            break
        shift = original_end - end
    return place + shift


def _stand_together(text: str, first: FoundDate, second: FoundDate) -> bool:
    """Return whether only a few words of the same sentence are between two dates."""
    if second.start - first.end > MAX_CHARS_BETWEEN:
        return False
    # The stop of "10 April." is read as that of an abbreviated month.
    if _SENTENCE_END.search(text, max(0, first.end - 1), second.start + 1):
        return False
    between = text[first.end : second.start]
    return len(Words(between).tokens) <= MAX_WORDS_BETWEEN


def _join_year_and_day(dates: list[FoundDate]) -> list[FoundDate]:
    """Join a year and a day with words between them ("1912, on 15 April")."""
    first = dates[0].readings[0]
    second = dates[1].readings[0]
    if not {first.parts, second.parts} <= {1, 2} or first.conflicts(second):
        return dates

    readings = [
        _join(date, other_date)
        for date in dates[0].readings
        for other_date in dates[1].readings
        if not date.conflicts(other_date)
    ]
    return [FoundDate(tuple(dict.fromkeys(readings)), dates[0].start, dates[1].end)]


def _join(date: Date, other_date: Date) -> Date:
    """Return the known parts of both dates, the first date's if both have one."""
    pairs = zip(date, other_date, strict=True)
    return Date(*(in_first or in_second for in_first, in_second in pairs))


def _possible_dates(match: re.Match[str]) -> tuple[Date, ...]:
    """Return the dates that a match of a form may mean, likeliest first; () if it is no date."""
    groups = match.groupdict()
    name = (groups.get("name") or "").casefold().rstrip(".")
    year = int(groups.get("year") or 0)
    is_decimal = (
        groups.get("separator") == "." and not groups.get("day") and "month" in groups
    )
    if is_decimal:
        return ()
    has_year = year or groups.get("short_year")
    if name and not has_year and groups["name"].rstrip(".") in _COMMON_WORDS:
        return ()  # "it may 5 times"

    is_english = "name" in groups and name[0] <= "\u0e00"
    if year in BUDDHIST_YEARS and not is_english:
        year -= BUDDHIST_OFFSET
    days = _possible_days(groups, name)
    month, day = days[0]
    if "short_year" not in groups and "年" in match.re.pattern and day and not month:
        return ()
    dates = [
        Date(possible_year, *month_and_day)
        for possible_year in _possible_years(groups, year)
        for month_and_day in days
    ]
    return tuple(dict.fromkeys(filter(_is_in_calendar, dates)))


def _possible_years(groups: dict[str, str | None], year: int) -> tuple[int, ...]:
    """Return the possible years: several for a year without its century."""
    short_year = groups.get("short_year")
    if not short_year:
        return (year,)
    return tuple(century + int(short_year) for century in (2000, 1900, 1800))


def _possible_days(
    groups: dict[str, str | None], name: str
) -> tuple[tuple[int, int], ...]:
    """Return the possible months and days; for two numbers both orders, day before month first."""
    if "first" in groups:
        first = int(groups["first"] or 0)
        second = int(groups["second"] or 0)
        return ((second, first), (first, second))
    day = (groups.get("day") or "0").casefold().replace(" ", "-")
    month = MONTHS[name] if name else int(groups.get("month") or 0)
    return ((month, int(day) if day.isdecimal() else _DAY_WORDS[day]),)


def _is_in_calendar(date: Date) -> bool:
    if date.month > 12:
        return False
    return not date.day or date.day <= DAYS_IN_MONTH[date.month - 1]


@lru_cache(maxsize=4096)
def parse_date(text: str) -> tuple[Date, ...]:
    """Return the readings of a text that is only a date; () for any other text."""
    text = _WEEKDAY_OR_ERA.sub("", text.strip().removesuffix("."))
    text = _WORD_FOR_YEAR.sub("", text)
    dates = find_dates(Words(text))
    if len(dates) != 1 or (dates[0].start, dates[0].end) != (0, len(text)):
        return ()
    return dates[0].readings
