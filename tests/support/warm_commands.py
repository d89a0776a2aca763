"""Starts commands as copies of a process that has imported evalwright already.

Each command is a process of its own, with its arguments, folder, environment, clock and standard
streams. What it saves is half a second of imports, which a test of hundreds of commands feels. A
command that imported something new says so, and the next copies have it.
"""

from __future__ import annotations

import array
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGE = "evalwright"
MAX_MESSAGE_BYTES = 1_000_000
N_STREAMS = 3
CLIENT = '''\
#!{python} -IS
"""`evalwright`, run by a process that has imported it: the same arguments, streams and folder."""
import array, json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
command = {{"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
text = json.dumps(command).encode() + b"\\n"
streams = array.array("i", [0, 1, 2])
sent = server.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
server.sendall(text[sent:])
reply = server.recv(20)
sys.exit(int(reply) if reply else 70)
'''


@contextmanager
def warm_command(file: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Write a script that stands for `evalwright`, and keep the process it needs.

    Args:
        file: the script.
        environment: of the process; commands have that of whoever calls the script.
    """
    # Addresses of sockets are short, and folders of tests are not.
    address = f"\0evalwright-{os.getpid()}-{id(file)}"
    file.write_text(CLIENT.format(python=sys.executable, address=address))
    file.chmod(0o755)
    arguments = [sys.executable, "-m", "support.warm_commands", address[1:]]
    with subprocess.Popen(
        arguments,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


def serve(address: str) -> int:
    """Answer calls, one after another; in the copy for a command, return its exit code."""
    importlib.import_module(f"{PACKAGE}.cli")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{address}")
    listener.listen()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        command, streams = _receive(connection)
        modules_reader, modules_writer = os.pipe()
        child = os.fork()
        if child == 0:
            listener.close()
            connection.close()
            os.close(modules_reader)
            return _run(command, streams, modules_writer)
        os.close(modules_writer)
        for stream in streams:
            os.close(stream)
        with os.fdopen(modules_reader) as modules:
            names = modules.read().split()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        connection.sendall(str(code if code >= 0 else 128 - code).encode())
        connection.close()
        for name in names:
            importlib.import_module(name)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    streams = array.array("i")
    size = socket.CMSG_SPACE(N_STREAMS * streams.itemsize)
    content, ancillary, _, _ = connection.recvmsg(MAX_MESSAGE_BYTES, size)
    for _, _, raw in ancillary:
        streams.frombytes(raw[: len(raw) - len(raw) % streams.itemsize])
    while not content.endswith(b"\n"):
        content += connection.recv(MAX_MESSAGE_BYTES)
    return json.loads(content), list(streams)


def _run(command: Mapping[str, Any], streams: list[int], modules_writer: int) -> int:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _set_clock()
    before = set(sys.modules)
    from evalwright.cli import main

    try:
        return main(command["arguments"])
    finally:
        new = sorted(name for name in set(sys.modules) - before if _is_ours(name))
        os.write(modules_writer, "\n".join(new).encode())
        os.close(modules_writer)


def _is_ours(name: str) -> bool:
    return name.startswith(f"{PACKAGE}.") and name in sys.modules


def _set_clock() -> None:
    """Move the simulated clock, where there is one, to the command's day."""
    clock = sys.modules.get("sitecustomize")
    if clock is not None and hasattr(clock, "set_day"):
        clock.set_day(os.environ["SIMULATED_DAY"])


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1]))
