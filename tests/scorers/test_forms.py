"""The accepted forms of targets."""

from __future__ import annotations

import pytest

from evalwright.scorers.forms import Forms, in_digits


@pytest.mark.parametrize(
    ("target", "kind", "forms"),
    [
        ("The Hague", "forms", [" hague "]),
        ("The Who", "forms", [" the who "]),
        ("Jørn Utzon", "folded", [" jorn utzon ", " joern utzon "]),
        ("Mount Everest", "reduced", [" everest "]),
        ("Kingdom of the Netherlands", "reduced", [" netherlands "]),
        ("Republic of China", "reduced", []),
        ("Mexico City", "reduced", []),
        ("Lord of the Flies", "reduced", []),
        ("Donald J. Trump", "without_initials", [" donald trump "]),
        ("J. R. R. Tolkien", "without_initials", []),
        ("brain rot", "compact", ["brainrot"]),
        ("Apollo Eleven", "numbered", [" apollo 11 "]),
        ("==", "symbols", ["=="]),
        ("US", "acronyms", ["us"]),
        ("NASA", "acronyms", []),
    ],
)
def test_forms(target: str, kind: str, forms: list[str]) -> None:
    assert sorted(getattr(Forms((target,)), kind)) == sorted(forms)


def test_number_words_become_digits_and_pronouns_do_not() -> None:
    assert in_digits(["apollo", "eleven"]) == ["apollo", "11"]
    assert in_digits(["the", "5th", "of", "two", "hundred", "and", "five"]) == ["the", "5", "of", "205"]
    assert in_digits(["no", "one"]) == ["no", "one"]
