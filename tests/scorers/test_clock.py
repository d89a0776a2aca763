"""Times of day: forms that are the same minute, and digits that are no time."""

from __future__ import annotations

import pytest

from evalwright.scorers.clock import find_times, time_of_day


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("17:30", 1050), ("5:30 pm", 1050), ("5.30 p.m.", 1050), ("17h30", 1050), ("17.30", 1050), ("5 pm", 1020), ("12 am", 0), ("12 pm", 720),
        ("00:05", 5), ("24:00", 0), ("noon", 720), ("midnight", 0), ("17:30:15", 1050), ("17時30分", 1050), ("at 9:05 o'clock", 545),
    ],
)  # fmt: skip
def test_times(text: str, minutes: int) -> None:
    assert [time.minutes for time in find_times(text)] == [minutes]


@pytest.mark.parametrize(
    "text", ["5", "17", "25:30", "17:60", "13 pm", "1.234", "1:2:3:4", "2024", "30 minutes", "ratio 4:3"]
)
def test_no_times(text: str) -> None:
    assert find_times(text) == []


def test_a_target_is_a_time_only_as_a_whole() -> None:
    assert time_of_day("17:30") == 1050
    assert time_of_day("17.30") is None
    assert time_of_day("17:30 or so") is None
    assert time_of_day("Paris") is None
