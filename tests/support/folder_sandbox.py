"""A sandbox that is only a temporary folder: nothing is confined. For tests of what uses one.

    with folder_sandboxes() as backend: ...      the backend is then named "folder"

Paths below /work are in the folder; commands start there, and get to their files by relative paths.
`backend.executed` has every command that was run, `backend.starts` what each start began with.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import shutil
import signal
import socket
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

from evalwright.sandboxes import backends
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


class FolderSandbox(Sandbox):
    def __init__(
        self, backend: FolderBackend, settings: SandboxSettings, snapshots: Path
    ) -> None:
        self.settings = settings
        self.root = Path(tempfile.mkdtemp(prefix="folder-sandbox-"))
        self._backend = backend
        self._snapshots = snapshots
        self._groups: list[int] = []

    def place(self, path: str) -> Path:
        place = self.root / path.removeprefix(self.settings.folder).lstrip("/")
        if not Path(os.path.realpath(place)).is_relative_to(self.root):
            raise SandboxPathError(f"The path '{path}' leads out.")
        return place

    async def exec(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds: float | None = None,
        folder: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Executed:
        if self._backend.is_broken:
            raise SandboxFailed("The sandbox is gone.")
        self._backend.executed.append(list(command))
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.root,
            env={
                "PATH": os.environ["PATH"],
                **self.settings.environment,
                **(environment or {}),
            },
            start_new_session=True,
        )
        self._groups.append(process.pid)
        ended_by = ""
        limit = self.settings.limits.seconds if seconds is None else seconds
        try:
            async with asyncio.timeout(limit):
                stdout, stderr = await process.communicate(stdin)
        except TimeoutError:
            ended_by = "seconds"
            self._end(process.pid)
            stdout, stderr = await process.communicate()
        code = process.returncode or 0
        return Executed(
            code if code >= 0 else 128 - code,
            stdout,
            stderr,
            ended_by,  # type: ignore[arg-type]
            time.perf_counter() - began,
        )

    async def read(self, path: str, max_bytes: int) -> bytes:
        try:
            with self.place(path).open("rb") as file:
                return file.read(max_bytes)
        except OSError as error:
            raise SandboxPathError(
                f"'{path}': {error.strerror}.",
                is_missing=isinstance(error, FileNotFoundError),
            ) from None

    async def write(
        self, path: str, content: bytes, *, is_executable: bool = False
    ) -> None:
        place = self.place(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(0o755 if is_executable else 0o644)

    async def snapshot(self) -> Snapshot:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in sorted(self.root.rglob("*")):
                member = archive.gettarinfo(path, str(path.relative_to(self.root)))
                member.mtime = 0
                if path.is_dir():
                    archive.addfile(member)
                else:
                    with path.open("rb") as file:
                        archive.addfile(member, file)
        content = packed.getvalue()
        reference = hashlib.sha256(content).hexdigest()
        self._snapshots.mkdir(parents=True, exist_ok=True)
        (self._snapshots / reference).write_bytes(content)
        return Snapshot(self._backend.name, reference, len(content))

    async def listen(self) -> tuple[socket.socket, str]:
        listener = socket.create_server(("127.0.0.1", 0))
        return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"

    async def count_processes(self) -> int | None:
        return self._backend.n_processes  # of this machine, there would be others

    async def stop(self) -> None:
        for group in self._groups:
            self._end(group)
        shutil.rmtree(self.root, ignore_errors=True)

    def _end(self, group: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


class FolderBackend(SandboxBackend):
    name = "folder"

    def __init__(self) -> None:
        self.executed: list[list[str]] = []
        self.starts: list[Snapshot | None] = []
        self.n_processes: int | None = None
        self.refusal = ""
        self.is_broken = False

    def refuses(self, settings: SandboxSettings) -> str:
        return self.refusal

    def has(self, folder: Path, snapshot: Snapshot) -> bool:
        return (folder / snapshot.reference).exists()

    async def start(
        self,
        settings: SandboxSettings,
        folder: Path,
        snapshot: Snapshot | None = None,
    ) -> Sandbox:
        sandbox = FolderSandbox(self, settings, folder)
        self.starts.append(snapshot)
        if snapshot is not None:
            try:
                content = (folder / snapshot.reference).read_bytes()
            except OSError:
                await sandbox.stop()
                raise SnapshotMissing("The snapshot is not here.") from None
            with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                archive.extractall(sandbox.root, filter="tar")
        return sandbox


@contextmanager
def folder_sandboxes() -> Iterator[FolderBackend]:
    """Have the backend "folder" for a while."""
    backend = FolderBackend()
    with (
        patch.dict(
            backends.BUNDLED, {"folder": "support.folder_sandbox:FolderBackend"}
        ),
        patch.dict(backends._backends, {"folder": backend}),
    ):
        yield backend
