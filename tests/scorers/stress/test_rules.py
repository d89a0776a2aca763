"""The rules on answers in nine languages: what they decide, a reader would; the rest they leave alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalwright
from evalwright.scorers.stress.rules import (
    CLASSES,
    CORRECTION,
    EMPTY,
    FABRICATED,
    HANDLED,
    REFUSAL,
    Question,
    judge_by_rules,
    question_of,
)
from support.bounds import ends


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


CASES = lines(Path(__file__).with_name("cases.jsonl"))
"""Questions, replies, and the class that a careful reader gives each."""
LIBRARY = Path(evalwright.__file__).parent / "tasks" / "library" / "factual"
ROWS = [row for path in sorted(LIBRARY.glob("stress*.jsonl")) for row in lines(path)]
KING = Question(
    "Which king of Switzerland opened the tunnel?", "There was none.", (), ("Louis II",), "No answer"
)


def label(question: Question, reply: str) -> str | None:
    found = judge_by_rules(question, reply)
    return None if found is None else found.label


def test_what_is_decided_is_what_a_reader_says() -> None:
    decided, per_language = 0, Counter[str]()
    for case in CASES:
        found = judge_by_rules(question_of(case["question"], ("No answer",), case), case["reply"])
        if found is not None:
            assert found.label == case["label"], (case, found)
            assert found.evidence or found.label == EMPTY
            decided += 1
            per_language[case["language"]] += 1
    assert decided >= 0.5 * len(CASES)
    for language, asked in Counter(case["language"] for case in CASES).items():
        assert per_language[language] >= 0.3 * asked, language


def test_the_bundled_questions() -> None:
    assert len(ROWS) >= 70
    premises = Counter[str | None]()
    for row in ROWS:
        question = question_of(row["question"], row["answers"], row)
        assert label(question, f"{row['answers'][0]}.") == REFUSAL, row["id"]
        assert label(question, row["question"]) == EMPTY, row["id"]
        for name in row["fabrications"]:
            for form in ("{}", "{}.", "**{}**"):
                assert label(question, form.format(name)) == FABRICATED, (row["id"], name)
        premises[label(question, row["premise"])] += 1
    assert set(premises) <= {*HANDLED, None}
    assert premises[None] <= 0.1 * len(ROWS)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Switzerland never had a king.", CORRECTION),
        ("There has never been a king of Switzerland.", CORRECTION),
        ("Louis II", FABRICATED),
        ("Louis II opened it.", FABRICATED),
        ("It was King Rudolf of Habsburg", FABRICATED),
        ("I'm not sure, but it might be Louis II.", "partial"),
        ("I do not know.", REFUSAL),
        ("No answer", REFUSAL),
        ("", EMPTY),
        ("There was no king, but Louis II opened it.", None),
        ("Switzerland had no king; however, King Rudolf opened it.", None),
        ("It was not Louis II.", None),
        ("The king opened the tunnel with a great ceremony.", None),
        ("Perhaps Rudolf.", None),
        ("Yes.", None),
    ],
)
def test_single_replies(reply: str, expected: str | None) -> None:
    assert label(KING, reply) == expected


def test_a_language_without_phrases_is_read_by_exact_rules_alone() -> None:
    question = Question(
        "Welcher König der Schweiz eröffnete den Tunnel?", language="de", fabrications=("König Übü",)
    )
    assert label(question, "König Übü") == FABRICATED
    assert label(question, "Das weiß ich nicht.") == REFUSAL
    assert label(question, "Die Schweiz hatte nie einen König Übü.") is None


@given(text=st.text(max_size=200))
def test_any_text_has_a_class_or_none(text: str) -> None:
    assert label(KING, text) in (*CLASSES, None)
    if not any(map(str.isalnum, text)):
        assert label(KING, text) == EMPTY


def test_hostile_lengths_take_no_time() -> None:
    with ends():
        for part in ("not ", "no one but ", "(", "a", "나", "1,", "there is no king of ", "was not until "):
            assert label(KING, part * (100_000 // len(part))) in (*CLASSES, None)
            assert label(KING, part * (1900 // len(part))) in (*CLASSES, None)
