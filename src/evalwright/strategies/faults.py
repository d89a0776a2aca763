"""The door as a strategy has it, and what a strategy ends in where the model under test did what is
no answer.

A fault of the model (an empty reply, a prompt too long for it) ends the strategy, but not as a
failure: it is an answer without text, with its outcome, behind the replies that came before it.
These are paid and stay in the record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalwright.core.asking import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.outcomes import is_models_own, response_of_fault
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer
from evalwright.strategies.generate import TARGET


class StrategyAsk(Ask):
    """The door, which keeps the replies of the model under test, and names what fails of any other
    model a judge's failure.

    replies: of the model under test, in the order in which they came.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.replies: list[Response] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ask, name)  # what the door tells of its models

    async def __call__(self, role: str, request: Request) -> Response:
        try:
            response = await self._ask(role, request)
        except RequestFailed as error:
            raise RequestFailed(_of_role(error.failure, role)) from None
        if role == TARGET:
            self.replies.append(response)
        return response

    def answer_of(self, failure: Failure) -> Answer | None:
        """The answer that the model's own fault makes, behind the replies before it; None where it
        is not the model's.
        """
        if not is_models_own(failure):
            return None
        return Answer(responses=(*self.replies, response_of_fault(failure)))


def _of_role(failure: Failure, role: str) -> Failure:
    """The failure; of a model other than the one under test it is a judge's."""
    if role == TARGET or failure.party not in ("provider", "model"):
        return failure
    return replace(failure, party="judge")
