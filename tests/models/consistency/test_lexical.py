"""The baseline by words: what its features see, what it cannot be fooled by, and that any text passes through it quickly."""

from __future__ import annotations

import json
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.requests import Classify, Generate
from evalwright.models.base import LocalModel
from evalwright.models.consistency.lexical.features import FEATURES
from evalwright.models.consistency.lexical.judge import Weights, feature_rows, judged, shipped_weights
from evalwright.models.consistency.lexical.premise import Premise, ngrams, unit
from evalwright.models.consistency.lexical.words import stem, tokens_of
from evalwright.models.registry import open_model
from support.pairs import supported

PREMISE = (
    "The swing bridge at Harrowmere reopened on Tuesday, eleven weeks after a barge struck its eastern pier in fog. "
    "The repair cost 3.1 million crowns, about 400,000 less than planned. Lorries above 18 tonnes must use the ring road. "
    "The board of the harbour sued the company Pell & Tarrow in March. Divers may inspect the pier again in 12 days."
)


def judge() -> LocalModel:
    found = open_model("baseline/lexical")
    assert isinstance(found, LocalModel)
    return found


def feature(name: str, hypothesis: str, premise: str = PREMISE) -> float:
    """The worst value of a feature over the hypothesis's sentences."""
    place = list(FEATURES).index(name)
    return max(row[place] for row in feature_rows(premise, hypothesis))


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("words missing", "Elephants dance on glaciers.", "The bridge reopened on Tuesday."),
        (
            "run missing",
            "The bridge reopened thanks to a generous anonymous donor.",
            "The bridge reopened in fog.",
        ),
        (
            "words substituted",
            "Lorries above 18 elephants must use the ring road.",
            "Lorries above 18 tonnes must use the ring road.",
        ),
        (
            "words apart",
            "The swing bridge reopened when divers may inspect crowns.",
            "Divers may inspect the pier again.",
        ),
        ("letters differ", "Elephants dance on glaciers.", "The bridge at Harrowmere reopened on Tuesday."),
        ("numbers missing", "The repair cost 7.4 million crowns.", "The repair cost 3.1 million crowns."),
        ("numbers missing", "It took twenty-six weeks.", "It took 11 weeks."),
        ("numbers missing", "The bridge reopened on Friday.", "The bridge reopened on Tuesday."),
        ("units differ", "Lorries above 18 kilometres must wait.", "Lorries above 18 tons must wait."),
        ("names missing", "The company Osterby was sued.", "The company Tarrow was sued."),
        ("names apart", "Harrowmere sued Pell.", "The board sued Pell."),
        (
            "negation differs",
            "Lorries above 18 tonnes must not use the ring road.",
            "Lorries above 18 tonnes must use the ring road.",
        ),
        (
            "antonyms",
            "Lorries below 18 tonnes must use the ring road.",
            "Lorries above 18 tonnes must use the ring road.",
        ),
        (
            "hedges removed",
            "Divers inspect the pier again in 12 days.",
            "Divers may inspect the pier again in 12 days.",
        ),
        (
            "overstated",
            "All lorries above 18 tonnes must use the ring road.",
            "Lorries above 18 tonnes must use the ring road.",
        ),
        ("causes added", "Lorries use the ring road because of noise.", "Lorries use the ring road."),
        (
            "roles swapped",
            "The company Pell & Tarrow sued the board of the harbour.",
            "The board of the harbour sued the company Pell & Tarrow.",
        ),
    ],
)
def test_each_feature_sees_what_it_is_named_after(name: str, wrong: str, right: str) -> None:
    assert feature(name, wrong) > feature(name, right) + 0.1


def test_numbers_are_read_in_any_form() -> None:
    values = {
        token.value
        for token in tokens_of("Twenty-one men, 3.5 million euros, 1,200 at 16:30, twice, half, a dozen.")
    }
    assert {21.0, 3.5e6, 1200.0, 16.5, 2.0, 0.5, 12.0} <= values
    assert feature("numbers missing", "The plan was for 3.5 million crowns.") == 0  # 3.1 million and 400,000
    assert feature("numbers missing", "It cost about 3 million crowns.") == 0
    assert feature("numbers missing", "It cost 3 million crowns.") > 0


def test_names_are_not_seen_at_the_beginning_of_a_sentence() -> None:
    named = [
        token.text
        for token in tokens_of("Bridges like Harrowmere close on Monday at IBM, I think.")
        if token.name
    ]
    assert named == ["Harrowmere", "IBM"]


def test_forms_of_a_word_have_one_stem() -> None:
    for forms in (
        ("repair", "repairs", "repaired", "repairing"),
        ("company", "companies"),
        ("stop", "stops", "stopped", "stopping"),
        ("close", "closes", "closed", "closing"),
        ("quick", "quickly", "quicker", "quickest"),
    ):
        assert len({stem(form) for form in forms}) == 1, forms
    assert len({stem(word) for word in ("bus", "this", "glass", "cause", "case")}) == 5


