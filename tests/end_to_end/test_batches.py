"""`evalwright run --batch`, killed while its batch is with the provider: the same command pays for nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.batch_server import BatchServer, serving_batches

ROWS = 60


def command(server: BatchServer, folder: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "evalwright", "run", str(folder / "task.yaml"), "--model", f"openai/{server.url}#m",
        "-M", "batch_poll=0.1", "-M", "batch_size=25", "--batch", "--name", "batched", *more,
    ]  # fmt: skip


def task_in(folder: Path) -> None:
    rows = "\n".join(
        f"    - {{id: q{place}, input: 'Say {place}', target: '{place}'}}" for place in range(ROWS)
    )
    text = f"task: saying\ndataset:\n  rows:\n{rows}\nscorers: [exact-match]\n"
    (folder / "task.yaml").write_text(text, encoding="utf-8")


def said(body: dict[str, list[dict[str, str]]]) -> str:
    return body["messages"][-1]["content"].split()[-1]


@pytest.mark.slow
def test_kill_and_go_on(tmp_path: Path) -> None:
    task_in(tmp_path)
    environment = {**os.environ, "EVALWRIGHT_HOME": str(tmp_path / "home")}
    with serving_batches("openai", said, seconds=8.0) as server:
        for asked in (50, 50):
            looks = server.looks
            child = subprocess.Popen(command(server, tmp_path), cwd=tmp_path, env=environment)
            until = time.monotonic() + 60
            while (
                sum(server.asked.values()) < asked or server.looks < looks + 4
            ) and time.monotonic() < until:
                time.sleep(0.02)
            child.send_signal(signal.SIGKILL)
            child.wait()
        listed = subprocess.run(
            [sys.executable, "-m", "evalwright", "batches", "list", "--json"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert [row["requests"] for row in json.loads(listed.stdout)] == [25, 25]
        done = subprocess.run(
            command(server, tmp_path),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        again = subprocess.run(
            command(server, tmp_path, "--json"), cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    run = json.loads(again.stdout)[0]
    assert run["usage"]["asked"] == 0 and run["tasks"][0]["metrics"][0]["value"] == 1.0
    assert run["configuration"]["batch"] is True
    assert set(server.asked.values()) == {1} and len(server.batches) == 3
    assert "Found again: batch batch_2 of 25" in done.stderr and "has ended: 25 answered" in done.stderr
