"""An answer falls into claims, each with the citations that belong to it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Passage, Sample
from evalwright.scorers.grounding.citations import (
    citation,
    cited_ids,
    find_citations,
    remove_citations,
)
from evalwright.scorers.grounding.claims import extract_claims, is_courtesy

IDS = ("1", "2", "3")


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("63 [3]", [("63", "3")]),
        ("63 [3] clocks.", [("63 clocks.", "3")]),
        (
            "It opened in 1987 [1] and closes at noon [2].",
            [("It opened in 1987 and closes at noon", "1 2")],
        ),
        (
            "It opened in 1987 [1] and it closes.",
            [("It opened in 1987 and it closes.", "1")],
        ),
        (
            "It opened in 1987. [1] It closes at noon. [2]",
            [("It opened in 1987", "1"), ("It closes at noon", "2")],
        ),
        (
            "[1] It opened in 1987. [2] It closes.",
            [("It opened in 1987.", "1"), ("It closes.", "2")],
        ),
        (
            "- [1] It opened in 1987.\n- [2] It closes.",
            [("It opened in 1987.", "1"), ("It closes.", "2")],
        ),
        ("According to [1], it opened.", [("it opened.", "1")]),
        ("Passage 2 says that it opened.", [("it opened.", "2")]),
        ("It opened.\n\nSources: [1], [3]", [("It opened.", "1 3")]),
        ("It opened [2].\n\nSources: [1]", [("It opened", "2")]),
        ("It opened.\n[1] [2]", [("It opened.", "1 2")]),
        (
            "Dr. J. R. Marsh came at 5:30 p.m. on 6 May [1].",
            [("Dr. J. R. Marsh came at 5:30 p.m. on 6 May", "1")],
        ),
        (
            "Es gab z. B. 63 Uhren [1]. Mehr nicht [2].",
            [("Es gab z. B. 63 Uhren", "1"), ("Mehr nicht", "2")],
        ),
        ("有63座钟[3]。中午关门[1]。", [("有63座钟", "3"), ("中午关门", "1")]),
        ("It weighs 2.4 kg [1][2].", [("It weighs 2.4 kg", "1 2")]),
        ("It opened. This is stated in passage 2.", [("It opened.", "2")]),
        ("I found it in passage 1. It opened.", [("It opened.", "1")]),
        (
            "It opened in Trench A. (Source: [1][3])",
            [("It opened in Trench A.", "1 3")],
        ),
        ("**Explanation:** It opened [1].", [("It opened", "1")]),
        ("It opened [1]. [2]", [("It opened", "1 2")]),
        ("Paris [1]\n\nQuestion: and now?\nAnswer: Rome [2]", [("Paris", "1")]),
    ],
)
def test_claims(text: str, claims: list[tuple[str, str]]) -> None:
    found, loose = extract_claims(text, IDS)
    assert [
        (claim.text.strip(". ") if claim.cited else claim.text, " ".join(claim.cited))
        for claim in found
    ] == [(said.strip(". ") if cited else said, cited) for said, cited in claims]
    assert not loose


def test_citations_of_nothing() -> None:
    assert extract_claims("[1] [2]", IDS) == ([], ("1", "2"))
    assert extract_claims("", IDS) == ([], ())


@pytest.mark.parametrize(
    ("text", "courtesy"),
    [
        ("Sure!", True),
        ("Here is your response:", True),
        ("Based on the passages provided:", True),
        ("I hope this helps.", True),
        ("Which one do you mean?", True),
        ("Total:", True),
        ("63 clocks", False),
        ("At 17:30:", False),
        (
            "Sure enough the museum closes at half past five on a Sunday in the whole of July.",
            False,
        ),
    ],
)
def test_what_claims_nothing(text: str, courtesy: bool) -> None:
    assert is_courtesy(extract_claims(text)[0][0]) is courtesy


@given(st.text(alphabet="ab. [1]2,\n\ue000\ue001!?(:)", max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    claims, loose = extract_claims(text, IDS)
    assert all(claim.text.strip() for claim in claims)
    assert not (claims and loose)
    assert not any(
        "\ue000" <= char <= "\uf8ff" for claim in claims for char in claim.text
    )


# -- citations are read in the forms that people and models write, and what only looks like one is
# left alone -----------


NUMBERS = ("1", "2", "3")
LETTERED = ("p1", "p2", "p12")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("63 [3]", ["3"]),
        ("63 [p3]", ["3"]),
        ("63 (3).", ["3"]),
        ("63 (3), as told", ["3"]),
        ("63 (passage 3) clocks", ["3"]),
        ("63 (see source 3)", ["3"]),
        ("So said Marsh.³", ["3"]),
        ("as Marsh said¹ ² there", ["1", "2"]),
        ("in the hall<sup>2, 3</sup>", ["2", "3"]),
        ("in the hall^2", ["2"]),
        ("in the hall[^2]", ["2"]),
        ("According to passage 2, no.", ["2"]),
        ("Passages 1 and 3 say so.", ["1", "3"]),
        ("source 2 has it", ["2"]),
        ("Quelle 2 nennt es, Abschnitt 3 auch.", ["2", "3"]),
        ("según el pasaje 2", ["2"]),
        ("根据段落3", ["3"]),
        ("[2](https://example.org/x)", ["2"]),
        ("[Passage 2]", ["2"]),
        ("[7]", ["7"]),
        ("passage 9 says so", ["9"]),
        ("(passage 9)", ["9"]),
        # Not citations.
        ("in 1988 (1988)", []),
        ("(9)", []),
        ("(2) is the second item", []),
        ("5 km²", []),
        ("10^2", []),
        ("x^2 + y^2", []),
        ("[sic] and [the museum]", []),
        ("the passage from 2 to 3", []),
        ("document 9 of the archive", []),
        ("passage 2.5", []),
        ("p. 3 of the book", []),
        ("[1988]", []),
    ],
)
def test_forms(text: str, ids: list[str]) -> None:
    assert cited_ids(text, NUMBERS) == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("(p1) and [p2, P1]", ["p1", "p2"]),
        ("[1] and (2).", ["p1", "p2"]),
        ("according to p12 and passage p2", ["p2"]),
        ("[12]", ["p12"]),
        ("[p3]", ["p3"]),
        ("[doc 1]", ["p1"]),
    ],
)
def test_ids_that_are_no_numbers(text: str, ids: list[str]) -> None:
    assert cited_ids(text, LETTERED) == ids


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("63 [3].", "63."),
        ("According to passage 2, it is 63.", "it is 63."),
        ("According to [2], it is 63.", "it is 63."),
        ("Passage 2 says that it is 63.", "it is 63."),
        ("It is 63 (passage 2), no more.", "It is 63, no more."),
        (
            "It opened in 1987 [1] and closes at noon [2].",
            "It opened in 1987 and closes at noon.",
        ),
        ("It is 63 clocks.", "It is 63 clocks."),
        ("[1]", ""),
    ],
)
def test_an_answer_without_its_citations(text: str, bare: str) -> None:
    assert remove_citations(text, NUMBERS) == bare


@given(st.text(alphabet="[](){}^¹²³<>sup/1239,.;- passgeourc\n\"'", max_size=300))
def test_places_are_in_order_and_apart(text: str) -> None:
    citations = find_citations(text, NUMBERS)
    assert all(0 <= one.start < one.end <= len(text) and one.ids for one in citations)
    assert all(a.end <= b.start for a, b in pairwise(citations))
    remove_citations(text, NUMBERS)


# -- citations
# ----------------------------------------------------------------------------------------------------------


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
    assert cited_ids("So [doc-a] and [doc-b, doc-a].", ["doc-a", "doc-b"]) == [
        "doc-a",
        "doc-b",
    ]


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
    reply: str,
    gold: list[str],
    value: float,
    precision: float,
    recall: float,
    label: str,
) -> None:
    found = citation(sample(citations=gold), Answer(reply))
    assert found.value == pytest.approx(value)
    assert found.parts == {
        "precision": pytest.approx(precision),
        "recall": pytest.approx(recall),
    }
    assert found.label == label


def test_an_id_that_no_passage_has_is_named() -> None:
    assert (
        "no passage has the id 7"
        in citation(sample(citations=["1"]), Answer("[1][7]")).explanation
    )


def test_unanswerable_questions_need_no_citation() -> None:
    assert (
        citation(
            sample(citations=["1"], answerable=False), Answer("Not in the passages")
        ).value
        == 1.0
    )
    assert citation(sample(answerable=False), Answer("It is 5 [1]")).value == 0.0


def test_a_sample_must_say_what_is_right() -> None:
    with pytest.raises(ScoringError, match="citations"):
        citation(sample(), Answer("[1]"))
