"""The root of a jail: its namespaces, its filesystem and its first process."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evalwright.sandboxes import jail_calls

_INODES_PER_MB = 512
_MOST_TERMINALS = 32
_ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "hostname": "sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
    "protocols": "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\n",
    "services": "ssh 22/tcp\nsmtp 25/tcp\ndomain 53/udp\nhttp 80/tcp\nhttps 443/tcp\n",
}
_FOLDERS = (
    "/etc",
    "/home",
    "/mnt",
    "/opt",
    "/run",
    "/srv",
    "/usr/local/bin",
    "/usr/local/lib",
    "/var/log",
)
_SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_DEVICE_LINKS = {
    "/dev/fd": "/proc/self/fd",
    "/dev/stdin": "/proc/self/fd/0",
    "/dev/stdout": "/proc/self/fd/1",
    "/dev/stderr": "/proc/self/fd/2",
    "/dev/ptmx": "pts/ptmx",
}


class RootPlan(NamedTuple):
    """What the root of a jail is made of.

    Attributes:
        base: the folder with the machine's parts in `root`, and an empty folder `new`.
        folders: paths of folders that are mounted.
        files: paths of files that are mounted.
        links: symbolic links: path -> where it leads.
        masked_files: files of /proc that nothing is read from.
        masked_folders: folders of /proc that look empty.
        read_only_folders: folders of /proc that nothing is written to.
        environment: variables that Python needs where it is.
    """

    base: str
    folders: Sequence[str]
    files: Sequence[str]
    links: Mapping[str, str]
    masked_files: Sequence[str]
    masked_folders: Sequence[str]
    read_only_folders: Sequence[str]
    environment: Mapping[str, str]


def enter(
    plan: dict[str, Any], root: RootPlan, ready: int, mapped: int, is_root: bool
) -> int:
    """Enter the namespaces, build the root, and fork the first process.

    Returns:
        The process number of the first process.
    """
    if is_root:
        os.setgroups([])
    jail_calls.unshare(
        jail_calls.NEW_USERS
        | jail_calls.NEW_MOUNTS
        | jail_calls.NEW_PIDS
        | jail_calls.NEW_NETWORK
        | jail_calls.NEW_IPC
        | jail_calls.NEW_NAMES
        | jail_calls.NEW_CGROUPS
    )
    os.write(ready, b"r")
    if not os.read(mapped, 1):
        raise OSError("the user namespace could not be given a user")
    os.close(ready)
    os.close(mapped)
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    os.umask(0o022)
    socket.sethostname("sandbox")
    jail_calls.start_loopback()
    jail_calls.make_mounts_private()
    new_root = f"{root.base}/new"
    _build_root(plan, root, new_root)
    jail_calls.forbid_tracing()
    first = _fork_first(root, new_root)
    jail_calls.pivot_root(new_root)
    jail_calls.forbid_capabilities()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return first


def _build_root(plan: dict[str, Any], root: RootPlan, new_root: str) -> None:
    disk_mb = plan["limits"]["disk_mb"]
    options = f"mode=755,size={disk_mb}m,nr_inodes={4096 + disk_mb * _INODES_PER_MB}"
    no_setuid = jail_calls.MOUNT_NO_SETUID
    no_devices = jail_calls.MOUNT_NO_DEVICES
    jail_calls.mount("tmpfs", new_root, "tmpfs", no_setuid | no_devices, options)
    for path in root.folders:
        os.makedirs(new_root + path, exist_ok=True)
        jail_calls.bind(f"{root.base}/root{path}", new_root + path)
    for path in root.files:
        _touch(new_root + path)
        jail_calls.bind(f"{root.base}/root{path}", new_root + path)
    for folder, source in plan["shared"].items():
        if os.path.isdir(source):
            os.makedirs(new_root + folder, exist_ok=True)
        else:
            _touch(new_root + folder)
        jail_calls.bind(source, new_root + folder)
    if not plan["has_snapshot"]:
        for path, target in root.links.items():
            os.makedirs(os.path.dirname(new_root + path), exist_ok=True)
            os.symlink(target, new_root + path)
        for path in _FOLDERS:
            os.makedirs(new_root + path, exist_ok=True)
        os.mkdir(f"{new_root}/root", 0o700)
    for path in _SHARED_FOLDERS:
        os.makedirs(new_root + path, exist_ok=True)
        os.chmod(new_root + path, 0o1777)
    for path, target in _DEVICE_LINKS.items():
        os.symlink(target, new_root + path)
    os.mkdir(f"{new_root}/dev/pts")
    jail_calls.mount(
        "devpts",
        f"{new_root}/dev/pts",
        "devpts",
        no_setuid | jail_calls.MOUNT_NO_PROGRAMS,
        f"newinstance,ptmxmode=0666,mode=620,max={_MOST_TERMINALS}",
    )
    os.makedirs(f"{new_root}/proc", exist_ok=True)


def _touch(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))


def write_accounts() -> None:
    for name, text in _ACCOUNTS.items():
        with open(f"/etc/{name}", "w", encoding="utf-8") as file:
            file.write(text)


def _fork_first(root: RootPlan, new_root: str) -> int:
    """Fork the first process of the new process namespace, and wait until it has mounted /proc.

    It has no descriptor and no capability, and ignores every signal from inside; processes whose
    parent has ended become its children, and are gone when they end.
    """
    read, write = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            _mount_proc(root, new_root)
            for signal_number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(signal_number, signal.SIG_IGN)
            jail_calls.forbid_capabilities()
            jail_calls.keep_capabilities()
            jail_calls.die_with_parent(signal.SIGKILL)
            os.write(write, b"ok")
            os.closerange(0, 1 << 16)
            while True:
                signal.pause()
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(write, str(error).encode("utf-8", "replace"))
        os._exit(1)
    os.close(write)
    report = os.read(read, 4096)
    os.close(read)
    if report != b"ok":
        raise OSError(report.decode("utf-8", "replace") or "the first process ended")
    return first


def _mount_proc(root: RootPlan, new_root: str) -> None:
    restricted = (
        jail_calls.MOUNT_NO_SETUID
        | jail_calls.MOUNT_NO_DEVICES
        | jail_calls.MOUNT_NO_PROGRAMS
    )
    jail_calls.mount("proc", f"{new_root}/proc", "proc", restricted, "hidepid=2")
    # Any port: programs have no capability, and the network is theirs alone.
    ports = f"{new_root}/proc/sys/net/ipv4/ip_unprivileged_port_start"
    with contextlib.suppress(OSError), open(ports, "w", encoding="utf-8") as setting:
        setting.write("0")
    for path in root.masked_files:
        jail_calls.bind(f"{root.base}/root/dev/null", new_root + path)
    for path in root.masked_folders:
        jail_calls.bind(f"{root.base}/empty", new_root + path)
    for path in (*root.read_only_folders, *root.masked_folders):
        if path in root.read_only_folders:
            jail_calls.bind(new_root + path, new_root + path)
        jail_calls.restrict_mount(new_root + path, jail_calls.MOUNT_READ_ONLY)


if sys.platform != "linux":
    raise ImportError("only on Linux")
