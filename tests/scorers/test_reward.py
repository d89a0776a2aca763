"""The scorer `reward`: what it asks, what it makes of the values, and a whole run with a reward
model that is paid once.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, ScoringError, UnknownName
from evalwright.core.requests import Message, Request, Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind
from support.typed import typed

SAMPLE = Sample("a", "Guten Tag.", targets=("Good day.", "Hello."))
ANSWER = Answer("Hello.", prompt=(Message("user", "Translate: Guten Tag."),))


def scored(
    sample: Sample = SAMPLE, answer: Answer = ANSWER, **options: Any
) -> tuple[Score, list[tuple[str, Request]]]:
    seen: list[tuple[str, Request]] = []

    async def ask(role: str, request: Request) -> Response:
        seen.append((role, request))
        assert isinstance(request, Reward)
        return Response(
            values=(-10.0 if request.reference == "Good day." else -5.0, 0.5)
        )

    function: Any = bind("reward", options).function
    found = asyncio.run(function(sample, answer, ask))
    assert isinstance(found, Score)
    return found, seen


def test_what_is_asked() -> None:
    found, seen = scored()
    assert seen == [("reward", Reward(ANSWER.prompt, "Hello."))]
    assert (found.value, found.parts) == (-5.0, {"reward": -5.0, "value_2": 0.5})
    found, seen = scored(role="metricx", prompt="input", reference=True)
    assert seen == [
        ("metricx", Reward("Guten Tag.", "Hello.", target)) for target in SAMPLE.targets
    ]
    assert found.value == -5.0  # of several references the best


def test_a_range_makes_a_score_from_0_to_1() -> None:
    assert scored(range=[-25, 0])[0].value == pytest.approx(0.8)
    assert scored(range=[-4, 0])[0].value == 0.0
    assert scored(range=[-9, -6])[0].value == 1.0


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"prompt": "both"}, UnknownName, "prompt"),
        ({"range": [1, 0]}, ConfigurationError, "least first"),
        ({"range": [0, float("inf")]}, ConfigurationError, "two numbers"),
        ({"reference": "yes"}, ConfigurationError, "true or false"),
        ({"role": ""}, ConfigurationError, "name of a role"),
    ],
)
def test_options_that_cannot_be_are_refused(
    options: Any, error: Any, match: str
) -> None:
    with pytest.raises(error, match=match):
        bind("reward", options)


def test_a_reference_needs_a_target() -> None:
    with pytest.raises(ScoringError, match="no target"):
        scored(Sample("b", "x"), reference=True)


def test_payloads_without_a_reference_are_as_they_were() -> None:
    assert Reward("a", "b").payload() == {"reward": "a", "response": "b"}
    assert Reward("a", "b", "c").payload() == {
        "reward": "a",
        "response": "b",
        "reference": "c",
    }


TASK = """task: rewarded
dataset:
  rows:
    - {input: What is the capital of France?, target: Paris}
    - {input: What is the capital of Peru?, target: Lima}
    - {input: What is the capital of Kenya?, target: Nairobi}
scorers: [exact-match, {name: liked, use: reward, role: reward}]
metrics: [accuracy, {use: mean, scorer: liked}]
"""


def test_a_run_with_a_reward_model_is_paid_once_and_compared(tmp_path: Path) -> None:
    (tmp_path / "rewarded.yaml").write_text(TASK)
    role = ("--role", "reward=likelihood/demo/small")
    for name, model in (
        ("gold", "oracle/gold"),
        ("wrong", "oracle/wrong"),
        ("again", "oracle/gold"),
    ):
        done = typed(
            "run",
            "rewarded.yaml",
            "--model",
            model,
            "--name",
            name,
            *role,
            folder=tmp_path,
        )
        assert done.code == 0, done.text
    record = json.loads((tmp_path / "runs" / "gold" / "run.json").read_text())
    values = {
        metric["label"]: metric["value"] for metric in record["tasks"][0]["metrics"]
    }
    assert values["liked-mean"] < 0
    again = json.loads((tmp_path / "runs" / "again" / "run.json").read_text())
    assert {
        metric["label"]: metric["value"] for metric in again["tasks"][0]["metrics"]
    } == values
    lines = [
        json.loads(line)
        for line in (tmp_path / "runs" / "gold" / "samples.jsonl")
        .read_text()
        .splitlines()
    ]
    assert all("reward" in line["scores"]["liked"]["parts"] for line in lines)
    done = typed("compare", "gold", "wrong", folder=tmp_path)
    assert done.code == 0, done.text
    done = typed(
        "run",
        "rewarded.yaml",
        "--model",
        "oracle/gold",
        "--role",
        "reward=demo/small",
        folder=tmp_path,
    )
    assert done.code == 2
    assert "reward" in done.text
