"""A question repeated in an answer is taken out of it."""

from __future__ import annotations

from evalwright.scorers.echo import without_question
from evalwright.scorers.text.tokens import Words
from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, check

QUESTION = "How many kilometres is one astronomical unit?"


def test_the_rest_of_the_answer_stays() -> None:
    assert without_question(Words(f"Well. {QUESTION} It is far."), QUESTION).text == "Well.  It is far."
    assert without_question(Words("It is far."), QUESTION).text == "It is far."
    assert without_question(Words("Why so? Because."), "Why so?").text == "Why so? Because."


def test_numbers_and_statements_of_the_question_do_not_count() -> None:
    check(
        ("149597870.7", QUESTION, NOT_ATTEMPTED, "only the question"),
        QUESTION,
        answer_type="number",
        unit="km",
    )
    check(
        ("149597870.7", f"{QUESTION} 149,597,870.7", CORRECT, "an answer after it"),
        QUESTION,
        answer_type="number",
        unit="km",
    )
    check(
        ("149597870.7", f"{QUESTION} 5 km", INCORRECT, "an answer after it"),
        QUESTION,
        answer_type="number",
        unit="km",
    )
    question = "Is the set of all rational numbers countable?"
    check(("yes", question, NOT_ATTEMPTED, "only the question"), question, answer_type="yes_no")
    check(("yes", f"{question} Yes.", CORRECT, "an answer after it"), question, answer_type="yes_no")
