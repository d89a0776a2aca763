"""Workers: together they make the run that one process makes, whoever of them dies and when."""

from __future__ import annotations

import asyncio
import json
import platform
import random
import shutil
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import evalwright
from end_to_end.test_shards import answered, command, told, write_tasks
from evalwright import evaluate, evaluate_async
from evalwright.core.errors import ConfigurationError
from evalwright.evaluation import worker_rounds
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.planning import PlannedRun, make_plan
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.settings import Settings
from evalwright.evaluation.slicing import cut_slices, slice_answers
from evalwright.runs.reader import Run
from evalwright.scorers.code import sandbox, unit_tests
from support.billing_server import EACH
from support.bucket_server import serving_buckets
from support.command import record, records, write_questions
from support.forked import ForkedProcess, start_forked
from support.openai_server import serving
from support.postgres import Server
from support.sandbox import needs_sandbox
from support.typed import typed
from support.worker_trials import Disturber, comparable, worker_trial

COUNT = 12
ASKED: Counter[str] = Counter()


@pytest.fixture
def questions(own_folder: Path) -> Path:
    """A folder with a task; nothing has been asked."""
    write_questions(own_folder, COUNT)
    ASKED.clear()
    return own_folder


@evalwright.model(fingerprint="right")
def right(prompt: str) -> str:
    ASKED[prompt] += 1
    return str(int("".join(filter(str.isdigit, prompt))))


def work(**settings: Any) -> list[Run]:
    return evaluate("questions.yaml", right, worker=True, name="shared", **settings)


# -- slices ----------------------------------------------------------------------------


def planned(model: str) -> PlannedRun:
    configuration = Configuration(
        tasks=("law.yaml", "sums.yaml", "texts.yaml"),
        models=(ModelSpec(model),),
        no_judge=True,
    )
    return make_plan(resolve(Settings(configuration))).runs[0]


