"""What a scorer of somebody's own may give: a value outside of what the metric assumes is that
scorer's failure, and is said so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from evalwright import ScriptedModel, compare, evaluate, leaderboard, scorer
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Task
from evalwright.tasks.loading import task_from_definition

pytestmark = pytest.mark.usefixtures("own_folder")

VALUES: dict[str, Any] = {
    "over": 1.1, "under": -3, "nan": math.nan, "inf": math.inf, "text": "1", "true": True, "false": False,
    "rounded": 1 + 1e-12, "none": None, "numpy": np.float64(0.5), "one": 1,
}  # fmt: skip


@scorer("test-given")
def given(sample: Sample, answer: Answer) -> Score:
    return (
        Score(VALUES[answer.text])
        if answer.text in VALUES
        else Score(float(answer.text == "right"))
    )


def task(metric: str) -> Task:
    rows = [
        {"id": f"q{i}", "input": f"Question {i}", "target": "right"} for i in range(6)
    ]
    scorers = {"scorers": ["test-given"], "metrics": [metric]}
    return task_from_definition(
        {"task": f"by-{metric}", "dataset": {"rows": rows}, **scorers}
    )


def model(first: str, rest: str = "right") -> ScriptedModel:
    return ScriptedModel(
        lambda request: (
            first if "Question 0" in str(getattr(request, "prompt", "")) else rest
        ),
        name=f"m/{first}-{rest}",
    )


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("over", None), ("under", None), ("nan", None), ("inf", None), ("text", None), ("none", None),
        ("true", 1.0), ("false", 0.0), ("rounded", 1.0), ("numpy", 0.5), ("one", 1),
    ],
)  # fmt: skip
def test_a_value_is_in_the_range_or_the_scorer_failed(
    said: str, value: float | None
) -> None:
    run = evaluate(task("accuracy"), model(said))[0]
    first = next(run.samples())
    if value is not None:
        assert first.scores["test-given"].value == value
        assert not isinstance(first.scores["test-given"].value, bool)
        assert run.n_missing == 0
    else:
        failure = first.score_failures["test-given"]
        assert (failure.kind, failure.party) == ("scorer error", "scorer")
        assert "'test-given' on the item 'q0'" in failure.message
        assert "0 to 1" in failure.message or "finite number" in failure.message
        assert run.n_missing == 1
    other = evaluate(task("accuracy"), model("wrong"))[0]
    assert "bug" not in compare(run, other).conclusion
    leaderboard([run, other])


BARE: dict[str, Any] = {
    "true": True, "false": False, "half": 0.5, "one": 1, "seven": 7, "numpy-true": np.True_, "numpy": np.float32(0.5),
    "numpy-int": np.int64(1), "array-0d": np.array(0.5), "nan": math.nan, "none": None, "text": "yes", "array": np.array([1, 0]),
    "complex": np.complex128(1j),
}  # fmt: skip


@scorer("test-bare")
def bare(sample: Sample, answer: Answer) -> Any:
    return BARE.get(answer.text, True)


@scorer("test-bare-asking")
async def bare_asking(sample: Sample, answer: Answer, ask: Any) -> Any:
    return BARE.get(answer.text, True)


def bare_task(metric: str, *scorers: Any) -> Task:
    rows = [
        {"id": f"q{i}", "input": f"Question {i}", "target": "right"} for i in range(3)
    ]
    settings = {"scorers": list(scorers), "metrics": [metric]}
    return task_from_definition(
        {"task": f"bare-by-{metric}", "dataset": {"rows": rows}, **settings}
    )


@pytest.mark.parametrize("scorer_name", ["test-bare", "test-bare-asking"])
@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("true", 1.0), ("false", 0.0), ("half", 0.5), ("one", 1.0), ("numpy-true", 1.0), ("numpy", 0.5), ("numpy-int", 1.0),
        ("array-0d", 0.5),
    ],
)  # fmt: skip
def test_a_bare_number_is_a_score(scorer_name: str, reply: str, value: float) -> None:
    run = evaluate(bare_task("accuracy", scorer_name), model(reply))[0]
    score = next(run.samples()).scores[scorer_name]
    assert score == Score(value)
    assert type(score.value) in (int, float)
    assert run.n_missing == 0


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            "none",
            "not NoneType. A scorer that has nothing to say of an answer gives NoScore().",
        ),
        ("text", "must give a Score, a number, True or False, not str."),
        ("array", "not ndarray."),
        ("complex", "not complex128."),
        ("nan", "must be a finite number"),
        ("seven", "gave 7, and the metric 'accuracy' is of scores from 0 to 1."),
    ],
)
def test_what_is_no_score_is_said(reply: str, message: str) -> None:
    run = evaluate(bare_task("accuracy", "test-bare"), model(reply))[0]
    failure = next(run.samples()).score_failures["test-bare"]
    assert failure.party == "scorer"
    assert message in failure.message


def test_a_number_beyond_1_is_a_score_in_the_unit_of_the_scorer() -> None:
    run = evaluate(bare_task("mean", "test-bare"), model("seven"))[0]
    assert run.n_missing == 0
    assert next(run.samples()).scores["test-bare"].value == 7


def test_a_bare_number_counts_by_the_language_of_the_reply() -> None:
    penalised = {"test-bare": {"language_penalty": {"expected": "ko"}}}
    reply = "This is a whole sentence in English, and none of it is in Korean."
    run = evaluate(bare_task("accuracy", penalised), model(reply))[0]
    score = next(run.samples()).scores["test-bare"]
    assert score.value == 0
    assert score.parts["before"] == 1


@scorer("test-numpy-parts")
def numpy_parts(sample: Sample, answer: Answer) -> Score:
    return Score(
        np.float32(0.5),  # type: ignore[arg-type]
        parts={"a": np.float32(0.25), "b": np.True_, "c": True},  # type: ignore[dict-item]
    )


def test_parts_of_numpy_are_numbers_too() -> None:
    run = evaluate(bare_task("accuracy", "test-numpy-parts"), model("true"))[0]
    score = next(run.samples()).scores["test-numpy-parts"]
    assert dict(score.parts) == {"a": 0.25, "b": 1.0, "c": 1.0}
    assert not any(isinstance(part, bool) for part in score.parts.values())


def test_a_metric_without_a_range_takes_any_number() -> None:
    run = evaluate(task("mean"), model("under"))[0]
    assert run.n_missing == 0
    assert next(run.samples()).scores["test-given"].value == -3
    compare(run, evaluate(task("mean"), model("wrong"))[0])
