"""Runs programs in containers of podman, docker or apptainer.

A container replaces `_jail`, also on machines where that does not work. It is named as
`podman:IMAGE`, `docker:IMAGE` or `apptainer:FILE`; the image has Python 3.11 or later as `python3`
and is already on this machine. Each process has a container of its own: no network, a read-only
root, no folder of the host, no capability, no new privilege, bounded memory, processes and
processors.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.sandboxes.container_engine import isolation_flags
from evalwright.scorers.code.processes import NoSandbox, Process

_INSIDE = Path(__file__).with_name("_inside.py")
_PYTHON = ("python3", "-I", "-S", "-B", "-c")


def start(sandbox: str, seconds: float, megabytes: int) -> Process:
    """Start a process in the container that `sandbox` names.

    Raises NoSandbox if the program that starts containers is not installed.
    """
    engine, image = parse_container(sandbox)
    if shutil.which(engine) is None:
        raise NoSandbox(
            f"The sandbox '{sandbox}' needs the program '{engine}', which is not installed"
            " here."
        )
    name = f"evalwright-{secrets.token_hex(8)}"
    return _Contained(
        engine,
        name,
        build_command(engine, image, name, int(4 * seconds) + 2, megabytes),
    )


def parse_container(sandbox: str) -> tuple[str, str]:
    """Split `sandbox` into kind and image. Raises ConfigurationError if it is malformed."""
    engine, _, image = sandbox.partition(":")
    if (
        engine not in ("podman", "docker", "apptainer")
        or not image
        or image.startswith("-")
    ):
        raise ConfigurationError(
            f"The sandbox '{sandbox}' is none. Use jail, podman:IMAGE, docker:IMAGE or"
            " apptainer:FILE, for example podman:docker.io/library/python:3.12-slim."
        )
    return engine, image


def build_command(
    engine: str, image: str, name: str, seconds: int, megabytes: int
) -> list[str]:
    """Build the command line, as documented by each engine.

    `seconds` is the limit on processor time.
    """
    inside = [*_PYTHON, _INSIDE.read_text(encoding="utf-8") + "\nmain()\n"]
    if engine == "apptainer":
        return [
            engine,
            "--silent",
            "exec",
            "--containall",
            "--cleanenv",
            "--no-home",
            "--no-privs",
            "--net",
            "--network",
            "none",
            "--memory",
            f"{megabytes}M",
            "--memory-swap",
            f"{megabytes}M",
            "--pids-limit",
            "64",
            "--cpus",
            "1",
            image,
            *inside,
        ]
    # Podman would pass on the proxy of the host's environment, with its password.
    without_proxy = ["--http-proxy=false"] if engine == "podman" else []
    return [
        engine,
        "run",
        *without_proxy,
        "--rm",
        "--interactive",
        "--pull=never",
        f"--name={name}",
        "--network=none",
        "--read-only",
        *isolation_flags(megabytes, processes=64),
        "--user=65534:65534",
        "--cpus=1",
        f"--ulimit=cpu={seconds}:{seconds}",
        "--ulimit=nofile=64:64",
        "--ulimit=core=0:0",
        "--ulimit=fsize=0:0",
        "--workdir=/",
        "--entrypoint=python3",
        image,
        *inside[1:],
    ]


class _Contained(Process):
    """A process in a container, known by its client process and the container's name."""

    def __init__(self, engine: str, name: str, line: list[str]) -> None:
        pipe = subprocess.PIPE
        self._popen = subprocess.Popen(
            line, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        self._kill = [] if engine == "apptainer" else [engine, "kill", name]
        streams = [self._popen.stdin, self._popen.stdout, self._popen.stderr]
        super().__init__(
            *(os.dup(stream.fileno()) for stream in streams if stream is not None)
        )
        for stream in streams:
            if stream is not None:
                stream.close()

    def missing(self) -> str:
        message = b""
        while self.stderr is not None and (piece := self.read("stderr")):
            message += piece
        return (
            " ".join(message.decode("utf-8", "replace").split())[-500:].rstrip(".")
            or "the container ended before it was ready"
        )

    def wait(self, deadline: float) -> int | None:
        try:
            return self._popen.wait(max(0.001, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        super().end()
        if self._popen.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if self._kill:
                    # The client process is not the container's parent, so ending it would not end
                    # the container.
                    subprocess.run(
                        self._kill,
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        timeout=60,
                        check=False,
                    )
                    self._popen.wait(10.0)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()
