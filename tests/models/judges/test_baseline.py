"""The baseline by words: copies, texts about something else, any script, and the boards that
refuse it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.requests import Classify, Generate
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model
from support.bounds import ends

PREMISE = "The swing bridge at Harrowmere reopened on Tuesday. The repair cost 3.1 million crowns."


def judge() -> LocalModel:
    model = open_model("baseline/lexical")
    assert isinstance(model, LocalModel)
    return model


def supported(premise: str, hypothesis: str) -> float:
    ((_, answer),) = judge().answer_batch([Classify(premise, hypothesis)])
    assert isinstance(answer, Response)
    assert answer.values is not None
    assert sum(answer.values) == 1
    return answer.values[1]


@pytest.mark.parametrize(
    ("hypothesis", "expected"),
    [
        (PREMISE, 1.0), ("the BRIDGE at harrowmere", 1.0), ("It reopens on Friday.", 1 / 2),
        ("Repairs cost 3.2 million crowns.", 3 / 4), ("An elephant danced.", 0.0), ("", 1.0), ("...", 1.0),
    ],
)  # fmt: skip
def test_the_share_of_names_numbers_and_long_words(
    hypothesis: str, expected: float
) -> None:
    assert supported(PREMISE, hypothesis) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("premise", "copied", "foreign"),
    [
        (
            "东京的桥在星期二重新开放。修理花费了三百万。",
            "东京的桥在星期二重新开放。",
            "歌手获得奖项。",
        ),
        (
            "하로미어의 다리가 화요일에 열렸다.",
            "다리가 화요일에 열렸다.",
            "가수는 상을 셋 받았음",
        ),
        ("สะพานเปิดในวันอังคาร", "สะพานเปิด", "ฝูง"),
        (
            "Мост открылся во вторник.",
            "Мост открылся во вторник.",
            "Певец получил приз.",
        ),
    ],
)
def test_any_script_is_read(premise: str, copied: str, foreign: str) -> None:
    assert supported(premise, copied) == 1.0
    assert supported(premise, foreign) < 0.5


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_text_gets_a_share(premise: str, hypothesis: str) -> None:
    assert 0 <= supported(premise, hypothesis) <= 1
    assert supported(hypothesis, hypothesis) == 1.0


def test_long_texts_take_no_quadratic_time() -> None:
    with ends():
        for part in ("e.g. ", "a", "1 2 3 ", "日", "Word"):
            supported(part * 20_000, part * 20_000 + "x")


def test_it_says_that_it_is_a_baseline() -> None:
    assert "no substitute" in judge().describe()["baseline"]
    assert judge().fingerprint == judge().fingerprint
    with pytest.raises(UnknownName, match="lexical"):
        open_model("baseline/lexicla")
    with pytest.raises(ConfigurationError, match="no revisions"):
        open_model("baseline/lexical@1")
    ((_, answer),) = judge().answer_batch([Generate("x")])
    assert "classifies pairs" in getattr(answer, "message", "")
