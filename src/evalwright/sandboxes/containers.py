"""Sandboxes that are containers, by the command lines of docker and podman.

A container has no network unless the task asks for it, no capability, no new privilege, bounded
memory and processes, and of this machine one read-only folder with nothing but a socket in it. All
that is done in it goes through `exec`; nothing is copied by a path of this machine.
"""

from __future__ import annotations

import asyncio
import logging
import posixpath
import re
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import closest
from evalwright.sandboxes.container_door import Door, reaches_this_machine
from evalwright.sandboxes.container_engine import (
    ENGINES,
    OWNER_LABEL,
    PULL_SECONDS,
    SNAPSHOT_LABEL,
    Called,
    EngineCalls,
    EngineProcess,
    isolation_flags,
    owner_name,
)
from evalwright.sandboxes.protocol import (
    EndedBy,
    Executed,
    Sandbox,
    SandboxBackend,
    SandboxFailed,
    SandboxPathError,
    SandboxSettings,
    Snapshot,
    SnapshotMissing,
)

OPTIONS = ("allow_tag", "user")
"""Options of a task's sandbox: whether an image may be named by a tag, and who runs commands."""
ENVIRONMENT = {"TAR_OPTIONS": "--no-same-owner"}
"""Variables of every command. Root without capabilities cannot give files to others, which `tar`
would otherwise try."""
FILE_SECONDS = 120.0
"""Most seconds of reading or writing a file."""
START_SECONDS = 120.0
DISK_INTERVAL_SECONDS = 2.0
"""How often what a running command wrote is measured."""
OVERFULL = 4
"""At how many times the limit of the disk no command is started any more."""
_PROCESSES_OF_OURS = 8
_MOST_KILL_ROUNDS = 10
_GRACE_SECONDS = 1.0
_DIGEST = re.compile(r"(?:.+@)?sha256:[0-9a-f]{64}", re.DOTALL)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@-]{0,500}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,60}(?::[A-Za-z0-9_.-]{1,60})?")
_KILLED = 137
_ENGINE_FAILED = 125
_NOT_EXECUTABLE = 126
_NOT_FOUND = 127

_log = logging.getLogger("evalwright.sandboxes")

_RUINED = b"The sandbox has no shell any more.\n"
_IDLE = "while :; do sleep 86400; done"
# Podman makes the root folder read-only for its owner, who has no capability to ignore that. What a
# program left in the folder's place stays, or it would excuse a failure.
_PREPARE = """
[ -w / ] || chmod u+w /
mkdir -p -- "$1" || [ "$3" = used ] || exit 1
[ -s /etc/hosts ] || echo '127.0.0.1 localhost' > /etc/hosts 2>/dev/null
[ "$2" = root ] || [ -L "$1" ] || chmod 1777 -- "$1" || [ "$3" = used ]
"""
# The token comes by the input, so that nothing inside can read it from an argument. The shell's own
# words, such as "Killed" with a number of a process, are none of the command's.
_RUN = """
IFS= read -r token
printf '%s begin %s\\n' "$token" "$$" >&2
cd -- "$1" 2>/dev/null || {
  printf 'There is no folder %s.\\n' "$1" >&2
  printf '\\n%s end 1\\n' "$token" >&2
  exit 1
}
shift
command -v "$1" >/dev/null 2>&1 || {
  printf '%s: command not found\\n' "$1" >&2
  printf '\\n%s end 127\\n' "$token" >&2
  exit 127
}
exec 3>&2 2>/dev/null
(exec "$@" 2>&3 3>&-)
code=$?
printf '\\n%s end %s\\n' "$token" "$code" >&3
exit "$code"
"""
# All processes of the session that a command leads, until a round meets none.
_KILL = """
leader=$1
round=0
while [ "$round" -lt ROUNDS ]; do
  round=$((round + 1))
  alive=0
  for stat in /proc/[0-9]*/stat; do
    IFS= read -r line 2>/dev/null < "$stat" || continue
    process=${line%% *}
    set -f
    set -- ${line##*) }
    set +f
    if [ "$4" = "$leader" ] && [ "$1" != Z ] && [ "$process" != "$$" ]; then
      kill -KILL "$process" 2>/dev/null && alive=1
    fi
  done
  [ "$alive" = 0 ] && exit 0
done
""".replace("ROUNDS", str(_MOST_KILL_ROUNDS))
_READ = """
[ -e "$1" ] || [ -L "$1" ] || exit 3
[ -d "$1" ] && exit 4
[ -f "$1" ] || exit 5
[ -r "$1" ] || exit 6
exec head -c "$2" -- "$1"
"""
_WRITE = """
case $1 in */*) folder=${1%/*};; *) folder=.;; esac
[ -d "$1" ] && exit 4
mkdir -p -- "${folder:-/}" || exit 5
cat > "$1" || exit 6
[ "$(wc -c < "$1")" -eq "$2" ] || exit 7
chmod -- "$3" "$1" 2>/dev/null
exit 0
"""
_COUNTERS = """
cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null
echo
sed 's/^max /pids /' /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events 2>/dev/null
exit 0
"""
_READ_FAULTS = {
    3: "There is no file '{}'.",
    4: "'{}' is a folder, not a file.",
    5: "'{}' is no ordinary file.",
    6: "The file '{}' may not be read.",
}
_WRITE_FAULTS = {
    4: "'{}' is a folder, not a file.",
    5: "The folder of '{}' cannot be made: {}",
    6: "The file '{}' cannot be written: {}",
    7: "The file '{}' was not written whole: the disk is full.",
}


