"""How strategies and scorers send requests to models: `response = await ask(role, request)`."""

from __future__ import annotations

from typing import Protocol

from evalwright.core.requests import Ability, Request
from evalwright.core.responses import Response


class Ask(Protocol):
    """Sends a request to the model that fills a role: `response = await ask(role, request)`.

    Strategies and scorers are called with one. The role "target" is the model under test; the run
    defines the other roles, such as "judge".
    """

    async def __call__(self, role: str, request: Request) -> Response:
        """Send a request, or return the stored response if it was already answered.

        Args:
            role: "target" for the model under test, or another role of the run.
            request: what to send.

        Returns:
            The response, which has been stored by then.

        Raises:
            RequestFailed: the request failed for good, after all its attempts.
        """
        ...


def abilities_of(ask: Ask, role: str) -> frozenset[Ability] | None:
    """Look up what the model in a role can do.

    A scorer needs this because a judge may be a classifier or a generative model, and the two take
    different requests.

    Args:
        ask: the function that the strategy or scorer was called with.
        role: "target" for the model under test, or another role of the run.

    Returns:
        The model's abilities; None where they are not known.
    """
    lookup = getattr(ask, "abilities", None)
    abilities: frozenset[Ability] | None = lookup(role) if lookup is not None else None
    return abilities


def options_of(ask: Ask, role: str) -> frozenset[str]:
    """Look up which optional settings of `Generate` the model in a role supports.

    Args:
        ask: the function that the strategy or scorer was called with.
        role: "target" for the model under test, or another role of the run.

    Returns:
        The supported names among the options that not every model takes.
    """
    lookup = getattr(ask, "carries", None)
    options: frozenset[str] = lookup(role) if lookup is not None else frozenset()
    return options


def refusal_of(ask: Ask, role: str, request: Request) -> str | None:
    """Explain in a sentence why the model in a role cannot take a request.

    Args:
        ask: the function that the strategy or scorer was called with.
        role: "target" for the model under test, or another role of the run.
        request: the request in question; it is not sent.

    Returns:
        The sentence; None if the model can take the request, or if `ask` cannot tell.
    """
    lookup = getattr(ask, "refuses", None)
    refusal: str | None = lookup(role, request) if lookup is not None else None
    return refusal


def within(ask: Ask, trajectory: str) -> Ask:
    """Return an `ask` for the requests of one trajectory, which share no answers with others'.

    Args:
        ask: the function that the strategy or scorer was called with.
        trajectory: what tells the trajectory apart from all others.

    Returns:
        The function; `ask` itself where nothing is kept that could be shared.
    """
    lookup = getattr(ask, "within", None)
    of_trajectory: Ask = ask if lookup is None else lookup(trajectory)
    return of_trajectory
