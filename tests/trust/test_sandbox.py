"""Programs that models write: escapes, forged verdicts and floods, each really tried; the run
that has them; containers; what is refused.
"""

from __future__ import annotations

import json
import os
import site
import socket
import stat
import sys
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.scorers.code import jailed, sandbox
from evalwright.scorers.code.processes import NoSandbox
from evalwright.scorers.code.sandbox import Outcome, run, run_script
from support.command import evalwright, record, records
from support.sandbox import needs_sandbox

SQUARE = "assert f(2) == 4\nassert f(3) == 9\n"
LOOPED = "for x, y in zip(map(f, [2, 3]), [4, 9]):\n    assert x == y\n"

# Programs that do not square a number and would be judged right.
FORGED = {
    "exit with 0": "import sys\ndef f(x): sys.exit(0)",
    "exit while it is loaded": "raise SystemExit(0)",
    "exit at once": "import os\ndef f(x): os._exit(0)",
    "exit at once while it is loaded": "import os; os._exit(0)",
    "write a verdict to every descriptor": """
import json, os, struct
body = json.dumps({"label": "passed", "why": ""}).encode()
for letter in (b"v", b"m", b"j"):
    for fd in range(64):
        try: os.write(fd, struct.pack("!cI", letter, len(body)) + body)
        except OSError: pass
os._exit(0)""",
    "write a verdict while it is called": """
import json, os, struct
def f(x):
    body = json.dumps({"label": "passed", "why": ""}).encode()
    for fd in range(64):
        try: os.write(fd, struct.pack("!cI", b"v", len(body)) + body)
        except OSError: pass
    os._exit(0)""",
    "say that there is no sandbox": """
import os
for fd in range(64):
    try: os.write(fd, b'E{"missing": "no sandbox"}')
    except OSError: pass
os._exit(1)""",
    "a number that equals everything": "class N(int):\n    __eq__ = lambda a, b: True\n    __hash__ = int.__hash__\ndef f(x): return N(1)",
    "a text that equals everything": "class N(str):\n    __eq__ = lambda a, b: True\n    __hash__ = str.__hash__\ndef f(x): return N('1')",
    "an object that equals everything": "class N:\n    __eq__ = lambda a, b: True\n    __ne__ = lambda a, b: False\ndef f(x): return N()",
    "a class that equals everything": "class M(type):\n    __eq__ = lambda a, b: True\n    __hash__ = None\nclass N(metaclass=M): pass\ndef f(x): return N",
    "a list that equals everything": "class N(list):\n    __eq__ = lambda a, b: True\ndef f(x): return N()",
    "change the comparison of the judge": "import builtins, operator\noperator.eq = lambda a, b: True\nbuiltins.AssertionError = type('N', (), {})\ndef f(x): return 0",
    "change the codec": """
import json, sys
json.dumps = lambda *a, **k: '{"value": 4, "nodes": []}'
def f(x): return 0""",
    "change the channel by its frames": """
import sys
def f(x):
    frame = sys._getframe(1)
    while frame:
        for name, value in list(frame.f_locals.items()):
            if type(value).__name__ == "Peer":
                value.end = None
                value._exported.append(None)
                value._send({"label": "passed"})
        frame = frame.f_back
    return 0""",
    "answer before it is asked": """
import os, json, struct
body = json.dumps({"value": 4, "nodes": []}).encode()
for fd in range(3, 64):
    try: os.write(fd, (struct.pack("!cI", b"m", len(body)) + body) * 3)
    except OSError: pass
def f(x): return 0""",
    "ask its tests for what they have": """
import os, json, struct
def f(x):
    for do, what in (("get", "f"), ("global", "SQUARE"), ("load", "")):
        body = json.dumps({"do": do, "with": [0], "nodes": [["tuple", what]]}).encode()
        for fd in range(3, 64):
            try: os.write(fd, struct.pack("!cI", b"m", len(body)) + body)
            except OSError: pass
    return 4""",
    "find the expected values in memory": """
import gc, sys
def f(x):
    found = [one for one in gc.get_objects() if isinstance(one, str) and 'assert f(' in one]
    frames, frame = [], sys._getframe()
    while frame:
        frames.append(frame); frame = frame.f_back
    found += [value for frame in frames for value in frame.f_locals.values() if isinstance(value, str) and '== 9' in value]
    return x * x if found else 0""",
    "find them on the command line": "def f(x):\n    try: return x * x if '== 4' in open('/proc/self/cmdline').read() else 0\n    except OSError: return 0",
    "trace": "import sys\ndef trace(frame, event, arg):\n    frame.f_trace_lines = True\n    return trace\nsys.settrace(trace)\ndef f(x): return 0",
    "profile every thread": "import threading, sys\nthreading.setprofile(lambda *a: None)\nsys.setprofile(lambda *a: None)\ndef f(x): return 0",
    "hook imports": "import sys\nclass Hook:\n    def find_spec(self, *a): raise SystemExit(0)\nsys.meta_path.insert(0, Hook())\nsys.modules.clear()\ndef f(x): return 0",
    "exit by an alarm": "import signal, os\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(0))\nsignal.setitimer(signal.ITIMER_REAL, 0.001)\ndef f(x):\n    while True: pass",
    "exit at the end": "import atexit, os\natexit.register(os._exit, 0)\ndef f(x): return 0",
    "end the loop of its tests": "def f(x): raise StopIteration",
    "skip its tests": "import unittest\ndef f(x): raise unittest.SkipTest('skipped')",
    "exit when it is forgotten": "import os\nclass D:\n    def __del__(self): os._exit(0)\ndef f(x): D()",
    "a generator that leaves": "def f(x):\n    raise GeneratorExit",
    "raise what no test sees": "class Passed(BaseException): pass\ndef f(x): raise Passed",
    "a thread that answers later": """
import os, struct, threading, time
def late():
    while True:
        for fd in range(3, 10):
            try: os.write(fd, struct.pack("!cI", b"v", 2) + b"{}")
            except OSError: pass
        time.sleep(0.001)
threading.Thread(target=late, daemon=True).start()
def f(x): return 0""",
    "shadow what its tests use": "def abs(x): return 4\ndef len(x): return 4\nclass AssertionError(Exception): pass\n__debug__ = False if False else 0\ndef f(x): return 0".replace(
        "\n__debug__ = False if False else 0", ""
    ),
    "not a number": "def f(x): return float('nan')",
    "true and one": "def f(x): return {2: 4.5, 3: 9.5}[x]",
}  # fmt: skip


