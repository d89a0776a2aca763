"""Numbers in text: digits of both conventions, words, magnitudes, units; and which number of a
reply is its answer.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample
from evalwright.scorers.numeric import numeric
from evalwright.scorers.text import number_words
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import find_numbers
from evalwright.scorers.text.units import parse_unit
from scorers.scoring import CORRECT, INCORRECT, UNSURE_INCORRECT, label_of, reading_of

num2words = pytest.importorskip("num2words").num2words


def values(text: str, language: str = "en") -> list[tuple[float, ...]]:
    return [
        tuple(float(value) for value in one.values)
        for one in find_numbers(plain(text), language)
    ]


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("1,234.5", "en", [(1234.5,)]),
        ("1.234,5", "en", [(1234.5,)]),
        ("1 234 567", "fr", [(1234567,)]),
        ("12,34,567", "en", [(1234567,)]),
        ("3,5", "en", [(3.5,)]),
        ("1.234", "en", [(1.234, 1234)]),
        ("1.234", "de", [(1234, 1.234)]),
        ("-5", "en", [(-5,)]),
        ("minus eighteen degrees", "en", [(-18,)]),
        ("3 × 10⁸", "en", [(3e8,)]),
        ("6.02e23", "en", [(6.02e23,)]),
        ("2 1/2", "en", [(2.5,)]),
        ("1.5 million", "en", [(1.5e6,)]),
        ("5 lakh", "en", [(5e5,)]),
        ("3,7 Mio.", "de", [(3.7e6,)]),
        ("2 billones", "es", [(2,)]),
        ("3万", "ja", [(30000,)]),
        ("1億2500万人", "ja", [(1.25e8,)]),
        ("١٢٣", "ar", [(123,)]),
        ("three hundred and five", "en", [(305,)]),
        ("nineteen eighty-four", "en", [(1984,)]),
        ("two and a half", "en", [(2.5,)]),
        ("three quarters", "en", [(0.75,)]),
        ("dreihundertfünf", "de", [(305,)]),
        ("quatre-vingt-dix-sept", "fr", [(97,)]),
        ("seksen bir", "tr", [(81,)]),
        ("二十四个", "zh", [(24,)]),
        ("一九四七年", "zh", [(1947,)]),
        ("스물다섯 개", "ko", [(25,)]),
        ("1억 2천만", "ko", [(1.2e8,)]),
        ("백 센티미터", "ko", [(100,)]),
        ("六分之五", "zh", [(5 / 6,)]),
        ("trescientos ochenta y cuatro mil cuatrocientos", "es", [(384400,)]),
        ("dreieinhalb", "de", [(3.5,)]),
        ("एक हज़ार", "hi", [(1000,)]),
        ("mia tatu sitini na sita", "sw", [(366,)]),
        ("one sixth", "en", [(1 / 6,)]),
        ("half a million", "en", [(5e5,)]),
        ("23 pairs", "en", [(46, 23)]),
        ("330 ± 1 m", "en", [(330,)]),
        ("version 1.2.3", "en", []),
        ("KM3NeT and 3I", "en", []),
        ("no one knows", "en", [(1,)]),
    ],
)
def test_numbers_in_text(
    text: str, language: str, found: list[tuple[float, ...]]
) -> None:
    assert values(text, language) == found


@given(st.integers(0, 999_999))
def test_english_number_words(number: int) -> None:
    assert values(num2words(number)) == [(number,)]


@given(
    st.integers(0, 999),
    st.sampled_from(
        ["de", "fr", "es", "it", "pt", "nl", "ru", "pl", "tr", "id", "vi", "th", "sv"]
    ),
)
def test_number_words_of_other_languages_are_the_librarys(
    number: int, language: str
) -> None:
    read = [
        value
        for one in values(num2words(number, lang=language), language)
        for value in one
    ]
    assert read in ([number], []), (
        "read as what it is, or not read (the word for one is an article)"
    )


def test_without_the_library_such_words_are_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number_words._load_number_words.cache_clear()
    find_numbers.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "num2words", None)
    try:
        assert values("dreihundertfünf", "de") == []
        assert (
            reading_of("305", "dreihundertfünf", language="de", answer_type="number")
            == "unreadable?"
        )
        assert (
            label_of("305", "three hundred and five", answer_type="number") == CORRECT
        )
    finally:
        number_words._load_number_words.cache_clear()
        find_numbers.cache_clear()


def test_rows_of_many_languages_in_turn_load_each_table_once() -> None:
    number_words._load_number_words.cache_clear()
    try:
        for _ in range(2):
            for number in range(20):
                number_words.find_number_words("none here", f"language-{number}")
        tables = number_words._load_number_words.cache_info()
        assert tables.misses == 21, "twenty, and English"
    finally:
        number_words._load_number_words.cache_clear()


@pytest.mark.parametrize(
    ("value", "unit", "other", "expected"),
    [
        ("5", "km", "m", "5000"),
        ("36", "km/h", "m/s", "10"),
        ("1", "square kilometre", "hectares", "100"),
        ("2", "m³", "litres", "2000"),
        ("100", "°C", "°F", "212"),
        ("1", "mile", "metres", "1609.344"),
        ("3", "hours", "min", "180"),
        ("50", "%", "percent", "50"),
        ("1", "km²", "metros cuadrados", "1000000"),
        ("60", "kilometres an hour", "m/s", "16.666667"),
    ],
)
def test_units_convert(value: str, unit: str, other: str, expected: str) -> None:
    one = parse_unit(unit)
    two = parse_unit(other)
    assert one is not None and two is not None
    found = one.of(Decimal(value), two)
    assert found is not None and round(found, 6) == Decimal(expected)


def test_what_does_not_convert() -> None:
    metre = parse_unit("m")
    kelvin = parse_unit("kelvin")
    assert metre is not None and kelvin is not None
    assert metre.of(Decimal(1), kelvin) is None
    assert parse_unit("bananas") is None


@pytest.mark.parametrize(
    ("target", "reply", "metadata", "label"),
    [
        ("206", "There are 206 bones.", {}, CORRECT),
        ("206", "Fifty-two.", {}, INCORRECT),
        ("206", "around 200", {}, UNSURE_INCORRECT),
        ("206", "between 200 and 210", {}, INCORRECT),
        ("206", "at least 206", {}, UNSURE_INCORRECT),
        ("206", "205 or 206", {}, UNSURE_INCORRECT),
        ("206", "200 + 6 = 206", {}, CORRECT),
        ("1984", "on 9 November 1984", {}, CORRECT),
        ("1984", "before 1984", {}, UNSURE_INCORRECT),
        ("8848.86", "29,032 feet", {"unit": "m"}, CORRECT),
        ("324", "324 km", {"unit": "m"}, INCORRECT),
        ("324", "324 s", {"unit": "m"}, INCORRECT),
        ("90", "1 hour 30 minutes", {"unit": "min"}, CORRECT),
        ("100", "104", {"tolerance": {"relative": 0.05}}, CORRECT),
        ("120k", "115,000", {"tolerance": {"significant": "target"}}, CORRECT),
        ("2.4", "2.4 billion", {"unit": "billion US dollars"}, CORRECT),
        ("0.75", "75%", {}, UNSURE_INCORRECT),
        ("3/8", "37.5%", {}, CORRECT),
        ("206", "206%", {}, UNSURE_INCORRECT),
        ("206", "There are 206 = bones", {}, CORRECT),
        ("206", "206 is wrong; there are 213.", {}, INCORRECT),
        ("206", "Some say 206, but there are 213.", {}, INCORRECT),
        ("37468000", "Tokyo, 37,468,000", {}, CORRECT),
        ("384400", "384.400 km", {"language": "de", "unit": "km"}, CORRECT),
        ("384400", "about 384 thousand km", {"unit": "km"}, UNSURE_INCORRECT),
        ("384400", "384 thousand km", {"unit": "km"}, UNSURE_INCORRECT),
        ("8849", "About 8850", {}, UNSURE_INCORRECT),
        ("8849", "8850", {}, UNSURE_INCORRECT),
        ("about 8850", "8850", {}, CORRECT),
        ("10", "10 metros cuadrados", {"unit": "m²"}, CORRECT),
    ],
)
def test_the_number_that_a_reply_gives(
    target: str, reply: str, metadata: dict[str, Any], label: str
) -> None:
    assert reading_of(target, reply, answer_type="number", **metadata) == label


# -- the numeric scorer
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "reply", "metadata", "options", "label"),
    [
        ("42", "forty-two", {}, {}, "correct"),
        ("42", "42.5", {}, {}, "incorrect"),
        ("42", "42.5", {}, {"tolerance_absolute": 0.5}, "correct"),
        ("42", "42.5", {}, {"tolerance_relative": 0.02}, "correct"),
        ("42", "42.5", {"tolerance": {"absolute": 1}}, {}, "correct"),
        (
            "42",
            "42.5",
            {"tolerance": {"absolute": 1}},
            {"tolerance_absolute": 0.1},
            "incorrect",
        ),
        ("42", "0.042 km", {"unit": "m"}, {}, "correct"),
        ("42", "42 s", {"unit": "m"}, {}, "incorrect"),
        ("1,000", "1000", {}, {}, "correct"),
        ("42", "", {}, {}, "not_attempted"),
        ("42", "I don't know", {}, {}, "not_attempted"),
        ("42", "Paris", {}, {}, "unreadable"),
        ("42", "41 or 42", {}, {}, "incorrect"),
    ],
)
def test_numeric(
    target: str,
    reply: str,
    metadata: dict[str, Any],
    options: dict[str, float],
    label: str,
) -> None:
    found = numeric(
        Sample("s", targets=(target,), metadata=metadata), Answer(reply), **options
    )
    assert (found.label, found.value) == (label, float(label == "correct"))


def test_a_target_that_is_no_number_is_named() -> None:
    with pytest.raises(ScoringError, match="not a number: 'Paris'"):
        numeric(Sample("s", targets=("Paris",)), Answer("5"))
