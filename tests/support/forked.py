"""Commands and programs in processes of their own that need no interpreter to start.

A server that has imported what commands import forks for each of them. What a process is to others
stays as it is: an id, a folder, an environment, pipes, signals and an exit code of its own. Where
the start itself is what a test is about, it starts a real one (`support.command`).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
PRELOADED = (
    "evalwright.analysis.board",
    "evalwright.analysis.gate",
    "evalwright.analysis.judge_validation",
    "evalwright.api",
    "evalwright.cli.changes",
    "evalwright.cli.compare",
    "evalwright.cli.leaderboard",
    "evalwright.cli.run",
    "evalwright.cli.runs",
    "evalwright.cli.view",
    "evalwright.engine.loop_turns",
    "evalwright.evaluation.evaluating",
    "evalwright.evaluation.running",
    "evalwright.metrics.means",
    "evalwright.models.remote.http_pool",
    "evalwright.models.remote.openai",
    "evalwright.models.scripted",
    "evalwright.reports.documents.board",
    "evalwright.reports.documents.comparison",
    "evalwright.reports.documents.summary",
    "evalwright.reports.explorer.page",
    "evalwright.reports.html",
    "evalwright.reports.markdown",
    "evalwright.reports.terminal",
    "evalwright.runs.environment",
    "evalwright.runs.hardware",
    "evalwright.scorers.choice",
    "evalwright.scorers.exact_match",
    "evalwright.statistics.bootstrap",
    "evalwright.tasks.compiling",
    "evalwright.tasks.row_tasks",
    "evalwright.tasks.validation",
    "jinja2.sandbox",
    "onnxruntime",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "tokenizers",
    "yaml",
)
"""What most commands import."""
OPTIONS_WITH_A_WORD = ("-W", "-X")
WAIT_SECONDS = 300


class ForkedProcess:
    """A program that runs: as `subprocess.Popen`, as far as tests need it.

    Attributes:
        pid: Its process id.
        returncode: None until it has ended; -N where signal N ended it.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        *,
        is_one_stream: bool = False,
    ) -> None:
        self._out, out = os.pipe()
        self._err, err = (self._out, os.dup(out)) if is_one_stream else os.pipe()
        request = {
            "arguments": list(arguments),
            "folder": str(folder),
            "environment": dict(variables),
        }
        with open(os.devnull, "rb") as nothing:
            self._connection = sent_request(
                server_address(), request, [nothing.fileno(), out, err]
            )
        os.close(out)
        os.close(err)
        self._replies = self._connection.makefile("r")
        self.pid = int(self._replies.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or None where it still runs."""
        if self.returncode is None:
            self._connection.setblocking(False)
            try:
                seen = self._connection.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return None
            finally:
                self._connection.setblocking(True)
            assert seen, "the server of forked processes ended"
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """The exit code, once it has ended."""
        if self.returncode is None:
            self.returncode = int(self._replies.readline())
            self._replies.close()
            self._connection.close()
        return self.returncode

    def communicate(self, timeout: float = WAIT_SECONDS * 6) -> tuple[str, str]:
        """What it prints until it ends, on both streams."""
        parts: dict[int, list[bytes]] = {self._out: [], self._err: []}
        with selectors.DefaultSelector() as selector:
            for file in parts:
                selector.register(file, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(timeout)
                if not ready:
                    self.kill()
                    raise subprocess.TimeoutExpired("a forked process", timeout)
                for key, _ in ready:
                    part = os.read(key.fd, 65536)
                    parts[key.fd].append(part)
                    if not part:
                        selector.unregister(key.fd)
                        os.close(key.fd)
        self.wait()
        out, err = (
            b"".join(parts[file]).decode().replace("\r\n", "\n")
            for file in (self._out, self._err)
        )
        return out, "" if self._out == self._err else err

    def send_signal(self, number: int) -> None:
        """Send it a signal, where it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


@cache
def server_address() -> str:
    """The socket of this process's server, which is started at the first call and ends with it."""
    folder = tempfile.TemporaryDirectory(prefix="forked-")
    address = f"{folder.name}/socket"
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__)), address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "PYTHONWARNINGS": "",
            "HF_HUB_OFFLINE": "1",
        },
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    def end() -> None:
        for stream in (server.stdin, server.stdout):
            if stream is not None:
                stream.close()
        server.wait()
        folder.cleanup()

    atexit.register(end)
    return address


