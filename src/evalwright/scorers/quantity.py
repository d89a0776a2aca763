"""Whether a reply surely gives a target number, or another: value, unit, tolerance, and which of its numbers is the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, Literal, NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.scorers.dates import find_dates
from evalwright.scorers.match import ARTICLES, FUNCTION, read
from evalwright.scorers.number import ABOUT, MAGNITUDE, Number, find_numbers
from evalwright.scorers.text.cues import cues, last_revision
from evalwright.scorers.text.locate import Said
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.units import PERCENT, Unit, parse_unit, unit_after
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

_CONCLUDES = re.compile(
    r"=|\b(?:total|altogether|in all|sum|so|therefore|thus|hence|the real|actually|in fact|today|now|zusammen|insgesamt|also|ergibt|heute|jetzt|donc|"
    r"aujourd'hui|tutto|totale|oggi|hoy|hoje|total|итого|всего|значит|сейчас|razem|dziś|obecnie|toplam|jadi|tổng)\b|合計|一共|共|总共|现在|だから|따라서|모두",
    re.IGNORECASE,
)
_YEAR_BEFORE = re.compile(
    r"\b(?:in|since|by|until|from|en|im|seit|depuis|desde|nel|dal|em|sinds|в|w|sejak|pada tahun|năm|of|\()\s?$",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"(?m)^[ \t]{0,4}\d{1,2}[.)](?=\s)")
_CLAUSE = re.compile(r"(?<!\d)[,;:.!?(—、，。；：]|[,;:.!?(—、，。；：](?!\d)|\n|\s[–-]\s")
_SENTENCE = re.compile(r"[.!?](?=\s)|[。！？\n]")
_ASKED = re.compile(
    r"(?:\b(?:in|en|em|how many|wie viele|combien d['e]|cuánt[oa]s|quant[ieao]s?|hoeveel|сколько|скільки|ile|kaç|berapa|bao nhiêu|mấy|kitne)\s|多少|几|何|몇 ?|กี่|कितने |كم )"
    r"\s*(?=((?:degrees\s)?[°\w][^\W\d]*(?:[ /](?:per )?[^\W\d_]+){0,3}))",
    re.IGNORECASE,
)
_SHARE_ASKED = re.compile(
    r"percent|per cent|prozent|pourcent|por ?cent|procent|процент|persen|phần trăm|yüzde|百分之|퍼센트|パーセント|%",
    re.IGNORECASE,
)
_BOUND_ASKED = re.compile(
    r"\b(?:at least|at most|minimum|maximum|limit|up to|more than|less than|how far|range)\b", re.IGNORECASE
)
_LOWEST_ASKED = re.compile(r"simplif|reduce|lowest|kürze|vereinfach|irreduc", re.IGNORECASE)
_MEASURES = {
    "percent",
    "length",
    "mass",
    "volume",
    "temperature",
    "celsius",
    "fahrenheit",
    "speed",
    "energy",
    "power",
}
"""What is measured and not counted, so that a round number may be a rounded one."""
_MOST_UNKNOWN = 3
"""Words of a number's sentence that are neither small ones nor the question's."""
_BUDDHIST = 543
"""Years of the Thai era count from 543 BC."""
_SLACK = Decimal("1e-9")
AS_TARGET = -1
"""A tolerance of as many significant figures as the target shows."""
NO_NUMBER = "no number that can be read"
State = Literal["right", "wrong", "unsure"]


class Goal(NamedTuple):
    """A right number, its unit where it has one, how many significant figures it shows; the unit's magnitude; whether it is a fraction."""

    value: Decimal
    unit: Unit | None
    figures: int
    year: bool
    scale: Decimal = Decimal(1)
    fraction: bool = False


class Tolerance(NamedTuple):
    """How far a number may be off: `absolute` in the target's unit, `relative` to the target, or right to so many figures."""

    absolute: Decimal = Decimal(0)
    relative: Decimal = Decimal(0)
    significant: int = 0

    def allows(self, value: Decimal, target: Goal) -> bool:
        """Whether `value` is near enough to the target."""
        gap, size = abs(value - target.value), abs(target.value)
        figures = target.figures if self.significant == AS_TARGET else self.significant
        if figures > 0 and size:
            step = Decimal(1).scaleb(target.value.adjusted() - figures + 1)
            if abs(value - _rounded(target.value, figures)) <= step / 2:
                return True
        return gap <= max(max(self.absolute, self.relative * size) * (1 + _SLACK), size * Decimal("1e-20"))


