"""The short-answer scorer: what it decides is what a careful reader says, and it leaves open what is open."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.errors import ScoringError
from evalwright.core.samples import UNDECIDED
from evalwright.scorers.match import mentions, read, targets_of
from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, label_of
from support.bounds import ends

CASES = [
    json.loads(line)
    for path in sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
"""Adversarial answers, each with what a careful reader says of it and why."""

CAPITAL, AUTHOR = "What is the capital of France?", "Who wrote the novel?"


def test_what_is_decided_of_the_cases_is_right() -> None:
    found: Counter[str] = Counter()
    wrong = []
    for case in CASES:
        label = label_of(tuple(case["targets"]), case["answer"], case["question"], **case["metadata"])
        found[label] += 1
        if label not in (case["label"], UNDECIDED):
            wrong.append((case["targets"], case["answer"], label))
    decided = len(CASES) - found[UNDECIDED]
    assert len(wrong) <= 0.02 * decided, wrong
    assert decided >= 0.65 * len(CASES)
    assert min(found[CORRECT], found[INCORRECT]) > 0.2 * len(CASES)


@pytest.mark.parametrize(
    ("targets", "reply", "question", "label"),
    [
        ("Paris", "Paris", "", CORRECT),
        ("Paris", "**Paris**.", "", CORRECT),
        ("Paris", "The capital of France is Paris, of course.", CAPITAL, CORRECT),
        ("Paris", '{"answer": "Paris", "confidence": 0.9}', CAPITAL, CORRECT),
        ("Paris", '{"answer": null}', CAPITAL, NOT_ATTEMPTED),
        ("Paris", "Let me think.\n\nLyon is large.\n\nFinal answer: Paris", CAPITAL, CORRECT),
        ("Paris", "Paris\n\nQuestion: What is the capital of Spain?\nAnswer: Madrid", CAPITAL, CORRECT),
        ("Paris", "Lyon. No, wait: Paris.", CAPITAL, CORRECT),
        ("Paris", "Paris. Sorry, I mean Lyon.", CAPITAL, INCORRECT),
        ("Paris", "Lyon.", CAPITAL, INCORRECT),
        ("Paris", "It is not Paris but Lyon.", CAPITAL, INCORRECT),
        ("Paris", "I don't know.", CAPITAL, NOT_ATTEMPTED),
        ("Paris", "", CAPITAL, NOT_ATTEMPTED),
        ("Paris", CAPITAL, CAPITAL, NOT_ATTEMPTED),
        ("Paris", "Paris or Lyon", CAPITAL, UNDECIDED),
        ("Paris", "Париж", CAPITAL, UNDECIDED),
        ("Paris", "Either it is Paris, or it is Lyon; who knows", CAPITAL, UNDECIDED),
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
        ("37468000", "Tokyo, 37,468,000", "Which city is the largest, and how many live there?", CORRECT),
        ("x = 7 or x = -7", "x = 7", "Solve x² = 49.", INCORRECT),
        ("Paris", "It was Paris until the government moved to Lyon.", CAPITAL, UNDECIDED),
        ("Paris", "Paris is the largest city near Lyon, which is the capital.", CAPITAL, UNDECIDED),
        ("Paris", 'Some say "Paris is the capital", but this is false.', CAPITAL, UNDECIDED),
        ("Lima", "Chile hosted the games; Lima came second.", "Which city hosted the games?", UNDECIDED),
        ("Toni Morrison", "Van Morrison wrote it.", "Who wrote 'Beloved'?", UNDECIDED),
        ("Alexander Fleming", "Alexander Fleming's assistant", AUTHOR, UNDECIDED),
        ("Alexander Fleming", "A contemporary of Howard Florey: Alexander Fleming.", AUTHOR, UNDECIDED),
        (
            "Valentina Tereshkova",
            "She was a Soviet cosmonaut.",
            "Who was the first woman in space?",
            UNDECIDED,
        ),
        ("water", "heavy water", "What is H2O called?", UNDECIDED),
        ("1. water", "1. Water", "What is H2O called?", CORRECT),
        ("4.08 trillion", "USD 4.08T", "What is its GDP in US dollars?", CORRECT),
        ("12", "$12", "What is 15% of 80 dollars?", CORRECT),
        ("384400", "3.844 × 10^5", "How far is the Moon in km?", CORRECT),
    ],
)
def test_what_is_certain_and_what_is_not(targets: str, reply: str, question: str, label: str) -> None:
    assert label_of(targets, reply, question) == label


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
        ("14:30", "2:30", UNDECIDED),
        ("14:30", "before 14:30", UNDECIDED),
        ("14:30", "From 14:30 to 16:00", UNDECIDED),
        ("14:30", "not at 14:30", UNDECIDED),
        ("14:30", "I don't know.", NOT_ATTEMPTED),
        ("07:00", "7:00", CORRECT),
        ("7 am", "07:00", CORRECT),
        ("00:15", "12:15 am", CORRECT),
        ("7:00 pm", "7:00", UNDECIDED),
    ],
)
def test_times_of_day(target: str, reply: str, label: str) -> None:
    assert label_of(target, reply, "When does it start?") == label


def test_what_a_task_says_of_names_counts() -> None:
    assert label_of("Marie Curie", "Curie") == UNDECIDED
    assert label_of("Marie Curie", "Curie", parts="surname") == CORRECT
    assert label_of("Marie Curie", "Marie", parts="given") == CORRECT
    assert label_of("Paris", "It is Paris Hilton.", confusable=["Paris Hilton"]) != CORRECT
    assert label_of("Not in the passages", "The passages do not say.", answer_type="none") == UNDECIDED
    assert label_of("Not in the passages", "I cannot help with that.", answer_type="none") == NOT_ATTEMPTED
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
@pytest.mark.parametrize("target", ["Paris", "1984", "5 km", "1 May 1999", "yes", "14:30"])
def test_long_replies_are_bounded(piece: str, target: str) -> None:
    reply = piece * (100_000 // len(piece))
    with ends():
        label_of(target, reply, language="th")


@pytest.mark.parametrize("target", ["กรุงเทพ", "Paris", "東京"])
def test_a_target_that_is_repeated_without_end_is_looked_for_a_few_times(target: str) -> None:
    assert (
        len(mentions(read(target * 2000 if target > "a" else f"{target} " * 2000), targets_of((target,))))
        <= 60
    )
