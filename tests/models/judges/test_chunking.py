"""Chunks cover the text, fit, and are as long as they can be."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.models.judges.chunking import NoChunkFits, chunks

TEXTS = st.text(alphabet="ab .!?\n。日9M", max_size=60)


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
    with pytest.raises(NoChunkFits):
        chunks("abc", lambda stretch: not stretch)
