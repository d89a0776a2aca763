"""A Ray cluster as a test needs it: in a process of its own, two cores and two GPUs by its own
word, ended with its input.

    python -m support.ray_cluster

Prints the address, then waits for the end of its input. RAY_AUTH_TOKEN in its environment is what
whoever joins must have.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command import ROOT


@contextmanager
def cluster() -> Iterator[str]:
    """Its address, while it is there; this process's environment has the token."""
    token = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in token.items():
            patch.setenv(name, value)
        process = subprocess.Popen(
            [sys.executable, "-m", "support.ray_cluster"],
            env={
                **os.environ,
                "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address, "Ray did not start"
            yield address
        finally:
            process.stdin.close()
            process.wait()
            process.stdout.close()


def descendants(process: int) -> dict[int, str]:
    """The processes that this one started, and those that these did, with how they call
    themselves.
    """
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
            names[int(folder.name)] = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            )
        except OSError:
            continue
        state, parent = status.rpartition(")")[2].split()[:2]
        if state != "Z":
            parents[int(folder.name)] = int(parent)

    def is_below(process_id: int) -> bool:
        while (process_id := parents.get(process_id, 0)) > 1:
            if process_id == process:
                return True
        return False

    return {
        process_id: names[process_id] for process_id in parents if is_below(process_id)
    }


def replicas(process: int) -> list[int]:
    """The processes of replicas that are below this one, in the order of their numbers."""
    return sorted(
        process_id
        for process_id, name in descendants(process).items()
        if name.startswith("ray::_Actor")
    )


def main() -> None:
    import ray

    with tempfile.TemporaryDirectory(prefix="ew-ray-") as folder:
        there = ray.init(
            "local",
            include_dashboard=False,
            num_cpus=2,
            num_gpus=2,
            object_store_memory=100 << 20,
            _temp_dir=folder,
        )
        print(there.address_info["gcs_address"], flush=True)
        sys.stdin.read()
        ray.shutdown()


if __name__ == "__main__":
    main()
