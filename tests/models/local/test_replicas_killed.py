"""A command with replicas, killed at random moments in every way: nothing stays, nothing is lost,
and nothing is computed again.
"""

from __future__ import annotations

import os
import random
import select
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from support.command import (
    record,
    records,
    stored_requests,
    wait_until,
    write_questions,
)
from support.forked import ForkedProcess, start_forked
from support.tiny_models import make_tiny_model
from support.typed import typed

REPLICAS = 3
INTERRUPTED = 130


def workers_of(process: ForkedProcess) -> list[int]:
    """The worker processes that a command has started."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError, IndexError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
            if parent == process.pid and b"evalwright.models.local.worker" in command:
                found.append(int(folder.name))
    return found


def wait_for_end(pids: Sequence[int]) -> None:
    """Return when none of the processes is there any more."""
    for pid in pids:
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(pid)
            ended, _, _ = select.select([handle], [], [], 300)
            os.close(handle)
            assert ended, f"the worker {pid} stays"


def kill_worker(process: ForkedProcess, workers: Sequence[int]) -> None:
    with suppress(ProcessLookupError):
        os.kill(random.choice(workers), signal.SIGKILL)


def kill_command(process: ForkedProcess, workers: Sequence[int]) -> None:
    process.kill()


def press_ctrl_c(process: ForkedProcess, workers: Sequence[int]) -> None:
    process.send_signal(signal.SIGINT)


def end_job(process: ForkedProcess, workers: Sequence[int]) -> None:
    """As a scheduler does: the signal goes to all processes."""
    for pid in (*workers, process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


WAYS: dict[Callable[[ForkedProcess, Sequence[int]], None], Sequence[int]] = {
    kill_worker: (0,),
    kill_command: (-signal.SIGKILL,),
    press_ctrl_c: (INTERRUPTED,),
    end_job: (INTERRUPTED, 128 + signal.SIGTERM),
}


def command(model: str, name: str) -> list[str]:
    return ["run", "questions.yaml", "--model", model, "--format", "text", "--quiet",
            "--name", name, "-M", "batch_size=4"]  # fmt: skip


def start_run(folder: Path, model: str) -> ForkedProcess:
    return start_forked(
        [*command(model, "killed"), "-M", f"replicas={REPLICAS}", "--grace", "0.2"],
        folder,
        {"EVALWRIGHT_HOME": str(folder / "killed")},
    )


def check_kills(folder: Path, model: str, questions: int, kills: int) -> None:
    """Kill a run as often, in all ways in turn, and compare it with that of one process that nobody disturbed."""
    dice = random.Random(7)
    write_questions(folder, questions)
    quiet = typed(
        *command(model, "quiet"), folder=folder, extra={"EVALWRIGHT_HOME": "quiet"}
    )
    assert quiet.code == 0, quiet.text

    home = folder / "killed"
    process = None
    for way in (list(WAYS) * kills)[:kills]:
        stored = len(stored_requests(home))
        moment = stored + dice.randint(1, (questions - stored) // 3)
        process = process or start_run(folder, model)
        wait_until(partial(has_stored, home, moment), process)
        workers = workers_of(process)
        way(process, workers)
        if way is kill_worker:
            continue  # the command goes on, and the next way ends it
        process.communicate()
        assert process.returncode in WAYS[way], way
        wait_for_end(workers)
        process = None

    stored = len(stored_requests(home))
    assert stored < questions
    last = process or start_run(folder, model)
    _, errors = last.communicate()
    assert last.returncode == 0, errors
    runs = folder / "runs"
    assert records(runs / "killed") == records(runs / "quiet")
    assert record(runs / "killed")["tasks"] == record(runs / "quiet")["tasks"]
    # What was stored is not computed again.
    replicas = record(runs / "killed")["model"]["replicas"]
    assert sum(replica["requests"] for replica in replicas) == questions - stored


def has_stored(home: Path, count: int) -> bool:
    return len(stored_requests(home)) >= count


def test_a_small_model_is_killed_in_every_way(tmp_path: Path) -> None:
    check_kills(tmp_path, "demo/small", questions=400, kills=4)


@pytest.mark.slow
def test_a_transformers_model_is_killed_again_and_again(tmp_path: Path) -> None:
    make_tiny_model(tmp_path / "tiny", "llama")
    check_kills(tmp_path, "hf/tiny", questions=2000, kills=8)
