"""Adversarial answers, each with what a careful reader says of it and why: one JSON object a line in `cases/`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample
from evalwright.scorers.short_answer import short_answer
from evalwright.scorers.text.normalise import plain
from scorers.scoring import CORRECT, INCORRECT, NOT_ATTEMPTED, score

FOLDER = Path(__file__).parent / "cases"


def cases() -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    for path in sorted(FOLDER.glob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found.append((f"{path.stem}-{number}", json.loads(line)))
    return found


CASES = cases()


@pytest.mark.parametrize(("name", "case"), CASES, ids=[name for name, _ in CASES])
def test_a_careful_reader_would_say_the_same(name: str, case: dict[str, Any]) -> None:
    sample = Sample(name, case["question"], tuple(case["targets"]), metadata=case["metadata"])
    found = short_answer(sample, Answer(case["answer"]))
    assert found.label == case["label"], (
        f"{case['answer']!r} for {case['targets']}: {case['reason']}; but the scorer says: {found.explanation}"
    )
    assert found.value == (1.0 if case["label"] == CORRECT else 0.0)
    assert found.explanation
    if found.label == CORRECT:
        start, end = int(found.parts["evidence_start"]), int(found.parts["evidence_end"])
        shown = case["answer"][start:end]
        assert shown.strip(), "a right answer has its evidence in the reply"
        quoted = found.explanation[1 : found.explanation.rindex("' ")]
        letters = _letters(quoted.removesuffix("..."))
        assert letters in _letters(shown) or _letters(shown) in letters, f"{shown!r} is not {quoted!r}"


def _letters(text: str) -> str:
    return "".join(char for char in plain(text).casefold() if char.isalnum())


def test_the_cases_are_many_balanced_and_reasoned() -> None:
    labels = Counter(case["label"] for _, case in CASES)
    assert len(CASES) >= 600
    assert set(labels) == {CORRECT, INCORRECT, NOT_ATTEMPTED}
    assert min(labels[CORRECT], labels[INCORRECT]) > 0.3 * len(CASES)
    keys = [
        (case["question"], *case["targets"], json.dumps(case["metadata"], sort_keys=True), case["answer"])
        for _, case in CASES
    ]
    assert len(set(keys)) == len(keys), "no case twice"
    assert all(case["reason"] for _, case in CASES)


def test_the_evidence_is_a_place_in_the_reply() -> None:
    for reply, evidence in [
        ("It is **Paris**, of course.", "Paris"),
        ("Question: Is it Paris?\nAnswer: The capital is Paris.", "Paris"),
        ("[Paris](https://example.org/Paris)", "Paris"),
        ("\\text{Paris}", "Paris"),
        ("  \n The answer is:\n\nParis", "Paris"),
        ("Ｐａｒｉｓ", "Ｐａｒｉｓ"),
    ]:
        parts = score("Paris", reply).parts
        start, end = int(parts["evidence_start"]), int(parts["evidence_end"])
        assert reply[start:end] == evidence, reply
    repeated = "Question: Is it Paris?\nAnswer: The capital is Paris."
    assert score("Paris", repeated).parts["evidence_start"] == repeated.rindex("Paris")
    denied = score("Paris", "It is not Paris.").parts
    assert (denied["evidence_start"], denied["evidence_end"]) == (10, 15)
    water = "H<sub>2</sub>O it is"
    parts = score("H2O", water).parts
    assert water[int(parts["evidence_start"]) : int(parts["evidence_end"])] == "H<sub>2</sub>O"
    assert not score("Paris", "Lyon").parts, "nothing was found, so there is no place"


def test_names_that_hold_the_target_can_be_listed() -> None:
    confusable = ["Paris Hilton", "New Paris"]
    assert score("Paris", "Paris Hilton", confusable=confusable).label == INCORRECT
    assert score("Paris", "It is in Paris.", confusable=confusable).label == CORRECT


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
        score("5", "5", **metadata)
