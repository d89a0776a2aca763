"""Whether a text declines to answer, in many languages and both directions; the cases of refusing to summarise are in test_outcome."""

from __future__ import annotations

import time

import pytest

from evalwright.scorers.text import declining
from evalwright.scorers.text.declining import NO_INFORMATION, REFUSAL, declines, declining_clause

NO_ANSWER = [
    "Sorry, that isn't something I can help with.",
    "I have no idea who wrote that.",
    "The provided documents do not mention a price.",
    "There is no mention of a founder in the passages.",
    "Based on the passages, it is not possible to determine the year.",
    "I could not find this in the provided text.",
    "No information about the depth is given.",
    "The answer is not in the context.",
    "This information is not available in the passages provided.",
    "I'm unable to answer that question.",
    "The year of construction is not specified.",
    "I do not have any information about that event.",
    "None of the sources say.",
    "Nobody knows for sure.",
    "Cannot be determined from the passages.",
    "It's unclear from the text.",
    "My apologies, but I'm not able to provide that.",
    "I don't know the answer to that question.",
    "I'm not familiar with that person.",
    "That is unknown.",
    "I cannot provide an answer based on the text.",
    "The context provided doesn't say when it opened.",
    "Not mentioned.",
    "Answer: Not in the passages.",
    "I can't determine which year it was, since the passages give no dates.",
    "Es tut mir leid, das weiß ich nicht.",
    "Désolé, je ne sais pas.",
    "Lo siento, no lo sé.",
    "抱歉，我不知道。",
    "모르겠습니다.",
    "Maaf, saya tidak tahu.",
    "Xin lỗi, tôi không biết.",
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
    "I don't know.",
    "I do not know the answer.",
    "I don’t know",
    "No answer",
    "no answer.",
    "N/A",
    "It cannot be determined.",
    "It is not known.",
    "It is unknown.",
    "I'm not sure.",
    "No idea",
    "I cannot answer that.",
    "I can't recall who that was.",
    "I am unable to verify this.",
    "I'm sorry, but I have no information about that.",
    "As an AI language model, I cannot say.",
    "I do not have enough information.",
    "There is no information about that.",
    "The text does not say.",
    "This is not stated in the passage.",
    "I'm not aware of such a person.",
    "idk",
    "我不知道",
    "모르겠습니다",
    "わかりません",
    "ไม่ทราบ",
    "Saya tidak tahu",
    "Tôi không biết",
    "Hindi ko alam",
    "தெரியாது",
    "Je ne sais pas",
    "No sé",
    "Ich weiß nicht",
]
ANSWERS = [
    "It was not known that he was ill until 1950.",
    "Nobody.",
    "He did not know that it was Paris.",
    "I know: Paris.",
    "The Unknown Soldier",
    "He was unable to answer because he was in Paris.",
    "The author is not known for comedy but for tragedy.",
    "I don't know why you ask, it is 42.",
    "It is not in London.",
    "He wrote 'I don't know' in 1950.",
    "The passages do not agree: one says 12, the other 14.",
    "I can't find it in passage 1, but passage 2 says 12.",
    "Not stated in 1 but it is 5",
    "I am not sure it is Paris",
    "no",
    "No, he did not.",
    "42",
    "He said he would not comment.",
    "I cannot be sure, though Paris seems likely.",
    "The information desk is not available on Sundays.",
    "The text contains no errors.",
    "It is impossible to say no to chocolate.",
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
]


@pytest.mark.parametrize("text", NO_ANSWER)
def test_it_gives_no_answer(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_it_gives_one_or_is_not_certain_to_give_none(text: str) -> None:
    assert declines(text) is None


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
    assert "fr" in declining.languages()


def test_what_stands_beside_may_be_let_pass_or_ignored() -> None:
    text = "I cannot do that. It costs 63 crowns."
    assert declines(text) is None
    assert declines(text, beside=4)
    found = declining_clause("It costs 63 crowns. But I don't know, ask him.")
    assert found is not None
    assert found.words == "but i don't know"
    assert declining_clause("It costs 63 crowns.") is None


@pytest.mark.parametrize(
    "part", ["i do not ", "not in the ", "我无法", "요약 ", "özet ", "is not ", "a, ", "nicht kann ich "]
)
def test_hostile_repetition_takes_no_time(part: str) -> None:
    began = time.monotonic()
    for words in (40, 110):
        declines(part * words)
    declines(part * 20_000)
    declining_clause(part * 20_000)
    assert time.monotonic() - began < 10
