"""The keeper of one jail: outside of its process namespace, inside of all its other ones.

`jail_starter` forks it. It builds the root, forks the jail's first process, which only reaps, and
then serves requests on its line: run a command, open a file, keep the state, open a door. Programs
inside run in a process namespace that the keeper is not in: they cannot see, signal or trace it,
and no descriptor of its own survives into a command. When the line closes, or the keeper ends for
any reason, the kernel ends every process inside.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evalwright.sandboxes import jail_archive, jail_calls, jail_processes, jail_root
from evalwright.sandboxes.kept_output import KeptOutput

FRAME = struct.Struct(">II")
"""The head of a message: the bytes of its JSON, and of what follows that."""
_TICK_SECONDS = 0.02
"""Time between two looks at the memory while a command runs."""
_IDLE_TICK_SECONDS = 0.2
"""The same while only processes are there that a command left behind."""
_GRACE_SECONDS = 0.1
"""How long output is awaited after a command's end from what it left behind."""
_PIECE_BYTES = 1 << 16
_DOOR_PORT = 26371
"""Where the first door is, so that programs that show it repeat themselves."""
_GENTLE_KILL_ROUNDS = 40
"""After so many looks at what is left of a command, everything in the jail is ended."""
_KILL_ROUNDS = 60
_KILL_PAUSE_SECONDS = 0.0005
_OPEN_FILES = 1024
_TRUSTED_PROCESSES = 2
"""The keeper and the first process, which the kernel counts among the jail's processes."""
_STACK_BYTES = 8 << 20
"""Of a thread; only what is used of it is memory."""
_MIN_STACKS_BYTES = 512 << 20
"""A process may set so much aside for stacks, however little memory there is."""
_PROGRAM_BYTES = 256 << 20
"""What a process may have read from files of the machine, which is not counted as its memory."""


def main(
    plan: dict[str, Any],
    root: jail_root.RootPlan,
    system_call_filter: bytes,
    descriptors: list[int],
    ready: int,
    mapped: int,
    is_root: bool,
) -> None:
    """Become the keeper of a jail, and end when its line closes.

    Args:
        plan: the jail's settings.
        root: what its root is made of.
        system_call_filter: of its programs.
        descriptors: the line; then, if the plan says so, a snapshot to begin with.
        ready: written to when the namespaces are there.
        mapped: readable when the starter has said who root is.
        is_root: whether the starter is root outside.
    """
    line = socket.socket(fileno=descriptors[0])
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if plan["problem"]:
            raise ValueError(plan["problem"])
        first = jail_root.enter(plan, root, ready, mapped, is_root)
        if plan["has_snapshot"]:
            jail_archive.restore(descriptors[1], plan["digest"])
            os.close(descriptors[1])
            # What a program left in the folder's place stays, or it would excuse a failure.
            with contextlib.suppress(OSError):
                os.makedirs(plan["folder"], exist_ok=True)
        else:
            jail_root.write_accounts()
            os.makedirs(plan["folder"], exist_ok=True)
        jail_calls.keep_capabilities(
            jail_calls.CAP_DAC_OVERRIDE,
            jail_calls.CAP_DAC_READ_SEARCH,
            jail_calls.CAP_FOWNER,
            jail_calls.CAP_SYS_PTRACE,
        )
        jail_calls.die_with_parent(signal.SIGKILL)
        keeper = _Keeper(plan, line, first, system_call_filter, root.environment)
    except jail_archive.Damaged as error:
        _report(line, {"ready": False, "damaged": True, "why": str(error)})
        os._exit(1)
    except BaseException as error:
        why = str(error) or type(error).__name__
        _report(line, {"ready": False, "damaged": False, "why": why})
        os._exit(1)
    try:
        keeper.serve()
    finally:
        keeper.end()
        os._exit(0)