class ContainerBackend(SandboxBackend):
    """Sandboxes by the command line of an engine.

    Args:
        name: the engine, a key of `ENGINES`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = EngineCalls(ENGINES[name])
        self._lock = threading.Lock()
        self._is_swept = False

    def refuses(self, settings: SandboxSettings) -> str:
        """Return why there is no such container here, in a sentence; "" if there is."""
        return (
            _image_fault(self.name, settings)
            or _settings_fault(settings)
            or self.calls.missing()
        )

    async def start(
        self,
        settings: SandboxSettings,
        folder: Path,
        snapshot: Snapshot | None = None,
    ) -> Container:
        """Start a container, from its image or from a snapshot."""
        await self._sweep()
        image = settings.image
        if snapshot is None:
            await self._provide_image(image)
        else:
            image = snapshot.reference
            inspected = await self.calls.call("image", "inspect", image)
            if snapshot.backend != self.name or inspected.exit_code:
                raise SnapshotMissing(
                    f"The snapshot '{image}' of {snapshot.backend} is not among the images of"
                    f" {self.name} on this machine."
                )
        await self._check_volumes(image)
        container = Container(self.calls, settings)
        try:
            await container.start(image, is_snapshot=snapshot is not None)
        except BaseException:
            await asyncio.shield(container.stop())
            raise
        return container

    def has(self, folder: Path, snapshot: Snapshot) -> bool:
        """Return whether the image of a snapshot is on this machine."""
        return self.calls.has_image(snapshot.reference)

    async def _sweep(self) -> None:
        if self._is_swept:
            return
        self._is_swept = True
        n_removed = await self.calls.remove_orphans()
        if n_removed:
            _log.info(
                "%d containers of a process that is gone were removed.", n_removed
            )

    async def _provide_image(self, image: str) -> None:
        inspected = await self.calls.call("image", "inspect", image)
        if not inspected.exit_code:
            return
        name = self.calls.engine.name
        if image.startswith("sha256:"):
            raise SandboxFailed(
                f"The image '{image}' is not on this machine. An identifier without a name"
                f" cannot be fetched: build the image here, or load it with `{name} load`."
            )
        # One at a time: samples that start together want the same image.
        await asyncio.to_thread(self._lock.acquire)
        try:
            inspected = await self.calls.call("image", "inspect", image)
            if not inspected.exit_code:
                return
            _log.warning("Fetching the image %s with %s.", image, name)
            pulled = await self.calls.call("pull", image, seconds=PULL_SECONDS)
        finally:
            self._lock.release()
        if pulled.exit_code:
            raise SandboxFailed(
                f"The image '{image}' is not on this machine and cannot be fetched:"
                f" {pulled.why}. Try `{name} pull {image}`."
            )

    async def _check_volumes(self, image: str) -> None:
        if self.calls.engine.keeps_volumes:
            return
        inspected = await self.calls.call(
            "image", "inspect", "--format={{json .Config.Volumes}}", image
        )
        if inspected.text not in ("", "null", "{}"):
            raise SandboxFailed(
                f"The image '{image}' declares volumes, {inspected.text[:200]}, and {self.name}"
                " leaves them out of snapshots. Use podman, or an image without VOLUME."
            )


class DockerBackend(ContainerBackend):
    """Containers of docker."""

    def __init__(self) -> None:
        super().__init__("docker")


class PodmanBackend(ContainerBackend):
    """Containers of podman."""

    def __init__(self) -> None:
        super().__init__("podman")


class Container(Sandbox):
    """A container that idles, and in which commands are run.

    Args:
        calls: the engine.
        settings: what it is to be.
    """

    def __init__(self, calls: EngineCalls, settings: SandboxSettings) -> None:
        self.settings = settings
        self._calls = calls
        self._name = f"evalwright-{secrets.token_hex(8)}"
        self._door = Door() if reaches_this_machine() else None
        self._is_stopped = False
        self._is_ruined = False
        self._n_bytes = 0
        self._counters: dict[str, int] = {}
        self._forwarder: EngineProcess | None = None
        self._restart_lock = asyncio.Lock()

    @property
    def user(self) -> str:
        """Who runs commands."""
        return str(self.settings.options.get("user", "0:0"))

    async def start(self, image: str, *, is_snapshot: bool = False) -> None:
        """Start the container.

        A snapshot without a shell is what a model left that removed it. Nothing can run in it, and
        that is the model's outcome.

        Args:
            image: the image.
            is_snapshot: whether it is one.

        Raises:
            SandboxFailed: the engine cannot.
        """
        started = await self._calls.call(*self.run_arguments(image))
        if started.exit_code:
            raise SandboxFailed(
                f"A container of the image '{image}' cannot be started: {started.why}."
            )
        await self._prepare(may_be_ruined=is_snapshot)
        if not self._is_ruined:
            self._counters = _counters_of(await self._call_script(_COUNTERS))

    def run_arguments(self, image: str) -> list[str]:
        """Return the arguments by which the engine starts the container."""
        limits = self.settings.limits
        return [
            "run",
            "--detach",
            "--init",
            "--pull=never",
            f"--name={self._name}",
            f"--label={OWNER_LABEL}={owner_name()}",
            "--hostname=sandbox",
            *([] if self.settings.network else ["--network=none"]),
            *isolation_flags(limits.memory_mb, limits.processes + _PROCESSES_OF_OURS),
            *self._calls.engine.run_flags,
            *([] if self._door is None else [self._door.mount_flag]),
            f"--user={self.user}",
            "--workdir=/",
            "--entrypoint=sh",
            image,
            "-c",
            _IDLE,
        ]

    async def exec(
        self,
        command: Sequence[str],
        *,
        stdin: bytes = b"",
        seconds: float | None = None,
        folder: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> Executed:
        """Run a command in the container."""
        limits = self.settings.limits
        if self._is_ruined:
            return Executed(_NOT_FOUND, stderr=_RUINED)
        if self._n_bytes > OVERFULL * limits.disk_mb * 1_048_576:
            return Executed(
                _KILLED, stderr=b"The disk of the sandbox is full.\n", ended_by="disk"
            )
        execution = _Execution(self, command, stdin, folder, environment or {})
        executed = await execution.run(
            limits.seconds if seconds is None else seconds, limits.output_kb * 1024
        )
        if executed.exit_code and not executed.ended_by:
            executed = replace(executed, ended_by=await self._limit_met())
        return executed

    async def read(self, path: str, max_bytes: int) -> bytes:
        """Read a file through `head` in the container."""
        place = self.place_of(path)
        if self._is_ruined:
            raise SandboxPathError(_READ_FAULTS[3].format(path), is_missing=True)
        called = await self._script(_READ, place, str(max_bytes), max_output=max_bytes)
        if called.exit_code in _READ_FAULTS:
            raise SandboxPathError(
                _READ_FAULTS[called.exit_code].format(path),
                is_missing=called.exit_code == 3,
            )
        if called.exit_code:
            raise SandboxPathError(f"The file '{path}' cannot be read: {called.why}.")
        return called.stdout

    async def write(
        self, path: str, content: bytes, *, is_executable: bool = False
    ) -> None:
        """Write a file through `cat` in the container."""
        place = self.place_of(path)
        if self._is_ruined:
            return  # nothing can run that would miss it
        if self._n_bytes + len(content) > self.settings.limits.disk_mb * 1_048_576:
            await self.measure()
            if self._n_bytes + len(content) > self.settings.limits.disk_mb * 1_048_576:
                raise SandboxPathError(
                    f"The file '{path}' cannot be written: the disk is full."
                )
        mode = "755" if is_executable else "644"
        called = await self._script(
            _WRITE, place, str(len(content)), mode, stdin=content
        )
        if called.exit_code:
            fault = _WRITE_FAULTS.get(called.exit_code, _WRITE_FAULTS[6])
            raise SandboxPathError(fault.format(path, called.why))
        self._n_bytes += len(content)

    async def snapshot(self) -> Snapshot:
        """Commit the container to an image, named by the digest of its content."""
        committed = await self._calls.call(
            "commit",
            f"--change=LABEL {SNAPSHOT_LABEL}=1",
            self._name,
            seconds=PULL_SECONDS,
        )
        lines = committed.text.splitlines()
        if committed.exit_code or not lines:
            raise SandboxFailed(
                f"The state of a container cannot be kept: {committed.why}."
            )
        digest = lines[-1].strip().removeprefix("sha256:")
        # An image without a name would go when unused ones are pruned.
        await self._calls.call("tag", digest, f"evalwright-snapshot:{digest[:32]}")
        await self.measure()
        return Snapshot(self._calls.engine.name, f"sha256:{digest}", self._n_bytes)

    async def listen(self) -> tuple[socket.socket, str]:
        """Open a socket in the mounted folder and forward to it from the container."""
        if self._door is None:
            raise SandboxFailed(
                f"Programs in a container of {self._calls.engine.name} cannot be reached from"
                " here, because the engine runs on another machine."
            )
        try:
            listener = self._door.listen()
        except OSError as error:
            raise SandboxFailed(
                f"The door of a container cannot be opened: {error}."
            ) from None
        await self._forward()
        return listener, f"http://127.0.0.1:{self._door.port}"

    async def stop(self) -> None:
        """Remove the container with all its processes and files."""
        if self._is_stopped:
            return
        self._is_stopped = True
        try:
            await self._calls.call("rm", *self._calls.engine.remove_flags, self._name)
        finally:
            if self._forwarder is not None:
                await self._forwarder.kill()
            if self._door is not None:
                self._door.close()

    def place_of(self, path: str) -> str:
        """Return the absolute path in the container.

        Raises:
            SandboxPathError: it is no path.
        """
        if not path or "\0" in path:
            raise SandboxPathError("A path cannot be empty or have a zero byte.")
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            raise SandboxPathError(f"{path!r} is no path.") from None
        return posixpath.join("/", self.settings.folder, path)

    def exec_arguments(
        self, environment: Mapping[str, str], arguments: Sequence[str | bytes]
    ) -> list[str | bytes]:
        """Return the arguments by which the engine runs a program in the container."""
        variables = {**ENVIRONMENT, **self.settings.environment, **environment}
        return [
            "exec",
            "--interactive",
            f"--user={self.user}",
            *(f"--env={name}={text}" for name, text in variables.items()),
            self._name,
            *arguments,
        ]

    async def open(self, arguments: list[str | bytes], **options: Any) -> EngineProcess:
        """Start a call of the engine; see `EngineCalls.open`."""
        return await self._calls.open(arguments, **options)

    async def end_session(self, leader: int) -> None:
        """End all processes of a command.

        Where not even that can be started, since processes are used up, the container is started
        anew: its files stay.
        """
        killed = await self._calls.call(
            *self.exec_arguments({}, ["sh", "-c", _KILL, "sh", str(leader)]),
            seconds=START_SECONDS,
        )
        if killed.exit_code:
            await self.restart()

    async def measure(self) -> int:
        """Return the bytes that the container wrote."""
        inspected = await self._calls.call(
            "container", "inspect", "--size", "--format={{.SizeRw}}", self._name
        )
        if inspected.text.isdecimal():
            self._n_bytes = int(inspected.text)
        return self._n_bytes

    async def is_running(self) -> bool:
        """Tell whether the container runs."""
        inspected = await self._calls.call(
            "container", "inspect", "--format={{.State.Running}}", self._name
        )
        return inspected.text == "true"

    async def restart(self) -> None:
        """End every process in the container and start it again with its files."""
        async with self._restart_lock:
            await self._calls.call("kill", self._name)
            started = await self._calls.call("start", self._name)
            if started.exit_code:
                raise SandboxFailed(
                    f"A container ended and cannot be started again: {started.why}."
                )
            await self._prepare(may_be_ruined=True)
            self._counters = {}
            if self._is_ruined:
                return
            if self._door is not None and self._door.is_open:
                await self._forward()

    async def _prepare(self, *, may_be_ruined: bool) -> None:
        user = "root" if self.user.split(":")[0] in ("0", "root") else "other"
        state = "used" if may_be_ruined else "new"
        prepared = await self._calls.call(
            "exec",
            "--interactive",
            "--user=0:0",
            self._name,
            *("sh", "-c", _PREPARE, "sh", self.settings.folder, user, state),
        )
        if not prepared.exit_code:
            return
        if may_be_ruined and not await self.is_running():
            self._is_ruined = True
            return
        raise SandboxFailed(
            f"The folder '{self.settings.folder}' cannot be made in a container:"
            f" {prepared.why}. An image needs `sh` and `mkdir`."
        )

    async def _script(
        self,
        script: str,
        *arguments: str,
        stdin: bytes = b"",
        max_output: int = 65_536,
    ) -> Called:
        """Run a script of ours; once more where the container had ended."""
        called = await self._call_script(
            script, *arguments, stdin=stdin, max_output=max_output
        )
        if not await self._began(called):
            await self.restart()
            called = await self._call_script(
                script, *arguments, stdin=stdin, max_output=max_output
            )
        return called

    async def _began(self, called: Called) -> bool:
        """Tell whether a script of ours was run at all."""
        if called.exit_code < _ENGINE_FAILED:
            return True
        return _is_not_there(called.why) and await self.is_running()

    async def _call_script(
        self,
        script: str,
        *arguments: str,
        stdin: bytes = b"",
        max_output: int = 65_536,
    ) -> Called:
        return await self._calls.call(
            *self.exec_arguments({}, ["sh", "-c", script, "sh", *arguments]),
            stdin=stdin,
            seconds=FILE_SECONDS,
            max_output=max_output,
        )

    async def _forward(self) -> None:
        assert self._door is not None
        if self._forwarder is not None:
            await self._forwarder.kill()
        process = await self._calls.open(
            self.exec_arguments({}, self._door.forward_command()),
            max_output=1_024,
            max_errors=1_024,
        )
        self._forwarder = process
        deadline = time.monotonic() + START_SECONDS
        while b"\n" not in process.stdout.content and time.monotonic() < deadline:
            if process.has_ended:
                break
            await asyncio.sleep(0.01)
        if process.stdout.content.strip() != b"ready":
            raise SandboxFailed(
                "Nothing in the container can forward to the model's endpoint: its image has"
                " neither python3 nor socat. Use an image that has one of them."
            )

    async def _limit_met(self) -> EndedBy:
        """Return the limit that was met since the last look."""
        before = self._counters
        called = await self._call_script(_COUNTERS)
        if not await self._began(called):
            await self.restart()
            return "processes"
        self._counters = _counters_of(called)
        if self._counters.get("oom_kill", 0) > before.get("oom_kill", 0):
            return "memory"
        if self._counters.get("pids", 0) > before.get("pids", 0):
            return "processes"
        return ""


class _Execution:
    """One command in a container, from its start to its end.

    Args:
        container: where.
        command: the program with its arguments.
        stdin: its input.
        folder: where it starts.
        environment: further variables.
    """

    def __init__(
        self,
        container: Container,
        command: Sequence[str],
        stdin: bytes,
        folder: str,
        environment: Mapping[str, str],
    ) -> None:
        self._container = container
        self._token = secrets.token_hex(16).encode()
        self._stdin = stdin
        place = container.place_of(folder or ".")
        words = [word.encode("utf-8", "replace") for word in command]
        self._arguments = container.exec_arguments(
            environment, ["sh", "-c", _RUN, "sh", place, *words]
        )
        self._errors = bytearray()
        self._ended = asyncio.Event()
        self.leader: int | None = None
        self.exit_code: int | None = None

    async def run(self, seconds: float, output_bytes: int) -> Executed:
        """Run it, within this wall time, and keep this much of its output."""
        began = time.monotonic()
        try:
            process = await self._container.open(
                self._arguments,
                stdin=self._token + b"\n" + self._stdin,
                max_output=output_bytes,
                max_errors=output_bytes + 512,
                on_errors=self._look_at,
            )
        except (OSError, ValueError) as error:
            text = f"The command cannot be started: {error}.\n".encode()
            return Executed(_NOT_EXECUTABLE, stderr=text)
        try:
            client_code, ended_by = await self._watch(process, seconds)
        except BaseException:
            await process.kill()
            raise
        took = time.monotonic() - began
        if self.leader is None:
            return await self._not_started(process, ended_by, took)
        if self.exit_code is None and not ended_by:
            # Something inside ended our shell, or the container.
            if not await self._container.is_running():
                await self._container.restart()
            self.exit_code = client_code or _KILLED
        exit_code = _KILLED if self.exit_code is None else self.exit_code
        if not ended_by and await self._is_overfull():
            ended_by = "disk"
        return self._executed(process, exit_code, ended_by, took, output_bytes)

    async def _watch(
        self, process: EngineProcess, seconds: float
    ) -> tuple[int, EndedBy]:
        """Wait for the end of the command, or end it at a limit."""
        waiting = asyncio.ensure_future(process.wait())
        ending = asyncio.ensure_future(self._ended.wait())
        filling = asyncio.ensure_future(self._wait_for_full_disk())
        try:
            await asyncio.wait(
                {waiting, ending, filling},
                timeout=seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if self._ended.is_set() and not waiting.done():
                # What it left behind may hold its output, which some engines wait for.
                await asyncio.wait({waiting}, timeout=_GRACE_SECONDS)
            if waiting.done():
                return waiting.result(), ""
            if self._ended.is_set():
                return self.exit_code or 0, ""
            if self.leader is not None:
                await self._container.end_session(self.leader)
            return _KILLED, "disk" if filling.done() else "seconds"
        finally:
            for task in (waiting, ending, filling):
                task.cancel()
            await asyncio.gather(waiting, ending, filling, return_exceptions=True)
            await process.kill()

    async def _wait_for_full_disk(self) -> None:
        limit = self._container.settings.limits.disk_mb * 1_048_576
        before = self._container._n_bytes
        while True:
            await asyncio.sleep(DISK_INTERVAL_SECONDS)
            if await self._container.measure() > max(limit, before):
                return

    async def _is_overfull(self) -> bool:
        limit = self._container.settings.limits.disk_mb * 1_048_576
        before = self._container._n_bytes
        return await self._container.measure() > max(limit, before)

    def _look_at(self, chunk: bytes) -> None:
        """Look for the two lines that our shell writes among the errors."""
        self._errors += chunk
        for line in re.finditer(self._token + rb" (begin|end) (\d+)\n", self._errors):
            if line[1] == b"begin":
                self.leader = int(line[2])
            else:
                self.exit_code = int(line[2])
                self._ended.set()
        del self._errors[:-128]

    def _executed(
        self,
        process: EngineProcess,
        exit_code: int,
        ended_by: EndedBy,
        took: float,
        output_bytes: int,
    ) -> Executed:
        marks = re.compile(
            self._token + rb" begin \d+\n|\n" + self._token + rb" end \d+\n"
        )
        stdout, stderr = process.stdout.content, process.stderr.content
        n_marks = sum(len(mark[0]) for mark in marks.finditer(stderr))
        stderr = marks.sub(b"", stderr)
        n_written = process.stdout.n_bytes + process.stderr.n_bytes - n_marks
        stdout, stderr = share_room(stdout, stderr, output_bytes)
        return Executed(
            exit_code=exit_code,
            stdout=stdout,
            stderr=stderr,
            ended_by=ended_by,
            seconds=took,
            dropped_bytes=max(0, n_written - len(stdout) - len(stderr)),
        )

    async def _not_started(
        self, process: EngineProcess, ended_by: EndedBy, took: float
    ) -> Executed:
        """Return what became of a command that our shell never began."""
        why = Called(1, b"", process.stderr.content).why
        if not await self._container.is_running():
            await self._container.restart()
            text = b"A process inside had ended the sandbox; it was started again.\n"
            return Executed(_KILLED, stderr=text, seconds=took)
        if _is_not_there(why):
            text = f"The sandbox has no shell any more: {why}.\n".encode()
            return Executed(_NOT_FOUND, stderr=text, seconds=took)
        # Engines have many words for a process that cannot be started.
        await self._container.restart()
        text = (
            b"The command could not be started: processes that earlier commands left had"
            b" used up the limit. They were ended.\n"
        )
        return Executed(_KILLED, b"", text, ended_by or "processes", took)


def _is_not_there(why: str) -> bool:
    """Tell whether an engine says that there is no such program in the container."""
    return "not found" in why or "no such file" in why.lower()


def share_room(stdout: bytes, stderr: bytes, max_bytes: int) -> tuple[bytes, bytes]:
    """Cut the middle of output and errors so that both together have room.

    The shorter is left whole if it is at most half.
    """
    if len(stdout) + len(stderr) <= max_bytes:
        return stdout, stderr
    half = max_bytes // 2
    if len(stderr) <= half:
        return _cut(stdout, max_bytes - len(stderr)), stderr
    if len(stdout) <= half:
        return stdout, _cut(stderr, max_bytes - len(stdout))
    return _cut(stdout, max_bytes - half), _cut(stderr, half)


def _cut(content: bytes, max_bytes: int) -> bytes:
    n_tail = max_bytes // 2
    tail = content[len(content) - n_tail :]
    return content[: max_bytes - n_tail] + tail


def _counters_of(called: Called) -> dict[str, int]:
    """Read how often a limit of memory or of processes was met."""
    pairs = [line.split() for line in called.text.splitlines()]
    return {
        pair[0]: int(pair[1])
        for pair in pairs
        if len(pair) == 2 and pair[0] in ("oom_kill", "pids")
    }


def _image_fault(engine: str, settings: SandboxSettings) -> str:
    image = settings.image
    if not image:
        return (
            f"A sandbox of {engine} needs an image: `sandbox: {{backend: {engine}, image:"
            " NAME@sha256:...}`."
        )
    if not _IMAGE.fullmatch(image):
        return f"'{image[:100]}' cannot be the name of an image."
    if _DIGEST.fullmatch(image) or settings.options.get("allow_tag") is True:
        return ""
    return (
        f"The image '{image}' is named by a tag, which can mean another image tomorrow. Name it"
        f" by its digest, which `{engine} pull {image}` and then `{engine} image inspect"
        f" --format '{{{{index .RepoDigests 0}}}}' {image}` print (`--format '{{{{.Id}}}}'` for"
        " one that was built here), or set `options: {allow_tag: true}`."
    )


def _settings_fault(settings: SandboxSettings) -> str:
    for option in settings.options:
        if option not in OPTIONS:
            advice = closest(option, OPTIONS)
            return (
                f"A container has no option '{option}'; it has {', '.join(OPTIONS)}."
                + (f" Did you mean '{advice[0]}'?" if advice else "")
            )
    if not isinstance(settings.options.get("allow_tag", False), bool):
        return "The option 'allow_tag' of a container is true or false."
    user = settings.options.get("user", "0:0")
    if not isinstance(user, str) or not _USER.fullmatch(user):
        return (
            f"The option 'user' of a container is a name or a number in quotes, with a group"
            f" after a colon if need be, not {user!r}."
        )
    if not settings.folder.startswith("/") or "\0" in settings.folder:
        return f"The folder of a sandbox begins with '/', unlike '{settings.folder}'."
    for name, text in settings.environment.items():
        if not _VARIABLE.fullmatch(name) or "\0" in text:
            return f"'{name}' cannot be a variable of a sandbox."
    return ""
