"""Where words end, against sentences segmented by hand (tests/data/segmentation), at least 20 a
language.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from evalwright.compat.sea_helm.published.words import (
    LIBRARIES,
    answer_words,
    require,
    rouge_words,
)
from evalwright.core.errors import MissingExtra
from evalwright.scorers import corpus
from evalwright.scorers.text import segmentation

TABLES = Path(__file__).resolve().parents[2] / "data" / "segmentation"

# F1 of the boundaries inside of sentences, as measured with ICU 72.1 and IPADIC 1.0 on tables that
# were written before: no version may be much worse.
MEASURED = {
    "ja": 1.000,
    "km": 0.950,
    "lo": 0.938,
    "my": 0.931,
    "th": 0.946,
    "zh": 0.920,
}


def boundaries(words: Sequence[str], text: str) -> set[int]:
    """Where words begin and end, but for the ends of the text."""
    out = set()
    place = 0
    for word in words:
        place = text.index(word, place)
        out |= {place, place + len(word)}
        place += len(word)
    return out - {0, len(text)}


@pytest.mark.parametrize("language", sorted(segmentation.UNSPACED))
def test_boundaries_against_tables_by_hand(language: str) -> None:
    try:
        segmentation.require(language, "This test")
    except MissingExtra as error:
        pytest.skip(str(error))
    rows = [
        json.loads(line)
        for line in (TABLES / f"{language}.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    assert len(rows) >= 20
    both = found = wanted = 0
    for row in rows:
        words = [word for word in row["words"] if any(map(str.isalnum, word))]
        ours, theirs = (
            boundaries(own, row["text"])
            for own in (segmentation.segment(row["text"], language), words)
        )
        both = both + len(ours & theirs)
        found = found + len(ours)
        wanted = wanted + len(theirs)
    score = 2 * both / (found + wanted)
    print(
        f"{language}: F1 of word boundaries {score:.3f}, precision {both / found:.3f}, recall {both / wanted:.3f}"
    )
    assert score >= MEASURED[language] - 0.02


def test_japanese_over_lines_and_around_characters_of_two_units() -> None:
    pytest.importorskip("MeCab")
    pytest.importorskip("ipadic")
    assert segmentation.segment("猫が😀\n\n寝る。", "ja") == ["猫", "が", "寝る"]


def test_japanese_that_mecab_alone_refuses() -> None:
    pytest.importorskip("MeCab")
    sentence = "猫は庭で走った。"
    words = segmentation.segment(sentence, "ja")
    assert (
        segmentation.segment(sentence * 12_000, "ja") == words * 12_000
    )  # 288 kB on one line
    assert "".join(segmentation.segment("9" * 100_000, "ja")) == "9" * 100_000
    assert segmentation.segment(f"\ud800{sentence}", "ja") == words
    counts = corpus.statistics(
        "bleu", f"{sentence * 9_000}\ud800", [sentence * 9_000], "ja-mecab"
    )
    assert (
        counts[1]
        == corpus.statistics("bleu", sentence, [sentence], "ja-mecab")[1] * 9_000
    )


# -- words as multilingual ROUGE finds them; those by dictionaries where their libraries are
# installed ------------------


@pytest.mark.parametrize(
    ("text", "language", "words"),
    [
        ("Don't stop-12ab, x²!", "id", ["don", "t", "stop", "12", "ab", "x", "²"]),
        ("TIẾNG Việt", "vi", ["tiếng", "việt"]),
        ("தமிழ் மொழி", "ta", ["தமிழ்", "மொழி"]),
        ("日本abc", "zh", ["日", "本", "abc"]),
        ("5€ 😀ok\u200b\ufffd", "en", ["5", "€", "😀", "ok"]),
        ("မြန်မာနိုင်ငံ", "my", ["မြန်", "မာ", "နိုင်", "ငံ"]),
        ("သင်္ဘော", "my", ["သင်္ဘော"]),
        ("", "my", []),
    ],
)
def test_words(text: str, language: str, words: list[str]) -> None:
    assert rouge_words(text, language) == words


def test_answer_words() -> None:
    assert answer_words("The cat, (big) cat's!", "id") == ["the", "cat", "big", "cats"]


@pytest.mark.parametrize("language", LIBRARIES)
def test_dictionaries(language: str) -> None:
    try:
        require(language, "This")
    except MissingExtra:
        pytest.skip(f"{LIBRARIES[language]} is not installed")
    text, words = {
        "th": ("ฉันรักแมว", ["ฉัน", "รัก", "แมว"]),
        "zh": ("我爱北京", ["我", "爱", "北京"]),
    }[language]
    assert answer_words(text, language) == words
