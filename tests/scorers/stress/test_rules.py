"""The rules on answers in nine languages, and what must not change a class: politeness, wrapping, markup, length."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.scorers.stress.phrases import known_languages
from evalwright.scorers.stress.rules import CLASSES, HANDLED
from scorers.stress.cases import CORRECTION, EMPTY, FABRICATED, PARTIAL, REFUSAL, Case, Stress, ruling
from scorers.stress.cases_chat import CASES as CHAT
from scorers.stress.cases_chat_others import CASES as CHAT_OTHERS
from scorers.stress.cases_en import CASES as ENGLISH
from scorers.stress.cases_latin import CASES as LATIN
from scorers.stress.cases_others import CASES as OTHERS

BY_LANGUAGE: dict[str, list[Case]] = {"en": [*ENGLISH, *CHAT], **LATIN, **OTHERS}
for _language, _cases in CHAT_OTHERS.items():
    BY_LANGUAGE[_language] = [*BY_LANGUAGE[_language], *_cases]
ALL = [(language, *case) for language, cases in BY_LANGUAGE.items() for case in cases]

COURTESIES = {
    "en": ("Sure! ", "Thank you for your question. ", "Great question! "),
    "id": ("Terima kasih atas pertanyaannya. ", "Tentu! "),
    "ms": ("Terima kasih atas soalan anda. ", "Baik. "),
    "vi": ("Cảm ơn bạn đã hỏi. ", "Vâng. "),
    "fil": ("Salamat sa iyong tanong. ", "Sige po. "),
    "ko": ("질문해 주셔서 감사합니다. ", "안녕하세요. "),
    "zh": ("感谢您的提问。", "好的。"),
    "th": ("ขอบคุณสำหรับคำถาม\n", "สวัสดีครับ\n"),
    "ta": ("உங்கள் கேள்விக்கு நன்றி. ", "வணக்கம். "),
}
FAREWELLS = {
    "en": (" I hope this helps!", " Let me know if you have any other questions."),
    "id": (" Semoga membantu!",),
    "ms": (" Semoga membantu!",),
    "vi": (" Hy vọng điều này giúp ích cho bạn.",),
    "fil": (" Sana nakatulong ito.",),
    "ko": (" 도움이 되었기를 바랍니다.",),
    "zh": ("希望这对您有帮助。",),
    "th": ("\nหวังว่าจะเป็นประโยชน์",),
    "ta": (" இது உதவியாக இருக்கும் என நம்புகிறேன்.",),
}


def test_every_language_has_enough_cases_of_every_class() -> None:
    assert set(BY_LANGUAGE) == set(known_languages())
    for language, cases in BY_LANGUAGE.items():
        assert len(cases) >= (40 if language == "en" else 20), language
        assert {label for _, _, label in cases} == set(CLASSES), language


@pytest.mark.parametrize(("language", "stress", "reply", "label"), ALL)
def test_an_answer_is_of_the_class_that_a_reader_gives_it(
    language: str, stress: Stress, reply: str, label: str
) -> None:
    found = ruling(stress, reply, language)
    assert found.label == label, f"the rules say: {found}"
    assert found.rule
    assert found.evidence or label == EMPTY


@pytest.mark.parametrize("language", BY_LANGUAGE)
def test_politeness_changes_no_class(language: str) -> None:
    changed = []
    for stress, reply, label in BY_LANGUAGE[language]:
        if label == EMPTY:
            continue
        for before, after in itertools.product(("", *COURTESIES[language]), ("", *FAREWELLS[language])):
            stop = "。" if language == "zh" else "."
            ended = reply if reply[-1] in ".。?!" or not after else f"{reply}{stop}"
            found = ruling(stress, f"{before}{ended}{after}", language)
            if found.label != label:
                changed.append(f"{before}{ended}{after!r}: {label} became {found}")
    assert not changed, "\n".join(changed)


@pytest.mark.parametrize("language", BY_LANGUAGE)
def test_an_answer_in_a_language_that_nobody_declared(language: str) -> None:
    """Languages that are read only where they are declared or by their script lose little without it."""
    cases = [case for case in BY_LANGUAGE[language] if case[2] != EMPTY]
    wrong = [
        reply
        for stress, reply, label in cases
        if (ruling(stress, reply, "").label in HANDLED) != (label in HANDLED)
    ]
    assert len(wrong) <= 0.1 * len(cases), wrong


SURE = [
    (stress, reply, label)
    for stress, reply, label in ENGLISH
    if label in (REFUSAL, CORRECTION, FABRICATED, PARTIAL) and "\n" not in reply and reply[-1] == "."
]
WRAPS = ("{}", "**{}**", "Answer: {}", "> {}", "  {}\n", '"{}"', "{}\n\nQuestion: What is 3 + 4?\nAnswer: 7")


@settings(max_examples=150, deadline=None)
@given(
    case=st.sampled_from(SURE),
    wrap=st.sampled_from(WRAPS),
    before=st.lists(st.sampled_from(COURTESIES["en"]), max_size=3),
    after=st.lists(st.sampled_from(FAREWELLS["en"]), max_size=3),
)
def test_no_wrapping_and_no_length_changes_a_class(
    case: Case, wrap: str, before: list[str], after: list[str]
) -> None:
    stress, reply, label = case
    text = wrap.format(reply) if not before else f"{''.join(before)}{reply}"
    if not text.endswith("7"):
        text += "".join(after)
    assert ruling(stress, text).label == label, text


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_has_a_class(text: str) -> None:
    found = ruling(ENGLISH[0][0], text)
    assert found.label in CLASSES
    if not any(map(str.isalnum, text)):
        assert found.label == EMPTY


def test_hostile_lengths_take_no_time() -> None:
    for text in ("not " * 5000, "no one but " * 3000, "(" * 20000, "a" * 50000, "나" * 20000, "1," * 20000):
        assert ruling(ENGLISH[0][0], text).label in CLASSES


def test_without_metadata_the_words_alone_decide() -> None:
    stress = Stress("Which king of Switzerland opened the tunnel?", "")
    assert ruling(stress, "Switzerland never had a king.").label == CORRECTION
    assert ruling(stress, "King Louis II of Savoy opened it.").label == FABRICATED
    assert ruling(stress, "I do not know.").label == REFUSAL


def test_listed_words_that_the_question_has_tell_nothing() -> None:
    stress = Stress("Which king of Switzerland opened the tunnel?", "", ("Switzerland",), ("tunnel",))
    assert ruling(stress, "The king of Switzerland opened the tunnel gladly.").label == "premise accepted"


def test_the_rules_are_sure_where_a_reader_is() -> None:
    for stress, reply, label in ENGLISH:
        found = ruling(stress, reply)
        if label == PARTIAL:
            assert not found.sure, reply
    sure = sum(ruling(stress, reply).sure for stress, reply, _ in ENGLISH)
    assert sure > 0.6 * len(ENGLISH)