def sent_request(
    address: str, request: Mapping[str, Any], files: Sequence[int]
) -> socket.socket:
    """The connection on which the server says the process's id, and then its exit code."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    socket.send_fds(connection, [b"\n"], files)
    connection.sendall(json.dumps(request).encode() + b"\n")
    return connection


CLIENT = '''\
#!{python} -ISE
"""Has the server run `python {words} ARGUMENTS`, with the streams of this process."""
import json, os, signal, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
socket.send_fds(connection, [b"\\n"], [0, 1, 2])
request = {{"arguments": [*{words!r}, *sys.argv[1:]], "folder": os.getcwd(), "environment": dict(os.environ)}}
connection.sendall(json.dumps(request).encode() + b"\\n")
for name in ("SIGINT", "SIGTERM"):
    signal.signal(getattr(signal, name), lambda number, _: os.kill(pid, number))
with connection.makefile("r") as replies:
    pid = int(replies.readline())
    code = int(replies.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if code != -9 else None
    os.kill(os.getpid(), -code)
os._exit(code)
'''


def write_command(path: Path, *words: str) -> None:
    """A command for scripts that stands for `python WORDS ARGUMENTS`."""
    path.write_text(
        CLIENT.format(python=sys.executable, words=words, address=server_address())
    )
    path.chmod(0o755)


def forked(
    arguments: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> tuple[int, str]:
    """`python ARGUMENTS` in a folder: its exit code, and what it printed on both streams."""
    process = ForkedProcess(arguments, folder, variables, is_one_stream=True)
    printed, _ = process.communicate()
    return process.wait(), printed


def serve(address: str) -> None:
    """Fork for each request, until standard input is closed."""
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("evalwright.models.remote.providers").names()  # reads them
    gc.collect()
    gc.freeze()
    assert threading.active_count() == 1
    ended, wake = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    connections: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as ready:
        listener.bind(address)
        listener.listen(64)
        for file in (listener.fileno(), ended, 0):
            ready.register(file, selectors.EVENT_READ)
        os.write(1, b"ready\n")
        while True:
            keys = {key.fd for key, _ in ready.select()}
            if 0 in keys:
                return
            if listener.fileno() in keys:
                _fork(listener, connections, [ended, wake])
            if ended in keys:
                os.read(ended, 65536)
                _tell_exit_codes(connections)


def _fork(
    listener: socket.socket, connections: dict[int, socket.socket], pipe: list[int]
) -> None:
    connection, _ = listener.accept()
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        request = json.loads(lines.readline())
    pid = os.fork()
    if pid:
        connections[pid] = connection
        connection.sendall(f"{pid}\n".encode())
        for file in files:
            os.close(file)
        return
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for inherited in (listener, connection, *connections.values()):
        inherited.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in (*files, *pipe):
        os.close(file)
    _become(request)


def _tell_exit_codes(connections: dict[int, socket.socket]) -> None:
    while connections:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with connections.pop(pid) as connection:
            try:
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            except BrokenPipeError:
                pass  # nobody waits for it


def _become(request: Mapping[str, Any]) -> NoReturn:
    """Run the program in this process, as an interpreter does."""
    code = 1
    try:
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        code = _exit_code(request["arguments"])
    except BaseException:
        traceback.print_exc()
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _exit_code(arguments: list[str]) -> int:
    try:
        _run_program(list(arguments))
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 0xFF
        print(ended.code, file=sys.stderr)
        return 1
    return 0


def _run_program(words: list[str]) -> None:
    filters = os.environ.get("PYTHONWARNINGS", "").split(",")
    while words and words[0] in OPTIONS_WITH_A_WORD:
        filters.append(words[1])
        del words[:2]
    for action in filter(None, filters):
        assert action in ("error", "default"), action
        warnings.simplefilter(action)
    first, *remaining = words
    inherited = [path for path in sys.path if path not in (str(ROOT / "src"), *_OURS)]
    on_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [os.getcwd(), *filter(None, on_path), *inherited]
    if first == "-m":
        sys.argv = remaining
        runpy.run_module(remaining[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *remaining[1:]]
        sys.path[0] = ""
        module = ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(remaining[0], "<string>", "exec"), module.__dict__)
    else:
        sys.argv = words
        sys.path[0] = str(Path(first).resolve().parent)
        runpy.run_path(first, run_name="__main__")


_OURS = (str(Path(__file__).parent),)

if __name__ == "__main__":
    serve(sys.argv[1])
