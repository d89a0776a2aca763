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
from evalwright.scorers.assertion import unasserted
from evalwright.scorers.dates import Found, find_dates
from evalwright.scorers.numbers.agree import TargetNumber, Tolerance, agrees, wrong_unit
from evalwright.scorers.numbers.parse import Number, find_numbers
from evalwright.scorers.numbers.units import Unit, convert, target_unit
from evalwright.scorers.polarity import negated, taken_back
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Quote, Words
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.verdict import Verdict, correct, incorrect, not_attempted

NO_NUMBER = "no number in the answer"
_RANGE = re.compile(
    r"\s*(?:[-–—~]|to|until|till|through|or|/|or (?:maybe|perhaps|possibly|even))\s*", re.IGNORECASE
)
_AND = re.compile(r"\s*and\s*", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|from|either)\s*(?:[A-Za-z$€£]+ )?$", re.IGNORECASE)
_BOUND = re.compile(
    r"(?:\b|(?=[<>≤≥]))(?:(?:more|less|fewer|greater|higher|lower|larger|smaller) than|over|under|above|below|exceed(?:s|ing)?|beyond"
    r"|at least|at most|up to|upwards of|(?:minimum|maximum)(?: of)?|as (?:many|much|few|little) as|(?<!>)[<>≤≥]=?)\s*[$€£]?$",
    re.IGNORECASE,
)
_BOUND_OF_YEAR = re.compile(
    r"\b(?:before|after|prior to|later than|earlier than)\s*(?:the year )?$", re.IGNORECASE
)
_BOUND_AFTER = re.compile(
    r"\s?(?:\+(?!\s?[\d(])|(?:or|and) (?:more|less|fewer|above|over|below|under|higher|lower|up|later|earlier|older|younger)\b|plus\b"
    r"|at (?:least|most)\b|upwards\b)",
    re.IGNORECASE,
)
_UNEQUAL = re.compile(r"(≠|!=|=/=|<>)\s?$")
_EITHER_SIGN = re.compile(r"(±|\+/-|\+-)\s?$")
_RESULT = re.compile(r"[=≈]\s?[$€£]?$")
_OPERATOR_AFTER = re.compile(r"\s?(?:[+×÷]|\*(?!\*)|\s-(?=\s))\s?\d(?![^\n]{0,80}=)")
_OPERATOR_BEFORE = re.compile(r"\d\s?[+×÷]\s?$")
_NAME_AFTER = re.compile(r" (?:[A-Z][a-z]+)")
_BECAUSE = re.compile(r"\b(?:since|because)\b", re.IGNORECASE)
_CUE = re.compile(
    r"(?:=|≈|\b(?:answer|result|total|equals?|value)\b(?: is| was| are|:|：)?(?: about| approximately| exactly)?|(?:answer|total|result): )\s*[$€£]?$"
)
_NONE = re.compile(r" (?:none|nil|nobody|nothing|no \w+|there (?:is|are|were|was) no|not any|never) ")
_NONE_ALONE = re.compile(r" (?:none|nil|null|nobody|nothing) ")
_MULTIPLY = re.compile(r"[=≈]\s*[$€£]?$")
_HOW_MANY = re.compile(r"\bhow many ([^?,]{3,60})", re.IGNORECASE)
_AFTER_NOUN = word_set(
    "is are was were do does did has have had can could will would in of on at for to there with by the a"
)
_YEAR_BEFORE = re.compile(r"(?:\b(?:in|since|by|from|until|of|as of|year)\s|\()$", re.IGNORECASE)
_BOUND_ASKED = re.compile(
    r"\b(?:minimum|maximum|at least|at most|up to|limit|least|fewest|highest|lowest|before|after|more than|fewer than|less than|over)\b",
    re.IGNORECASE,
)
_YEAR_ASKED = re.compile(r"\b(?:year|when|since|date)\b", re.IGNORECASE)


class NumberTask(NamedTuple):
    """What is right: the distinct target numbers, whether they are years, and whether the target is itself a bound or an ordinal."""

    targets: tuple[TargetNumber, ...]
    year: bool
    bound: bool = False
    ordinal: bool = False


