"""ROUGE against rouge-score: on sentences, on random texts, with its stemmer; other languages by
their own words; long answers in time.
"""

from __future__ import annotations

import random
from importlib.util import find_spec
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, MissingExtra, UnknownName
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers import rouge as ours
from evalwright.scorers.registry import bind
from evalwright.scorers.text import segmentation
from support.bounds import assert_grows_linearly

rouge_scorer = pytest.importorskip(
    "rouge_score.rouge_scorer", reason="rouge-score is the oracle"
)

TEXTS = [
    ("The council voted on Tuesday to close the bridge.\nRepairs will take until 2027 and cost $4.2 million.",
     "On Tuesday the council voted to close the bridge for repairs.\n\nThe work costs 4.2 million dollars."),
    ("It's the well-known trade-off: speed, or safety?", "the trade off is well known - safety or speed"),
    ("one", ""), ("", "one"), ("...", "one two"), ("Running runners ran the races.", "A runner runs in a race and races."),
    ("A b c d e f", "f e d c b a"), ("naïve café", "naive cafe"), ("a\nb\na\nb", "b a\na b"),
]  # fmt: skip


def scored(target: str, text: str, **options: Any) -> tuple[float, float, float]:
    language = {"language": "en", **options}
    found = bind("rouge", language).function(
        Sample("a", targets=(target,)), Answer(text)
    )
    assert isinstance(found, Score)
    return found.value, found.parts["precision"], found.parts["recall"]


def published(
    kind: str, target: str, text: str, stem: bool = False
) -> tuple[float, float, float]:
    found = rouge_scorer.RougeScorer([kind], use_stemmer=stem).score(target, text)[kind]
    return found.fmeasure, found.precision, found.recall


@pytest.mark.parametrize("kind", ours.KINDS)
def test_numbers_are_those_of_rouge_score(kind: str) -> None:
    for target, text in TEXTS:
        for stem in (False, True):
            assert scored(target, text, kind=kind, stem=stem) == pytest.approx(
                published(kind, target, text, stem), abs=1e-12
            )
    draw = random.Random(7)
    for _ in range(150):
        target, text = (
            "".join(draw.choice("abcdefgh") * draw.randint(1, 2) + draw.choice((" ", ", ", "\n", " ")) for _ in range(draw.randint(0, 40)))
            for _ in range(2)
        )  # fmt: skip
        assert scored(target, text, kind=kind) == pytest.approx(
            published(kind, target, text), abs=1e-12
        )


def test_the_best_target_counts() -> None:
    targets = ("nothing like it", "the bridge is closed", "closed")
    found = bind("rouge", {"kind": "rouge1"}).function(
        Sample("a", targets=targets), Answer("The bridge is closed.")
    )
    assert isinstance(found, Score)
    assert found.value == 1.0


@pytest.mark.parametrize(
    ("language", "target", "text", "shared", "given", "wanted"),
    [
        ("de", "Der Zug fährt nach Köln.", "Der Zug nach KÖLN", 4, 4, 5),
        ("", "Поезд идёт в Москву", "поезд в Москву", 3, 3, 4),
        ("ta", "நான் பள்ளிக்குச் செல்கிறேன்", "நான் செல்கிறேன்", 2, 2, 3),
    ],
)
def test_languages_with_spaces(
    language: str, target: str, text: str, shared: int, given: int, wanted: int
) -> None:
    sample = Sample("a", targets=(target,), metadata={"language": language})
    found = bind("rouge").function(sample, Answer(text))
    assert isinstance(found, Score)
    assert (found.parts["precision"], found.parts["recall"]) == (
        shared / given,
        shared / wanted,
    )


@pytest.mark.skipif(not find_spec("icu"), reason="needs PyICU")
@pytest.mark.parametrize(
    ("language", "target", "text", "wanted", "given", "shared"),
    [
        ("th", "แมวกินปลา", "แมวกินข้าว", ["แมว", "กิน", "ปลา"], ["แมว", "กิน", "ข้าว"], 2),
        (
            "zh",
            "我们去学校。",
            "我们在学校",
            ["我们", "去", "学校"],
            ["我们", "在", "学校"],
            2,
        ),
        (
            "ja",
            "猫が魚を食べる",
            "猫が水を飲む",
            ["猫", "が", "魚", "を", "食べる"],
            ["猫", "が", "水", "を", "飲む"],
            3,
        ),
        (
            "my",
            "ကျောင်းကို သွားတယ်",
            "ကျောင်းကို",
            ["ကျောင်း", "ကို", "သွား", "တယ်"],
            ["ကျောင်း", "ကို"],
            2,
        ),
        ("lo", "ໂຮງຮຽນ", "ໂຮງຮຽນ", ["ໂຮງຮຽນ"], ["ໂຮງຮຽນ"], 1),
        ("km", "សាលារៀន ល្អ", "ល្អ", ["សាលារៀន", "ល្អ"], ["ល្អ"], 1),
    ],
)
def test_languages_without_spaces(
    language: str,
    target: str,
    text: str,
    wanted: list[str],
    given: list[str],
    shared: int,
) -> None:
    assert segmentation.segment(target, language) == wanted
    assert segmentation.segment(text, language) == given
    sample = Sample("a", targets=(target,), metadata={"language": language})
    found = bind("rouge").function(sample, Answer(text))
    assert isinstance(found, Score)
    assert (found.parts["precision"], found.parts["recall"]) == (
        shared / len(given),
        shared / len(wanted),
    )
    assert ("MeCab" if language == "ja" else "ICU") in found.explanation


@pytest.mark.skipif(not find_spec("icu"), reason="needs PyICU")
def test_places_are_right_beside_characters_of_two_units_and_lone_surrogates() -> None:
    assert segmentation.segment("😀แมว😀กิน", "th") == ["แมว", "กิน"]
    assert "แมว" in segmentation.segment("\ud83dแมว", "th")


def test_what_cannot_be_used_is_said_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'rougeL'"):
        bind("rouge", {"kind": "rougel"})
    with pytest.raises(ConfigurationError, match="for English"):
        bind("rouge", {"stem": True, "language": "de"})
    monkeypatch.setattr(segmentation, "find_spec", lambda name: None)
    monkeypatch.setattr(ours, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtra,
        match=r"'th'.*'PyICU'.*libicu-dev.*evalwright\[segmentation\]",
    ):
        bind("rouge", {"language": "th"})
    with pytest.raises(MissingExtra, match="for the language 'my'"):
        ours.check_rouge_sample(Sample("a", metadata={"language": "mya"}), {})
    with pytest.raises(MissingExtra, match=r"evalwright\[rouge\]"):
        bind("rouge", {"stem": True})


@pytest.mark.parametrize("kind", ours.KINDS)
def test_a_long_answer_is_scored_in_time(kind: str) -> None:
    draw = random.Random(3)
    words = ["".join(draw.choices("abcdefghij", k=3)) for _ in range(26_000)]
    target = " ".join(words[:150]) + "\n" + " ".join(words[150:300])
    assert_grows_linearly(
        lambda text: ours._FUNCTIONS[kind](
            target, text, lambda text: text.lower().split()
        ),
        lambda n_words: " ".join(words[:n_words]),
        (1_500, 25_000),
    )
