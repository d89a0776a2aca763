"""Starts processes that can do nothing but compute.

`sandbox` runs this file once, as a process of its own; it is never imported.

It first enters namespaces of its own as far as it can (mounts, network, IPC, host name), with a
root that holds only Python's library. Then it tries every required layer in a child, and reports on
its control socket which layers it has, or what is missing. Each message on that socket carries the
descriptors of a standard input, output and error and of a line to whoever sent it. For each message
it forks a keeper. The keeper forks the sandboxed process (the first of a new process namespace, if
that is possible), ends it when the line is closed, and reports its exit status on the line. The
sandboxed process cannot

- open any file but those of Python's standard library and the system's shared libraries, and these
  only for reading; nor change, create or remove one (Landlock, and the filter of system calls);
- make any system call but those in `syscalls.toml`: no socket, process, program, signal to others,
  tracing, mount or newer system call (seccomp);
- act as the person who started it: it has another user id (if started by root) or a user namespace,
  and no capability;
- use more memory, processor time, open files or threads than it was allowed, nor write a file
  (resource limits).
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

if sys.platform != "linux":
    raise SystemExit("only on Linux")

_LIBC = ctypes.CDLL(None, use_errno=True)
_HERE = Path(__file__).parent
_NOBODY = 65534
_OWN_FILES = 0x20000
_OWN_USER = 0x10000000
_OWN_PIDS = 0x20000000
_OWN_REST = 0x02000000 | 0x04000000 | 0x08000000 | 0x40000000
"""The flags of `unshare` for control groups, host name, IPC and network."""
_PRIVATE = 1 << 18
_RECURSIVE = 1 << 14
_BIND = 1 << 12
_DETACH = 2
_MOUNT_ONLY_READ = 1 | 2 | 4
"""The mount flags read-only, no set-user-id programs, and no devices."""
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_PIVOT_ROOT, _CAPSET = {"x86_64": (155, 126), "aarch64": (41, 91)}.get(
    platform.machine(), (-1, -1)
)
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_MOUNT_SETATTR = 442
_LANDLOCK_READ_FILE = 1 << 2
_LANDLOCK_LIST_FOLDER = 1 << 3
_ZONES = "/usr/share/zoneinfo"
_INSTALLED = ("site-packages", "dist-packages")
"""Folders inside the standard library's folder that hold installed packages instead."""
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_REFUSE = 0x00050000 | 1
_UNKNOWN = 0x00050000 | 38
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""For each machine, its column in `syscalls.toml` and the kernel's name for it."""

_PROBES: dict[str, Callable[[], object]] = {
    "Landlock": lambda: os.open("/", os.O_RDONLY),
    "the filter of system calls": lambda: os.kill(os.getppid(), 0),
    "the filter of system calls for sockets": socket.socketpair,
}


def main() -> None:
    """Apply the layers, report them, then start a process for each message."""
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        inside = _load_inside()
        filters = _build_filter()
        library = _find_library()
        layers = _enter_own_namespaces(library)
        rules = _build_landlock_rules(_readable_paths(library))
        limits = {"seconds": 10, "megabytes": 1024}

        def shut_in() -> None:
            _shut_in(limits, library, rules, filters, layers)

        if problem := _probe(shut_in):
            raise OSError(problem)
    except Exception as error:
        control.send(json.dumps({"missing": str(error)}).encode())
        return
    control.send(json.dumps({"layers": layers}).encode())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        limits_text, descriptors, _, _ = socket.recv_fds(control, 4096, 4)
        if not limits_text:
            return
        limits.update(json.loads(limits_text))
        if os.fork() == 0:
            control.close()
            _supervise(descriptors, nothing, rules, layers, shut_in, inside)
        for descriptor in descriptors:
            os.close(descriptor)


class _Library(NamedTuple):
    """The folders that may be read.

    Attributes:
        standard: folders of the standard library.
        shared: folders of shared libraries, which may also hold anything else.
    """

    standard: list[str]
    shared: list[str]


