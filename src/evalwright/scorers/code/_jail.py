"""Runs one program where it can do nothing but compute. Started by `sandbox` as a process of its own; never imported.

It reads {"program", "word", "seconds", "megabytes"} from its standard input, shuts itself in, runs the program, and writes one line of
JSON. Once shut in, the process cannot
- open any file but those of Python's own library, for reading (Landlock), nor change, make or remove one;
- make a socket, a process or a child, run another program, send a signal, trace, mount, or use keys or modules (seccomp);
- use more memory, processor time or open files than it was given (resource limits), nor raise these limits;
- use any privilege of root (all capabilities are dropped).
Where any of this cannot be had, the program is not run. Linux on x86-64 with Landlock (5.13 or later) has all of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import sys
from pathlib import Path

if sys.platform != "linux":
    raise SystemExit("only on Linux")

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_SET_DUMPABLE, _FILTER = 22, 38, 4, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _CAPSET = 444, 445, 446, 126
_READ = 1 << 2 | 1 << 3
"""Landlock's rights to read a file and to list a folder."""

_ALLOW, _KILL, _REFUSE, _UNKNOWN = 0x7FFF0000, 0x80000000, 0x00050000 | 1, 0x00050000 | 38
_X86_64 = 0xC000003E
_CLONE, _CLONE3, _CLONE_THREAD = 56, 435, 0x10000
_DENIED = (
    57, 58, 59, 322,  # fork, vfork, execve, execveat
    41, 42, 49, 50, 53, 425, 426, 427,  # socket, connect, bind, listen, socketpair, io_uring
    62, 129, 200, 234, 297, 424, 434, 438,  # signals to others, and handles of other processes
    101, 298, 310, 311, 312, 321, 323,  # ptrace, perf, memory of other processes, kcmp, bpf, userfaultfd
    155, 161, 165, 166, 272, 304, 308, 428, 429, 430, 432, 442,  # mounts, roots, namespaces
    76, 90, 91, 92, 93, 94, 260, 268, 452, 132, 235, 261, 280,  # truncate, modes, owners, times of files
    188, 189, 190, 197, 198, 199, 133, 259, 319,  # attributes, devices, files in memory
    29, 64, 68, 240, 248, 249, 250,  # shared memory, semaphores, message queues, keys
    141, 142, 144, 160, 203, 302,  # priorities, limits, processors
    135, 159, 164, 167, 168, 169, 170, 171, 172, 173, 175, 176, 179, 227, 246, 305, 313, 320,  # the machine
)  # fmt: skip
"""System calls that a computation does not need, by their numbers on x86-64."""


def main() -> None:
    """Read the job, shut the door, run."""
    job = json.loads(sys.stdin.buffer.read())
    report = os.dup(1)
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        _preload()
        _limit(int(job["seconds"]), int(job["megabytes"]))
        _close(_library())
    except Exception as error:
        _say(report, job["word"], "no sandbox", f"{type(error).__name__}: {error}")
        return
    try:
        exec(compile(job["program"], "program", "exec"), {"__name__": "__main__"})
    except BaseException as error:
        _say(report, job["word"], "failed", f"{type(error).__name__}: {str(error)[:300]}")
    else:
        _say(report, job["word"], "passed", "")
    os._exit(0)


def _say(report: int, word: str, outcome: str, why: str) -> None:
    line = json.dumps({"word": word, "outcome": outcome, "why": why})
    os.write(report, line.encode("utf-8", "replace")[:4000] + b"\n")


def _preload() -> None:
    """Codecs and tables that Python would look for later."""
    "x".encode("idna")
    import unicodedata

    unicodedata.name("x")


def _library() -> list[str]:
    """The folders of Python's own library and of the system's shared libraries."""
    system = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo")
    wanted = {sys.base_prefix, str(Path(os.__file__).parent), *system}
    return sorted(path for path in wanted if path not in ("", "/") and Path(path).is_dir())


def _limit(seconds: int, megabytes: int) -> None:
    import resource

    size = megabytes << 20
    for what, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, size),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(what, (most, most))


def _close(readable: list[str]) -> None:
    """Give up files, privileges and system calls, in this order."""
    if platform.machine() != "x86_64":
        raise OSError(f"the table of system calls is for x86_64, not {platform.machine()}")
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _check(_LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")
    _landlock(readable)
    header, none = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", 0, 0, 0, 0, 0, 0)
    _check(_LIBC.syscall(_CAPSET, header, none), "capset")
    _seccomp()


def _landlock(readable: list[str]) -> None:
    version = _LIBC.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        raise OSError("the kernel has no Landlock")
    files = 0x1FFF | (version >= 2) << 13 | (version >= 3) << 14 | (version >= 5) << 15
    words = [files, *[0b11] * ((version >= 4) + (version >= 6))]
    attributes = struct.pack(f"{len(words)}Q", *words)
    rules = _check(_LIBC.syscall(_CREATE_RULESET, attributes, len(attributes), 0), "landlock ruleset")
    for path in readable:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        _check(_LIBC.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", _READ, folder), 0), "landlock rule")
        os.close(folder)
    _check(_LIBC.syscall(_RESTRICT_SELF, rules, 0), "landlock")
    os.close(rules)


def _seccomp() -> None:
    def step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    load, equal, at_least, has, end = 0x20, 0x15, 0x35, 0x45, 0x06
    steps = [
        step(load, 4), step(equal, _X86_64, 1, 0), step(end, _KILL),
        step(load, 0), step(at_least, 0x40000000, 0, 1), step(end, _KILL),
        step(equal, _CLONE3, 0, 1), step(end, _UNKNOWN),
    ]  # fmt: skip
    for number in _DENIED:
        steps += [step(equal, number, 0, 1), step(end, _REFUSE)]
    # A new thread is a clone that shares the thread group; anything else is a process.
    steps += [
        step(equal, _CLONE, 0, 3),
        step(load, 16),
        step(has, _CLONE_THREAD, 1, 0),
        step(end, _REFUSE),
        step(end, _ALLOW),
    ]
    code = b"".join(steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(buffer))
    _check(_LIBC.prctl(_PR_SET_SECCOMP, _FILTER, program, 0, 0), "seccomp")


def _check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


if __name__ == "__main__":
    main()
