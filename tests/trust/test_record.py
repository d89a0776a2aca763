"""A run ends in a record: whatever becomes of its output, and after signals nothing that was
answered is asked again.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from evalwright import cli, evaluate
from evalwright.runs.progress import Progress
from support.command import environment, evalwright, record, write_questions
from support.openai_server import OpenAIServer, serving

RUN = ["run", "questions.yaml", "--model", "scripted/echo"]


@pytest.fixture
def asking(own_folder: Path) -> Path:
    """The working folder, with a task of two questions."""
    write_questions(own_folder, 2)
    return own_folder


class Failing(io.StringIO):
    """A stream that takes `room` characters and then fails with an error of the system's."""

    def __init__(self, number: int, room: int = 0) -> None:
        super().__init__()
        self.number = number
        self.room = room

    def write(self, text: str, /) -> int:
        self.room -= len(text)
        if self.room < 0:
            raise OSError(self.number, os.strerror(self.number))
        return super().write(text)


@pytest.mark.parametrize("room", [0, 100])
@pytest.mark.parametrize(
    ("number", "code"), [(errno.EPIPE, 0), (errno.ENOSPC, 1), (errno.EIO, 1)]
)
def test_a_run_whose_output_fails_has_a_record(
    asking: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int, room: int
) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(number, room))
    errors = Failing(number, room) if room else Failing(number, 10_000)
    monkeypatch.setattr(sys, "stderr", errors)
    assert cli.main([*RUN, "--name", "a"]) == code
    assert record(asking / "runs" / "a")["samples"]["records"] > 0
    if code and not room:
        assert "could not be printed" in errors.getvalue()


def test_streams_that_are_missing_or_know_no_letters(
    asking: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main([*RUN, "--name", "a"]) == 0
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert cli.main(["tasks", "show", "factual"]) == 0
    assert cli.main([*RUN, "--name", "é"]) == 0
    assert b"Traceback" not in raw.getvalue()
    assert record(asking / "runs" / "a")


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs", "show", "a"),
        ("leaderboard", "a", "b"),
        ("compare", "a", "b"),
        ("tasks", "list", "--json"),
        ("--help",),
    ],
)
def test_a_reader_that_goes_away_is_no_error(
    asking: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    if "a" in arguments:
        for name in ("a", "b"):
            assert cli.main([*RUN, "--name", name, "--quiet"]) == 0
    monkeypatch.setattr(sys, "stdout", Failing(errno.EPIPE, 20))
    monkeypatch.setattr(sys, "stderr", errors := io.StringIO())
    assert cli.main(list(arguments)) == 0
    assert errors.getvalue() == ""


def test_head_of_both_streams(tmp_path: Path) -> None:
    write_questions(tmp_path, 2)
    command = f"{shlex.join([sys.executable, '-m', 'evalwright', *RUN, '--name', 'a'])} 2>&1 | head -c 1"
    shown = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}} >&2"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert shown.stderr == "0\n"
    assert record(tmp_path / "runs" / "a")


def test_a_program_that_leaves_is_not_a_finished_run(asking: Path) -> None:
    (asking / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    assert cli.main([*RUN, "--name", "a", "--plugin", "leaves.py"]) == 2
    assert not (asking / "runs" / "a").exists()


def test_a_reporter_that_fails_does_not_stop_the_run(asking: Path) -> None:
    class Broken:
        def update(self, progress: Progress) -> None:
            raise BrokenPipeError

        def say(self, sentence: str) -> None:
            raise BrokenPipeError

    before = [
        signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ]
    (run,) = evaluate("questions.yaml", "scripted/echo", progress=Broken(), name="a")
    assert run.folder.joinpath("run.json").exists()
    assert before == [
        signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ]


# -- signals
# ------------------------------------------------------------------------------------------------------------


def _started(
    server: OpenAIServer, folder: Path, *more: str, before: str = ""
) -> subprocess.Popen[str]:
    model = [
        "--model",
        "openai/test",
        "-M",
        f"base_url={server.url}",
        "-M",
        "max_concurrency=8",
    ]
    arguments = [
        sys.executable,
        "-m",
        "evalwright",
        "run",
        "questions.yaml",
        *model,
        "--name",
        "a",
        *more,
    ]
    return subprocess.Popen(
        ["sh", "-c", f"{before} exec {shlex.join(arguments)}"],
        cwd=folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        # the tests may run under nohup
        preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "before", "code"),
    [
        (signal.SIGTERM, "", 143),
        (signal.SIGHUP, "", 129),
        (signal.SIGTERM, "trap '' INT;", 143),
        (signal.SIGHUP, "trap '' HUP;", 0),
    ],
)
def test_signals_end_a_run_in_order(
    tmp_path: Path, number: int, before: str, code: int
) -> None:
    write_questions(tmp_path, 60)
    seen: Counter[str] = Counter()
    process: subprocess.Popen[str] | None = None

    def answer(prompt: str) -> str:
        seen[prompt] += 1
        if len(seen) == 20 and process is not None:
            process.send_signal(number)
        return "4"

    with serving(answer=answer, latency=0.1) as server:
        process = _started(server, tmp_path, "--quiet", "--grace", "60", before=before)
        _, err = process.communicate(timeout=900)
        assert process.returncode == code, err
        assert (tmp_path / "runs" / "a" / "run.json").exists() == (code == 0)
        if code:
            assert "run the same command again" in err
            assert len(seen) < 60
        process = None
        done = evalwright(
            "run", "questions.yaml", "--model", "openai/test", "-M", f"base_url={server.url}", "--name", "a",
            folder=tmp_path,
        )  # fmt: skip
        assert done.code == 0, done.err
    assert len(seen) == 60
    assert set(seen.values()) == {1}, (
        "an answer that had been sent for was asked for again"
    )


def test_a_signal_ends_the_reading_of_tasks_at_once(tmp_path: Path) -> None:
    """As of a large folder: nothing is awaited there, so nothing could be cancelled."""
    (tmp_path / "slow.py").write_text(
        "import os, signal, time\nfrom evalwright.tasks.decorator import task\n\n"
        "@task('slow')\ndef slow():\n    os.kill(os.getpid(), signal.SIGTERM)\n    time.sleep(3600)\n"
    )
    done = evalwright(
        "run", "slow", "--plugin", "slow.py", "--model", "demo/small", folder=tmp_path
    )
    assert done.code == 143 and "Interrupted" in done.err, done.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_at_once(tmp_path: Path, second: int) -> None:
    write_questions(tmp_path, 8)
    process: subprocess.Popen[str] | None = None
    with serving(latency=300) as server:
        process = _started(server, tmp_path, "--grace", "300")
        while server.in_flight < 8:
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        while "within 300 s" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(second)
        assert process.wait(timeout=900) == 143
        process.stderr.close()
