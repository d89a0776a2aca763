"""Numbers found in running text: value, place and unit."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.numbers.parse import Number, find_numbers
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words


def numbers(text: str, language: str = "en") -> list[Number]:
    return find_numbers(Words(plain(text)), language)


def test_every_number_of_a_sentence_is_found_in_its_place() -> None:
    text = "In 1986, two reactors of 1,000 MW each stood 3.5 km away."
    found = numbers(text)
    assert [number.value for number in found] == [1986, 2, 1000, Decimal("3.5")]
    assert [text[number.start : number.end] for number in found] == ["1986", "two", "1,000", "3.5"]
    assert [text[number.end : number.unit_end].strip() for number in found] == ["", "", "MW", "km"]


@pytest.mark.parametrize(
    "text", ["3I/ATLAS", "KM3NeT", "17:30", "3.14.0", "192.168.0.1", "1990s", "no digits", "x2", "1,2,3"]
)
def test_what_is_no_number(text: str) -> None:
    assert numbers(text) == []


def test_the_sign_is_told_from_a_dash() -> None:
    assert [number.value for number in numbers("-5 and 3-4 and COVID-19")] == [-5, 3, 4, 19]
    assert [number.value for number in numbers("(-2.5)")] == [Decimal("-2.5")]


def test_parts_of_one_quantity_are_put_together() -> None:
    (found,) = numbers("5 feet 11 inches")
    assert found.compound
    assert round(found.value * 12) == 71
    assert len(numbers("5 feet and 11 metres")) == 2


def test_readings_follow_the_language() -> None:
    assert numbers("1.234", "de")[0].values == (Decimal(1234), Decimal("1.234"))
    assert numbers("1.234", "en")[0].values == (Decimal("1.234"),)


@given(st.decimals(-(10**12), 10**12, places=3, allow_nan=False))
def test_plain_numbers_are_read_exactly(value: Decimal) -> None:
    assert [number.value for number in numbers(f"It is {value:f} then.")] == [value]
    assert [number.value for number in numbers(f"It is {value:,f} then.")] == [value]


@given(st.text(alphabet="0123456789.,'_ -+/^eE×kM%$°:()\n", max_size=80))
def test_no_run_of_signs_breaks_the_parser(text: str) -> None:
    for number in numbers(text):
        assert 0 <= number.start < number.end
        assert all(value.is_finite() for value in number.values)
