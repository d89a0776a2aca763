"""`evalwright run --on ray` as a person runs it: identical results, nothing lost or repeated,
and nothing left behind.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from evalwright import evaluate
from evalwright.core.errors import ConfigurationError
from support import sandbox
from support.command import (
    evalwright,
    record,
    records,
    start,
    stored_requests,
    wait_until,
)
from support.ray_cluster import descendants, replicas

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("ray"), reason="needs Ray (the extra 'ray')"),
    pytest.mark.skipif(
        not Path("/proc/self/stat").exists(), reason="reads processes in /proc"
    ),
]

PLUGIN = '''
import time
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import model

@model("slow")
class Slow(LocalModel):
    """Says the number of the question, or a program, after a while."""
    abilities = frozenset({"generate"})

    def __init__(self, name):
        self.fingerprint = f"slow {name}"

    def answer_batch(self, requests):
        for index, request in enumerate(requests):
            time.sleep(0.02)
            number = request.prompt.split()[-1]
            yield index, Response(text=f"x = {number}\\nThe answer is {int(number) % 3}.", finish_reason="stop")
'''


def write_task(folder: Path, count: int) -> None:
    """Questions whose answers are scored by formula and, where programs can be shut in, by
    running them.
    """
    (folder / "slow.py").write_text(PLUGIN)
    scorers = [
        "{final-answer: {kind: math}}",
        *(["unit-tests"] if sandbox.works() else []),
    ]
    rows = [
        {
            "id": f"q{i:04}",
            "question": str(i),
            "answer": str(i % 2),
            "tests": f"assert x == {i % 5}",
        }
        for i in range(count)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "task.yaml").write_text(
        "task: slow-questions\ndataset: rows.jsonl\n"
        'sample: {id: "{{ id }}", input: "What is {{ question }}", target: "{{ answer }}", metadata: {tests: "{{ tests }}"}}\n'
        'prompt: {user: "{{ input }}"}\nanswer: {mode: generate, max_tokens: 20}\n'
        f"scorers: [{', '.join(scorers)}]\nmetrics: [accuracy]\n"
    )


RUN = [
    "run",
    "task.yaml",
    "--model",
    "slow/one",
    "--plugin",
    "slow.py",
    "--format",
    "text",
]
ON = ["--on", "ray", "--replicas", "2"]


def gone(processes: set[int]) -> bool:
    return not any(
        Path(f"/proc/{process}").exists()
        for process in processes
        if process != os.getpid()
    )


def test_replicas_that_are_killed_lose_and_repeat_nothing(tmp_path: Path) -> None:
    write_task(tmp_path, 300)
    process = start([*RUN, *ON, "--name", "there", "--home", "there"], tmp_path)
    killed: set[int] = set()
    for stored in (5, 60, 120):
        wait_until(
            lambda stored=stored: len(stored_requests(tmp_path / "there")) >= stored,  # type: ignore[misc]
            process,
        )
        wait_until(lambda: bool(set(replicas(process.pid)) - killed), process)
        victim = max(set(replicas(process.pid)) - killed)
        os.kill(victim, signal.SIGKILL)
        killed.add(victim)
    out, err = process.communicate(timeout=1800)
    assert process.returncode == 0, out + err
    assert len(killed) == 3 and err.count("died") == 3 and "it is started again" in err
    here = evalwright(*RUN, "--name", "here", "--home", "here", folder=tmp_path)
    assert here.code == 0, here.text
    runs = tmp_path / "runs"
    assert records(runs / "there") == records(runs / "here")
    assert [task["metrics"] for task in record(runs / "there")["tasks"]] == [
        task["metrics"] for task in record(runs / "here")["tasks"]
    ]
    assert sorted(stored_requests(tmp_path / "there")) == sorted(
        stored_requests(tmp_path / "here")
    )
    assert (
        record(runs / "there")["usage"]["asked"]
        == len(stored_requests(tmp_path / "there"))
        == 300
    )
    # The store is shared: what replicas answered is the model's own answer.
    again = evalwright(*RUN, "--name", "again", "--home", "there", folder=tmp_path)
    assert "0 sent, 300 from the store" in again.text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_was_stopped(
    tmp_path: Path, number: signal.Signals
) -> None:
    write_task(tmp_path, 3000)
    process = start([*RUN, *ON, "--name", "stopped", "--home", "home"], tmp_path)
    wait_until(lambda: len(stored_requests(tmp_path / "home")) >= 20, process)
    below = set(descendants(process.pid))
    assert len(below) > 4 and replicas(process.pid)
    if number == signal.SIGINT:
        time.sleep(0.1)
    process.send_signal(number)
    _, err = process.communicate(timeout=1800)
    until = time.monotonic() + 600
    while not gone(below):
        left = [one for one in below if Path(f"/proc/{one}").exists()]
        assert time.monotonic() < until, subprocess.run(
            ["ps", "-fp", ",".join(map(str, left))], capture_output=True, text=True
        ).stdout
        time.sleep(0.1)
    kept = len(stored_requests(tmp_path / "home"))
    assert kept >= 20
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "run the same command again" in err
        assert "Traceback" not in err and "ray" not in err.lower()
    assert not (tmp_path / "runs" / "stopped" / "run.json").exists()


def test_what_cannot_be(tmp_path: Path) -> None:
    for flags, why in {
        (
            "--model",
            "demo/small",
            "--replicas",
            "2",
        ): "--replicas can only be used with --on.",
        (
            "--model",
            "demo/small",
            "--gpus-per-replica",
            "1",
        ): "--gpus-per-replica can only be used with --on.",
        ("--model", "demo/small", "--on", "dask"): "'dask' is not a place to run on",
        (
            "--model",
            "openai/gpt-4o-mini",
            "--on",
            "ray",
        ): "is answered by a server, which has its own replicas. Leave out --on",
        (
            "--model",
            "demo/small",
            "--on",
            "ray:127.0.0.1:1",
        ): "No Ray cluster can be reached at '127.0.0.1:1'",
    }.items():
        done = evalwright("run", "factual-choice" if "demo/small" in flags else "factual-closed-book", *flags, folder=tmp_path, extra={"OPENAI_API_KEY": "none"})  # fmt: skip
        assert done.code == 2 and why in done.text, done.text
        assert "Traceback" not in done.text


def test_objects_of_this_process_stay_here(own_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="it is an object of this process"):
        evaluate("factual-choice", lambda prompt: "Paris", on="ray", replicas=2)
    with pytest.raises(ConfigurationError, match="can only be used with on"):
        evaluate("factual-choice", "demo/small", replicas=2)


def test_no_file_decides_where_a_run_is_made(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(
        "tasks: [factual-choice]\nmodels: [demo/small]\non: ray:10.0.0.1:6379\n"
    )
    done = evalwright("run", "--config", "suite.yaml", folder=tmp_path)
    assert done.code == 2 and "'on'" in done.text
