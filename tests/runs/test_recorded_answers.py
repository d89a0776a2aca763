"""Calls as texts: those of a reply, and those that were expected."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.runs.recorded_answers import expected_calls

SCORED = {"tool-calls": {"value": 0.0}}
PARIS = {"name": "weather", "arguments": {"city": "Paris"}}


@pytest.mark.parametrize(
    ("calls", "written"),
    [
        ([], "no call"),
        ([PARIS], 'weather({"city": "Paris"})'),
        ([PARIS, {"name": "now"}], 'weather({"city": "Paris"})\nnow()'),
        (
            [{**PARIS, "optional": ["city"], "alternatives": {}}],
            'weather({"city": "Paris"}) [optional ["city"]]',
        ),
        ([[], [PARIS, {"name": "now"}]], 'turn 1: no call\nturn 2: weather({"city": "Paris"}) now()'),
        ([3, {"city": "東京"}], '3\n{"city": "東京"}'),
    ],
)  # fmt: skip
def test_expected_calls(calls: list[Any], written: str) -> None:
    row = {"metadata": {"calls": calls}, "scores": SCORED}
    assert expected_calls(row) == written


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"metadata": {"calls": [PARIS]}, "scores": {"exact-match": {}}},
        {"metadata": {"calls": "a column of that name"}, "scores": SCORED},
    ],
)
def test_a_record_that_says_nothing_of_calls(row: dict[str, Any]) -> None:
    assert expected_calls(row) is None
