"""The mode classify: the pair that is asked, the class that is chosen, the numbers that come out
of a run.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import evalwright
from evalwright.analysis.task_checks.material import preview_requests
from evalwright.core.ask import Ask
from evalwright.core.errors import DatasetError, RequestFailed, ScoringError, TaskError
from evalwright.core.requests import Classify, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Passage, Sample
from evalwright.scorers.choice import classification
from evalwright.strategies.likelihood import ClassifyPair
from evalwright.tasks.loading import task_from_definition
from strategies.asking import setup

SAMPLE = Sample(
    id="1",
    input="It is open.",
    choices=("unsupported", "supported"),
    gold=(1,),
    passages=(Passage("1", "The bridge is open."), Passage("2", "It was closed.")),
)


def answered(values: tuple[float, ...]) -> tuple[Answer, list[Request]]:
    asked: list[Request] = []

    async def ask(role: str, request: Request) -> Response:
        assert role == "target"
        asked.append(request)
        return Response(values=values)

    door: Ask = ask
    return asyncio.run(ClassifyPair(setup())(SAMPLE, door, 0)), asked


@pytest.mark.parametrize(
    ("values", "choice"),
    [((0.2, 0.8), 1), ((0.8, 0.2), 0), ((0.5, 0.5), 1), ((0.5000001, 0.4999999), 0)],
)
def test_the_most_probable_class_is_chosen_and_a_half_is_supported(
    values: tuple[float, ...], choice: int
) -> None:
    answer, asked = answered(values)
    assert asked == [Classify("The bridge is open.\n\nIt was closed.", "It is open.")]
    assert (answer.choice, answer.text) == (choice, SAMPLE.choices[choice])
    score = classification(SAMPLE, answer)
    assert score.value == float(choice == 1)
    assert score.parts == {
        "gold": 1.0,
        "predicted": float(choice),
        "probability": values[1],
    }


def test_a_reply_of_another_form_is_a_failure() -> None:
    with pytest.raises(RequestFailed, match="3 class probabilities"):
        answered((0.2, 0.3, 0.5))
    with pytest.raises(RequestFailed, match="0 class probabilities"):
        answered(())


def test_what_was_not_chosen_cannot_be_scored() -> None:
    with pytest.raises(ScoringError, match="chose no class"):
        classification(SAMPLE, Answer("supported"))
    with pytest.raises(ScoringError, match="exactly one right class"):
        classification(Sample(id="x", choices=("a", "b")), Answer(choice=0))


ROWS = [
    {
        "id": str(number),
        "summary": f"The {word} is red.",
        "article": "The chimney is red. The shutter is of slate.",
        "label": "supported" if word in ("chimney", "shutter") else "unsupported",
    }
    for number, word in enumerate(("chimney", "giraffe", "crescent", "shutter"))
]


def definition(**changed: Any) -> dict[str, Any]:
    return {
        "task": "pairs",
        "dataset": {"rows": ROWS},
        "sample": {
            "input": "{{ summary }}",
            "passages": ["{{ article }}"],
            "choices": ["unsupported", "supported"],
            "target": "{{ label }}",
        },
        "answer": {"mode": "classify"},
        **changed,
    }


def test_a_task_file_measures_a_judge(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (run,) = evalwright.evaluate(task_from_definition(definition()), "baseline/lexical")
    found = {metric["label"]: metric for metric in run.data["tasks"][0]["metrics"]}
    assert list(found) == ["accuracy", "balanced-accuracy", "auroc"]
    assert found["auroc"]["value"] == 1.0
    assert found["auroc"]["n"] == 4


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"sample": {"input": "x", "choices": ["a", "b"], "target": "a"}},
            "no passages",
        ),
        ({"sample": {"input": "x", "passages": ["y"], "target": "a"}}, "no choices"),
        (
            {"sample": {"input": "x", "passages": ["y"], "choices": ["a", "b"]}},
            "right class",
        ),
    ],
)
def test_rows_that_are_no_pairs_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(DatasetError, match=said):
        task_from_definition(definition(**changed))


def test_a_preview_shows_the_pair() -> None:
    (request,) = preview_requests(task_from_definition(definition()), 1)
    assert request == Classify(
        "The chimney is red. The shutter is of slate.", "The giraffe is red."
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"prompt": {"system": "Judge."}}, "judged as it is"),
        (
            {"answer": {"mode": "classify", "temperature": 1.0}},
            "cannot be used with the mode classify",
        ),
    ],
)
def test_settings_that_a_pair_does_not_have_are_refused(
    changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(TaskError, match=said):
        task_from_definition(definition(**changed))
