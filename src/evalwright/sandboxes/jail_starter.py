"""Starts jails: one process of this kind serves a whole process of Evalwright.

`jail` runs this file as a process of its own; it is never imported. It builds, in a mount namespace
of its own, the parts of this machine that every jail sees (programs, libraries, Python, a few
devices), all read-only. For each message on its control socket it forks a keeper (`jail_keeper`),
which enters namespaces of its own; the starter only writes down which user the keeper's root is.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import types
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
_BASES = ("/media", "/mnt", "/srv", "/tmp")
"""Folders that one of them is taken to build in; what is in it is hidden from this process only."""
_NOBODY = 65534
_FIRST_USER = 0x7C000000
"""Users of jails that root starts: numbers that no account and no container has."""
_NAMESPACE_ADVICE = (
    "Allow them with the sysctl user.max_user_namespaces,"
    " kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns,"
    " or, in a container, with its seccomp profile"
)
_PROGRAM_FOLDERS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_HIDDEN_PACKAGES = ("site-packages", "dist-packages")
_MASKED_FILES = (
    "cmdline",
    "config.gz",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "modules",
    "sched_debug",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "vmallocinfo",
)
_MASKED_FOLDERS = ("acpi", "asound", "driver", "scsi", "fs", "irq", "bus", "tty")
_READ_ONLY_FOLDERS = ("sys",)


def _load_modules() -> tuple[Any, Any, Any]:
    """Load the modules beside this file, without the package that they are in.

    Returns:
        `jail_calls`, `jail_filter` and `jail_keeper`.
    """
    for name, folder in (
        ("evalwright", _HERE.parent),
        ("evalwright.sandboxes", _HERE),
    ):
        package = types.ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return (
        importlib.import_module("evalwright.sandboxes.jail_calls"),
        importlib.import_module("evalwright.sandboxes.jail_filter"),
        importlib.import_module("evalwright.sandboxes.jail_keeper"),
    )


def main() -> None:
    """Build what jails share, try a jail, report, then start a jail for each message."""
    control = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        calls, filters, keeper = _load_modules()
        template = _Template(calls)
        template.build()
        starter = _Starter(control, filters.build_filter(), keeper, template)
        gc.collect()
        gc.freeze()
        gc.disable()
        # The kernel takes keepers away when they end, the one of the trial, too.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        if problem := starter.try_out():
            raise OSError(problem)
    except Exception as error:
        control.send(json.dumps({"missing": str(error)}).encode())
        return
    control.send(json.dumps({"missing": ""}).encode())
    starter.serve()


class _Template:
    """What all jails have of this machine, mounted read-only below one folder."""

    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self.is_root = os.geteuid() == 0
        self.base = ""
        self.links: dict[str, str] = {}
        self.folders: list[str] = []
        self.files: list[str] = []
        self.environment: dict[str, str] = {}
        self.shared_folders: dict[str, str] = {}

    def build(self) -> None:
        """Enter a mount namespace and mount everything in it."""
        calls = self._calls
        self._enter_namespaces()
        calls.make_mounts_private()
        prefix = os.path.realpath(sys.base_prefix)
        self.base = self._find_base(prefix)
        calls.mount(
            "tmpfs",
            self.base,
            "tmpfs",
            calls.MOUNT_NO_SETUID | calls.MOUNT_NO_DEVICES,
            "mode=755,size=4m",
        )
        os.umask(0o022)
        for name in ("root", "new", "empty"):
            os.mkdir(f"{self.base}/{name}")
        self._add_system()
        self._add_python(Path(prefix))
        self._add_settings()
        self._add_devices()

    def _enter_namespaces(self) -> None:
        calls = self._calls
        if self.is_root:
            try:
                calls.unshare(calls.NEW_MOUNTS)
            except PermissionError:
                self._become_nobody()
            else:
                return
        user = os.geteuid()
        group = os.getegid()
        try:
            calls.unshare(calls.NEW_USERS | calls.NEW_MOUNTS)
        except OSError as error:
            raise OSError(
                "the kernel gives this process no user namespace"
                f" ({os.strerror(error.errno or 0)}). {_NAMESPACE_ADVICE}"
            ) from None
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path("/proc/self", name).write_text(text)

    def _become_nobody(self) -> None:
        """Go on as a user without rights: this is root of a container, who has few of root's.

        The kernel does not count the processes of the machine's root, whoever that is inside.
        """
        try:
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        except OSError as error:
            raise OSError(
                "this root has neither the right to make namespaces nor that to become"
                f" another user ({error.strerror}). {_NAMESPACE_ADVICE}"
            ) from None
        self._calls.permit_tracing()
        self.is_root = False

    def _find_base(self, prefix: str) -> str:
        needed = [prefix, str(_HERE.resolve())]
        for base in _BASES:
            is_needed = any(f"{path}/".startswith(f"{base}/") for path in needed)
            if os.path.isdir(base) and not os.path.islink(base) and not is_needed:
                return base
        raise OSError(f"this machine has none of the folders {', '.join(_BASES)}")

    def _show(self, source: str, path: str, *, is_device: bool = False) -> None:
        """Mount a file or folder of this machine at a path of every jail."""
        calls = self._calls
        target = f"{self.base}/root{path}"
        if os.path.isdir(source):
            os.makedirs(target, exist_ok=True)
            self.folders.append(path)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            Path(target).touch()
            self.files.append(path)
        calls.bind(source, target)
        attributes = calls.MOUNT_NO_SETUID
        attributes |= calls.MOUNT_READ_ONLY
        attributes |= calls.MOUNT_NO_PROGRAMS if is_device else calls.MOUNT_NO_DEVICES
        calls.restrict_mount(target, attributes)

    def _add_system(self) -> None:
        for folder in sorted(os.scandir("/usr"), key=lambda entry: entry.name):
            if folder.name in ("local", "etc", "tmp"):
                continue
            if folder.is_dir():
                self._show(os.path.realpath(folder.path), folder.path)
        # Mounts and not links, which programs inside could replace: the loader of every program is
        # in one of these.
        for name in _PROGRAM_FOLDERS:
            path = f"/{name}"
            if os.path.isdir(path):
                self._show(os.path.realpath(path), path)

    def _add_python(self, prefix: Path) -> None:
        """Show this interpreter at /opt/python, without any package that is installed.

        The whole folder is one read-only mount: nothing inside can be put beside the interpreter
        and its libraries, which stand first in the paths.
        """
        n_folders = len(self.folders)
        n_files = len(self.files)
        self._build_python(prefix)
        del self.folders[n_folders:]
        del self.files[n_files:]
        calls = self._calls
        python_root = f"{self.base}/root/opt/python"
        calls.bind(python_root, python_root)
        attributes = calls.MOUNT_NO_SETUID | calls.MOUNT_READ_ONLY
        calls.restrict_mount(python_root, attributes | calls.MOUNT_NO_DEVICES)
        self.folders.append("/opt/python")
        for shared in sorted((prefix / "lib").glob("libpython3*.so*")):
            if str(prefix) == "/usr/local":  # where the linker's cache has it
                self._show(str(shared.resolve()), f"/usr/local/lib/{shared.name}")
            elif str(prefix) != "/usr":
                self.environment["LD_LIBRARY_PATH"] = "/opt/python/lib"

    def _build_python(self, prefix: Path) -> None:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        programs = f"{self.base}/root/opt/python/bin"
        os.makedirs(programs)
        if str(prefix) == "/usr":
            for name in ("python", "python3", version):
                os.symlink(f"/usr/bin/{version}", f"{programs}/{name}")
            return
        self._show(str(prefix / "bin" / version), f"/opt/python/bin/{version}")
        for name in ("python", "python3"):
            os.symlink(version, f"{programs}/{name}")
        library = f"/opt/python/lib/{version}"
        self._show(str(prefix / "lib" / version), library)
        for name in _HIDDEN_PACKAGES:
            hidden = f"{self.base}/root{library}/{name}"
            if os.path.isdir(hidden):
                self._calls.bind(f"{self.base}/empty", hidden)
                self._calls.restrict_mount(hidden, self._calls.MOUNT_READ_ONLY)
        for shared in sorted((prefix / "lib").glob("libpython3*.so*")):
            self._show(str(shared.resolve()), f"/opt/python/lib/{shared.name}")

    def _add_settings(self) -> None:
        """Show the few settings in /etc that programs need to be found."""
        if os.path.isfile("/etc/ld.so.cache"):
            self._show("/etc/ld.so.cache", "/etc/ld.so.cache")
        if not os.path.isdir("/etc/alternatives"):
            return
        copied = f"{self.base}/alternatives"
        os.mkdir(copied)
        for link in os.scandir("/etc/alternatives"):
            if link.is_symlink() and os.readlink(link.path).startswith("/usr/"):
                os.symlink(os.readlink(link.path), f"{copied}/{link.name}")
        self._show(copied, "/etc/alternatives")

    def _add_devices(self) -> None:
        for name in _DEVICES:
            self._show(f"/dev/{name}", f"/dev/{name}", is_device=True)

    def share(self, folder: str) -> str:
        """Return where this namespace has a folder of the machine, read-only."""
        calls = self._calls
        if folder not in self.shared_folders:
            if f"{folder}/".startswith(f"{self.base}/"):
                raise OSError(
                    f"the folder {folder} is below {self.base}, which the jail uses itself"
                )
            target = f"{self.base}/shared-{len(self.shared_folders)}"
            if os.path.isdir(folder):
                os.mkdir(target)
            else:
                Path(target).touch()
            calls.bind(folder, target)
            attributes = calls.MOUNT_READ_ONLY | calls.MOUNT_NO_SETUID
            calls.restrict_mount(target, attributes | calls.MOUNT_NO_DEVICES)
            self.shared_folders[folder] = target
        return self.shared_folders[folder]


class _Starter:
    """Forks a keeper for each message."""

    def __init__(
        self,
        control: socket.socket,
        system_call_filter: bytes,
        keeper: Any,
        template: _Template,
    ) -> None:
        self._control = control
        self._keeper = keeper
        self._template = template
        self._filter = system_call_filter
        self._masks = [
            f"/proc/{name}" for name in _MASKED_FILES if os.path.exists(f"/proc/{name}")
        ]
        self._masked_folders = [
            f"/proc/{name}"
            for name in _MASKED_FOLDERS
            if os.path.isdir(f"/proc/{name}")
        ]

    def try_out(self) -> str:
        """Start a jail, run a program in it, and end it.

        Returns:
            What is missing on this machine, "" if nothing is.
        """
        ours, theirs = socket.socketpair()
        limits = {"memory_mb": 64, "processes": 16, "disk_mb": 1, "output_kb": 1}
        plan = {
            "limits": {**limits, "seconds": 10.0},
            "folder": "/work",
            "read_only": [],
            "has_snapshot": False,
            "trial": True,
        }
        self.start(plan, [theirs.detach()])
        report = b""
        with ours:
            ours.settimeout(55.0)
            while piece := ours.recv(4096):
                report += piece
        reply = self._keeper.parse_trial(report)
        return str(reply)

    def serve(self) -> None:
        """Start a jail for each message, until the other side closes the socket or ends."""
        waiting = select.poll()
        waiting.register(self._control, select.POLLIN)
        waiting.register(os.pidfd_open(os.getppid()), select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in waiting.poll()]
            if self._control.fileno() not in ready:
                return
            text, descriptors, _, _ = socket.recv_fds(self._control, 65536, 4)
            if not text:
                return
            self.start(json.loads(text), descriptors)

    def start(self, plan: dict[str, Any], descriptors: list[int]) -> None:
        """Fork a keeper, and close its descriptors here."""
        shared = {}
        problem = ""
        for folder in plan["read_only"]:
            try:
                shared[folder] = self._template.share(folder)
            except OSError as error:
                problem = f"The folder {folder} cannot be shown: {error}"
        plan["shared"] = shared
        plan["problem"] = problem
        ready_read, ready_write = os.pipe()
        mapped_read, mapped_write = os.pipe()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                self._control.close()
                os.close(ready_read)
                os.close(mapped_write)
                self._run_keeper(plan, descriptors, ready_write, mapped_read)
            os._exit(1)
        for descriptor in (*descriptors, ready_write, mapped_read):
            os.close(descriptor)
        if os.read(ready_read, 1):
            with contextlib.suppress(OSError):
                self._map_user(child)
                os.write(mapped_write, b"m")
        os.close(ready_read)
        os.close(mapped_write)

    def _run_keeper(
        self,
        plan: dict[str, Any],
        descriptors: list[int],
        ready: int,
        mapped: int,
    ) -> None:
        template = self._template
        root = self._keeper.jail_root.RootPlan(
            base=template.base,
            folders=template.folders,
            files=template.files,
            links=template.links,
            masked_files=self._masks,
            masked_folders=self._masked_folders,
            read_only_folders=[f"/proc/{name}" for name in _READ_ONLY_FOLDERS],
            environment=template.environment,
        )
        self._keeper.main(
            plan, root, self._filter, descriptors, ready, mapped, template.is_root
        )

    def _map_user(self, child: int) -> None:
        """Say who the root of a keeper's namespace is outside: nobody, if that can be had."""
        folder = Path(f"/proc/{child}")
        if self._template.is_root:
            try:
                user = _FIRST_USER + child
                (folder / "uid_map").write_text(f"0 {user} 1")
                (folder / "gid_map").write_text(f"0 {user} 1")
                return
            except OSError:
                pass  # a container whose root has few numbers: take root's
        (folder / "setgroups").write_text("deny")
        (folder / "uid_map").write_text(f"0 {os.geteuid()} 1")
        (folder / "gid_map").write_text(f"0 {os.getegid()} 1")


if __name__ == "__main__":
    if sys.platform != "linux":
        raise SystemExit("only on Linux")
    main()
