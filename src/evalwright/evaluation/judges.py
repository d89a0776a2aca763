"""The `ask` of a scorer: its requests to models and their responses are kept for the record."""

from __future__ import annotations

from dataclasses import replace

from evalwright.core.actions import ActionLog, actions_of
from evalwright.core.ask import Ask, abilities_of, options_of, refusal_of
from evalwright.core.errors import Party, RequestFailed
from evalwright.core.outcomes import ANSWERED, EMPTY, failure_of, outcome_of
from evalwright.core.requests import Ability, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Exchange


class Judges(Ask):
    """Wraps `ask` for one scorer.

    A request that fails is the judge's failure, and so is a reply without an answer. `exchanges`
    has the requests in order, with their responses.
    """

    __slots__ = ("_ask", "exchanges")

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.exchanges: list[Exchange] = []

    @property
    def actions(self) -> ActionLog | None:
        """The log of what tools do."""
        return actions_of(self._ask)

    def abilities(self, role: str) -> frozenset[Ability] | None:
        """Return the abilities of the model in a role."""
        return abilities_of(self._ask, role)

    def carries(self, role: str) -> frozenset[str]:
        """Return the optional request fields that the model in a role supports."""
        return options_of(self._ask, role)

    def refuses(self, role: str, request: Request) -> str | None:
        """Return why the model in a role cannot take a request; None if it can."""
        return refusal_of(self._ask, role, request)

    async def __call__(self, role: str, request: Request) -> Response:
        position = len(self.exchanges)
        payload = request.payload()
        self.exchanges.append(Exchange(role, payload))
        try:
            response = await self._ask(role, request)
        except RequestFailed as error:
            failure = error.failure
            party: Party = (
                "judge" if failure.party in ("provider", "model") else failure.party
            )
            raise RequestFailed(replace(failure, party=party)) from None
        self.exchanges[position] = Exchange(role, payload, response)
        outcome = outcome_of(response)
        if outcome not in (
            ANSWERED,
            EMPTY,
        ):  # the scorer cannot read an empty verdict
            raise RequestFailed(failure_of(outcome, role))
        return response
