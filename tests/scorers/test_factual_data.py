"""The scorer on the bundled questions: their own answers are right, and a constant answer is
right by chance only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evalwright
from scorers.scoring import CORRECT, INCORRECT, label_of

FOLDER = Path(evalwright.__file__).parent / "tasks" / "library" / "factual"
CLOSED = ("closed_book", "closed_book_id", "closed_book_ko", "closed_book_th")
FILES = (*CLOSED, "grounded", "stress", "stress_languages")
REFUSALS = {
    "en": "No answer",
    "id": "Tidak ada jawaban",
    "ko": "답 없음",
    "th": "ไม่มีคำตอบ",
}
SENTENCES = (
    "{}",
    "{}.",
    "The answer is {}.",
    "I believe that it is {}, according to most sources.",
    "**{}**",
    "{}\n\nQuestion: What is 3 + 4?\nAnswer: 7",
    "Answer: {} [1]",
)


def rows(name: str) -> list[dict[str, Any]]:
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def label(row: dict[str, Any], reply: str) -> str:
    metadata: dict[str, Any] = {
        key: row[key]
        for key in ("answer_type", "unit", "tolerance", "language")
        if key in row
    }
    if "premise" in row:
        metadata["answer_type"] = "none"
    return label_of(tuple(row["answers"]), reply, row["question"], **metadata)


@pytest.mark.parametrize("name", FILES)
def test_every_answer_and_alias_is_right_alone_and_never_wrong_in_a_sentence(
    name: str,
) -> None:
    replies = [
        (row, sentence, label(row, sentence.format(alias)))
        for row in rows(name)
        for alias in row["answers"]
        for sentence in SENTENCES
    ]
    assert [
        (row["id"], sentence) for row, sentence, found in replies if found == INCORRECT
    ] == []
    assert [
        row["id"]
        for row, sentence, found in replies
        if sentence in SENTENCES[:2] and found != CORRECT
    ] == []
    assert sum(found == CORRECT for _, _, found in replies) >= 0.9 * len(replies)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "constant",
    [
        "Paris",
        "1",
        "",
        "yes",
        "no",
        "2024",
        "the",
        "?",
        "I don't know",
        "100 m",
        "1 January 2024",
    ],
)
def test_a_constant_answer_is_near_chance(name: str, constant: str) -> None:
    data = rows(name)
    right = sum(label(row, constant) == CORRECT for row in data)
    limit = 0.02 * len(data) + sum(row.get("answer_type") == "yes_no" for row in data)
    assert right <= limit, f"{constant!r} is right {right} times"


def test_no_answer_is_right_only_where_there_is_none() -> None:
    for name in FILES:
        for row in rows(name):
            if name != "grounded":
                assert (label(row, REFUSALS[row["language"]]) == CORRECT) == (
                    "premise" in row
                ), row["id"]


def test_what_is_invented_and_the_question_itself_are_not_right() -> None:
    for name in FILES:
        for row in rows(name):
            for reply in (
                *row.get("fabrications", ()),
                row["question"],
                f"I was asked: {row['question']}",
            ):
                assert label(row, reply) != CORRECT, (row["id"], reply)


def test_the_answer_to_another_question_is_wrong_or_open() -> None:
    shifted = []
    for name in (*CLOSED, "grounded"):
        data = [
            row
            for row in rows(name)
            if row.get("answerable", True) and row.get("answer_type") != "yes_no"
        ]
        shifted += [
            label(row, other["answers"][0])
            for row, other in zip(data, data[7:] + data[:7], strict=True)
        ]
    assert shifted.count(CORRECT) <= 0.01 * len(shifted)
    assert shifted.count(INCORRECT) >= 0.4 * len(shifted)
