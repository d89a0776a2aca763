"""Yes and no: explicit ones, and short statements of what is asked."""

from __future__ import annotations

import pytest

from evalwright.core.samples import UNDECIDED
from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, label_of

QUESTION = "Is 91 a prime number?"


@pytest.mark.parametrize(
    ("target", "reply", "label"),
    [
        ("no", "No.", CORRECT),
        ("no", "No, 91 = 7 × 13.", CORRECT),
        ("no", "Yes", INCORRECT),
        ("no", "The answer is no.", CORRECT),
        ("no", "91 is not a prime number.", CORRECT),
        ("no", "91 is a prime number.", INCORRECT),
        ("yes", "Absolutely.", CORRECT),
        ("no", "Not true", CORRECT),
        ("no", "Yes and no", UNDECIDED),
        ("no", "Yes or no", UNDECIDED),
        ("no", "Yesterday", UNDECIDED),
        ("no", "No one can say that", UNDECIDED),
        ("no", "There is no doubt: it is prime.", UNDECIDED),
        ("no", "91 = 7 × 13.", UNDECIDED),
        ("no", "I don't know", NOT_ATTEMPTED),
        ("no", "It depends.", UNDECIDED),
    ],
)
def test_yes_or_no(target: str, reply: str, label: str) -> None:
    assert label_of(target, reply, QUESTION, answer_type="yes_no") == label


@pytest.mark.parametrize(
    ("language", "target", "reply"),
    [
        ("de", "yes", "Ja."), ("es", "yes", "Sí"), ("fr", "no", "Non"), ("id", "no", "Tidak"), ("vi", "yes", "Có"), ("th", "yes", "ใช่"),
        ("ko", "no", "아니요"), ("ja", "yes", "はい"), ("zh", "no", "不是"), ("tl", "no", "Hindi"), ("ru", "no", "Нет, это не так."), ("ar", "yes", "نعم"),
    ],
)  # fmt: skip
def test_yes_or_no_in_other_languages(language: str, target: str, reply: str) -> None:
    assert label_of(target, reply, answer_type="yes_no", language=language) == CORRECT
    assert (
        label_of("no" if target == "yes" else "yes", reply, answer_type="yes_no", language=language)
        == INCORRECT
    )
    assert label_of("no", "Hindi", answer_type="yes_no") == UNDECIDED
