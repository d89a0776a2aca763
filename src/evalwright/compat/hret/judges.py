"""What scorers that ask a judge have in common."""

from __future__ import annotations

from typing import Any

from evalwright import Ask, Message
from evalwright.compat.hret.call import JUDGE
from evalwright.extend import abilities_of

KIND = "hret"
"""The kind of all scorers here; a name is HRET's word for the method."""


def judge_scorer_facts(asks: bool) -> dict[str, Any]:
    """What a scorer says of the judge that it asks."""
    return (
        {"asks": True, "roles": (JUDGE,), "able": frozenset({"generate"})}
        if asks
        else {}
    )


def as_prompt(text: str, ask: Ask) -> str | tuple[Message, ...]:
    """A judge's prompt as a message, or as text for a model without a chat."""
    abilities = abilities_of(ask, JUDGE)
    return (
        text
        if abilities is not None and "chat" not in abilities
        else (Message("user", text),)
    )
