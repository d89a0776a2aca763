"""The baseline by words: what each kind of evidence sees, that copies are supported, and that any text passes through it quickly."""

from __future__ import annotations

import json
import random
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
from evalwright.models.judges.lexical.judge import (
    COPIED,
    Weights,
    explained,
    judged,
    shipped_weights,
)
from evalwright.models.judges.lexical.kinds import KINDS, strongest
from evalwright.models.judges.lexical.words import stem, tokens_of
from evalwright.models.judges.sentences import sentences
from evalwright.models.registry import open_model
from support.pairs import supported

PREMISE = (
    "The swing bridge at Harrowmere reopened on Tuesday, eleven weeks after a barge struck its eastern pier in fog. "
    "The repair cost 3.1 million crowns, about 400,000 less than planned. Lorries above 18 tonnes must use the ring road. "
    "The board of the harbour sued the company Pell & Tarrow in March. Divers may inspect the pier again in 12 days. "
    "The mayor, Ida Lund, praised the engineer, Otto Varga, who had drawn the plans in 1998. "
    "Traffic on the ring road rose by 5 per cent because the ferry was out of service. "
    "Of the 60 lamps on the quay, 12 had to be replaced. The harbour café earned 900 crowns a week from the queue."
)
ARTICLES = [
    json.loads(line)["text"]
    for line in (
        Path(__file__).parents[3] / "src/evalwright/tasks/library/summary_faithfulness/articles.jsonl"
    )
    .read_text("utf-8")
    .splitlines()
]


def judge() -> LocalModel:
    found = open_model("baseline/lexical")
    assert isinstance(found, LocalModel)
    return found


def strength(kind: str, hypothesis: str, premise: str = PREMISE) -> float:
    """The strongest evidence of a kind."""
    return dict(zip(KINDS, strongest(explained(premise, hypothesis).evidence), strict=True))[kind]


def score(hypothesis: str, premise: str = PREMISE) -> float:
    return judged(premise, hypothesis, shipped_weights())


CASES = [
    ("other words", "Elephants dance on glaciers in winter.", "On Tuesday the Harrowmere bridge reopened."),
    ("invented detail", "The bridge reopened with fireworks and a brass orchestra.", "The bridge had reopened."),
    ("invented detail", "The company Osterby was sued.", "The company Tarrow was sued."),
    ("number differs", "The repair cost 7.4 million crowns.", "Repairs cost 3.1 million crowns."),
    ("number differs", "It reopened after twenty-six weeks.", "It reopened after 11 weeks."),
    ("number differs", "The repair cost 3 million crowns.", "The repair cost about 3 million crowns."),
    ("number differs", "The plan for the repair was 3.9 million.", "The plan for the repair was 3.5 million."),
    ("number differs", "Forty per cent of the lamps were replaced.", "Twenty per cent of the lamps were replaced."),
    ("number differs", "Half of the lamps were replaced.", "A fifth of the lamps were replaced."),
    ("number differs", "57 lamps on the quay were kept.", "48 lamps on the quay were kept."),
    ("unit differs", "Lorries above 18 kilometres must use it.", "Lorries above 18 tonnes must use it."),
    ("unit differs", "Divers may look at the pier in 12 weeks.", "Divers may look at the pier in 12 days."),
    ("unit differs", "The café earned 900 crowns a year.", "The café earned 900 crowns per week."),
    ("number differs", "The repair cost 3.1 billion crowns.", "Repairs cost 3.1 million crowns."),
    ("date differs", "The bridge reopened on Friday.", "On Tuesday the bridge reopened."),
    ("date differs", "Pell & Tarrow was sued in June.", "Pell & Tarrow was sued in March."),
    ("date differs", "The plans were drawn in 1989.", "The plans were drawn in 1998."),
    ("name of another", "Ida Lund sued over the barge.", "The mayor Ida Lund praised an engineer."),
    ("number of another", "The café had 60 lorries.", "The quay had 60 lamps."),
    ("words joined otherwise", "The barge praised the café.", "The mayor praised the engineer."),
    (
        "clauses from afar",
        "A barge struck the pier in fog, the café earned crowns from the queue.",
        "A barge struck the pier in fog, the bridge reopened on Tuesday.",
    ),
    ("negation differs", "Lorries must not use the ring road.", "Lorries have to use the ring road."),
    ("opposite", "Lorries below 18 tonnes use the ring road.", "Lorries over 18 tonnes use the ring road."),
    ("opposite", "Traffic on the ring road fell by 5 per cent.", "Traffic on the ring road rose by 5 per cent."),
    ("overstated", "All lorries use the ring road.", "Lorries use the ring road."),
    ("overstated", "Divers inspect the pier again.", "Divers could inspect the pier again."),
    (
        "cause added",
        "Traffic on the ring road rose because a barge struck a pier.",
        "Traffic on the ring road rose because the ferry was out of service.",
    ),
    ("roles swapped", "Pell & Tarrow sued the harbour board.", "The harbour board sued Pell & Tarrow."),
    ("roles swapped", "The mayor was praised by the engineer.", "The engineer was praised by the mayor."),
    ("copy altered", "Lorries above 18 tonnes must not use the ring road.", "Lorries above 18 tonnes use the road."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "wrong", "right"), CASES)
