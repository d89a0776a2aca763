"""Tolerance: what is read from a task, and how far off is allowed."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ScoringError
from evalwright.scorers.numbers.agree import Tolerance, read_tolerance


def test_no_tolerance_is_exact() -> None:
    assert read_tolerance(None) == read_tolerance({}) == read_tolerance({"absolute": 0}) == Tolerance()
    assert not Tolerance().allows(Decimal("5.0000001"), Decimal(5))


@pytest.mark.parametrize(
    "given_", [{"absolut": 1}, {"absolute": -1}, {"relative": "much"}, {"absolute": "inf"}, 5]
)
def test_a_tolerance_that_means_nothing_is_named(given_: object) -> None:
    with pytest.raises(ScoringError, match="tolerance"):
        read_tolerance(given_)  # type: ignore[arg-type]


@given(st.integers(-(10**9), 10**9), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_edge_is_inside_and_what_is_beyond_is_not(target: int, width: int, beyond: int) -> None:
    tolerance = read_tolerance({"absolute": width})
    assert tolerance.allows(Decimal(target + width), Decimal(target))
    assert tolerance.allows(Decimal(target - width), Decimal(target))
    assert not tolerance.allows(Decimal(target + width + beyond + 1), Decimal(target))
