"""An image for containers, made of files of this machine: a shell, the usual programs, Python.

image = build_image("podman")       # its name by digest
if reason := why_no_containers():   # skip
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

NAME = "localhost/evalwright-test-image"
VERSION = "6"
PROGRAMS = (
    "bash sh cat head ls mkdir rm cp mv chmod sleep env id touch wc dd tr sed grep find stat ln"
    " readlink setsid timeout dirname tar base64 sort nproc seq python3 mkfifo yes tail printf tee"
    " cut diff uniq date mktemp awk cmp true false kill sync ps pwd"
).split()
CONFIGURATION = """
[engine]
runtime = "{runtime}"
[containers]
default_ulimits = ["nproc=4096:4096", "nofile=4096:4096"]
"""


def configure(folder: Path) -> None:
    """Have podman use what works on this machine, for this process and its children.

    A machine may have only one of the programs that start containers, and forbid to raise limits.
    """
    runtime = "runc" if shutil.which("runc") else "crun"
    path = folder / "containers.conf"
    path.write_text(CONFIGURATION.format(runtime=runtime))
    os.environ["CONTAINERS_CONF"] = str(path)


@functools.cache
def why_no_containers() -> str:
    """Return why podman cannot run a container here; "" if it can."""
    if os.name != "posix" or shutil.which("podman") is None:
        return "podman is not installed"
    if shutil.which("python3", path="/usr/bin") is None:
        return "there is no /usr/bin/python3 to make an image of"
    try:
        image = build_image()
    except subprocess.CalledProcessError as error:
        return f"no image can be made: {error.stderr[-200:]!r}"
    tried = subprocess.run(
        ["podman", "run", "--rm", "--network=none", "--pull=never", image, "true"],
        capture_output=True,
        check=False,
    )
    return f"podman runs nothing: {tried.stderr[-200:]!r}" if tried.returncode else ""


def build_image() -> str:
    """Return the name by digest of the image; it is made where it is not there."""
    tag = f"{NAME}:{VERSION}"
    known = _podman("image", "exists", tag, check=False)
    if known.returncode:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder, "root")
            _fill(root)
            archive = Path(folder, "root.tar")
            subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
            _podman("import", str(archive), tag)
    digests = _podman(
        "image", "inspect", "--format", "{{index .RepoDigests 0}}", tag
    ).stdout
    return digests.decode().strip()


def _podman(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["podman", *arguments], capture_output=True, check=check)


def _fill(root: Path) -> None:
    for name in "usr/bin usr/lib usr/lib64 etc tmp root var dev proc sys run".split():
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for link, target in {
        "bin": "usr/bin",
        "sbin": "usr/bin",
        "lib": "usr/lib",
        "lib64": "usr/lib64",
    }.items():
        (root / link).symlink_to(target)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    for name in PROGRAMS:
        path = Path("/usr/bin", name)
        if path.exists():
            _copy_program(path.resolve(), root / "usr/bin" / name, root)
    library = next(Path("/usr/lib").glob("python3.[0-9]*"))
    shutil.copytree(
        library,
        root / "usr/lib" / library.name,
        ignore=shutil.ignore_patterns(
            "__pycache__", "test", "tests", "config-*", "idlelib", "lib2to3"
        ),
        symlinks=True,
    )
    for module in (library / "lib-dynload").glob("*.so"):
        _copy_libraries(module, root)


def _copy_program(source: Path, target: Path, root: Path) -> None:
    shutil.copy2(source, target)
    _copy_libraries(source, root)


def _copy_libraries(source: Path, root: Path) -> None:
    listed = subprocess.run(["ldd", source], capture_output=True, check=False)
    for match in re.finditer(rb"(/\S+) \(0x", listed.stdout):
        path = Path(match[1].decode())
        target = (
            root
            / "usr"
            / path.relative_to("/usr" if path.is_relative_to("/usr") else "/")
        )
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path.resolve(), target)