@needs_sandbox
@pytest.mark.parametrize("what", FORGED)
def test_no_program_forges_its_verdict(what: str) -> None:
    tests = LOOPED if what == "end the loop of its tests" else SQUARE
    assert run(FORGED[what], tests, seconds=60.0).label in ("failed", "ended early"), (
        what
    )


@needs_sandbox
def test_an_exit_that_the_tests_would_swallow_fails_them() -> None:
    for program in ("import os\ndef f(x): os._exit(0)", "def f(x): raise SystemExit"):
        outcome = run(program, "try:\n    f(1)\nexcept BaseException:\n    pass\n")
        assert outcome.label in ("failed", "ended early"), outcome


CALLS = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
MACHINE = ["x86_64", "aarch64"].index(platform.machine())
def call(numbers, *arguments):
    if libc.syscall(numbers[MACHINE], *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
"""
ESCAPES = {
    "read a private key": "open(KEY).read()",
    "read the shadow file": "open('/etc/shadow').read()",
    "read the environment of its parent": "import os; open(f'/proc/{os.getppid()}/environ').read()",
    "read memory": "open('/proc/self/mem', 'rb').read()",
    "list a folder": "import os; os.listdir(FOLDER)",
    "write in the home": "import os; open(os.path.join(HOME, '.evalwright_attack'), 'w')",
    "write in Python's library": "import os; open(os.path.join(os.path.dirname(os.__file__), 'attack.py'), 'w')",
    "cut a file of Python's library": "import os; os.open(os.__file__, os.O_RDONLY | os.O_TRUNC)",
    "make a folder": "import os; os.mkdir(FOLDER + '/x')",
    "remove": "import os; os.remove(KEY)",
    "rename": "import os; os.rename(KEY, KEY + '2')",
    "change a mode": "import os; os.chmod(KEY, 0o644)",
    "change an owner": "import os; os.chown(KEY, 0, 0)",
    "change a time": "import os; os.utime(KEY, (0, 0))",
    "link": "import os; os.symlink(KEY, FOLDER + '/l')",
    "setxattr": "import os; os.setxattr(KEY, 'user.x', b'')",
    "setxattrat": CALLS + "call((463, 463), -100, KEY.encode(), 0, b'user.x', 0, 16)",
    "file_setattr": CALLS + "call((469, 469), -100, KEY.encode(), 0, 0, 0)",
    "open_by_handle_at": CALLS + "call((304, 265), -100, 0, 0)",
    "openat2": CALLS + "call((437, 437), -100, KEY.encode(), bytes(24), 24)",
    "a call that does not exist yet": CALLS + "call((900, 900))",
    "io_uring": CALLS + "call((425, 425), 4, 0)",
    "userfaultfd": CALLS + "call((323, 282), 0)",
    "bpf": CALLS + "call((321, 280), 0, 0, 0)",
    "perf": CALLS + "call((298, 241), 0, 0, 0, 0, 0)",
    "keys": CALLS + "call((250, 219), 0, 0, 0, 0)",
    "ptrace": CALLS + "call((101, 117), 16, os.getppid(), 0, 0)",
    "read another process": CALLS + "call((310, 270), os.getppid(), 0, 0, 0, 0, 0)",
    "a handle of its parent": "import os; os.pidfd_open(os.getppid() or 1)",
    "kill its parent": "import os; os.kill(os.getppid() or 1, 9)",
    "kill everything": "import os; os.kill(-1, 9)",
    "kill a thread": CALLS + "call((200, 130), 1, 9)",
    "queue a signal": CALLS + "call((129, 138), 1, 9, 0)",
    "be sent signals by a pipe": "import fcntl, os; fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, os.getppid())",
    "change its parent's limits": CALLS + "call((302, 261), os.getppid() or 2, 0, bytes(16), 0)",
    "a process": "import os; os.fork()",
    "a process by clone": CALLS + "call((56, 220), 17, 0, 0, 0, 0)",
    "a process by clone3": CALLS + "call((435, 435), bytes(88), 88)",
    "a program": "import subprocess; subprocess.run(['/bin/ls'])",
    "a program from memory": "import os; fd = os.memfd_create('x'); os.execve(fd, ['x'], {})",
    "execveat": CALLS + "call((322, 281), 0, b'', 0, 0, 0x1000)",
    "name spaces": CALLS + "call((272, 97), 0x10000000)",
    "mount": CALLS + "call((165, 40), b'none', b'/', b'tmpfs', 0, 0)",
    "a socket": "import socket; socket.socket()",
    "loopback": "import socket; socket.create_connection(('127.0.0.1', PORT), 1)",
    "an abstract socket": "import socket; socket.socket(socket.AF_UNIX).connect('\\0' + ABSTRACT)",
    "a socket in a folder": "import socket; socket.socket(socket.AF_UNIX).connect('/run/docker.sock')",
    "a pair of sockets": "import socket; socket.socketpair()",
    "set the clock": "import time; time.clock_settime(time.CLOCK_REALTIME, 0)",
    "raise its limits": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))",
    "another user": "import os; os.setuid(0); raise PermissionError" if os.geteuid() == 0 else "import os; os.setuid(0)",
    "shared memory": CALLS + "call((29, 194), 1, 4096, 0o1777)",
    "its own name in the kernel": CALLS + "call((157, 167), 4, 1, 0, 0, 0)",
    "a lot of memory": "bytearray(10 ** 10)",
    "a mapping of a lot of memory": "import mmap; mmap.mmap(-1, 1 << 40)",
    "many files": "import os\nfor _ in range(100): os.dup(0)",
    "many threads": "import threading, time\nfor _ in range(1000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
}  # fmt: skip
REFUSED = (
    "PermissionError", "MemoryError", "OSError", "ValueError", "FileNotFoundError", "can't start new thread",
)  # fmt: skip


@needs_sandbox
@pytest.mark.parametrize("what", ESCAPES)
def test_no_program_leaves(what: str, tmp_path: Path) -> None:
    key = tmp_path / "id_ed25519"
    key.write_text("a private key")
    key.chmod(0o600)
    abstract = f"evalwright-{os.getpid()}-{what}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as unix,
    ):
        unix.bind("\0" + abstract)
        unix.listen()
        values = {
            "KEY": str(key),
            "FOLDER": str(tmp_path),
            "HOME": str(Path.home()),
            "ABSTRACT": abstract,
        }
        head = "".join(f"{name} = {value!r}\n" for name, value in values.items())
        outcome = run(
            f"{head}PORT = {server.getsockname()[1]}\n{ESCAPES[what]}", seconds=60.0
        )
        assert outcome.label == "failed", outcome
        assert any(word in outcome.why for word in REFUSED), outcome
        for listening in (server, unix):
            listening.setblocking(False)
            with pytest.raises(BlockingIOError):
                listening.accept()
    assert key.read_text() == "a private key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["id_ed25519"]
    assert not (Path.home() / ".evalwright_attack").exists()


READS = """
import importlib, os, sys
standard = os.path.dirname(os.__file__)
def refused(function, path):
    try:
        found = function(path)
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return
    assert not found, path
open(standard + '/colorsys.py').read()
for folder, subfolders, files in os.walk(standard):
    assert 'site-packages' not in folder or NAMES_ONLY or not files, folder
for path in INSTALLED:
    refused(lambda path: open(path, 'rb').read(), path)
for folder in ('/usr/lib', '/usr/lib/python3', '/usr/lib/python3/dist-packages', '/usr/lib64', '/lib', '/usr', '/'):
    refused(lambda path: set(os.listdir(path)) - {'lib', 'lib64', 'usr', 'root', 'home', 'opt', 'share'} if path in ('/', '/usr') else os.listdir(path), folder)
refused(lambda path: open(path).read(), '/usr/lib/os-release')
for folder in FOLDERS:
    sys.path.append(folder)
importlib.invalidate_caches()
for name in ('pip', 'setuptools', 'yaml', 'numpy', 'evalwright'):
    try:
        __import__(name)
    except ImportError:
        continue
    raise AssertionError(name)
import asyncio, bz2, ctypes, curses, decimal, hashlib, lzma, sqlite3, ssl, unicodedata, xml.etree.ElementTree, zlib, zoneinfo
ctypes.CDLL('libm.so.6')
"""


@needs_sandbox
@pytest.mark.parametrize("has_own_root", [True, False])
def test_only_the_standard_library_is_read(
    has_own_root: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is installed beside the standard library of the base Python, or of the system's, is
    not: with a root of its own or without.
    """
    if not has_own_root:
        here = Path(jailed.__file__).parent
        for name in ("_jail.py", "_inside.py", "syscalls.toml"):
            text = (here / name).read_text()
            call = "        _own_root(library)\n"
            assert name != "_jail.py" or call in text
            (tmp_path / name).write_text(text.replace(call, "        raise OSError\n"))
        monkeypatch.setattr(jailed, "_STARTER", tmp_path / "_jail.py")
        if Path("/usr/bin/python3").exists():
            monkeypatch.setattr(
                sys, "executable", "/usr/bin/python3"
            )  # one that any user can read
    monkeypatch.setattr(jailed, "_jail", None)
    standard = Path(os.__file__).parent
    folders = [
        standard / "site-packages",
        Path("/usr/lib/python3/dist-packages"),
        *map(Path, site.getsitepackages()),
    ]
    files = [
        path
        for folder in folders
        for path in [*folder.glob("*.py"), *folder.glob("*/__init__.py")][:20]
    ]
    try:
        has_root = "root of its own" in jailed.layers()
    except NoSandbox as error:
        pytest.skip(str(error))
    try:
        assert has_root <= has_own_root
        head = f"NAMES_ONLY = {not has_root}\nINSTALLED = {list(map(str, files))!r}\nFOLDERS = {list(map(str, folders))!r}\n"
        assert run(head + READS, seconds=60.0) == Outcome("passed")
    finally:
        jailed.get_jail().close()


FLOODS = {
    "never ends": "def f(x):\n    while True: pass",
    "sleeps": "import time\ndef f(x): time.sleep(60)",
    "ignores what ends it": "import signal, time\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ndef f(x): time.sleep(60)",
    "fills the channel": "import os\ndef f(x):\n    for fd in range(3, 64):\n        try:\n            while True: os.write(fd, b'x' * 65536)\n        except OSError: pass",
    "a value without end": "def f(x):\n    while True: yield 1",
    "a value of 100 MB": "def f(x): return 'x' * 100_000_000",
    "a value in itself": "def f(x):\n    a = [1]\n    a.append((a,))\n    return a",
    "a deep value": "def f(x):\n    a = ()\n    for _ in range(100_000): a = (a,)\n    return a",
    "calls without end": "import sys\nsys.setrecursionlimit(10**9)\ndef f(x): return f(x)",
    "a long error": "def f(x): raise ValueError('x' * 50_000_000)",
    "a bad error": "class E(Exception):\n    def __str__(self): raise SystemExit(0)\ndef f(x): raise E",
}  # fmt: skip


@needs_sandbox
@pytest.mark.parametrize("what", FLOODS)
def test_time_and_size_are_bounded(what: str) -> None:
    outcome = run(
        FLOODS[what],
        "assert list(f(2)) == [4]\nassert False",
        seconds=1.0,
        megabytes=512,
    )
    assert outcome.label in ("failed", "timed out", "ended early"), outcome
    assert len(outcome.why) <= 400


@needs_sandbox
def test_a_script_is_bounded_too() -> None:
    assert "16 MiB" in run_script("while True: print('x' * 100_000)", "").outcome.why
    assert (
        run_script("import time; time.sleep(60)", "", seconds=0.5).outcome.label
        == "timed out"
    )
    assert (
        run_script(
            "import os\nos.close(1); os.close(2)\nwhile True: pass", "", seconds=0.5
        ).outcome.label
        == "timed out"
    )
    assert (
        run_script("print(input()); raise SystemExit(3)", "1\n").outcome.label
        == "failed"
    )
    assert run_script("print(input())\n1 / 0", "1\n").outcome == Outcome(
        "failed", "ZeroDivisionError: division by zero"
    )
    assert run_script("open('/etc/passwd')", "").outcome.why.startswith(
        ("PermissionError", "FileNotFoundError")
    )


@needs_sandbox
def test_a_run_of_forged_programs_scores_nought(tmp_path: Path) -> None:
    """The command line, a recorded model whose programs forge, and a sentence for each in the
    record.
    """
    names = [
        "exit with 0",
        "say that there is no sandbox",
        "an object that equals everything",
        "write a verdict to every descriptor",
    ]
    rows = [{"id": str(place), "name": name} for place, name in enumerate(names)]
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )
    (tmp_path / "forged.yaml").write_text(
        "task: forged\ndataset: rows.jsonl\n"
        'sample: {id: "{{ id }}", input: "{{ name }}", metadata: {tests: '
        + json.dumps(SQUARE)
        + ", entry_point: f}}\n"
        'prompt: {user: "{{ input }}"}\nanswer: {max_tokens: 2000}\nscorers: [unit-tests]\nmetrics: [accuracy]\n'
    )
    answers = [
        {"input": name, "response": f"```python\n{FORGED[name]}\n```"} for name in names
    ]
    (tmp_path / "answers.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in answers)
    )
    done = evalwright(
        "run",
        "forged.yaml",
        "--model",
        "replay/answers.jsonl",
        "--out",
        "runs",
        folder=tmp_path,
    )
    (folder,) = (tmp_path / "runs").iterdir()
    (task,) = record(folder)["tasks"]
    assert [metric["value"] for metric in task["metrics"]] == [0.0], done.text
    assert {row["scores"]["unit-tests"]["label"] for row in records(folder)} <= {
        "failed",
        "ended early",
    }, done.text


