"""Number words, against an independent spelling of every number."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.numbers.words import spelled_numbers

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def spell(number: int, joiner: str = "and") -> list[str]:
    if number < 20:
        return [ONES[number]]
    if number < 100:
        return [TENS[number // 10], *([ONES[number % 10]] if number % 10 else [])]
    if number < 1000:
        rest = [*([joiner] if joiner else []), *spell(number % 100)] if number % 100 else []
        return [ONES[number // 100], "hundred", *rest]
    for scale, word in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if number >= scale:
            rest_value = number % scale
            bridge = [joiner] if joiner and 0 < rest_value < 100 else []
            return [
                *spell(number // scale, joiner),
                word,
                *bridge,
                *(spell(rest_value, joiner) if rest_value else []),
            ]
    raise AssertionError


def values(tokens: list[str]) -> list[Decimal]:
    return [number.value for number in spelled_numbers(tokens, lambda index: False)]


@given(st.integers(0, 10**12 - 1), st.sampled_from(["and", ""]))
def test_every_cardinal_is_read(number: int, joiner: str) -> None:
    assert values(spell(number, joiner)) == [number]
    assert values(["about", *spell(number, joiner), "people"]) == [number]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("twenty first", "21"),
        ("one hundred and third", "103"),
        ("two and a half", "2.5"),
        ("three and three quarters", "3.75"),
        ("half a million", "500000"),
        ("a quarter of a million", "250000"),
        ("two and a half million", "2500000"),
        ("one point five billion", "1500000000"),
        ("a hundred and one", "101"),
        ("a thousand", "1000"),
        ("two dozen", "24"),
        ("three tenths", "0.3"),
        ("nineteen hundred", "1900"),
        ("eighteen oh five", "1805"),
        ("five hundred thousand", "500000"),
        ("two lakh", "200000"),
    ],
)
def test_other_forms(text: str, value: str) -> None:
    assert values(text.split()) == [Decimal(value)]


@pytest.mark.parametrize(
    "text", ["no one", "the one", "one of them", "one another", "thousands of people", "a", "and", "anyone"]
)
def test_what_is_no_number(text: str) -> None:
    assert values(text.split()) == []


def test_numbers_side_by_side_stay_apart() -> None:
    assert values(["five", "six"]) == [5, 6]
    assert [n.value for n in spelled_numbers(["twenty", "one"], lambda index: index == 1)] == [20, 1]


@given(
    st.lists(
        st.sampled_from(
            [*ONES, *TENS[2:], "hundred", "thousand", "million", "and", "a", "half", "point", "third", "of"]
        )
    )
)
def test_no_sequence_of_words_breaks_the_reader(tokens: list[str]) -> None:
    found = spelled_numbers(tokens, lambda index: False)
    assert all(a.end <= b.start for a, b in pairwise(found))
    assert all(number.start < number.end <= len(tokens) for number in found)
