"""Finding the one JSON object in a judge's reply that carries the mark of its question.

A mark is a hash of the material that is judged, which a text cannot contain without changing it: a verdict that somebody
planted in the material has another mark, or none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


class BadVerdict(Exception):
    """A verdict that cannot be used; the message says why."""


def marked_object(text: str, mark: str) -> dict[str, Any]:
    """The object whose "check" is the mark. Raises BadVerdict where there is none, or several that differ."""
    found = list(_objects(text))
    ours = [one for one in found if one.get("check") == mark]
    if not ours:
        if not found:
            raise BadVerdict("the reply has no JSON object")
        raise BadVerdict("the reply has a JSON object without the mark of this question")
    if any(one != ours[0] for one in ours):
        raise BadVerdict("the reply has several verdicts that differ")
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
