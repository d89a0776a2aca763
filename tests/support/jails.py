"""Runs things in a jail, for tests."""

from __future__ import annotations

import ast
import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from evalwright.sandboxes.jail import JailBackend
from evalwright.sandboxes.protocol import (
    Executed,
    Sandbox,
    SandboxLimits,
    SandboxSettings,
    Snapshot,
)

T = TypeVar("T")
REFUSAL = (
    JailBackend().refuses(SandboxSettings()) if sys.platform == "linux" else "no Linux"
)
needs_jail = pytest.mark.skipif(bool(REFUSAL), reason=REFUSAL or "there is a jail")
LIMITS = SandboxLimits(
    seconds=300.0, memory_mb=256, processes=64, disk_mb=32, output_kb=64
)
SETTINGS = SandboxSettings(limits=LIMITS)
_LIST_PROCESSES = """
import os
from pathlib import Path
living = []
for folder in Path('/proc').glob('[0-9]*'):
    try:
        state = (folder / 'stat').read_text().rpartition(')')[2].split()[0]
        if state != 'Z' and folder.name != str(os.getpid()):
            living.append((folder / 'cmdline').read_text())
    except OSError:
        pass
print(living)
"""


def in_jail(
    home: Path,
    act: Callable[[Sandbox], Awaitable[T]],
    settings: SandboxSettings = SETTINGS,
    snapshot: Snapshot | None = None,
) -> T:
    """Start a jail, do something with it, stop it, and return what came of it."""

    async def whole() -> T:
        folder = home / "sandboxes" / "jail"
        sandbox = await JailBackend().start(settings, folder, snapshot)
        async with sandbox:
            return await act(sandbox)

    return asyncio.run(whole())


async def bash(
    sandbox: Sandbox, script: str, *, seconds: float | None = None, stdin: bytes = b""
) -> Executed:
    """Run a bash script."""
    return await sandbox.exec(["bash", "-c", script], seconds=seconds, stdin=stdin)


async def python(
    sandbox: Sandbox, program: str, *, seconds: float | None = None
) -> Executed:
    """Run a Python program."""
    return await sandbox.exec(["python3", "-c", program], seconds=seconds)


def run_bash(home: Path, script: str, settings: SandboxSettings = SETTINGS) -> Executed:
    """Run a bash script in a jail of its own."""
    return in_jail(home, lambda sandbox: bash(sandbox, script), settings)


def run_python(
    home: Path, program: str, settings: SandboxSettings = SETTINGS
) -> Executed:
    """Run a Python program in a jail of its own."""
    return in_jail(home, lambda sandbox: python(sandbox, program), settings)


async def living(sandbox: Sandbox) -> list[str]:
    """List the processes of a jail, once those that were ended are gone.

    Args:
        sandbox: the jail.

    Returns:
        Their command lines, without that of whoever lists them.
    """
    for _ in range(20):
        executed = await python(sandbox, _LIST_PROCESSES)
        assert executed.exit_code == 0, executed
        if executed.stdout == b"[]\n":
            break
        await asyncio.sleep(0.05)
    listed: list[str] = ast.literal_eval(executed.stdout.decode())
    return listed
