"""Citations: precision, recall and F1 of the passages that an answer cites."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Passage, Sample
from evalwright.scorers.grounding.citations import citation, cited_ids

PASSAGES = tuple(Passage(name, "text") for name in ("1", "2", "3"))


def sample(**metadata: Any) -> Sample:
    return Sample("s", passages=PASSAGES, metadata=metadata)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("It is so [1].", ["1"]),
        ("[1, 3]", ["1", "3"]),
        ("[1][3]", ["1", "3"]),
        ("[1; 2] and [2]", ["1", "2"]),
        ("[1-3]", ["1", "2", "3"]),
        ("[1\u20133]", ["1", "2", "3"]),
        ("[passage 2]", ["2"]),
        ("[Source: 2]", ["2"]),
        ("[1 and 2]", ["1", "2"]),
        ("【1】", ["1"]),
        ("[9]", ["9"]),
        ("[a note] (1) 1 []", []),
        ("[1-500]", []),
    ],
)
def test_cited_ids(text: str, ids: list[str]) -> None:
    assert cited_ids(text, ["1", "2", "3"]) == ids


def test_ids_that_are_words() -> None:
    assert cited_ids("So [doc-a] and [doc-b, doc-a].", ["doc-a", "doc-b"]) == ["doc-a", "doc-b"]


@pytest.mark.parametrize(
    ("reply", "gold", "value", "precision", "recall", "label"),
    [
        ("x [1]", ["1"], 1.0, 1.0, 1.0, "correct"),
        ("x [1][2]", ["1"], 2 / 3, 0.5, 1.0, "partial"),
        ("x [1]", ["1", "3"], 2 / 3, 1.0, 0.5, "partial"),
        ("x [2]", ["1"], 0.0, 0.0, 0.0, "incorrect"),
        ("x", ["1"], 0.0, 0.0, 0.0, "incorrect"),
        ("x [1][7]", ["1"], 2 / 3, 0.5, 1.0, "partial"),
        ("x\n\nSources: [1]", ["1"], 1.0, 1.0, 1.0, "correct"),
        ("x [1]\n\nQuestion: y\nAnswer: z [2]", ["1"], 1.0, 1.0, 1.0, "correct"),
        ("x", [], 1.0, 1.0, 1.0, "correct"),
        ("x [1]", [], 0.0, 0.0, 0.0, "incorrect"),
    ],
)
def test_scores(
    reply: str, gold: list[str], value: float, precision: float, recall: float, label: str
) -> None:
    found = citation(sample(citations=gold), Answer(reply))
    assert found.value == pytest.approx(value)
    assert found.parts == {"precision": pytest.approx(precision), "recall": pytest.approx(recall)}
    assert found.label == label


def test_an_id_that_no_passage_has_is_named() -> None:
    assert "no passage has the id 7" in citation(sample(citations=["1"]), Answer("[1][7]")).explanation


def test_unanswerable_questions_need_no_citation() -> None:
    assert citation(sample(citations=["1"], answerable=False), Answer("Not in the passages")).value == 1.0
    assert citation(sample(answerable=False), Answer("It is 5 [1]")).value == 0.0


def test_a_sample_must_say_what_is_right() -> None:
    with pytest.raises(ScoringError, match="citations"):
        citation(sample(), Answer("[1]"))
