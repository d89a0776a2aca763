"""What a scorer of somebody's own may give: a value outside of what the metric assumes is that scorer's failure, and is said so."""

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
    return Score(VALUES[answer.text]) if answer.text in VALUES else Score(float(answer.text == "right"))


def task(metric: str) -> Task:
    rows = [{"id": f"q{i}", "input": f"Question {i}", "target": "right"} for i in range(6)]
    scorers = {"scorers": ["test-given"], "metrics": [metric]}
    return task_from_definition({"task": f"by-{metric}", "dataset": {"rows": rows}, **scorers})


def model(first: str, rest: str = "right") -> ScriptedModel:
    return ScriptedModel(
        lambda request: first if "Question 0" in str(getattr(request, "prompt", "")) else rest,
        name=f"m/{first}-{rest}",
    )


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("over", None), ("under", None), ("nan", None), ("inf", None), ("text", None), ("none", None),
        ("true", 1.0), ("false", 0.0), ("rounded", 1.0), ("numpy", 0.5), ("one", 1),
    ],
)  # fmt: skip
def test_a_value_is_in_the_range_or_the_scorer_failed(said: str, value: float | None) -> None:
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


def test_a_metric_without_a_range_takes_any_number() -> None:
    run = evaluate(task("mean"), model("under"))[0]
    assert run.n_missing == 0
    assert next(run.samples()).scores["test-given"].value == -3
    compare(run, evaluate(task("mean"), model("wrong"))[0])
