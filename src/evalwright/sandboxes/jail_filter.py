"""The filter of system calls of programs in a jail, compiled for the kernel from a table.

Numbers are the kernel's (linux/filter.h, linux/seccomp.h). A step loads a word, compares it and
skips so many steps where it is so, and so many others where not, or ends with a verdict.
"""

from __future__ import annotations

import platform
import struct
import sys
import tomllib
from pathlib import Path

if sys.platform != "linux":
    raise ImportError("only on Linux")

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""For each machine, its column in `jail_syscalls.toml` and the kernel's name for it."""
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_HAS_BITS = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | 1
_UNKNOWN = 0x00050000 | 38
_KILL = 0x80000000
_NUMBER_OFFSET = 0
_MACHINE_OFFSET = 4
_REFUSED_CLONE_FLAGS = 0x7E020080 | 0x8000
"""New namespaces, and children that are not the caller's but its parent's."""
_REFUSED_TERMINAL_CALLS = (0x5412, 0x541C, 0x5423)
"""Put input into a terminal, command the console, change the terminal's discipline."""
_PERSONALITIES = (0, 0xFFFFFFFF, 0x0040000)
"""The usual one, asking for the present one, and addresses that are not random (debuggers)."""
_SOCKET_FAMILIES = (1, 2, 10)
"""Local sockets, IPv4 and IPv6."""


def _step(code: int, operand: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, operand)


def _load_argument(index: int) -> bytes:
    return _step(_LOAD, 16 + 8 * index)


def build_filter() -> bytes:
    """Compile `jail_syscalls.toml` to a filter of system calls for this machine."""
    if platform.machine() not in _MACHINES or struct.calcsize("P") != 8:
        raise OSError(
            f"the table of system calls is for {' and '.join(_MACHINES)}, not"
            f" {platform.machine()}"
        )
    column, machine = _MACHINES[platform.machine()]
    text = Path(__file__).with_name("jail_syscalls.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    allow = _step(_RETURN, _ALLOW)
    refuse = _step(_RETURN, _REFUSE)
    unknown = _step(_RETURN, _UNKNOWN)

    def only(argument_index: int, permitted: tuple[int, ...]) -> list[bytes]:
        steps = [_load_argument(argument_index)]
        for number in permitted:
            steps += [_step(_EQUAL, number, 0, 1), allow]
        return [*steps, refuse]

    def all_but(argument_index: int, forbidden: tuple[int, ...]) -> list[bytes]:
        steps = [_load_argument(argument_index)]
        for number in forbidden:
            steps += [_step(_EQUAL, number, 0, 1), refuse]
        return [*steps, allow]

    has_refused_flags = _step(_HAS_BITS, _REFUSED_CLONE_FLAGS, 0, 1)
    bounded = {
        "clone": [_load_argument(0), has_refused_flags, refuse, allow],
        "ioctl": all_but(1, _REFUSED_TERMINAL_CALLS),
        "personality": only(0, _PERSONALITIES),
        "socket": only(0, _SOCKET_FAMILIES),
        "socketpair": only(0, _SOCKET_FAMILIES),
    }
    steps = [
        _step(_LOAD, _MACHINE_OFFSET),
        _step(_EQUAL, machine, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER_OFFSET),
        _step(_AT_LEAST, table["newest"] + 1, 0, 1),
        unknown,
    ]
    blocks = [
        *((numbers, [refuse]) for numbers in table["refused"].values()),
        *((numbers, [unknown]) for numbers in table["unknown"].values()),
        *((numbers, bounded[name]) for name, numbers in table["bounded"].items()),
    ]
    for numbers, block in blocks:
        if numbers[column] >= 0:
            steps += [_step(_EQUAL, numbers[column], 0, len(block)), *block]
    return b"".join([*steps, allow])