class _Question(NamedTuple):
    """What the question holds: its numbers (not candidates), the nouns that it counts, whether it asks for a year or a bound."""

    values: frozenset[Decimal]
    nouns: frozenset[str]
    asks_year: bool
    asks_bound: bool


@lru_cache(maxsize=2048)
def number_task(targets: tuple[str, ...], unit: str, language: str) -> NumberTask | None:
    """The target numbers; None where the canonical target is no number."""
    asked = target_unit(plain(unit))
    found: dict[tuple[Decimal, object], TargetNumber] = {}
    bound = ordinal = False
    for position, target in enumerate(targets):
        numbers = find_numbers(Words(plain(target)), language)
        if position == 0 and (not numbers or _is_range(target, numbers)):
            return None
        if not numbers:
            continue
        made = _target(numbers[0], asked)
        bound = bound or (position == 0 and _is_bound(target, numbers[0]))
        ordinal = ordinal or numbers[0].ordinal
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
    return NumberTask(kept, year, bound, ordinal)


def _is_range(target: str, numbers: list[Number]) -> bool:
    """Whether a target is two numbers, such as "5-10": then it is compared as written."""
    if len(numbers) < 2:
        return False
    between = plain(target)[max(numbers[0].end, numbers[0].unit_end) : numbers[1].start]
    return bool(between.strip()) and _RANGE.fullmatch(between.strip()) is not None


def _target(number: Number, asked: Unit | None) -> TargetNumber:
    """A target as a number of the unit asked for, or of its own where that is of another kind."""
    own = number.unit
    figures = number.digits
    if number.decimals == 0:
        shown = Decimal(number.value).normalize()
        figures = min(figures, len(shown.as_tuple().digits))
    if own is None or asked is None or own.dimensions != asked.dimensions:
        return TargetNumber(number.value, own or asked, figures)
    return TargetNumber(convert(number.value, own, asked), asked, figures)


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
    return _Question(
        frozenset(values),
        frozenset(nouns),
        _YEAR_ASKED.search(words.text) is not None,
        _BOUND_ASKED.search(words.text) is not None,
    )


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
        return _no_number(words, task, tolerance)
    chosen = _in_answer_position(words, numbers, task, asked)
    if denial := _not_given(words, chosen, question, language):
        better = [n for n in numbers if n.start > chosen.start and n.value not in asked.values]
        better = [n for n in better if not _not_given(words, n, question, language)]
        if not better:
            shown = _shown(words, chosen)
            return incorrect(f"{shown} is {denial}", shown)
        chosen = better[0]
    elif (marker := taken_back(words, _tokens_of(words, chosen))) and (
        later := [n for n in numbers if n.start > chosen.end]
    ):
        shown = _shown(words, chosen)
        if not _agreement(later[-1], task, tolerance):
            return incorrect(f"{shown} is taken back by {marker}", shown)
        chosen = later[-1]
    shown = _shown(words, chosen)
    occurrence = _tokens_of(words, chosen)
    rule = _agreement(chosen, task, tolerance)
    if not rule:
        if abstention := abstains(words):
            return not_attempted(f"gives no answer: {abstention}", abstention)
        if any(wrong_unit(chosen, target) for target in task.targets) and chosen.unit is not None:
            return incorrect(f"{shown} has another unit than the target", shown)
        return incorrect(f"{shown} is not the target", shown)
    if abstention := abstains_before(words, occurrence):
        return not_attempted(f"gives no answer: {abstention}", abstention)
    if chosen.ordinal and _is_only_ordinal(words.text, chosen, task, asked):
        return incorrect(f"{shown} is a place in an order, not a number of things", shown)
    if other := _range_or_choice(words.text, numbers, chosen):
        again = any(
            n is not chosen
            and n.value == chosen.value
            and _range_or_choice(words.text, numbers, n) is None
            and not _is_bound(words.text, n, task.year)
            for n in numbers
        )
        if not again and not _agreement(other, task, tolerance):
            return incorrect(f"{shown} is one end of a range or one of several candidates", shown)
    elif not (task.bound or asked.asks_bound) and _is_bound(words.text, chosen, task.year):
        return incorrect(f"{shown} is given as a bound, not as the number", shown)
    elif _in_expression(words.text, chosen):
        return incorrect(f"{shown} is a part of an expression that is not worked out", shown)
    return correct(f"{shown} is {rule}", shown)


