"""Words as multilingual ROUGE finds them; those by dictionaries where their libraries are installed."""

from __future__ import annotations

import pytest

from evalwright.core.errors import MissingExtra
from evalwright.scorers.text.published_words import LIBRARIES, answer_words, require, rouge_words


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
    text, words = {"th": ("ฉันรักแมว", ["ฉัน", "รัก", "แมว"]), "zh": ("我爱北京", ["我", "爱", "北京"])}[language]
    assert answer_words(text, language) == words
