"""Sandboxes without a container: namespaces, resource limits and a filter of system calls.

    backend = JailBackend()
    sandbox = await backend.start(SandboxSettings(), folder)

`jail_starter` is one process for all jails of this process; each jail has a keeper (`jail_keeper`)
that this module talks to over a socket. What a jail protects against is in docs/sandboxes.md.
"""

from __future__ import annotations

import array
import asyncio
import atexit
import contextlib
import errno
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.sandboxes.protocol import (
    Executed,
    Sandbox,
    SandboxBackend,
    SandboxFailed,
    SandboxPathError,
    SandboxSettings,
    Snapshot,
    SnapshotMissing,
)
from evalwright.sandboxes.snapshots import SnapshotFile, open_snapshot, remove_snapshot

ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "LOGNAME": "root",
    "PATH": "/opt/python/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    "SHELL": "/bin/bash",
    "TAR_OPTIONS": "--no-same-owner",  # root without capabilities gives files to nobody
    "TERM": "dumb",
    "USER": "root",
}
"""Variables of every command in a jail."""
READ_ONLY_OPTION = "read_only"
_FRAME = struct.Struct(">II")
_STARTER = Path(__file__).with_name("jail_starter.py")
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_SEND_SECONDS = 30.0
_PIECE_BYTES = 1 << 18
_INLINE_BYTES = 1 << 20
"""Larger files are read and written in a thread."""
_DESCRIPTORS = 4
_ADVICE = "Use a container instead: `backend: docker` or `backend: podman`."
_NEVER_SHARED = ("/proc", "/sys", "/dev", "/etc", "/run", "/var/run")
_SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt/python")


class JailBackend(SandboxBackend):
    """Sandboxes of namespaces on this Linux machine, without network or image."""

    name = "jail"

    def refuses(self, settings: SandboxSettings) -> str:
        if settings.image:
            return f"A jail has no images, but the task names '{settings.image}'. {_ADVICE}"
        if settings.network:
            return f"Programs in a jail have no network, which the task asks for. {_ADVICE}"
        problem = _problem_of_options(settings)
        if problem:
            return problem
        if sys.platform != "linux":
            return f"Jails are there only on Linux. {_ADVICE}"
        missing = _starter().missing
        if missing:
            return f"This machine cannot give a jail: {missing}. {_ADVICE}"
        return ""

    def has(self, folder: Path, snapshot: Snapshot) -> bool:
        """Return whether a snapshot's file is in the folder, with all its bytes."""
        try:
            descriptor = open_snapshot(folder, snapshot)
        except SnapshotMissing:
            return False
        try:
            return os.fstat(descriptor).st_size == snapshot.n_bytes
        finally:
            os.close(descriptor)

    async def start(
        self,
        settings: SandboxSettings,
        folder: Path,
        snapshot: Snapshot | None = None,
    ) -> Sandbox:
        shared = _shared_folders(settings, folder)
        starter = await asyncio.to_thread(_starter)
        if starter.missing:
            raise SandboxFailed(
                f"This machine cannot give a jail: {starter.missing}. {_ADVICE}"
            )
        plan: dict[str, Any] = {
            "limits": settings.as_dict()["limits"],
            "folder": settings.folder,
            "read_only": shared,
            "has_snapshot": snapshot is not None,
            "digest": snapshot.reference if snapshot else "",
        }
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno()]
        try:
            if snapshot is not None:
                descriptors.append(open_snapshot(folder, snapshot))
            starter.send(plan, descriptors)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            for descriptor in descriptors[1:]:
                os.close(descriptor)
        sandbox = JailSandbox(settings, folder, ours)
        try:
            await sandbox.wait_until_ready(snapshot)
        except BaseException as error:
            if isinstance(error, SnapshotMissing) and snapshot is not None:
                # Kept, it would be taken for the state again by every later run.
                remove_snapshot(folder, snapshot)
            await sandbox.stop()
            raise
        return sandbox