def test_each_kind_of_evidence_sees_what_it_is_named_after(kind: str, wrong: str, right: str) -> None:
    assert strength(kind, wrong) > strength(kind, right) + 0.1
    assert score(wrong) < score(right)


def test_every_kind_has_a_case() -> None:
    assert {kind for kind, _, _ in CASES} == set(KINDS)
    assert len(KINDS) <= 15


def test_comparisons_have_a_direction() -> None:
    premise = "Cedar is heavier than poplar. The dry samples weighed less than the wet ones."
    assert strength("roles swapped", "Poplar is heavier than cedar.", premise) > 0
    assert strength("roles swapped", "In all, cedar is heavier than poplar.", premise) == 0
    assert strength("opposite", "The dry samples weighed more than the wet ones.", premise) > 0.5
    assert score("Poplar is heavier than cedar.", premise) < 0.5


def test_evidence_has_its_words() -> None:
    (found,) = (
        each
        for each in explained(PREMISE, "The bridge reopened on Friday.").evidence
        if each.kind == "date differs"
    )
    assert found.said == "Friday"
    assert found.source.startswith("The swing bridge")
    assert "date differs" in str(found)
    assert "Friday" in str(found)


@pytest.mark.parametrize(
    "altered",
    [
        "The repair cost 7.4 million crowns, about 400,000 less than planned.",
        "The repair cost 3.1 billion crowns, about 400,000 less than planned.",
        "Lorries above 18 tonnes must not use the ring road.",
        "Lorries below 18 tonnes must use the ring road.",
        "The swing bridge at Harrowmere reopened on Friday, eleven weeks after a barge struck its eastern pier in fog.",
        "Divers inspect the pier again in 12 days.",
        "The company Pell & Tarrow sued the board of the harbour in March.",
        "Traffic on the ring road fell by 5 per cent because the ferry was out of service.",
    ],
)
def test_a_copy_with_one_thing_altered_is_not_supported(altered: str) -> None:
    assert score(altered) < 0.4


def test_copies_are_supported_in_any_dress() -> None:
    for text in (
        PREMISE,
        "Lorries above 18 tonnes must use the ring road.",
        "  LORRIES above 18\n tonnes must use the ring road",
        "“Lorries above 18 tonnes must use the ring road.” The repair cost 3.1 million crowns, about 400,000 less than planned.",
    ):
        assert score(text) == COPIED >= 0.95
    assert score("Lorries above 18 tonnes must use the ring road?") < COPIED
    mixed = explained(
        PREMISE, "Lorries above 18 tonnes must use the ring road. The bridge reopened on Friday."
    )
    assert (mixed.sentences, mixed.copied) == (2, 1)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(ARTICLES), st.randoms(use_true_random=False), st.integers(1, 5))
def test_copying_any_sentences_of_any_article_is_supported(text: str, rng: random.Random, count: int) -> None:
    given_ = sentences(text)
    chosen = rng.sample(given_, min(count, len(given_)))
    assert score(" ".join(chosen), text) >= 0.95
    assert score("\n".join(chosen), text) >= 0.95


def test_texts_about_another_article_are_not_supported() -> None:
    long = [text for text in ARTICLES if len(text.split()) > 100]
    found = [
        score(" ".join(sentences(other)[:3]), text)
        for text, other in zip(long, [*long[1:], long[0]], strict=True)
    ]
    assert max(found) < 0.1


