"""The calls of one attempt at a sample, carried out once: what is stored is replayed.

`tool-loop` and `agent` have their tools called here, and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from evalwright.core.actions import ActionLog
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.sandboxes.protocol import Snapshot
from evalwright.strategies.agent_sandbox import SampleSandbox, StartAnew, StoredStep
from evalwright.strategies.sampling import TARGET
from evalwright.tools.toolbox import Toolbox, ToolResult, ToolSource

VERSION = 1
"""Raised when stored results are not to be used for the same calls."""
KEY_BYTES = 16
_ERROR = "error"
_DONE = "stop"
_AGAIN = "again"
_SNAPSHOT = "snapshot"

_canonical = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False
).encode


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where in a trajectory a call is.

    Args:
        digest: of everything that was said and done before it.
        step: the index of the reply that has it.
        index: its index in the reply.
    """

    digest: str
    step: int
    index: int


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """What became of a call.

    Args:
        result: what the model reads.
        is_replayed: whether that was stored, and the call was not carried out now.
        is_again: whether it had been begun before, and nobody knows how far it had come.
    """

    result: ToolResult
    is_replayed: bool = False
    is_again: bool = False

    @property
    def recorded(self) -> dict[str, Any]:
        """What a record says of it beside the result."""
        replayed = {"replayed": True} if self.is_replayed else {}
        return {**replayed, "again": True} if self.is_again else replayed


@dataclass(frozen=True, slots=True)
class TrajectoryName:
    """Which trajectory of which sample it is.

    Args:
        sample: the sample's id.
        draw: the index of the repeat.
        attempt: 1, and one more each time that the sample started anew.
    """

    sample: str
    draw: int
    attempt: int = 1

    def as_dict(self, task: str) -> dict[str, Any]:
        """Return a plain mapping for JSON, with the name of the sample's task."""
        return {
            "task": task,
            "sample": self.sample,
            "draw": self.draw,
            "attempt": self.attempt,
        }


