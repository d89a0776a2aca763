"""Runs work on untrusted text in a separate process, limited in processor time and memory.

`call(function, ...)` runs one function there, `each(function, rows)` runs it on many rows in
one message. The process is started when it is first needed, serves until the program ends, and
is restarted after a limit ended it. Templates, patterns and scorers all share it, so this
module stands beside `core`, which does no I/O. Python code of a folder that the user trusts
runs in a `Process` of its own.

The operating system counts processor time and ends the process, so code that runs there cannot
evade the limit, and a slow machine does not change it. Results are unpickled as plain values
only. Work that has hit its limit `STRIKES` times is refused at once from then on, so that a
hostile file costs seconds in all, not seconds per row.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn

from evalwright.core import errors

SECONDS = 2.0
"""Processor seconds that one piece of work may take, unless its caller sets another limit."""
MEMORY = 2 << 30
"""Bytes of address space that the process may have."""
_TOO_LARGE = "LimitExceeded", f"it takes more than {MEMORY >> 20:,} MiB of memory"
STRIKES = 3
_PATIENCE = 60.0
"""Wall-clock seconds, beyond ten times the limit, after which a silent process is ended."""
_LONGEST = 1 << 28
_MOST_DIGITS = 300
_HEAD = struct.Struct(">Q")
_PLAIN = {
    "builtins": {"set", "frozenset"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "evalwright.core.samples": {"NoScore", "Passage", "Score"},
    "evalwright.tasks.yaml_files": {"WrittenFloat"},
}
"""Classes that a result may contain, besides the types that pickle supports without imports."""
_PASSED_ON = (
    "DYLD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "TZ",
)
"""Environment variables that the process inherits.

Without these it may not start, or may format dates and texts differently.
"""
_START = (
    "import json, sys; sys.path[:], memory = json.loads(sys.argv[1]); "
    "from evalwright.bounded import serve; serve(memory)"
)


class LimitExceeded(Exception):
    """A piece of work took too long, used too much memory or returned too much.

    The message completes a sentence: "it takes more than ...".
    """


class Raised(Exception):
    """The function raised an exception that is not one of Evalwright's errors.

    Args:
        kind: the name of the exception's class.
        message: the exception's message.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def call(
    function: Callable[..., Any],
    *arguments: Any,
    seconds: float | None = None,
    key: object = None,
    process: Process | None = None,
) -> Any:
    """Return `function(*arguments)`, computed in the bounded process.

    Args:
        function: a module-level function, because it is pickled by name.
        arguments: plain values and samples; so is what the function returns.
        seconds: limit of processor time; by default `SECONDS`.
        key: identifies the template or pattern that hits the limit, to count its `STRIKES`.
        process: a process other than the shared one.

    Returns:
        What the function returned.

    Raises:
        LimitExceeded: the work exceeded a limit.
        EvalwrightError: the function raised one of Evalwright's errors; it is raised as it is.
        Raised: the function raised any other exception.
    """
    return each(function, [arguments], seconds=seconds, key=key, process=process)[0]


def each(
    function: Callable[..., Any],
    rows: Sequence[Sequence[Any]],
    *,
    seconds: float | None = None,
    key: object = None,
    process: Process | None = None,
) -> list[Any]:
    """Return `function(*row)` for every row, computed in one message to the bounded process.

    The time limit applies to each row. Arguments and errors are those of `call`.
    """
    if _serving:  # nested work is already within the limits of the outer one
        return [function(*row) for row in rows]
    seconds = SECONDS if seconds is None else seconds
    blamed = (function.__qualname__, key)
    if key is not None and _strikes[blamed] >= STRIKES:
        raise LimitExceeded(
            f"it met its limit of time or memory {STRIKES} times already, so it is not"
            " tried again"
        )
    try:
        message = pickle.dumps(
            (function, tuple(rows), seconds), pickle.HIGHEST_PROTOCOL
        )
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise Raised(
            type(error).__name__, f"a value cannot be handed over: {error}"
        ) from None
    try:
        return [
            _opened(*reply)
            for reply in (process or _process).ask(message, len(rows), seconds)
        ]
    except LimitExceeded:
        _strikes[blamed] += 1
        raise


_strikes: Counter[tuple[str, object]] = Counter()
_serving = False
"""Whether this code runs inside the bounded process."""


def _opened(kind: str, value: Any) -> Any:
    """Return the value of a reply, or raise the exception that the reply stands for."""
    if not kind:
        return value
    if kind == "LimitExceeded":
        raise LimitExceeded(value)
    cls = getattr(errors, kind, None)
    if (
        isinstance(cls, type)
        and issubclass(cls, errors.EvalwrightError)
        and cls.__init__ is Exception.__init__
    ):
        raise cls(value)
    raise Raised(kind, value)


