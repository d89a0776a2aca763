"""Programs that run containers, called by their command lines: docker and podman.

What differs between them is the table `ENGINES`; all else is what both document.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from evalwright.sandboxes.protocol import SandboxFailed

OWNER_LABEL = "evalwright.owner"
"""The label of a container that says which process it belongs to."""
SNAPSHOT_LABEL = "evalwright.snapshot"
"""The label of an image that is a snapshot."""
CALL_SECONDS = 120.0
"""Most seconds of a call of the engine that is no command of a model."""
PULL_SECONDS = 3_600.0
_CHUNK_BYTES = 65_536
_ERROR_CHARS = 500
_KEPT_OF_CALL = 1_048_576


@dataclass(frozen=True, slots=True)
class Engine:
    """What the command line of an engine has of its own.

    Args:
        name: the program.
        run_flags: flags of `run` that keep away what the other engine keeps away by itself.
        remove_flags: flags of `rm`, for a container that need not be waited for.
        keeps_volumes: whether paths that an image declares as volumes are part of a snapshot.
        advice: what to do where it does not answer.
    """

    name: str
    run_flags: tuple[str, ...]
    remove_flags: tuple[str, ...]
    keeps_volumes: bool
    advice: str


ENGINES = {
    "docker": Engine(
        name="docker",
        run_flags=(),
        remove_flags=("--force", "--volumes"),
        keeps_volumes=False,
        advice="Start Docker, and see that this user may use it: `docker version`.",
    ),
    "podman": Engine(
        name="podman",
        # It would pass on the proxy of this machine with its password, and the hosts file.
        run_flags=("--http-proxy=false", "--image-volume=ignore", "--no-hosts"),
        remove_flags=("--force", "--volumes", "--time=0"),
        keeps_volumes=True,
        advice="See what `podman info` says.",
    ),
}


def isolation_flags(memory_mb: int, processes: int) -> list[str]:
    """Return the flags of `run` by which a container can reach nothing and use no more than this.

    Args:
        memory_mb: memory in MiB; swap is part of it.
        processes: processes and threads at a time.
    """
    return [
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        "--ipc=private",
        f"--pids-limit={processes}",
        f"--memory={memory_mb}m",
        f"--memory-swap={memory_mb}m",
        "--log-driver=none",
    ]


@dataclass(slots=True)
class KeptOutput:
    """The beginning and the end of a stream.

    Args:
        max_bytes: most bytes that are kept.
    """

    max_bytes: int
    n_bytes: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        """Take in the next bytes of the stream."""
        self.n_bytes += len(chunk)
        room = (self.max_bytes + 1) // 2 - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail += chunk
        excess = len(self._tail) - self.max_bytes // 2
        if excess > 0:
            del self._tail[:excess]

    @property
    def content(self) -> bytes:
        """What is kept."""
        return bytes(self._head + self._tail)


@dataclass(frozen=True, slots=True)
class Called:
    """What became of a call of an engine."""

    exit_code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """What it printed, without blanks around it."""
        return self.stdout.decode("utf-8", "replace").strip()

    @property
    def why(self) -> str:
        """The end of its errors, in one line."""
        words = self.stderr.decode("utf-8", "replace").split()
        return " ".join(words)[-_ERROR_CHARS:].rstrip(".") or (
            f"it ended with the exit code {self.exit_code} and no message"
        )


class EngineProcess:
    """A running call of an engine.

    Args:
        process: the process.
        on_errors: is called with each piece of its errors.
        max_output: most bytes of its output that are kept.
        max_errors: likewise of its errors.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        stdin: bytes,
        *,
        max_output: int,
        max_errors: int,
        on_errors: Callable[[bytes], None] | None = None,
    ) -> None:
        self._process = process
        self.stdout = KeptOutput(max_output)
        self.stderr = KeptOutput(max_errors)
        self._on_errors = on_errors
        self._tasks = [
            asyncio.ensure_future(self._feed(stdin)),
            asyncio.ensure_future(self._read(process.stdout, self.stdout, None)),
            asyncio.ensure_future(
                self._read(process.stderr, self.stderr, self._on_errors)
            ),
        ]

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended and all of its output is read."""
        return all(task.done() for task in self._tasks[1:])

    async def wait(self) -> int:
        """Wait until it has ended and all of its output is read; return its exit code."""
        await asyncio.gather(*self._tasks[1:])
        exit_code = await self._process.wait()
        self._tasks[0].cancel()
        return exit_code

    async def kill(self) -> None:
        """End the process of this machine, and read no further."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._process.wait()

    async def _feed(self, stdin: bytes) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        # A program that does not read its input is nobody's fault.
        with contextlib.suppress(ConnectionError):
            pipe.write(stdin)
            await pipe.drain()
        with contextlib.suppress(ConnectionError):
            pipe.close()
            await pipe.wait_closed()

    async def _read(
        self,
        stream: asyncio.StreamReader | None,
        kept: KeptOutput,
        on_chunk: Callable[[bytes], None] | None,
    ) -> None:
        assert stream is not None
        while chunk := await stream.read(_CHUNK_BYTES):
            kept.add(chunk)
            if on_chunk is not None:
                on_chunk(chunk)


