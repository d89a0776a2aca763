"""Words and their places, in many scripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.text.tokens import Words, fold


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The J.R.R. Tolkien", ["the", "j", "r", "r", "tolkien"]),
        ("8.5 and 1,024 at 17:30.", ["8.5", "and", "1,024", "at", "17:30"]),
        ("don't, O'Brien's", ["dont", "obrien"]),
        ("Jean-Jacques", ["jean", "jacques"]),
        ("C++ and C# or A+b", ["c++", "and", "c#", "or", "a", "b"]),
        ("3I/ATLAS", ["3i", "atlas"]),
        ("Mt. St. Helens", ["mount", "saint", "helens"]),
        ("東京スカイツリー", ["東", "京", "スカイツリー"]),
        ("ใน", ["ใ", "น"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("சென்னை", ["சென்னை"]),
        ("दिल्ली", ["दिल्ली"]),
        ("한강이 흐른다", ["한강이", "흐른다"]),
        ("e\u0301t\u00e9", ["e\u0301t\u00e9"]),
        ("", []),
        ("?!", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert Words(text).tokens == tokens


@given(st.text(max_size=100))
def test_tokens_spans_and_joined_text_agree(text: str) -> None:
    words = Words(text)
    assert len(words.spans) == len(words.tokens) == len(words.cased)
    assert [text[start:end] for start, end in words.spans] == words.cased
    assert words.joined.split() == [token for token in words.tokens if token]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("rené", "rene"),
        ("łódź", "lodz"),
        ("ørsted", "orsted"),
        ("й", "и"),
        ("が", "が"),
        ("ที่", "ที่"),
        ("दिल्ली", "दिल्ली"),
        ("한", "한"),
        ("مُحَمَّد", "محمد"),
    ],
)
def test_folding_keeps_marks_that_carry_meaning(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text(max_size=60))
def test_folding_twice_changes_nothing_and_keeps_the_words_apart(text: str) -> None:
    words = Words(text)
    assert fold(words.folded) == words.folded
    assert words.folded.count(" ") == words.joined.count(" ")