class JailSandbox(Sandbox):
    """A started jail.

    Args:
        settings: what it was started as.
        folder: where its snapshots are stored.
        line: the socket to its keeper.
    """

    def __init__(
        self, settings: SandboxSettings, folder: Path, line: socket.socket
    ) -> None:
        self.settings = settings
        self._folder = folder
        self._line = line
        self._loop = asyncio.get_running_loop()
        self._requests = 0
        self._waiting: dict[int, asyncio.Future[_Reply]] = {}
        self._ready: asyncio.Future[_Reply] = self._loop.create_future()
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._incoming = bytearray()
        self._received: deque[int] = deque()
        self._outgoing: deque[tuple[memoryview, list[int]]] = deque()
        self._doors: list[socket.socket] = []
        self._is_stopped = False
        line.setblocking(False)
        self._loop.add_reader(line.fileno(), self._read_line)

    async def wait_until_ready(self, snapshot: Snapshot | None) -> None:
        """Wait until the keeper has built the jail.

        Raises:
            SandboxFailed: it could not be built.
            SnapshotMissing: the snapshot is damaged.
        """
        try:
            reply = await asyncio.wait_for(asyncio.shield(self._ready), _START_SECONDS)
        except TimeoutError:
            raise SandboxFailed(
                f"A jail was not ready within {_START_SECONDS:g} seconds. Run fewer at a"
                " time (EVALWRIGHT_SANDBOXES)."
            ) from None
        if reply.head["ready"]:
            return
        why = str(reply.head["why"])
        if reply.head["damaged"] and snapshot is not None:
            raise SnapshotMissing(
                f"The snapshot {snapshot.reference} of a sandbox is damaged ({why})."
                " Run the sample again."
            )
        raise SandboxFailed(f"A jail could not be started: {why}.")

    async def exec(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds: float | None = None,
        folder: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Executed:
        variables = {
            **ENVIRONMENT,
            **self.settings.environment,
            **(environment or {}),
        }
        argv = list(command)
        if not argv or any("\0" in text for text in [*argv, *variables.values()]):
            message = b"a command has at least one word, and no NUL\n"
            return Executed(126, stderr=message)
        limit = self.settings.limits.seconds if seconds is None else seconds
        head = {
            "do": "exec",
            "argv": argv,
            "environment": variables,
            "folder": folder or self.settings.folder,
            "seconds": limit,
        }
        reply = await self._ask(head, stdin)
        if "error" in reply.head:
            raise SandboxFailed(
                f"A command could not be started in a jail: {reply.head['error']}."
            )
        n_stdout = reply.head["stdout_bytes"]
        return Executed(
            exit_code=reply.head["exit_code"],
            stdout=reply.body[:n_stdout],
            stderr=reply.body[n_stdout:],
            ended_by=reply.head["ended_by"],
            seconds=reply.head["seconds"],
            dropped_bytes=reply.head["dropped_bytes"],
        )

    async def read(self, path: str, max_bytes: int) -> bytes:
        descriptor = await self._open({"do": "open", "path": path, "mode": "read"})
        try:
            if min(max_bytes, os.fstat(descriptor).st_size) <= _INLINE_BYTES:
                return _read_all(descriptor, max_bytes)
            return await asyncio.to_thread(_read_all, descriptor, max_bytes)
        except OSError as error:
            raise SandboxPathError(f"{path}: {error.strerror}") from None
        finally:
            os.close(descriptor)

    async def write(
        self, path: str, content: bytes, *, is_executable: bool = False
    ) -> None:
        head = {"do": "open", "path": path, "mode": "write"}
        descriptor = await self._open({**head, "is_executable": is_executable})
        try:
            if len(content) <= _INLINE_BYTES:
                _write_all(descriptor, content)
            else:
                await asyncio.to_thread(_write_all, descriptor, content)
        except OSError as error:
            raise SandboxPathError(f"{path}: {error.strerror}") from None
        finally:
            os.close(descriptor)

    async def snapshot(self) -> Snapshot:
        stored = await asyncio.to_thread(SnapshotFile, self._folder)
        try:
            reply = await self._ask({"do": "snapshot"}, descriptors=[stored.descriptor])
            if "error" in reply.head:
                raise SandboxFailed(
                    "The state of a jail cannot be stored in"
                    f" {self._folder}: {reply.head['error']}."
                )
            reference = str(reply.head["digest"])
            return await asyncio.to_thread(stored.publish, JailBackend.name, reference)
        finally:
            stored.close()

    async def count_processes(self) -> int | None:
        reply = await self._ask({"do": "count"})
        return reply.head.get("processes")

    async def listen(self) -> tuple[socket.socket, str]:
        reply = await self._ask({"do": "listen"})
        if "error" in reply.head or not reply.descriptors:
            raise SandboxFailed(
                f"No door could be opened in a jail: {reply.head.get('error')}."
            )
        door = socket.socket(fileno=reply.descriptors.pop())
        self._doors.append(door)
        return door, f"http://127.0.0.1:{reply.head['port']}"

    async def stop(self) -> None:
        if not self._is_stopped:
            self._is_stopped = True
            for door in self._doors:
                door.close()
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)
        try:
            await asyncio.wait_for(asyncio.shield(self._gone), _STOP_SECONDS)
        except TimeoutError:
            self._end("the keeper of the jail did not end")

    async def _open(self, head: dict[str, Any]) -> int:
        reply = await self._ask(head)
        if "error" in reply.head or not reply.descriptors:
            raise SandboxPathError(
                f"{head['path']}: {reply.head.get('error')}",
                is_missing=reply.head.get("errno") in (errno.ENOENT, errno.ENOTDIR),
            )
        descriptor = reply.descriptors.pop()
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise SandboxPathError(f"{head['path']}: it is not a file")
        os.set_blocking(descriptor, True)
        return descriptor

    # The line to the keeper.

    async def _ask(
        self,
        head: dict[str, Any],
        body: bytes = b"",
        descriptors: Sequence[int] = (),
    ) -> _Reply:
        """Send a request and wait for its reply; where the caller gives up, so does the keeper."""
        if self._is_stopped or self._gone.done():
            raise SandboxFailed("This sandbox is no longer there: it was stopped.")
        self._requests += 1
        request = self._requests
        future: asyncio.Future[_Reply] = self._loop.create_future()
        self._waiting[request] = future
        self._send({**head, "id": request}, body, descriptors)
        try:
            return await future
        except asyncio.CancelledError:
            if head["do"] == "exec" and not self._gone.done():
                self._send({"do": "cancel", "of": request, "id": 0})
            raise
        finally:
            self._waiting.pop(request, None)

    def _send(
        self, head: dict[str, Any], body: bytes = b"", descriptors: Sequence[int] = ()
    ) -> None:
        text = json.dumps(head).encode()
        frame = memoryview(_FRAME.pack(len(text), len(body)) + text + body)
        self._outgoing.append((frame, [os.dup(number) for number in descriptors]))
        self._flush()

    def _flush(self) -> None:
        while self._outgoing:
            frame, descriptors = self._outgoing[0]
            try:
                if descriptors:
                    n_sent = socket.send_fds(self._line, [frame], descriptors)
                else:
                    n_sent = self._line.send(frame)
            except BlockingIOError:
                self._loop.add_writer(self._line.fileno(), self._flush)
                return
            except OSError as error:
                self._end(f"its keeper ended ({error.strerror})")
                return
            for descriptor in descriptors:
                os.close(descriptor)
            self._outgoing.popleft()
            if n_sent < len(frame):
                self._outgoing.appendleft((frame[n_sent:], []))
        self._loop.remove_writer(self._line.fileno())

    def _read_line(self) -> None:
        space = socket.CMSG_SPACE(_DESCRIPTORS * array.array("i").itemsize)
        try:
            piece, ancillary, _, _ = self._line.recvmsg(
                _PIECE_BYTES, space, socket.MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            piece, ancillary = b"", []
        for level, kind, packed in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                numbers = array.array("i")
                numbers.frombytes(
                    packed[: len(packed) - len(packed) % numbers.itemsize]
                )
                self._received.extend(numbers)
        if not piece:
            self._end("all of it ended, which no command inside can bring about")
            return
        self._incoming += piece
        while len(self._incoming) >= _FRAME.size:
            head_bytes, body_bytes = _FRAME.unpack_from(self._incoming)
            head_end = _FRAME.size + head_bytes
            if len(self._incoming) < head_end + body_bytes:
                return
            head = json.loads(bytes(self._incoming[_FRAME.size : head_end]))
            body = bytes(self._incoming[head_end : head_end + body_bytes])
            del self._incoming[: head_end + body_bytes]
            self._take(head, body)

    def _take(self, head: dict[str, Any], body: bytes) -> None:
        """Give a reply to whoever waits for it."""
        descriptors = [self._received.popleft() for _ in range(head.get("files", 0))]
        reply = _Reply(head, body, descriptors)
        future = self._ready if "ready" in head else self._waiting.get(head["id"])
        if future is None or future.done():
            reply.close()
            return
        future.set_result(reply)

    def _end(self, why: str) -> None:
        """Let go of the line, and fail every request that waits."""
        if self._gone.done():
            return
        self._gone.set_result(None)
        self._loop.remove_reader(self._line.fileno())
        self._loop.remove_writer(self._line.fileno())
        self._line.close()
        for _, descriptors in self._outgoing:
            for descriptor in descriptors:
                os.close(descriptor)
        self._outgoing.clear()
        while self._received:
            os.close(self._received.popleft())
        if self._is_stopped:
            why = "it was stopped"
        if not self._ready.done():
            head = {"ready": False, "damaged": False, "why": why}
            self._ready.set_result(_Reply(head, b"", []))
        failure = f"This sandbox is no longer there: {why}."
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SandboxFailed(failure))


