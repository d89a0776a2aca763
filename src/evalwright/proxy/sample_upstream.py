"""The model under test of one sample, behind a gateway of its own.

What a program asks goes through the sample's `ask`, as what a strategy asks does. This keeps what
was asked, within the limits of the task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from evalwright.core.ask import Ask, abilities_of, options_of, within
from evalwright.core.errors import Failure, RequestFailed, StoreError
from evalwright.core.outcomes import is_models_own, response_of_fault
from evalwright.core.requests import Message, Request
from evalwright.core.responses import Response
from evalwright.models.model_interface import EVERY_OPTION, Model, RemoteModel
from evalwright.proxy.earlier_attempts import EarlierAttempts
from evalwright.proxy.faults import Fault, fault_of, is_an_answer, not_served
from evalwright.proxy.program_limits import LimitName, ProgramMeter
from evalwright.proxy.tokens import Access
from evalwright.proxy.transcript import Transcript
from evalwright.strategies.limits import Limits
from evalwright.strategies.sampling import TARGET

LIMIT_CODE = "limit_reached"
"""The code by which programs recognise that a limit of the task is reached."""
_UNITS: dict[LimitName, str] = {
    "messages": "messages",
    "tokens": "tokens",
    "dollars": "US dollars",
    "seconds": "seconds",
}
OnReply = Callable[[int, tuple[Message, ...]], None]
"""Hears of a reply: the number of its conversation, and the turns that are new in it."""


class AskedModel(RemoteModel):
    """The model in a role, where `ask` does not show it.

    Args:
        ask: asks it.
        role: its role.
    """

    def __init__(self, ask: Ask, role: str) -> None:
        self.name = role
        self.abilities = abilities_of(ask, role) or frozenset(("generate", "chat"))
        self.carries = options_of(ask, role) or EVERY_OPTION
        self._ask = ask

    async def answer(self, request: Request) -> Response:
        """Ask the model."""
        return await self._ask(self.name, request)


def model_of(ask: Ask, role: str) -> Model:
    """Return the model in a role."""
    lookup = getattr(ask, "model", None)
    model: Model = AskedModel(ask, role) if lookup is None else lookup(role)
    return model


class SampleUpstream:
    """The model under test as the only one of a gateway, whatever a program calls it.

    Args:
        ask: the sample's `ask`.
        trajectory: the id of the sample's trajectory.
        names: names that the program may use for the model; none for any.
        limits: what the program may use.
        attempts: what it asked when it was started before.
        on_reply: hears of every reply.
    """

    def __init__(
        self,
        ask: Ask,
        trajectory: str,
        names: Sequence[str],
        limits: Limits,
        attempts: EarlierAttempts,
        on_reply: OnReply,
    ) -> None:
        self.meter = ProgramMeter(limits, self._end_by_limit)
        self.transcript = Transcript()
        self.responses: list[Response] = []
        """Every reply, in the order of the transcript's positions."""
        self.times: list[tuple[float, float]] = []
        """When each of them was asked for, and when it came, on the event loop's clock."""
        self.over = asyncio.Event()
        """Set when the program is to end: a limit is reached, or a request failed for good."""
        self.failure: Failure | None = None
        """Why the sample is missing; None if nothing failed that is not the model's fault."""
        self.refusal: Failure | None = None
        """The last request's failure, which the program heard of; None if it was answered."""
        self.n_requests = 0
        self._shared_ask = ask
        self._own_ask = within(ask, trajectory)
        self._model = model_of(ask, TARGET)
        self._names = tuple(names)
        self._limits = limits
        self._attempts = attempts
        self._on_reply = on_reply
        self._answered: dict[bytes, Response] = {}
        self._open: dict[bytes, asyncio.Future[Response]] = {}

    # -- what the gateway calls

    def find(self, name: str, access: Access) -> Model:
        """Return the model under test.

        Raises:
            Fault: the task does not allow this name for it.
        """
        if not self._names or name in self._names:
            return self._model
        raise not_served(name, self._names, self._names)

    def allowed(self, access: Access) -> list[str]:
        """Return the names that the program may use."""
        return list(self._names)

    def count_bytes(self, size: int) -> None:
        """Count a request: the limits of the task bound how many are stored."""
        self.n_requests += 1

    async def ask(
        self,
        model: Model,
        trajectory: str,
        request: Request,
        payload: bytes,
        access: Access,
    ) -> Response:
        """Ask the model under test; a reply that the program lost is given to it again."""
        answered = self._answered.get(payload)
        if answered is not None:
            return answered
        running = self._open.get(payload)
        if running is None:
            limit = self.meter.open()
            if limit is not None:
                raise self._limit_fault(limit)
            ask = self._own_ask if trajectory else self._shared_ask
            running = asyncio.ensure_future(self._asked(ask, request, payload))
            running.add_done_callback(lambda _: self._open.pop(payload))
            self._open[payload] = running
        return await asyncio.shield(running)

    async def _asked(self, ask: Ask, request: Request, payload: bytes) -> Response:
        """Ask once, and keep what came of it; a client that leaves does not end this."""
        response: Response | None = None
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        try:
            response = await ask(TARGET, request)
            self.refusal = None
        except RequestFailed as failed:
            response = self._of_failure(failed.failure)
            if response is None:
                raise
        finally:
            self.meter.close(response)
        self._answered[payload] = response
        self.responses.append(response)
        self.times.append((asked_at, loop.time()))
        talk, turns = self.transcript.add(request, response)
        if talk is not None:
            self._on_reply(self.transcript.conversations.index(talk), turns)
        await self._attempts.add(payload, response)
        return response

    def _of_failure(self, failure: Failure) -> Response | None:
        """Return the reply that a failure is; None if it is an error, which is noted."""
        if is_an_answer(failure):
            self.refusal = None
            return response_of_fault(failure)
        self.refusal = failure
        is_for_program = is_models_own(failure) or fault_of(failure).status == 400
        if not is_for_program and self.failure is None:
            self.failure = failure
            self.over.set()
        return None

    # -- the end

    async def settle(self) -> None:
        """Wait for the requests that the program left open: they are paid for.

        Raises:
            StoreError: the store failed, which must end the run.
        """
        outcomes = await asyncio.gather(*self._open.values(), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, StoreError):
                raise outcome

    def abandon(self) -> None:
        """End the requests that are open: nobody waits for them any more."""
        for running in self._open.values():
            running.cancel()

    def _end_by_limit(self, limit: LimitName) -> None:
        self.over.set()

    def _limit_fault(self, limit: LimitName) -> Fault:
        most = getattr(self._limits, limit)
        amount = f" of {most:g} {_UNITS[limit]}" if most is not None else ""
        return Fault(
            403,
            "permission",
            f"The limit{amount} of this task is reached: no further request is answered, and"
            " the program is ended.",
            code=LIMIT_CODE,
        )
