"""The `ask` that strategies use, and the answer they return when the model under test gave none.

A fault of the model itself (an empty reply, a prompt too long for it) ends the strategy, but
not as a failure: the result is an answer without text, with its outcome, after the replies that
came before. Those were paid for and stay in the record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalwright.core.actions import ActionLog, actions_of
from evalwright.core.ask import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.outcomes import is_models_own, response_of_fault
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer
from evalwright.strategies.sampling import TARGET


class StrategyAsk(Ask):
    """Wraps `ask` for a strategy: keeps the target's replies, and says whose fault a failure is.

    A failure of a model other than the one under test becomes a judge's failure. `replies` has the
    replies of the model under test in the order in which they came.

    Args:
        ask: the door.
        task: the task whose sample is answered; "" where `ask` knows it, or nobody does.
    """

    def __init__(self, ask: Ask, task: str = "") -> None:
        self._ask = ask
        self._task = task
        self.replies: list[Response] = []

    @property
    def actions(self) -> ActionLog | None:
        """The log of what tools do for samples of the task."""
        log = actions_of(self._ask)
        return log if log is None or not self._task else log.of_task(self._task)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ask, name)  # `abilities` and the other methods of `ask`

    async def __call__(self, role: str, request: Request) -> Response:
        try:
            response = await self._ask(role, request)
        except RequestFailed as error:
            raise RequestFailed(_blame_role(error.failure, role)) from None
        if role == TARGET:
            self.replies.append(response)
        return response

    def answer_of(self, failure: Failure) -> Answer | None:
        """Return the answer for a failure that is the model's own fault, else None."""
        if not is_models_own(failure):
            return None
        return Answer(responses=(*self.replies, response_of_fault(failure)))


def _blame_role(failure: Failure, role: str) -> Failure:
    """Attribute the failure of any model but the one under test to a judge."""
    if role == TARGET or failure.party not in ("provider", "model"):
        return failure
    return replace(failure, party="judge")
