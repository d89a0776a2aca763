"""Runs whose answers are stored: the loop stays free for progress and signals, and no budget is
needed for them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from evaluation.test_schedule import knows, quiz, stopping
from evalwright import evaluate, score_run, scorer
from evalwright.cli.signals import stop_signals
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.engine import loop_turns
from evalwright.evaluation import interruption
from evalwright.metrics.registry import Column, metric
from evalwright.models.model_interface import Pacing
from evalwright.runs.callbacks import Callback
from evalwright.statistics import Estimate, mean_interval

pytestmark = pytest.mark.usefixtures("own_folder")

SAMPLES = 600
PACING = Pacing(max_concurrency=128, start_concurrency=128)
"""Many workers: 256."""


class CountsTurns(Callback):
    """Counts how many samples end within one turn of the loop; after `cancel_at` of them it does
    what Ctrl-C does.
    """

    def __init__(self, cancel_at: int = 0) -> None:
        self.cancel_at = cancel_at
        self.samples = 0
        self.most_in_a_turn = 0
        self._turn_began_at: int | None = None

    def sample_finished(self, run_id: str, record: SampleRecord) -> None:
        self.samples += 1
        if self.samples == self.cancel_at:
            interruption.cancel()
        if self._turn_began_at is None:
            self._turn_began_at = 0
            asyncio.get_running_loop().call_soon(self._turn)
        self.most_in_a_turn = max(
            self.most_in_a_turn, self.samples - self._turn_began_at
        )

    def _turn(self) -> None:
        self._turn_began_at = self.samples
        asyncio.get_running_loop().call_soon(self._turn)


@pytest.fixture
def one_sample_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_turns, "TURN_SECONDS", 0.0)


def model(name: str = "one", *, local: bool = False) -> Any:
    return knows(name, 0.8, local=local, **({} if local else {"pacing": PACING}))


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.usefixtures("one_sample_a_turn")
def test_the_loop_turns_between_stored_answers(local: bool) -> None:
    evaluate(quiz(SAMPLES), model(local=local))
    turns = CountsTurns()
    (run,) = evaluate(quiz(SAMPLES), model(local=local), callbacks=turns, replace=True)
    assert run.data["usage"]["stored"] == SAMPLES == turns.samples
    assert turns.most_in_a_turn <= 3


@pytest.mark.usefixtures("one_sample_a_turn")
def test_the_loop_turns_where_half_of_the_answers_are_stored() -> None:
    evaluate(quiz(SAMPLES), model(), limit=SAMPLES // 2)
    turns = CountsTurns()
    (run,) = evaluate(quiz(SAMPLES), model(), callbacks=turns, name="all")
    assert run.data["usage"]["stored"] == SAMPLES // 2
    # Replies that were sent arrive in groups, and each is recorded when it is there.
    assert turns.most_in_a_turn <= 2 * PACING.max_concurrency


@pytest.mark.usefixtures("one_sample_a_turn")
def test_an_interruption_is_heeded_between_stored_answers() -> None:
    evaluate(quiz(SAMPLES), model())
    turns = CountsTurns(cancel_at=20)
    with pytest.raises(KeyboardInterrupt):
        evaluate(quiz(SAMPLES), model(), callbacks=turns, replace=True)
    assert 20 <= turns.samples <= 40


@pytest.mark.usefixtures("one_sample_a_turn")
def test_scoring_again_can_be_interrupted_at_any_sample() -> None:
    (run,) = evaluate(quiz(SAMPLES), model())
    scored = 0

    @scorer("test-interrupts-scoring")
    def counted(sample: Sample, answer: Answer) -> Score:
        nonlocal scored
        scored += 1
        if scored == 20:
            interruption.cancel()
        return Score(1.0)

    with pytest.raises(KeyboardInterrupt):
        score_run(run, scorers=["test-interrupts-scoring"], name="again")
    assert 20 <= scored <= 40


# -- budgets
# ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("local", [False, True])
def test_stored_answers_are_used_although_the_budget_is_spent(local: bool) -> None:
    """Of 60 questions 20 are stored, wherever they stand in the order of the run."""
    fields = {"id": "{{ id }}", "input": "{{ question }}", "target": "{{ answer }}"}
    task = quiz(60, sample={**fields, "metadata": {"third": "{{ answer | int % 3 }}"}})
    stored = knows("one", 0.8, local=local)
    evaluate(task, stored, where="third=0", name="some")
    assert stored.asked == 20
    later = knows("one", 0.8, local=local)
    (run,) = evaluate(task, later, budget="3 requests", name="all")
    assert later.asked == 3
    assert run.data["usage"]["stored"] == 20
    assert run.task("quiz").n_samples == 23
    assert stopping(run)["budget_reached"] == "requests"
    assert run.n_missing == 0


def test_stored_answers_of_every_model_and_task_are_used() -> None:
    tasks = [quiz(40, "first"), quiz(40, "second")]
    evaluate(tasks, [knows("one", 0.8), knows("two", 0.8)], limit=15)
    runs = evaluate(
        tasks, [knows("one", 0.8), knows("two", 0.8)], budget="10 requests", name="all"
    )
    assert sum(run.data["usage"]["stored"] for run in runs) == 2 * 2 * 15
    assert sum(task.n_samples for run in runs for task in run.tasks) == 2 * 2 * 15 + 10


def test_stored_answers_feed_a_rule_that_the_budget_left_open() -> None:
    evaluate(quiz(500), [knows("one", 0.9), knows("two", 0.5)], limit=400)
    runs = evaluate(
        quiz(500),
        [knows("one", 0.9), knows("two", 0.5)],
        until="A beats B",
        budget="1 request",
        name="rule",
    )
    for run in runs:
        assert stopping(run)["decisions"][0]["decided"]
        assert run.data["usage"]["sent"] <= 1


# -- the end of a run
# ---------------------------------------------------------------------------------------------------


def test_ctrl_c_while_the_numbers_are_computed_waits_for_nothing() -> None:
    waited_to_the_end = []

    @metric("test-long-metric")
    def interrupted(column: Column) -> Estimate:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        waited_to_the_end.append(True)
        return mean_interval(column.values)

    task = quiz(20, metrics=["test-long-metric"])
    with pytest.raises(KeyboardInterrupt), stop_signals():
        evaluate(task, model(), name="cut")
    assert not waited_to_the_end
    assert not Path("runs/cut/run.json").exists()
    assert not list(Path("runs/cut").glob("*.partial"))
    (run,) = evaluate(quiz(20), model(), name="whole")
    assert run.data["usage"]["stored"] == 20
