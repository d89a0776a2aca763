"""A verdict that a judge writes: the mark that its question carries, the request, and the one JSON object that repeats the mark.

A mark is a hash of the material that is judged, which a text cannot contain without changing it: a verdict that somebody
planted in the material has another mark, or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any, TypeVar

from evalwright.core.asking import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Generate, Prompt

MOST_REASON = 300
"""Characters of a reason that are kept."""

Read = TypeVar("Read")


class BadVerdict(Exception):
    """A verdict that cannot be used; the message says why."""


def mark_of(*material: Any) -> str:
    """The mark of this material: sixteen hexadecimal digits."""
    return blake2b(json.dumps(material, ensure_ascii=True).encode(), digest_size=8).hexdigest()


async def ask_verdict(
    role: str, prompt: Prompt, read: Callable[[str], Read], ask: Ask, max_tokens: int
) -> Read:
    """What `read` makes of a judge's reply. Raises RequestFailed where the request failed or the verdict cannot be used."""
    response = await ask(role, Generate(prompt, max_tokens=max_tokens))
    try:
        return read(separate_reasoning(response).answer)
    except BadVerdict as error:
        cut = " (it was cut off at the limit of its length)" if response.finish_reason == "length" else ""
        message = f"The verdict of '{role}' cannot be used: {error}{cut}."
        raise RequestFailed(Failure("bad verdict", "judge", message)) from None


def reason_of(given: dict[str, Any]) -> str:
    """The field "reason", in one line and of a length that people read."""
    return " ".join(str(given.get("reason", "")).split())[:MOST_REASON]


def shown(value: Any) -> str:
    """A field of a verdict as a message quotes it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def marked_object(text: str, mark: str, fields: Iterable[str]) -> dict[str, Any]:
    """The object whose "check" is the mark. Raises BadVerdict where there is none, several that differ, or one that lacks a field."""
    found = list(_objects(text))
    ours = [one for one in found if one.get("check") == mark]
    if not ours:
        if not found:
            raise BadVerdict("the reply has no JSON object")
        raise BadVerdict("the reply has a JSON object without the mark of this question")
    if any(one != ours[0] for one in ours):
        raise BadVerdict("the reply has several verdicts that differ")
    if missing := [name for name in fields if name not in ours[0]]:
        raise BadVerdict(f"the verdict has no '{missing[0]}'")
    return ours[0]


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, outermost ones only."""
    decoder = json.JSONDecoder()
    place = text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            if isinstance(value, dict):
                yield value
        place = text.find("{", end)
