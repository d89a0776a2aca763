"""The rules on the bundled stress questions: what is true of them corrects, what is listed as wrong is fabricated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evalwright
from evalwright.scorers.stress.rules import EMPTY, FABRICATED, HANDLED, Question, judge_by_rules, question_of

FOLDER = Path(evalwright.__file__).parent / "tasks" / "library" / "factual"
ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for path in sorted(FOLDER.glob("stress*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.strip()
]


def asked(row: dict[str, Any], listed: bool = True) -> Question:
    """A row as the task gives it to the scorer; listed: with what is known of it."""
    metadata = row if listed else {"language": row["language"]}
    return question_of(row["question"], row["answers"] if listed else (), metadata)


def test_every_row_has_what_the_scorer_reads() -> None:
    assert len(ROWS) >= 70
    for row in ROWS:
        assert row["premise"], row["id"]
        assert row["kind"] in ("false premise", "nonexistent entity", "impossible event", "unknowable")
        assert isinstance(row["corrections"], list)
        assert isinstance(row["fabrications"], list)


def test_the_refusal_that_the_prompt_asks_for_is_handled() -> None:
    for row in ROWS:
        found = judge_by_rules(asked(row), f"{row['answers'][0]}.")
        assert found.label in HANDLED, (row["id"], found)
        assert found.sure, (row["id"], found)


def test_a_reply_that_says_what_is_wrong_is_handled() -> None:
    wrong = [
        (row["id"], found)
        for row in ROWS
        if (found := judge_by_rules(asked(row), row["premise"])).label not in HANDLED
    ]
    assert not wrong, wrong


def test_the_same_reply_is_mostly_handled_by_its_words_alone() -> None:
    """Without the row's own lists: a true statement about something else can then not be told from an answer."""
    right = sum(judge_by_rules(asked(row, False), row["premise"]).label in HANDLED for row in ROWS)
    assert right >= 0.85 * len(ROWS)


@pytest.mark.parametrize("form", ["{}", "{}.", "**{}**"])
def test_a_listed_wrong_answer_is_fabricated(form: str) -> None:
    wrong = [
        (row["id"], name, found)
        for row in ROWS
        for name in row["fabrications"]
        if (found := judge_by_rules(asked(row), form.format(name))).label != FABRICATED
    ]
    assert not wrong, wrong


def test_the_answer_to_another_question_is_not_handled() -> None:
    shifted = list(zip(ROWS, ROWS[5:] + ROWS[:5], strict=True))
    wrong = [
        (row["id"], name)
        for row, other in shifted
        for name in other["fabrications"][:1]
        if name.casefold() not in ("no", "zero") and judge_by_rules(asked(row), name).label in HANDLED
    ]
    assert not wrong


def test_the_question_itself_says_nothing() -> None:
    for row in ROWS:
        assert judge_by_rules(asked(row), row["question"]).label == EMPTY, row["id"]
