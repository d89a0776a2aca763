"""The sandbox of one attempt at a sample: started when it is first needed, and brought up to date.

Calls whose results are stored are not carried out again, so a sandbox that is started behind them
is restored first: from the newest snapshot among them, and by carrying out those after it once
more. The results must be what they were.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from evalwright.core.tool_calls import ToolCall
from evalwright.sandboxes.backends import has_snapshot, started
from evalwright.sandboxes.plan import SandboxPlan
from evalwright.sandboxes.protocol import Sandbox, Snapshot, SnapshotMissing
from evalwright.tools.toolbox import ToolResult

SNAPSHOT_ACTIONS = 5
"""After so many actions a snapshot is due."""
SNAPSHOT_SECONDS = 5.0
"""After so many seconds of actions a snapshot is due."""
CHEAP_SECONDS = 0.05
"""A snapshot that takes no longer is always worth it."""
MAX_SNAPSHOT_SHARE = 0.1
"""The greatest share of the time that goes into snapshots that take longer."""

_idle_processes: dict[tuple[str, str], int] = {}
"""By backend and image, how many processes a sandbox has in which nothing was started."""


class StartAnew(Exception):
    """The state that stored results came from cannot be had again: the sample starts anew.

    Args:
        why: the reason, in words that end a sentence.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class StoredStep:
    """An action in the sandbox whose result was stored.

    Args:
        call: the call.
        seconds: most seconds that it had; None for the usual.
        result: the stored result.
        snapshot: the state of the sandbox after it, where one was kept.
    """

    call: ToolCall
    seconds: float | None
    result: ToolResult
    snapshot: Snapshot | None


Redo = Callable[[ToolCall, float | None], Awaitable[ToolResult]]
"""Carries out a call once more, within the seconds that it had."""


class SampleSandbox:
    """The sandbox of one attempt. Use it as an asynchronous context manager.

    Args:
        plan: what is in it.
        home: the home folder of the run.
    """

    def __init__(self, plan: SandboxPlan, home: Path) -> None:
        self.plan = plan
        self.fingerprint = plan.fingerprint
        self._home = home
        self._stack = AsyncExitStack()
        self._sandbox: Sandbox | None = None
        self._behind: list[StoredStep] = []
        self._actions = 0
        self._seconds = 0.0
        self._last_snapshot_at = time.perf_counter()
        self._snapshot_seconds: float | None = None

    async def __aenter__(self) -> SampleSandbox:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._sandbox = None
        await self._stack.aclose()

    @property
    def is_started(self) -> bool:
        """Whether it runs."""
        return self._sandbox is not None

    def started(self) -> Sandbox:
        """Return the sandbox, which `ready` has started."""
        assert self._sandbox is not None
        return self._sandbox

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot is on this machine."""
        return has_snapshot(self._home, snapshot)

    def replayed(self, step: StoredStep) -> None:
        """Take in an action whose stored result was used."""
        self._behind.append(step)

    async def ready(self, redo: Redo) -> None:
        """Start it unless it runs, and bring it to the state after all actions so far.

        Args:
            redo: carries out a call once more.

        Raises:
            StartAnew: that state cannot be had.
            SandboxFailed: the sandbox cannot be started, or the set-up failed.
        """
        if self._sandbox is not None and not self._behind:
            return
        missing = self._behind if self._sandbox is not None else await self._restore()
        if missing and self.plan.settings.network:
            raise StartAnew(
                f"{len(missing)} actions behind the last snapshot reached the network, and"
                " cannot be done again"
            )
        for step in missing:
            result = await redo(step.call, step.seconds)
            if (result.text, result.is_error) != (
                step.result.text,
                step.result.is_error,
            ):
                raise StartAnew(
                    f"a call of '{step.call.name}' that was done again gave another result"
                )
        self._behind.clear()

    async def _restore(self) -> list[StoredStep]:
        """Start it from the newest snapshot; return the actions that came after that."""
        for index in range(len(self._behind) - 1, -1, -1):
            snapshot = self._behind[index].snapshot
            if snapshot is None:
                continue
            with suppress(SnapshotMissing):
                await self._start(snapshot)
                return self._behind[index + 1 :]
        if self._behind and self.plan.settings.network:
            raise StartAnew(
                "there is no snapshot of a sandbox whose actions reached the network"
            )
        sandbox = await self._start(None)
        await self._count_idle(sandbox)
        await self.plan.prepare(sandbox)
        return list(self._behind)

    async def _start(self, snapshot: Snapshot | None) -> Sandbox:
        self._sandbox = await self._stack.enter_async_context(
            started(self.plan.settings, self._home, snapshot)
        )
        self._last_snapshot_at = time.perf_counter()
        return self._sandbox

    async def snapshot_if_due(self, seconds: float) -> Snapshot | None:
        """Take a snapshot after an action, where enough happened since the last.

        There is none while processes run that an action left: they would not be in it.

        Args:
            seconds: what the action took.
        """
        self._actions += 1
        self._seconds += seconds
        if not self._is_due() or await self._has_processes():
            return None
        return await self.snapshot()

    async def snapshot(self) -> Snapshot:
        """Keep the state of the files."""
        began = time.perf_counter()
        snapshot = await self.started().snapshot()
        self._last_snapshot_at = time.perf_counter()
        self._snapshot_seconds = self._last_snapshot_at - began
        self._actions = 0
        self._seconds = 0.0
        return snapshot

    def _is_due(self) -> bool:
        cost = self._snapshot_seconds
        is_cheap = cost is None or cost <= CHEAP_SECONDS
        if self.plan.settings.network:
            # Nothing can be done again, so each action that is not in a snapshot would be lost.
            since = time.perf_counter() - self._last_snapshot_at
            return is_cheap or since * MAX_SNAPSHOT_SHARE >= (cost or 0.0)
        is_due = self._actions >= SNAPSHOT_ACTIONS or self._seconds >= SNAPSHOT_SECONDS
        return is_due and (
            is_cheap or self._seconds * MAX_SNAPSHOT_SHARE >= (cost or 0.0)
        )

    @property
    def _kind(self) -> tuple[str, str]:
        return self.plan.settings.backend, self.plan.settings.image

    async def _count_idle(self, sandbox: Sandbox) -> None:
        if self._kind not in _idle_processes:
            count = await sandbox.count_processes()
            if count is not None:
                _idle_processes[self._kind] = count

    async def _has_processes(self) -> bool:
        idle = _idle_processes.get(self._kind)
        if idle is None:
            return False
        count = await self.started().count_processes()
        return count is not None and count > idle