def _find_library() -> _Library:
    """Find the folders of Python's standard library and of the system's shared libraries.

    Of the latter, only shared libraries are read.
    """
    folders = {str(Path(os.__file__).parent), sysconfig.get_path("platstdlib")}
    triplets = (
        sysconfig.get_config_var("MULTIARCH"),
        f"{platform.machine()}-linux-gnu",
    )
    system = [
        f"{root}/{triplet}"
        for root in ("/usr/lib", "/lib")
        for triplet in triplets
        if triplet
    ]
    system += ["/usr/lib", "/usr/lib64", "/lib", "/lib64", f"{sys.base_prefix}/lib"]
    return _Library(
        sorted(path for path in folders if Path(path).is_dir()),
        sorted({path for path in system if Path(path).is_dir()}),
    )


def _readable_paths(library: _Library) -> list[tuple[str, int]]:
    """List each path that may be read, with the Landlock rights to it and to what is below it."""
    rights = dict.fromkeys(library.standard, _LANDLOCK_LIST_FOLDER)
    for folder in library.standard:
        for file in os.scandir(folder):
            if file.name not in _INSTALLED and file.path not in rights:
                below = _LANDLOCK_READ_FILE | (
                    _LANDLOCK_LIST_FOLDER if file.is_dir() else 0
                )
                rights[file.path] = below
    for folder in library.shared:
        for file in os.scandir(folder):
            if ".so" in file.name and file.is_file():
                rights[file.path] = _LANDLOCK_READ_FILE
    if Path(_ZONES).is_dir():
        rights[_ZONES] = _LANDLOCK_READ_FILE | _LANDLOCK_LIST_FOLDER
    return sorted(rights.items())


def _load_inside() -> Any:
    """Load the module that runs inside, and what programs commonly import, before any fork."""
    spec = importlib.util.spec_from_file_location("_inside", _HERE / "_inside.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in (
        "bisect",
        "copy",
        "heapq",
        "itertools",
        "random",
        "re",
        "statistics",
        "string",
        "typing",
        "unicodedata",
    ):
        __import__(name)
    "x".encode("idna")
    return module


def _enter_own_namespaces(library: _Library) -> list[str]:
    """Leave the namespaces of the process that started this one; return the layers obtained."""
    user = os.geteuid()
    group = os.getegid()
    layers = ["another user id" if user == 0 else "user name space"]
    all_rights = _OWN_FILES | _OWN_REST | (_OWN_USER if user else 0)
    if _LIBC.unshare(all_rights) < 0:
        if user and _LIBC.unshare(_OWN_USER) < 0:
            raise OSError(
                "the kernel gives no user name space to a user who is not root (allow"
                " it with the sysctl kernel.unprivileged_userns_clone or"
                " user.max_user_namespaces, or run as root)"
            )
        return layers
    if user:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path("/proc/self", name).write_text(text)
    layers += ["network name space", "process name space"]
    try:
        _own_root(library)
    except OSError:
        return layers
    return [*layers, "root of its own"]


def _own_root(library: _Library) -> None:
    """Enter a root in memory that has only the library's folders, read-only.

    Packages that are installed in these folders are hidden.
    """
    base = (  # Any existing folder will do: something is mounted over it, in this namespace only.
        "/tmp"
    )
    os.umask(0o022)
    folders = sorted(
        {*library.standard, *library.shared, *filter(os.path.isdir, [_ZONES])}
    )
    sources = [f"/proc/self/fd/{os.open(path, os.O_PATH)}" for path in folders]
    _mount(None, "/", None, _PRIVATE | _RECURSIVE, None)
    _mount("tmpfs", base, "tmpfs", 2 | 4, "mode=755,size=1m")
    for source, path in zip(sources, folders, strict=True):
        Path(base + path).mkdir(parents=True, exist_ok=True)
        _mount(source, base + path, None, _BIND | _RECURSIVE, None)
    for path in library.standard:
        for name in _INSTALLED:
            if Path(f"{base}{path}/{name}").is_dir():
                _mount(
                    "tmpfs", f"{base}{path}/{name}", "tmpfs", 2 | 4, "mode=755,size=4k"
                )
    attributes = struct.pack("4Q", _MOUNT_ONLY_READ, 0, 0, 0)
    folder = base.encode()
    _check(
        _LIBC.syscall(
            _MOUNT_SETATTR, -100, folder, 0x8000, attributes, len(attributes)
        ),
        "mount_setattr",
    )
    os.chdir(base)
    _check(_LIBC.syscall(_PIVOT_ROOT, b".", b"."), "pivot_root")
    _check(_LIBC.umount2(b".", _DETACH), "umount")
    os.chdir("/")


