"""The scorer over real judges: pairs, chunks, sentences, several judges, and what is said where
one of them fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel
from evalwright.core.errors import (
    ConfigurationError,
    RequestFailed,
    ScoringError,
    UnknownName,
    UsageError,
)
from evalwright.core.requests import Classify
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, NoScore, Passage, Sample, Score
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.models.model_interface import Model
from evalwright.scorers.consistency.scorer import consistency
from evalwright.scorers.registry import bind
from support.overlap_judge import OverlapModel, overlap

ARTICLE = (
    "The swing bridge reopened on Tuesday after eleven weeks. The repair cost 3.1 million crowns. "
    "Lorries above 18 tonnes must use the northern road."
)
GOOD = "The swing bridge reopened on Tuesday. The repair cost 3.1 million crowns."
BAD = "Pilots praised a shiny aeroplane yesterday. The repair cost 3.1 million crowns."
SAMPLE = Sample("s", passages=(Passage("1", ARTICLE),))


def scored(
    answer: str, models: dict[str, Model], sample: Sample = SAMPLE, **options: Any
) -> Score | NoScore:
    """The score by real models behind a real engine and store."""

    async def run() -> Score | NoScore:
        with open_store(_home()) as store:
            async with Engine(store) as engine:
                return await consistency(
                    sample, Answer(answer), engine.door(models), **options
                )

    return asyncio.run(run())


def certain(
    answer: str, models: dict[str, Model], sample: Sample = SAMPLE, **options: Any
) -> Score:
    found = scored(answer, models, sample, **options)
    assert isinstance(found, Score)
    return found


_homes: list[Path] = []


def _home() -> Path:
    return _homes[-1]


@pytest.fixture(autouse=True)
def _store(tmp_path: Path) -> Iterator[None]:
    _homes.append(tmp_path)
    yield
    _homes.pop()


def test_one_judge() -> None:
    judge = OverlapModel("strict")
    found = certain(GOOD, {"judge": judge})
    assert (found.value, found.label, found.parts) == (
        1.0,
        "consistent",
        {"score": 1.0},
    )
    assert judge.asked == [Classify(ARTICLE, GOOD)]
    assert found.explanation == "judge 1.000"
    bad = certain(BAD, {"judge": judge}, threshold=0.9)
    assert (bad.value, bad.label) == (0.0, "inconsistent")
    assert bad.parts["score"] == pytest.approx(overlap(ARTICLE, BAD))


def half(value: float) -> ScriptedModel:
    return ScriptedModel(
        lambda request: [1 - value, value],
        name=f"half-{value}",
        version="1",
        abilities=["classify"],
    )


@pytest.mark.parametrize(
    ("p", "value"), [(0.5, 1.0), (0.4999, 0.0), (0.0, 0.0), (1.0, 1.0)]
)
def test_the_threshold_itself_is_consistent(p: float, value: float) -> None:
    # Scores of the leaderboard are rounded to sixteen bits, and hundreds are exactly a half.
    assert certain(GOOD, {"judge": half(p)}).value == value


def test_what_is_no_answer_is_not_judged() -> None:
    judge = OverlapModel("strict")
    for text in ("I cannot summarize this passage.", "Too short.", "", "  "):
        assert isinstance(scored(text, {"judge": judge}), NoScore)
    assert judge.asked == []
    assert certain("Too short.", {"judge": judge}, only_answered=False).value == 0.0


def test_sentences_name_the_least_supported() -> None:
    judge = OverlapModel("strict")
    found = certain(BAD, {"judge": judge}, sentences=True, threshold=0.3)
    first = BAD.split(". ")[0] + "."
    second = BAD.split(". ")[1]
    assert {one.hypothesis for one in judge.asked} == {BAD, first, second}
    assert found.value == 1.0
    assert found.parts["lowest"] == pytest.approx(overlap(ARTICLE, first))
    assert f"least supported by judge, 0.000: '{first}'" in found.explanation


def test_by_sentence_the_least_counts() -> None:
    judge = OverlapModel("strict")
    found = certain(BAD, {"judge": judge}, hypothesis="sentences")
    assert BAD not in {one.hypothesis for one in judge.asked}
    assert found.value == 0.0
    assert found.parts["score"] == found.parts["lowest"]


def test_of_the_chunks_the_highest_counts() -> None:
    judge = OverlapModel("strict")
    text = "Lorries above 18 tonnes must use the northern road."
    found = certain(text, {"judge": judge}, chunk_words=12, overlap=0)
    assert len(judge.asked) == 3
    assert found.parts["score"] == 1.0
    whole = certain(text, {"judge": OverlapModel("strict")})
    assert whole.parts["score"] == 1.0


def test_a_judge_may_have_chunks_of_its_own() -> None:
    short = OverlapModel("strict")
    long = OverlapModel("kind")
    judges = [{"role": "a", "chunk_words": 12}, "b"]
    certain(GOOD, {"a": short, "b": long}, judges=judges)
    assert (len(short.asked), len(long.asked)) == (3, 1)


@pytest.mark.parametrize(
    ("combine", "value"), [("mean", 0.0), ("all", 0.0), ("any", 1.0), ("majority", 0.0)]
)
def test_several_judges(combine: str, value: float) -> None:
    models: dict[str, Model] = {"a": half(0.6), "b": half(0.2)}
    found = certain(GOOD, models, judges=["a", "b"], combine=combine)
    assert found.value == value
    assert found.parts == pytest.approx(
        {
            "score": 0.4,
            "a": 0.6,
            "b": 0.2,
            "a verdict": 1.0,
            "b verdict": 0.0,
            "judges differ": 1.0,
            "verdicts": 2.0,
        }
    )


def test_a_majority_is_more_than_half() -> None:
    models: dict[str, Model] = {"a": half(0.6), "b": half(0.7), "c": half(0.1)}
    assert (
        certain(GOOD, models, judges=["a", "b", "c"], combine="majority").value == 1.0
    )


def test_a_judge_that_fails_is_a_failure() -> None:
    models: dict[str, Model] = {"a": half(0.6), "b": OverlapModel("broken")}
    with pytest.raises(RequestFailed, match="The judge is broken"):
        scored(GOOD, models, judges=["a", "b"])


@pytest.mark.parametrize(
    "values", [[0.7], [0.1, 0.2, 0.7], [0.5, 1.5], [0.5, -0.5], [0.1, float("nan")]]
)
def test_other_values_than_two_probabilities_are_a_failure(values: list[float]) -> None:
    judge = ScriptedModel(
        lambda request: Response(values=tuple(values)), abilities=["classify"]
    )
    with pytest.raises(RequestFailed, match="must give two probabilities"):
        scored(GOOD, {"judge": judge})


def test_no_source_is_said() -> None:
    with pytest.raises(ScoringError, match="no passages"):
        scored(
            GOOD, {"judge": OverlapModel("strict")}, sample=Sample("s", input=ARTICLE)
        )
    assert (
        certain(
            GOOD,
            {"judge": OverlapModel("strict")},
            Sample("s", input=ARTICLE),
            source="input",
        ).value
        == 1.0
    )


def test_who_can_neither_classify_nor_write_is_told() -> None:
    judge = ScriptedModel(lambda request: [1.0], abilities=["embed"])
    with pytest.raises(
        ConfigurationError,
        match=r"can do: embed",
    ):
        scored(GOOD, {"judge": judge})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"judges": []}, ConfigurationError, "is a list of roles"),
        ({"judges": 3}, ConfigurationError, "is a list of roles"),
        ({"judges": ["a", "a"]}, ConfigurationError, "names the role 'a' twice"),
        ({"judges": ["score"]}, ConfigurationError, "cannot have the role 'score'"),
        ({"judges": [{"ask": "verdict"}]}, ConfigurationError, "a mapping with 'role'"),
        ({"judges": [{"role": "a", "asks": "x"}]}, UnknownName, "Did you mean 'ask'"),
        (
            {"judges": [{"role": "a", "ask": "verdct"}]},
            UnknownName,
            "Did you mean 'verdict'",
        ),
        ({"threshold": 1.5}, ConfigurationError, "from 0 to 1"),
        ({"threshold": "high"}, ConfigurationError, "from 0 to 1"),
        ({"combine": "mode"}, UnknownName, "Known: mean, all, any, majority"),
        ({"hypothesis": "sentence"}, UnknownName, "Did you mean 'sentences'"),
        ({"source": "passage"}, UnknownName, "Did you mean 'passages'"),
        (
            {"chunk_words": -1},
            ConfigurationError,
            "'chunk_words' must be a whole number",
        ),
        ({"overlap": 1.5}, ConfigurationError, "'overlap' must be a whole number"),
        ({"sentences": "yes"}, ConfigurationError, "'sentences' must be true or false"),
        (
            {"least_words": 0},
            ConfigurationError,
            "'least_words' must be a whole number",
        ),
        ({"refusals": "No."}, ConfigurationError, "'refusals' is a list of sentences"),
        ({"max_tokens": 0}, ConfigurationError, "'max_tokens' must be a whole number"),
    ],
)
def test_options_that_are_none(
    options: dict[str, Any], error: type[UsageError], message: str
) -> None:
    # They are checked when the task is loaded, before a summary is paid for.
    with pytest.raises(error, match=message):
        bind("consistency", options)


def test_the_registry_knows_whom_it_asks() -> None:
    assert bind("consistency").roles == ("judge",)
    assert bind(
        "consistency", {"judges": ["hhem", {"role": "gpt", "ask": "verdict"}]}
    ).roles == (
        "hhem",
        "gpt",
    )
    assert bind("consistency", {"judges": "nli"}).roles == ("nli",)
