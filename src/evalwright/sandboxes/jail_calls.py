"""The calls of the Linux kernel that Python does not have, for `jail_starter` and `jail_keeper`.

Nothing here decides anything; each function is one call, and raises `OSError` where it fails.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import socket
import struct
import sys

if sys.platform != "linux":
    raise ImportError("only on Linux")

NEW_TIME = 0x00000080
NEW_MOUNTS = 0x00020000
NEW_CGROUPS = 0x02000000
NEW_NAMES = 0x04000000
NEW_IPC = 0x08000000
NEW_USERS = 0x10000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000

MOUNT_READ_ONLY = 1
MOUNT_NO_SETUID = 2
MOUNT_NO_DEVICES = 4
MOUNT_NO_PROGRAMS = 8
_MS_BIND = 1 << 12
_MS_RECURSIVE = 1 << 14
_MS_PRIVATE = 1 << 18
_DETACH = 2
_AT_CURRENT = -100
_AT_RECURSIVE = 0x8000

CAP_DAC_OVERRIDE = 1
CAP_DAC_READ_SEARCH = 2
CAP_FOWNER = 3
CAP_SYS_PTRACE = 19
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_SECUREBITS = 28
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECURE_ROOT_IS_NOBODY = 0b10_11_11  # root has no rights of its own; locked

RESOLVE_NO_MAGIC_LINKS = 0x02
PROC_FILESYSTEM = 0x9FA0
_OPENAT2 = 437
_MOUNT_SETATTR = 442
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}

_SIOCSIFFLAGS = 0x8914
_INTERFACE_UP = 0x1 | 0x40

_libc = ctypes.CDLL(None, use_errno=True)


def check(status: int, step: str) -> int:
    """Return a call's status, or raise what it failed with."""
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{step}: {os.strerror(number)}")
    return status


def unshare(flags: int) -> None:
    """Enter new namespaces."""
    check(_libc.unshare(flags), "namespaces of its own")


def mount(
    source: str, target: str, filesystem: str, flags: int = 0, options: str = ""
) -> None:
    """Mount a filesystem."""
    status = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        filesystem.encode(),
        ctypes.c_ulong(flags),
        options.encode(),
    )
    check(status, f"mount of {filesystem} at {target}")


def bind(source: str, target: str) -> None:
    """Show a file or folder, with what is mounted below it, at a second path."""
    flags = ctypes.c_ulong(_MS_BIND | _MS_RECURSIVE)
    status = _libc.mount(os.fsencode(source), os.fsencode(target), None, flags, None)
    check(status, f"mount of {source} at {target}")


def make_mounts_private() -> None:
    """Keep mounts of this namespace from showing in others, and the other way round."""
    flags = ctypes.c_ulong(_MS_RECURSIVE | _MS_PRIVATE)
    check(_libc.mount(None, b"/", None, flags, None), "private mounts")


def restrict_mount(path: str, attributes: int) -> None:
    """Add restrictions (MOUNT_...) to a mount and to all below it."""
    packed = struct.pack("4Q", attributes, 0, 0, 0)
    status = _libc.syscall(
        _MOUNT_SETATTR,
        _AT_CURRENT,
        os.fsencode(path),
        _AT_RECURSIVE,
        packed,
        len(packed),
    )
    check(status, f"mount_setattr of {path}")


def pivot_root(path: str) -> None:
    """Make a mount the root, and let go of the old root and of everything in it."""
    os.chdir(path)
    check(_libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    check(_libc.umount2(b".", _DETACH), "umount of the old root")
    os.chdir("/")


def keep_capabilities(*capabilities: int) -> None:
    """Give up every capability but these."""
    bits = sum(1 << capability for capability in capabilities)
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    sets = struct.pack("6I", bits, bits, 0, 0, 0, 0)
    status = _libc.syscall(_CAPSET[platform.machine()], header, sets)
    check(status, "capset")


def forbid_capabilities() -> None:
    """See to it that no program that is started from now on has a capability, not even root's."""
    for capability in range(_LAST_CAPABILITY + 1):
        if _libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) < 0:
            break
        check(_libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), "capability bounding")
    check(
        _libc.prctl(_PR_SET_SECUREBITS, _SECURE_ROOT_IS_NOBODY, 0, 0, 0), "secure bits"
    )
    check(
        _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0),
        "ambient capabilities",
    )


def die_with_parent(signal_number: int) -> None:
    """Get a signal when the parent ends."""
    check(_libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "parent's death")


def forbid_tracing() -> None:
    """Keep other processes of this user from looking into this one."""
    check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")


def permit_tracing() -> None:
    """Be owned by this process's user again, who was another one before."""
    check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "dumpable")


def forbid_new_privileges() -> None:
    """Let no program that is started from now on have more rights than this process."""
    check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def install_filter(program: bytes) -> None:
    """Filter the system calls of this process and of all that it starts."""
    buffer = ctypes.create_string_buffer(program, len(program))
    packed = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    check(_libc.prctl(_PR_SET_SECCOMP, 2, packed, 0, 0), "seccomp")


def open_inside(path: str, flags: int, mode: int = 0) -> int:
    """Open a file without following the links of /proc that lead to processes' files."""
    how = struct.pack("3Q", flags, mode, RESOLVE_NO_MAGIC_LINKS)
    status = _libc.syscall(_OPENAT2, _AT_CURRENT, os.fsencode(path), how, len(how))
    descriptor = int(status)
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return descriptor


def filesystem_of(descriptor: int) -> int:
    """Return the kernel's number of the kind of filesystem that an open file is in."""
    buffer = ctypes.create_string_buffer(256)
    check(_libc.fstatfs(descriptor, buffer), "fstatfs")
    number: int = struct.unpack_from("l", buffer)[0]
    return number


def start_loopback() -> None:
    """Turn on the loopback interface of this network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interface:
        request = struct.pack("16sh", b"lo", _INTERFACE_UP) + bytes(22)
        fcntl.ioctl(interface, _SIOCSIFFLAGS, request)
