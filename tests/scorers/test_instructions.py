"""The 25 kinds of instruction: a text that follows and one that does not, for each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample
from evalwright.scorers.instructions.checks import CHECKS, follows
from evalwright.scorers.instructions.scorer import instructions
from evalwright.scorers.text.language import speaks

EXAMPLES: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("change_case:capital_word_frequency", {"capital_relation": "at least", "capital_frequency": 2}, ["NO and YES."], ["NO and yes", "no"]),
    ("change_case:english_capital", {}, ["ALL LOUD!"], ["All LOUD", "123"]),
    ("change_case:english_lowercase", {}, ["all quiet."], ["All quiet", "123"]),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it. "}, ["Say it. Well"], ["Well. Say it."]),
    ("combination:two_responses", {}, ["one\n******\ntwo", "******one******two******"], ["one", "one******one", "a******b******c", "a******"]),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, ["[a] and [b c]"], ["[a]", "[[a]"]),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, ["Bye.\nP.S. more", "Bye. p. s. more"], ["Bye", "P.P.S. more", "tips."]),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, ["Bye.\nP.P.S. more"], ["P.S. more"]),
    ("detectable_format:constrained_response", {}, ["My answer is yes."], ["Yes."]),
    ("detectable_format:json_format", {}, ['{"a": [1]}', '```json\n{"a": 1}\n```'], ["{a: 1}", "text"]),
    ("detectable_format:multiple_sections", {"section_spliter": "SECTION", "num_sections": 2}, ["SECTION 1 a\nSECTION 2 b"], ["SECTION 1 a"]),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, ["* a\n- b", "Look:\n* a\n  * b"], ["* a", "* a\n* b\n* c", "**a**\n**b**"]),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, ["*a* and **b**"], ["*a*", "** and **"]),
    ("detectable_format:title", {}, ["<<joy>>\ntext"], ["joy", "<<  >>"]),
    ("keywords:existence", {"keywords": ["Rain", "sun"]}, ["rain and SUN"], ["rain"]),
    ("keywords:forbidden_words", {"forbidden_words": ["cat", "c++"]}, ["category"], ["a Cat!", "I like C++."]),
    ("keywords:frequency", {"keyword": "la", "frequency": 3, "relation": "at least"}, ["la La la"], ["la la"]),
    ("keywords:frequency", {"keyword": "la", "frequency": 3, "relation": "less than"}, ["la la"], ["la la la"]),
    ("keywords:letter_frequency", {"letter": "q", "let_frequency": 2, "let_relation": "at least"}, ["Q and q"], ["q"]),
    ("language:response_language", {"language": "de"}, ["Das ist nicht der Weg und auch nicht das Ziel."], ["This is not the way.", "Это не путь."]),
    ("length_constraints:nth_paragraph_first_word", {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "weekend"}, ["One.\n\n\"Weekend, ho\""], ["Weekend\n\nOne", "One", "a\n\nb\n\nweekend"]),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, ["a\n***\nb", "***a***b***"], ["a\n\nb", "a***b***c", "a***  ***b"]),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "less than"}, ["One. Two!", "It costs 3.50 euro. Yes"], ["One. Two? Three", "One. Two. Three."]),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, ["one two three"], ["one two"]),
    ("punctuation:no_comma", {}, ["a; b"], ["a, b"]),
    ("startend:end_checker", {"end_phrase": "The end."}, ["Well. the END.", '"So. The end."'], ["The end. Or not"]),
    ("startend:quotation", {}, ['"quoted"'], ['"half', "none", '"']),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "settings", "good", "bad"), EXAMPLES)
def test_each_kind(kind: str, settings: dict[str, Any], good: list[str], bad: list[str]) -> None:
    for text in good:
        assert follows(kind, text, settings), text
    for text in [*bad, "", " \n"]:
        assert not follows(kind, text, settings), text


def test_every_kind_has_an_example() -> None:
    assert {kind for kind, *_ in EXAMPLES} == set(CHECKS)
    assert len(CHECKS) == 25


@given(text=st.text(max_size=60))
@pytest.mark.parametrize(("kind", "settings", "good", "bad"), EXAMPLES)
def test_no_text_breaks_a_check(
    kind: str, settings: dict[str, Any], good: list[str], bad: list[str], text: str
) -> None:
    assert follows(kind, text, settings) in (True, False)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "It was the best of times and it was the worst of times."),
        ("fr", "Il est dans la maison avec les enfants et le chien."),
        ("es", "El perro no está en la casa porque es de noche y hace frío."),
        ("pt", "O cão não está em casa porque é noite e faz frio mas ele gosta."),
        ("it", "Il cane non è in casa perché è notte e fa freddo nel bosco."),
        ("fi", "Hän ei ole kotona, mutta se on totta että myös koira ja kissa ovat."),
        ("sw", "Mtoto wa jirani ni mgonjwa na mama yake yuko katika nyumba ya wageni."),
        ("vi", "Đây là một ngôi nhà của tôi và không có người nào ở trong."),
        ("ru", "Он не был дома, но это не так важно, как его слова."),
        ("bg", "Това е къщата на моя баща и тя не се продава за пари."),
        ("hi", "यह एक घर है और इस में लोग रहते हैं।"),
        ("ur", "یہ ایک گھر ہے اور اس میں لوگ رہتے ہیں۔"),
        ("fa", "این خانه را برای شما ساختم و در آن زندگی می کنم."),
        ("ko", "이것은 집입니다."),
        ("ja", "これは私の家です。"),
        ("zh", "这是我的家。"),
        ("th", "นี่คือบ้านของฉัน"),
        ("kn", "ಇದು ನನ್ನ ಮನೆ"),
        ("pa", "ਇਹ ਮੇਰਾ ਘਰ ਹੈ"),
    ],
)
def test_languages(code: str, text: str) -> None:
    assert speaks(text, code)
    others = {
        "en",
        "fr",
        "es",
        "pt",
        "it",
        "fi",
        "sw",
        "vi",
        "ru",
        "bg",
        "hi",
        "ur",
        "fa",
        "ko",
        "ja",
        "zh",
        "th",
    } - {code}
    assert [other for other in sorted(others) if speaks(text, other)] == []


def sample(*kinds: str, settings: Any = None) -> Sample:
    return Sample("s", metadata={"kinds": list(kinds), "settings": settings or [{} for _ in kinds]})


def test_all_or_a_share() -> None:
    both = sample("punctuation:no_comma", "startend:quotation")
    found = instructions(both, Answer("no quote"))
    assert (found.value, found.label, found.parts) == (
        0.0,
        "partly_followed",
        {"followed": 1.0, "asked": 2.0},
    )
    assert "startend:quotation" in found.explanation
    assert instructions(both, Answer("no quote"), count="share").value == 0.5
    assert instructions(both, Answer('"yes"')).value == 1.0
    assert instructions(both, Answer("a, b")).label == "not_followed"


def test_loosely_an_introduction_and_emphasis_are_forgiven() -> None:
    quoted = sample("startend:quotation")
    text = 'Here you are:\n*"quoted"*'
    assert instructions(quoted, Answer(text)).value == 0.0
    assert instructions(quoted, Answer(text), loose=True).value == 1.0


def test_what_cannot_be_checked_is_an_error() -> None:
    with pytest.raises(ScoringError, match="not known"):
        instructions(sample("keywords:new"), Answer("x"))
    with pytest.raises(ScoringError, match="keyword"):
        instructions(sample("keywords:frequency"), Answer("x"))
    with pytest.raises(ScoringError, match="cannot be told"):
        instructions(sample("language:response_language", settings=[{"language": "xx"}]), Answer("x"))
    with pytest.raises(ScoringError, match="no instructions"):
        instructions(Sample("s"), Answer("x"))
    with pytest.raises(ScoringError, match="settings"):
        instructions(sample("punctuation:no_comma", settings=[{}, {}]), Answer("x"))
    with pytest.raises(ConfigurationError, match="count"):
        instructions(sample("punctuation:no_comma"), Answer("x"), count="some")
