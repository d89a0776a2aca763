"""Nothing that was received is ever asked for again: after `kill -9`, and with two processes at
once.
"""

from __future__ import annotations

import json
import random
import re
import signal
from collections import Counter
from pathlib import Path

from support.command import (
    record,
    records,
    start,
    stored_requests,
    wait_until,
    write_questions,
)
from support.forked import start_forked
from support.openai_server import OpenAIServer, serving
from support.typed import typed

QUESTION = re.compile(r"Question \d{5}\?")


def command(url: str, name: str) -> list[str]:
    model = [
        "--model",
        "openai/test",
        "-M",
        f"base_url={url}",
        "-M",
        "max_concurrency=40",
    ]
    return ["run", "questions.yaml", *model, "--name", name, "--quiet"]


def stored_questions(home: Path) -> set[str]:
    """The questions whose answers were acknowledged."""
    return {QUESTION.findall(request)[0] for _, request in stored_requests(home)}


def asked(server: OpenAIServer) -> Counter[str]:
    """How often each question reached the server."""
    assert server.log is not None
    return Counter(
        QUESTION.findall(json.dumps(entry.get("body", "")))[0]
        for entry in list(server.log)
        if "body" in entry
    )


def test_killed_again_and_again(tmp_path: Path) -> None:
    """Once while it starts, then wherever it is when the server has seen some more;
    benchmarks/killed.py counts it with 20,000.
    """
    write_questions(tmp_path, 500)
    chance = random.Random(7)
    with serving(latency=0.05, spread=0.3) as undisturbed:
        done = typed(
            *command(undisturbed.url, "calm"),
            folder=tmp_path,
            extra={"EVALWRIGHT_HOME": "calm"},
        )
        assert done.code == 0, done.text
        assert set(asked(undisturbed).values()) == {1}
    home = tmp_path / "killed"
    with serving(latency=0.1, spread=0.3) as server:
        known: dict[str, int] = {}
        for more in (0, *(chance.randrange(1, 90) for _ in range(3))):
            process = start_forked(
                command(server.url, "killed"), tmp_path, {"EVALWRIGHT_HOME": "killed"}
            )
            enough = sum(server.received.values()) + more
            wait_until(
                lambda: (
                    (home / "store.sqlite").exists()
                    and sum(server.received.values()) >= enough  # noqa: B023
                ),
                process,
            )
            process.kill()
            process.communicate()
            times = asked(server)
            for question in stored_questions(home):
                known.setdefault(question, times[question])
        assert 0 < len(known) < 500
        done = typed(
            *command(server.url, "killed"),
            folder=tmp_path,
            extra={"EVALWRIGHT_HOME": "killed"},
        )
        assert done.code == 0, done.text
        final = asked(server)
    again = {
        question: (before, final[question])
        for question, before in known.items()
        if final[question] > before
    }
    assert not again, f"asked for again although they were stored: {again}"
    # What is not yet stored at a kill may be asked for twice: at most what was in flight, 40 at a
    # time.
    assert sum(final.values()) <= 500 + 4 * 40
    assert records(tmp_path / "runs" / "killed") == records(tmp_path / "runs" / "calm")
    calm = record(tmp_path / "runs" / "calm")
    killed = record(tmp_path / "runs" / "killed")
    assert killed["tasks"] == calm["tasks"]
    assert killed["usage"]["stored"] >= len(known)


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    write_questions(tmp_path, 200)
    with serving(latency=0.05, spread=0.3) as server:
        both = [
            start_forked([*command(server.url, "shared"), "--out", out], tmp_path)
            for out in ("one", "two")
        ]
        for process in both:
            out, err = process.communicate(timeout=900)
            assert process.returncode == 0, out + err
        assert set(asked(server).values()) == {1}
        assert len(asked(server)) == 200
    assert records(tmp_path / "one" / "shared") == records(tmp_path / "two" / "shared")
    usages = [record(tmp_path / out / "shared")["usage"] for out in ("one", "two")]
    assert sum(usage["asked"] for usage in usages) == 200


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    write_questions(tmp_path, 2000)
    with serving(latency=0.5) as server:
        process = start(command(server.url, "stopped"), tmp_path)
        wait_until(lambda: bool(asked(server)), process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=900)
        assert process.returncode == 130
        assert "run the same command again" in err
        assert "Traceback" not in err
        # What was in flight arrived within the grace and is kept.
        assert len(stored_questions(tmp_path / ".evalwright")) == sum(
            server.completed.values()
        )
    assert not (tmp_path / "runs" / "stopped" / "run.json").exists()


def test_an_interrupted_run_leaves_no_record_even_when_little_was_left(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 30)
    with serving(latency=1000) as server:
        process = start(command(server.url, "stopped"), tmp_path)
        wait_until(lambda: len(asked(server)) == 30, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=900)
        assert process.returncode == 130
    assert not (tmp_path / "runs" / "stopped" / "run.json").exists()
