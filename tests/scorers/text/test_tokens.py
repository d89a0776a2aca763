"""Words and their places, in many scripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.text.normalise import MOST_CHARACTERS, answer_region, plain
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


# -- the part of a reply that counts, and its plain text
# ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "region"),
    [
        ("Paris", "Paris"),
        ("  Paris \n", "Paris"),
        ("Paris\n\nmore", "Paris"),
        ("Paris\n \t\nmore", "Paris"),
        ("Paris\nQuestion: x", "Paris"),
        ("Paris\n### Question 2: x", "Paris"),
        ("Question: x?\nAnswer: Paris", "Paris"),
        ("Q: x?\nA: Paris\nQ: y?\nA: Rome", "Paris"),
        ("Here it is:\n\nParis\n\nmore", "Here it is:\n\nParis"),
        ("Answer: Paris", "Paris"),
        ("No question: it is Paris", "No question: it is Paris"),
        ("The Q: a letter", "The"),
        ("", ""),
        ("\n\n", ""),
    ],
)
def test_regions(reply: str, region: str) -> None:
    assert answer_region(reply) == region


def test_all_paragraphs_up_to_an_invented_question() -> None:
    assert (
        answer_region("Paris\n\nSources: [1]\n\nQuestion: x", paragraphs=True)
        == "Paris\n\nSources: [1]"
    )


def test_a_word_at_the_limit_is_left_out_whole() -> None:
    region = answer_region("a " * (MOST_CHARACTERS // 2 - 1) + "12345")
    assert region.endswith("a")
    assert len(region) < MOST_CHARACTERS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10²³ m²", "10^23 m^2"),
        ("CO₂", "CO2"),
        ("2½", "2 1/2"),
        ("“a” ‘b’ – —", "\"a\" 'b' – —"),
        ("a\u00a0b\u202fc", "a b c"),
        ("a\u200bb\u00adc", "abc"),
        ("٣٫٥", "3.5"),
        ("**a** *b* _c_ `d`", "a b c d"),
        ("5 * 3 and 2*4", "5 * 3 and 2*4"),
        ("snake_case 1_000", "snake_case 1_000"),
        ("$5 and $6", "$5 and $6"),
        ("$42$", "42"),
        ("\\boxed{\\frac{1}{2}}", "1/2"),
        ("x^{10}", "x^10"),
        ("[a](b) [1] [2, 3]", "a"),
        ("10<sup>3</sup>", "10^3"),
        ("a < b > c", "a < b > c"),
        ("- a\n- b", "a;\nb"),
    ],
)
def test_plain_text(text: str, expected: str) -> None:
    assert " ".join(plain(text).split()) == " ".join(expected.split())


@given(st.text(max_size=200))
def test_plain_text_of_anything(text: str) -> None:
    plain(answer_region(text))


@given(st.text(alphabet=st.characters(categories=["L", "N", "Zs"]), max_size=100))
def test_plain_letters_stay(text: str) -> None:
    once = plain(text)
    assert plain(once) == once
