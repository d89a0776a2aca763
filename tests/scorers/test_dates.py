"""Dates: common forms, ambiguous ones, and parts that are missing or different."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.text.dates import Date, find_dates, parse_date
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words
from scorers.scoring import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    UNREADABLE,
    UNSURE_CORRECT,
    UNSURE_INCORRECT,
    label_of,
    reading_of,
)

DAY = ("9 October 2024", "October 9, 2024", "2024-10-09")
ROWS = [
    *((DAY, form, CORRECT) for form in (
        "2024-10-09", "9 October 2024", "October 9 2024", "Oct. 9, 2024", "9-Oct-2024", "the 9th of October 2024", "On October 9th, 2024, it began.",
        "Wednesday, 9 October 2024", "09/10/2024", "10/09/2024", "9.10.2024", "2024/10/9", "2024年10月9日", "2024년 10월 9일", "9 octobre 2024",
        "9. Oktober 2024", "9 de octubre de 2024",
    )),
    *((DAY, form, UNSURE_INCORRECT) for form in (
        "2024", "October 2024", "9 October", "8 or 9 October 2024", "9 October 2024 or 10 October 2024", "before 9 October 2024",
    )),
    (DAY, "9 October 2024 to 11 October 2024", UNSURE_CORRECT),
    (DAY, "no date", UNREADABLE),
    (DAY, "9 October 2024 BC", INCORRECT),
    *((DAY, form, INCORRECT) for form in ("the day after 8 October 2024", "9 October 2023", "19 October 2024", "9 November 2024")),
    (DAY, "I don't know", NOT_ATTEMPTED),
    (("14 June", "14 June 2025"), "14 June", CORRECT),

    ("March 2024", "12 March 2024", CORRECT),
    ("1648", "24 October 1648", CORRECT),
    ("1648", "1649", INCORRECT),
]  # fmt: skip


@pytest.mark.parametrize(
    ("targets", "reply", "label"), ROWS, ids=[row[1] for row in ROWS]
)
def test_dates(targets: tuple[str, ...], reply: str, label: str) -> None:
    assert reading_of(targets, reply, answer_type="date") == label


@pytest.mark.parametrize(
    ("target", "reply", "label"),
    [
        ("10월 9일", "10월 9일입니다.", "correct"),
        ("10월 9일", "10월 3일입니다. 10월 9일은 개천절입니다.", "incorrect"),
        ("10월 9일", "한글날은 10월 9일이고 개천절은 10월 3일입니다.", "correct?"),
        ("10月1日", "每年的十月一日。", "correct"),
        ("1949年", "成立于一九四九年十月一日。", "correct"),
        ("2019年5月1日", "令和元年五月一日です。", "correct"),
        ("1949年", "１９４９年", "correct"),
        ("10月9日", "答えは10月3日です。", "incorrect"),
    ],
)
def test_east_asian_dates(target: str, reply: str, label: str) -> None:
    assert reading_of((target,), reply) == label


@pytest.mark.parametrize(
    "target",
    ["3 maja 1997 r.", "3 maja 1997 roku", "3 мая 1997 года", "3 травня 1997 р."],
)
def test_a_target_with_the_word_for_year_is_a_date(target: str) -> None:
    assert reading_of((target,), "1997-05-03") == CORRECT
    assert reading_of((target,), target) == CORRECT
    assert reading_of((target,), target.replace("1997", "1998")) == INCORRECT


@pytest.mark.parametrize(
    ("target", "reply", "label"),
    [
        ("1997-05-03", "3 May '97", CORRECT),
        ("1997-05-03", "3 May '98", INCORRECT),
    ],
)
def test_a_year_without_its_century_apart_from_the_day(
    target: str, reply: str, label: str
) -> None:
    assert reading_of((target,), reply) == label


@pytest.mark.parametrize(
    ("text", "date_read"),
    [
        ("May '97", Date(1997, 5)),
        ("May ’97", Date(1997, 5)),
        ("Oct. '97", Date(1997, 10)),
        ("May, '12", Date(2012, 5)),
        ("5 May '97", Date(1997, 5, 5)),
        ("May 5, '97", Date(1997, 5, 5)),
        ("the 5th of May '97", Date(1997, 5, 5)),
    ],
)
def test_a_month_before_a_year_without_its_century(text: str, date_read: Date) -> None:
    """The two digits are the year, of which the day has no part."""
    assert date_read in parse_date(text)
    assert all(reading[1:] == date_read[1:] for reading in parse_date(text))


def test_days_beside_years_without_their_century_keep_their_own() -> None:
    first, second = find_dates(Words("5 May '12 and 6 June '13"))
    assert Date(2012, 5, 5) in first.readings
    assert Date(2013, 6, 6) in second.readings


APART = [
    ("1912, on 15 April", 1),
    ("In 1912, on the 15th of April, it sank.", 1),
    ("15 April, in the year 1912", 1),
    ("It sank on 15 April of the same year, 1912.", 1),
    ("The year was 1912 and the day was 15 April.", 1),
    ("Year: 1912\nDay: 15 April", 1),
    ("It left on 10 April. The inquiry ended in 1913.", 2),
    ("He was born in 1912! His name day is 15 April.", 2),
    (
        "Built in 1909 by three thousand workers in the yards of Belfast, it sank on 15 April.",
        2,
    ),
    ("1912年に大きな造船所で作られた有名な船は、4月15日に沈んだ。", 2),
]
"""Texts with a year and a day, and how many dates they name; labelled before they were read."""


@pytest.mark.parametrize(("text", "count"), APART)
def test_a_year_and_a_day_are_one_date_only_where_they_stand_together(
    text: str, count: int
) -> None:
    dates = find_dates(Words(text))
    assert len(dates) == count, dates
    if count == 1:
        assert dates[0].readings[0] == Date(1912, 4, 15)


POLISH = "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień"
POLISH_OF = "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia"
POLISH_IN = "styczniu lutym marcu kwietniu maju czerwcu lipcu sierpniu wrześniu październiku listopadzie grudniu"
RUSSIAN = (
    "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь"
)
RUSSIAN_OF = (
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
)
RUSSIAN_IN = (
    "январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре"
)
UKRAINIAN = "січень лютий березень квітень травень червень липень серпень вересень жовтень листопад грудень"
UKRAINIAN_OF = "січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня"
UKRAINIAN_IN = "січні лютому березні квітні травні червні липні серпні вересні жовтні листопаді грудні"


@pytest.mark.parametrize(
    "names",
    [
        POLISH, POLISH_OF, POLISH_IN, RUSSIAN, RUSSIAN_OF, RUSSIAN_IN, UKRAINIAN, UKRAINIAN_OF, UKRAINIAN_IN,
    ],
)  # fmt: skip
def test_months_are_known_in_each_case(names: str) -> None:
    for month, name in enumerate(names.split(), 1):
        assert parse_date(f"{name} 1997") == (Date(1997, month),), name


@given(
    st.dates(date(1000, 1, 1), date(2199, 12, 31)),
    st.dates(date(1000, 1, 1), date(2199, 12, 31)),
)
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
        assert label_of(day.isoformat(), form, answer_type="date") == CORRECT
        if other != day:
            assert label_of(other.isoformat(), form, answer_type="date") == INCORRECT


@pytest.mark.parametrize(
    "text",
    ["it may 5 times", "2-1", "3.14.0", "17:30", "31 February", "version 1.2.2024.5"],
)
def test_what_is_no_date(text: str) -> None:
    assert not [
        found for found in find_dates(Words(text), years=False) if found.readings[0].day
    ]


# -- yes and no
# ---------------------------------------------------------------------------------------------------------


QUESTION = "Is 91 a prime number?"


@pytest.mark.parametrize(
    ("target", "reply", "label"),
    [
        ("no", "No.", CORRECT),
        ("no", "No, 91 = 7 × 13.", CORRECT),
        ("no", "Yes", INCORRECT),
        ("no", "The answer is no.", CORRECT),
        ("no", "91 is not a prime number.", CORRECT),
        ("no", "91 is a prime number.", INCORRECT),
        ("yes", "Absolutely.", CORRECT),
        ("no", "Not true", CORRECT),
        ("no", "Yes and no", UNSURE_INCORRECT),
        ("no", "Yes or no", UNSURE_INCORRECT),
        ("no", "Yesterday", UNREADABLE),
        ("no", "No one can say that", "unreadable?"),
        ("no", "There is no doubt: it is prime.", INCORRECT),
        ("no", "91 = 7 × 13.", UNSURE_INCORRECT),
        ("no", "I don't know", NOT_ATTEMPTED),
        ("no", "It depends.", "not_attempted?"),
    ],
)
def test_yes_or_no(target: str, reply: str, label: str) -> None:
    assert reading_of(target, reply, QUESTION, answer_type="yes_no") == label


@pytest.mark.parametrize(
    ("language", "target", "reply"),
    [
        ("de", "yes", "Ja."), ("es", "yes", "Sí"), ("fr", "no", "Non"), ("id", "no", "Tidak"), ("vi", "yes", "Có"), ("th", "yes", "ใช่"),
        ("ko", "no", "아니요"), ("ja", "yes", "はい"), ("zh", "no", "不是"), ("tl", "no", "Hindi"), ("ru", "no", "Нет, это не так."), ("ar", "yes", "نعم"),
    ],
)  # fmt: skip
def test_yes_or_no_in_other_languages(language: str, target: str, reply: str) -> None:
    assert label_of(target, reply, answer_type="yes_no", language=language) == CORRECT
    assert (
        label_of(
            "no" if target == "yes" else "yes",
            reply,
            answer_type="yes_no",
            language=language,
        )
        == INCORRECT
    )
    assert label_of("no", "Hindi", answer_type="yes_no") == UNREADABLE
