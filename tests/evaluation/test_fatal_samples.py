"""Samples that kill the process of every worker: found, recorded as failed, tried again later."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.evaluation.quarantine import (
    SAMPLE_DEATHS,
    Seclusion,
    SlicePart,
    divide_slice,
)
from evalwright.evaluation.worker_deaths import SampleRange
from support.command import record, records, stored_requests, write_questions
from support.forked import ForkedProcess, start_forked
from support.postgres import Server
from support.worker_trials import worker_trial

COUNT = 12
DEATHS = (139, -signal.SIGKILL)
"""How the plug-in below dies: by a crash, and as the kernel kills where memory runs out."""

PLUGIN = """\
import os
from evalwright import LocalModel, Response, Score, model, scorer


def is_fatal(text, variable):
    return any(name in text for name in os.environ.get(variable, "").split())


@model("fragile")
class Fragile(LocalModel):
    abilities = frozenset({"generate"})
    fingerprint = "fragile"

    def __init__(self, name):
        self.name = name

    def load(self):
        if "FATAL_LOADING" in os.environ:
            os._exit(139)

    def answer_batch(self, requests):
        for index, request in enumerate(requests):
            if is_fatal(str(request.prompt), "FATAL_QUESTIONS"):
                os._exit(139)
            yield index, Response("1", "stop")


@scorer("fragile-score")
def fragile_score(sample, answer):
    if is_fatal(sample.id, "FATAL_SCORES"):
        os.kill(os.getpid(), 9)
    return Score(1.0)