def _shown(words: Words, number: Number) -> Quote:
    return words.quote_between(number.start, max(number.end, number.unit_end))


def _not_given(words: Words, number: Number, question: str, language: str) -> str:
    """Why a number is not given as the answer ("denied by 'not 5'"), "" where it is."""
    before = words.text[max(0, number.start - 6) : number.start]
    if (sign := _UNEQUAL.search(before)) is not None:
        return f"denied by '{sign.group(1)}'"
    if (sign := _EITHER_SIGN.search(before)) is not None:
        return "two numbers"
    if before.rstrip().endswith("√"):
        return "under a root"
    occurrence = _tokens_of(words, number)
    if denial := negated(words, occurrence, language):
        return f"denied by {denial}"
    return unasserted(words, occurrence, question, names=False)


def _is_bound(text: str, number: Number, year: bool = False) -> bool:
    before = text[max(0, number.start - 32) : number.start]
    if _BOUND.search(before) is not None or (year and _BOUND_OF_YEAR.search(before) is not None):
        return True
    return _BOUND_AFTER.match(text, max(number.end, number.unit_end)) is not None


def _is_only_ordinal(text: str, number: Number, task: NumberTask, asked: _Question) -> bool:
    """Whether an ordinal is asked for as a count ("how many"), as a year, or is a part of a name ("42nd Street")."""
    if task.ordinal:
        return False
    return bool(asked.nouns) or task.year or _NAME_AFTER.match(text, number.end) is not None


def _in_expression(text: str, number: Number) -> bool:
    """Whether a number is an operand ("8 + 256") and not what comes out."""
    if _RESULT.search(text[: number.start]) is not None:
        return False
    after = max(number.end, number.unit_end)
    return (
        _OPERATOR_AFTER.match(text, after) is not None
        or _OPERATOR_BEFORE.search(text[: number.start]) is not None
    )


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
        because = _BECAUSE.search(words.text, cued[0].end)
        reasoned = [n for n in cued if because is None or n.start < because.start()]
        return reasoned[-1]
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


_ADVERBS = {"once": 1, "twice": 2, "thrice": 3, "single": 1, "sole": 1}
_ROMAN = re.compile(r"(?=[IVXLC])(?:C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def _no_number(words: Words, task: NumberTask, tolerance: Tolerance) -> Verdict:
    abstention = abstains(words)
    if abstention and not _NONE_ALONE.fullmatch(words.joined):
        return not_attempted(f"gives no answer: {abstention}", abstention)
    if any(target.value == 0 for target in task.targets) and (found := _NONE.search(words.joined)):
        first = words.index(found.start())
        shown = words.quote(first, first + len(found.group().split()))
        return correct(f"{shown} is zero", shown)
    for index, token in enumerate(words.tokens[:40]):
        value = _ADVERBS.get(token)
        following = words.tokens[index + 1 : index + 2]
        if token == words.tokens[0] and len(words.tokens) == 1 and _ROMAN.fullmatch(words.cased[0]):
            value = _roman(words.cased[0])
        elif value is None or following == ["as"] or (token == "once" and following in (["upon"], ["again"])):
            continue
        shown = words.quote(index, index + 1)
        if any(tolerance.allows(Decimal(value), target.value) for target in task.targets):
            return correct(f"{shown} is the same number", shown)
        return incorrect(f"{shown} is not the target", shown)
    return incorrect(NO_NUMBER)


def _roman(text: str) -> int:
    values = [_ROMAN_VALUES[char] for char in text]
    return sum(-one if one < two else one for one, two in zip(values, [*values[1:], 0], strict=True))
