"""What a sandbox is: a few calls, the same for every backend, with limits on all that is used.

    sandbox = await backend.start(settings, folder)
    await sandbox.write("/work/app.py", b"print(1)")
    executed = await sandbox.exec(["python3", "app.py"])
    snapshot = await sandbox.snapshot()
    await sandbox.stop()

Who runs out of a limit is the program inside: its result says so. A sandbox that cannot be started,
or no longer be used, raises `SandboxFailed`: the sample is then missing, by no fault of the model.
"""

from __future__ import annotations

import json
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, Self

from evalwright.core.errors import Failure, RequestFailed

WORK_FOLDER = "/work"
"""The folder in which commands start, unless a task says otherwise."""
_COUNT_SECONDS = 10.0
_COUNT_PROCESSES = "n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; echo $n"
EndedBy = Literal["", "seconds", "memory", "output", "processes", "disk"]
"""The limit that ended a command; "" if none did."""


class SandboxFailed(RequestFailed):
    """A sandbox cannot be started, or no longer be used.

    Args:
        message: what happened and what to do, in sentences.
    """

    def __init__(self, message: str) -> None:
        super().__init__(Failure("sandbox failed", "sandbox", message))


class SandboxPathError(ValueError):
    """A path in a sandbox cannot be read or written; the message is for the model.

    Args:
        message: what is wrong.
        is_missing: whether nothing is at the path; a folder or a pipe is something.
    """

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What programs in a sandbox may use.

    Args:
        seconds: wall time of one command, unless its caller gives another.
        memory_mb: memory of all processes together, in MiB.
        processes: processes and threads at a time.
        disk_mb: what may be written, in MiB.
        output_kb: output of one command that is kept, in KiB; more is read, dropped and counted.
    """

    seconds: float = 60.0
    memory_mb: int = 1024
    processes: int = 128
    disk_mb: int = 256
    output_kb: int = 1024


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """Which sandbox a task wants.

    Args:
        backend: its registered name, such as "jail", "docker" or "podman".
        image: the image of a container, by digest; "" for backends without images.
        network: whether programs reach the network. Only containers may.
        folder: where commands start; it exists.
        environment: variables of every command, over the backend's own few.
        limits: what programs may use.
        options: further settings of the backend.
    """

    backend: str = "jail"
    image: str = ""
    network: bool = False
    folder: str = WORK_FOLDER
    environment: Mapping[str, str] = field(default_factory=dict)
    limits: SandboxLimits = SandboxLimits()
    options: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        limits = {name: getattr(self.limits, name) for name in SandboxLimits.__slots__}
        return {
            "backend": self.backend,
            "image": self.image,
            "network": self.network,
            "folder": self.folder,
            "environment": dict(self.environment),
            "limits": limits,
            "options": dict(self.options),
        }

    @property
    def fingerprint(self) -> str:
        """A digest of everything that can change what a command does."""
        text = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=False)
        return blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest()


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of a command.

    Attributes:
        exit_code: of the command; 128 + N where the signal N ended it.
        stdout: the kept beginning and end of its output.
        stderr: likewise of its errors.
        ended_by: the limit that ended it, "" if it ended by itself.
        seconds: wall time.
        dropped_bytes: output that was not kept.
    """

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""
    ended_by: EndedBy = ""
    seconds: float = 0.0
    dropped_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a sandbox's files at a moment.

    Attributes:
        backend: the backend that can start from it.
        reference: the backend's name for it, a digest of the content where it can be.
        n_bytes: its size, as stored.
    """

    backend: str
    reference: str
    n_bytes: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        return {
            "backend": self.backend,
            "reference": self.reference,
            "n_bytes": self.n_bytes,
        }

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> Self:
        """Rebuild the snapshot from what `as_dict` wrote."""
        return cls(
            str(recorded["backend"]),
            str(recorded["reference"]),
            int(recorded.get("n_bytes", 0)),
        )


class Sandbox(ABC):
    """A started sandbox.

    Paths are absolute, or relative to the settings' folder. Nothing that runs inside can change
    what these calls do outside: a link inside a path is followed inside only.
    """

    settings: SandboxSettings

    @abstractmethod
    async def exec(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds: float | None = None,
        folder: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Executed:
        """Run a command to its end, and wait for it.

        Processes that it leaves behind go on until the sandbox stops, within its limits.

        Args:
            command: the program with its arguments; no shell reads it.
            stdin: its input.
            seconds: most seconds of wall time; None for the settings'.
            folder: where it starts; "" for the settings' folder.
            environment: further variables.

        Raises:
            SandboxFailed: the sandbox can no longer be used.
        """

    @abstractmethod
    async def read(self, path: str, max_bytes: int) -> bytes:
        """Return a file's content, or its first `max_bytes`.

        Raises:
            SandboxPathError: there is no such file, or it is none.
            SandboxFailed: the sandbox can no longer be used.
        """

    @abstractmethod
    async def write(
        self, path: str, content: bytes, *, is_executable: bool = False
    ) -> None:
        """Write a file, and make the folders to it.

        Raises:
            SandboxPathError: it cannot be written, or the disk is full.
            SandboxFailed: the sandbox can no longer be used.
        """

    @abstractmethod
    async def snapshot(self) -> Snapshot:
        """Keep the state of the files, in the folder that the sandbox was started with.

        Running processes are not part of it. Equal states may give the same reference.

        Raises:
            SandboxFailed: it cannot be kept.
        """

    @abstractmethod
    async def listen(self) -> tuple[socket.socket, str]:
        """Open a door from inside to this process, and to nothing else.

        Returns:
            A listening socket of this process, and the address that programs inside connect to,
            such as "http://127.0.0.1:8080". The sandbox closes the socket when it stops.

        Raises:
            SandboxFailed: the backend cannot.
        """

    async def count_processes(self) -> int | None:
        """Count the processes inside, among them what counts them; None where that is not known.

        A count above that of a new sandbox says that earlier commands left some.

        Raises:
            SandboxFailed: the sandbox can no longer be used.
        """
        executed = await self.exec(
            ["bash", "-c", _COUNT_PROCESSES], seconds=_COUNT_SECONDS
        )
        digits = executed.stdout.decode("utf-8", "replace").strip()
        return int(digits) if digits.isdecimal() and len(digits) < 9 else None

    @abstractmethod
    async def stop(self) -> None:
        """End every process inside and remove all files. It may be called twice."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


class SandboxBackend(ABC):
    """A kind of sandbox."""

    name: str = ""

    @abstractmethod
    def refuses(self, settings: SandboxSettings) -> str:
        """Return why it cannot give such a sandbox on this machine, in a sentence; "" if it can."""

    @abstractmethod
    async def start(
        self,
        settings: SandboxSettings,
        folder: Path,
        snapshot: Snapshot | None = None,
    ) -> Sandbox:
        """Start a sandbox.

        Args:
            settings: what it is to be.
            folder: a private folder of this machine for snapshots; it need not exist.
            snapshot: the state to begin with; None for an empty one.

        Raises:
            SandboxFailed: it cannot be started.
            SnapshotMissing: the snapshot is not here, or damaged.
        """

    def has(self, folder: Path, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is on this machine, as far as a look can tell.

        Args:
            folder: the folder that it was kept in.
            snapshot: the snapshot.
        """
        return True


class SnapshotMissing(SandboxFailed):
    """A snapshot is not on this machine, or cannot be read."""