def test_elsewhere_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jailed, "_jail", None)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NoSandbox, match=r"only on Linux.*podman"):
        run("pass")
    assert NoSandbox("x").party == "sandbox"


BROKEN = {
    "_MACHINES = {": ("_MACHINES = {'other': (0, 0)} or {", "table of system calls is for"),
    "    version = _LIBC.syscall(": ("    version = 0 and _LIBC.syscall(", "no Landlock"),
    "_check(_LIBC.prctl(_PR_SET_SECCOMP,": ("_check(_LIBC.prctl(99999,", "seccomp"),
    "    _landlock(rules, library)": ("    os.close(rules)", "Landlock is there but forbids nothing"),
    "return b\"\".join([*steps, refuse])": ("return step(end, _ALLOW)", "forbids nothing"),
    "os.setresuid(_NOBODY, _NOBODY, _NOBODY)": ("raise OSError('no other user id')", "no other user id"),
}  # fmt: skip


@needs_sandbox
@pytest.mark.parametrize("line", BROKEN)
def test_where_a_layer_is_missing_nothing_is_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "setresuid" in line and os.geteuid() != 0:
        pytest.skip("only root gives up its user id")
    here = Path(jailed.__file__).parent
    for name in ("_jail.py", "_inside.py", "syscalls.toml"):
        text = (here / name).read_text()
        if name == "_jail.py":
            assert line in text
            text = text.replace(line, BROKEN[line][0])
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(jailed, "_jail", None)
    monkeypatch.setattr(jailed, "_STARTER", tmp_path / "_jail.py")
    for _ in range(2):
        with pytest.raises(NoSandbox, match=BROKEN[line][1]):
            run("pass")