class AgentCalls:
    """Carries out the calls of one attempt, each once.

    Args:
        toolbox: the tools, opened.
        name: which trajectory it is.
        log: has the stored results; None where nothing is stored.
        sandbox: the sandbox; None if the task has none.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        name: TrajectoryName,
        log: ActionLog | None = None,
        sandbox: SampleSandbox | None = None,
    ) -> None:
        self._toolbox = toolbox
        self._name = name
        self._log = log
        self._sandbox = sandbox
        self._n_missed: dict[str, int] = {}
        """By the label of a source with a session: calls that only an earlier session had."""

    async def carry_out(
        self, call: ToolCall, place: CallPlace, seconds: float | None = None
    ) -> CarriedOut:
        """Return the result of a call: the stored one, or what it gives now.

        Args:
            call: the call.
            place: where in the trajectory it is.
            seconds: most seconds that it may take; None for the usual.

        Raises:
            StartAnew: the state that it would meet cannot be had again.
            RequestFailed: a tool, or the sandbox, can no longer be used.
            StoreError: its result cannot be stored.
        """
        source = self._toolbox.source_of(call.name)
        effects = "none" if source is None else source.effects_of(call.name)
        if source is None or effects == "none":
            # Nothing is stored of it, so its time would be another one each time.
            return CarriedOut(replace(await self._toolbox.call(call), seconds=0.0))
        if effects == "sandbox":
            return await self._in_sandbox(source, call, place, seconds)
        if self._log is None:
            return CarriedOut(await self._toolbox.call(call, seconds))
        return await self._outside(self._log, source, call, place, seconds)

    async def _outside(
        self,
        log: ActionLog,
        source: ToolSource,
        call: ToolCall,
        place: CallPlace,
        seconds: float | None,
    ) -> CarriedOut:
        has_session = source.effects_of(call.name) == "session"
        key = self._key(log, source, call, place, of_attempt=has_session)
        stored = await log.claim(key)
        if stored is not None:
            if has_session:
                self._n_missed[source.label] = self._n_missed.get(source.label, 0) + 1
            return CarriedOut(
                _result_of(stored),
                is_replayed=True,
                is_again=_AGAIN in _extras_of(stored),
            )
        try:
            n_missed = self._n_missed.get(source.label, 0)
            if n_missed:
                raise StartAnew(
                    f"the session with {source.label} ended after {n_missed}"
                    f" {'call' if n_missed == 1 else 'calls'}, with the state that it had"
                )
            is_again = await self._begin(log, key, call, place)
            result = await self._toolbox.call(call, seconds)
            outcome = _response_of(result, {_AGAIN: True} if is_again else {})
            await log.store(key, self._action(log, call, place), outcome)
        except BaseException:
            log.give_up(key)
            raise
        return CarriedOut(result, is_again=is_again)

    async def _begin(
        self, log: ActionLog, key: bytes, call: ToolCall, place: CallPlace
    ) -> bool:
        """Store that a call is being carried out; return whether that was stored before.

        A process that is killed between a tool's effect and the storing of its result leaves this
        behind, so that a call which may have been carried out twice is said to have been.
        """
        begun_key = blake2b(b"begun", key=key, digest_size=KEY_BYTES).digest()
        if await log.stored(begun_key) is not None:
            return True
        action = {**self._action(log, call, place), "begun": True}
        await log.store(begun_key, action, Response(finish_reason=_DONE))
        return False

    async def _in_sandbox(
        self,
        source: ToolSource,
        call: ToolCall,
        place: CallPlace,
        seconds: float | None,
    ) -> CarriedOut:
        sandbox = self._sandbox
        assert sandbox is not None, "a task with these tools has a sandbox"
        if self._log is None:
            await sandbox.ready(self._toolbox.call)
            return CarriedOut(await self._toolbox.call(call, seconds))
        key = self._key(self._log, source, call, place, of_attempt=True)
        stored = await self._log.stored(key)
        if stored is not None:
            return self._replay(sandbox, call, seconds, stored)
        await sandbox.ready(self._toolbox.call)
        result = await self._toolbox.call(call, seconds)
        stored = await self._log.stored(key)
        if stored is not None:
            # Another process carried it out in a sandbox of its own, and was faster.
            return CarriedOut(_result_of(stored), is_replayed=True)
        snapshot = await sandbox.snapshot_if_due(result.seconds)
        await self._log.store(
            key,
            self._action(self._log, call, place),
            _response_of(result, _kept(snapshot)),
        )
        return CarriedOut(result)

    def _replay(
        self,
        sandbox: SampleSandbox,
        call: ToolCall,
        seconds: float | None,
        stored: Response,
    ) -> CarriedOut:
        result = _result_of(stored)
        sandbox.replayed(StoredStep(call, seconds, result, snapshot_of(stored)))
        return CarriedOut(result, is_replayed=True)

    async def end_state(self, digest: str) -> Snapshot | None:
        """Return the snapshot of the sandbox at the end of the trajectory; None without one.

        Args:
            digest: of everything that was said and done.

        Raises:
            StartAnew: that state cannot be had again.
            SandboxFailed: it cannot be kept.
        """
        sandbox = self._sandbox
        if sandbox is None:
            return None
        if self._log is None:
            await sandbox.ready(self._toolbox.call)
            return await sandbox.snapshot()
        log = self._log
        key = mark_key(log, self._name, self._fingerprint, ["end", digest])
        stored = await log.stored(key)
        end_snapshot = None if stored is None else snapshot_of(stored)
        if (
            end_snapshot is not None
            and not sandbox.is_started
            and sandbox.has(end_snapshot)
        ):
            return end_snapshot
        try:
            await sandbox.ready(self._toolbox.call)
        except StartAnew:
            if end_snapshot is None:
                raise
            # All is said and done; whoever needs the snapshot says that it is gone.
            return end_snapshot
        snapshot = await sandbox.snapshot()
        action = {**self._name.as_dict(log.task), "name": "end of the trajectory"}
        await log.store(key, action, _response_of(ToolResult(""), _kept(snapshot)))
        return snapshot

    @property
    def _fingerprint(self) -> str:
        return "" if self._sandbox is None else self._sandbox.fingerprint

    def _key(
        self,
        log: ActionLog,
        source: ToolSource,
        call: ToolCall,
        place: CallPlace,
        *,
        of_attempt: bool,
    ) -> bytes:
        """Return the key of a call's result.

        What was done outside was done, whatever became of the sandbox: a new attempt finds it.
        """
        name = self._name
        if not of_attempt:
            name = TrajectoryName(name.sample, name.draw, 0)
        parts = [
            place.digest,
            place.index,
            call.name,
            call.arguments,
            source.fingerprint(call.name),
            *self._toolbox.bounds,
        ]
        return mark_key(log, name, self._fingerprint, parts)

    def _action(
        self, log: ActionLog, call: ToolCall, place: CallPlace
    ) -> dict[str, Any]:
        """Return what the store says of a call beside its result."""
        return {
            **self._name.as_dict(log.task),
            "step": place.step,
            "call": place.index,
            "name": call.name,
            "arguments": call.arguments,
        }


def mark_key(
    log: ActionLog, name: TrajectoryName, sandbox: str, parts: list[Any]
) -> bytes:
    """Return the key of something that is stored of a trajectory.

    Args:
        log: the log.
        name: which trajectory it is.
        sandbox: the fingerprint of its sandbox's plan; "" for none.
        parts: plain JSON that says what.
    """
    text = _canonical(
        [
            "action",
            VERSION,
            log.fingerprint(TARGET),
            sandbox,
            log.task,
            name.sample,
            name.draw,
            name.attempt,
            *parts,
        ]
    )
    return blake2b(
        text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES
    ).digest()


def _response_of(result: ToolResult, extras: Mapping[str, Any]) -> Response:
    return Response(
        result.text,
        finish_reason=_ERROR if result.is_error else _DONE,
        latency=result.seconds,
        provider_content=_canonical(extras) if extras else "",
    )


def _kept(snapshot: Snapshot | None) -> dict[str, Any]:
    return {} if snapshot is None else {_SNAPSHOT: snapshot.as_dict()}


def _result_of(stored: Response) -> ToolResult:
    return ToolResult(stored.text, stored.finish_reason == _ERROR, stored.latency)


def _extras_of(stored: Response) -> dict[str, Any]:
    """Return what is stored with a result beside it."""
    try:
        extras = json.loads(stored.provider_content or "{}")
    except ValueError:
        return {}
    return extras if isinstance(extras, dict) else {}


def snapshot_of(stored: Response) -> Snapshot | None:
    """Return the snapshot that is stored with an action, None if there is none."""
    try:
        return Snapshot.from_dict(_extras_of(stored)[_SNAPSHOT])
    except (ValueError, KeyError, TypeError):
        return None
