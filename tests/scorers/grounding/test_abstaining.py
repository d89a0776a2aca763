"""Saying that the passages do not answer is recognised in several languages, and an answer is not taken for it."""

from __future__ import annotations

import pytest

from evalwright.scorers.grounding.abstaining import declines, guesses


@pytest.mark.parametrize(
    "text",
    [
        "Not in the passages",
        "Not in the passages.",
        "That is not mentioned in any of the passages.",
        "The passages do not say.",
        "The passages don't mention who led the survey.",
        "Passage 2 does not state it.",
        "None of the passages gives the price.",
        "This isn't mentioned.",
        "The passages give no figure for that.",
        "Nicht in den Passagen",
        "The provided context does not contain information about the price.",
        "There is no information about this.",
        "It cannot be determined from the text.",
        "I could not find the answer in the sources.",
        "I don't know",
        "I'm sorry, I don't know.",
        "Unknown",
        "Das steht nicht in den Texten.",
        "Der Preis wird nicht genannt.",
        "No se menciona.",
        "Les passages ne le précisent pas.",
        "Ce n'est pas mentionné.",
        "Os textos não dizem.",
        "Non è indicato.",
        "Dat wordt niet vermeld.",
        "Tidak disebutkan.",
        "В текстах не указано.",
        "文中没有提到。",
        "記載されていません。",
        "언급되어 있지 않습니다.",
    ],
)
def test_it_gives_no_answer(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "63",
        "The museum is not in the town.",
        "He was not the first.",
        "It was not built in 1954 but in 1960.",
        "The passages say 63.",
        "Passage 2 mentions no one but Duncan Frith.",
        "It has no lift.",
        "The text was written in 1954.",
        "Information desk",
        "It is not stated, but it is probably 12.",
        "I think that it was Frith.",
        "I'm sorry, but I can't help with that.",
        "",
    ],
)
def test_it_gives_one_or_guesses_or_does_not_deal_with_it(text: str) -> None:
    assert not declines(text)


def test_guesses() -> None:
    assert guesses("Not stated, but probably 12.")
    assert not guesses("Not stated.")
