"""Where a reply says its answer: marks in many languages, fields, boxes, changes of mind,
conclusions.
"""

from __future__ import annotations

import pytest

from evalwright.scorers.answers.reply import parse_reply

MARKED = [
    ("The answer is A. No, B is larger, so the answer is C.", "C."), ("**Answer:** Loire", "Loire"), ("Réponse : Genève.", "Genève."),
    ("정답은 세종입니다.", "세종입니다."), ("答えはCです。", "Cです."), ("答案是B", "B"), ("คำตอบคือ B", "B"), ("सही उत्तर: B", "B"),
    ("Die richtige Antwort ist B) Hamburg.", "B) Hamburg."), ("Правильный ответ — B) Париж.", "B) Париж."), ("Jawaban: A. Denpasar", "A. Denpasar"),
    ("الإجابة الصحيحة هي المريخ.", "المريخ."), ("Đáp án đúng là C. Hà Nội", "C. Hà Nội"), ("It is $\\boxed{\\text{Saturn}}$.", "Saturn"),
    ("<answer>Saturn</answer>", "Saturn"), ('Titan?\n{"answer": "Saturn"}', "Saturn"), ('{"planet": "Saturn"}', "Saturn"), ('{"answer": true}', "true"),
]  # fmt: skip


@pytest.mark.parametrize(("reply", "text"), MARKED)
def test_a_marked_answer(reply: str, text: str) -> None:
    found = parse_reply(reply)
    assert (found.text, found.marked) == (text, True)


@pytest.mark.parametrize(
    ("reply", "text"),
    [("Toronto… euh non, pardon : Ottawa.", "Ottawa"), ("10 May. Correction: 9 May.", "9 May"), ("Lyon. No, wait: Paris.", "Paris")],
)  # fmt: skip
def test_a_change_of_mind_overrules_what_stands_before_it(
    reply: str, text: str
) -> None:
    assert parse_reply(reply).text == text


def test_a_conclusion_a_repeated_question_and_an_invented_one() -> None:
    assert (
        parse_reply("Lyon is large. Nice is warm.\nSo it is Paris.").conclusion
        == "So it is Paris."
    )
    assert parse_reply("Question: Where?\nAnswer: Paris", "Where?").text == "Paris"
    assert (
        parse_reply("Question: Who was it?\nAnswer: Paris", "Where is it?").text == ""
    )
    assert parse_reply("Paris\n\nPregunta: ¿Quién?\nRespuesta: Luis").text == "Paris"
    assert parse_reply('{"answer": null}').is_empty_field
