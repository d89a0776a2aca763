"""The door of a container to this process: a socket in a private folder, and what forwards to it.

The folder is mounted read-only, so nothing inside can put anything on this machine. In the
container, a forwarder listens on its loopback interface and connects each caller to the socket.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
from pathlib import Path

MOUNT = "/run/evalwright"
"""The folder in the container that has the socket."""
_SOCKET_NAME = "door"
_BACKLOG = 128
_LOWEST_PORT = 20_000
_PORTS = 20_000

_PYTHON_FORWARDER = """
import socket, sys, threading
port, path = int(sys.argv[1]), sys.argv[2]
def copy(source, target):
    try:
        while chunk := source.recv(65536):
            target.sendall(chunk)
    except OSError:
        pass
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
def serve(caller):
    with caller, socket.socket(socket.AF_UNIX) as door:
        try:
            door.connect(path)
        except OSError:
            return
        back = threading.Thread(target=copy, args=(door, caller), daemon=True)
        back.start()
        copy(caller, door)
        back.join()
listener = socket.create_server(("127.0.0.1", port), backlog=128)
print("ready", flush=True)
while True:
    caller, _ = listener.accept()
    threading.Thread(target=serve, args=(caller,), daemon=True).start()
"""

FORWARD_SCRIPT = """
if command -v python3 >/dev/null 2>&1; then exec python3 -I -S -c "$3" "$1" "$2"; fi
if command -v socat >/dev/null 2>&1; then
  echo ready
  exec socat "TCP-LISTEN:$1,bind=127.0.0.1,fork,reuseaddr" "UNIX-CONNECT:$2"
fi
echo none
"""
"""What starts a forwarder: its arguments are the port, the socket and the program in Python."""


class Door:
    """A folder of this machine with a socket that a container reaches."""

    def __init__(self) -> None:
        # The outer folder is this user's alone; the inner one is what the container sees.
        self._outer = Path(tempfile.mkdtemp(prefix="evalwright-door-"))
        self.folder = self._outer / "inside"
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.port = 0
        self._listener: socket.socket | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a socket."""
        return self._listener is not None

    @property
    def mount_flag(self) -> str:
        """The flag of `run` that mounts the folder."""
        return f"--mount=type=bind,source={self.folder},target={MOUNT},readonly"

    def listen(self) -> socket.socket:
        """Open the socket and choose the port that programs inside connect to."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        path = self.folder / _SOCKET_NAME
        path.unlink(missing_ok=True)
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        self._listener = listener
        self.port = _LOWEST_PORT + secrets.randbelow(_PORTS)
        return listener

    def forward_command(self) -> list[str]:
        """Return the command that forwards, to be run in the container; it prints "ready"."""
        return [
            "sh",
            "-c",
            FORWARD_SCRIPT,
            "sh",
            str(self.port),
            f"{MOUNT}/{_SOCKET_NAME}",
            _PYTHON_FORWARDER,
        ]

    def close(self) -> None:
        """Close the socket and remove the folder."""
        if self._listener is not None:
            self._listener.close()
        shutil.rmtree(self._outer, ignore_errors=True)


def reaches_this_machine() -> bool:
    """Tell whether the engine runs on this machine, so that a folder of it can be mounted."""
    for variable in ("DOCKER_HOST", "CONTAINER_HOST"):
        address = os.environ.get(variable, "")
        if address and not address.startswith("unix:"):
            return False
    return os.uname().sysname == "Linux"
