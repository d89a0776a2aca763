"""The short-answer scorer: its best reading is a careful reader's, and it says where it is
unsure.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.errors import ScoringError
from evalwright.scorers.answers.name_targets import find_mentions, parse_name_targets
from evalwright.scorers.text.folded import fold_text
from scorers.scoring import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    UNREADABLE,
    UNSURE_CORRECT,
    UNSURE_INCORRECT,
    label_of,
    reading_of,
    score_of,
)
from support.bounds import ends

CASES = [
    json.loads(line)
    for path in sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
"""Adversarial answers, each with what a careful reader says of it and why."""

CAPITAL = "What is the capital of France?"
AUTHOR = "Who wrote the novel?"


def test_readings_of_the_cases() -> None:
    agreed: Counter[bool] = Counter()
    size: Counter[bool] = Counter()
    rights = 0
    for case in CASES:
        score = score_of(
            tuple(case["targets"]), case["answer"], case["question"], **case["metadata"]
        )
        agreed[bool(score.unsure)] += (score.label == CORRECT) == (
            case["label"] == CORRECT
        )
        size[bool(score.unsure)] += 1
        rights += score.label == CORRECT
    assert agreed.total() >= 0.93 * len(CASES)
    assert size[False] >= 0.75 * len(CASES)
    assert agreed[False] >= 0.97 * size[False]
    assert agreed[True] >= 0.75 * size[True]
    wanted = sum(case["label"] == CORRECT for case in CASES)
    assert abs(rights - wanted) <= 0.04 * len(CASES)


@pytest.mark.parametrize(
    ("targets", "reply", "question", "label"),
    [
        ("Paris", "Paris", "", CORRECT),
        ("Paris", "**Paris**.", "", CORRECT),
        ("Paris", "The capital of France is Paris, of course.", CAPITAL, CORRECT),
        ("Paris", '{"answer": "Paris", "confidence": 0.9}', CAPITAL, CORRECT),
        ("Paris", '{"answer": null}', CAPITAL, NOT_ATTEMPTED),
        (
            "Paris",
            "Let me think.\n\nLyon is large.\n\nFinal answer: Paris",
            CAPITAL,
            CORRECT,
        ),
        (
            "Paris",
            "Paris\n\nQuestion: What is the capital of Spain?\nAnswer: Madrid",
            CAPITAL,
            CORRECT,
        ),
        ("Paris", "Lyon. No, wait: Paris.", CAPITAL, CORRECT),
        ("Paris", "Paris. Sorry, I mean Lyon.", CAPITAL, INCORRECT),
        ("Paris", "Lyon.", CAPITAL, INCORRECT),
        ("Paris", "It is not Paris but Lyon.", CAPITAL, INCORRECT),
        ("Paris", "I don't know.", CAPITAL, NOT_ATTEMPTED),
        ("Paris", "", CAPITAL, NOT_ATTEMPTED),
        ("Paris", CAPITAL, CAPITAL, NOT_ATTEMPTED),
        ("Paris", "Paris or Lyon", CAPITAL, UNSURE_INCORRECT),
        ("Paris", "Париж", CAPITAL, UNSURE_INCORRECT),
        (
            "Paris",
            "Either it is Paris, or it is Lyon; who knows",
            CAPITAL,
            UNSURE_INCORRECT,
        ),
        ("Alexander Fleming", "Sir Alexander Flemming", AUTHOR, CORRECT),
        ("Alexander Fleming", "A. Fleming", AUTHOR, CORRECT),
        ("Alexander Fleming", "Ian Fleming", AUTHOR, INCORRECT),
        ("Alexander Fleming", "Fleming", AUTHOR, CORRECT),
        ("Müller", "Mueller", AUTHOR, CORRECT),
        ("Brasília", "brasilia", "", CORRECT),
        ("H2O", "H2O2", "", INCORRECT),
        ("富士山", "富士山です。", "日本の最高峰は何という山ですか。", CORRECT),
        ("==", "`==`", "", CORRECT),
        ("==", "!=", "", INCORRECT),
        (
            "37468000",
            "Tokyo, 37,468,000",
            "Which city is the largest, and how many live there?",
            CORRECT,
        ),
        ("x = 7 or x = -7", "x = 7", "Solve x² = 49.", INCORRECT),
        (
            "Paris",
            'Some say "Paris is the capital", but this is false.',
            CAPITAL,
            UNSURE_INCORRECT,
        ),
        (
            "Lima",
            "Chile hosted the games; Lima came second.",
            "Which city hosted the games?",
            UNSURE_CORRECT,
        ),
        ("Toni Morrison", "Van Morrison wrote it.", "Who wrote 'Beloved'?", INCORRECT),
        (
            "Alexander Fleming",
            "Alexander Fleming's assistant",
            AUTHOR,
            UNSURE_INCORRECT,
        ),
        (
            "Alexander Fleming",
            "A contemporary of Howard Florey: Alexander Fleming.",
            AUTHOR,
            UNSURE_INCORRECT,
        ),
        (
            "Valentina Tereshkova",
            "She was a Soviet cosmonaut.",
            "Who was the first woman in space?",
            INCORRECT,
        ),
        ("1. water", "1. Water", "What is H2O called?", CORRECT),
        ("4.08 trillion", "USD 4.08T", "What is its GDP in US dollars?", CORRECT),
        ("12", "$12", "What is 15% of 80 dollars?", CORRECT),
        ("384400", "3.844 × 10^5", "How far is the Moon in km?", CORRECT),
    ],
)
def test_names(targets: str, reply: str, question: str, label: str) -> None:
    assert reading_of(targets, reply, question) == label


@pytest.mark.parametrize(
    ("language", "question", "target", "reply", "label"),
    [
        (
            "ko",
            "훈민정음을 만든 왕은 누구인가?",
            "세종대왕",
            "세종의 아들 문종",
            UNSURE_INCORRECT,
        ),
        (
            "ko",
            "대한민국의 수도는?",
            "서울",
            "인천은 서울 옆에 있는 도시입니다.",
            UNSURE_INCORRECT,
        ),
        (
            "en",
            "Who painted it?",
            "Pablo Picasso",
            "Picasso's friend Dalí",
            UNSURE_INCORRECT,
        ),
        (
            "en",
            "Who was the second president?",
            "John Adams",
            "John Quincy Adams",
            UNSURE_INCORRECT,
        ),
        ("en", "Who wrote Hamlet?", "Shakespeare", "William Shakespeare", CORRECT),
        (
            "en",
            "Who discovered penicillin?",
            "Alexander Fleming",
            "Ian Fleming did.",
            INCORRECT,
        ),
        ("vi", "Ai là tác giả của Truyện Kiều?", "Nguyễn Du", "Nguyễn Dữ", INCORRECT),
        ("vi", "Ai là tác giả của Truyện Kiều?", "Nguyễn Du", "Nguyen Du", CORRECT),
        ("zh", "日本的首都是哪里？", "东京", "日本的首都是東京。", CORRECT),
        (
            "ja",
            "日本で一番長い川は？",
            "信濃川",
            "利根川です。信濃川ではありません。",
            INCORRECT,
        ),
        (
            "ru",
            "Кто написал роман?",
            "Иван Тургенев",
            "Иваном Сергеевичем Тургеневым",
            CORRECT,
        ),
        (
            "pl",
            "Kto to napisał?",
            "Adam Mickiewicz",
            "To epopeja Adama Mickiewicza.",
            CORRECT,
        ),
        ("en", "How many Platonic solids are there?", "5", "scurvy", UNREADABLE),
        ("en", "What is the capital of France?", "Paris", "fox", INCORRECT),
        (
            "en",
            "Which country hosted the games?",
            "France",
            "Paris, France",
            UNSURE_CORRECT,
        ),
        (
            "en",
            "Which is the capital?",
            "Ankara",
            "Ankara used to be it; the capital is Istanbul.",
            UNSURE_INCORRECT,
        ),
        (
            "en",
            "Which city is it?",
            "Lyon",
            "It may have been Lyon, it could also be Nice.",
            UNSURE_INCORRECT,
        ),
        ("en", "In which year did it end?", "1989", "1989 BC", INCORRECT),
        ("en", "In which year did it end?", "1989", "1989-1990", UNREADABLE),
    ],
)
def test_what_is_only_named_is_not_the_answer(
    language: str, question: str, target: str, reply: str, label: str
) -> None:
    assert reading_of(target, reply, question, language=language) == label


@pytest.mark.parametrize(
    "reply",
    [
        "Paris\n\nQuestion: What is the capital of Spain?\nAnswer: Madrid",
        "Paris\nQ: What is the capital of Spain?\nA: Madrid",
        "Paris\n\nWhat is the capital of Spain?\nMadrid",
        "Paris\nWhat is the capital of Spain? Madrid\nWhat is the capital of",
        "Paris\n问题：西班牙的首都是哪里？\n答案：马德里",
        "Paris\n\n다음 질문: 스페인의 수도는?\n답: 마드리드",
        "Paris\nTanong: Ano ang kabisera ng Espanya?\nSagot: Madrid",
        "Paris\nB. Madrid\nC. Rome\nD. Berlin",
        "a. Paris b. Madrid c. Rome\nAnswer: a",
    ],
)
def test_what_a_model_goes_on_to_invent_is_left_out(reply: str) -> None:
    assert reading_of("Paris", reply, CAPITAL) == CORRECT
    assert label_of("Madrid", reply, CAPITAL) == INCORRECT


@pytest.mark.parametrize(
    ("target", "reply", "label"),
    [
        ("14:30", "2:30 pm", CORRECT),
        ("14:30", "It starts at 14.30 Uhr.", CORRECT),
        ("14:30", "1430 hours", CORRECT),
        ("14:30", "오후 2시 30분", CORRECT),
        ("14:30", "14h30", CORRECT),
        ("14:30", "2:30 am", INCORRECT),
        ("14:30", "16:00", INCORRECT),
        ("14:30", "2:30", UNSURE_CORRECT),
        ("14:30", "before 14:30", UNSURE_INCORRECT),
        ("14:30", "From 14:30 to 16:00", UNSURE_INCORRECT),
        ("14:30", "not at 14:30", INCORRECT),
        ("14:30", "I don't know.", NOT_ATTEMPTED),
        ("07:00", "7:00", CORRECT),
        ("7 am", "07:00", CORRECT),
        ("00:15", "12:15 am", CORRECT),
        ("7:00 pm", "7:00", UNSURE_CORRECT),
    ],
)
def test_times_of_day(target: str, reply: str, label: str) -> None:
    assert reading_of(target, reply, "When does it start?") == label


def test_what_a_task_says_of_names_counts() -> None:
    assert reading_of("Marie Curie", "Curie") == UNSURE_INCORRECT
    assert label_of("Marie Curie", "Curie", parts="surname") == CORRECT
    assert label_of("Marie Curie", "Marie", parts="given") == CORRECT
    assert (
        label_of("Paris", "It is Paris Hilton.", confusable=["Paris Hilton"]) != CORRECT
    )
    assert (
        reading_of(
            "Not in the passages", "The passages do not say.", answer_type="none"
        )
        == UNSURE_CORRECT
    )
    assert (
        label_of("Not in the passages", "I cannot help with that.", answer_type="none")
        == NOT_ATTEMPTED
    )
    assert label_of("Not in the passages", "That is not in the passages.") == CORRECT


@pytest.mark.parametrize(
    "metadata",
    [
        {"parts": "middle"},
        {"confusable": 3},
        {"answer_type": "number", "tolerance": {"significant": 0}},
        {"answer_type": "number", "tolerance": {"significant": "two"}},
        {"answer_type": "number", "tolerance": {"digits": 2}},
    ],
)
def test_metadata_that_say_nothing_are_named(metadata: dict[str, Any]) -> None:
    with pytest.raises(ScoringError, match=r"parts|confusable|significant|tolerance"):
        label_of("5", "5", **metadata)


LANGUAGES = ("en", "de", "fr", "tr", "th", "ja", "xx")
TARGETS = (
    "Paris",
    "Marie Curie",
    "1984",
    "3.5 km",
    "25 December 2021",
    "yes",
    "not stated",
    "2x",
    "富士山",
    "==",
    "",
)


@settings(max_examples=300)
@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(
            [
                "Paris",
                "not",
                "or",
                "5",
                "5,000",
                "½",
                "no,",
                "wait",
                "Answer:",
                "1e5",
                "\n",
                ".",
                "(",
                "三",
                "²",
                "{",
                "}",
                "'",
                "-",
                "١",
            ]
        ),
        max_size=40,
    ).map(" ".join),
    st.sampled_from(TARGETS),
    st.sampled_from(LANGUAGES),
    st.sampled_from(("", "name", "number", "date", "yes_no", "none")),
)
def test_no_text_breaks_it(reply: str, target: str, language: str, kind: str) -> None:
    assert label_of(target, reply, "What is it?", language=language, answer_type=kind)
    label_of("Paris", "Paris", reply)
    label_of((target, reply), "Paris", language=language)


@pytest.mark.parametrize(
    "piece",
    [
        "Paris ",
        "a",
        "1,",
        "1.",
        "not ",
        "((",
        "\\boxed{",
        "**",
        "Answer: ",
        "x\n",
        "五",
        "no, ",
        "5 m ",
        "$",
        "三百",
        "ห้า",
        '{"answer": ',
        "'",
        "one hundred and ",
    ],
)
@pytest.mark.parametrize(
    "target", ["Paris", "1984", "5 km", "1 May 1999", "yes", "14:30"]
)
def test_long_replies_are_bounded(piece: str, target: str) -> None:
    reply = piece * (100_000 // len(piece))
    with ends():
        label_of(target, reply, language="th")


@pytest.mark.parametrize("target", ["กรุงเทพ", "Paris", "東京"])
def test_a_target_that_is_repeated_without_end_is_looked_for_a_few_times(
    target: str,
) -> None:
    assert (
        len(
            find_mentions(
                fold_text(target * 2000 if target > "a" else f"{target} " * 2000),
                parse_name_targets((target,)),
            )
        )
        <= 60
    )
