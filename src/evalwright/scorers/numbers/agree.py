"""When a number in an answer is the target: value, unit and tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any, NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.scorers.numbers.parse import Number
from evalwright.scorers.numbers.units import Unit, convert

_SLACK = Decimal("1e-9")
_ROUNDING = Decimal("1e-24")
"""What conversions such as ten minutes to a sixth of an hour lose; far below any digit that is written."""
_FEWEST_DIGITS = 3
_PERCENT = (("percent", 1),)


AS_TARGET = -1
"""As many significant figures as the target shows."""


class Tolerance(NamedTuple):
    """How far a number may be off: `absolute` in the target's unit, `relative` to the target; 0 and 0 is exact.

    significant: to how many figures it must be right (rounded at the target's place), 0 where they do not count.
    """

    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    significant: int = 0

    def allows(self, value: Decimal, target: Decimal) -> bool:
        """Whether `value` is near enough."""
        if abs(value - target) <= abs(target) * _ROUNDING:
            return True
        if self.significant > 0 and target:
            unit = Decimal(1).scaleb(target.adjusted() - self.significant + 1)
            rounded = (target / unit).to_integral_value(ROUND_HALF_UP) * unit
            if abs(value - rounded) <= unit / 2:
                return True
        allowed = max(self.absolute, self.relative * abs(target))
        return bool(allowed) and abs(value - target) <= allowed * (1 + _SLACK)


class TargetNumber(NamedTuple):
    """A right number, in its unit where it has one, and how many significant figures it shows."""

    value: Decimal
    unit: Unit | None
    figures: int = 0


def read_tolerance(given: Mapping[str, Any] | None) -> Tolerance:
    """The tolerance of a task: {"absolute": x}, {"relative": x}, {"significant": n}; of several, the widest counts.

    n: how many significant figures must be right; "target" for as many as the target shows. Raises ScoringError.
    """
    if not given:
        return Tolerance()
    if not isinstance(given, Mapping) or not set(given) <= {"absolute", "relative", "significant"}:
        raise ScoringError(
            "A 'tolerance' is a mapping with the keys 'absolute', 'relative' or 'significant', such as {relative: 0.01}."
        )
    return Tolerance(
        _amount(given.get("absolute")), _amount(given.get("relative")), _figures(given.get("significant"))
    )


def _figures(value: Any) -> int:
    if value is None or value == "target":
        return 0 if value is None else AS_TARGET
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 30:
        raise ScoringError(
            f"The tolerance 'significant' is a number of figures from 1 to 30, or 'target', not {value!r}."
        )
    return value


def _amount(value: Any) -> Decimal:
    try:
        amount = Decimal(str(value or 0))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount >= 0 or amount.is_infinite():
        raise ScoringError(f"A tolerance must be a number that is not negative, not {value!r}.")
    return amount


def agrees(found: Number, target: TargetNumber, tolerance: Tolerance) -> str:
    """By which rule a number is the target, "" where it is not."""
    if tolerance.significant == AS_TARGET:
        tolerance = tolerance._replace(significant=target.figures)
    with localcontext() as context:
        context.prec = 40
        for value in found.values:
            if rule := _value_agrees(value, found, target, tolerance):
                return rule
    return ""


def wrong_unit(found: Number, target: TargetNumber) -> bool:
    """Whether a number carries a unit that cannot be the target's."""
    if found.unit is None:
        return False
    if target.unit is None:
        return found.unit.dimensions == (("before_christ", 1),)
    return found.unit.dimensions != target.unit.dimensions and not _bare_degree(found.unit, target.unit)


def _bare_degree(found: Unit, target: Unit) -> bool:
    """ "24 degrees" is in the scale that was asked for."""
    return found.dimensions == (("degree", 1),) and target.dimensions in (
        (("temperature", 1),),
        (("angle", 1),),
    )


def _value_agrees(value: Decimal, found: Number, target: TargetNumber, tolerance: Tolerance) -> str:
    said, right = found.unit, target.unit
    if wrong_unit(found, target):
        return ""
    if right is None or said is None or _bare_degree(said, right):
        if tolerance.allows(value, target.value):
            return (
                "the same number"
                if value == target.value or tolerance == Tolerance()
                else "within the tolerance"
            )
        if right is None and said is not None and said.dimensions == _PERCENT:
            share = value * said.factor / 100  # "75%" where the target is 0.75
            if tolerance.allows(share, target.value):
                return "the same share, in percent"
        if right is not None and right.scale != 1 and tolerance.allows(value / right.scale, target.value):
            return "the same number, its magnitude written out"
        return ""
    converted = convert(value, said, right)
    if tolerance.allows(converted, target.value):
        return "the same quantity" if said == right else "the same quantity in another unit"
    if said.factor == right.factor and said.offset == right.offset:
        return ""
    if right.offset or said.offset:
        # A difference of temperatures converts without the offset; the question knows which is meant, both are accepted.
        difference = value * said.factor / right.factor
        if tolerance.allows(difference, target.value) and tolerance != Tolerance():
            return "the same temperature difference in another unit"
    return _rounds_to(value, found, target)


def _rounds_to(value: Decimal, found: Number, target: TargetNumber) -> str:
    """A converted number is right where it is the target rounded to the digits that it shows, three at least."""
    if found.unit is None or target.unit is None or found.compound:
        return ""
    exact = convert(target.value, target.unit, found.unit)
    if found.digits < max(_FEWEST_DIGITS, 1) or exact == 0:
        return ""
    step = Decimal(1).scaleb(-found.decimals)
    return (
        "the same quantity in another unit, rounded" if abs(exact - value) <= step / 2 * (1 + _SLACK) else ""
    )
