"""The scorer on the bundled questions: their own answers are right, and a constant answer is right by chance only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evalwright
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.short_answer import short_answer

FOLDER = Path(evalwright.__file__).parent / "tasks" / "library" / "factual"
CLOSED = ("closed_book", "closed_book_id", "closed_book_ko", "closed_book_th")
FILES = (*CLOSED, "grounded", "stress", "stress_languages")
REFUSALS = {"en": "No answer", "id": "Tidak ada jawaban", "ko": "답 없음", "th": "ไม่มีคำตอบ"}
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


def score(row: dict[str, Any], reply: str) -> Score:
    metadata: dict[str, Any] = {
        key: row[key] for key in ("answer_type", "unit", "tolerance", "language") if key in row
    }
    if "premise" in row:
        metadata["answer_type"] = "none"
    return short_answer(
        Sample(row["id"], row["question"], tuple(row["answers"]), metadata=metadata), Answer(reply)
    )


@pytest.mark.parametrize("name", FILES)
def test_every_answer_and_alias_is_right_alone_and_in_a_sentence(name: str) -> None:
    wrong = [
        f"{row['id']}: {sentence.format(alias)!r}: {found.explanation}"
        for row in rows(name)
        for alias in row["answers"]
        for sentence in SENTENCES
        if (found := score(row, sentence.format(alias))).value != 1.0
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "constant", ["Paris", "1", "", "yes", "no", "2024", "the", "?", "I don't know", "100 m", "1 January 2024"]
)
def test_a_constant_answer_is_near_chance(name: str, constant: str) -> None:
    data = rows(name)
    right = sum(score(row, constant).value for row in data)
    limit = 0.02 * len(data) + sum(row.get("answer_type") == "yes_no" for row in data)
    assert right <= limit, f"{constant!r} is right {right} times"


def test_no_answer_is_right_only_where_there_is_none() -> None:
    for name in FILES:
        for row in rows(name):
            if name != "grounded":
                assert score(row, REFUSALS[row["language"]]).value == float("premise" in row), row["id"]


def test_what_is_invented_is_wrong() -> None:
    accepted = [
        (row["id"], reply)
        for name in ("stress", "stress_languages")
        for row in rows(name)
        for reply in row["fabrications"]
        if score(row, reply).value
    ]
    assert not accepted


def test_the_answer_to_another_question_is_wrong() -> None:
    for name in (*CLOSED, "grounded"):
        data = [
            row for row in rows(name) if row.get("answerable", True) and row.get("answer_type") != "yes_no"
        ]
        shifted = [
            score(row, other["answers"][0]).value
            for row, other in zip(data, data[7:] + data[:7], strict=True)
        ]
        assert sum(shifted) <= 0.03 * len(data)


@pytest.mark.parametrize("name", FILES)
def test_the_question_itself_is_no_answer(name: str) -> None:
    for row in rows(name):
        for reply in (row["question"], f"I was asked: {row['question']}"):
            assert score(row, reply).value == 0.0, row["id"]
