"""Whether a reply surely gives a target number, or another: value, unit, tolerance, and which of its numbers is the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.scorers.dates import find_dates
from evalwright.scorers.match import ARTICLES, FUNCTION, read
from evalwright.scorers.number import ABOUT as _ABOUT
from evalwright.scorers.number import MAGNITUDE, Number, find_numbers
from evalwright.scorers.text.cues import cues, last_revision
from evalwright.scorers.text.locate import Said
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.units import Unit, parse_unit, unit_after
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

_TOTAL = re.compile(
    r"=|\b(?:total|altogether|in all|sum|so|therefore|thus|hence|zusammen|insgesamt|also|ergibt|total|donc|tutto|totale|итого|всего|значит|razem|toplam|jadi|tổng)\b|合計|一共|共|总共|だから|따라서|모두",
    re.IGNORECASE,
)
_DATE_NEAR = re.compile(
    r"\b(?:in|since|by|until|from|en|im|seit|depuis|desde|nel|dal|em|sinds|в|w|sejak|pada tahun|năm|of|\()\s?$",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"(?m)^[ \t]{0,4}\d{1,2}[.)](?=\s)")
_MOST_UNKNOWN = 3
"""Words of a right number's sentence that are neither small ones nor the question's."""
_CLAUSE = re.compile(r"(?<!\d)[,;:.!?(—、，。；：]|[,;:.!?(—、，。；：](?!\d)|\n|\s[–-]\s")
_SENTENCE = re.compile(r"[.!?](?=\s)|[。！？\n]")
_PERCENT = (("percent", 1),)
_BUDDHIST = 543
"""Years of the Thai era count from 543 BC."""
_SLACK = Decimal("1e-9")
AS_TARGET = -1
"""A tolerance of as many significant figures as the target shows."""


class Tolerance(NamedTuple):
    """How far a number may be off: `absolute` in the target's unit, `relative` to the target, or right to so many figures."""

    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    significant: int = 0

    def allows(self, value: Decimal, target: Goal) -> bool:
        """Whether `value` is near enough to the target."""
        right = target.value
        if abs(value - right) <= abs(right) * Decimal("1e-20"):
            return True
        figures = target.figures if self.significant == AS_TARGET else self.significant
        if figures > 0 and right:
            unit = Decimal(1).scaleb(right.adjusted() - figures + 1)
            if abs(value - (right / unit).to_integral_value(ROUND_HALF_UP) * unit) <= unit / 2:
                return True
        allowed = max(self.absolute, self.relative * abs(right))
        return bool(allowed) and abs(value - right) <= allowed * (1 + _SLACK)


class Goal(NamedTuple):
    """A right number, its unit where it has one, and how many significant figures it shows."""

    value: Decimal
    unit: Unit | None
    figures: int
    year: bool
    scale: Decimal = Decimal(1)


def _shown(text: str, one: Number) -> str:
    return text[one.start : one.end].strip()


def read_tolerance(given: Mapping[str, Any] | None) -> Tolerance:
    """The tolerance of a sample: {"absolute": x}, {"relative": x}, {"significant": n}; of several, the widest counts.

    n: how many significant figures must be right; "target" for as many as the target shows. Raises ScoringError.
    """
    if not given:
        return Tolerance()
    if not isinstance(given, Mapping) or not set(given) <= {"absolute", "relative", "significant"}:
        raise ScoringError(
            "A 'tolerance' is a mapping with the keys 'absolute', 'relative' or 'significant', such as {relative: 0.01}."
        )
    figures = given.get("significant")
    if figures == "target":
        figures = AS_TARGET
    elif figures is not None and (
        isinstance(figures, bool) or not isinstance(figures, int) or not 1 <= figures <= 30
    ):
        raise ScoringError(
            f"The tolerance 'significant' is a number of figures from 1 to 30, or 'target', not {figures!r}."
        )
    return Tolerance(_amount(given.get("absolute")), _amount(given.get("relative")), figures or 0)


def _amount(value: Any) -> Decimal:
    try:
        amount = Decimal(str(value or 0))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount >= 0 or amount.is_infinite():
        raise ScoringError(f"A tolerance must be a number that is not negative, not {value!r}.")
    return amount