@needs_sandbox
def test_the_starter_is_one_process_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = jailed.get_jail()
    assert first is jailed.get_jail()
    first._process.kill()
    first._process.wait()
    assert run("pass").label == "passed"
    assert jailed.get_jail() is not first


FAKE = '''#!{python}
"""Stands in for podman or docker: holds the documented arguments, then runs what the image would."""
import os, pathlib, sys
arguments = sys.argv[1:]
here = pathlib.Path({log!r})
if arguments[0] == "kill":
    os.kill(int((here / arguments[1]).read_text()), 9)
    (here / "killed").touch()
    sys.exit(0)
wanted = ["--rm", "--interactive", "--network=none", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges",
          "--pids-limit=64", "--user=65534:65534", "--pull=never", "--memory=256m", "--memory-swap=256m", "--cpus=1"]
place = arguments.index("image:1")
given = arguments[1:place]
if pathlib.Path(sys.argv[0]).name == "podman":
    wanted.append("--http-proxy=false")
missing = [one for one in wanted if one not in given]
other = [one for one in given if not one.startswith("--") or one.startswith(("--volume", "--mount", "--privileged", "--env", "--device"))]
if arguments[0] != "run" or missing or other:
    sys.exit(f"Error: missing {{missing}}, not wanted {{other}}")
assert "--entrypoint=python3" in given
(here / next(one for one in given if one.startswith("--name=")).partition("=")[2]).write_text(str(os.getpid()))
os.execv(sys.executable, ["python3", *arguments[place + 1 :]])
'''


