"""Exact match and its options."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample
from evalwright.scorers.exact_match import exact_match
from evalwright.scorers.registry import bind

SAMPLE = Sample("s", targets=("The Café", "Kaffeehaus"))


@pytest.mark.parametrize(
    ("reply", "options", "value"),
    [
        ("The Café", {}, 1.0),
        ("Kaffeehaus", {}, 1.0),
        (" The Café\n", {}, 1.0),
        (" The Café\n", {"strip": False}, 0.0),
        ("The Cafe\u0301", {}, 1.0),
        ("the café", {}, 0.0),
        ("the café", {"ignore_case": True}, 1.0),
        ("The Café!", {}, 0.0),
        ("The \u201cCafé\u201d!", {"ignore_punctuation": True}, 1.0),
        ("The   Café", {}, 0.0),
        ("The \n Café", {"ignore_whitespace": True}, 1.0),
        ("Café", {}, 0.0),
        ("Café", {"ignore_articles": True}, 1.0),
        (
            "a café.",
            {"ignore_articles": True, "ignore_case": True, "ignore_punctuation": True},
            1.0,
        ),
        ("", {}, 0.0),
    ],
)
def test_options(reply: str, options: dict[str, Any], value: float) -> None:
    found = exact_match(SAMPLE, Answer(reply), **options)
    assert (found.value, found.label) == (value, "correct" if value else "incorrect")


def test_the_explanation_names_the_target() -> None:
    assert (
        exact_match(SAMPLE, Answer("Kaffeehaus")).explanation
        == "equals the target 'Kaffeehaus'"
    )


@given(st.text(), st.sampled_from(["NFC", "NFD"]))
def test_a_text_equals_itself_in_every_normal_form(text: str, form: str) -> None:
    reply = unicodedata.normalize(form, text)  # type: ignore[arg-type]
    assert exact_match(Sample("s", targets=(text,)), Answer(reply)).value == 1.0


@given(st.text(max_size=20), st.text(max_size=20))
def test_only_equal_texts_match_without_stripping(text: str, other: str) -> None:
    same = unicodedata.normalize("NFC", text) == unicodedata.normalize("NFC", other)
    assert exact_match(
        Sample("s", targets=(text,)), Answer(other), strip=False
    ).value == float(same)


@pytest.mark.parametrize(
    ("reply", "target", "options", "value"),
    [
        ("Room 12", "Room 7", {"ignore_numbers": True}, 1.0),
        ("12", "7", {"ignore_numbers": True}, 0.0),
        ("정답: 서울", "서울", {"ignore_patterns": ["^정답: *"]}, 1.0),
        ("서울 (수도)", "서울", {"ignore_patterns": [r"\(.*?\)"]}, 1.0),
        ("anything", "서울", {"ignore_patterns": [".+"]}, 0.0),
        ("정답은 서울입니다.", "서울", {"partial": True}, 1.0),
        ("서울에서는 그렇습니다", "서울", {"partial": True}, 1.0),
        ("양배추입니다", "배추", {"partial": True}, 0.0),
        ("서울대학교", "서울", {"partial": True}, 0.0),
        ("12", "1", {"partial": True}, 0.0),
        ("The answer is 1.", "1", {"partial": True}, 1.0),
        ("a party", "art", {"partial": True}, 0.0),
        ("SEOUL!", "Seoul", {"partial": True, "ignore_case": True}, 1.0),
        ("anything", "", {"partial": True}, 0.0),
        ("(B)", "(B)", {"among_choices": True}, 1.0),
        ("(E)", "(E)", {"among_choices": True}, 0.0),
    ],
)
def test_more_options(
    reply: str, target: str, options: dict[str, Any], value: float
) -> None:
    sample = Sample("s", targets=(target,), choices=("(A)", "(B)"))
    assert exact_match(sample, Answer(reply), **options).value == value


@pytest.mark.parametrize("patterns", ["^a", ["("], [1]])
def test_patterns_that_cannot_be_used(patterns: Any) -> None:
    with pytest.raises(ConfigurationError, match="ignore_patterns"):
        bind("exact-match", {"ignore_patterns": patterns})


def test_a_pattern_that_takes_too_long_is_an_error() -> None:
    scorer = bind("exact-match", {"ignore_patterns": ["(a|a)*$"]})
    with pytest.raises(ScoringError, match="ignore_patterns"):
        scorer.function(SAMPLE, Answer("a" * 60 + "!"))
