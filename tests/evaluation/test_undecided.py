"""What rules leave undecided: in no mean, counted and bounded, in a comparison as if it had failed, or decided by a second scorer."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright import ScriptedModel, compare, evaluate, leaderboard, open_run, score_run, scorer
from evalwright.core.asking import Ask
from evalwright.core.errors import Overloaded
from evalwright.core.requests import Generate
from evalwright.core.samples import UNDECIDED, Answer, NoScore, Sample, Score, Undecided
from evalwright.core.tasks import Task
from evalwright.models.base import Pacing
from evalwright.runs.reader import Run
from evalwright.statistics import wilson
from evalwright.tasks.loading import task_from_definition
from runs.test_schemas import valid_rows

WORTH = {"right": Score(1.0, "correct"), "wrong": Score(0.0, "incorrect")}


@scorer("test-unsure")
def unsure(sample: Sample, answer: Answer) -> Score | Undecided:
    """Decides "right" and "wrong" and nothing else."""
    return WORTH.get(answer.text, Undecided(f"'{answer.text}' is neither"))


@scorer("test-second")
async def second(sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge") -> Score | NoScore:
    """Asks a model."""
    reply = (await ask(role, Generate(f"Is '{answer.text}' right?"))).text
    return (
        NoScore()
        if reply == "pass"
        else Score(float(reply == "yes"), "correct" if reply == "yes" else "incorrect", reply)
    )


pytestmark = pytest.mark.usefixtures("own_folder")


def task(options: dict[str, Any] | None = None, **more: Any) -> Task:
    definition = {
        "task": "unsure",
        "dataset": {"rows": [{"id": str(i), "input": f"Question {i}", "target": "right"} for i in range(10)]},
        "sample": {"metadata": {"domain": "{{ 'a' if id | int < 5 else 'b' }}"}},
        "scorers": [{"test-unsure": options or {}}],
        **more,
    }
    return task_from_definition(definition)


def model(replies: list[str]) -> ScriptedModel:
    def reply(request: Any) -> str:
        return replies[int(str(request.prompt).split()[-1][0])]

    return ScriptedModel(
        reply,
        version="-".join(replies),
        failures=lambda request, asked: Overloaded("no") if reply(request) == "fail" else None,
        pacing=Pacing(max_attempts=1),
    )


def run(replies: str, name: str = "first", **more: Any) -> Run:
    """A run whose replies are given by letters: r(ight), w(rong), f(ail), anything else is undecided."""
    words = {"r": "right", "w": "wrong", "f": "fail", "y": "yes, perhaps", "p": "pass this"}
    (made,) = evaluate(task(**more), model([words[letter] for letter in replies]), name=name)
    return made


def test_it_is_counted_and_bounded_and_not_in_the_mean() -> None:
    made = run("rrrrrrwyyf")
    rows = valid_rows(made)
    assert rows[7]["undecided"] == {
        "test-unsure": {"label": UNDECIDED, "explanation": "'yes, perhaps' is neither"}
    }
    assert rows[7]["scores"] == {}
    found = made.tasks[0]
    assert (found.n_samples, found.n_missing, found.n_unsure) == (10, 1, 2)
    estimate = found.metrics[0].estimate
    assert (estimate.n, estimate.n_missing, estimate.n_unsure) == (7, 1, 2)
    assert estimate.value == pytest.approx(6 / 7)
    assert estimate.bounds == pytest.approx((wilson(6, 10)[0], wilson(9, 10)[1]))
    part = found.slices["domain"]["b"][0].estimate
    assert (part.n, part.n_missing, part.n_unsure) == (2, 1, 2)
    assert made.n_missing == 1, "an answer that rules cannot decide is no failure"
    again = open_run(made.folder).tasks[0]
    assert again.n_unsure == 2
    assert again.metrics[0].estimate == estimate


def test_an_item_with_a_decided_draw_is_scored() -> None:
    two = task(answer={"mode": "generate", "temperature": 1.0, "draws": 2})

    def reply(request: Any) -> str:
        return "right" if request.draw == 0 else "hm"

    (made,) = evaluate(two, ScriptedModel(reply, version="1"))
    estimate = made.tasks[0].metrics[0].estimate
    assert (estimate.n, estimate.n_unsure, estimate.value) == (10, 0, 1.0)


def test_a_comparison_and_a_board_treat_it_as_what_failed() -> None:
    other = run("rrrrrwwwww", "other")
    undecided, failed = run("rrrrrrwyyy", "undecided"), run("rrrrrrwfff", "failed")
    said = [compare(other, one).as_dict() for one in (undecided, failed)]
    assert said[0]["tasks"] == said[1]["tasks"] or _numbers(said[0]) == _numbers(said[1])
    board = leaderboard([undecided, failed])
    assert [row.n for row in board.rows] == [7, 7]
    assert [row.n_missing for row in board.rows] in ([0, 3], [3, 0])
    assert any("3 answers (0 to 3 per model) could not be decided" in note for note in board.notes)


def _numbers(found: Any) -> list[float]:
    if isinstance(found, dict):
        return [number for value in found.values() for number in _numbers(value)]
    if isinstance(found, list):
        return [number for value in found for number in _numbers(value)]
    return [found] if isinstance(found, float) else []


@pytest.mark.parametrize("then", ["test-second", {"scorer": "test-second", "role": "judge"}])
def test_a_second_scorer_decides_what_the_first_leaves(then: Any) -> None:
    asked = []

    def judge(request: Any) -> str:
        asked.append(request.prompt)
        return "pass" if "pass" in request.prompt else "yes"

    replies = ["right"] * 5 + ["wrong"] * 2 + ["yes, perhaps"] * 2 + ["pass this"]
    judging = ScriptedModel(judge, version="1", name="judge")
    (made,) = evaluate(task({"undecided": then}), model(replies), roles={"judge": judging}, name="judged")
    assert asked == ["Is 'yes, perhaps' right?", "Is 'pass this' right?"], (
        "what rules decide costs no request"
    )
    rows = valid_rows(made)
    score = rows[7]["scores"]["test-unsure"]
    assert (score["value"], score["label"]) == (1.0, "correct")
    assert score["explanation"] == "test-second: yes; rules: 'yes, perhaps' is neither"
    estimate = made.tasks[0].metrics[0].estimate
    assert (estimate.n, estimate.n_unsure) == (9, 1)
    assert estimate.value == pytest.approx(7 / 9)
    assert score_run(made, roles={"judge": judging}).tasks[0].metrics[0].estimate == estimate
    assert len(asked) == 2, "the judge's replies are in the store"
