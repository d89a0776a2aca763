"""A program of tests that has imported what commands import, and forks for each of them.

On a socket it gets a program's arguments, folder, environment and streams, and says its process id
and, at its end, its exit code. `support.forked` has the other side.
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
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

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
SOURCE = Path(__file__).resolve().parents[2] / "src"
OPTIONS_WITH_A_WORD = ("-W", "-X")


def serve(address: str) -> None:
    """Fork for each request, until standard input is closed."""
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("evalwright.models.remote.providers").names()  # reads them
    gc.collect()
    gc.freeze()
    assert threading.active_count() == 1
    # Settings that are read once, when it is imported: a test's own hold.
    assert "huggingface_hub.constants" not in sys.modules
    ended, wake = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    connections: dict[int, socket.socket] = {}
    with (
        socket.socket(socket.AF_UNIX) as listener,
        selectors.DefaultSelector() as ready,
    ):
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
        code = os.waitstatus_to_exitcode(status)
        # Perhaps nobody waits for it.
        with connections.pop(pid) as connection, suppress(BrokenPipeError):
            connection.sendall(f"{code}\n".encode())


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
        assert action == "error", action
        warnings.simplefilter("error")
    first, *remaining = words
    on_path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    assert str(SOURCE) in on_path, f"what is imported here is of {SOURCE}"
    for path in on_path:
        name = Path(path, "sitecustomize.py")
        assert not name.exists(), f"an interpreter that starts would import {name}"
    inherited = [path for path in sys.path if path not in on_path]
    sys.path[:] = [str(Path.cwd()), *filter(None, on_path), *inherited]
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


if __name__ == "__main__":
    del sys.path[0]  # this folder
    serve(sys.argv[1])
