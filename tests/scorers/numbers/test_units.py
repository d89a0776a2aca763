"""Units: the table, prefixes, composition and conversion."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.numbers.units import convert, parse_unit, target_unit

SAME = [
    ("km", "kilometres"), ("kilometer", "kilometre"), ("m/s", "metres per second"), ("m s^-1", "m/s"), ("km/h", "kph"),
    ("km^2", "square kilometres"), ("m^3", "cubic meters"), ("GWh", "gigawatt-hours"), ("kWh", "kilowatt hours"), ("MB", "megabytes"),
    ("°C", "degrees Celsius"), ("%", "per cent"), ("$", "US dollars"), ("€", "euros"), ("lb", "pounds"), ("min", "minutes"),
    ("t", "tonnes"), ("J/s", "W"), ("N·m", "newton·metres"), ("µm", "micrometres"), ("μm", "micrometres"), ("KM", "km"), ("kwh", "kWh"),
]  # fmt: skip
CONVERSIONS = [
    ("1", "mi", "km", "1.609344"), ("1", "ft", "cm", "30.48"), ("1", "h", "s", "3600"), ("1", "week", "days", "7"), ("2", "yr", "months", "24"),
    ("32", "°F", "°C", "0"), ("0", "°C", "K", "273.15"), ("1", "kWh", "MJ", "3.6"), ("1", "ha", "m^2", "10000"), ("1", "m^3", "litres", "1000"),
    ("1", "byte", "bits", "8"), ("1", "GB", "MB", "1000"), ("1", "GiB", "MiB", "1024"), ("36", "km/h", "m/s", "10"), ("1", "mph", "km/h", "1.609344"),
    ("1", "bar", "kPa", "100"), ("1", "lb", "kg", "0.45359237"), ("1", "million dollars", "dollars", "1000000"), ("1", "ly", "km", "9460730472580.8"),
]  # fmt: skip
UNKNOWN = [
    "",
    "chromosomes",
    "people",
    "Paris",
    "x" * 100,
    "per",
    "/",
    "m/",
    "^2",
    "square",
    "million",
    "a b c d e f",
    "of the",
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_unit(one: str, other: str) -> None:
    found = parse_unit(one)
    assert found is not None
    assert found[:3] == (parse_unit(other) or ())[:3]


@pytest.mark.parametrize(("value", "unit", "into", "expected"), CONVERSIONS)
def test_conversions(value: str, unit: str, into: str, expected: str) -> None:
    one, other = parse_unit(unit), parse_unit(into)
    assert one is not None and other is not None and one.dimensions == other.dimensions
    assert abs(convert(Decimal(value), one, other) - Decimal(expected)) <= Decimal("1e-9") * (
        1 + abs(Decimal(expected))
    )


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_no_unit(text: str) -> None:
    assert parse_unit(text) is None


def test_prefixes_keep_their_case() -> None:
    mega, milli = parse_unit("MW"), parse_unit("mW")
    assert mega is not None and milli is not None
    assert mega.factor / milli.factor == 10**9
    assert parse_unit("Mb") != parse_unit("MB")


def test_a_target_may_have_a_unit_of_its_own_kind() -> None:
    own = target_unit("wickets")
    assert own is not None and own == target_unit("wicket")
    assert target_unit(" ") is None
    scaled = target_unit("million US dollars")
    assert scaled is not None and scaled.scale == 10**6


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    parse_unit(text)
    target_unit(text)
