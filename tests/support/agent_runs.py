"""Runs of agents by the command, against a scripted model on loopback that fails now and then.

Each trajectory has steps that write to a log in its sandbox, steps that call a function which
writes a line to a file of the host, one that reads the log, and one that submits it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from evalwright.engine.store_rows import unpack
from evalwright.runs.reader import open_run
from support.command import environment
from support.forked import ForkedProcess, start_session
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving

TOOL_FILE = '''
import os
from evalwright import tool


@tool
def note(text: str) -> str:
    """Write a note."""
    with open(os.environ["NOTES_FILE"], "a") as file:
        file.write(text + "\\\\n")
    return f"noted {text}"
'''.replace("\\\\n", "\\n")

Step = tuple[str, int]
"""The id of a row, and the index of a reply."""


def write_task(folder: Path, n_rows: int) -> Path:
    """Write the task and its tool; return the task's file."""
    (folder / "notes.py").write_text(TOOL_FILE)
    rows = [{"id": f"row{n}", "question": f"Item row{n}."} for n in range(n_rows)]
    definition = {
        "task": "logbook",
        "dataset": {"rows": rows},
        "sample": {"input": "{{ question }}"},
        "prompt": {"user": "{{ question }}"},
        "sandbox": "jail",
        "files": {"/work/log.txt": "begun\n"},
        "tools": ["bash", "files", "submit", "notes.py"],
        "strategy": "agent",
        "scorers": ["outcome"],
    }
    path = folder / "logbook.yaml"
    path.write_text(yaml.safe_dump(definition))
    return path