def parse_trial(report: bytes) -> str:
    """Return what is missing, from all that the keeper of a trial wrote; "" if nothing is."""
    reply: dict[str, Any] = {}
    while len(report) >= FRAME.size:
        head_bytes, body_bytes = FRAME.unpack_from(report)
        head_end = FRAME.size + head_bytes
        reply = json.loads(report[FRAME.size : head_end])
        body = report[head_end : head_end + body_bytes]
        report = report[head_end + body_bytes :]
        if reply.get("ready") is False:
            return str(reply["why"])
        if "exit_code" in reply and (reply["exit_code"] or body.strip() != b"ready"):
            detail = body.decode("utf-8", "replace").strip()[-300:]
            return f"a trial program ended with {reply['exit_code']}: {detail}"
    return "" if "exit_code" in reply else "a trial jail ended before it was ready"


def _report(line: socket.socket, head: dict[str, Any]) -> None:
    text = json.dumps(head).encode()
    with contextlib.suppress(OSError):
        line.sendall(FRAME.pack(len(text), 0) + text)


class _Output(KeptOutput):
    """A stream of a command, with what is kept of it."""

    def __init__(self, descriptor: int, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self.descriptor = descriptor
        self.is_open = True


class _Command:
    """A command that runs, or whose output is still awaited."""

    def __init__(
        self,
        request: int,
        process: int,
        seconds: float,
        outputs: list[_Output],
        started_at: float,
    ) -> None:
        self.request = request
        self.process = process
        self.handle = os.pidfd_open(process)
        self.started_at = started_at
        self.deadline = started_at + seconds
        self.outputs = outputs
        self.earlier: set[tuple[int, int]] = set()
        self.inner_process = 0
        self.exit_code: int | None = None
        self.ended_at = 0.0
        self.ended_by = ""
        self.seconds = 0.0


class _Keeper:
    """Serves the requests on a line."""

    def __init__(
        self,
        plan: dict[str, Any],
        line: socket.socket,
        first: int,
        system_call_filter: bytes,
        environment: Mapping[str, str],
    ) -> None:
        limits = plan["limits"]
        self._folder: str = plan["folder"]
        self._is_trial: bool = plan.get("trial", False)
        self._seconds: float = limits["seconds"]
        self._memory_bytes: int = limits["memory_mb"] << 20
        self._disk_bytes: int = limits["disk_mb"] << 20
        self._processes: int = limits["processes"]
        self._output_bytes: int = limits["output_kb"] << 10
        self._line = line
        self._first = first
        self._filter = system_call_filter
        self._environment = environment
        self._incoming = bytearray()
        self._received: deque[int] = deque()
        self._outgoing: deque[tuple[bytes, list[int]]] = deque()
        self._commands: list[_Command] = []
        self._callbacks: dict[int, Callable[[int], None]] = {}
        self._poll = select.poll()
        self._has_leftovers = False
        self._looked_at = 0.0
        self._is_ending = False
        line.setblocking(False)
        self._watch(line.fileno(), self._read_line)
        first_handle = os.pidfd_open(first)
        self._watch(first_handle, self._first_ended)

    # The loop.

    def serve(self) -> None:
        """Serve until the line closes."""
        self._send({"ready": True})
        if self._is_trial:
            self._start_trial()
        while not self._is_ending:
            for descriptor, events in self._poll.poll(self._wait_ms()):
                callback = self._callbacks.get(descriptor)
                if callback is not None:
                    callback(events)
            self._look_after()
            if self._is_trial and not self._commands and not self._outgoing:
                return

    def end(self) -> None:
        """End every process inside, and wait until all are gone."""
        with contextlib.suppress(OSError):
            os.kill(self._first, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)

    def _start_trial(self) -> None:
        program = ["/opt/python/bin/python3", "-I", "-S", "-c", "print('ready')"]
        head = {"id": 0, "argv": program, "environment": {}, "folder": "/"}
        self._exec({**head, "seconds": 50.0}, b"")

    def _wait_ms(self) -> float | None:
        now = time.monotonic()
        moments = []
        for command in self._commands:
            if command.exit_code is None:
                moments += [command.deadline, self._looked_at + _TICK_SECONDS]
            else:
                moments.append(command.ended_at + _GRACE_SECONDS)
        if self._has_leftovers:
            moments.append(self._looked_at + _IDLE_TICK_SECONDS)
        if not moments:
            return None
        return max(0.0, (min(moments) - now) * 1000 + 0.5)

    def _watch(
        self,
        descriptor: int,
        callback: Callable[[int], None],
        events: int = select.POLLIN,
    ) -> None:
        self._callbacks[descriptor] = callback
        self._poll.register(descriptor, events)

    def _unwatch(self, descriptor: int) -> None:
        del self._callbacks[descriptor]
        self._poll.unregister(descriptor)

    def _first_ended(self, _events: int) -> None:
        self._is_ending = True

    # Messages.

    def _read_line(self, events: int) -> None:
        if events & select.POLLOUT:
            self._flush()
        if not events & ~select.POLLOUT:
            return
        try:
            piece, descriptors, _, _ = socket.recv_fds(self._line, 1 << 18, 4)
        except BlockingIOError:
            return
        except OSError:
            piece, descriptors = b"", []
        if not piece:
            self._is_ending = True
            return
        self._received.extend(descriptors)
        self._incoming += piece
        while len(self._incoming) >= FRAME.size:
            head_bytes, body_bytes = FRAME.unpack_from(self._incoming)
            head_end = FRAME.size + head_bytes
            if len(self._incoming) < head_end + body_bytes:
                return
            head = json.loads(bytes(self._incoming[FRAME.size : head_end]))
            body = bytes(self._incoming[head_end : head_end + body_bytes])
            del self._incoming[: head_end + body_bytes]
            self._answer(head, body)

    def _answer(self, head: dict[str, Any], body: bytes) -> None:
        kind = head["do"]
        try:
            if kind == "exec":
                self._exec(head, body)
            elif kind == "cancel":
                self._cancel(head["of"])
            elif kind == "open":
                self._open(head)
            elif kind == "snapshot":
                self._snapshot(head)
            elif kind == "count":
                n_processes = sum(1 for _ in jail_processes.processes())
                self._send({"id": head["id"], "processes": n_processes})
            elif kind == "listen":
                self._listen(head)
        except Exception as error:
            reason = getattr(error, "strerror", None) or str(error)
            number = getattr(error, "errno", None) or 0
            self._send({"id": head["id"], "error": reason, "errno": number})

    def _send(
        self, head: dict[str, Any], body: bytes = b"", descriptors: Iterable[int] = ()
    ) -> None:
        text = json.dumps(head).encode()
        frame = FRAME.pack(len(text), len(body)) + text + body
        self._outgoing.append((frame, list(descriptors)))
        self._flush()

    def _flush(self) -> None:
        while self._outgoing:
            frame, descriptors = self._outgoing.popleft()
            try:
                if descriptors:
                    n_sent = socket.send_fds(self._line, [frame], descriptors)
                else:
                    n_sent = self._line.send(frame)
            except BlockingIOError:
                self._outgoing.appendleft((frame, descriptors))
                break
            except OSError:
                self._is_ending = True
                return
            for descriptor in descriptors:
                os.close(descriptor)
            if n_sent < len(frame):
                self._outgoing.appendleft((frame[n_sent:], []))
        events = select.POLLIN | (select.POLLOUT if self._outgoing else 0)
        self._poll.modify(self._line.fileno(), events)

    # Files.

    def _path_of(self, path: str) -> str:
        if not path or "\0" in path:
            raise ValueError("a path is not empty, and has no NUL")
        return os.path.join(self._folder, path)

    def _open(self, head: dict[str, Any]) -> None:
        """Open a file and send its descriptor."""
        path = self._path_of(head["path"])
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        permissions = 0
        if head["mode"] == "write":
            os.makedirs(os.path.dirname(path), exist_ok=True)
            flags |= os.O_WRONLY | os.O_CREAT
            permissions = 0o644
        try:
            descriptor = jail_calls.open_inside(path, flags, permissions)
        except OSError as error:
            if error.errno == errno.ENXIO:
                raise ValueError(
                    "it is a pipe, a socket or a device, not a file"
                ) from None
            raise
        try:
            status = os.fstat(descriptor)
            if stat.S_ISDIR(status.st_mode):
                raise ValueError("it is a folder, not a file")
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("it is a pipe, a socket or a device, not a file")
            if jail_calls.filesystem_of(descriptor) == jail_calls.PROC_FILESYSTEM:
                raise ValueError(
                    "it is a file of /proc, which only programs inside read"
                )
            if head["mode"] == "write":
                os.ftruncate(descriptor, 0)
                os.fchmod(descriptor, 0o755 if head["is_executable"] else 0o644)
        except (OSError, ValueError):
            os.close(descriptor)
            raise
        self._send({"id": head["id"], "files": 1}, descriptors=[descriptor])

    def _snapshot(self, head: dict[str, Any]) -> None:
        """Write the state of the files to the descriptor that came with the message."""
        descriptor = self._received.popleft()
        try:
            stored = jail_archive.keep(descriptor, self._look_after)
        finally:
            os.close(descriptor)
        reply = {"digest": stored.digest, "n_bytes": stored.n_bytes}
        self._send({"id": head["id"], **reply})

    def _listen(self, head: dict[str, Any]) -> None:
        """Open a socket on the jail's loopback and send it."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as door:
            try:
                door.bind(("127.0.0.1", _DOOR_PORT))
            except OSError:
                door.bind(("127.0.0.1", 0))
            door.listen(128)
            port = door.getsockname()[1]
            reply = {"id": head["id"], "port": port, "files": 1}
            self._send(reply, descriptors=[door.detach()])

    # Commands.

    def _exec(self, head: dict[str, Any], stdin: bytes) -> None:
        earlier = {
            (process.number, process.started) for process in jail_processes.processes()
        }
        started_at = time.monotonic()
        opened: list[int] = []
        try:
            if stdin:
                stdin_read, stdin_write = _pipe(opened)
            else:
                stdin_read = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
                stdin_write = -1
                opened.append(stdin_read)
            stdout_read, stdout_write = _pipe(opened)
            stderr_read, stderr_write = _pipe(opened)
            status_read, status_write = _pipe(opened)
            process = os.fork()
        except OSError:
            for descriptor in opened:
                os.close(descriptor)
            raise
        if process == 0:
            self._run_child(
                head, [stdin_read, stdout_write, stderr_write], status_write
            )
        for descriptor in (stdin_read, stdout_write, stderr_write, status_write):
            os.close(descriptor)
        outputs = [
            _Output(stdout_read, self._output_bytes),
            _Output(stderr_read, self._output_bytes),
        ]
        command = _Command(head["id"], process, head["seconds"], outputs, started_at)
        command.earlier = earlier
        self._commands.append(command)
        for output in outputs:
            os.set_blocking(output.descriptor, False)
            self._watch(output.descriptor, functools.partial(self._read, output))
        self._watch(command.handle, lambda _: self._command_ended(command))
        self._watch(status_read, lambda _: self._command_started(command, status_read))
        if stdin:
            os.set_blocking(stdin_write, False)
            self._write_stdin(stdin_write, stdin)

    def _run_child(
        self, head: dict[str, Any], standard: list[int], status: int
    ) -> None:
        """Become a command, in a process that was just forked."""
        try:
            os.write(status, str(os.getpid()).encode())
            os.setsid()
            for number, descriptor in enumerate(standard):
                os.dup2(descriptor, number)
            os.closerange(3, status)
            os.closerange(status + 1, 1 << 16)
            self._limit()
            for signal_number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(signal_number, signal.SIG_DFL)
            argv = [os.fsencode(argument) for argument in head["argv"]]
            environment = {
                os.fsencode(name): os.fsencode(text)
                for name, text in {**self._environment, **head["environment"]}.items()
            }
            folder = os.path.join(self._folder, head["folder"])
            jail_calls.keep_capabilities()
            jail_calls.forbid_new_privileges()
            jail_calls.install_filter(self._filter)
            jail_processes.execute(argv, environment, folder)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(2, f"The command could not be started: {error}\n".encode())
        os._exit(jail_processes.NOT_RUNNABLE)

    def _limit(self) -> None:
        processes = self._processes + _TRUSTED_PROCESSES
        stacks_bytes = min(
            self._processes * _STACK_BYTES, max(self._memory_bytes, _MIN_STACKS_BYTES)
        )
        for limit, most in (
            (resource.RLIMIT_DATA, self._memory_bytes + stacks_bytes),
            (resource.RLIMIT_FSIZE, self._disk_bytes),
            (resource.RLIMIT_NOFILE, _OPEN_FILES),
            (resource.RLIMIT_NPROC, processes),
            (resource.RLIMIT_MEMLOCK, 1 << 16),
        ):
            _, hard = resource.getrlimit(limit)
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard)
            resource.setrlimit(limit, (most, most))

    def _command_started(self, command: _Command, status: int) -> None:
        text = os.read(status, 32)
        if text:
            command.inner_process = int(text)
            return
        self._unwatch(status)
        os.close(status)
        path = f"/proc/{command.inner_process}/oom_score_adj"
        with contextlib.suppress(OSError), open(path, "w", encoding="utf-8") as file:
            file.write("1000")

    def _write_stdin(self, descriptor: int, content: bytes) -> None:
        position = 0

        def write(_events: int) -> None:
            nonlocal position
            try:
                piece = content[position : position + _PIECE_BYTES]
                position += os.write(descriptor, piece)
            except BlockingIOError:
                return
            except OSError:
                position = len(content)
            if position >= len(content):
                self._unwatch(descriptor)
                os.close(descriptor)

        self._watch(descriptor, write, select.POLLOUT)

    def _read(self, output: _Output, _events: int) -> None:
        """Keep what is there of a stream."""
        piece = self._read_piece(output)
        if piece:
            output.add(piece)
        elif piece is not None:
            output.is_open = False
            self._finish_commands()

    def _drain(self, output: _Output, _events: int) -> None:
        """Read and drop what a process that was left behind writes."""
        self._read_piece(output)

    def _read_piece(self, output: _Output) -> bytes | None:
        """Read from a stream, and close it at its end.

        Returns:
            What was there; nothing at the end, None if there may be more later.
        """
        try:
            piece = os.read(output.descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            piece = b""
        if not piece:
            self._unwatch(output.descriptor)
            os.close(output.descriptor)
        return piece

    def _command_ended(self, command: _Command) -> None:
        self._unwatch(command.handle)
        os.close(command.handle)
        _, status, usage = os.wait4(command.process, 0)
        exit_code = os.waitstatus_to_exitcode(status)
        command.exit_code = exit_code if exit_code >= 0 else 128 - exit_code
        # The most that it, or one that it waited for, had at a time: between two looks, too.
        most_bytes = usage.ru_maxrss << 10
        if not command.ended_by and most_bytes > self._memory_bytes + _PROGRAM_BYTES:
            command.ended_by = "memory"
            command.exit_code = 128 + signal.SIGKILL
        command.ended_at = time.monotonic()
        command.seconds = command.ended_at - command.started_at
        self._finish_commands()

    def _finish_commands(self) -> None:
        """Answer the requests of commands that have ended and whose output is complete."""
        now = time.monotonic()
        for command in list(self._commands):
            if command.exit_code is None:
                continue
            is_open = any(output.is_open for output in command.outputs)
            if is_open and now < command.ended_at + _GRACE_SECONDS:
                continue
            self._commands.remove(command)
            self._has_leftovers = is_open or any(
                True for _ in jail_processes.processes()
            )
            streams = [output.content for output in command.outputs]
            n_bytes = sum(output.n_bytes for output in command.outputs)
            reply = {
                "id": command.request,
                "exit_code": command.exit_code,
                "ended_by": command.ended_by,
                "seconds": command.seconds,
                "stdout_bytes": len(streams[0]),
                "dropped_bytes": n_bytes - sum(map(len, streams)),
            }
            for output in command.outputs:
                if output.is_open:  # what is written later is read and dropped
                    drain = functools.partial(self._drain, output)
                    self._callbacks[output.descriptor] = drain
            self._send(reply, b"".join(streams))

    def _cancel(self, request: int) -> None:
        for command in self._commands:
            if command.request == request and command.exit_code is None:
                self._kill_tree(command)

    # Limits.

    def _look_after(self) -> None:
        """End what has reached a limit."""
        now = time.monotonic()
        for command in self._commands:
            is_running = command.exit_code is None and not command.ended_by
            if is_running and now >= command.deadline:
                command.ended_by = "seconds"
                self._kill_tree(command)
        tick = _TICK_SECONDS if self._commands else _IDLE_TICK_SECONDS
        is_busy = self._commands or self._has_leftovers
        if is_busy and now >= self._looked_at + tick:
            self._looked_at = now
            self._look_at_memory()
        self._finish_commands()

    def _look_at_memory(self) -> None:
        processes = list(jail_processes.processes())
        if not self._commands:
            self._has_leftovers = bool(processes)
        resident = sum(
            jail_processes.resident_bytes(process.folder) for process in processes
        )
        if resident <= self._memory_bytes:
            return
        sizes = {
            process: jail_processes.used_bytes(process.folder) for process in processes
        }
        n_used = sum(sizes.values())
        for process in sorted(processes, key=lambda process: -sizes[process]):
            if n_used <= self._memory_bytes:
                return
            for command in self._commands:
                if process in self._tree_of(command, processes):
                    command.ended_by = command.ended_by or "memory"
                    self._kill_tree(command)
                    return
            jail_processes.kill(process.number)
            n_used -= sizes[process]

    def _kill_tree(self, command: _Command) -> None:
        """End a command with everything that it started, but not what was there before.

        Where processes are started faster than they can be ended, all in the jail are ended.
        """
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(command.handle, signal.SIGKILL)
        for number in range(_KILL_ROUNDS):
            tree = self._tree_of(command, list(jail_processes.processes()))
            if not tree:
                return
            for process in tree:
                jail_processes.kill(process.number)
            if number >= _GENTLE_KILL_ROUNDS:
                self._kill_all()
            time.sleep(_KILL_PAUSE_SECONDS)

    def _tree_of(
        self, command: _Command, processes: list[jail_processes.Process]
    ) -> list[jail_processes.Process]:
        """List the processes of a command: born after its start, and of nothing older.

        A process whose parent has ended is a child of the first process: whose it was, nobody can
        say, so that such processes belong to every command that ran when they were born.
        """
        parents = {process.number: process.parent for process in processes}
        foreign = {
            process.number
            for process in processes
            if (process.number, process.started) in command.earlier
        }
        foreign |= {
            running.inner_process
            for running in self._commands
            if running is not command and running.exit_code is None
        }
        tree = []
        for process in processes:
            ancestor = process.number
            for _ in range(len(parents) + 1):
                if ancestor in foreign or ancestor not in parents:
                    break
                ancestor = parents[ancestor]
            if ancestor not in foreign:
                tree.append(process)
        return tree

    def _kill_all(self) -> None:
        """End every process inside at once, but the first."""
        helper = os.fork()
        if helper == 0:
            with contextlib.suppress(OSError):
                if os.getppid() == 0:  # in the jail, where the keeper has no number
                    os.kill(-1, signal.SIGKILL)
            os._exit(0)
        os.waitpid(helper, 0)


def _pipe(opened: list[int]) -> tuple[int, int]:
    read, write = os.pipe()
    opened += [read, write]
    return read, write


if sys.platform != "linux":
    raise ImportError("only on Linux")