class EngineCalls:
    """Calls one engine.

    Args:
        engine: which.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._answers = False

    def missing(self) -> str:
        """Return why the engine cannot be used, in a sentence; "" if it can."""
        name = self.engine.name
        if self._answers:
            return ""
        if shutil.which(name) is None:
            return (
                f"Sandboxes of {name} need the program '{name}', which is not installed here."
                " Install it, or use `sandbox: jail`."
            )
        try:
            called = self._call_at_once("container", "ls", "--quiet", "--last=1")
        except (OSError, subprocess.TimeoutExpired) as error:
            return (
                f"The program '{name}' does not answer: {error}. {self.engine.advice}"
            )
        if called.exit_code:
            return f"The program '{name}' cannot be used: {called.why}. {self.engine.advice}"
        self._answers = True
        return ""

    def has_image(self, image: str) -> bool:
        """Return whether an image is on this machine."""
        try:
            called = self._call_at_once("image", "inspect", image)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return not called.exit_code

    def _call_at_once(self, *arguments: str) -> Called:
        answer = subprocess.run(
            [self.engine.name, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        return Called(answer.returncode, answer.stdout, answer.stderr)

    async def open(
        self,
        arguments: Sequence[str | bytes],
        stdin: bytes = b"",
        *,
        max_output: int = _KEPT_OF_CALL,
        max_errors: int = _KEPT_OF_CALL,
        on_errors: Callable[[bytes], None] | None = None,
    ) -> EngineProcess:
        """Start a call.

        Raises:
            OSError: it cannot be started, as where the arguments are too long.
            ValueError: an argument has a zero byte.
        """
        process = await asyncio.create_subprocess_exec(
            self.engine.name,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=_engine_folder(),
            start_new_session=True,
        )
        return EngineProcess(
            process,
            stdin,
            max_output=max_output,
            max_errors=max_errors,
            on_errors=on_errors,
        )

    async def call(
        self,
        *arguments: str | bytes,
        stdin: bytes = b"",
        seconds: float = CALL_SECONDS,
        max_output: int = _KEPT_OF_CALL,
    ) -> Called:
        """Make a call and wait for it.

        Raises:
            SandboxFailed: it cannot be made, or takes too long.
        """
        try:
            process = await self.open(arguments, stdin, max_output=max_output)
        except (OSError, ValueError) as error:
            raise SandboxFailed(
                f"The program '{self.engine.name}' cannot be started: {error}."
            ) from None
        try:
            exit_code = await asyncio.wait_for(process.wait(), seconds)
        except TimeoutError:
            await process.kill()
            raise SandboxFailed(
                f"`{self.engine.name} {arguments[0]!s}` did not end within {seconds:g}"
                f" seconds. {self.engine.advice}"
            ) from None
        except BaseException:
            await process.kill()
            raise
        return Called(exit_code, process.stdout.content, process.stderr.content)

    async def remove_orphans(self) -> int:
        """Remove containers of processes that are gone, and return how many.

        A process that was killed could not remove its own.
        """
        listed = await self.call(
            "ps", "--all", "--quiet", f"--filter=label={OWNER_LABEL}"
        )
        identifiers = listed.text.split()
        if listed.exit_code or not identifiers:
            return 0
        template = (
            f'{{{{.Id}}}} {{{{index .Config.Labels "{OWNER_LABEL}"}}}}'
            " {{.State.Status}}"
        )
        inspected = await self.call(
            "container", "inspect", f"--format={template}", *identifiers
        )
        rows = [line.split() for line in inspected.text.splitlines()]
        orphans = [
            row[0] for row in rows if len(row) == 3 and is_orphan(row[1], row[2])
        ]
        if orphans:
            await self.call("rm", *self.engine.remove_flags, *orphans)
        return len(orphans)


def owner_name() -> str:
    """Return what names this process among all that use the same engine."""
    return f"{_machine_name()}.{os.getpid()}.{_start_of(os.getpid())}"


def is_orphan(owner: str, status: str) -> bool:
    """Tell whether a container's process is gone.

    Args:
        owner: what `owner_name` returned there.
        status: the engine's word for the state of the container, such as "running".
    """
    machine, _, process = owner.partition(".")
    if machine != _machine_name():
        # Another machine may use this engine, or this one has been started anew.
        return status == "exited"
    pid, _, started = process.partition(".")
    return not pid.isdecimal() or _start_of(int(pid)) != started


def _machine_name() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Processes of another container of this machine have other numbers.
        space = Path("/proc/self/ns/pid").readlink().name
    except OSError:
        return "".join(filter(str.isalnum, socket.gethostname())) or "host"
    return f"{boot}-{''.join(filter(str.isdecimal, space))}"


def _start_of(pid: int) -> str:
    """Return when a process started; "gone" if there is none, "0" where nothing says when."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        return text.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        pass
    if Path("/proc/self/stat").exists():
        return "gone"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        pass
    return "0"


@cache
def _engine_folder() -> str:
    """Return where engines are called: podman leaves a file there when memory runs out."""
    folder = mkdtemp(prefix="evalwright-engine-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