def scripted(n_steps: int) -> Any:
    """Return what makes the server's replies those of the model with so many steps."""

    def edit(good: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        row, step = step_of(body["messages"])
        name, arguments = _call(row, step, n_steps, body["messages"])
        function = {"name": name, "arguments": json.dumps(arguments)}
        message = good["choices"][0]["message"]
        message["content"] = None
        message["tool_calls"] = [
            {"id": f"call_{row}_{step}", "type": "function", "function": function}
        ]
        good["choices"][0]["finish_reason"] = "tool_calls"
        return good

    return edit


def _call(
    row: str, step: int, n_steps: int, messages: list[Any]
) -> tuple[str, dict[str, Any]]:
    if step == n_steps - 1:
        return "submit", {"answer": messages[-1]["content"]}
    if step == n_steps - 2:
        return "bash", {"command": "cat log.txt"}
    if step % 3 == 2:
        return "note", {"text": f"{row} {step}"}
    command = f"echo {row} {step} $(wc -l < log.txt) >> log.txt; tail -n 1 log.txt"
    return "bash", {"command": command}


def step_of(messages: list[Any]) -> Step:
    """Return whose trajectory a request belongs to, and which reply it asks for."""
    roles = [turn["role"] if isinstance(turn, dict) else turn[0] for turn in messages]
    contents = [
        turn["content"] if isinstance(turn, dict) else turn[1] for turn in messages
    ]
    question = contents[roles.index("user")]
    return question.split()[1].rstrip("."), roles.count("assistant")


class AgentRuns:
    """The command in a folder of its own, run again until it ends by itself.

    Args:
        folder: an empty folder.
        n_rows: how many trajectories.
        n_steps: how many replies each has.
    """

    def __init__(self, folder: Path, n_rows: int, n_steps: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.notes = folder / "notes.txt"
        self.task = write_task(folder, n_rows)
        self.n_rows = n_rows
        self.n_steps = n_steps
        self.paid_again: list[Step] = []
        """Requests that came although their response was stored."""

    def start(self, url: str) -> ForkedProcess:
        """Start the command in a process group of its own."""
        command = ["run", str(self.task)]
        command += ["--model", "openai/scripted", "-M", f"base_url={url}"]
        command += [
            "-M",
            "max_tokens=200",
            "--name",
            "r",
            "--home",
            "home",
            "--out",
            "runs",
        ]
        command += ["-M", "max_concurrency=16", "--trust", str(self.folder)]
        variables = {
            "NOTES_FILE": str(self.notes),
            "OPENAI_API_KEY": "sk-test-" + "0" * 20,
        }
        return start_session(command, self.folder, environment(variables))

    def finish(self, url: str) -> str:
        """Run the command to its end; return what it printed."""
        process = self.start(url)
        text, _ = process.communicate(timeout=600)
        assert process.returncode == 0, text
        return text

    def kill_after(self, server: OpenAIServer, n_answers: int) -> bool:
        """Start the command and kill it once so many more answers were sent.

        Returns:
            Whether it was still running.
        """
        assert server.log is not None
        stored = self.stored()
        before = len(server.log)
        begun = sum(server.completed.values())
        process = self.start(server.url)
        while process.poll() is None:
            if sum(server.completed.values()) - begun >= n_answers:
                break
            time.sleep(0.002)
        was_running = process.poll() is None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        self.check_unpaid(server, stored, before)
        return was_running

    def check_unpaid(
        self, server: OpenAIServer, stored: set[Step], before: int
    ) -> None:
        """Note requests behind a place of the server's log that were stored already."""
        assert server.log is not None
        whole = [entry for entry in server.log[before:] if "body" in entry]
        for entry in whole:
            step = step_of(entry["body"]["messages"])
            if step in stored:
                self.paid_again.append(step)

    def _rows(self) -> list[dict[str, Any]]:
        path = self.folder / "home" / "store.sqlite"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as connection:
            packed = connection.execute("SELECT request FROM responses").fetchall()
        return [json.loads(unpack(request)) for (request,) in packed]

    def stored(self) -> set[Step]:
        """Return the steps whose response is stored."""
        requests = [row["generate"] for row in self._rows() if "generate" in row]
        return {step_of(messages) for messages in requests}

    def n_actions(self) -> int:
        """Return how many results of calls are stored."""
        actions = [row for row in self._rows() if row.get("kind") == "action"]
        return sum("call" in row and "begun" not in row for row in actions)

    def notes_by_step(self) -> Counter[str]:
        """Return how often each call of the function wrote its line."""
        return Counter(self.notes.read_text().splitlines())

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the rows of the record by sample, without times and what was replayed."""
        run = open_run(self.folder / "runs" / "r")
        return {row["id"]: _timeless(row) for row in run.rows()}

    def raw_records(self) -> dict[str, dict[str, Any]]:
        """Return the rows of the record by sample."""
        run = open_run(self.folder / "runs" / "r")
        return {row["id"]: row for row in run.rows()}


def _timeless(row: Mapping[str, Any]) -> dict[str, Any]:
    strategy = json.loads(json.dumps(row["strategy"]))
    del strategy["sandbox"]["snapshot"]
    strategy["tool_calls"] = [
        {name: part for name, part in call.items() if name != "again"}
        for call in strategy["tool_calls"]
    ]
    scores = {name: score for name, score in row["scores"].items() if name != "effort"}
    return {**row, "strategy": strategy, "timing": None, "scores": scores}


@contextmanager
def faulty_server(
    n_steps: int, rate: float = 0.15, seed: int = 0
) -> Iterator[OpenAIServer]:
    """Serve the scripted model, with errors, rate limits and cut connections among its answers."""
    faults = Faults(
        rate=rate,
        kinds=("500", "429-retry-after-ms", "reset", "truncated", "503"),
        seed=seed,
        most=2,
        retry_after=0.01,
    )
    with serving(edit=scripted(n_steps), faults=faults, latency=0.01) as server:
        yield server


def kill_points(n_kills: int, n_answers: int, seed: int) -> list[int]:
    """Draw after how many answers of its own each command is killed."""
    dice = random.Random(seed)
    each = max(n_answers // (n_kills + 1), 1)
    return [dice.randint(1, 2 * each) for _ in range(n_kills)]