"""


def simulate(n_samples: int, fatal: set[int]) -> tuple[int, list[SlicePart]]:
    """Evaluate a slice with one worker after the other, until one gets to its end.

    Returns:
        The number of deaths, and the parts of the last worker.
    """
    deaths: dict[SampleRange, list[str]] = {}
    n_deaths = 0
    while True:
        parts = list(divide_slice(n_samples, deaths))
        for part in parts:
            if not part.killed and fatal & set(range(part.start, part.end)):
                n_deaths += 1
                deaths.setdefault((part.start, part.end), []).append(f"{n_deaths}")
                break
        else:
            return n_deaths, parts


@given(st.integers(1, 1024), st.sets(st.integers(0, 1023), max_size=4))
def test_fatal_samples_are_found_and_no_others(n_samples: int, fatal: set[int]) -> None:
    fatal = {index % n_samples for index in fatal}
    n_deaths, parts = simulate(n_samples, fatal)
    covered = [index for part in parts for index in range(part.start, part.end)]
    assert covered == list(range(n_samples))
    assert {part.start for part in parts if part.killed} == fatal
    divisions = 0 if n_samples <= 8 else 1 if n_samples <= 64 else 3
    assert n_deaths <= len(fatal) * (SAMPLE_DEATHS + divisions)


def test_a_preempted_worker_divides_a_slice_and_condemns_nothing() -> None:
    deaths = {(0, 8): ["a", "b"], (8, 16): ["c"], (9, 10): ["d", "e"]}
    parts = list(divide_slice(64, deaths))
    assert not any(part.killed for part in parts)
    assert SlicePart(16, 24) in parts


def forked_process(arguments: list[str], folder: Path, variables: Any) -> ForkedProcess:
    return ForkedProcess(arguments, folder, variables)


def test_a_run_is_alone_only_when_no_other_works() -> None:
    at_work: list[str] = []
    seen: list[tuple[str, ...]] = []

    async def work(name: str) -> None:
        at_work.append(name)
        for _ in range(3):
            await asyncio.sleep(0)
            seen.append(tuple(at_work))
        at_work.remove(name)

    async def all_runs() -> None:
        seclusion = Seclusion()
        beside = [partial(work, name) for name in ("a", "b", "c")]
        first = [asyncio.create_task(seclusion.beside_others(run)) for run in beside]
        await asyncio.sleep(0)
        alone = [
            asyncio.create_task(seclusion.alone(partial(work, name))) for name in "AB"
        ]
        await asyncio.sleep(0)
        assert seclusion.is_wanted
        later = asyncio.create_task(seclusion.beside_others(partial(work, "d")))
        await asyncio.gather(*first, *alone, later)

    asyncio.run(all_runs())
    assert ("a", "b", "c") in seen
    assert {runs for runs in seen if set(runs) & {"A", "B"}} == {("A",), ("B",)}
    assert seen[-1] == ("d",)


@pytest.fixture
def fragile(tmp_path: Path) -> Path:
    """A folder with a task whose model and scorer can kill the process."""
    task = write_questions(tmp_path, COUNT)
    text = task.read_text()
    task.write_text(text.replace("[exact-match]", "[exact-match, fragile-score]"))
    (tmp_path / "fragile.py").write_text(PLUGIN)
    return tmp_path


def start_worker(folder: Path, extra: dict[str, str]) -> ForkedProcess:
    options = ("--model", "fragile/m", "--plugin", "fragile.py", "--name", "shared")
    return start_forked(["run", "questions.yaml", *options, "--worker"], folder, extra)


def replace_dead_workers(
    folder: Path, extra: dict[str, str], *, at_once: int
) -> tuple[int, list[int], str]:
    """Start workers, and another one for each that dies, as a job system does.

    Returns:
        How many died, the exit codes of the others, and what they printed.
    """
    n_dead = 0
    codes: list[int] = []
    printed = ""
    while not codes:
        workers = [start_worker(folder, extra) for _ in range(at_once)]
        for worker in workers:
            printed += "".join(worker.communicate())
            if worker.returncode in DEATHS:
                n_dead += 1
            else:
                codes.append(worker.wait())
        assert n_dead < 30, printed
    return n_dead, codes, printed


@pytest.mark.parametrize(
    ("variable", "most_deaths", "party"),
    [("FATAL_QUESTIONS", 6, "task"), ("FATAL_SCORES", 7, "scorer")],
)
def test_a_sample_that_kills_its_process_is_recorded_as_failed(
    fragile: Path, server: Server, variable: str, most_deaths: int, party: str
) -> None:
    # Half of it with a file as the store, half with a server.
    store = {} if party == "task" else {"EVALWRIGHT_STORE": server.url()}
    extra = {variable: "00007", **store}
    n_dead, codes, printed = replace_dead_workers(fragile, extra, at_once=1)
    assert (n_dead, codes) == (most_deaths, [1]), printed
    assert "the sample 'q00007' of questions has killed 3 workers" in printed
    assert "1 answer is missing: worker died." in printed
    rows = {row["id"]: row for row in records(fragile / "runs" / "shared")}
    row = rows.pop("q00007")
    failures = [row["failure"]] if party == "task" else row["score_failures"].values()
    for failure in failures:
        assert (failure["kind"], failure["party"]) == ("worker died", party)
        assert "3 workers died one after the other" in failure["message"]
    assert ("answer" in row) == (party == "scorer")
    assert len(rows) == COUNT - 1
    assert all(row["scores"]["fragile-score"]["value"] == 1 for row in rows.values())
    # The same command tries it again, and what does not kill any more is answered.
    worker = start_worker(fragile, store)
    worker.communicate()
    assert worker.returncode == 0
    assert record(fragile / "runs" / "shared")["samples"]["records"] == COUNT


def test_a_model_that_kills_while_it_loads_condemns_no_sample(fragile: Path) -> None:
    for _ in range(6):
        worker = start_worker(fragile, {"FATAL_LOADING": "1"})
        worker.communicate()
        assert worker.returncode in DEATHS
    worker = start_worker(fragile, {})
    printed = worker.communicate()
    assert worker.returncode == 0, printed


def test_several_workers_lose_no_sample_but_the_fatal_one(fragile: Path) -> None:
    extra = {"FATAL_QUESTIONS": "00003 00010"}
    n_dead, codes, printed = replace_dead_workers(fragile, extra, at_once=2)
    assert n_dead <= 14 and set(codes) == {1}
    rows = records(fragile / "runs" / "shared")
    missing = {row["id"] for row in rows if row.get("failure")}
    assert missing == {"q00003", "q00010"}, printed


def test_workers_killed_while_they_get_on_condemn_no_sample(tmp_path: Path) -> None:
    """One worker after the other is preempted as soon as it has stored one more answer."""

    with worker_trial(tmp_path / "shared", count=20, starter=forked_process) as trial:

        def count_answers() -> int:
            requests = stored_requests(trial.folder / ".evalwright")
            return sum("generate" in request for _, request in requests)

        for _ in range(9):
            n_before = count_answers()
            worker = trial.start()
            while worker.poll() is None:
                if count_answers() > n_before:
                    worker.send_signal(signal.SIGKILL)
                    worker.wait()
        trial.start()
        trial.wait()
        assert record(trial.run)["usage"]["failed"] == 0
        assert count_answers() == 20


def test_workers_that_are_asked_to_stop_have_not_died(tmp_path: Path) -> None:
    with worker_trial(tmp_path / "shared", count=200, starter=forked_process) as trial:
        for _ in range(3):
            n_before = len(trial.server.received)
            worker = trial.start()
            while len(trial.server.received) == n_before:
                assert worker.poll() is None
            worker.send_signal(signal.SIGTERM)
            assert worker.wait() in (128 + signal.SIGTERM, 130)
        trial.start()
        trial.wait()
        assert len(trial.stored()) == 200
        assert "joins the run" in trial.log()
        assert "workers died" not in trial.log()
