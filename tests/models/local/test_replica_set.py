"""A set of workers answers as the model does, whatever becomes of its workers."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

from engine.support import Echo, number_of, question
from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.engine.engine import Engine
from evalwright.engine.sqlite import SqliteStore
from evalwright.models.local.replica_set import (
    FATAL_DEATHS,
    ReplicaSet,
    WorkerDied,
)
from support.command import ROOT


class Thread:
    """A worker in this process, which dies of some questions and where it is told to."""

    def __init__(self, name: str, deadly: str = "", most_starts: int = 1000) -> None:
        self.name = name
        self.deadly = deadly
        self.most_starts = most_starts
        self.model = Echo()
        self.starts = self.stops = 0
        self.dies_next = False

    def start(self) -> None:
        self.starts += 1
        if self.starts > self.most_starts:
            raise ModelError("no memory is left")

    def answer(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        time.sleep(0.001)  # the others have their turn
        if self.dies_next:
            self.dies_next = False
            raise WorkerDied("killed")
        for index, answer in self.model.answer_batch(requests):
            if number_of(requests[index]) == self.deadly:
                raise WorkerDied("exit code -9")
            yield index, answer

    def stop(self) -> None:
        self.stops += 1


def asked(model: ReplicaSet, n: int) -> dict[str, Response | Failure]:
    requests = [question(f"{number:04}") for number in range(n)]
    found = list(model.answer_batch(requests))
    assert sorted(index for index, _ in found) == list(range(n))
    return {number_of(requests[index]): answer for index, answer in found}


def test_every_request_is_answered_once_and_as_by_the_model() -> None:
    workers = [Thread("a"), Thread("b"), Thread("c")]
    model = ReplicaSet(Echo(), workers)
    model.load()
    found = asked(model, 500)
    assert {
        number: answer.text
        for number, answer in found.items()
        if isinstance(answer, Response)
    } == {number: number for number in found}
    assert (
        max(
            Counter(
                number for worker in workers for number in worker.model.asked
            ).values()
        )
        == 1
    )
    said = model.describe()["replicas"]
    assert sum(one["requests"] for one in said) == 500 and [
        one["name"] for one in said
    ] == ["a", "b", "c"]
    model.unload()
    assert all(worker.stops for worker in workers)


def test_what_a_dead_worker_had_goes_to_another() -> None:
    workers = [Thread("a"), Thread("b")]
    model = ReplicaSet(Echo(), workers)
    model.load()
    workers[0].dies_next = workers[1].dies_next = True
    while any(worker.dies_next for worker in workers):
        assert all(
            isinstance(answer, Response) for answer in asked(model, 100).values()
        )
    while [worker.starts for worker in workers] != [2, 2]:
        asked(model, 10)


@pytest.mark.parametrize("count", [1, 2])
def test_a_request_that_kills_its_worker_three_times_has_failed(count: int) -> None:
    workers = [Thread(name, "0042") for name in "ab"[:count]]
    model = ReplicaSet(Echo(), workers)
    model.load()
    found = asked(model, 4000)
    lost = {
        number: answer
        for number, answer in found.items()
        if isinstance(answer, Failure)
    }
    failure = lost.pop("0042")
    assert (
        failure.attempts == FATAL_DEATHS and "died of this request" in failure.message
    )
    # Its group is split each time, so few fail with it.
    assert len(lost) < 4000 / 200
    asked(model, 10)
    assert (
        count + FATAL_DEATHS - 1
        <= sum(worker.starts for worker in workers)
        <= count + FATAL_DEATHS
    )


def test_a_worker_that_cannot_be_started_again_is_given_up() -> None:
    workers = [Thread("a", most_starts=1), Thread("b")]
    model = ReplicaSet(Echo(), workers)
    model.load()
    workers[0].dies_next = True
    while workers[0].dies_next:
        assert all(
            isinstance(answer, Response) for answer in asked(model, 100).values()
        )
    assert all(isinstance(answer, Response) for answer in asked(model, 100).values())
    workers[1].dies_next, workers[1].most_starts = True, 1
    with pytest.raises(ModelError, match="no memory is left"):
        asked(model, 100)


def test_a_worker_that_cannot_be_loaded_is_the_models_error() -> None:
    workers = [Thread("a"), Thread("b", most_starts=0)]
    with pytest.raises(ModelError, match="no memory is left"):
        ReplicaSet(Echo(), workers).load()
    assert workers[0].stops


class Stillborn(Thread):
    """Its first process is killed while it loads."""

    def start(self) -> None:
        super().start()
        if self.starts == 1:
            raise WorkerDied("signal 9")


def test_a_worker_that_dies_while_it_loads_is_started_again() -> None:
    first = Stillborn("a")
    second = Thread("b")
    model = ReplicaSet(Echo(), [first, second])
    model.load()
    while first.starts < 2:
        assert all(
            isinstance(answer, Response) for answer in asked(model, 100).values()
        )
    with pytest.raises(ModelError, match="signal 9"):
        ReplicaSet(Echo(), [Stillborn("a"), Stillborn("b")]).load()


def test_an_abandoned_batch_ends_its_threads() -> None:
    model = ReplicaSet(Echo(), [Thread("a"), Thread("b")])
    model.load()
    before = threading.active_count()
    answers = model.answer_batch([question(number) for number in range(100)])
    next(answers)
    assert isinstance(answers, Generator)
    answers.close()
    for thread in threading.enumerate():
        if "work" in thread.name:
            thread.join(600)
    assert threading.active_count() <= before


@pytest.mark.parametrize("count, wanted", [(2, 4096), (16, 8192), (64, 16384)])
def test_many_workers_have_enough_samples_in_flight(
    tmp_path: Path, count: int, wanted: int
) -> None:
    with SqliteStore.open(tmp_path) as store:
        assert (
            Engine(store).concurrency(
                ReplicaSet(Echo(), [Thread(str(n)) for n in range(count)])
            )
            == wanted
        )


INTERRUPTED = """
import asyncio, sys, threading
from pathlib import Path
from engine.support import Echo, question
from evalwright.engine.engine import Engine
from evalwright.engine.sqlite import SqliteStore
from evalwright.models.local.replica_set import ReplicaSet

loading = threading.Event()

class Endless:
    name = "endless"

    def start(self):
        loading.set()
        threading.Event().wait()

    def stop(self):
        pass

async def main():
    with SqliteStore.open(Path(sys.argv[1])) as store:
        async with Engine(store) as engine:
            door = engine.door({"target": ReplicaSet(Echo(), [Endless(), Endless()])})
            asked = asyncio.create_task(door("target", question(1)))
            while not loading.is_set():
                await asyncio.sleep(0.01)
            await engine.stop(grace=0.0)
            print(type((await asyncio.gather(asked, return_exceptions=True))[0]).__name__)

asyncio.run(main())
"""


def test_a_run_that_is_interrupted_while_workers_load_ends(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests"))),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "RequestFailed\n"), done.stderr