class _Reply:
    """A reply of the keeper."""

    def __init__(
        self, head: dict[str, Any], body: bytes, descriptors: list[int]
    ) -> None:
        self.head = head
        self.body = body
        self.descriptors = descriptors

    def close(self) -> None:
        """Close what came with a reply that nobody waits for any more."""
        for descriptor in self.descriptors:
            os.close(descriptor)


class _Starter:
    """The process that starts jails; this process has only one."""

    def __init__(self) -> None:
        self.process_number = os.getpid()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.missing = self._start(theirs)
        if self.missing:
            self.close()
        else:
            self._control.settimeout(_SEND_SECONDS)

    def _start(self, theirs: socket.socket) -> str:
        """Start the process, and return what this machine lacks; "" if it lacks nothing."""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(_STARTER)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
            theirs.close()
            self._control.settimeout(_START_SECONDS)
            text = self._control.recv(65536)
            report = json.loads(text or b'{"missing": "the starter of jails ended"}')
        except (OSError, ValueError) as error:
            return f"the starter of jails gave no answer ({error})"
        return str(report["missing"])

    @property
    def is_running(self) -> bool:
        """Whether it can start jails."""
        if self.process_number != os.getpid():
            return False
        return (
            self._process is None or bool(self.missing) or self._process.poll() is None
        )

    def send(self, plan: dict[str, Any], descriptors: Sequence[int]) -> None:
        """Have a jail started.

        Raises:
            SandboxFailed: the starter has ended.
        """
        try:
            with self._lock:
                message = [json.dumps(plan).encode()]
                socket.send_fds(self._control, message, list(descriptors))
        except OSError as error:
            raise SandboxFailed(
                f"A jail could not be started: the starter of jails ended ({error})."
            ) from None

    def close(self) -> None:
        """End the starter, and all jails with it."""
        self._control.close()
        if self._process is None or self.process_number != os.getpid():
            return
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_starter_lock = threading.Lock()
_started: _Starter | None = None