def _rounded(value: Decimal, figures: int) -> Decimal:
    step = Decimal(1).scaleb(value.adjusted() - figures + 1)
    return (value / step).to_integral_value(ROUND_HALF_UP) * step


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
    elif figures is not None and (type(figures) is not int or not 1 <= figures <= 30):
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
    found = [(target, find_numbers(plain(target).strip(), language)) for target in targets]
    factor, asked = _asked_unit(unit, question)
    asked = asked or next((one.unit for _, numbers in found for one in numbers if one.unit), None)
    out = []
    for target, numbers in found:
        numbers = [one for one in numbers if not one.ordinal]
        if len(numbers) != 1 or numbers[0].bound:
            continue
        one = numbers[0]
        whole = one.value == int(one.value)
        year = whole and one.unit is None and asked is None and 1000 <= one.value <= 2100
        figures = len(one.value.normalize().as_tuple().digits)
        out.append(Goal(one.value * factor, one.unit or asked, figures, year, factor, "/" in target))
    return tuple(out)


def _asked_unit(unit: str, question: str) -> tuple[Decimal, Unit | None]:
    """The magnitude and the unit that a number without one has: the sample's `unit`, else the one in the question."""
    if unit:
        first, _, rest = unit.partition(" ")
        power = MAGNITUDE.get(first.casefold(), 0) if len(first) > 1 else 0
        unit = rest if power else unit
        return Decimal(1).scaleb(power), parse_unit(unit) if unit else None
    for found in _ASKED.finditer(question[:1000]):
        got = unit_after(" " + found[1], 0)
        word = found[1].split()[0]
        years = got is not None and got[0].dimensions == (("year", 1),)
        if (
            got is not None
            and (len(word) > 2 or not word.isascii())
            and not (years and found.group()[:2].casefold() in ("in", "en", "em"))
        ):
            return Decimal(1), got[0]
    return Decimal(1), parse_unit("%") if _SHARE_ASKED.search(question[:1000]) else None