@lru_cache(maxsize=2048)
def goals_of(targets: tuple[str, ...], unit: str, question: str, language: str) -> tuple[Goal, ...]:
    """The targets as numbers, each in its own unit, the sample's or the one that the question asks for; empty where one is none."""
    out = []
    factor, asked = _asked_unit(unit, question)
    if asked is None:
        units = [
            one.unit
            for target in targets
            for one in find_numbers(plain(target).strip(), language)
            if one.unit
        ]
        asked = units[0] if units else None
    for target in targets:
        numbers = [one for one in find_numbers(plain(target).strip(), language) if not one.ordinal]
        if len(numbers) != 1 or numbers[0].bound:
            continue
        one = numbers[0]
        year = one.unit is None and one.value == int(one.value) and 1000 <= one.value <= 2100
        figures = len(str(one.value.normalize().as_tuple().digits).replace(", ", "")) - 2
        out.append(
            Goal(one.value * factor, one.unit or asked, max(figures, 1), year and asked is None, factor)
        )
    return tuple(out)


_ASKED = re.compile(
    r"\b(?:in|en|in the|how many|wie viele|combien d['e]|cuántos|cuántas|quanti|quante|quantos|hoeveel)\s*(?=((?:degrees\s)?[^\W\d_]+(?:[ /](?:per )?[^\W\d_]+){0,3}))",
    re.IGNORECASE,
)


def _asked_unit(unit: str, question: str) -> tuple[Decimal, Unit | None]:
    """The magnitude and the unit that a number without one has: the sample's `unit`, else the one in the question."""
    if unit:
        factor = Decimal(1)
        first, _, rest = unit.partition(" ")
        if first.casefold() in MAGNITUDE and len(first) > 1:
            factor, unit = Decimal(1).scaleb(MAGNITUDE[first.casefold()]), rest
        return factor, parse_unit(unit) if unit else None
    for found in _ASKED.finditer(question[:1000]):
        got = unit_after(" " + found[1], 0)
        if (
            got is not None
            and len(found[1].split()[0]) > 2
            and (got[0].dimensions != (("year", 1),) or found.group()[:3].casefold() == "how")
        ):
            return Decimal(1), got[0]
    return Decimal(1), None


# -- what of a reply is certain -----------------------------------------------------------------------------------------

NO_NUMBER = "no number that can be read"