@pytest.mark.parametrize("model", ["demo/small", "openai/m"])
def test_slices_are_the_run_and_keep_together_what_belongs_together(
    own_folder: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    write_tasks(own_folder)
    run = planned(model)
    sliced = cut_slices(run)
    assert cut_slices(planned(model)).slices == sliced.slices
    slices = [list(sliced.units(number)) for number in range(len(sliced.slices))]
    units = [unit for units in slices for unit in units]
    assert sorted(units) == sorted(run.units())
    assert all(slices)
    samples = [{(number, index) for _, number, index, _ in units} for units in slices]
    assert sum(map(len, samples)) == len(set().union(*samples)), "draws are apart"
    if model == "demo/small":
        law = run.tasks[0]
        clusters = [
            {law.samples[index].cluster for number, index in part if number == 0}
            for part in samples
        ]
        assert sum(map(len, clusters)) == len(set().union(*clusters))


@given(st.integers(1, 10**8), st.booleans())
def test_slices_are_many_enough_and_few_enough(total: int, is_local: bool) -> None:
    answers = slice_answers(total, is_local=is_local)
    n_slices = -(-total // answers)
    assert n_slices <= 4096
    assert is_local or n_slices >= min(total, 33)
    assert answers <= max(64 if not is_local else 1024, -(-total // 4096))


# -- one process -----------------------------------------------------------------------


def test_several_workers_make_the_ordinary_run(
    questions: Path, each_store: str
) -> None:
    async def all_of_them() -> list[list[Run]]:
        workers = [
            evaluate_async(
                "questions.yaml", right, name="shared", worker=True, home="all"
            )
            for _ in range(3)
        ]
        return await asyncio.gather(*workers)

    results = asyncio.run(all_of_them())
    folders = {run.folder.resolve() for runs in results for run in runs}
    assert len(results) == 3 and len(folders) == 1
    assert set(ASKED.values()) == {1} and len(ASKED) == COUNT
    (folder,) = folders
    (alone,) = evaluate(
        "questions.yaml", right, name="shared", home="alone", out="alone"
    )
    shared = comparable(folder) | {"configuration": None}
    assert shared == comparable(alone.folder) | {"configuration": None}
    run_record = record(folder)
    assert run_record["usage"]["asked"] == run_record["usage"]["sent"] == COUNT
    assert run_record["usage"]["stored"] == 0
    assert sum(worker["answers"] for worker in run_record["workers"]) == COUNT
    assert sum(worker["requests"] for worker in run_record["workers"]) == COUNT


def test_who_comes_after_the_end_hears_of_it(questions: Path) -> None:
    (run,) = work()
    before = run.folder.stat().st_mtime_ns
    (again,) = work()
    assert again.folder.stat().st_mtime_ns == before
    assert again.data["started"] == run.data["started"]
    assert set(ASKED.values()) == {1}


def test_replace_makes_it_again_and_a_lost_folder_too(questions: Path) -> None:
    (run,) = work()
    (again,) = work(replace=True)
    assert (again.data["usage"]["asked"], again.data["usage"]["stored"]) == (COUNT, 0)
    assert set(ASKED.values()) == {1}
    (run.folder / "run.json").unlink()
    (written,) = work()
    assert written.data["tasks"] == run.data["tasks"]
    assert set(ASKED.values()) == {1}


def test_a_worker_on_a_host_without_the_folder_hears_where_it_is(
    questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["run", "questions.yaml", "--model", "scripted/echo", "--name", "echo"]
    folder = questions / "runs" / "echo"
    assert typed(*command, "--worker", folder=questions).code == 0
    shutil.rmtree(folder)
    monkeypatch.setattr(platform, "node", lambda: "pod-2")
    done = typed(*command, "--worker", folder=questions)
    assert done.code == 0
    assert "was written by the worker" in done.err
    assert "run the same command without --worker" in done.err
    assert not folder.exists()


def test_a_run_in_a_bucket_is_seen_by_workers_without_its_folder(
    questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_buckets() as buckets:
        for name, setting in buckets.environment.items():
            monkeypatch.setenv(name, setting)
        (run,) = work(push="s3://team/all")
        assert "team/all/shared/run.json" in buckets.objects
        shutil.rmtree(run.folder)
        (again,) = work(push="s3://team/all")
    assert again.data["identity"] == run.data["identity"]
    assert not run.folder.exists()
    assert set(ASKED.values()) == {1}


def test_after_missing_answers_the_next_worker_asks_what_is_missing(
    questions: Path,
) -> None:
    fails = [True]

    @evalwright.model(fingerprint="sometimes")
    def sometimes(prompt: str) -> str:
        ASKED[prompt] += 1
        if fails[0] and "00003" in prompt:
            raise OSError("away")
        return "3"

    def go() -> Run:
        (run,) = evaluate("questions.yaml", sometimes, worker=True, name="shared")
        return run

    assert go().n_missing == 1
    n_before = ASKED["Question 00003?"]
    fails[0] = False
    run = go()
    assert run.n_missing == 0
    assert ASKED["Question 00003?"] == n_before + 1
    assert all(count == 1 for prompt, count in ASKED.items() if "00003" not in prompt)
    assert go().data["started"] == run.data["started"]


def test_a_worker_with_another_plan_is_refused_while_others_work(
    questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, go_on = threading.Event(), threading.Event()

    @evalwright.model(fingerprint="slow")
    def slow(prompt: str) -> str:
        began.set()
        assert go_on.wait(60)
        return "1"

    def go(**settings: Any) -> list[Run]:
        return evaluate("questions.yaml", slow, worker=True, name="shared", **settings)

    thread = threading.Thread(target=go)
    thread.start()
    try:
        assert began.wait(60)
        with pytest.raises(ConfigurationError, match="differs: limit: None, now 5"):
            go(limit=5)
        with pytest.raises(ConfigurationError, match="budget: none, now 99 requests"):
            go(budget="99 requests")
        with pytest.raises(ConfigurationError, match="accept-failures: none, now 2%"):
            go(accept_failures="2%")
        with monkeypatch.context() as patch:
            patch.setattr(worker_rounds, "__version__", "9.9")
            with pytest.raises(ConfigurationError, match="this one is 9"):
                go()
    finally:
        go_on.set()
        thread.join()
    assert go(limit=5, replace=True)[0].data["samples"]["records"] == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"until": "accuracy +-0.1"}, "cannot be used with --until"),
        ({"shard": "1/2"}, "cannot be used with --shard 1/2"),
        ({"resend_empty": True}, "cannot be used with --resend-empty"),
        ({"batch": True, "models": "openai/m"}, "cannot be used with --batch"),
        ({"models": lambda prompt: "1"}, "It cannot be known what answers behind"),
        ({"worker": "yes"}, "'worker' must be true or false"),
    ],
)
def test_what_workers_cannot_do_is_refused(
    questions: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    arguments = {"models": "scripted/echo", "worker": True, **settings}
    with pytest.raises(ConfigurationError) as error:
        evaluate("questions.yaml", arguments.pop("models"), **arguments)
    assert message in str(error.value)
    assert not list(Path("runs").glob("*/run.json"))


@needs_sandbox
def test_a_program_of_an_answer_runs_once(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"id": f"p{number}", "number": number, "tests": f"assert add() == {number % 2}"}
        for number in range(4)
    ]
    Path("programs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("programs.yaml").write_text(
        "task: programs\n"
        "dataset: programs.jsonl\n"
        'sample: {id: "{{ id }}", input: "Add {{ number }}", metadata: {tests: "{{ tests }}"}}\n'
        'prompt: {user: "{{ input }}"}\n'
        "answer: {mode: generate, max_tokens: 20}\n"
        "scorers: [unit-tests]\n"
    )
    programs: list[str] = []

    @evalwright.model(fingerprint="programs")
    def write_program(prompt: str) -> str:
        return f"```python\ndef add():\n    return 1  # {prompt}\n```"

    def run_program(program: str, *arguments: Any, **settings: Any) -> Any:
        programs.append(program)
        return sandbox.run(program, *arguments, **settings)

    (alone,) = evaluate("programs.yaml", write_program, name="shared", home="alone")
    monkeypatch.setattr(unit_tests, "run", run_program)
    (run,) = evaluate(
        "programs.yaml", write_program, name="shared", out="all", worker=True
    )
    assert len(programs) == len(set(programs)) == len(rows)
    assert comparable(run.folder)["samples"] == comparable(alone.folder)["samples"]
    labels = [row["scores"]["unit-tests"]["label"] for row in records(run.folder)]
    assert labels == ["failed", "passed"] * 2


# -- several processes -----------------------------------------------------------------


def forked_process(arguments: list[str], folder: Path, variables: Any) -> ForkedProcess:
    return ForkedProcess(arguments, folder, variables)


def test_workers_make_runs_of_two_models_with_a_judge(
    tmp_path: Path, server: Server
) -> None:
    write_tasks(tmp_path)
    with serving(edit=answered) as provider:
        done = typed(
            *command(provider, "whole", "--limit", "13"),
            folder=tmp_path,
            extra={"EVALWRIGHT_HOME": "whole"},
        )
        assert done.code == 1, done.text
        extra = {"EVALWRIGHT_STORE": server.url()}
        workers = [
            start_forked(
                command(provider, "shared", "--limit", "13", "--worker"),
                tmp_path,
                extra,
            )
            for _ in range(3)
        ]
        outputs = [process.communicate() for process in workers]
        assert [process.returncode for process in workers] == [1, 1, 1], outputs
        for model in ("Small", "openai-gpt-4.1"):
            whole = tmp_path / "runs" / f"whole-{model}"
            shared = tmp_path / "runs" / f"shared-{model}"
            assert records(shared) == records(whole)
            together = told(shared)
            assert together.pop("workers")
            assert together == told(whole)
            assert record(shared)["usage"]["sent"] >= record(whole)["usage"]["sent"]


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_or_paid_twice_whoever_dies(
    tmp_path: Path, server: Server, seed: int
) -> None:
    """Workers are killed, stopped and paused; one of two budgets does not suffice."""
    count = 150
    budget = count * EACH * (3 if seed % 2 else 0.6)
    with worker_trial(
        tmp_path / "shared",
        server.url(),
        count=count,
        options=("--budget", f"{budget:.4f} USD"),
        starter=forked_process,
    ) as trial:
        disturber = Disturber(trial, 3, random.Random(seed))
        disturber.disturb(4, within=1.0 if seed % 2 else 0.5)
        disturber.end()
        assert trial.dollars() <= budget * (1 + 1e-9)
        assert trial.sent_again() == []
        again = sum(trial.server.received.values()) - len(trial.server.received)
        assert again <= disturber.at_risk
        cost = record(trial.run)["usage"]["cost"]
        lost = disturber.at_risk * EACH
        assert cost - 1e-9 <= trial.dollars() <= cost + lost + 1e-9
        if seed % 2:
            assert len(trial.stored()) == count
            trial.alone(tmp_path / "alone")
            alone = tmp_path / "alone" / "runs" / trial.run.name
            assert comparable(trial.run) == comparable(alone)
        else:
            assert record(trial.run)["stopping"]["budget_reached"] == "dollars"
