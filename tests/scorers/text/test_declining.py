"""Whether a text declines to answer, in many languages and both directions: the texts, with what
a reader says, are in declining.jsonl.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.scorers.text.declining import (
    NO_INFORMATION,
    REFUSAL,
    declines,
    declining_clause,
)
from support.bounds import ends

CASES: dict[str, list[dict[str, str]]] = {}
for _line in (
    Path(__file__).with_name("declining.jsonl").read_text(encoding="utf-8").splitlines()
):
    _case = json.loads(_line)
    CASES.setdefault(_case["expected"], []).append(_case)


def texts(expected: str) -> list[str]:
    return [case["text"] for case in CASES[expected]]


def test_what_gives_no_answer_declines() -> None:
    assert [text for text in texts("no answer") if declines(text) is None] == []
    assert [text for text in texts("an answer or not certain") if declines(text)] == []


def test_refusals_of_a_summary_in_seventeen_languages() -> None:
    refused = CASES["refusal of a summary"]
    assert len({case["language"] for case in refused}) == 17
    assert len(refused) > 250
    for case in refused:
        found = declines(case["text"], beside=5)
        assert found is not None and (found.kind, found.language) == (
            REFUSAL,
            case["language"],
        ), case


def test_summaries_that_mention_inability_are_no_refusals() -> None:
    for text in texts("a summary"):
        found = declines(text, beside=5)
        assert found is None or found.kind == NO_INFORMATION, text


@pytest.mark.parametrize(
    ("text", "kind", "language"),
    [
        ("I'm sorry, but I can't help with that.", REFUSAL, "en"),
        ("The passages do not say.", NO_INFORMATION, "en"),
        ("Je ne sais pas.", NO_INFORMATION, "fr"),
        ("Je ne peux pas résumer ce passage.", REFUSAL, "fr"),
        ("我不知道。", NO_INFORMATION, "zh"),
    ],
)
def test_kind_and_language(text: str, kind: str, language: str) -> None:
    found = declines(text)
    assert found is not None
    assert (found.kind, found.language) == (kind, language)
    assert declines(text, language) == found


def test_a_named_language_and_english_are_read_and_no_other() -> None:
    assert declines("Je ne sais pas.", "de") is None
    assert declines("I don't know.", "de-AT")


def test_what_stands_beside_may_be_let_pass_or_ignored() -> None:
    text = "I cannot do that. It costs 63 crowns."
    assert declines(text) is None
    assert declines(text, beside=4)
    found = declining_clause("It costs 63 crowns. But I don't know, ask him.")
    assert found is not None
    assert found.words == "but i don't know"
    assert declining_clause("It costs 63 crowns.") is None


@pytest.mark.parametrize(
    "part",
    [
        "i do not ",
        "not in the ",
        "我无法",
        "요약 ",
        "özet ",
        "is not ",
        "a, ",
        "nicht kann ich ",
    ],
)
def test_hostile_repetition_takes_no_time(part: str) -> None:
    with ends():
        for words in (40, 110, 20_000):
            declines(part * words)
        declining_clause(part * 20_000)