class Numbers:
    """The target numbers of one sample, against which replies are judged."""

    def __init__(self, goals: Sequence[Goal], tolerance: Tolerance, question: str, language: str) -> None:
        self.goals = goals
        self.tolerance = tolerance
        self.language = language
        self.cues = cues(language)
        self.asked = {value for one in find_numbers(plain(question[:2000]), language) for value in one.values}
        self.words = frozenset(token[:5] for token in read(plain(question[:2000])).tokens)
        self.nouns = frozenset(token for token in self.words if len(token) > 3) - {
            token[:5] for token in FUNCTION
        }
        self.bounds = re.search(
            r"\b(?:at least|at most|minimum|maximum|limit|up to|more than|less than|how far|range)\b",
            question,
            re.IGNORECASE,
        )

    def judge(self, said: Said) -> Verdict:
        """What a reply is worth. It is not empty and does not decline."""
        text = said.text if len(_LIST_ITEM.findall(said.text)) < 2 else _LIST_ITEM.sub(" ", said.text)
        change = None if said.marked else last_revision(text)
        if change is not None and find_numbers(text[change[1] :], self.language):
            text = text[change[1] :]
        elif said.marked and said.after and last_revision(said.after):
            return undecided("a change of mind after the answer")
        numbers = self._answers(text)
        if not numbers:
            return undecided(NO_NUMBER)
        states = {one.start: self._state(one) for one in numbers}
        if len(set(states.values())) > 1 or (
            len({one.value for one in numbers}) > 1 and "right" not in states.values()
        ):
            place = self._place(text, said)
            chosen = [one for one in numbers if place is not None and place[0] <= one.start < place[1]]
            if len({one.value for one in chosen}) != 1:
                return undecided(f"several numbers, among them '{_shown(text, numbers[0])}'")
            if states[chosen[0].start] != "right" and "right" in states.values() and not said.marked:
                return undecided("the target number, and another that may be the answer")
            numbers = chosen
        return self._verdict(text, numbers, states[numbers[0].start])

    def _place(self, text: str, said: Said) -> tuple[int, int] | None:
        """Which stretch of a text with several numbers holds the answer: a total, bold, a short first clause, the question's noun."""
        if len(said.bold) == 1 and find_numbers(said.bold[0], self.language):
            start = text.rfind(said.bold[0])
            return (start, start + len(said.bold[0])) if start >= 0 else None
        edges = [0, *(edge for found in _CLAUSE.finditer(text) for edge in found.span()), len(text)]
        clauses = list(zip(edges[::2], edges[1::2], strict=True))
        numbered = [one for one in clauses if self._answers(text[slice(*one)])]
        totals = [one for one in numbered if _TOTAL.search(text[slice(*one)])]
        if totals and totals[-1] == numbered[-1]:
            equals = text.rfind("=", *totals[-1])
            return (max(equals, totals[-1][0]), totals[-1][1])
        nouns = [
            one
            for one in self._answers(text)
            if any(token[:5] in self.nouns for token in read(text[one.end : one.end + 30]).tokens[:2])
        ]
        if len({one.value for one in nouns}) == 1:
            return nouns[0].start, nouns[0].end
        first = numbered[0] if numbered else None
        if first is not None and (len(text[slice(*first)].split()) <= 4 or self.goals[0].year):
            return first
        ends = [0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]
        last = [one for one in pairwise(ends) if self._answers(text[slice(*one)])]
        return last[-1] if len(last) > 1 else None

    def _verdict(self, text: str, numbers: Sequence[Number], state: str) -> Verdict:
        """The verdict on one number of a text."""
        one = numbers[0]
        shown = f"'{_shown(text, one)}'"
        if re.search(r"≠|!=|\?", text) or (any(one.bound for one in numbers) and not self.bounds):
            return undecided(f"{shown} is a bound, a range or a question")
        around = fold(text[max(0, one.start - 16) : one.start].casefold()).split()
        after = text[one.end : one.end + 12].casefold()
        if (
            self.cues.denies(around, "".join(around)[-4:])
            or self.cues.denies(after.split()[:2], "")
            or (not text.isascii() and self.cues.denies(after.split(), after[:6]))
        ):
            alone = state == "right" and len(text.split()) <= 8 and self.cues.denies(around[-2:], "")
            return incorrect(f"{shown} is denied") if alone else undecided(f"a denial beside {shown}")
        start = max((found.end() for found in _CLAUSE.finditer(text, 0, one.start)), default=0)
        stop = next((found.start() for found in _CLAUSE.finditer(text, numbers[-1].end)), len(text))
        unknown = self._unknown(text[start:stop], numbers)
        alone = len({found.value for found in find_numbers(text, self.language)}) == 1
        if state == "right":  # a lone number, or one with its unit, needs no more
            most = len(text) if alone or one.unit is not None else _MOST_UNKNOWN
        elif one.word:
            most = 0
        else:
            most = _MOST_UNKNOWN if alone and one.unit is not None else 1
        if unknown > most:
            return undecided(f"{shown}, and words that may say what else it counts")
        if state == "right":
            return correct(f"{shown} is the target number")
        if state == "wrong":
            return incorrect(f"{shown} is another number")
        return undecided(f"{shown} may be the target, rounded or in another form")

    def _answers(self, text: str) -> list[Number]:
        """The numbers of a text that may be its answer: not years beside it, places in a row, nor those of the question."""
        numbers = find_numbers(text, self.language)
        if any(goal.year for goal in self.goals) and (dates := find_dates(Words(text))):
            years = {
                reading.year: (date.start, date.end)
                for date in dates
                for reading in date.readings
                if reading.year
            }
            if any(reading.month for date in dates for reading in date.readings):
                return [Number((Decimal(year),), *place) for year, place in years.items()]
        if (
            "=" in text
            and len([clause for clause in _CLAUSE.split(text) if "=" in clause]) == 1
            and any(one.start > text.rfind("=") for one in numbers)
        ):
            numbers = [one for one in numbers if one.start > text.rfind("=")]
        year = any(goal.year for goal in self.goals)
        plain_years = [
            one for one in numbers if not one.word and one.unit is None and 1000 <= one.value <= 2100
        ]
        numbers = plain_years if year and plain_years else numbers
        kept = [one for one in numbers if not one.ordinal and (year or not self._is_year(one, text))]
        rest = [one for one in kept if not set(one.values) & self.asked]
        kept = rest or kept or [one for one in numbers if not one.ordinal]
        digits = [one for one in kept if not one.word or one.value > 10]
        small = [one for one in kept if one.word and one.value <= 3]
        return digits if digits and len(small) + len(digits) == len(kept) and len(kept) > 1 else kept

    def _unknown(self, text: str, numbers: Sequence[Number]) -> int:
        """How many words beside the numbers are neither small ones nor the question's."""
        rest = text
        for one in reversed(find_numbers(text, self.language)):
            rest = f"{rest[: one.start]} {rest[one.end :]}"
        tokens = [token for token in read(rest).tokens if len(token) > 2 and token not in FUNCTION | ARTICLES]
        return sum(token[:5] not in self.words and not _ABOUT.fullmatch(token) for token in tokens)

    @staticmethod
    def _is_year(one: Number, text: str) -> bool:
        if (
            one.unit is not None
            or one.word
            or not 1000 <= one.value <= 2100
            or one.value != int(one.value)
            or one.end - one.start != 4
        ):
            return False
        return _DATE_NEAR.search(text[max(0, one.start - 12) : one.start]) is not None

    def _state(self, one: Number) -> str:
        """ "right", "wrong" or "unsure": a number with several readings, or one that may be rounded, is not sure."""
        with localcontext() as context:
            context.prec = 40
            states = {self._reading(value, one) for value in one.values}
        if "right" in states:
            return "right"
        return states.pop() if len(states) == 1 else "unsure"

    def _reading(self, value: Decimal, one: Number) -> str:
        best = "wrong"
        for goal in self.goals:
            state = self._against(value, one, goal)
            if state == "right":
                return state
            best = "unsure" if state == "unsure" else best
        return best

    def _against(self, value: Decimal, one: Number, goal: Goal) -> str:
        unit = one.unit
        if (
            unit is not None
            and unit.dimensions == (("angle", 1),)
            and goal.unit is not None
            and goal.unit.dimensions[0][0] in ("celsius", "fahrenheit")
        ):
            unit = None
        if unit is not None and goal.unit is None:
            return "right" if self.tolerance.allows(value, goal) else "unsure"
        if unit is None or goal.unit is None:
            if self.tolerance.allows(value, goal) or self.tolerance.allows(value * goal.scale, goal):
                return "right"
            return "unsure" if self._close(value, one, goal) else "wrong"
        converted = unit.of(value, goal.unit)
        if converted is None:
            return "wrong"
        if self.tolerance.allows(converted, goal):
            return "right"
        if unit.factor == goal.unit.factor and unit.dimensions == goal.unit.dimensions:
            return "unsure" if self._close(value, one, goal) else "wrong"
        back = goal.unit.of(goal.value, unit)
        if (
            back is not None
            and one.figures >= 3
            and abs(back - value) <= one.step * (1 + _SLACK) / (1 if one.figures > 3 else 2)
        ):
            return "right"
        close = back is not None and self._close(value, one, goal._replace(value=back))
        return (
            "unsure" if close or abs(converted - goal.value) <= abs(goal.value) * Decimal("0.1") else "wrong"
        )

    def _close(self, value: Decimal, one: Number, goal: Goal) -> bool:
        """Whether the number may be the target rounded, or be meant as about it."""
        gap = abs(value - goal.value)
        if not goal.value or value == goal.value:
            return False
        if one.about:
            return gap <= abs(goal.value) * Decimal("0.1")
        if goal.year and gap == _BUDDHIST:
            return True
        whole = value == int(value) and goal.value == int(goal.value)
        if (whole and abs(goal.value) < 100) or goal.year or gap > abs(goal.value) * Decimal("0.05"):
            return False
        figures = len(value.normalize().as_tuple().digits)
        unit = Decimal(1).scaleb(goal.value.adjusted() - figures + 1)
        return (goal.value / unit).to_integral_value(ROUND_HALF_UP) * unit == value