class Numbers:
    """The target numbers of one sample, against which replies are judged."""

    def __init__(self, goals: Sequence[Goal], tolerance: Tolerance, question: str, language: str) -> None:
        asked = plain(question[:2000])
        self.goals, self.tolerance, self.question, self.language = goals, tolerance, asked, language
        self.cues = cues(language)
        self.year = any(goal.year for goal in goals)
        self.rough = ABOUT.search(question.rstrip(" ?")) or len({goal.value for goal in goals}) > 1
        self.asked = {value for one in find_numbers(asked, language) for value in one.values}
        self.words = frozenset(token[:5] for token in read(asked).tokens)
        self.nouns = {token for token in self.words if len(token) > 3} - {token[:5] for token in FUNCTION}

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
        values = {one.value for one in numbers}
        if len(set(states.values())) > 1 or (len(values) > 1 and "right" not in states.values()):
            place = self._place(text, said, numbers)
            chosen = [one for one in numbers if place is not None and place[0] <= one.start < place[1]]
            if len({one.value for one in chosen}) != 1:
                return undecided(f"several numbers, among them '{_shown(text, numbers[0])}'")
            if states[chosen[0].start] != "right" and not said.marked:
                if "right" in states.values():
                    return undecided("the target number, and another that may be the answer")
                if any(
                    self._state(Number((value,), 0, 0)) == "right" for value in (sum(values), prod(values))
                ):
                    return undecided("numbers that come to the target")
            numbers = chosen
        return self._verdict(text, numbers, states[numbers[0].start])

    # -- which number is the answer -------------------------------------------------------------------------------------

    def _answers(self, text: str) -> list[Number]:
        """The numbers of a text that may be its answer: not years beside it, the question's, or what an equation starts from."""
        if self.year and (dates := find_dates(Words(text))):
            readings = [(reading, date) for date in dates for reading in date.readings]
            if any(reading.month for reading, _ in readings):
                years = {reading.year: date for reading, date in readings if reading.year}
                return [Number((Decimal(year),), date.start, date.end) for year, date in years.items()]
        numbers = [one for one in find_numbers(text, self.language) if not one.ordinal]
        equal = text.rfind("=")
        if sum("=" in clause for clause in _CLAUSE.split(text)) == 1 and any(
            one.start > equal for one in numbers
        ):
            numbers = [one for one in numbers if one.start > equal]
        years_only = [one for one in numbers if _looks_like_year(one)]
        if self.year:
            numbers = years_only or numbers
        else:
            other = [one for one in numbers if one not in years_only]
            near = any(1000 <= goal.value <= 2100 for goal in self.goals)
            dated = [
                one for one in years_only if _YEAR_BEFORE.search(text[max(0, one.start - 12) : one.start])
            ]
            numbers = (other if not near else [one for one in numbers if one not in dated]) or numbers
        numbers = [one for one in numbers if not set(one.values) & self.asked] or numbers
        digits = [one for one in numbers if not one.word or one.value > 10]
        if digits and all(one in digits or one.value <= 3 for one in numbers):
            numbers = digits  # "one", "two" beside digits are articles and the like
        return [
            one
            for place, one in enumerate(numbers)
            if not any(_restates(one, other) for other in numbers[:place])
        ]

    def _place(self, text: str, said: Said, numbers: Sequence[Number]) -> tuple[int, int] | None:
        """Which stretch of a text with several numbers holds the answer: bold, a conclusion, a first clause, what counts the asked."""

        def holds(start: int, end: int) -> bool:
            return any(start <= one.start < end for one in numbers)

        if (
            len(said.bold) == 1
            and (start := text.rfind(said.bold[0])) >= 0
            and holds(start, start + len(said.bold[0]))
        ):
            return start, start + len(said.bold[0])
        edges = [0, *(edge for found in _CLAUSE.finditer(text) for edge in found.span()), len(text)]
        clauses = [one for one in zip(edges[::2], edges[1::2], strict=True) if holds(*one)]
        if not clauses:
            return None
        first, last = clauses[0], clauses[-1]
        if _CONCLUDES.search(text[slice(*last)]):
            return max(text.rfind("=", *last), last[0]), last[1]
        counted = {one.start: self._counts(text, one) for one in numbers}
        if len(text[slice(*first)].split()) <= 2 and first[0] == 0:
            return first
        for most in (1, 2):
            asked = [one for one in numbers if 0 < counted[one.start] <= most]
            if len({one.value for one in asked}) == 1:
                return asked[0].start, asked[0].end
            if asked:
                return None
        if len(text[slice(*first)].split()) <= 4 or self.year:
            return first
        ends = [0, *(found.end() for found in _SENTENCE.finditer(text)), len(text)]
        sentences = [one for one in pairwise(ends) if holds(*one)]
        return sentences[-1] if len(sentences) > 1 else None

    def _counts(self, text: str, one: Number) -> int:
        """Which word after a number is one of the question's, 1 or 2; 0 for none."""
        after = _CLAUSE.split(text[one.end : one.end + 40])[0]
        tokens = [token for token in read(after).tokens if token not in FUNCTION][:2]
        return next((place for place, token in enumerate(tokens, 1) if token[:5] in self.nouns), 0)

    def _verdict(self, text: str, numbers: Sequence[Number], state: State) -> Verdict:
        """The verdict on one number of a text."""
        one = numbers[0]
        shown = f"'{_shown(text, one)}'"
        if re.search(r"≠|!=|\?", text) or (
            any(one.bound for one in numbers) and not _BOUND_ASKED.search(self.question)
        ):
            return undecided(f"{shown} is a bound, a range or a question")
        before = fold(text[max(0, one.start - 16) : one.start].casefold()).split()
        after = text[one.end : one.end + 16].casefold()
        signs = "".join(before)[-4:], "" if text.isascii() else after[:6]
        if self.cues.denies(before, signs[0]) or self.cues.denies(after.split()[:3], signs[1]):
            alone = state == "right" and len(text.split()) <= 8 and self.cues.denies(before[-2:], "")
            return incorrect(f"{shown} is denied") if alone else undecided(f"a denial beside {shown}")
        if state == "unsure":
            return undecided(f"{shown} may be the target, rounded or in another form")
        start = max((found.end() for found in _CLAUSE.finditer(text, 0, one.start)), default=0)
        stop = next((found.start() for found in _CLAUSE.finditer(text, numbers[-1].end)), len(text))
        unknown = self._unknown(text[start:stop])
        alone = len({found.value for found in find_numbers(text, self.language)}) == 1
        if state == "right":  # a lone number, or one with its unit, needs no more
            most = len(text) if alone or one.unit is not None else _MOST_UNKNOWN
        else:
            most = (
                0 if one.word and one.unit is None else _MOST_UNKNOWN if alone and one.unit is not None else 1
            )
        if unknown > most or (state == "right" and self._counts(text, one) == 2 and one.unit is None):
            return undecided(f"{shown}, and words that may say what else it counts")
        return (
            correct(f"{shown} is the target number")
            if state == "right"
            else incorrect(f"{shown} is another number")
        )

    def _unknown(self, text: str) -> int:
        """How many words beside the numbers are neither small ones nor the question's."""
        for one in reversed(find_numbers(text, self.language)):
            text = f"{text[: one.start]} {text[one.end :]}"
        tokens = [token for token in read(text).tokens if len(token) > 2 and token not in FUNCTION | ARTICLES]
        return sum(token[:5] not in self.words and not ABOUT.fullmatch(token) for token in tokens)

    # -- whether a number is a target -----------------------------------------------------------------------------------

    def _state(self, one: Number) -> State:
        """ "unsure": a number with several readings, or one that may be rounded or in another form."""
        with localcontext() as context:
            context.prec = 40
            states = [self._against(value, one, goal) for value in one.values for goal in self.goals]
            if "right" in states:
                return "right"
            by_value = [states[place :: len(self.goals)] for place in range(len(self.goals))]
        return "unsure" if "unsure" in states or not by_value else "wrong"

    def _against(self, value: Decimal, one: Number, goal: Goal) -> State:
        unit = one.unit
        if (
            unit
            and unit.dimensions == (("angle", 1),)
            and goal.unit
            and goal.unit.dimensions[0][0] in ("celsius", "fahrenheit")
        ):
            unit = None  # "100 degrees"
        if unit == goal.unit or unit is None or goal.unit is None:
            if self.tolerance.allows(value, goal) or (
                unit is None and self.tolerance.allows(value * goal.scale, goal)
            ):
                return "right"
            if unit != goal.unit and self._in_another_form(value, unit, goal):
                exact = goal.fraction and self.tolerance.allows(value / 100, goal)
                return "right" if exact else "unsure"
            return self._near(value, one, goal)
        converted, back = unit.of(value, goal.unit), goal.unit.of(goal.value, unit)
        if converted is None or back is None:
            return "wrong"
        if self.tolerance.allows(converted, goal) or abs(converted - goal.value) <= abs(goal.value) * Decimal(
            "1e-15"
        ):
            return "right"
        same = goal._replace(value=back)
        if one.figures >= 3 and abs(back - value) <= one.step * (1 + _SLACK) / (1 if one.figures > 3 else 2):
            return "right"
        near = self._near(value, one, same)
        far = (
            abs(converted - goal.value) > abs(goal.value) * Decimal("0.1") or unit.factor == goal.unit.factor
        )
        return near if near != "wrong" or far else "unsure"

    def _in_another_form(self, value: Decimal, unit: Unit | None, goal: Goal) -> bool:
        """Whether one of two numbers may have a unit that the other leaves out: percent and share, metres and an unnamed unit."""
        if unit is None:
            return (
                goal.unit is not None
                and goal.unit.dimensions == PERCENT
                and self.tolerance.allows(value * 100, goal)
            )
        return any(
            self.tolerance.allows(value / ratio, goal)
            for ratio in (*unit.ratios(), *([Decimal(100)] if unit.dimensions == PERCENT else []))
        )

    def _near(self, value: Decimal, one: Number, goal: Goal) -> State:
        """Whether the number may be the target rounded, or be meant as about it."""
        gap, size = abs(value - goal.value), abs(goal.value)
        if not size or (goal.year and gap == _BUDDHIST):
            return "unsure" if goal.year else "wrong"
        if value == -goal.value:
            return "unsure" if one.figures > 2 else "wrong"
        off = gap / size
        figures = len(value.normalize().as_tuple().digits)
        whole = value == int(value) and goal.value == int(goal.value)
        counted = whole and size < 100 and (goal.unit is None or goal.unit.dimensions[0][0] not in _MEASURES)
        rounded = not goal.year and _rounded(goal.value, figures) == value
        if (
            one.about
            and rounded
            and (figures >= 3 or (self.rough and figures == 2))
            and off <= Decimal("0.01")
        ):
            return "right"
        if rounded and figures >= 4 and off <= Decimal("0.0005") and not (whole and size < 10**6):
            return "right"
        if one.about and not goal.year:
            return "unsure" if off <= Decimal("0.1") else "wrong"
        return "unsure" if rounded and not counted and off <= Decimal("0.05") else "wrong"


def _shown(text: str, one: Number) -> str:
    return text[one.start : one.end].strip()


def _looks_like_year(one: Number) -> bool:
    plain_year = one.unit is None or one.unit.dimensions == (("year", 1),)
    return (
        not one.word
        and plain_year
        and 1000 <= one.value <= 2100
        and one.value == int(one.value)
        and one.figures == 4
    )


def _restates(one: Number, other: Number) -> bool:
    """Whether a number says an earlier one again, in another unit or form."""
    if set(one.values) & set(other.values):
        return one.unit == other.unit or len(one.values) > 1
    if one.unit is not None and one.unit.dimensions == PERCENT and other.unit is None:
        return one.value == other.value * 100
    value = (
        one.unit.of(one.value, other.unit)
        if one.unit and other.unit
        else one.value
        if one.unit is other.unit
        else None
    )
    close = (
        value is not None and other.value and abs(value - other.value) <= abs(other.value) * Decimal("0.006")
    )
    return bool(close and (one.unit != other.unit or one.about or one.figures <= 3 < other.figures))
