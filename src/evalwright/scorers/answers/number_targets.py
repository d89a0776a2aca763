"""Target numbers: their value and unit, and how far off an answer may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import (
    MAGNITUDES,
    Number,
    find_numbers,
)
from evalwright.scorers.text.units import (
    Unit,
    counter_after,
    parse_unit,
    sentence_pattern,
    unit_after,
)

_ASKED = sentence_pattern("asks_for")

_SHARE_ASKED = sentence_pattern("asks_for_a_share")

SLACK = Decimal("1e-9")

AS_PRECISE_AS_TARGET = -1
"""The value of `significant` for as many significant figures as the target shows."""


class NumberTarget(NamedTuple):
    """An accepted number.

    Args:
        value: the number, multiplied by `scale`.
        unit: its unit, if it has one.
        figures: significant figures that it shows.
        year: whether it may be a year.
        scale: magnitude of the sample's unit ("million km").
        written: the target as it is written.
        counter: what it counts, in languages with counters.
        ordinal: whether it is a position in an order ("세 번째").
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
        """Whether the number is written as a fraction."""
        return "/" in self.written


class Tolerance(NamedTuple):
    """How far a number may be off; the widest limit counts.

    Args:
        absolute: limit in the target's unit.
        relative: limit as a share of the target.
        significant: how many significant figures must be right.
    """

    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    significant: int = 0

    def allows(self, value: Decimal, target: NumberTarget) -> bool:
        """Return whether a number is close enough to the target."""
        gap = abs(value - target.value)
        size = abs(target.value)
        figures = (
            target.figures
            if self.significant == AS_PRECISE_AS_TARGET
            else self.significant
        )
        if figures > 0 and size:
            step = Decimal(1).scaleb(target.value.adjusted() - figures + 1)
            if abs(value - round_to_figures(target.value, figures)) <= step / 2:
                return True
        return gap <= max(
            max(self.absolute, self.relative * size) * (1 + SLACK),
            size * Decimal("1e-20"),
        )


def round_to_figures(value: Decimal, figures: int) -> Decimal:
    step = Decimal(1).scaleb(value.adjusted() - figures + 1)
    return (value / step).to_integral_value(ROUND_HALF_UP) * step


def parse_tolerance(tolerance: Mapping[str, Any] | None) -> Tolerance:
    """Parse the tolerance of a sample.

    Args:
        tolerance: a mapping with `absolute`, `relative` or `significant` (a number of figures, or
            "target" for as many as the target shows).

    Raises:
        ScoringError: the mapping has anything else.
    """
    if not tolerance:
        return Tolerance()
    if not isinstance(tolerance, Mapping) or not set(tolerance) <= {
        "absolute",
        "relative",
        "significant",
    }:
        raise ScoringError(
            "A 'tolerance' is a mapping with the keys 'absolute', 'relative' or"
            " 'significant', such as {relative: 0.01}."
        )
    figures = tolerance.get("significant")
    if figures == "target":
        figures = AS_PRECISE_AS_TARGET
    elif figures is not None and (type(figures) is not int or not 1 <= figures <= 30):
        raise ScoringError(
            "The tolerance 'significant' is a number of figures from 1 to 30, or"
            f" 'target', not {figures!r}."
        )
    return Tolerance(
        _parse_amount(tolerance.get("absolute")),
        _parse_amount(tolerance.get("relative")),
        figures or 0,
    )


def _parse_amount(amount_text: Any) -> Decimal:
    try:
        amount = Decimal(str(amount_text or 0))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount >= 0 or amount.is_infinite():
        raise ScoringError(
            f"A tolerance must be a number that is not negative, not {amount_text!r}."
        )
    return amount


@lru_cache(maxsize=2048)
def parse_number_targets(
    targets: tuple[str, ...], unit: str, question: str, language: str
) -> tuple[NumberTarget, ...]:
    """Read the targets as numbers; targets that are not numbers are left out.

    A target without a unit has the sample's, or the one that the question asks for.
    """
    numbers_by_target = [
        (target, find_numbers(plain(target).strip(), language)) for target in targets
    ]
    factor, asked_unit = _read_asked_unit(unit, question)
    asked_unit = asked_unit or next(
        (
            number.unit
            for _, numbers in numbers_by_target
            for number in numbers
            if number.unit
        ),
        None,
    )
    number_targets = []
    for target, numbers in numbers_by_target:
        cardinals = [number for number in numbers if not number.ordinal]
        counted = [
            number for number in numbers if counter_of(plain(target).strip(), number)
        ]
        cardinals = cardinals or counted
        if len(cardinals) != 1 or cardinals[0].bound:
            continue
        number = cardinals[0]
        counter = counter_of(plain(target).strip(), number)
        is_integer = number.value == int(number.value)
        is_bare = number.unit is None and asked_unit is None and not counter
        year = is_integer and is_bare and 1000 <= number.value <= 2100
        figures = len(number.value.normalize().as_tuple().digits)
        goal_unit = number.unit or (None if counter else asked_unit)
        goal = NumberTarget(
            number.value * factor,
            goal_unit,
            figures,
            year,
            factor,
            target,
            counter,
            number.ordinal,
        )
        number_targets.append(goal)
    return tuple(number_targets)


def counter_of(text: str, number: Number) -> str:
    """Return the counter after a number ("개"); "" if it has a unit or no counter."""
    counter = counter_after(text, number.end) if number.unit is None else None
    return counter[0] if counter else ""


def _read_asked_unit(unit: str, question: str) -> tuple[Decimal, Unit | None]:
    """Return the magnitude and unit for numbers without one: the sample's, or the question's."""
    if unit:
        first, _, unit_name = unit.partition(" ")
        power = MAGNITUDES.get(first.casefold(), 0) if len(first) > 1 else 0
        unit = unit_name if power else unit
        return Decimal(1).scaleb(power), parse_unit(unit) if unit else None
    for unit_match in _ASKED.finditer(question[:1000]):
        unit_match_after = unit_after(" " + unit_match[1], 0)
        short = (
            unit_match[1].isascii()
            and len(unit_match[1].split()[0]) <= 2
            and not re.match(r"[?.,)]|$", question[unit_match.end(1) :])
        )
        years = (
            unit_match_after is not None
            and unit_match_after[0].dimensions == (("year", 1),)
            and unit_match.group()[:2].casefold() in ("in", "en", "em")
        )
        if unit_match_after is not None and not short and not years:
            return Decimal(1), unit_match_after[0]
    return Decimal(1), parse_unit("%") if _SHARE_ASKED.search(question[:1000]) else None
