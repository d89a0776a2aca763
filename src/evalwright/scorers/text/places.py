"""Where a piece of plain text stands in the text that it was made from.

Making text plain takes markup off and changes signs, so that places shift. Both texts are walked together, each character of
the plain one looked up in the other; what was taken off is stepped over.
"""

from __future__ import annotations

import unicodedata

_WINDOW = 700
"""How much markup may be stepped over at once: the address of a link is at most 500 characters."""


def place_in(raw: str, made: str, start: int, end: int) -> tuple[int, int]:
    """The place in `raw` of `made[start:end]`, where `made` is `raw` without markup and in one spelling; (0, 0) if unknown."""
    piece = made[start:end]
    if not piece:
        return 0, 0
    if raw == made:
        return start, end
    if raw.count(piece) == 1 and made.count(piece) == 1:
        found = raw.index(piece)
        return found, found + len(piece)
    source, origin = _spelled(raw)
    target, places = _spelled(made)
    first = next((i for i, place in enumerate(places) if place >= start), len(places))
    last = next((i for i, place in enumerate(places) if place >= end), len(places))
    wanted = target[first:last]
    if not wanted:
        return 0, 0
    earliest = _walk(source, target[:first])
    found = source.find(wanted, earliest)
    if found < 0:
        begins = _walk(source, target[: first + 1]) - 1
        ends = _walk(source, target[:last])
        if begins < 0 or ends <= begins:
            return 0, 0
        return origin[begins], origin[ends - 1] + 1
    return origin[found], origin[found + len(wanted) - 1] + 1


def _walk(source: str, target: str) -> int:
    """How far into the source the target reaches, each character found at its first place after the one before."""
    position = 0
    for char in target:
        found = source.find(char, position, position + _WINDOW)
        if found >= 0:
            position = found + 1
    return position


def _spelled(text: str) -> tuple[str, list[int]]:
    """The letters and digits of a text in their simplest spelling, and the place of each."""
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        for simple in _simple(char):
            chars.append(simple)
            places.append(place)
    return "".join(chars), places


def _simple(char: str) -> str:
    if char.isascii():
        return char.lower() if char.isalnum() else ""
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    spelled = unicodedata.normalize("NFKD", char).casefold()
    return "".join(one for one in spelled if one.isalnum() and not unicodedata.combining(one))
