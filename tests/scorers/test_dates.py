"""Dates: common forms, ambiguous ones, and parts that are missing or different."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.dates import Date, find_dates, parse_date
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words
from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, Row, check, score

DAY = ("9 October 2024", "October 9, 2024", "2024-10-09")
ROWS: list[Row] = [
    (DAY, "2024-10-09", CORRECT, "ISO"),
    (DAY, "9 October 2024", CORRECT, "day first"),
    (DAY, "October 9, 2024", CORRECT, "month first"),
    (DAY, "October 9 2024", CORRECT, "month first without a comma"),
    (DAY, "Oct. 9, 2024", CORRECT, "an abbreviation"),
    (DAY, "9-Oct-2024", CORRECT, "with hyphens"),
    (DAY, "the 9th of October 2024", CORRECT, "an ordinal"),
    (DAY, "On October 9th, 2024, it began.", CORRECT, "an ordinal in a sentence"),
    (DAY, "Wednesday, 9 October 2024", CORRECT, "a weekday"),
    (DAY, "09/10/2024", CORRECT, "ambiguous: one reading matches"),
    (DAY, "10/09/2024", CORRECT, "ambiguous: the other reading matches"),
    (DAY, "9.10.2024", CORRECT, "with points"),
    (DAY, "2024/10/9", CORRECT, "year first with slashes"),
    (DAY, "2024年10月9日", CORRECT, "Chinese and Japanese"),
    (DAY, "2024년 10월 9일", CORRECT, "Korean"),
    (DAY, "9 octobre 2024", CORRECT, "French"),
    (DAY, "9. Oktober 2024", CORRECT, "German"),
    (DAY, "9 de octubre de 2024", CORRECT, "Spanish"),
    (
        DAY,
        "It was announced in 2023 and began on 9 October 2024.",
        CORRECT,
        "the full date, not the lone year",
    ),
    (DAY, "2024", INCORRECT, "only the year"),
    (DAY, "October 2024", INCORRECT, "no day"),
    (DAY, "9 October", INCORRECT, "no year"),
    (DAY, "9 October 2023", INCORRECT, "another year"),
    (DAY, "19 October 2024", INCORRECT, "another day"),
    (DAY, "9 November 2024", INCORRECT, "another month"),
    (DAY, "8 or 9 October 2024", INCORRECT, "two days"),
    (DAY, "9 October 2024 or 10 October 2024", INCORRECT, "two dates"),
    (DAY, "9 October 2024 to 11 October 2024", INCORRECT, "a range"),
    (DAY, "not 9 October 2024 but 10 October 2024", INCORRECT, "denied"),
    (DAY, "not 10 October 2024 but 9 October 2024", CORRECT, "the other one is denied"),
    (DAY, "I don't know", NOT_ATTEMPTED, "no answer"),
    (("14 June", "14 June 2025"), "14 June", CORRECT, "the year is not asked for"),
    (("14 June", "14 June 2025"), "June 14, 2025", CORRECT, "the year fits"),
    (("14 June", "14 June 2025"), "14 June 2024", INCORRECT, "the year does not fit"),
    ("March 2024", "in March 2024", CORRECT, "a month"),
    ("March 2024", "12 March 2024", CORRECT, "more than asked"),
    ("March 2024", "March 2023", INCORRECT, "another year"),
    ("1648", "24 October 1648", CORRECT, "only the year is asked for"),
    ("1648", "1649", INCORRECT, "another year"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_dates(row: Row) -> None:
    check(row, answer_type="date")


@given(st.dates(date(1000, 1, 1), date(2199, 12, 31)), st.dates(date(1000, 1, 1), date(2199, 12, 31)))
def test_every_form_of_a_date_is_that_date_and_no_other(day: date, other: date) -> None:
    month = day.strftime("%B")
    for form in (
        day.isoformat(),
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day.day} {month[:3]} {day.year}",
        f"{day.year}年{day.month}月{day.day}日",
    ):
        assert parse_date(plain(form)) == (Date(day.year, day.month, day.day),), form
        assert score(day.isoformat(), form, answer_type="date").label == CORRECT
        if other != day:
            assert score(other.isoformat(), form, answer_type="date").label == INCORRECT


@pytest.mark.parametrize(
    "text", ["it may 5 times", "2-1", "3.14.0", "17:30", "31 February", "version 1.2.2024.5"]
)
def test_what_is_no_date(text: str) -> None:
    assert not [found for found in find_dates(Words(text), years=False) if found.readings[0].day]