def _starter() -> _Starter:
    """Return this process's starter; it is started on first use, and again if it has ended."""
    global _started
    with _starter_lock:
        if _started is None or not _started.is_running:
            if _started is None:
                atexit.register(_close_starter)
            else:
                _started.close()
            _started = _Starter()
        return _started


def _close_starter() -> None:
    if _started is not None:
        _started.close()


def _problem_of_options(settings: SandboxSettings) -> str:
    """Return what is wrong with a jail's options, in a sentence; "" if nothing is."""
    unknown = set(settings.options) - {READ_ONLY_OPTION}
    if unknown:
        names = ", ".join(sorted(map(str, unknown)))
        return f"A jail has no option {names}; it has `{READ_ONLY_OPTION}`, a list of folders."
    folders = settings.options.get(READ_ONLY_OPTION, [])
    is_list = isinstance(folders, list | tuple)
    if not is_list or not all(isinstance(folder, str) for folder in folders):
        return f"`{READ_ONLY_OPTION}` of a jail is a list of folders of this machine."
    if not settings.folder.startswith("/") or "\0" in settings.folder:
        return f"The folder of a sandbox is an absolute path, not '{settings.folder}'."
    return ""


def _shared_folders(settings: SandboxSettings, folder: Path) -> list[str]:
    """Return the folders of this machine that the jail shows, checked.

    Raises:
        SandboxFailed: one cannot be shown.
    """
    home = os.path.realpath(folder.parent.parent)
    shared = []
    for path in settings.options.get(READ_ONLY_OPTION, []):
        real = os.path.realpath(Path(path).expanduser())
        forbidden = [*_NEVER_SHARED, home]
        is_forbidden = any(_is_within(real, parent) for parent in forbidden)
        is_forbidden |= any(_is_within(parent, real) for parent in forbidden)
        if is_forbidden:
            raise SandboxFailed(
                f"A jail does not show the folder {path}: it is, has in it or is in one"
                f" of {', '.join(_NEVER_SHARED)} and the home folder of the run."
            )
        is_local = _is_within(real, "/usr/local")
        is_system = any(_is_within(real, parent) for parent in _SYSTEM_FOLDERS)
        if is_system and not is_local:
            continue  # it is there already
        if not Path(real).exists():
            raise SandboxFailed(
                f"A jail cannot show the folder {path}: there is none on this machine."
            )
        shared.append(real)
    return shared


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _read_all(descriptor: int, max_bytes: int) -> bytes:
    pieces = []
    while max_bytes > 0:
        piece = os.read(descriptor, min(max_bytes, _PIECE_BYTES))
        if not piece:
            break
        pieces.append(piece)
        max_bytes -= len(piece)
    return b"".join(pieces)


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