class Process:
    """A bounded worker process and the pipes to it.

    It handles one message at a time. A child made by `fork` starts a process of its own.

    Args:
        folder: the working directory; by default the current one.
        environment: the environment variables; by default only the language, the time zone and
            library paths, so that untrusted code finds no API key there.
        memory: bytes of address space; None for no limit.
        patience: wall-clock seconds after which a silent process is ended; by default derived from
            the time limit.
    """

    def __init__(
        self,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        memory: int | None = MEMORY,
        patience: float | None = None,
    ) -> None:
        self._folder = folder
        self._environment = environment
        self._memory = memory
        self._patience = patience
        self._lock = threading.Lock()
        self._closed = False
        self._running: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def ask(self, message: bytes, count: int, seconds: float) -> Any:
        """Send a message with `count` rows and return the process's reply.

        Raises:
            LimitExceeded: the process ended, did not reply in time, or was closed.
        """
        with self._lock:
            for again in (True, False):
                process = self._started()
                with contextlib.suppress(BrokenPipeError):
                    _write(process.stdin, message)
                patience = self._patience or 10 * seconds * count + _PATIENCE
                try:
                    return _plain(_read(process.stdout, patience))
                except EOFError:
                    status = self._ended()
                    # Killed from outside while it waited (out of memory, or by hand): the first
                    # time, the work itself is not to blame.
                    if status == -signal.SIGKILL and again:
                        continue
                    raise LimitExceeded(_why(status, seconds)) from None
                except BaseException:
                    self._ended()
                    raise
        raise AssertionError

    def _started(self) -> subprocess.Popen[bytes]:
        if self._closed:
            raise LimitExceeded("the run was interrupted")
        if (
            self._running is None
            or self._owner != os.getpid()
            or self._running.poll() is not None
        ):
            self._owner = os.getpid()
            # Linear algebra gets one thread: each further one would take up limited address space.
            passed_on = {
                name: os.environ[name] for name in _PASSED_ON if name in os.environ
            }
            chosen = passed_on if self._environment is None else self._environment
            environment = {
                **chosen,
                "OPENBLAS_NUM_THREADS": "1",
                "OMP_NUM_THREADS": "1",
            }
            path = [folder or str(Path.cwd()) for folder in sys.path]
            self._running = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, json.dumps([path, self._memory])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=self._folder,
                start_new_session=True,
            )
        return self._running

    def _ended(self) -> int:
        process = self._running
        self._running = None
        if process is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
        if process.poll() is None:
            process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()
        return process.wait()

    def close(self) -> None:
        """End the process for good, if this program started it; nobody waits for a reply now."""
        self._closed = True
        if (running := self._running) is not None and self._owner == os.getpid():
            running.kill()
            with self._lock:
                self._ended()


_process = Process()
atexit.register(_process.close)


def _why(status: int, seconds: float) -> str:
    if status == -signal.SIGPROF:
        return f"it takes more than {seconds:g} s of processor time"
    return f"its process ended ({status}), as one does that takes too much memory"


def _write(pipe: Any, message: bytes) -> None:
    pipe.write(_HEAD.pack(len(message)) + message)
    pipe.flush()


def _read(pipe: Any, patience: float | None = None) -> bytes:
    """Read one message from a pipe.

    Raises:
        EOFError: the other side has closed the pipe.
        LimitExceeded: nothing arrived for `patience` seconds.
    """
    if patience is not None and not select.select([pipe], [], [], patience)[0]:
        raise LimitExceeded(f"it gave no result in {patience:g} s")
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    (length,) = _HEAD.unpack(head)
    body: bytes = pipe.read(length)
    if len(body) < length:
        raise EOFError
    return body


class _PlainValues(pickle.Unpickler):
    """An unpickler that builds only harmless values: built-in types and Evalwright's records."""

    def find_class(self, module: str, name: str, /) -> Any:
        if name in _PLAIN.get(module, ()):
            return getattr(import_module(module), name)
        raise pickle.UnpicklingError(f"{module}.{name} is not a plain value")


def _plain(message: bytes) -> Any:
    try:
        return _PlainValues(io.BytesIO(message)).load()
    except (
        pickle.UnpicklingError,
        AttributeError,
        IndexError,
        TypeError,
        ValueError,
    ) as error:
        raise Raised("UnpicklingError", f"the result cannot be used: {error}") from None


def from_json(text: str | bytes) -> Any:
    """Parse JSON from an untrusted source.

    Raises:
        ValueError: the JSON is invalid, nested too deeply or has a number too large; the message
            says which.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return _decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _decode(text: str) -> Any:
    """Decode like `_DECODER.decode`, which takes half as long again for a typical reply."""
    try:
        value, end = _DECODER.scan_once(text, 0)
    except StopIteration:  # white space, or no JSON
        return _DECODER.decode(text)
    return _DECODER.decode(text) if text[end:].strip(" \t\n\r") else value


def _parse_integer(digits: str) -> int:
    # A number beyond the range of floats would raise an error wherever it is first used.
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it has a number of {len(digits):,} digits")
    return int(digits)


_DECODER: Any = json.JSONDecoder(parse_int=_parse_integer)
"""Built once: building it takes as long as parsing a typical reply."""


# -- inside the process ----------------------------------------------------------------


def serve(memory: int | None) -> NoReturn:
    """Answer messages until the pipe closes; closing it also ends work in progress.

    This is the main loop of the bounded process.
    """
    import resource

    global _serving
    _serving = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    incoming = os.fdopen(os.dup(0), "rb")
    outgoing = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    messages: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        with contextlib.suppress(EOFError):
            while True:
                messages.put(_read(incoming))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        function, rows, seconds = pickle.loads(messages.get())
        _write(outgoing, _packed(list(_worked(function, rows, seconds))))


def _worked(
    function: Callable[..., Any], rows: Sequence[Sequence[Any]], seconds: float
) -> Iterator[tuple[str, Any]]:
    for row in rows:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            outcome = "", function(*row)
        except RecursionError:
            outcome = "LimitExceeded", "it is nested too deeply"
        except MemoryError:
            outcome = _TOO_LARGE
        except (Exception, SystemExit) as error:
            outcome = type(error).__name__, str(error)[:2000]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        yield outcome


def _packed(outcomes: list[tuple[str, Any]]) -> bytes:
    try:
        message = pickle.dumps(outcomes, pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return pickle.dumps([_TOO_LARGE] * len(outcomes))
    except Exception as error:
        return pickle.dumps([(type(error).__name__, str(error)[:2000])] * len(outcomes))
    if len(message) > _LONGEST:
        return pickle.dumps(
            [("LimitExceeded", f"it gives more than {_LONGEST >> 20} MiB")]
            * len(outcomes)
        )
    return message
