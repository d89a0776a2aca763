"""Lists of which every part is wanted: in any order, in all scripts, and nothing more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ScoringError, UnknownName
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind
from support.bounds import assert_grows_linearly, repeated


def score(kind: str, target: str, text: str, **options: str) -> Score:
    found = bind("listed", {"kind": kind, **options}).function(
        Sample("s", targets=(target,)), Answer(text)
    )
    assert isinstance(found, Score)
    return found


@pytest.mark.parametrize(
    ("kind", "target", "text", "share"),
    [
        ("numbers", "12, 34", "<Answer>34, 12</Answer>", 1),
        ("numbers", "12, 34", "First <answer>99</answer>, no: <ANSWER>12；34", 1),
        ("numbers", "12, 34", "They are 12 and 34.", 1),
        ("numbers", "12, 34", "<Answer>12</Answer> and 34", 0.5),
        ("numbers", "12, 34", "<Answer>12, 34, 56, 78</Answer>", 0.5),
        ("numbers", "2147483647", "<Answer>2,147,483,647</Answer>", 1),
        ("numbers", "none", "<Answer>“None”.</Answer>", 1),
        ("numbers", "none", "<Answer>none, but 12</Answer>", 0),
        ("numbers", "none", "", 0),
        ("numbers", "12", "<Answer></Answer>", 0),
        ("words", "Chó, mèo", "<Answer>1. mèo\n2. **chó**</Answer>", 1),
        ("words", "猫, 狗", "<Answer>狗、“猫”。</Answer>", 1),
        ("words", "cat, dog", "I think that cats stand there most often.", 0),
        ("words", "cat, dog", ",".join(map(str, range(999))) + ", cat", 1 / 1000),
    ],
)
def test_lists(kind: str, target: str, text: str, share: float) -> None:
    found = score(kind, target, text)
    assert found.value == float(share == 1) and found.parts["share"] == pytest.approx(
        share
    )
    assert found.label == ("correct" if share == 1 else "incorrect")


def test_another_tag() -> None:
    assert (
        score("words", "a", "<Answer>b</Answer><list>a</list>", tag="list").value == 1
    )
    assert score("words", "a", "<a.*>b", tag="a.*").value == 0


def test_what_cannot_be_scored_is_an_error() -> None:
    with pytest.raises(ScoringError, match="lists no numbers"):
        score("numbers", "one", "<Answer>1</Answer>")
    with pytest.raises(UnknownName, match="number"):
        bind("listed", {"kind": "number"})


@given(st.lists(st.integers(0, 10**9), min_size=1, unique=True))
def test_order_is_of_no_matter(numbers: list[int]) -> None:
    target = ", ".join(map(str, numbers))
    assert (
        score(
            "numbers",
            target,
            f"<Answer>{', '.join(map(str, reversed(numbers)))}</Answer>",
        ).value
        == 1
    )
    assert (
        score("numbers", target, f"<Answer>{target}, {max(numbers) + 1}</Answer>").value
        == 0
    )


@pytest.mark.parametrize("piece", ["<Answer>", "1,", "</", "1. "])
def test_long_answers_take_little_time(piece: str) -> None:
    assert_grows_linearly(lambda text: score("numbers", "1", text), repeated(piece))
