"""Runs the command line as a person would: in a process of its own, in a folder of its own."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str
    interleaved: str = ""
    """Both in the order in which they were printed, where it ran in this process."""

    @property
    def text(self) -> str:
        """Everything it printed."""
        return self.out + self.err


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without keys and settings of ours."""
    inherited = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("EVALWRIGHT_", "OPENAI_", "PYTEST_"))
        and key != "COLUMNS"
    }
    return {
        **inherited,
        "PYTHONPATH": str(ROOT / "src"),
        "HF_HUB_OFFLINE": "1",
        "PYTHONWARNINGS": "error",
        **(extra or {}),
    }


def with_command(
    folder: Path, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """As `environment`, with `evalwright` on the path: a script in `folder/bin`."""
    script = folder / "bin" / "evalwright"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evalwright "$@"\n')
    script.chmod(0o755)
    return {
        **environment(extra),
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
    }


def start(
    arguments: list[str], folder: Path, extra: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start `evalwright` in `folder`."""
    return subprocess.Popen(
        [sys.executable, "-m", "evalwright", *arguments],
        cwd=folder,
        env=environment(extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )


class Running(Protocol):
    """A command at work."""

    def poll(self) -> int | None:
        """The exit code, where it has ended."""

    def communicate(self) -> tuple[str, str]:
        """What it prints until it ends."""


def wait_until(seen: Callable[[], bool], process: Running) -> None:
    """Return as soon as `seen()`, while the command is at work: what is done to it then depends
    on no clock.
    """
    until = time.monotonic() + 300
    while not seen():
        assert process.poll() is None, (
            f"the command ended before:\n{process.communicate()}"
        )
        assert time.monotonic() < until, "this was never seen"
        time.sleep(0.005)


def evalwright(
    *arguments: str,
    folder: Path,
    extra: Mapping[str, str] | None = None,
    timeout: float = 1800,
) -> Done:
    """Run `evalwright` in `folder` to its end."""
    process = start(list(arguments), folder, extra)
    try:
        stdout, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, err = process.communicate()
        raise AssertionError(
            f"evalwright {' '.join(arguments)} did not end:\n{stdout}\n{err}"
        ) from None
    return Done(process.returncode, stdout, err)


def stored_requests(home: Path) -> list[tuple[str, str]]:
    """(fingerprint, request as JSON) of what the store acknowledged, read from its file itself,
    also while it is at work.
    """
    if not (home / "store.sqlite").exists():
        return []
    with closing(
        sqlite3.connect(f"file:{home / 'store.sqlite'}?mode=ro", uri=True)
    ) as file:
        try:
            rows = file.execute("SELECT model, request FROM responses").fetchall()
        except sqlite3.OperationalError:
            return []  # killed before the schema was there
    from evalwright.engine.store_rows import unpack

    return [(model, unpack(request)) for model, request in rows]


def records(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's samples, without what may differ between equal runs."""
    rows = [
        json.loads(line)
        for line in (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    for row in rows:
        row.pop("timing", None)
    return rows


def record(run: Path) -> dict[str, Any]:
    """A run's `run.json`."""
    run_record: dict[str, Any] = json.loads(
        (run / "run.json").read_text(encoding="utf-8")
    )
    return run_record


def write_questions(folder: Path, count: int) -> Path:
    """A task of `count` short questions in `folder`; its file."""
    rows = [
        {"id": f"q{i:05d}", "question": f"Question {i:05d}?", "answer": str(i)}
        for i in range(count)
    ]
    (folder / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    task = folder / "questions.yaml"
    task.write_text(
        "task: questions\n"
        "dataset: questions.jsonl\n"
        'sample: {id: "{{ id }}", input: "{{ question }}", target: "{{ answer }}"}\n'
        'prompt: {user: "{{ input }}"}\n'
        "answer: {mode: generate, max_tokens: 20}\n"
        "scorers: [exact-match]\n",
        encoding="utf-8",
    )
    return task
