"""Target numbers: their value, their unit, how exactly they are written, and how far off an answer may
be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import (
    MAGNITUDE,
    Number,
    find_numbers,
)
from evalwright.scorers.text.units import (
    Unit,
    counter_after,
    parse_unit,
    pattern,
    unit_after,
)

_ASKED = pattern("asks_for")

_SHARE_ASKED = pattern("asks_for_a_share")

_SLACK = Decimal("1e-9")

AS_TARGET = -1
"""A tolerance of as many significant figures as the target shows."""


class Goal(NamedTuple):
    """A right number, its unit where it has one, how many significant figures it shows; the unit's
    magnitude; how it is written.

    counter: what it counts, where its language has a word for that behind numbers. ordinal: it is a
    place in an order ("세 번째").
    """

    value: Decimal
    unit: Unit | None
    figures: int
    year: bool
    scale: Decimal = Decimal(1)
    written: str = ""
    counter: str = ""
    ordinal: bool = False

    @property
    def fraction(self) -> bool:
        """Whether it is written as a fraction."""
        return "/" in self.written


class Tolerance(NamedTuple):
    """How far a number may be off: `absolute` in the target's unit, `relative` to the target, or
    right to so many figures.
    """

    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    significant: int = 0

    def allows(self, value: Decimal, target: Goal) -> bool:
        """Whether `value` is near enough to the target."""
        gap = abs(value - target.value)
        size = abs(target.value)
        figures = target.figures if self.significant == AS_TARGET else self.significant
        if figures > 0 and size:
            step = Decimal(1).scaleb(target.value.adjusted() - figures + 1)
            if abs(value - _rounded(target.value, figures)) <= step / 2:
                return True
        return gap <= max(
            max(self.absolute, self.relative * size) * (1 + _SLACK),
            size * Decimal("1e-20"),
        )


def _rounded(value: Decimal, figures: int) -> Decimal:
    step = Decimal(1).scaleb(value.adjusted() - figures + 1)
    return (value / step).to_integral_value(ROUND_HALF_UP) * step


def read_tolerance(given: Mapping[str, Any] | None) -> Tolerance:
    """The tolerance of a sample: {"absolute": x}, {"relative": x}, {"significant": n}; of several,
    the widest counts.

    n: how many significant figures must be right; "target" for as many as the target shows. Raises
    ScoringError.
    """
    if not given:
        return Tolerance()
    if not isinstance(given, Mapping) or not set(given) <= {
        "absolute",
        "relative",
        "significant",
    }:
        raise ScoringError(
            "A 'tolerance' is a mapping with the keys 'absolute', 'relative' or"
            " 'significant', such as {relative: 0.01}."
        )
    figures = given.get("significant")
    if figures == "target":
        figures = AS_TARGET
    elif figures is not None and (type(figures) is not int or not 1 <= figures <= 30):
        raise ScoringError(
            "The tolerance 'significant' is a number of figures from 1 to 30, or"
            f" 'target', not {figures!r}."
        )
    return Tolerance(
        _amount(given.get("absolute")), _amount(given.get("relative")), figures or 0
    )


def _amount(value: Any) -> Decimal:
    try:
        amount = Decimal(str(value or 0))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount >= 0 or amount.is_infinite():
        raise ScoringError(
            f"A tolerance must be a number that is not negative, not {value!r}."
        )
    return amount


@lru_cache(maxsize=2048)
def goals_of(
    targets: tuple[str, ...], unit: str, question: str, language: str
) -> tuple[Goal, ...]:
    """The targets as numbers, each in its own unit, the sample's or the one that the question asks
    for; empty where one is none.
    """
    found = [
        (target, find_numbers(plain(target).strip(), language)) for target in targets
    ]
    factor, asked = _asked_unit(unit, question)
    asked = asked or next(
        (one.unit for _, numbers in found for one in numbers if one.unit), None
    )
    out = []
    for target, numbers in found:
        cardinals = [one for one in numbers if not one.ordinal]
        counted = [one for one in numbers if _counter(plain(target).strip(), one)]
        cardinals = cardinals or counted
        if len(cardinals) != 1 or cardinals[0].bound:
            continue
        one = cardinals[0]
        counter = _counter(plain(target).strip(), one)
        whole = one.value == int(one.value)
        is_bare = one.unit is None and asked is None and not counter
        year = whole and is_bare and 1000 <= one.value <= 2100
        figures = len(one.value.normalize().as_tuple().digits)
        goal_unit = one.unit or (None if counter else asked)
        goal = Goal(
            one.value * factor,
            goal_unit,
            figures,
            year,
            factor,
            target,
            counter,
            one.ordinal,
        )
        out.append(goal)
    return tuple(out)


def _counter(text: str, one: Number) -> str:
    """What a number counts, as its counter is called; "" where it has a unit or no counter behind
    it.
    """
    found = counter_after(text, one.end) if one.unit is None else None
    return found[0] if found else ""


def _asked_unit(unit: str, question: str) -> tuple[Decimal, Unit | None]:
    """The magnitude and the unit that a number without one has: the sample's `unit`, else the one
    in the question.
    """
    if unit:
        first, _, rest = unit.partition(" ")
        power = MAGNITUDE.get(first.casefold(), 0) if len(first) > 1 else 0
        unit = rest if power else unit
        return Decimal(1).scaleb(power), parse_unit(unit) if unit else None
    for found in _ASKED.finditer(question[:1000]):
        got = unit_after(" " + found[1], 0)
        short = (
            found[1].isascii()
            and len(found[1].split()[0]) <= 2
            and not re.match(r"[?.,)]|$", question[found.end(1) :])
        )
        years = (
            got is not None
            and got[0].dimensions == (("year", 1),)
            and found.group()[:2].casefold() in ("in", "en", "em")
        )
        if got is not None and not short and not years:
            return Decimal(1), got[0]
    return Decimal(1), parse_unit("%") if _SHARE_ASKED.search(question[:1000]) else None
