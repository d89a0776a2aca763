"""The one door, as seen from above: `response = await ask(role, request)`."""

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
    """What the model that plays `role` can do, None where the door does not tell.

    A judge may be a classifier or a model that writes; whoever asks it needs to know which.
    """
    tell = getattr(ask, "abilities", None)
    found: frozenset[Ability] | None = tell(role) if tell is not None else None
    return found


def options_of(ask: Ask, role: str) -> frozenset[str]:
    """Which options, of those that not every model carries, requests to the model that plays `role`
    may use; none where the door does not tell.
    """
    tell = getattr(ask, "carries", None)
    found: frozenset[str] = tell(role) if tell is not None else frozenset()
    return found


def refusal_of(ask: Ask, role: str, request: Request) -> str | None:
    """Why the model that plays `role` does not take a request as it is, in a sentence; None where
    it does, or where the door does not tell.
    """
    tell = getattr(ask, "refuses", None)
    found: str | None = tell(role, request) if tell is not None else None
    return found
