"""Sentences end where a reader would end them, in several scripts; nothing of the text is lost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.sentences import sentence_spans, sentences, word_count
from support.bounds import ends


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Dr. Smith met J. R. R. Tolkien. He left.", ["Dr. Smith met J. R. R. Tolkien.", "He left."]),
        ("It cost $3.5 million. It was worth 1,024.5 crowns.", ["It cost $3.5 million.", "It was worth 1,024.5 crowns."]),
        ('"Really?" she said. "Yes."', ['"Really?" she said.', '"Yes."']),
        ("He left at 5 p.m. on Monday. She stayed.", ["He left at 5 p.m. on Monday.", "She stayed."]),
        ("Am 3. Oktober ist frei. Das ist gut.", ["Am 3. Oktober ist frei.", "Das ist gut."]),
        ("It ended in 1990. The war was over.", ["It ended in 1990.", "The war was over."]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        ("今日は晴れです。明日は雨でしょう。", ["今日は晴れです。", "明日は雨でしょう。"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("यह अच्छा है। वह बुरा है।", ["यह अच्छा है।", "वह बुरा है।"]),
        ("هل هذا صحيح؟ نعم. انتهى.", ["هل هذا صحيح؟", "نعم.", "انتهى."]),
        ("A heading\n\nA line that\nis wrapped. Next.", ["A heading", "A line that\nis wrapped.", "Next."]),
        ("Points:\n- one thing\n- another thing", ["Points:", "- one thing", "- another thing"]),
        ("1. First comes this.\n2. Then that.", ["1. First comes this.", "2. Then that."]),
        ("", []),
        ("  \n ", []),
    ],
)  # fmt: skip
def test_ends(text: str, wanted: list[str]) -> None:
    assert sentences(text) == wanted


@settings(max_examples=200)
@given(st.text(alphabet="aB1.?!。। \n-\"'é日ก", max_size=80))
def test_nothing_is_lost(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
    assert all(part == part.strip() and part for part in sentences(text))
    lines = [text[start:end] for start, end in sentence_spans(text, lines=True)]
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert not any("\n" in part for part in lines)


@pytest.mark.parametrize(
    "piece",
    [".", "a", "Mr. ", "。", "\n", ". ", '."', "J. ", "1. ", "\n1. ", "….", "?!"],
)
def test_hostile_repetition_takes_no_time(piece: str) -> None:
    text = (piece * 100_000)[:100_000]
    with ends():
        sentences(text)
        word_count(text)


@given(st.text(alphabet=st.characters(max_codepoint=0x24F), max_size=80))
def test_words_between_spaces(text: str) -> None:
    assert word_count(text) == len(text.split())


@pytest.mark.parametrize(
    ("text", "count"),
    [("公司财务", 2), ("会社 は 三つ", 3), ("บริษัทใหญ่", 3), ("word公司", 1), ("", 0)],
)
def test_scripts_without_spaces(text: str, count: int) -> None:
    assert word_count(text) == count
