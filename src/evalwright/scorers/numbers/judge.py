"""Is the number in the answer position the target?

The answer position: of all numbers in the answer, those of the question, those inside dates and ordinals yield to others;
units that fit go first; a number that follows "is" or "=" at the end, or stands before the noun that the question counts,
goes before the first one. A number that is denied, a range, a bound ("more than 5") or one of several candidates is not it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.abstention import abstains, abstains_before
from evalwright.scorers.dates import Found, find_dates
from evalwright.scorers.numbers.agree import TargetNumber, Tolerance, agrees, wrong_unit
from evalwright.scorers.numbers.parse import Number, find_numbers
from evalwright.scorers.numbers.units import Unit, convert, target_unit
from evalwright.scorers.polarity import negated
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.verdict import Verdict, correct, incorrect, not_attempted

NO_NUMBER = "no number in the answer"
_RANGE = re.compile(
    r"\s*(?:[-–—~]|to|until|till|through|or|/|or (?:maybe|perhaps|possibly|even))\s*", re.IGNORECASE
)
_AND = re.compile(r"\s*and\s*", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|from|either)\s*(?:[A-Za-z$€£]+ )?$", re.IGNORECASE)
_BOUND = re.compile(
    r"\b(?:(?:more|less|fewer|greater|higher|lower|larger|smaller) than|over|under|above|below|exceed(?:s|ing)?|beyond)\s*[$€£]?$",
    re.IGNORECASE,
)
_CUE = re.compile(
    r"(?:=|≈|\b(?:answer|result|total|equals?|value)\b(?: is| was| are|:|：)?(?: about| approximately| exactly)?|(?:answer|total|result): )\s*[$€£]?$"
)
_NONE = re.compile(r" (?:none|nil|nobody|nothing|no \w+|there (?:is|are|were|was) no|not any|never) ")
_MULTIPLY = re.compile(r"[=≈]\s*[$€£]?$")
_HOW_MANY = re.compile(r"\bhow many ([^?,]{3,60})", re.IGNORECASE)
_AFTER_NOUN = word_set(
    "is are was were do does did has have had can could will would in of on at for to there with by the a"
)
_YEAR_BEFORE = re.compile(r"(?:\b(?:in|since|by|from|until|of|as of|year)\s|\()$", re.IGNORECASE)
_YEAR_ASKED = re.compile(r"\b(?:year|when|since|date)\b", re.IGNORECASE)


class NumberTask(NamedTuple):
    """What is right: the distinct target numbers, whether they are years, and the unit asked for."""

    targets: tuple[TargetNumber, ...]
    year: bool


class _Question(NamedTuple):
    """What the question holds: its numbers (not candidates), the nouns that it counts, whether it asks for a year."""

    values: frozenset[Decimal]
    nouns: frozenset[str]
    asks_year: bool


@lru_cache(maxsize=2048)
def number_task(targets: tuple[str, ...], unit: str, language: str) -> NumberTask | None:
    """The target numbers; None where the canonical target is no number."""
    asked = target_unit(plain(unit))
    found: dict[tuple[Decimal, object], TargetNumber] = {}
    for position, target in enumerate(targets):
        numbers = find_numbers(Words(plain(target)), language)
        if not numbers:
            if position == 0:
                return None
            continue
        made = _target(numbers[0], asked)
        found.setdefault((made.value, made.unit), made)
    if not found:
        return None
    kept = tuple(found.values())
    if asked is not None and any(target.unit == asked for target in kept):
        kept = tuple(target for target in kept if target.unit == asked)
    first = kept[0]
    year = (
        first.unit is None and first.value == first.value.to_integral_value() and 1000 <= first.value <= 2199
    )
    return NumberTask(kept, year)


def _target(number: Number, asked: Unit | None) -> TargetNumber:
    """A target as a number of the unit asked for, or of its own where that is of another kind."""
    own = number.unit
    if own is None or asked is None or own.dimensions != asked.dimensions:
        return TargetNumber(number.value, own or asked)
    return TargetNumber(convert(number.value, own, asked), asked)


@lru_cache(maxsize=2048)
def _question(text: str, language: str) -> _Question:
    words = Words(plain(text[:1000]))
    dates = find_dates(words, years=False)
    values = {value for number in find_numbers(words, language) for value in number.values}
    values |= {Decimal(reading.year) for date in dates for reading in date.readings if reading.year}
    counted = _HOW_MANY.search(words.text)
    nouns: list[str] = []
    for token in Words(counted.group(1)).tokens[:4] if counted else ():
        if token in _AFTER_NOUN:
            break
        nouns.append(token)
    return _Question(frozenset(values), frozenset(nouns), _YEAR_ASKED.search(words.text) is not None)


def judge_number(
    words: Words, task: NumberTask, tolerance: Tolerance, question: str, language: str = "en"
) -> Verdict:
    """Whether the number in the answer position is one of the targets."""
    asked = _question(question, language)
    dates = find_dates(words, years=False)
    numbers = find_numbers(words, language, [(date.start, date.end) for date in dates])
    if task.year:
        numbers = sorted([*numbers, *_years(dates)], key=lambda number: number.start)
    if not numbers:
        return _no_number(words, task)
    chosen = _in_answer_position(words, numbers, task, asked)
    shown = f"'{words.text[chosen.start : max(chosen.end, chosen.unit_end)]}'"
    rule = _agreement(chosen, task, tolerance)
    occurrence = _tokens_of(words, chosen)
    if denial := negated(words, occurrence, language):
        better = [n for n in numbers if n.start > chosen.start and n.value not in asked.values]
        better = [n for n in better if not negated(words, _tokens_of(words, n), language)]
        if not better:
            return incorrect(f"{shown} is denied by {denial}")
        chosen = better[0]
        shown = f"'{words.text[chosen.start : max(chosen.end, chosen.unit_end)]}'"
        rule = _agreement(chosen, task, tolerance)
        occurrence = _tokens_of(words, chosen)
    if not rule:
        if abstention := abstains(words):
            return not_attempted(f"gives no answer: {abstention}")
        if any(wrong_unit(chosen, target) for target in task.targets) and chosen.unit is not None:
            return incorrect(f"{shown} has another unit than the target")
        return incorrect(f"{shown} is not the target")
    if abstention := abstains_before(words, occurrence):
        return not_attempted(f"gives no answer: '{abstention}'")
    if other := _range_or_choice(words.text, numbers, chosen):
        if not _agreement(other, task, tolerance):
            return incorrect(f"{shown} is one end of a range or one of several candidates")
    elif _BOUND.search(words.text[max(0, chosen.start - 24) : chosen.start]) is not None:
        return incorrect(f"{shown} is given as a bound, not as the number")
    return correct(f"{shown} is {rule}")


def _agreement(number: Number, task: NumberTask, tolerance: Tolerance) -> str:
    for target in task.targets:
        if rule := agrees(number, target, tolerance):
            return rule
    return ""


def _years(dates: list[Found]) -> list[Number]:
    return [
        Number((Decimal(date.readings[0].year),), date.start, date.end, unit_end=date.end, digits=4)
        for date in dates
        if date.readings[0].year
    ]


def _in_answer_position(words: Words, numbers: list[Number], task: NumberTask, asked: _Question) -> Number:
    """The number that answers, by the rules at the top of this module."""
    if len(numbers) == 1:
        return numbers[0]
    kept = _unless_empty(numbers, [n for n in numbers if asked.values.isdisjoint(n.values)])
    if any(target.value in asked.values for target in task.targets):
        kept = numbers
    kept = _unless_empty(kept, [n for n in kept if not n.ordinal])
    if task.year or asked.asks_year:
        kept = _unless_empty(kept, [n for n in kept if n.unit is None and 1000 <= abs(n.value) <= 2199])
    else:
        kept = _unless_empty(kept, [n for n in kept if not _is_year_phrase(words.text, n)])
    fitting = [
        n for n in kept if n.unit is not None and not any(wrong_unit(n, target) for target in task.targets)
    ]
    if any(target.unit is not None for target in task.targets):
        kept = _unless_empty(kept, fitting)
        kept = _unless_empty(kept, [n for n in kept if n.unit is None or n in fitting])
    if len(kept) > 1 and (
        cued := [n for n in kept if _MULTIPLY.search(words.text[max(0, n.start - 6) : n.start])]
    ):
        return cued[-1]
    if len(kept) > 1 and (
        cued := [n for n in kept if _CUE.search(words.text[max(0, n.start - 40) : n.start])]
    ):
        return cued[0]
    if len(kept) > 1 and asked.nouns:
        for number in kept:
            last = _tokens_of(words, number)[1]
            if not asked.nouns.isdisjoint(words.tokens[last : last + 3]) and _same_clause(words, last):
                return number
    return kept[0]


def _is_year_phrase(text: str, number: Number) -> bool:
    """Whether a number is a year beside the answer: "in 2006", "(2006)"."""
    if (
        number.unit is not None
        or not 1000 <= number.value <= 2199
        or number.digits != 4
        or number.end - number.start != 4
    ):
        return False
    return _YEAR_BEFORE.search(text[max(0, number.start - 10) : number.start]) is not None


def _same_clause(words: Words, index: int) -> bool:
    return index < len(words.tokens) and not any(sign in ",;:.!?" for sign in words.gap(index))


def _unless_empty(before: list[Number], after: list[Number]) -> list[Number]:
    return after or before


def _tokens_of(words: Words, number: Number) -> tuple[int, int]:
    starts = [start for start, _ in words.spans]
    first = max(0, bisect_right(starts, number.start) - 1)
    last = bisect_right(starts, max(number.start, number.end - 1))
    return first, max(last, first + 1)


def _range_or_choice(text: str, numbers: list[Number], chosen: Number) -> Number | None:
    """The number that forms a range or a choice with the chosen one: "5-10", "5 to 10", "5 or 6", "between 5 and 10"."""
    place = numbers.index(chosen)
    for left, right in ((place - 1, place), (place, place + 1)):
        if left < 0 or right >= len(numbers):
            continue
        one, two = numbers[left], numbers[right]
        other = two if one is chosen else one
        for end in {one.end, one.unit_end}:
            gap = text[end : two.start].strip()
            if _RANGE.fullmatch(gap) is not None and gap:
                return other
            if (
                _AND.fullmatch(gap) is not None
                and _BETWEEN.search(text[max(0, one.start - 16) : one.start]) is not None
            ):
                return other
    return None


def _no_number(words: Words, task: NumberTask) -> Verdict:
    if (
        any(target.value == 0 for target in task.targets)
        and (found := _NONE.search(words.joined)) is not None
    ):
        return correct(f"'{found.group().strip()}' is zero")
    if abstention := abstains(words):
        return not_attempted(f"gives no answer: {abstention}")
    return incorrect(NO_NUMBER)
