"""Chunks cover the text, fit, and are as long as they can be; sentences end where a reader ends them."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.chunking import DoesNotFit, chunks, read_chunking
from evalwright.models.judges.sentences import sentence_spans, sentences

TEXTS = st.text(alphabet="ab .!?\n。日9M", max_size=60)


@given(TEXTS)
def test_sentences_lose_nothing_but_white_space(text: str) -> None:
    spans = sentence_spans(text)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith paid 3.5 dollars. He left.", ["Dr. Smith paid 3.5 dollars.", "He left."]),
        ("See No. 5 of it. He said no. She left.", ["See No. 5 of it.", "He said no.", "She left."]),
        ('He said "Go." Then he went.', ['He said "Go."', "Then he went."]),
        ("J. K. Rowling wrote. We read.", ["J. K. Rowling wrote.", "We read."]),
        ("Apples, e.g. red ones, fell.", ["Apples, e.g. red ones, fell."]),
        ("It was in the U.S. in May.", ["It was in the U.S. in May."]),
        ("今日は雨です。明日は晴れ！本当？", ["今日は雨です。", "明日は晴れ！", "本当？"]),
        ("पहला वाक्य। दूसरा वाक्य।", ["पहला वाक्य।", "दूसरा वाक्य।"]),
        ("A heading\n\nA paragraph", ["A heading", "A paragraph"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences(text: str, wanted: list[str]) -> None:
    assert sentences(text) == wanted


@given(TEXTS, st.integers(1, 12))
def test_chunks_fit_cover_and_are_greedy(text: str, most: int) -> None:
    def fits(stretch: str) -> bool:
        return len(stretch) <= most

    found = chunks(text, fits)
    assert all(fits(each) for each in found)
    assert re.sub(r"\s", "", "".join(found)) == re.sub(r"\s", "", text)
    if len(text) <= most:
        assert found == [text]


def test_whole_sentences_stay_whole_where_they_fit() -> None:
    text = "Aaa bbb. Ccc ddd. Eee fff ggg hhh iii jjj. Kkk."
    found = chunks(text, lambda stretch: len(stretch.split()) <= 4)
    assert found == ["Aaa bbb. Ccc ddd.", "Eee fff ggg hhh", "iii jjj.", "Kkk."]
    assert chunks("abcdefg", lambda stretch: len(stretch) <= 3) == ["abc", "def", "g"]


def test_what_fits_nowhere_is_said() -> None:
    with pytest.raises(DoesNotFit):
        chunks("abc", lambda stretch: not stretch)


def test_the_argument() -> None:
    assert read_chunking("auto").as_json() == "auto"
    assert read_chunking("300").as_json() == 300
    for wrong in ("some", 0, -1, True, 1.5, None, "1.5"):
        with pytest.raises(ConfigurationError, match="chunk="):
            read_chunking(wrong)