def test_numbers_are_read_in_any_form() -> None:
    values = {
        token.value
        for token in tokens_of("Twenty-one men, 3.5 million euros, 1,200 at 16:30, twice, half, a dozen.")
    }
    assert {21.0, 3.5e6, 1200.0, 16.5, 2.0, 0.5, 12.0} <= values


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        (
            "The fund is worth 2.4 billion francs; 1.8 billion are in shares.",
            "Three quarters of the fund is in shares.",
        ),
        (
            "The council has 30 seats. The Greens hold 17 of the seats.",
            "The Greens hold more than half of the seats.",
        ),
        (
            "Fines came to 120 million and 80 million francs.",
            "Fines of 120 and 80 million francs came to 200 million.",
        ),
        (
            "Sales were 40 million francs, after 50 million before.",
            "Sales dropped by 20 per cent or 10 million francs.",
        ),
        ("She was born in 1920 and died aged 75.", "She died in 1995."),
        ("The rock is 1.4 billion years old, not 900 million.", "The rock is half a billion years older."),
        ("Stock shrank by a third.", "Stock lost a third of its size."),
    ],
)
def test_what_follows_from_the_numbers_is_no_contradiction(premise: str, hypothesis: str) -> None:
    assert strength("number differs", hypothesis, premise) == 0
    assert strength("date differs", hypothesis, premise) == 0


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
        ("fall", "fell", "fallen", "falling"),
        ("child", "children"),
        ("dismiss", "dismissal", "dismissed"),
    ):
        assert len({stem(form) for form in forms}) == 1, forms
    assert len({stem(word) for word in ("bus", "this", "glass", "cause", "case")}) == 5


def test_weights_are_summed_as_documented() -> None:
    weights = Weights(("a", "b"), (2.0, 1.0), bias=1.0, note="")
    assert weights.supported([0.25, 0.5]) == pytest.approx(0.5)
    assert weights.supported([0.0, 0.0]) == pytest.approx(1 / (1 + np.exp(-1.0)))


def test_the_shipped_weights_name_every_kind_and_count_against() -> None:
    found = shipped_weights()
    assert set(found.names) == set(KINDS)
    assert min(found.values) >= 0
    assert "other half only" in found.note
    path = Path(__file__).parents[3] / "src/evalwright/models/judges/lexical/weights.json"
    assert json.loads(path.read_text())["bias"] == found.bias


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
    first = score(hypothesis, premise)
    assert 0 <= first <= 1
    assert score(hypothesis, premise) == first
    assert all(0 < each.strength <= 1 for each in explained(premise, hypothesis).evidence)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(ARTICLES), st.randoms(use_true_random=False))
def test_shuffled_words_of_articles_break_nothing(text: str, rng: random.Random) -> None:
    words = text.split()
    rng.shuffle(words)
    hypothesis = " ".join(words[:60])
    assert 0 <= score(hypothesis, text) == score(hypothesis, text) <= 1


def test_one_text_in_two_encodings_is_one_text() -> None:
    premise = "Bà Nguyễn bán phở ở Hà Nội. Ông Trần sửa cầu vào thứ ba."
    hypothesis = "Ông Trần sửa cầu vào thứ ba."
    decomposed = unicodedata.normalize("NFD", hypothesis)
    assert decomposed != hypothesis
    same, other = supported(judge(), [Classify(premise, hypothesis), Classify(premise, decomposed)])
    assert same == other == pytest.approx(COPIED)


def test_a_hypothesis_without_words_is_supported() -> None:
    assert [score(""), score("..."), score("", "")] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "unit_of", ["e.g. ", "a", "1 2 3 ", "A. ", "日", "Mr. X said no. ", "., ", "No way. "]
)
def test_odd_long_texts_take_no_quadratic_time(unit_of: str) -> None:
    text = unit_of * (60_000 // len(unit_of))
    started = time.perf_counter()
    judged(text, text[:600], shipped_weights())
    judged(text, text + "x", shipped_weights())
    assert time.perf_counter() - started < 20


def test_time_grows_with_the_premise_and_not_with_its_square() -> None:
    text = "\n".join(ARTICLES)

    hypothesis = " ".join(sentences(ARTICLES[3])[:3]) + " So it is."

    def seconds(repeats: int) -> float:
        taken = []
        for attempt in range(3):
            premise = f"Attempt {attempt} of {repeats}. " + text * repeats
            started = time.perf_counter()
            judged(premise, hypothesis, shipped_weights())
            taken.append(time.perf_counter() - started)
        return min(taken)

    assert seconds(4) < 8 * seconds(1) + 0.1


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
