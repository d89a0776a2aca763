"""Nothing that was received is ever asked for again: after `kill -9`, and with two processes at once."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from support.command import evalwright, record, records, start, write_questions
from support.openai_server import OpenAIServer, serving

QUESTION = re.compile(r"Question \d{5}\?")


def command(url: str, name: str) -> list[str]:
    model = ["--model", "openai/test", "-M", f"base_url={url}", "-M", "max_concurrency=40"]
    return ["run", "questions.yaml", *model, "--name", name, "--quiet"]


def stored_questions(home: Path) -> set[str]:
    """The questions whose answers were acknowledged, read from the store's file itself."""
    if not (home / "store.sqlite").exists():
        return set()
    connection = sqlite3.connect(f"file:{home / 'store.sqlite'}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT request FROM responses").fetchall()
    except sqlite3.OperationalError:
        return set()  # killed before the schema was there
    finally:
        connection.close()
    from evalwright.engine.store import unpack

    return {QUESTION.findall(unpack(payload))[0] for (payload,) in rows}


def asked(server: OpenAIServer) -> Counter[str]:
    """How often each question reached the server."""
    assert server.log is not None
    return Counter(
        QUESTION.findall(json.dumps(entry.get("body", "")))[0]
        for entry in list(server.log)
        if "body" in entry
    )


@pytest.mark.slow
def test_killed_twenty_times(tmp_path: Path) -> None:
    write_questions(tmp_path, 2000)
    chance = random.Random(7)
    with serving(latency=0.25, spread=0.3) as undisturbed:
        done = evalwright(
            *command(undisturbed.url, "calm"), folder=tmp_path, extra={"EVALWRIGHT_HOME": "calm"}
        )
        assert done.code == 0, done.text
        assert set(asked(undisturbed).values()) == {1}
    home = tmp_path / "killed"
    with serving(latency=0.25, spread=0.3) as server:
        known: dict[str, int] = {}
        kills = 0
        for number in range(20):
            process = start(command(server.url, "killed"), tmp_path, {"EVALWRIGHT_HOME": "killed"})
            # Half of them while it starts, half while requests are under way, however busy the machine is.
            before = sum(server.received.values()) if number % 2 else -1
            while process.poll() is None and sum(server.received.values()) <= before:
                time.sleep(0.01)
            time.sleep(0.35 + chance.random() * 0.5)
            if process.poll() is None:
                process.kill()
                kills += 1
            process.communicate()
            times = asked(server)
            for question in stored_questions(home):
                known.setdefault(question, times[question])
        assert kills == 20, "the run ended before it could be killed often enough"
        assert 0 < len(known) < 2000
        done = evalwright(
            *command(server.url, "killed"), folder=tmp_path, extra={"EVALWRIGHT_HOME": "killed"}
        )
        assert done.code == 0, done.text
        final = asked(server)
    again = {
        question: (before, final[question]) for question, before in known.items() if final[question] > before
    }
    assert not again, f"asked for again although they were stored: {again}"
    # What is not yet stored at a kill may be asked for twice: at most what was in flight, 40 at a time.
    assert sum(final.values()) <= 2000 + 20 * 40
    assert records(tmp_path / "runs" / "killed") == records(tmp_path / "runs" / "calm")
    calm, killed = record(tmp_path / "runs" / "calm"), record(tmp_path / "runs" / "killed")
    assert killed["tasks"] == calm["tasks"]
    assert killed["usage"]["stored"] >= len(known)


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    write_questions(tmp_path, 400)
    with serving(latency=0.05, spread=0.3) as server:
        both: list[subprocess.Popen[str]] = [
            start([*command(server.url, "shared"), "--out", out], tmp_path) for out in ("one", "two")
        ]
        for process in both:
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, out + err
        assert set(asked(server).values()) == {1}
        assert len(asked(server)) == 400
    assert records(tmp_path / "one" / "shared") == records(tmp_path / "two" / "shared")
    usages = [record(tmp_path / out / "shared")["usage"] for out in ("one", "two")]
    assert sum(usage["asked"] for usage in usages) == 400


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    import signal

    write_questions(tmp_path, 2000)
    with serving(latency=0.5) as server:
        process = start([*command(server.url, "stopped")], tmp_path)
        deadline = time.monotonic() + 30
        while not asked(server) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, err = process.communicate(timeout=20)
        assert time.monotonic() - began < 5.5
        assert process.returncode == 130
        assert "run the same command again" in err
        assert "Traceback" not in err
        # What was in flight arrived within the grace and is kept.
        assert len(stored_questions(tmp_path / ".evalwright")) == sum(server.completed.values())
    assert not (tmp_path / "runs" / "stopped" / "run.json").exists()


def test_an_interrupted_run_leaves_no_record_even_when_little_was_left(tmp_path: Path) -> None:
    import signal

    write_questions(tmp_path, 30)
    with serving(latency=30) as server:
        process = start([*command(server.url, "stopped")], tmp_path)
        deadline = time.monotonic() + 30
        while len(asked(server)) < 30 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 130
    assert not (tmp_path / "runs" / "stopped" / "run.json").exists()
