"""`view` follows a run while it is made: to its end, a kill, an interruption and a resume; and
what it serves is for this machine alone.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.reports.explorer import following
from evalwright.reports.explorer.following import FollowedRun, Follower
from evalwright.reports.explorer.server import MOST_CONNECTIONS, Server
from evalwright.runs.writer import RunWriter
from support.command import ROOT, environment
from support.runs import make_run

Follow = Callable[[Path], FollowedRun]

ABOUT = {
    "id": "x",
    "label": "Model X",
    "model": "demo/x",
    "expected": 5,
    "started": "2026-01-01T00:00:00+00:00",
    "tasks": [
        {
            "name": "factual",
            "version": "1",
            "description": "Facts.",
            "slice_keys": [],
            "scorers": [{"name": "exact-match", "kind": "exact-match", "options": {}}],
            "metric_specs": [
                {
                    "label": "accuracy",
                    "kind": "accuracy",
                    "scorer": "exact-match",
                    "options": {},
                }
            ],
        }
    ],
}


def record(number: int) -> SampleRecord:
    sample = Sample(id=f"item-{number}", input=f"Question {number}?")
    scores = {
        "exact-match": Score(
            float(number % 2), "correct" if number % 2 else "incorrect"
        )
    }
    return SampleRecord(
        "factual", number, 0, sample, Answer(text=f"answer {number}"), scores
    )


@pytest.fixture(autouse=True)
def reads_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a look read all that there is, on a machine of any speed.

    Metrics are computed after each look, and then not again for a while.
    """
    monkeypatch.setattr(following, "READ_SECONDS", 3600.0)


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Follows a folder until the test ends."""
    with ExitStack() as stack:

        def begin(folder: Path) -> FollowedRun:
            run = FollowedRun("0", folder)
            stack.callback(run.close)
            return run

        yield begin


def seen(run: FollowedRun) -> list[str]:
    """Look until nothing is new, and give the ids that the page would show."""
    while run.look():
        pass
    parts = [
        run.part("block", number, run.generation)
        for number in range(len(run.samples.blocks.starts))
    ]
    rows = []
    for part in parts:
        assert part is not None
        order, *lines = zlib.decompress(part, -15).split(b"\n")
        rows += [
            json.loads(lines[place])["id"]
            for place in map(json.loads(order).index, range(len(lines)))
        ]
    assert len(rows) == run.info()["records"]
    return rows


def finish(writer: RunWriter, folder: Path) -> None:
    """End the run: what `make_run` writes elsewhere is its record."""
    run = make_run(folder.parent / "made", scores=[0.0, 1.0, 0.0], name="x")
    writer.finish({key: value for key, value in run.data.items() if key != "samples"})


def test_a_run_is_followed_to_its_end(tmp_path: Path, follow: Follow) -> None:
    folder = tmp_path / "x"
    with RunWriter(folder, ABOUT) as writer:
        run = follow(folder)
        for number in (2, 0):
            writer.add(number, record(number))
        assert seen(run) == [], "what is in the writer's memory cannot be seen"
        writer.show()
        assert seen(run) == ["item-2", "item-0"]
        info = run.info()
        assert (info["state"], info["label"], info["expected"]) == (
            "running",
            "Model X",
            5,
        )
        accuracy = info["tasks"][0]["metrics"][0]
        assert (accuracy["name"], accuracy["value"], accuracy["n"]) == (
            "accuracy",
            0.0,
            2,
        )
        first = run.generation
        writer.add(1, record(1))
        finish(writer, folder)
    assert seen(run) == ["item-0", "item-1", "item-2"]
    assert run.generation == first + 1, "the order is another: everything is read again"
    assert run.info()["state"] == "finished"
    assert run.part("columns", 0, first) is None, (
        "a reader of before must not mix the two"
    )


def test_half_a_line_is_kept_back(tmp_path: Path, follow: Follow) -> None:
    folder = tmp_path / "x"
    with RunWriter(folder, ABOUT) as writer:
        writer.add(0, record(0))
        writer.show()
        file = next(folder.glob("*.partial"))
        whole = file.read_bytes()
        with file.open("ab") as out:
            out.write(whole[:40])
            out.flush()
            run = follow(folder)
            assert seen(run) == ["item-0"]
            out.write(whole[40:])
            out.flush()
            assert seen(run) == ["item-0", "item-0"]


def test_a_killed_run_is_stopped_and_its_resume_is_followed(
    tmp_path: Path, follow: Follow
) -> None:
    folder = tmp_path / "x"
    code = (
        "import json, sys, time; from pathlib import Path; from evalwright.runs.writer import RunWriter; from "
        "reports.explorer.test_following import ABOUT, record\n"
        "writer = RunWriter(Path(sys.argv[1]), ABOUT); writer.add(1, record(1)); writer.show(); print('there', flush=True); time.sleep(600)"
    )
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdout=subprocess.PIPE,
        env=environment({"PYTHONPATH": paths}),
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == b"there\n"
        run = follow(folder)
        assert seen(run) == ["item-1"]
        assert run.state == "running"
        process.kill()
    assert seen(run) == ["item-1"]
    info = run.info()
    assert info["state"] == "stopped"
    assert (
        "State",
        "The process that wrote it ended; run the same command again to resume.",
    ) in info["facts"]
    with RunWriter(folder, ABOUT) as writer:
        writer.add(0, record(0))
        writer.show()
        assert seen(run) == ["item-0"]
        assert run.state == "running"


def test_what_was_seen_of_an_interrupted_run_stays(
    tmp_path: Path, follow: Follow
) -> None:
    folder = tmp_path / "x"
    with RunWriter(folder, ABOUT) as writer:
        writer.add(0, record(0))
        writer.show()
        run = follow(folder)
        assert seen(run) == ["item-0"]
    assert not list(folder.glob("*.partial"))
    assert seen(run) == ["item-0"]
    assert run.state == "stopped"


@pytest.mark.parametrize(
    "line",
    [
        b"no JSON\n",
        b"[1]\n",
        b'{"task": 1}\n',
        b"[" * 100_000 + b"\n",
        b'{"a": ' * 5000 + b"\n",
        b"\xff\xfe\n",
    ],
)
def test_a_broken_record_is_told_and_the_others_stay(
    line: bytes, tmp_path: Path, follow: Follow
) -> None:
    folder = tmp_path / "x"
    with RunWriter(folder, ABOUT) as writer:
        writer.add(0, record(0))
        writer.show()
        with next(folder.glob("*.partial")).open("ab") as out:
            out.write(line)
        run = follow(folder)
        assert seen(run) == ["item-0"]
        assert run.info()["facts"][0][0] == "Cannot be read"


def test_links_and_pipes_are_not_followed(tmp_path: Path, follow: Follow) -> None:
    (tmp_path / "secret").write_text("{}\n")
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / f".samples.jsonl.{os.getpid()}.partial").symlink_to(tmp_path / "secret")
    os.mkfifo(folder / ".samples.jsonl.1.partial")
    run = follow(folder)
    assert seen(run) == []
    assert run.info()["records"] == 0


def test_records_that_were_changed_are_told(tmp_path: Path, follow: Follow) -> None:
    made = make_run(tmp_path, scores=[1.0, 0.0])
    made.samples_file.write_bytes(
        made.samples_file.read_bytes().replace(b"answer", b"ANSWER")
    )
    run = follow(made.folder)
    assert len(seen(run)) == 2
    assert "was changed after the run" in dict(run.info()["facts"])["Cannot be read"]


# -- the server
# ----------------------------------------------------------------------------------------------------------


@contextmanager
def serving(*folders: Path) -> Iterator[Server]:
    follower = Follower(folders, "Runs")
    server = Server(follower)
    follower.start()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        follower.stop()
        thread.join()


def get(
    server: Server, path: str, method: str = "GET", **headers: str
) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    try:
        connection.request(
            method,
            path,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )
        reply = connection.getresponse()
        return reply.status, reply.read(), reply.headers
    finally:
        connection.close()


def part(server: Server, key: str) -> Any:
    status, data, _ = get(server, f"/{server.token}/part/{key}")
    assert status == 200, (key, data)
    return json.loads(zlib.decompress(data, -15).split(b"\n")[0])


def test_the_server_gives_every_part_to_several_viewers(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores=scores, name=name)
        for name, scores in (("a", [1.0, 0.0]), ("b", [0.0, 0.0]))
    ]
    with serving(*(run.folder for run in runs)) as server:
        pair = part(server, "compare/0/1")  # which waits until both are read
        assert [task["task"] for task in pair["tasks"]] == ["factual"]
        for _ in range(2):
            catalog = part(server, "catalog")
            assert [run["name"] for run in catalog["runs"]] == ["a", "b"]
            assert catalog["live"]
            assert part(server, "run/1/index")["size"] == 2
            assert part(server, "run/1/columns/0")["ids"] == ["item-0", "item-1"]
            assert part(server, "run/0/previews/0")
            assert part(server, "run/0/block/0") == [0, 1]
            assert set(part(server, "state")["runs"]) == {"0", "1"}
            assert part(server, "plots/0")["curves"] is not None
        shutil.rmtree(runs[0].folder)  # somebody removes it
        assert part(server, "run/0/block/0") == [0, 1]


def test_the_server_refuses_whoever_does_not_know_its_address(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1.0])
    with serving(run.folder) as server:
        page = f"/{server.token}/"
        status, body, headers = get(server, page)
        assert status == 200
        assert b'data-source="live"' in body
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert get(server, page, Host=f"localhost:{server.server_port}")[0] == 200
        for host in (
            "evil.example",
            f"evil.example:{server.server_port}",
            "127.0.0.1:1",
            "",
        ):
            assert get(server, page, Host=host)[0] == 403, host
        for path in (
            "/",
            "/x/",
            f"/{server.token}",
            "/../../etc/passwd",
            "/%2e%2e/",
            f"/{server.token[:-1]}/",
        ):
            assert get(server, path)[0] == 404, path
        for key in ("", "run", "run/0", "run/0/x", "run/7/index", "run/0/block/9999", "run/0/block/-1", "run/0/block/x", "compare/0/0",
                    "compare/0/9", "compare/0", "plots/x", "run/0/../index", "%2e%2e/run.json", "run/0/columns/0?generation=99"):  # fmt: skip
            assert get(server, f"{page}part/{key}")[0] == 404, key
        for method in ("POST", "PUT", "DELETE", "OPTIONS"):
            assert get(server, page, method)[0] == 501, method


def test_connections_that_say_nothing_take_no_more_threads_than_there_are(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path, scores=[1.0])
    with serving(run.folder) as server, ExitStack() as stack:
        before = threading.active_count()
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(
                socket.create_connection(("127.0.0.1", server.server_port))
            )
        assert get(server, f"/{server.token}/")[0] == 503
        assert threading.active_count() <= before + MOST_CONNECTIONS
        stack.close()
        while (status := get(server, f"/{server.token}/")[0]) != 200:
            assert status == 503


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1.0])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        follower = Follower([run.folder], "x")
        with pytest.raises(ConfigurationError, match=f"The port {port} is in use"):
            Server(follower, port)
        follower.stop()
