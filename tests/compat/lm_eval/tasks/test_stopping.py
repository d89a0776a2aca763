"""Stopping rules over tasks of lm-evaluation-harness: by the names of their metrics, on the
scores of their pipelines.
"""

from __future__ import annotations

import random

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.core.errors import UsageError
from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.models.scripted import last_text

from .conftest import SUM, Load, Write

pytest.importorskip("datasets")

COUNT = 400
CHOICE = """
    task: even
    dataset_path: json
    dataset_kwargs: {data_files: {test: tasks/rows.jsonl}}
    output_type: multiple_choice
    test_split: test
    doc_to_text: "{{q}}"
    doc_to_choice: options
    doc_to_target: a
    metric_list: [{metric: acc}, {metric: acc_norm}, {metric: brier_score}]
"""


@pytest.fixture(autouse=True)
def _files(write: Write) -> None:
    rows = [
        {"n": n, "q": f"Is {n} even?", "options": ["no", "yes"], "a": 1 - n % 2}
        for n in range(COUNT)
    ]
    write("rows.jsonl", rows)
    write("sum.jsonl", rows)
    write("even.yaml", CHOICE)
    write("sum.yaml", SUM)


def knows(name: str, share: float) -> ScriptedModel:
    def says(request: Request) -> str:
        assert isinstance(request, LogLikelihood | Generate)
        prompt = (
            request.context if isinstance(request, LogLikelihood) else request.prompt
        )
        number = int(
            next(word for word in last_text(prompt).split() if word.isdecimal())
        )
        right = random.Random(f"{name} {number}").random() < share
        if isinstance(request, Generate):
            return f"It is {number + 1 if right else 0}."
        return "yes" if (number % 2 == 0) is right else "no"

    return ScriptedModel(says, name=name, version=f"{share}")


@pytest.mark.parametrize("metric", ["acc", "acc_norm"])
def test_the_precision_of_any_of_its_means(load: Load, metric: str) -> None:
    (task,) = load("even")
    (run,) = evaluate(task, knows("one", 0.8), until=f"{metric} +-0.08")
    (decision,) = run.data["stopping"]["decisions"]
    found = {each["label"]: each for each in run.data["tasks"][0]["metrics"]}
    assert decision["verdict"] == "precise enough"
    assert decision["early"]
    assert decision["value"] == pytest.approx(found[metric]["value"])
    assert found[metric]["low"] == decision["low"]
    assert "exact confidence sequence" in found[metric]["method"]
    assert "not adjusted" in found["brier_score"]["method"]


@pytest.mark.parametrize("name", ["even", "sum"])
def test_a_pair(load: Load, name: str) -> None:
    (task,) = load(name)
    a, b = evaluate(task, [knows("one", 0.9), knows("two", 0.5)], until="A beats B")
    (decision,) = a.data["stopping"]["decisions"]
    assert (decision["verdict"], decision["early"]) == ("one better", True)
    assert b.data["stopping"]["decisions"] == [decision]
    assert "exact without replacement" in decision["method"]


def test_what_is_no_mean_is_refused(load: Load) -> None:
    (task,) = load("even")
    with pytest.raises(UsageError, match=r"brier_score.*not a mean"):
        evaluate(task, knows("one", 0.8), until="brier_score +-0.1")