@pytest.mark.parametrize("kind", ["podman", "docker"])
def test_a_container_is_started_as_documented(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    log.mkdir()
    program = tmp_path / kind
    program.write_text(FAKE.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv(sandbox.VARIABLE, f"{kind}:image:1")
    assert run("def f(x): return x * x", SQUARE, megabytes=256) == Outcome("passed")
    assert run("def f(x): return x", SQUARE, megabytes=256).label == "failed"
    assert run_script("print(int(input()) * 2)", "21\n", megabytes=256).text == "42\n"
    assert (
        run("def f(x):\n    while True: pass", SQUARE, seconds=0.5, megabytes=256).label
        == "timed out"
    )
    assert (log / "killed").exists()
    with pytest.raises(NoSandbox, match=r"missing.*memory"):
        run("pass", megabytes=128)


def test_what_is_no_sandbox_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for text in ("none", "podman", "podman:--privileged", "chroot:/"):
        monkeypatch.setenv(sandbox.VARIABLE, text)
        with pytest.raises(ConfigurationError, match="podman:IMAGE"):
            run("pass")
    done = evalwright(
        "run", "humaneval", "--sandbox", "podman:--privileged", folder=tmp_path
    )
    assert done.code == 2 and "podman:IMAGE" in done.err, done.text
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(sandbox.VARIABLE, "apptainer:image.sif")
    with pytest.raises(NoSandbox, match="not installed"):
        run("pass")