def test_weights_are_summed_as_documented() -> None:
    weights = Weights(("a", "b"), (2.0, 1.0), bias=1.0, worst=0.25, note="")
    rows = [[0.0, 0.5], [1.0, 1.0]]  # z = 0.5 and -2
    z = 0.25 * -2 + 0.75 * -0.75
    assert weights.supported(rows) == pytest.approx(1 / (1 + np.exp(-z)))


def test_the_shipped_weights_name_every_feature_and_count_against() -> None:
    found = shipped_weights()
    assert set(found.names) == set(FEATURES)
    assert min(found.values) >= 0
    assert 0 <= found.worst <= 1
    assert "other half only" in found.note
    path = Path(__file__).parents[3] / "src/evalwright/models/consistency/lexical/weights.json"
    assert json.loads(path.read_text())["bias"] == found.bias


def test_a_copy_is_supported_and_other_texts_are_not() -> None:
    copied, shortened, foreign, changed = supported(
        judge(),
        [
            Classify(PREMISE, PREMISE),
            Classify(PREMISE, "The swing bridge at Harrowmere reopened on Tuesday."),
            Classify(PREMISE, "A singer from Lima won three prizes at a festival in Oslo."),
            Classify(
                PREMISE, "The swing bridge at Osterby reopened on Friday, 95 weeks after a plane struck it."
            ),
        ],
    )
    assert min(copied, shortened) > 0.5 > max(foreign, changed)


@pytest.mark.parametrize(
    ("premise", "copied", "foreign"),
    [
        ("东京的桥在星期二重新开放。修理花费了三百万。", "东京的桥在星期二重新开放。", "这位歌手在奥斯陆获得了奖项。"),
        ("하로미어의 다리가 화요일에 다시 열렸다. 수리 비용은 310만이다.", "하로미어의 다리가 화요일에 다시 열렸다.", "가수가 오슬로에서 상을 세 개 받았다."),
        ("สะพานเปิดอีกครั้งในวันอังคาร ค่าซ่อมสามล้าน", "สะพานเปิดอีกครั้งในวันอังคาร", "นักร้องได้รับรางวัลในออสโล"),
        ("पुल मंगलवार को फिर खुला। मरम्मत में तीस लाख लगे।", "पुल मंगलवार को फिर खुला।", "गायक को ओस्लो में पुरस्कार मिला।"),
        ("Мост открылся во вторник. Ремонт стоил 3 миллиона.", "Мост открылся во вторник.", "Певец получил приз в Осло."),
    ],
)  # fmt: skip
def test_any_script_is_read(premise: str, copied: str, foreign: str) -> None:
    same, other = supported(judge(), [Classify(premise, copied), Classify(premise, foreign)])
    assert same > 0.5 > other


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_gets_a_probability_the_same_twice(premise: str, hypothesis: str) -> None:
    first = judged(premise, hypothesis, shipped_weights())
    assert 0 <= first <= 1
    assert judged(premise, hypothesis, shipped_weights()) == first
    for row in feature_rows(premise, hypothesis):
        assert all(-1e-6 <= value <= 1 + 1e-6 for value in row)


def test_one_text_in_two_encodings_is_one_text() -> None:
    premise = "Bà Nguyễn bán phở ở Hà Nội. Ông Trần sửa cầu vào thứ ba."
    hypothesis = "Ông Trần sửa cầu vào thứ ba."
    decomposed = unicodedata.normalize("NFD", hypothesis)
    assert decomposed != hypothesis
    same, other = supported(judge(), [Classify(premise, hypothesis), Classify(premise, decomposed)])
    assert same == other > 0.5


def test_a_hypothesis_without_words_is_supported() -> None:
    assert supported(judge(), [Classify(PREMISE, ""), Classify(PREMISE, "..."), Classify("", "")]) == [
        1.0,
        1.0,
        1.0,
    ]


@pytest.mark.parametrize("unit_of", ["e.g. ", "a", "1 2 3 ", "A. ", "日", "Mr. X said no. ", "., "])
def test_odd_long_texts_take_no_quadratic_time(unit_of: str) -> None:
    text = unit_of * (40_000 // len(unit_of))
    started = time.perf_counter()
    judged(text, text[:400], shipped_weights())
    assert time.perf_counter() - started < 20


def test_vectors_are_of_length_one_and_alike_for_like_texts() -> None:
    vectors = Premise(PREMISE).vectors()
    assert vectors.shape[0] == 2 * 5 - 1
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(9), abs=1e-6)
    own = vectors @ unit(ngrams("Lorries above 18 tonnes must use the ring road."))
    assert int(own[:5].argmax()) == 2


def test_it_says_that_it_is_a_baseline() -> None:
    said = judge().describe()
    assert said["backend"] == "baseline"
    assert "not a substitute" in said["baseline"]
    assert said["values"] == ["not supported", "supported"]
    assert judge().fingerprint == judge().fingerprint


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(UnknownName, match="lexical"):
        open_model("baseline/lexicla")
    with pytest.raises(ConfigurationError, match="no revisions"):
        open_model("baseline/lexical@1")
    ((_, answer),) = judge().answer_batch([Generate("x")])
    assert "judges pairs" in getattr(answer, "message", "")
