"""An answer falls into claims, each with the citations that belong to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.scorers.grounding.claims import claims_of, is_courtesy

IDS = ("1", "2", "3")


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("63 [3]", [("63", "3")]),
        ("63 [3] clocks.", [("63 clocks.", "3")]),
        ("It opened in 1987 [1] and closes at noon [2].", [("It opened in 1987 and closes at noon", "1 2")]),
        ("It opened in 1987 [1] and it closes.", [("It opened in 1987 and it closes.", "1")]),
        (
            "It opened in 1987. [1] It closes at noon. [2]",
            [("It opened in 1987", "1"), ("It closes at noon", "2")],
        ),
        ("[1] It opened in 1987. [2] It closes.", [("It opened in 1987.", "1"), ("It closes.", "2")]),
        ("- [1] It opened in 1987.\n- [2] It closes.", [("It opened in 1987.", "1"), ("It closes.", "2")]),
        ("According to [1], it opened.", [("it opened.", "1")]),
        ("Passage 2 says that it opened.", [("it opened.", "2")]),
        ("It opened.\n\nSources: [1], [3]", [("It opened.", "1 3")]),
        ("It opened [2].\n\nSources: [1]", [("It opened", "2")]),
        ("It opened.\n[1] [2]", [("It opened.", "1 2")]),
        (
            "Dr. J. R. Marsh came at 5:30 p.m. on 6 May [1].",
            [("Dr. J. R. Marsh came at 5:30 p.m. on 6 May", "1")],
        ),
        ("Es gab z. B. 63 Uhren [1]. Mehr nicht [2].", [("Es gab z. B. 63 Uhren", "1"), ("Mehr nicht", "2")]),
        ("有63座钟[3]。中午关门[1]。", [("有63座钟", "3"), ("中午关门", "1")]),
        ("It weighs 2.4 kg [1][2].", [("It weighs 2.4 kg", "1 2")]),
        ("It opened. This is stated in passage 2.", [("It opened.", "2")]),
        ("I found it in passage 1. It opened.", [("It opened.", "1")]),
        ("It opened in Trench A. (Source: [1][3])", [("It opened in Trench A.", "1 3")]),
        ("**Explanation:** It opened [1].", [("It opened", "1")]),
        ("It opened [1]. [2]", [("It opened", "1 2")]),
        ("Paris [1]\n\nQuestion: and now?\nAnswer: Rome [2]", [("Paris", "1")]),
    ],
)
def test_claims(text: str, claims: list[tuple[str, str]]) -> None:
    found, loose = claims_of(text, IDS)
    assert [
        (claim.text.strip(". ") if claim.cited else claim.text, " ".join(claim.cited)) for claim in found
    ] == [(said.strip(". ") if cited else said, cited) for said, cited in claims]
    assert not loose


def test_citations_of_nothing() -> None:
    assert claims_of("[1] [2]", IDS) == ([], ("1", "2"))
    assert claims_of("", IDS) == ([], ())


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
        ("Sure enough the museum closes at half past five on a Sunday in the whole of July.", False),
    ],
)
def test_what_claims_nothing(text: str, courtesy: bool) -> None:
    assert is_courtesy(claims_of(text)[0][0]) is courtesy


@given(st.text(alphabet="ab. [1]2,\n\ue000\ue001!?(:)", max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    claims, loose = claims_of(text, IDS)
    assert all(claim.text.strip() for claim in claims)
    assert not (claims and loose)
    assert not any("\ue000" <= char <= "\uf8ff" for claim in claims for char in claim.text)
