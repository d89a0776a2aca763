"""Citations are read in the forms that people and models write, and what only looks like one is left alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.grounding.citations import cited_ids, find_citations, without_citations

NUMBERS = ("1", "2", "3")
LETTERED = ("p1", "p2", "p12")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("63 [3]", ["3"]),
        ("63 [p3]", ["3"]),
        ("63 (3).", ["3"]),
        ("63 (3), as told", ["3"]),
        ("63 (passage 3) clocks", ["3"]),
        ("63 (see source 3)", ["3"]),
        ("So said Marsh.³", ["3"]),
        ("as Marsh said¹ ² there", ["1", "2"]),
        ("in the hall<sup>2, 3</sup>", ["2", "3"]),
        ("in the hall^2", ["2"]),
        ("in the hall[^2]", ["2"]),
        ("According to passage 2, no.", ["2"]),
        ("Passages 1 and 3 say so.", ["1", "3"]),
        ("source 2 has it", ["2"]),
        ("Quelle 2 nennt es, Abschnitt 3 auch.", ["2", "3"]),
        ("según el pasaje 2", ["2"]),
        ("根据段落3", ["3"]),
        ("[2](https://example.org/x)", ["2"]),
        ("[Passage 2]", ["2"]),
        ("[7]", ["7"]),
        ("passage 9 says so", ["9"]),
        ("(passage 9)", ["9"]),
        # Not citations.
        ("in 1988 (1988)", []),
        ("(9)", []),
        ("(2) is the second item", []),
        ("5 km²", []),
        ("10^2", []),
        ("x^2 + y^2", []),
        ("[sic] and [the museum]", []),
        ("the passage from 2 to 3", []),
        ("document 9 of the archive", []),
        ("passage 2.5", []),
        ("p. 3 of the book", []),
        ("[1988]", []),
    ],
)
def test_forms(text: str, ids: list[str]) -> None:
    assert cited_ids(text, NUMBERS) == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("(p1) and [p2, P1]", ["p1", "p2"]),
        ("[1] and (2).", ["p1", "p2"]),
        ("according to p12 and passage p2", ["p2"]),
        ("[12]", ["p12"]),
        ("[p3]", ["p3"]),
        ("[doc 1]", ["p1"]),
    ],
)
def test_ids_that_are_no_numbers(text: str, ids: list[str]) -> None:
    assert cited_ids(text, LETTERED) == ids


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("63 [3].", "63."),
        ("According to passage 2, it is 63.", "it is 63."),
        ("According to [2], it is 63.", "it is 63."),
        ("Passage 2 says that it is 63.", "it is 63."),
        ("It is 63 (passage 2), no more.", "It is 63, no more."),
        ("It opened in 1987 [1] and closes at noon [2].", "It opened in 1987 and closes at noon."),
        ("It is 63 clocks.", "It is 63 clocks."),
        ("[1]", ""),
    ],
)
def test_an_answer_without_its_citations(text: str, bare: str) -> None:
    assert without_citations(text, NUMBERS) == bare


@given(st.text(alphabet="[](){}^¹²³<>sup/1239,.;- passgeourc\n\"'", max_size=300))
def test_places_are_in_order_and_apart(text: str) -> None:
    found = find_citations(text, NUMBERS)
    assert all(0 <= one.start < one.end <= len(text) and one.ids for one in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
    without_citations(text, NUMBERS)