def _mount(
    source: str | None,
    target: str,
    filesystem: str | None,
    flags: int,
    options: str | None,
) -> None:
    texts = [
        argument.encode() if argument is not None else None
        for argument in (source, target, filesystem, options)
    ]
    _check(
        _LIBC.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]),
        f"mount {target}",
    )


def _probe(shut_in: Callable[[], None]) -> str:
    """Try the layers in a child: apply each, then try what it forbids.

    Returns:
        What is missing, "" if nothing is.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            shut_in()
            problem = ""
            for layer, forbidden in _PROBES.items():
                try:
                    forbidden()
                    problem = f"{layer} is there but forbids nothing"
                except PermissionError:
                    continue
            __import__(
                "colorsys"
            )  # a module that is not loaded yet: can the library be read?
        except BaseException as error:
            problem = str(error) or type(error).__name__
        os.write(write, problem.encode()[:2000])
        os._exit(0)
    os.close(write)
    report = b""
    while piece := os.read(read, 4096):
        report += piece
    os.close(read)
    ended = os.waitpid(child, 0)[1]
    return report.decode() or (
        f"a trial process was ended by the signal {ended & 127}" if ended else ""
    )


def _supervise(
    descriptors: list[int],
    nothing: int,
    rules: int,
    layers: list[str],
    shut_in: Callable[[], None],
    inside: Any,
) -> None:
    """Fork the process and watch it; kill it when nobody waits for it any more."""
    line = descriptors.pop()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        if "process name space" in layers:
            _check(_LIBC.unshare(_OWN_PIDS), "process name space")
        child = os.fork()
    except OSError as error:
        os.write(line, f"E{error}".encode())
        os._exit(1)
    if child == 0:
        try:
            for standard, source_descriptor in enumerate(descriptors):
                os.dup2(source_descriptor, standard)
            os.dup2(nothing, 3)
            os.dup2(line, 4)
            os.closerange(5, rules)
            os.closerange(rules + 1, 1 << 16)
            shut_in()
            os.close(4)
        except BaseException as error:
            os.write(4, f"E{error}".encode())
            os._exit(1)
        inside.main(3)
    for descriptor in descriptors:
        os.close(descriptor)
    watched = select.poll()
    ended = os.pidfd_open(child)
    for descriptor in (line, ended):
        watched.register(descriptor, select.POLLIN | select.POLLHUP)
    if ended not in dict(watched.poll()):
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(OSError):
        os.write(line, f"S{status}".encode())
    os._exit(0)


def _shut_in(
    limits: dict[str, int],
    library: _Library,
    rules: int,
    filters: bytes,
    layers: list[str],
) -> None:
    """Give up user, files, privileges and system calls, in this order.

    `rules` is the descriptor of Landlock's rules; it is closed.
    """
    if "another user id" in layers:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        # Counts its threads separately from those of others with this user id; not required.
        _LIBC.unshare(_OWN_USER)
    size = limits["megabytes"] << 20
    for limit, most in (
        (resource.RLIMIT_CPU, 4 * limits["seconds"] + 2),
        (resource.RLIMIT_AS, size),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 64),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(limit, (most, most))
    _check(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _check(_LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")
    _landlock(rules, library)
    _check(
        _LIBC.syscall(
            _CAPSET, struct.pack("Ii", 0x20080522, 0), struct.pack("6I", *[0] * 6)
        ),
        "capset",
    )
    _check(_LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "parent's death")
    buffer = ctypes.create_string_buffer(filters, len(filters))
    program = struct.pack("HxxxxxxP", len(filters) // 8, ctypes.addressof(buffer))
    layer = "the filter of system calls (seccomp)"
    _check(_LIBC.prctl(_PR_SET_SECCOMP, 2, program, 0, 0), layer)


def _build_landlock_rules(readable: list[tuple[str, int]]) -> int:
    """Create the Landlock ruleset and return its descriptor.

    Only these paths may be opened, and each only with its rights.
    """
    version = _LIBC.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        raise OSError(
            "the kernel has no Landlock (Linux 5.13 or later, with 'landlock' in its"
            " list of security modules)"
        )
    files = 0x1FFF | (version >= 2) << 13 | (version >= 3) << 14 | (version >= 5) << 15
    words = [files, *[0b11] * ((version >= 4) + (version >= 6))]
    attributes = struct.pack(f"{len(words)}Q", *words)
    rules = _check(
        _LIBC.syscall(_CREATE_RULESET, attributes, len(attributes), 0),
        "Landlock's ruleset",
    )
    for path, rights in readable:
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # a path that this user cannot reach is not needed, or the trial reports it
        rule = struct.pack("=Qi", rights, opened)
        _check(_LIBC.syscall(_ADD_RULE, rules, 1, rule, 0), "Landlock's rule")
        os.close(opened)
    return rules


def _landlock(rules: int, library: _Library) -> None:
    for path in library.standard:
        if not os.access(path, os.X_OK):
            raise OSError(
                f"another user cannot read Python's library in {path}, as every program"
                " here must"
            )
    _check(_LIBC.syscall(_RESTRICT_SELF, rules, 0), "Landlock")
    os.close(rules)


def _build_filter() -> bytes:
    """Compile `syscalls.toml` to a filter of system calls for this machine."""
    if platform.machine() not in _MACHINES or struct.calcsize("P") != 8:
        raise OSError(
            f"the table of system calls is for {' and '.join(_MACHINES)}, not"
            f" {platform.machine()}"
        )
    column, machine = _MACHINES[platform.machine()]
    table = tomllib.loads((_HERE / "syscalls.toml").read_text(encoding="utf-8"))

    def step(code: int, operand: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, operand)

    load = 0x20
    equal = 0x15
    at_least = 0x35
    has = 0x45
    end = 0x06
    refuse = step(end, _REFUSE)
    allow = step(end, _ALLOW)

    def argument(index: int) -> bytes:
        return step(load, 16 + 8 * index)

    def one_of(index: int, *values: int) -> list[bytes]:
        return [
            argument(index),
            *(
                instruction
                for number in values
                for instruction in (step(equal, number, 0, 1), allow)
            ),
            refuse,
        ]

    def without(index: int, bits: int) -> list[bytes]:
        return [argument(index), step(has, bits, 0, 1), refuse, allow]

    # Flags to open for writing, create, truncate, or get signals; `O_PATH` alone is of no use.
    changes = 0o3 | 0o100 | 0o1000 | 0o2000 | 0o20000 | 0o20000000 | 0o10000000
    bounded = {
        "open": without(1, changes),
        "openat": without(2, changes),
        # Duplicate a descriptor, read or set close-on-exec, read the open flags; no owner for
        # signals, no locks.
        "fcntl": one_of(1, 0, 1, 2, 3, 1030),
        # Ask whether it is a terminal, how much can be read, and set close-on-exec.
        "ioctl": one_of(1, 0x5401, 0x5413, 0x541B, 0x5450, 0x5451),
        # A thread, but no new namespaces.
        "clone": [
            argument(0),
            step(has, 0x10000, 1, 0),
            refuse,
            step(has, 0x7E020080, 0, 1),
            refuse,
            allow,
        ],
        # Only its own limits.
        "prlimit64": one_of(0, 0),
    }
    steps = [step(load, 4), step(equal, machine, 1, 0), step(end, _KILL), step(load, 0)]
    if machine == 0xC000003E:
        steps += [step(at_least, 0x40000000, 0, 1), step(end, _KILL)]
    for treatment in ("allowed", "bounded", "answered"):
        for name, numbers in table[treatment].items():
            block = (
                bounded[name]
                if treatment == "bounded"
                else [allow if treatment == "allowed" else step(end, _UNKNOWN)]
            )
            if numbers[column] >= 0:
                steps += [step(equal, numbers[column], 0, len(block)), *block]
    return b"".join([*steps, refuse])


def _check(status: int, step: str) -> int:
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{step}: {os.strerror(number)}")
    return status


if __name__ == "__main__":
    main()
