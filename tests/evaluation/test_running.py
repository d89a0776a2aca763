"""A whole evaluation, from names or objects to a run's folder: what is asked, what is counted,
what is recorded.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright import ModelSpec, ScriptedModel, evaluate, scorer
from evalwright.core.ask import Ask
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    Overloaded,
    RequestFailed,
    StoreError,
    UsageError,
)
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Task
from evalwright.engine.opening import open_store
from evalwright.engine.sqlite import SqliteStore
from evalwright.evaluation.configuration import Configuration
from evalwright.evaluation.evaluating import evaluate_settings
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.settings import Settings
from evalwright.models.model_interface import Pacing
from evalwright.models.scripted import ScriptedLocalModel, last_text
from evalwright.runs.progress import Progress
from evalwright.runs.reader import Run
from evalwright.statistics import wilson
from evalwright.tasks.loading import task_from_definition
from support.command import environment, records

pytestmark = pytest.mark.usefixtures("own_folder")


def questions(count: int = 10, *, name: str = "quiz", **more: Any) -> Task:
    """A task of `count` questions "Question i?" with the answer "i"."""
    rows = [
        {"id": f"q{i}", "question": f"Question {i}?", "answer": str(i)}
        for i in range(count)
    ]
    definition: dict[str, Any] = {
        "task": name,
        "dataset": {"rows": rows},
        "sample": {
            "id": "{{ id }}",
            "input": "{{ question }}",
            "target": "{{ answer }}",
        },
        "prompt": {"user": "{{ input }}"},
        "answer": {"mode": "generate"},
        "scorers": ["exact-match"],
        **more,
    }
    return task_from_definition(definition)


def number(request: Request) -> int:
    """The number in the question that a request asks."""
    assert isinstance(request, Generate)
    return int(last_text(request.prompt).split()[1].rstrip("?"))


def knows(least: int = 0, **more: Any) -> ScriptedModel:
    """A model that knows the answers from `least` on."""
    more = {"version": f"knows {least}", **more}
    return ScriptedModel(
        lambda request: str(number(request)) if number(request) >= least else "?",
        **more,
    )


# -- in Python
# ----------------------------------------------------------------------------------------------------------


def test_tasks_and_models_can_be_objects() -> None:
    (run,) = evaluate(questions(), knows(3))
    estimate = run.task("quiz").metrics[0].estimate
    assert (estimate.value, estimate.n, run.n_missing) == (0.7, 10, 0)
    assert run.folder.parent == Path("runs")
    run.verify()
    assert [record.sample.id for record in run.samples()] == [
        f"q{i}" for i in range(10)
    ]


def test_inside_a_running_loop_as_in_a_notebook() -> None:
    async def cell() -> list[Run]:
        return evaluate(questions(), knows())

    (run,) = asyncio.run(cell())
    assert run.n_missing == 0


def test_an_interrupted_cell_stops_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    join = threading.Thread.join
    interrupted: list[bool] = []

    def impatient(self: threading.Thread, timeout: float | None = None) -> None:
        if self.name == "evalwright-evaluate" and not interrupted:
            interrupted.append(True)
            join(self, 0.2)
            raise KeyboardInterrupt
        join(self, timeout)

    async def forever() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def cell() -> None:
        run_blocking(forever)

    monkeypatch.setattr(threading.Thread, "join", impatient)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cell())
    assert ended.is_set()


def test_two_objects_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match=r"Two different models .*'scripted'"):
        evaluate(questions(), [ScriptedModel("a"), ScriptedModel("b")])
    with pytest.raises(UsageError, match="Two different tasks are named 'quiz'"):
        evaluate([questions(3), questions(4)], knows())
    with pytest.raises(UsageError, match="would write the same run"):
        evaluate(questions(), ["scripted/echo", "scripted/echo"])


def test_nothing_is_left_open() -> None:
    """Neither threads nor files outlive a call: a notebook makes many."""
    before = threading.active_count()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(3):
            evaluate(questions(), knows(), seed=seed)
    assert threading.active_count() == before
    store = open_store(Path("home"))
    assert len(store) == 10
    store.close()


def test_progress_is_told_and_ends() -> None:
    class Reporter:
        def __init__(self) -> None:
            self.seen: list[Progress] = []
            self.said: list[str] = []

        def update(self, progress: Progress) -> None:
            self.seen.append(progress)

        def say(self, sentence: str) -> None:
            self.said.append(sentence)

    reporter = Reporter()
    model = knows(
        failures=lambda request, asked: (
            Overloaded("no") if number(request) == 1 else None
        ),
        pacing=ONCE,
    )
    evaluate(questions(), model, progress=reporter)
    last = reporter.seen[-1]
    assert (last.total, last.done, last.failed, last.finished) == (10, 10, 1, True)
    assert [one.done for one in reporter.seen] == sorted(
        one.done for one in reporter.seen
    )


# -- order, limits, identity
# --------------------------------------------------------------------------------------------


def ids(run: Run) -> set[str]:
    return {record.sample.id for record in run.samples()}


def test_a_limit_takes_the_same_samples_and_a_larger_one_extends_it() -> None:
    quiz = questions(40)
    small, large, other, again = (
        evaluate(quiz, model, limit=limit, seed=seed, name=name)[0]
        for model, limit, seed, name in (
            (knows(), 8, 0, "a"),
            (knows(5, name="another"), 20, 0, "b"),
            (knows(), 8, 1, "c"),
            (knows(), 8, 0, "a"),
        )
    )
    assert len(ids(small)) == 8
    assert ids(small) < ids(large)
    assert ids(small) == ids(again)
    assert ids(small) != ids(other)
    assert len(ids(evaluate(quiz, knows(), limit=1000, name="d")[0])) == 40


def test_the_order_of_asking_is_the_seeds_in_every_process() -> None:
    program = (
        "from evalwright.evaluation.task_choice import sample_order; import sys;"
        "print([list(sample_order(50, seed, None)) for seed in (0, 1)])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment({"PYTHONHASHSEED": seed}),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(printed) == 1
    first, second = json.loads(printed.pop())
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    model = knows(record=True, pacing=Pacing(max_concurrency=1, start_concurrency=1))
    evaluate(questions(50), model, seed=0)
    assert model.requests is not None
    assert [number(request) for request in model.requests] == first


def test_samples_are_equal_for_any_concurrency() -> None:
    def slow(request: Request) -> float:
        return 0.001 * (7 * number(request) % 5)

    lines = []
    for most in (1, 3, 200):
        pacing = Pacing(max_concurrency=most, start_concurrency=most)
        (run,) = evaluate(
            questions(30),
            knows(4, latency=slow, pacing=pacing),
            home=f"home {most}",
            name=f"run {most}",
        )
        lines.append((records(run.folder), run.data["tasks"]))
    assert lines[0] == lines[1] == lines[2]


def test_another_evaluation_does_not_overwrite_a_run() -> None:
    evaluate(questions(), knows(), name="mine")
    evaluate(questions(), knows(), name="mine")
    with pytest.raises(
        UsageError, match=r"made from another configuration.*replace=True"
    ):
        evaluate(questions(), knows(), name="mine", limit=3)
    assert (
        len(ids(evaluate(questions(), knows(), name="mine", limit=3, replace=True)[0]))
        == 3
    )
    for text in ('{"schema": 99, "tasks": []}', "{"):
        Path("runs/mine/run.json").write_text(text)
        with pytest.raises(UsageError, match="replace=True"):
            evaluate(questions(), knows(), name="mine")
    evaluate(questions(), knows(), name="mine", replace=True)[0].verify()


# -- what is asked
# ------------------------------------------------------------------------------------------------------


def test_draws_are_asked_apart_where_they_can_differ() -> None:
    def says(request: Request) -> str:
        assert isinstance(request, Generate)
        return str(number(request)) if request.draw % 2 == 0 else "?"

    task = questions(6, answer={"mode": "generate", "draws": 4, "temperature": 0.8})
    model = ScriptedModel(says, version="draws", record=True)
    (run,) = evaluate(task, model)
    assert model.requests is not None
    assert sorted({getattr(request, "draw", -1) for request in model.requests}) == [
        0,
        1,
        2,
        3,
    ]
    assert model.asked == 24
    estimate = run.task("quiz").metrics[0].estimate
    assert (estimate.value, estimate.n) == (0.5, 6)
    rows = records(run.folder)
    assert [(row["index"], row["draw"]) for row in rows] == [
        (i, k) for i in range(6) for k in range(4)
    ]


def test_several_models_are_asked_side_by_side_or_in_turn() -> None:
    log: list[str] = []

    def noted(name: str) -> Callable[[Request], str]:
        def says(request: Request) -> str:
            log.append(name)
            return "1"

        return says

    remote = [
        ScriptedModel(noted(name), name=f"r/{name}", latency=0.01, pacing=Pacing(2, 2))
        for name in "ab"
    ]
    runs = evaluate(questions(), remote)
    assert [run.model for run in runs] == ["r/a", "r/b"]
    assert len(set(log[:6])) == 2, "remote models wait for each other"
    log.clear()
    local = [ScriptedLocalModel(noted(name), name=f"l/{name}") for name in "cd"]
    evaluate(questions(), local)
    assert log == ["c"] * 10 + ["d"] * 10


# -- failures
# -----------------------------------------------------------------------------------------------------------

ONCE = Pacing(max_attempts=1)


class Odd:
    """A strategy that cannot handle odd questions."""

    needs = frozenset({"generate"})

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        if int(sample.target) % 2:
            raise ValueError("an odd question")
        response = await ask("target", Generate(sample.input))
        return Answer(text=response.text, prompt=sample.input, responses=(response,))


def with_parts(task: Task, **parts: Any) -> Task:
    import dataclasses

    return dataclasses.replace(task, **parts)


def test_a_request_that_fails_is_recorded_and_asked_again_next_time() -> None:
    def ill(request: Request, asked: int) -> Overloaded | None:
        return (
            Overloaded("The server is busy.", status=503)
            if number(request) in (2, 5)
            else None
        )

    model = knows(failures=ill, pacing=ONCE)
    (run,) = evaluate(questions(), model)
    rows = records(run.folder)
    assert run.n_missing == 2
    assert rows[2]["failure"] == {
        "kind": "server error",
        "party": "provider",
        "message": "The server is busy. (sent once; given up)",
        "retryable": True,
        "status": 503,
        "attempts": 1,
    }
    estimate = run.task("quiz").metrics[0].estimate
    assert (estimate.value, estimate.n, estimate.n_missing) == (1.0, 8, 2)
    assert estimate.bounds == pytest.approx((wilson(8, 10)[0], 1.0))
    healthy = knows()
    (run,) = evaluate(questions(), healthy)
    assert (healthy.asked, run.n_missing) == (2, 0)


def test_a_strategy_that_raises_fails_its_sample_alone() -> None:
    (run,) = evaluate(with_parts(questions(), strategy=Odd()), knows())
    rows = records(run.folder)
    assert run.n_missing == 5
    assert rows[3]["failure"]["party"] == "task"
    assert rows[3]["failure"]["kind"] == "strategy error"
    assert re.fullmatch(
        r"ValueError: an odd question.* \(test_running\.py, line [0-9]+\)",
        rows[3]["failure"]["message"],
    )
    assert run.task("quiz").failures == {"strategy error": 5}


BAD: Mapping[str, Callable[[Sample], Any]] = {
    "raises": lambda sample: 1 / 0,
    "gives-nothing": lambda sample: None,
    "gives-nan": lambda sample: Score(float("nan")),
    "gives-an-infinite-part": lambda sample: Score(1.0, parts={"length": float("inf")}),
    "gives-text": lambda sample: Score("good"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("kind", BAD)
def test_a_scorer_that_misbehaves_fails_by_itself(kind: str) -> None:
    @scorer(f"test-{kind}")
    def bad(sample: Sample, answer: Answer) -> Score:
        score: Score = BAD[kind](sample) if sample.target == "3" else Score(1.0)
        return score

    (run,) = evaluate(questions(scorers=["exact-match", f"test-{kind}"]), knows())
    row = records(run.folder)[3]
    assert "failure" not in row
    assert row["scores"] == {"exact-match": row["scores"]["exact-match"]}
    failure = row["score_failures"][f"test-{kind}"]
    assert (failure["party"], failure["kind"]) == ("scorer", "scorer error")
    assert run.n_missing == 1
    assert run.task("quiz").metrics[0].estimate.n_missing == 0


def test_a_store_that_breaks_ends_the_run_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def broken(self: SqliteStore, keys: Sequence[bytes]) -> list[Response | None]:
        raise StoreError("The store 'home/store.sqlite' is damaged.")

    monkeypatch.setattr(SqliteStore, "get_many", broken)
    with pytest.raises(StoreError, match="is damaged"):
        evaluate(questions(), knows())
    assert not list(Path("runs").glob("*/run.json"))
    assert not list(Path("runs").glob("*/*.partial"))


def test_a_store_that_breaks_under_a_judge_ends_the_run_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    register_judge()
    get = SqliteStore.get_many

    async def broken(self: SqliteStore, keys: Sequence[bytes]) -> list[Response | None]:
        if len(self) >= 3:
            raise StoreError("The disk is full.")
        return await get(self, keys)

    monkeypatch.setattr(SqliteStore, "get_many", broken)
    judge = ScriptedModel("yes", name="judge")
    pacing = Pacing(max_concurrency=1, start_concurrency=1)
    with pytest.raises(StoreError, match="disk is full"):
        evaluate(
            questions(scorers=["test-judge"]),
            knows(pacing=pacing),
            roles={"judge": judge},
        )


# -- roles
# --------------------------------------------------------------------------------------------------------------


def register_judge() -> None:
    @scorer("test-judge")
    async def judged(
        sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge"
    ) -> Score:
        """Ask whether the answer is right."""
        reply = await ask(
            role, Generate(f"Is '{answer.text}' right for '{sample.input}'?")
        )
        if reply.text not in ("yes", "no"):
            raise RequestFailed(
                Failure(
                    "unreadable verdict",
                    "judge",
                    f"'{reply.text}' is neither yes nor no.",
                )
            )
        return Score(float(reply.text == "yes"))


@pytest.mark.parametrize("as_object", [True, False])
def test_a_judge_is_asked_through_the_same_door(as_object: bool) -> None:
    register_judge()
    judge: Any = ScriptedModel(
        lambda request: "yes" if "'7'" in repr(request) else "no",
        name="judge/1",
        version="1",
    )
    if not as_object:
        judge = ModelSpec("scripted/constant", {"text": "yes"})
    task = questions(scorers=["test-judge"])
    (run,) = evaluate(task, knows(), roles={"judge": judge})
    assert run.task("quiz").metrics[0].estimate.value == pytest.approx(
        0.1 if as_object else 1.0
    )
    assert run.data["usage"]["requested"] == 20
    assert run.data["roles"]["judge"]["name"] == (
        "judge/1" if as_object else "scripted/constant"
    )
    (again,) = evaluate(task, knows(), roles={"judge": judge})
    assert again.data["usage"]["asked"] == 0


def test_a_verdict_that_cannot_be_read_is_a_failure_of_the_judge() -> None:
    register_judge()
    judge = ScriptedModel(
        lambda request: "maybe" if "'4'" in repr(request) else "yes", name="judge"
    )
    (run,) = evaluate(
        questions(scorers=["test-judge"]), knows(), roles={"judge": judge}
    )
    row = records(run.folder)[4]
    assert row["score_failures"]["test-judge"]["party"] == "judge"
    assert row["answer"] == "4"
    assert run.task("quiz").metrics[0].estimate.n_missing == 1


def test_a_missing_role_is_said_before_anything_is_asked() -> None:
    register_judge()
    model = knows()
    with pytest.raises(UsageError, match=r"'test-judge'.*role 'judge'.*--role judge="):
        evaluate(questions(scorers=["test-judge"]), model)
    assert model.asked == 0


def test_a_role_that_only_the_code_names_ends_the_run() -> None:
    @scorer("test-hidden-role")
    async def hidden(sample: Sample, answer: Answer, ask: Ask) -> Score:
        await ask("oracle", Generate("?"))
        return Score(1.0)

    with pytest.raises(
        ConfigurationError, match="No model is given for the role 'oracle'"
    ):
        evaluate(questions(scorers=["test-hidden-role"]), knows())


def test_what_a_model_cannot_do_is_said_before_anything_is_asked() -> None:
    model = knows(abilities=("log-likelihood",))
    with pytest.raises(
        UsageError,
        match=r"generate; .*log-likelihood",
    ):
        evaluate(questions(), model)
    assert model.asked == 0


# -- interruption
# -------------------------------------------------------------------------------------------------------


def test_what_was_sent_arrives_when_the_run_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from evalwright.evaluation.objects import Objects

    model = knows(latency=0.15, pacing=Pacing(max_concurrency=4, start_concurrency=4))
    objects = Objects()
    configuration = Configuration(
        tasks=(objects.name_task(questions(40)),), models=(objects.name_model(model),)
    )
    settings = Settings(configuration, tasks=objects.tasks, models=objects.models)

    async def interrupted() -> None:
        work = asyncio.create_task(evaluate_settings(settings))
        while model.asked < 4:
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(interrupted())
    store = open_store(Path("home"))
    assert 4 <= len(store) == model.asked < 40
    store.close()
    assert not list(Path("runs").glob("*/run.json"))


def test_a_function_without_fingerprint_replaces_its_own_run_and_no_other() -> None:
    register_judge()
    task = questions(scorers=["test-judge"])

    def mine(prompt: str) -> str:
        return prompt[-2]

    def judge(prompt: str) -> str:
        return "yes"

    (first,) = evaluate(task, mine, name="candidate", roles={"judge": judge})
    (again,) = evaluate(task, mine, name="candidate", roles={"judge": judge})
    assert first.data["identity"] != again.data["identity"]
    cases: list[tuple[Any, dict[str, Any]]] = [
        (mine, {"limit": 3}),
        (mine, {"seed": 1}),
        (lambda prompt: "7", {}),
        (knows(), {}),
    ]
    for model, settings in cases:
        with pytest.raises(
            ConfigurationError, match=r"name=, or .*replace=True"
        ) as raised:
            evaluate(
                task,
                model,
                name="candidate",
                roles={"judge": judge},
                **settings,
            )
        assert "--" not in str(raised.value)


def test_an_error_of_the_user_is_not_raised_during_the_handling_of_another() -> None:
    with pytest.raises(UsageError) as raised:
        evaluate("no-such-task", knows())
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    assert "event loop" not in "".join(traceback.format_exception(raised.value))


def test_a_changed_configuration_says_what_changed() -> None:
    def made(limit: int = 2, **more: Any) -> None:
        evaluate("factual-closed-book", "demo/small", name="x", limit=limit, **more)

    made(judge="demo/small")
    with pytest.raises(UsageError) as other_judge:
        made(judge="demo/large")
    assert "configuration: judge: demo/small, now demo/large. Choose" in str(
        other_judge.value
    )
    assert "`evalwright score runs/x --judge demo/large`" in str(other_judge.value)
    with pytest.raises(UsageError) as no_judge:
        made()
    assert "configuration: judge: demo/small, now none. Choose" in str(no_judge.value)
    with pytest.raises(UsageError) as other_limit:
        made(3, judge="demo/small")
    assert "configuration: limit: 2, now 3. Choose" in str(other_limit.value)
    with pytest.raises(UsageError, match=r"tasks: factual-closed-book, now factual-ch"):
        evaluate("factual-choice", "demo/small", name="x", limit=2)
