"""Forms of answers that were once misread: hedges, brackets, workings, changes, near phrases,
numbers of options in words.
"""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind

PLANETS = ("Mercury", "Venus", "Earth", "Mars")


def short_answer_of(target: str, question: str, reply: str) -> Score:
    score: Any = bind("short-answer").function(
        Sample("s", question, (target,)), Answer(reply)
    )
    assert isinstance(score, Score)
    return score


@pytest.mark.parametrize(
    ("target", "rounded"),
    [("37468000", "37.5 million"), ("8849", "8850"), ("299792", "300,000")],
)
@pytest.mark.parametrize("hedge", ["", "about ", "approximately ", "roughly "])
def test_a_hedge_does_not_raise_the_score_of_a_rounded_number(
    target: str, rounded: str, hedge: str
) -> None:
    score = short_answer_of(target, "How many?", f"{hedge}{rounded}")
    assert score.value == 0
    assert "rounded" in score.unsure


@pytest.mark.parametrize(
    ("target", "question", "reply"),
    [
        ("51", "What is 17 times 3?", "17 times 3 is 51, since 10x3=30 and 7x3=21."),
        ("84", "What is 12 times 7?", "12 times 7 is 84 because 10*7=70 and 2*7=14."),
        (
            "8",
            "How many planets are there?",
            "In 2006 the IAU cut the number from 9 to 8.",
        ),
        (
            "27",
            "How many members does the EU have?",
            "With Brexit membership fell from 28 to 27.",
        ),
        (
            "1945",
            "In what year did World War II end?",
            "World War II, which began in 1939, ended in 1945.",
        ),
        (
            "Mumbai",
            "What is India's largest city?",
            "The largest city is Bombay (now called Mumbai).",
        ),
        (
            "Hypertext Transfer Protocol",
            "What does HTTP stand for?",
            "Hyper Text Transfer Protocol",
        ),
    ],
)
def test_a_right_answer(target: str, question: str, reply: str) -> None:
    assert short_answer_of(target, question, reply).value == 1


@pytest.mark.parametrize(
    ("target", "question", "reply"),
    [
        (
            "Canberra",
            "What is the capital of Australia?",
            "The capital is Sydney (the parliament sits in Canberra).",
        ),
        (
            "1945",
            "In what year did World War II end?",
            "World War II, which ended in 1939, began in 1945.",
        ),
        ("84", "What is 12 times 7?", "12 times 7 is 86, because 10*7=70 and 2*7=16."),
        (
            "Hypertext Transfer Protocol",
            "What does HTTP stand for?",
            "Hyper Text Transport Protocol",
        ),
        (
            "Random Access Memory",
            "What does RAM stand for?",
            "Random Accessible Memory",
        ),
    ],
)
def test_a_wrong_answer(target: str, question: str, reply: str) -> None:
    assert short_answer_of(target, question, reply).value == 0


@pytest.mark.parametrize(
    ("target", "question", "reply"),
    [
        ("KM3NeT", "Which detector saw it?", "Cillian Murphy"),
        ("Lucia Anger", "Which skier won?", "Saint Lucia"),
        ("29 May 1913", "When was it first performed?", "5"),
        ("Claude Monet", "Who painted it?", "Édouard Manet"),
    ],
)
def test_plainly_another_thing_is_surely_wrong(
    target: str, question: str, reply: str
) -> None:
    score = short_answer_of(target, question, reply)
    assert (score.value, score.unsure) == (0, "")


@pytest.mark.parametrize(
    ("target", "reply", "reason"),
    [
        ("George Harrison", "George", "'george' is a word of the target"),
        (
            "World War II",
            "World War Two",
            "the number in 'World War II' may be written otherwise",
        ),
        (
            "29 May 1913",
            "29",
            "the day of the target, and no month or year that can be read",
        ),
    ],
)
def test_an_unsure_reading_says_what_is_alike(
    target: str, reply: str, reason: str
) -> None:
    assert short_answer_of(target, "", reply).unsure == reason


@pytest.mark.parametrize(
    ("option", "reply"),
    [
        (2, "Option three"),
        (0, "I choose option one."),
        (3, "Answer: four"),
        (3, "Choice number four"),
    ],
)
def test_the_number_of_an_option_in_words(option: int, reply: str) -> None:
    score: Any = bind("choice").function(
        Sample("s", "Which planet?", (), PLANETS, (option,)), Answer(reply)
    )
    assert score.value == 1


def test_a_count_of_options_chooses_none() -> None:
    score: Any = bind("choice").function(
        Sample("s", "Which planet?", (), PLANETS, (2,)),
        Answer("There are three options here."),
    )
    assert score.label == "unreadable"


@pytest.mark.parametrize("language", ["pl", "ru", "tr", "fi", "en"])
@pytest.mark.parametrize(
    ("target", "reply"),
    [
        ("Euro 2012", "Euro 2016"),
        ("Windows 2000", "Windows 2003"),
        ("Airbus A320", "Airbus A321"),
    ],
)
def test_another_number_is_no_ending_of_a_word(
    target: str, reply: str, language: str
) -> None:
    sample = Sample("s", "Which?", (target,), metadata={"language": language})
    score: Any = bind("short-answer").function(sample, Answer(reply))
    assert score.value == 0
