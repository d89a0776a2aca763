"""Yes and no, in words or as a statement."""

from __future__ import annotations

import pytest

from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, Row, check

QUESTION = "Is 91 a prime number?"
ROWS: list[Row] = [
    ("no", "No.", CORRECT, "plain"),
    ("no", "No, 91 = 7 × 13.", CORRECT, "with a reason"),
    ("no", "Yes", INCORRECT, "the opposite"),
    ("no", "The answer is no.", CORRECT, "in a sentence"),
    ("yes", "I believe that it is yes, according to most.", CORRECT, "in a longer sentence"),
    ("no", "91 is not a prime number.", CORRECT, "a denial of what is asked"),
    ("no", "91 isn't prime.", CORRECT, "a denial of what is asked"),
    ("no", "91 is a prime number.", INCORRECT, "a statement of what is asked"),
    ("yes", "91 is a prime number.", CORRECT, "a statement of what is asked"),
    ("no", "Yes and no", INCORRECT, "both"),
    ("no", "Yes or no", INCORRECT, "both"),
    ("no", "False.", CORRECT, "false is no"),
    ("yes", "True", CORRECT, "true is yes"),
    ("yes", "Correct.", CORRECT, "correct is yes"),
    ("no", "Not true", CORRECT, "not true is no"),
    ("yes", "Yesterday", INCORRECT, "inside another word"),
    ("no", "No one can say that", INCORRECT, "no one is not no"),
    ("no", "I don't know", NOT_ATTEMPTED, "no answer"),
    ("no", "Paris", INCORRECT, "neither"),
]
LANGUAGES = [
    ("de", ("yes", "Ja.", CORRECT, "")),
    ("es", ("yes", "Sí", CORRECT, "")),
    ("fr", ("no", "Non", CORRECT, "")),
    ("id", ("no", "Tidak", CORRECT, "")),
    ("vi", ("yes", "Có", CORRECT, "")),
    ("th", ("yes", "ใช่", CORRECT, "")),
    ("ko", ("no", "아니요", CORRECT, "")),
    ("ja", ("yes", "はい", CORRECT, "")),
    ("zh", ("no", "不是", CORRECT, "")),
    ("tl", ("no", "Hindi", CORRECT, "")),
    ("en", ("no", "Hindi", INCORRECT, "")),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}~{row[1]}")
def test_yes_or_no(row: Row) -> None:
    check(row, QUESTION, answer_type="yes_no")


@pytest.mark.parametrize(
    ("language", "row"), LANGUAGES, ids=lambda value: value if isinstance(value, str) else value[1]
)
def test_yes_or_no_in_other_languages(language: str, row: Row) -> None:
    check(row, answer_type="yes_no", language=language)
