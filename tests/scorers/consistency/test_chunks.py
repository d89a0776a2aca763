"""Chunks hold every sentence, keep to their size, and overlap by whole sentences."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.sentences import sentences, word_count
from evalwright.scorers.consistency.judges import chunks

TEXT = "One two three. Four five six. Seven eight nine. Ten eleven twelve."


def test_a_short_text_and_no_limit_stay_whole() -> None:
    assert chunks(TEXT, 0) == [TEXT]
    assert chunks(TEXT, 12) == [TEXT]


def test_overlap_by_sentences() -> None:
    assert chunks(TEXT, 6, 0) == ["One two three. Four five six.", "Seven eight nine. Ten eleven twelve."]
    assert chunks(TEXT, 6, 1) == [
        "One two three. Four five six.",
        "Four five six. Seven eight nine.",
        "Seven eight nine. Ten eleven twelve.",
    ]
    assert chunks(TEXT, 3, 1) == [
        "One two three.",
        "Four five six.",
        "Seven eight nine.",
        "Ten eleven twelve.",
    ]


def test_a_sentence_that_is_too_long_stands_alone() -> None:
    long = "A very long sentence that has more words than fit."
    assert chunks(f"Short one. {long} Short two.", 4, 1) == ["Short one.", long, "Short two."]


words = st.integers(1, 6).map(lambda n: "Aa" + " bb" * (n - 1) + ".")


@settings(max_examples=200)
@given(st.lists(words, min_size=1, max_size=14), st.integers(1, 14), st.integers(0, 3))
def test_every_sentence_is_there_and_chunks_go_on(parts: list[str], most: int, overlap: int) -> None:
    numbered = [part.replace("Aa", f"Aa{number}") for number, part in enumerate(parts)]
    found = chunks(" ".join(numbered), most, overlap)
    assert {one for chunk in found for one in sentences(chunk)} == set(numbered)
    for chunk in found:
        assert word_count(chunk) <= most or len(sentences(chunk)) == 1 or len(found) == 1
    firsts = [numbered.index(sentences(chunk)[0]) for chunk in found]
    lasts = [numbered.index(sentences(chunk)[-1]) for chunk in found]
    assert firsts == sorted(set(firsts))
    assert lasts == sorted(set(lasts))
    assert all(last - first + 1 <= overlap for first, last in zip(firsts[1:], lasts[:-1], strict=True))
