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
    """What the model of a role can do.

    A judge may be a classifier or a model that writes, which its requests depend on.

    Args:
        ask: what the strategy or scorer was given.
        role: "target" for the model under test, or another role of the run.

    Returns:
        Its abilities; None where they are not known.
    """
    lookup = getattr(ask, "abilities", None)
    abilities: frozenset[Ability] | None = lookup(role) if lookup is not None else None
    return abilities


def options_of(ask: Ask, role: str) -> frozenset[str]:
    """The options of `Generate` that requests to the model of a role may use.

    Args:
        ask: what the strategy or scorer was given.
        role: "target" for the model under test, or another role of the run.

    Returns:
        Of the options that not every model takes, those that this one does.
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
