"""The kinds of instruction: texts that follow each and texts that do not, and where the
published checkers decide otherwise.

`tests/data/instructions.jsonl` has the texts; what the published code says of each was recorded by
running it.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, ScoringError, UnknownName
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.scorers.instructions import by_language
from evalwright.scorers.instructions.by_language import BY_LANGUAGE
from evalwright.scorers.instructions.checks import ENGLISH, Kinds, Rules, follows
from evalwright.scorers.instructions.scorer import instructions, language_instructions
from evalwright.scorers.registry import bind
from evalwright.scorers.text.language import speaks
from support.bounds import assert_grows_linearly, repeated

DATA = Path(__file__).parent.parent / "data" / "instructions.jsonl"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()
]
SETS: dict[str, Kinds] = {"english": ENGLISH, "language": BY_LANGUAGE}


def decided(row: dict[str, Any], text: str, published: bool) -> bool:
    return follows(
        row["kind"],
        text,
        row["settings"],
        Rules(published, row["language"]),
        SETS[row["set"]],
    )


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['set']}-{row['kind']}-{row['language']}"
)
def test_each_kind(row: dict[str, Any]) -> None:
    for text in [*row["good"], *row["bad"]]:
        good = text in row["good"]
        assert decided(row, text, False) is good, text
        # Sentences are counted by a trained model there, which is not at hand.
        assert decided(row, text, True) is (
            good is not (text in row["published_differs"])
        ), text


def test_every_kind_has_texts_enough() -> None:
    for name, kinds in SETS.items():
        good, bad = (
            Counter(
                row["kind"] for row in ROWS if row["set"] == name for _ in row[side]
            )
            for side in ("good", "bad")
        )
        assert set(good) == set(bad) == set(kinds)
        assert min(*good.values(), *bad.values()) >= 8
    assert (len(ENGLISH), len(BY_LANGUAGE)) == (25, 21)


@settings(max_examples=25)
@given(text=st.text(max_size=60))
def test_no_text_breaks_a_check(text: str) -> None:
    for row in ROWS:
        assert decided(row, text, False) in (True, False)
        assert decided(row, text, True) in (True, False)


HOSTILE = (
    "[",
    "<<",
    "*",
    "\n",
    " ",
    "* ",
    "p. ",
    "Bagian |",
    "5",
    ".]",
    "A'",
    '{"a":',
    "`",
    "***a",
    "\n*",
    "x\n\n",
    "ก",
    "Section ",
)


def test_hostile_texts_take_little_time() -> None:
    decided(ROWS[0], "warm", False)
    by_language.score_instruction("startend:quotation", "warm", {}, Rules(True, "id"))
    for number, piece in enumerate(HOSTILE):
        for row in ROWS[number % 5 :: 5]:
            for published in (False, True):
                assert_grows_linearly(
                    partial(decided, row, published=published), repeated(piece)
                )


def test_a_pattern_from_the_data_is_ended() -> None:
    published = Rules(published=True)
    kind = "keywords:existence"
    text = "a" * 40 + "!"
    assert follows(kind, "x yy", {"keywords": ["y+"]}, published)
    assert not follows(kind, "x yy", {"keywords": ["y+"]})
    with pytest.raises(ScoringError, match="processor time"):
        follows(kind, text, {"keywords": ["(a+)+$"]}, published)


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


def sample(*kinds: str, settings: Any = None, **more: Any) -> Sample:
    return Sample(
        "s",
        metadata={
            "kinds": list(kinds),
            "settings": settings or [{} for _ in kinds],
            **more,
        },
    )


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


def test_the_published_rules_are_an_option() -> None:
    train = sample("keywords:existence", settings=[{"keywords": ["rain"]}])
    assert instructions(train, Answer("a train")).value == 0.0
    assert instructions(train, Answer("a train"), published=True).value == 1.0


def test_an_instruction_counts_in_its_language_alone() -> None:
    one = sample(
        "keywords:forbidden_words",
        settings=[{"forbidden_words": ["ikan"]}],
        language="id",
    )
    for published in (False, True):
        good = language_instructions(
            one, Answer("Saya suka makan nasi goreng."), published=published
        )
        assert isinstance(good, Score)
        assert (good.value, good.parts) == (1.0, {"followed": 1.0, "language": 1.0})
        other = language_instructions(
            one, Answer("I like to eat rice."), published=published
        )
        assert isinstance(other, Score)
        assert (other.value, other.label, other.parts["language"]) == (
            0.0,
            "other_language",
            0.0,
        )
    asked = sample(
        "language:response_language",
        settings=[{"response_language": "vi"}],
        language="id",
        answer_language="vi",
    )
    assert language_instructions(
        asked, Answer("Tôi thích ăn cơm với cá."), published=True
    ) == Score(
        1.0,
        "followed",
        "language:response_language",
        {"followed": 1.0, "language": 1.0},
    )
    words = sample(
        "length_constraints:number_words",
        settings=[{"num_words": 3, "relation": "at least"}],
        language="th",
    )
    assert isinstance(language_instructions(words, Answer("ก ข ค")), NoScore)
    # The published code has no rule for an empty text, and takes it for English.
    empty = sample(
        "keywords:forbidden_words",
        settings=[{"forbidden_words": ["fish"]}],
        language="en",
    )
    for published, value in ((False, 0.0), (True, 1.0)):
        found = language_instructions(empty, Answer(""), published=published)
        assert isinstance(found, Score)
        assert found.value == value


@pytest.mark.parametrize(
    ("name", "given", "error"),
    [
        ("instructions", sample("keywords:new"), "Unknown instruction 'keywords:new'"),
        ("instructions", sample("keywords:existance", settings=[{"keywords": ["a"]}]), "Did you mean 'keywords:existence'"),
        ("instructions", sample("keywords:frequency"), "needs the setting 'keyword'"),
        ("instructions", sample("keywords:existence", settings=[{"keywords": "a"}]), "must be a list of texts"),
        ("instructions", sample("length_constraints:number_words", settings=[{"num_words": "x", "relation": "at least"}]), "whole number"),
        ("instructions", sample("length_constraints:number_words", settings=[{"num_words": 3, "relation": "about"}]), "one of at least"),
        ("instructions", sample("punctuation:no_comma", settings=[{"words": 1}]), "Unknown setting"),
        ("instructions", sample("language:response_language", settings=[{"language": "xx"}]), "cannot be told"),
        ("instructions", Sample("s"), "no instructions"),
        ("instructions", sample("punctuation:no_comma", settings=[{}, {}]), "settings"),
        ("language-instructions", sample("punctuation:no_comma", language="id"), "Unknown instruction"),
        ("language-instructions", sample("startend:quotation"), "no language"),
        ("language-instructions", sample("startend:quotation", language="xx"), "cannot be told"),
        ("language-instructions", sample("detectable_content:postscript", settings=[{"postscript_marker": "N.B."}], language="id"), "Unknown marker"),
        ("language-instructions", sample("detectable_format:constrained_response", language="zh"), "Unknown language"),
    ],
)  # fmt: skip
def test_what_cannot_be_checked_is_refused_before_and_while_scoring(
    name: str, given: Sample, error: str
) -> None:
    bound = bind(name)
    assert bound.refuse is not None
    with pytest.raises((ConfigurationError, UnknownName, ScoringError), match=error):
        bound.refuse(given)
    if "marker" not in error and "Unknown language" not in error:
        with pytest.raises(ScoringError, match=error):
            bound.function(given, Answer("x"))


def test_options_are_checked() -> None:
    with pytest.raises(UnknownName, match=r"count.*Known: all, share"):
        bind("instructions", {"count": "some"})
    with pytest.raises(ConfigurationError, match="published"):
        bind("language-instructions", {"published": "yes"})
