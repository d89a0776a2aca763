"""`evalwright run --batch`, killed while its batch is with the provider: the same command pays
for nothing twice.
"""

from __future__ import annotations

import json
from pathlib import Path

from support.batch_server import BatchServer, serving_batches
from support.command import wait_until
from support.forked import start_forked
from support.typed import typed

ROWS = 60


def command(server: BatchServer, folder: Path, *more: str) -> list[str]:
    return [
        "run", str(folder / "task.yaml"), "--model", f"openai/{server.url}#m",
        "-M", "batch_poll=0.1", "-M", "batch_size=25", "--batch", "--name", "batched", *more,
    ]  # fmt: skip


def task_in(folder: Path) -> None:
    rows = "\n".join(
        f"    - {{id: q{place}, input: 'Say {place}', target: '{place}'}}"
        for place in range(ROWS)
    )
    text = f"task: saying\ndataset:\n  rows:\n{rows}\nscorers: [exact-match]\n"
    (folder / "task.yaml").write_text(text, encoding="utf-8")


def said(body: dict[str, list[dict[str, str]]]) -> str:
    return body["messages"][-1]["content"].split()[-1]


def test_kill_and_go_on(tmp_path: Path) -> None:
    task_in(tmp_path)
    with serving_batches("openai", said, seconds=1e9) as server:
        for asked in (50, 50):
            looks = server.looks
            child = start_forked(command(server, tmp_path), tmp_path)
            wait_until(
                lambda: (
                    sum(server.asked.values()) >= asked and server.looks >= looks + 4  # noqa: B023
                ),
                child,
            )
            child.kill()
            child.communicate()
        listed = typed("store", "batches", "list", "--json", folder=tmp_path)
        assert [row["requests"] for row in json.loads(listed.out)] == [25, 25]
        server.seconds = 0.1
        done = typed(*command(server, tmp_path), folder=tmp_path)
        assert done.code == 0, done.err
        again = typed(*command(server, tmp_path, "--json"), folder=tmp_path)
    run = json.loads(again.out)[0]
    assert run["usage"]["asked"] == 0 and run["tasks"][0]["metrics"][0]["value"] == 1.0
    assert run["configuration"]["batch"] is True
    assert set(server.asked.values()) == {1} and len(server.batches) == 3
    assert (
        "Found again: batch batch_2 of 25" in done.err
        and "has ended: 25 answered" in done.err
    )
