"""The sandbox of a task: without an image in a jail, or an image that an engine builds."""

from __future__ import annotations

import hashlib
import json
import posixpath
import shlex
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.compat.terminal_bench.dockerfiles import Build, plan_build
from evalwright.compat.terminal_bench.harness import installed_packages
from evalwright.compat.terminal_bench.task_folders import (
    TerminalTask,
    read_bytes,
    read_text,
    tree_of,
)
from evalwright.extend import (
    PlannedFile,
    SandboxLimits,
    SandboxPlan,
    SandboxSettings,
    TaskError,
    is_within,
)

JAIL = "jail"
BACKENDS = (JAIL, "docker", "podman")
IMAGE_NAME = "evalwright-terminal-bench"
BUILD_SECONDS = 3_600.0
PROCESSES = 256
DISK_MB = 1_024
COMMAND_SECONDS = 180.0
DEFAULT_FOLDER = "/app"


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a task is done.

    Args:
        plan: its sandbox.
        folder: the working folder.
    """

    plan: SandboxPlan
    folder: str


class CannotBuild(TaskError):
    """The environment of a task cannot be had; the message says why."""


def environment_of(
    task: TerminalTask,
    backend: str,
    *,
    ignore_build: bool,
    trusted: Collection[Path],
) -> Environment:
    """Return the environment of a task.

    Args:
        task: the task.
        backend: the kind of sandbox.
        ignore_build: whether steps of the Dockerfile that cannot be done are left out.
        trusted: folders whose Dockerfiles may be built.

    Raises:
        CannotBuild: a step cannot be done, or an image is not there.
    """
    build = Build(folder=DEFAULT_FOLDER)
    if task.dockerfile.is_file():
        # What cannot be done without network concerns only a jail.
        build = plan_build(read_text(task.dockerfile), installed_packages(), ())
    limits = SandboxLimits(
        seconds=COMMAND_SECONDS,
        memory_mb=task.memory_mb,
        processes=PROCESSES,
        disk_mb=DISK_MB,
    )
    folder = build.folder if build.folder != "/" else DEFAULT_FOLDER
    if backend != JAIL:
        image = _image_of(task, backend, trusted)
        settings = SandboxSettings(
            backend=backend,
            image=image,
            network=task.network and _is_trusted(task, trusted),
            folder=folder,
            limits=limits,
        )
        return Environment(SandboxPlan(settings), folder)
    if build.refusals and not ignore_build:
        raise CannotBuild(f"{task.name}: {'; '.join(build.refusals)}")
    settings = SandboxSettings(
        backend=backend,
        folder=folder,
        environment=build.environment,
        limits=limits,
    )
    files = [
        file
        for sources, place, working_folder in build.copies
        for file in _copied(task, sources, place, working_folder, ignore_build)
    ]
    return Environment(SandboxPlan(settings, tuple(files), _setup(build)), folder)


def _setup(build: Build) -> str:
    lines = ["set -e", "mkdir -p /logs/verifier /logs/agent"]
    for folder, script in build.scripts:
        place = shlex.quote(folder)
        lines.append(f"mkdir -p {place}\n(\ncd {place}\n{script}\n)")
    return "\n".join(lines)


def _copied(
    task: TerminalTask,
    sources: list[str],
    place: str,
    working_folder: str,
    ignore_build: bool,
) -> list[PlannedFile]:
    """Return the files of a COPY."""
    target = posixpath.join(working_folder, place)
    is_folder = place.endswith("/") or place in (".", "..") or len(sources) > 1
    files: list[PlannedFile] = []
    for source in sources:
        matching = _matching(task.context, source)
        if not matching and not ignore_build:
            raise CannotBuild(
                f"{task.name}: it copies '{source}', which is not in its folder"
            )
        for path in matching:
            if path.is_dir():
                for inner in tree_of(path):
                    name = inner.relative_to(path).as_posix()
                    files.append(_planned(inner, posixpath.join(target, name)))
            elif is_folder or len(matching) > 1:
                files.append(_planned(path, posixpath.join(target, path.name)))
            else:
                files.append(_planned(path, target))
    return files


def _planned(path: Path, place: str) -> PlannedFile:
    is_executable = bool(path.stat().st_mode & 0o100)
    return PlannedFile(posixpath.normpath(place), read_bytes(path), is_executable)


def _matching(context: Path, source: str) -> list[Path]:
    name = posixpath.normpath(source.lstrip("/") or ".")
    if name.startswith(".."):
        return []
    if name == ".":
        return [context]
    root = context.resolve()
    return [
        path
        for path in sorted(context.glob(name))
        if path.resolve().is_relative_to(root)
    ]


def _is_trusted(task: TerminalTask, trusted: Collection[Path]) -> bool:
    return is_within(task.folder, *trusted)


def _image_of(task: TerminalTask, engine: str, trusted: Collection[Path]) -> str:
    """Return the image of a task by its digest; it is built where that is allowed."""
    if not task.dockerfile.is_file():
        raise CannotBuild(f"{task.name}: it has no Dockerfile to build an image from")
    tag = f"{IMAGE_NAME}:{_context_digest(task)}"
    image = _identifier(engine, tag)
    if image:
        return image
    command = [engine, "build", f"--tag={tag}", str(task.context)]
    if not _is_trusted(task, trusted):
        raise CannotBuild(
            f"{task.name}: its image is not built. Building runs what its Dockerfile says, with a"
            f" network: name its folder with --trust, or run `{shlex.join(command)}`"
        )
    try:
        built = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"{task.name}: its image cannot be built: {error}") from None
    image = _identifier(engine, tag)
    if built.returncode or not image:
        why = " ".join(built.stderr.decode("utf-8", "replace").split())[-400:]
        raise CannotBuild(f"{task.name}: its image cannot be built: {why}")
    return image


def _identifier(engine: str, tag: str) -> str:
    try:
        inspected = subprocess.run(
            [engine, "image", "inspect", "--format={{.Id}}", tag],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"{engine} does not answer: {error}") from None
    if inspected.returncode:
        return ""
    return f"sha256:{inspected.stdout.decode().strip().removeprefix('sha256:')}"


def _context_digest(task: TerminalTask) -> str:
    state = hashlib.sha256()
    for path in tree_of(task.context):
        content = read_bytes(path)
        name = path.relative_to(task.context).as_posix()
        state.update(json.dumps([name, len(content)]).encode())
        state.update(content)
    return state.hexdigest()[:32]


def recorded(environment: Environment) -> Mapping[str, Any]:
    """Return what a record has of an environment."""
    return {
        "folder": environment.folder,
        "sandbox": environment.plan.fingerprint,
    }
