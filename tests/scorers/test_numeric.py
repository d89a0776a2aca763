"""The numeric scorer: tolerances as options and from the data."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Undecided
from evalwright.scorers.quantity import numeric


@pytest.mark.parametrize(
    ("target", "reply", "metadata", "options", "label"),
    [
        ("42", "forty-two", {}, {}, "correct"),
        ("42", "42.5", {}, {}, "incorrect"),
        ("42", "42.5", {}, {"tolerance_absolute": 0.5}, "correct"),
        ("42", "42.5", {}, {"tolerance_relative": 0.02}, "correct"),
        ("42", "42.5", {"tolerance": {"absolute": 1}}, {}, "correct"),
        ("42", "42.5", {"tolerance": {"absolute": 1}}, {"tolerance_absolute": 0.1}, "incorrect"),
        ("42", "0.042 km", {"unit": "m"}, {}, "correct"),
        ("42", "42 s", {"unit": "m"}, {}, "incorrect"),
        ("1,000", "1000", {}, {}, "correct"),
        ("42", "", {}, {}, "not_attempted"),
        ("42", "I don't know", {}, {}, "not_attempted"),
        ("42", "Paris", {}, {}, "undecided"),
        ("42", "41 or 42", {}, {}, "undecided"),
    ],
)
def test_numeric(
    target: str, reply: str, metadata: dict[str, Any], options: dict[str, float], label: str
) -> None:
    found = numeric(Sample("s", targets=(target,), metadata=metadata), Answer(reply), **options)
    if isinstance(found, Undecided):
        assert label == "undecided"
    else:
        assert (found.label, found.value) == (label, float(label == "correct"))


def test_a_target_that_is_no_number_is_named() -> None:
    with pytest.raises(ScoringError, match="not a number: 'Paris'"):
        numeric(Sample("s", targets=("Paris",)), Answer("5"))
