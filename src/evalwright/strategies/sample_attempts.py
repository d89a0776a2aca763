"""The attempts at one sample: the next begins where the state of the last cannot be had again."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from evalwright.core.actions import ActionLog
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.requests import Message
from evalwright.core.responses import Response
from evalwright.core.samples import Answer
from evalwright.strategies.agent_calls import TrajectoryName, mark_key
from evalwright.strategies.agent_sandbox import StartAnew
from evalwright.strategies.agent_trajectory import Trajectory

MAX_ATTEMPTS = 5
"""After so many attempts at a sample it is missing: its sandbox gives other results each time."""
_GIVEN_UP = "given up"


@dataclass(slots=True)
class SampleAttempts:
    """The attempts at one sample.

    Args:
        log: has the attempts that were given up; None where nothing is stored.
        sample: the sample's id.
        draw: the index of the repeat.
        sandbox: the fingerprint of the sandbox's plan; "" for none.

    Attributes:
        given_up: what a record says of the attempts that were given up.
    """

    log: ActionLog | None
    sample: str
    draw: int
    sandbox: str = ""
    given_up: list[dict[str, Any]] = field(default_factory=list)

    async def run(
        self,
        opening: tuple[Message, ...],
        act: Callable[[Trajectory], Awaitable[Answer]],
    ) -> Answer:
        """Return the answer of the first attempt that is not given up.

        Args:
            opening: the turns that each attempt begins with.
            act: lets the model act in one attempt.

        Raises:
            RequestFailed: too many attempts were given up.
        """
        while len(self.given_up) < MAX_ATTEMPTS:
            name = TrajectoryName(self.sample, self.draw, len(self.given_up) + 1)
            mark = await self._stored_mark(name)
            if mark is not None:
                self.given_up.append(mark)
                continue
            trajectory = Trajectory(opening, name, self.log)
            try:
                return await act(trajectory)
            except StartAnew as error:
                await self._give_up(trajectory, error)
        raise RequestFailed(
            Failure(
                "sandbox failed",
                "sandbox",
                f"The sample was started {MAX_ATTEMPTS} times, and each time its state"
                f" could not be restored: {self.given_up[-1]['why']}.",
            )
        )

    async def _stored_mark(self, name: TrajectoryName) -> dict[str, Any] | None:
        if self.log is None:
            return None
        stored = await self.log.stored(self._mark_key(self.log, name))
        return None if stored is None else dict(json.loads(stored.text))

    async def _give_up(self, trajectory: Trajectory, error: StartAnew) -> None:
        mark: dict[str, Any] = {
            "after_calls": len(trajectory.tool_calls),
            "why": error.why,
            "dollars": trajectory.dollars,
        }
        self.given_up.append(mark)
        if self.log is None:
            return
        name = trajectory.name
        action = {**name.as_dict(self.log.task), "name": "started anew"}
        text = json.dumps(mark, ensure_ascii=False)
        key = self._mark_key(self.log, name)
        await self.log.store(key, action, Response(text, finish_reason="stop"))

    def _mark_key(self, log: ActionLog, name: TrajectoryName) -> bytes:
        return mark_key(log, name, self.sandbox, [_GIVEN_UP])

    @property
    def recorded(self) -> dict[str, Any]:
        """What a record says of the attempts beside the last."""
        return {"started_anew": self.given_up} if self.given_up else {}
