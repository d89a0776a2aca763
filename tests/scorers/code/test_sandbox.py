"""What a program in the sandbox can do (compute) and what it cannot: everything else is tried here, for real."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from evalwright.scorers.code import sandbox
from evalwright.scorers.code.sandbox import NoSandbox, Outcome, run
from support.sandbox import needs_sandbox

pytestmark = needs_sandbox

LIBRARY = "import math, re, json, collections, hashlib, itertools, functools, typing, heapq, string, random, datetime, decimal, bisect, copy"


@pytest.mark.parametrize(
    "program",
    [
        "x = 1",
        LIBRARY,
        "import unittest, statistics, fractions, ast, zlib, operator, dataclasses, enum, abc, queue, array, struct, textwrap, cmath",
        "print('x' * 10_000_000)",
        "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()",
        "x = [0] * 1_000_000",
        "import sys\nsys.setrecursionlimit(5000)\ndef f(n): return n and f(n - 1)\nf(3000)",
    ],
)
def test_it_can_compute(program: str) -> None:
    assert run(program) == Outcome("passed")


FORBIDDEN = {
    "read a file of the person": "open(SECRET).read()",
    "read the password file": "open('/etc/passwd').read()",
    "read the environment of a process": "open('/proc/self/environ').read()",
    "list a folder": "import os; os.listdir(FOLDER)",
    "write here": "open('x', 'w')",
    "write there": "open(FOLDER + '/x', 'w')",
    "make a folder": "import os; os.mkdir(FOLDER + '/x')",
    "remove a file": "import os; os.remove(SECRET)",
    "rename a file": "import os; os.rename(SECRET, SECRET + '2')",
    "truncate a file": "import os; os.truncate(SECRET, 0)",
    "change a mode": "import os; os.chmod(SECRET, 0o777)",
    "change a time": "import os; os.utime(SECRET, (0, 0))",
    "link a file": "import os; os.symlink(SECRET, FOLDER + '/l')",
    "make a socket": "import socket; socket.socket()",
    "make a pair of sockets": "import socket; socket.socketpair()",
    "connect": "import socket; socket.create_connection(('127.0.0.1', PORT), 1)",
    "fork": "import os; os.fork()",
    "start a program": "import subprocess; subprocess.run(['/bin/ls'])",
    "become a program": "import os; os.execv('/bin/ls', ['ls'])",
    "signal its parent": "import os; os.kill(os.getppid(), 9)",
    "signal itself": "import os; os.kill(os.getpid(), 9)",
    "raise its limits": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))",
    "keep a file in memory": "import os; os.memfd_create('x')",
    "change its name space": "import ctypes, os; r = ctypes.CDLL(None, use_errno=True).unshare(0x10000000); assert r < 0; raise OSError",
    "take a lot of memory": "bytearray(10 ** 10)",
    "open many files": "import os\nfor _ in range(100): os.dup(0)",
}  # fmt: skip


@pytest.mark.parametrize("what", FORBIDDEN)
def test_it_cannot(what: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hush")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        head = f"SECRET = {str(secret)!r}\nFOLDER = {str(tmp_path)!r}\nPORT = {port}\n"
        outcome = run(head + FORBIDDEN[what])
        assert outcome.label == "failed", outcome
        assert any(
            word in outcome.why for word in ("PermissionError", "MemoryError", "OSError", "ValueError")
        ), outcome
        server.settimeout(0.01)
        with pytest.raises(TimeoutError):
            server.accept()
    assert secret.read_text() == "hush"
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]
    assert secret.stat().st_mode & 0o777 != 0o777


def test_no_key_of_the_environment_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert run("import os\nassert 'OPENAI_API_KEY' not in os.environ, os.environ") == Outcome("passed")


@pytest.mark.parametrize("program", ["while True: pass", "import time\ntime.sleep(60)"])
def test_a_program_that_does_not_end_is_ended(program: str) -> None:
    assert run(program, seconds=0.5).label == "timed out"


def test_nothing_is_left_running(tmp_path: Path) -> None:
    before = set(Path("/proc").glob("[0-9]*"))
    run("import time\ntime.sleep(60)", seconds=0.2)
    mine = [
        process
        for process in set(Path("/proc").glob("[0-9]*")) - before
        if b"_jail.py" in _read(process / "cmdline") and _parent(process) == os.getpid()
    ]
    assert mine == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _parent(process: Path) -> int:
    fields = _read(process / "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


@pytest.mark.parametrize(
    ("program", "label"),
    [
        ("assert 1 == 2, 'no'", "failed"),
        ("def f(:", "failed"),
        ("raise SystemExit(0)", "failed"),
        ("import os\nos._exit(0)", "ended early"),
        ("import sys\nsys.exit()", "failed"),
        ("x = '\ud800'", "failed"),
        ("import ctypes\nctypes.string_at(0)", "ended early"),
        ("raise KeyboardInterrupt", "failed"),
    ],
)
def test_only_the_last_line_is_passing(program: str, label: str) -> None:
    assert run(program).label == label


def test_a_program_that_writes_the_answer_itself_does_not_know_the_word() -> None:
    forged = 'import os\nos.write(3, b\'{"word": "x", "outcome": "passed", "why": ""}\\n\')\nos._exit(0)'
    assert run(forged).label in ("ended early", "failed")


def test_elsewhere_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NoSandbox, match="only on Linux"):
        run("pass")
    assert NoSandbox("x").party == "sandbox"


def test_where_the_door_cannot_be_shut_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(sandbox._JAIL).read_text().replace('!= "x86_64"', "== platform.machine()")
    broken = tmp_path / "_jail.py"
    broken.write_text(source)
    monkeypatch.setattr(sandbox, "_JAIL", broken)
    with pytest.raises(NoSandbox, match="table of system calls"):
        run("pass")
