"""Quantities of a sentence, and which ones follow from others: sums, differences, shares, multiples, rounding."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalwright.models.judges.lexical.lexicon import (
    FRACTIONS,
    MULTIPLES,
    ORDINALS,
    ROUNDING,
    SCALES,
    UNITS,
)
from evalwright.models.judges.lexical.words import Token

_REACH = 3
"""Tokens after a number in which its unit may stand."""
_TIMES = frozenset(["second", "minute", "hour", "day", "week", "month", "year"])
_MOST = 40
"""Quantities that are computed with: more of them give any number by chance."""
_EXACT, _ROUGH, _SHARE = 0.001, 0.05, 0.012
"""By how much of itself a number may differ: as it is, with a word such as "about" before it, and as a computed share."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with what it counts. place: in the sentence. unit, rate: kinds of unit, or "". kind: year, share or number."""

    value: float
    place: int
    text: str
    unit: str
    rate: str
    kind: str
    rough: bool


def quantities_of(tokens: Sequence[Token]) -> Iterator[Quantity]:
    """The quantities of a sentence. Ordinals are none, but "a third of" is."""
    for place, token in enumerate(tokens):
        if token.value is None or (token.lower in ORDINALS and not _is_part(tokens, place)):
            continue
        value, kind = _value(tokens, place, token.value)
        if kind == "part of a scale":
            continue
        unit, end = _unit(tokens, place)
        if not unit and kind == "number" and _is_year(token):
            kind = "year"
        rough = any(each.lower in ROUNDING for each in tokens[max(0, place - 3) : place])
        yield Quantity(value, place, token.text, unit, _rate(tokens, end), kind, rough)


def _value(tokens: Sequence[Token], place: int, value: float) -> tuple[float, str]:
    """The value with what stands beside it, and the kind: "two thirds", "half a billion", "131 and 83 million"."""
    token, after = tokens[place], tokens[place + 1 : place + 3]
    if token.lower in ORDINALS:
        return _part(tokens, place), "share"
    if token.lower in SCALES and [each.lower for each in tokens[max(0, place - 2) : place]] == ["half", "a"]:
        return 0.5 * value, "number"
    if token.lower == "half" and len(after) == 2 and after[1].lower in SCALES:
        return value, "part of a scale"
    if token.lower in FRACTIONS or token.lower in MULTIPLES:
        times = tokens[place - 1].value if place and token.lower.endswith("s") else None
        return value * (times or 1.0), "share"
    if len(after) == 2 and after[0].lower in ("and", "to", "or") and " " not in token.text:
        scale = SCALES.get(after[1].lower.rpartition(" ")[2]) if " " in after[1].text else None
        if scale and after[1].value and value < scale:
            return value * scale, "number"
    return value, "number"


def _is_year(token: Token) -> bool:
    return len(token.text) == 4 and token.text.isdigit() and 1000 <= int(token.text) <= 2100


def _is_part(tokens: Sequence[Token], place: int) -> bool:
    before = tokens[place - 1].lower if place else ""
    after = tokens[place + 1].lower if place + 1 < len(tokens) else ""
    return before in ("a", "one", "two", "three") and after in ("", "of", "less", "more", "as", ".", ",", ";")


def _part(tokens: Sequence[Token], place: int) -> float:
    times = tokens[place - 1].value or 1.0
    return times / ORDINALS[tokens[place].lower]


def _unit(tokens: Sequence[Token], place: int) -> tuple[str, int]:
    """The kind of unit and the place after it."""
    before = tokens[place - 1].lower if place else ""
    if before in UNITS and not before.isalpha():
        return UNITS[before], place + 1
    for number in range(place + 1, min(len(tokens), place + 1 + _REACH)):
        other = tokens[number]
        if other.value is not None or other.text in ",;.:()":
            break
        if other.lower == "cent":
            return "percent", number + 1
        if (kind := UNITS.get(other.lower)) is not None:
            return kind, number + 1
    return "", place + 1


def _rate(tokens: Sequence[Token], start: int) -> str:
    """ "month" of "28,000 a month", "1.9 million passengers per month"."""
    for number in range(start, min(len(tokens) - 1, start + _REACH)):
        if tokens[number].value is not None or tokens[number].text in ",;.:()":
            break
        if tokens[number].lower in ("a", "per", "each", "every", "an"):
            kind = UNITS.get(tokens[number + 1].lower, "")
            return kind if kind in _TIMES else ""
    return ""


def close(one: Quantity, value: float) -> bool:
    """Whether a quantity may be written for a value: equal, or near where it says "about", or rounded."""
    if one.kind == "year":
        return one.value == value
    tolerance = _ROUGH if one.rough else _EXACT
    return abs(one.value - value) <= tolerance * max(abs(value), abs(one.value)) + 1e-9


def follows(one: Quantity, given: Sequence[Quantity]) -> bool:
    """Whether a quantity can be computed from one or two of the given ones."""
    given = given[:_MOST]
    if one.kind == "share" or one.unit == "percent":
        return any(_near_share(one, share) for share in _shares(given))
    return any(close(one, value) for value in _computed(one, given))


def _near_share(one: Quantity, share: float) -> bool:
    said = one.value / 100 if one.unit == "percent" else one.value
    tolerance = _SHARE if one.kind != "share" else 3 * _ROUGH if one.rough else _ROUGH
    if one.rough:
        tolerance = max(tolerance, _ROUGH)
    return abs(said - share) <= tolerance * max(said, share)


def _shares(given: Sequence[Quantity]) -> Iterator[float]:
    for each in given:
        if each.unit == "percent":
            yield each.value / 100
            yield 1 - each.value / 100
            yield 1 + each.value / 100
    for one, other in itertools.permutations(given, 2):
        if "year" in (one.kind, other.kind) or not other.value or one.unit != other.unit:
            continue
        share = one.value / other.value
        yield share
        yield 1 - share
        yield share - 1


def _computed(one: Quantity, given: Sequence[Quantity]) -> Iterator[float]:
    for first, second in itertools.combinations(given, 2):
        years = (first.kind == "year") + (second.kind == "year")
        if one.kind == "year":
            if years == 1:
                yield first.value + second.value
                yield abs(first.value - second.value)
            continue
        if years == 1:
            continue
        if not years:
            yield first.value + second.value
            yield first.value * second.value
        yield abs(first.value - second.value)
    for each in given:
        if each.kind == "number" and one.kind != "year":
            yield each.value - 1
            yield each.value + 1
            yield each.value / 2
            yield each.value * 2
    for three in itertools.combinations(given[:8], 3):
        if all(each.kind == "number" for each in three):
            yield sum(each.value for each in three)
