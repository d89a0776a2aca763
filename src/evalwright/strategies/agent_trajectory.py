"""What was said and done in one attempt at a sample, and the attempts at it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

from evalwright.core.actions import ActionLog
from evalwright.core.conversation import result_turn
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.outcomes import TOO_LONG
from evalwright.core.requests import Message, prompt_payload
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.strategies.agent_calls import (
    AgentCalls,
    CallPlace,
    TrajectoryName,
    mark_key,
)
from evalwright.strategies.agent_sandbox import StartAnew
from evalwright.tools.toolbox import ToolResult

Held = TypeVar("Held")

MAX_ATTEMPTS = 5
"""After so many attempts at a sample it is missing: its sandbox gives other results each time."""
_GIVEN_UP = "given up"
MAX_CALLS_OF_REPLY = 128
"""Calls of one reply that are carried out, as many as providers offer tools."""
TOO_MANY_CALLS = ToolResult(
    f"The call was not carried out: of one reply, {MAX_CALLS_OF_REPLY} calls are.",
    is_error=True,
)

_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Trajectory:
    """The conversation of one attempt, with every reply and every call.

    Args:
        opening: the turns that it begins with.
        name: which trajectory it is.
        log: hears of it; None where nobody does.

    Attributes:
        turns: the whole conversation.
        responses: the replies, in order.
        tool_calls: what a record says of the calls, in order.
        tool_seconds: time of the calls.
    """

    def __init__(
        self,
        opening: tuple[Message, ...],
        name: TrajectoryName,
        log: ActionLog | None = None,
    ) -> None:
        self.name = name
        self.turns: list[Message] = []
        self.responses: list[Response] = []
        self.tool_calls: list[dict[str, Any]] = []
        self.tool_seconds = 0.0
        self._log = log
        self._state = blake2b(digest_size=16)
        self.add(*opening)

    def add(self, *turns: Message) -> None:
        """Add turns to the conversation."""
        self.turns += turns
        payloads = prompt_payload(turns)
        self.mark(payloads)
        if self._log is not None and turns:
            self._report({"turns": prompt_payload(turns, recorded=True)})

    def mark(self, content: Any) -> None:
        """Take plain JSON into the digest of what happened."""
        text = _encode(content)
        self._state.update(text.encode("utf-8", "surrogatepass"))

    @property
    def digest(self) -> str:
        """A digest of everything that was said and done so far."""
        return self._state.hexdigest()

    async def carry_out(
        self,
        calls: AgentCalls,
        call: ToolCall,
        index: int,
        seconds: float | None = None,
    ) -> ToolResult:
        """Carry out a call of the last reply, and show its result to the model.

        Args:
            calls: what carries out calls.
            call: the call.
            index: its index in the reply.
            seconds: most seconds that it may take; None for the usual.
        """
        place = CallPlace(self.digest, len(self.responses) - 1, index)
        carried_out = await calls.carry_out(call, place, seconds)
        self.show(call, carried_out.result, carried_out.recorded)
        return carried_out.result

    async def carry_out_all(self, calls: AgentCalls, made: Sequence[ToolCall]) -> None:
        """Carry out the calls of the last reply, in their order."""
        for index, call in enumerate(made):
            if index < MAX_CALLS_OF_REPLY:
                await self.carry_out(calls, call, index)
            else:
                self.show(call, TOO_MANY_CALLS)

    def show(
        self, call: ToolCall, result: ToolResult, more: dict[str, Any] | None = None
    ) -> None:
        """Show the model the result of a call of the last reply.

        Args:
            call: the call.
            result: its result.
            more: what else a record says of the call.
        """
        self.add(result_turn(call, result.text, is_error=result.is_error))
        self.tool_seconds += result.seconds
        self.tool_calls.append(
            {
                "step": len(self.responses) - 1,
                "name": call.name,
                "is_error": result.is_error,
                "seconds": round(result.seconds, 6),
                **(more or {}),
            }
        )

    def ended(self) -> None:
        """Tell whoever watches that the trajectory has ended."""
        if self._log is not None:
            self._report({"ended": True})

    @property
    def model_seconds(self) -> float:
        """Time of the replies."""
        return sum(response.latency for response in self.responses)

    @property
    def dollars(self) -> float | None:
        """The price of all replies; None where one has none."""
        return total_dollars(self.responses)

    def _report(self, event: dict[str, Any]) -> None:
        assert self._log is not None
        self._log.report(
            {
                "id": self.name.sample,
                "draw": self.name.draw,
                "attempt": self.name.attempt,
                **event,
            }
        )


def total_dollars(responses: list[Response]) -> float | None:
    """Return the price of responses; None where one has none."""
    costs: list[float] = []
    for response in responses:
        if response.cost is None and response.finish_reason != TOO_LONG:
            return None
        costs.append(response.cost or 0.0)
    return sum(costs)


@dataclass(slots=True)
class Attempts:
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

    async def hold(
        self,
        attempt: Callable[[TrajectoryName], Awaitable[Held]],
        spent: Callable[[], Trajectory | None],
    ) -> Held:
        """Return what an attempt returns, the first one that is not given up.

        Args:
            attempt: holds one.
            spent: returns the trajectory of the attempt that was given up.

        Raises:
            RequestFailed: too many attempts were given up.
        """
        while len(self.given_up) < MAX_ATTEMPTS:
            name = TrajectoryName(self.sample, self.draw, len(self.given_up) + 1)
            mark = await self._stored_mark(name)
            if mark is not None:
                self.given_up.append(mark)
                continue
            try:
                return await attempt(name)
            except StartAnew as error:
                await self._give_up(name, error, spent())
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

    async def _give_up(
        self, name: TrajectoryName, error: StartAnew, trajectory: Trajectory | None
    ) -> None:
        mark: dict[str, Any] = {
            "after_calls": 0 if trajectory is None else len(trajectory.tool_calls),
            "why": error.why,
            "dollars": None if trajectory is None else trajectory.dollars,
        }
        self.given_up.append(mark)
        if self.log is None:
            return
        described = {
            "task": self.log.task,
            "sample": name.sample,
            "draw": name.draw,
            "attempt": name.attempt,
            "name": "started anew",
        }
        text = json.dumps(mark, ensure_ascii=False)
        key = self._mark_key(self.log, name)
        await self.log.store(key, described, Response(text, finish_reason="stop"))

    def _mark_key(self, log: ActionLog, name: TrajectoryName) -> bytes:
        return mark_key(log, name, self.sandbox, [_GIVEN_UP])

    @property
    def recorded(self) -> dict[str, Any]:
        """What a record says of the attempts beside the last."""
        return {"started_anew": self.given_up} if self.given_up else {}
