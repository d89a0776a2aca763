"""Commands and programs in processes of their own that need no interpreter to start.

A server (`fork_server`) that has imported what commands import forks for each of them. What a process is to others
stays as it is: an id, a folder, an environment, pipes, signals and an exit code of its own. Where
the start itself is what a test is about, it starts a real one (`support.command`).
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from support.command import ROOT, environment

SERVER = Path(__file__).with_name("fork_server.py")
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
        with Path(os.devnull).open("rb") as nothing:
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
                    piece = os.read(key.fd, 65536)
                    parts[key.fd].append(piece)
                    if not piece:
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
        [sys.executable, str(SERVER), address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment({"PYTHONWARNINGS": ""}),
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
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` in a folder to its end, as `subprocess.run` does."""
    process = ForkedProcess(arguments, folder, variables)
    out, err = process.communicate()
    return subprocess.CompletedProcess(list(arguments), process.wait(), out, err)


def forked_as_one(
    arguments: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> tuple[int, str]:
    """As `forked`: the exit code, and what it printed on both streams as one."""
    process = ForkedProcess(arguments, folder, variables, is_one_stream=True)
    printed, _ = process.communicate()
    return process.wait(), printed


SESSION = """\
import os, sys
os.setsid()
from evalwright.cli import main
sys.exit(main(sys.argv[1:]))
"""


def start_session(
    arguments: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> ForkedProcess:
    """Start `evalwright` at the head of a process group, its streams as one."""
    return ForkedProcess(
        ["-c", SESSION, *arguments], folder, variables, is_one_stream=True
    )


def start_forked(
    arguments: Sequence[str], folder: Path, extra: Mapping[str, str] | None = None
) -> ForkedProcess:
    """Start `evalwright` in `folder`, as `support.command.start` does."""
    return ForkedProcess(["-m", "evalwright", *arguments], folder, environment(extra))
