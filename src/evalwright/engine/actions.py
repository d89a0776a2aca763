"""The log of actions in the store: results of tools, beside the responses of the model that called.

A row of an action has the model's fingerprint, so whoever prunes a model's responses prunes the
actions that followed from them. It is no sending: nothing of it is counted or billed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evalwright.core.actions import ActionLog
from evalwright.core.errors import StoreError
from evalwright.core.responses import Response
from evalwright.engine.key import canonical
from evalwright.engine.store import Store
from evalwright.engine.store_rows import MINE, STORED, row_of, storable_text

ACTION = "action"
"""The kind of a stored request that is an action, under the key "kind"."""

Report = Callable[[Mapping[str, Any]], None]
"""Takes what a trajectory does now."""


class OpenClaims:
    """The actions that this process carries out now, so that equal ones wait for each other."""

    def __init__(self) -> None:
        self._ends: dict[bytes, asyncio.Future[None]] = {}

    async def free(self, key: bytes) -> None:
        """Wait until nobody in this process carries out the action."""
        while (end := self._ends.get(key)) is not None:
            await asyncio.shield(end)

    def begin(self, key: bytes) -> bool:
        """Note that the action is being carried out; return whether it was not already."""
        if key in self._ends:
            return False
        self._ends[key] = asyncio.get_running_loop().create_future()
        return True

    def end(self, key: bytes) -> bool:
        """Note that it has ended; return whether it had begun."""
        end = self._ends.pop(key, None)
        if end is not None and not end.done():
            end.set_result(None)
        return end is not None


class StoredActions(ActionLog):
    """The actions of the trajectories of one client of the engine.

    Args:
        store: the store.
        fingerprints: by role, the fingerprint of its model and the round it is asked in.
        claims: the claims of the engine.
        report: takes what trajectories do now; None where nobody watches.
        task: the name of the task.
    """

    def __init__(
        self,
        store: Store,
        fingerprints: Mapping[str, tuple[str, str]],
        claims: OpenClaims,
        report: Report | None = None,
        task: str = "",
    ) -> None:
        self._store = store
        self._fingerprints = fingerprints
        self._claims = claims
        self._report = report
        self._task = task

    @property
    def folder(self) -> Path:
        """The home folder of the run."""
        return self._store.home

    @property
    def task(self) -> str:
        """The name of the task."""
        return self._task

    def of_task(self, task: str) -> StoredActions:
        """Return this log for the samples of a task."""
        return StoredActions(
            self._store, self._fingerprints, self._claims, self._report, task
        )

    def fingerprint(self, role: str) -> str:
        """Return the fingerprint of the model in a role, with the round it is asked in."""
        model, asked_in = self._fingerprints.get(role, ("", ""))
        return f"{model} {asked_in}" if asked_in else model

    async def stored(self, key: bytes) -> Response | None:
        """Return the stored result of an action, None if there is none."""
        (outcome,) = await self._store.get_many((key,))
        return outcome

    async def claim(self, key: bytes) -> Response | None:
        """Return the stored result of an action; None if the caller is to carry it out."""
        begun = False
        while not begun:
            await self._claims.free(key)
            outcome = await self.stored(key)
            if outcome is not None:
                return outcome
            begun = self._claims.begin(key)
        try:
            outcome = await self._claimed(key)
        except BaseException:
            self._claims.end(key)
            raise
        if outcome is not None:
            self._claims.end(key)
        return outcome

    async def _claimed(self, key: bytes) -> Response | None:
        outbox = self._store.outbox()
        claim = outbox.claim(key)
        try:
            while (holder := await claim) != MINE:
                if holder != STORED:  # another process carries it out
                    claim = outbox.claim_after(key)
                    continue
                outcome = await self.stored(key)
                if outcome is not None:
                    return outcome
                claim = outbox.claim(key)  # the row was damaged, and has been removed
        except BaseException:
            outbox.give_up(key, claim)
            raise
        return None

    def give_up(self, key: bytes) -> None:
        """End a claim whose action has no result."""
        if self._claims.end(key):
            self._store.outbox().release(key)

    async def store(
        self, key: bytes, action: Mapping[str, Any], outcome: Response
    ) -> None:
        """Store the result of an action. It is durable when this returns.

        Raises:
            StoreError: it cannot be stored, which must end the run.
        """
        if self._store.broken is not None:
            raise StoreError(str(self._store.broken))
        model = storable_text(self._fingerprints.get("target", ("", ""))[0])
        payload = canonical({"kind": ACTION, **action})
        row = row_of(key, model, payload, outcome.without_secrets())
        try:
            await self._store.outbox().put(row)
        finally:
            self._claims.end(key)

    def report(self, event: Mapping[str, Any]) -> None:
        """Tell whoever watches the run what a trajectory does now."""
        if self._report is not None:
            self._report({"task": self._task, **event})
