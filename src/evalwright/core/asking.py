"""The one call to every model: `response = await ask(role, request)`."""

from __future__ import annotations

from typing import Protocol

from evalwright.core.requests import Ability, Request
from evalwright.core.responses import Response


class Ask(Protocol):
    """Sends a request to the model of a role: `response = await ask(role, request)`.

    Strategies and scorers get one. The role "target" is the model under test; "judge" and others
    are named by the run.
    """

    async def __call__(self, role: str, request: Request) -> Response:
        """Send the request; a stored response is used where there is one.

        Args:
            role: "target" for the model under test, or another role of the run.
            request: what to send.

        Returns:
            The response, which is stored by then.

        Raises:
            RequestFailed: the request failed for good, after all its attempts.
        """
        ...


def abilities_of(ask: Ask, role: str) -> frozenset[Ability] | None:
    """The abilities of the model in a role, or None if `ask` does not say.

    A judge may be a classifier or a text generator; its caller needs to know which.
    """
    lookup = getattr(ask, "abilities", None)
    abilities: frozenset[Ability] | None = lookup(role) if lookup is not None else None
    return abilities


def options_of(ask: Ask, role: str) -> frozenset[str]:
    """The options (of those that not every model supports) that requests to a role may use.

    Empty if `ask` does not say.
    """
    lookup = getattr(ask, "carries", None)
    options: frozenset[str] = lookup(role) if lookup is not None else frozenset()
    return options


def refusal_of(ask: Ask, role: str, request: Request) -> str | None:
    """Why the model in a role cannot take a request, in a sentence.

    None if it can, or if `ask` does not say.
    """
    lookup = getattr(ask, "refuses", None)
    refusal: str | None = lookup(role, request) if lookup is not None else None
    return refusal
