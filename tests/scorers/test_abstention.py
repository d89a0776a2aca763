"""Giving no answer, in many words and several languages; hedging is not that."""

from __future__ import annotations

import pytest

from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, Row, check

ABSTENTIONS = [
    "", "   ", "?", "...", "I don't know.", "I do not know the answer.", "I don\u2019t know", "No answer", "no answer.", "Unknown", "N/A",
    "It cannot be determined.", "It is not known.", "It is unknown.", "I'm not sure.", "No idea", "I cannot answer that.",
    "I can't recall who that was.", "I am unable to verify this.", "I'm sorry, but I have no information about that.",
    "As an AI language model, I cannot say.", "I do not have enough information.", "There is no information about that.",
    "The text does not say.", "This is not stated in the passage.", "I'm not aware of such a person.", "idk", "我不知道", "모르겠습니다",
    "わかりません", "ไม่ทราบ", "Saya tidak tahu", "Tôi không biết", "Hindi ko alam", "தெரியாது", "Je ne sais pas", "No sé", "Ich weiß nicht",
]  # fmt: skip
ANSWERS: list[Row] = [
    ("Paris", "I'm not sure, but I think it is Paris.", CORRECT, "a hedge before an answer"),
    ("Paris", "I don't know for certain, but probably Paris.", CORRECT, "a hedge before an answer"),
    ("Paris", "I'm not certain. Perhaps Paris.", CORRECT, "a hedge before an answer"),
    ("Paris", "Probably Lyon, I am not sure.", INCORRECT, "a wrong answer with a hedge, but an answer"),
    ("Paris", "I don't know. Paris is nice.", NOT_ATTEMPTED, "a mention after an abstention"),
    ("Paris", "Nobody", INCORRECT, "an answer that says there is none"),
    ("Paris", "None", INCORRECT, "an answer that says there is none"),
]


@pytest.mark.parametrize("reply", ABSTENTIONS)
@pytest.mark.parametrize(
    ("target", "kind"), [("Paris", "name"), ("5", "number"), ("9 October 2024", "date"), ("yes", "yes_no")]
)
def test_no_answer_is_no_attempt(reply: str, target: str, kind: str) -> None:
    check((target, reply, NOT_ATTEMPTED, "no answer was given"), answer_type=kind)


@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: row[1])
def test_a_hedged_answer_is_an_answer(row: Row) -> None:
    check(row, answer_type="name")
