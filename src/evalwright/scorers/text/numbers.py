"""Numbers in a text, in digits and words, with their units.

It reads digits of any script with the separators of every convention ("1,234.5", "1.234,5", "1
234", "12,34,567"), signs, fractions, powers of ten, magnitudes ("1.5 million", "3万", "5 lakh"),
number words (`number_words.py`) and units (`units.py`). A number that can be read in two ways has
both readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import lru_cache
from math import prod

from evalwright.core.lazy import lazy_pattern
from evalwright.scorers.text.number_words import find_number_words
from evalwright.scorers.text.tokens import word_set
from evalwright.scorers.text.units import (
    ORDINALS,
    PERCENT,
    Unit,
    counter_after,
    number_table,
    parse_unit,
    unit_after,
)

_DIGITS = lazy_pattern(
    r"(?<![A-Za-zÀ-ɏЀ-ӿ\d_.,/^√])(?<!\^[-−])"
    r"(?:(?P<spaced>\d{1,3}(?:["
    r" '_]\d{3}){1,6}(?![\d'_])(?:[.,]\d{1,20}(?!\d))?)|\d{1,40}(?:[.,_']\d{1,40}){0,12}"
    r"|\.\d{1,30})"
)
_CURRENCY = lazy_pattern(r"(?<![^\W_])(?:Rp|RM|Rs|Tsh|Ksh|TSh|KSh)\.? ?(?=\d)")
"""Currencies whose letters are written together with the digits."""
_POWER = lazy_pattern(
    r"\s?[×x*·]\s?10\s?(?:\^|\*\*)\s?\(?([-+−]?\d{1,3})\)?|[eE]([-+]?\d{1,3})(?![\w.])"
)
_OF_TEN = lazy_pattern(r"\s?(?:\^|\*\*)\s?\(?([-+−]?\d{1,3})\)?")
_FRACTION = lazy_pattern(
    r"\s?/\s?([1-9]\d{0,5})(?![\d.,]*\d|[A-Za-zÀ-ӿ_]|/)|分の([1-9]\d{0,3})|분의"
    r" ?([1-9]\d{0,3})"
)
_MIXED = lazy_pattern(r"[ ](\d{1,3})\s?/\s?([1-9]\d{0,3})(?![\d/])")
_MIXED_KOREAN = lazy_pattern(r"[와과] ?([1-9]\d{0,3})분의 ?([1-9]\d{0,3})(?!\d)")
_ORDINAL = lazy_pattern(r"(?:st|nd|rd|th|º|ª|er|ème|-м|-й|-го)(?!\w)")
_UNCERTAINTY = lazy_pattern(r"\s?±\s?\d{1,9}(?:[.,]\d{1,9})?(?!\d)")
_NO_NUMBER = lazy_pattern(r"√|[A-Z][A-Z0-9](?![a-z])|[A-Z]\d|\s?/\s?0(?![\d.])")
"""Text after digits that makes them part of something else ("3D5", "KM3NeT", "1/0")."""
_MINUS = lazy_pattern(
    r"(?:^|[\s(=:≈~,])[-−]\s?$|(?:\b(?:minus|negative|moins|menos|meno|min|âm|минус)|负|零下|氷点下"
    r"|マイナス|영하|ลบ)\s?$",
    re.IGNORECASE,
)
_BELOW_ZERO = lazy_pattern(
    r"\s?(?:below (?:zero|freezing)|unter null|sous zéro|bajo cero|sotto zero|abaixo de"
    r" zero)",
    re.IGNORECASE,
)
MAGNITUDES = {
    word: int(power)
    for power, words in number_table("magnitudes").items()
    for word in words.split()
}
_MAGNITUDE_WORD = lazy_pattern(
    r"[ -]?([^\W\d_](?:[^\W\d_]|[\u0900-\u0dff\u0e00-\u0eff]){0,12})"
)
_PLACES = {
    char: 10**power
    for power, chars in {
        1: "十십",
        2: "百백",
        3: "千천",
        4: "万萬만",
        8: "亿億억",
        12: "兆조",
    }.items()
    for char in chars
}
_MYRIADS = lazy_pattern(
    r" ?(?:[百백]?[万萬만亿億억兆조]|[천千](?:(?![가-힣米克瓦])|(?=원|명|톤|달러))"
    r"|[천千百백][万萬만亿億억])(?:"
    r" ?\d{1,4}(?:,\d{3})? ?[十십百백千천]?[万萬만亿億억]?(?![\d.]))*"
)
_MYRIAD_STEP = lazy_pattern(r" ?(\d[\d,]*)? ?([十십百백千천]*)([万萬만亿億억兆조]?)")
_ABBREVIATED = word_set("mio mrd mln тыс млн млрд tys")
_DECIMAL_COMMA = word_set(
    "de es fr it pt nl id vi tr pl ru uk sv da no nb fi cs sk el ro hu bg sr hr sl ca"
)
_MONEY = lazy_pattern(r"(?:[$€£]|(?<!\w)(?:usd|eur|gbp))\s?$", re.IGNORECASE)
_PAIRS = lazy_pattern(
    r"\s?(?:pairs?|couples?|paare?|paires?|pares|paia|пар)(?!\w)", re.IGNORECASE
)
_BESIDE = {
    name: f"(?:{'|'.join(lines)})" for name, lines in number_table("beside").items()
}
_RANGE = lazy_pattern(rf"\s?{_BESIDE['range']}\s?[$€£]?|\s?±\s?", re.IGNORECASE)
_COUNTED_RANGE = lazy_pattern(
    r"[-–~～]|또는|아니면|혹은|이?나|または|もしくは|か|或者?|还是|至|到|から"
)
"""Text between two numbers that makes them a range although the first has its counter.

"5개에서 2개" is not a range: it takes two from five.
"""
_BOUND = lazy_pattern(
    rf"(?:(?<!\w)(?=\w)|(?=\W)|(?=[\u0e00-\uffff])){_BESIDE['bound']}\s?[$€£~]?$",
    re.IGNORECASE,
)
_BOUND_AFTER = lazy_pattern(rf"\s?{_BESIDE['bound_after']}|:\d", re.IGNORECASE)
ABOUT = lazy_pattern(
    rf"(?:(?<!\w)(?=\w)|(?=\W)|(?=[\u0e00-\uffff])){_BESIDE['about']}(?: the|"
    r" of)?\s?[$€£]?$",
    re.IGNORECASE,
)
_ABOUT_AFTER = lazy_pattern(rf"\s?{_BESIDE['about_after']}", re.IGNORECASE)
_JOINS = lazy_pattern(r",? (?:and |und |et |y |e )?|\s?")
_POINTS = lazy_pattern(
    r"\s?(?:포인트|ポイント|个百分点|p(?![A-Za-z])|points?(?![a-z]))", re.IGNORECASE
)
_PERCENTAGE_POINT = Unit(Decimal(1), (("percentage_point", 1),))
_DAYS_IN_WORDS = {
    "이틀": 2,
    "사흘": 3,
    "나흘": 4,
    "닷새": 5,
    "엿새": 6,
    "여드레": 8,
    "아흐레": 9,
    "열흘": 10,
    "보름": 15,
}
"""Korean words for a number of days; not "하루", which is also "a day" as in "twice a day"."""
_DAYS = lazy_pattern(rf"(?<![가-힣])({'|'.join(_DAYS_IN_WORDS)})(?!달)")
_HALF = lazy_pattern(r"\s?(?:반(?![가-힣])|반(?=입니다|이다|이에요)|半)")
_HALVED = ((("time", 1),), (("year", 1),))
_PI = Decimal("3.14159265358979323846264338327950288")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Args:
        values: its readings, the likeliest first.
        start: where it starts.
        end: where it ends, with its unit.
        unit: its unit, if it has one.
        step: the value of one unit in its last digit.
        figures: its significant figures.
        ordinal: whether it is an ordinal such as "5th".
        word: whether it is written in words.
        approximate: whether the text calls it approximate ("about").
        bound: whether it is a limit ("at least") or one end of a range.
    """

    values: tuple[Decimal, ...]
    start: int
    end: int
    unit: Unit | None = None
    step: Decimal = Decimal(1)
    figures: int = 0
    ordinal: bool = False
    word: bool = False
    approximate: bool = False
    bound: bool = False

    @property
    def value(self) -> Decimal:
        """The likeliest reading."""
        return self.values[0]


@lru_cache(maxsize=256)
def find_numbers(text: str, language: str = "en") -> tuple[Number, ...]:
    """Find the numbers of a plain text, in order, at most 200 in digits."""
    numbers: list[Number] = []
    text = _CURRENCY.sub(lambda match: " " * len(match.group()), text)
    for match in _DIGITS.finditer(text):
        if numbers and match.start() < numbers[-1].end:
            continue
        if (number := _read_digits(match, text, language)) is not None:
            numbers.append(number)
        if len(numbers) == 200:
            break
    spans_in_digits = [(number.start, number.end) for number in numbers]
    for value, start, end, cut in find_number_words(text, language):
        if any(first < end and start < last for first, last in spans_in_digits) or (
            value == 1 and re.match(r" (?:of|or|another)\b", text[end:])
        ):
            continue
        if value == 0 and text[end:].startswith(" phải"):  # "không phải" is "not"
            continue
        figures = len(str(value.normalize().as_tuple().digits)) // 3
        numbers.append(
            _with_unit(
                Number((value,), start, end, figures=figures, word=True, bound=cut),
                text,
                language,
            )
        )
    numbers += _days_in_words(text)
    return tuple(
        _with_context(
            _join_neighbours(sorted(numbers, key=lambda number: number.start), text),
            text,
        )
    )


def _days_in_words(text: str) -> Iterator[Number]:
    """Find Korean numbers of days that are one word: "사흘"."""
    if text.isascii():
        return
    for word in _DAYS.finditer(text):
        days = Decimal(_DAYS_IN_WORDS[word[1]])
        yield Number((days,), *word.span(), unit=parse_unit("日"), figures=1, word=True)


def _read_digits(match: re.Match[str], text: str, language: str) -> Number | None:
    written = match.group()
    start = match.start()
    end = match.end()
    values = _possible_values(written, match["spaced"] is not None, language)
    decade = text[end : end + 1] == "s" and len(written) == 4 and written.endswith("0")
    if (
        not values
        or decade
        or _NO_NUMBER.match(text, end)
        or (len(written) == 2 and text[start - 1 : start] == "'")
    ):
        return None
    step = Decimal(1).scaleb(int(values[0].as_tuple().exponent))
    figures = len(re.sub(r"\D", "", written).lstrip("0"))
    if (mixed := _MIXED.match(text, end)) is not None and len(written) <= 4:
        values = (values[0] + _divide(mixed[1], mixed[2]),)
        end = mixed.end()
    elif (mixed := _MIXED_KOREAN.match(text, end)) is not None and written.isdecimal():
        values = (values[0] + _divide(mixed[2], mixed[1]),)
        end = mixed.end()
    elif (below := _FRACTION.match(text, end)) is not None and written.isdecimal():
        over = below[2] or below[3]
        values = (_divide(over, written) if over else _divide(written, below[1]),)
        end = below.end()
    if (power := _POWER.match(text, end)) is not None:
        exponent = int((power[1] or power[2]).replace("−", "-"))
        values = tuple(value.scaleb(exponent) for value in values)
        step = step.scaleb(exponent)
        end = power.end()
    elif (power := _OF_TEN.match(text, end)) is not None:
        if written != "10":
            return None  # an expression that is not evaluated
        values = (Decimal(1).scaleb(int(power[1].replace("−", "-"))),)
        end = power.end()
    elif text[end : end + 1] == "π":
        values = tuple(value * _PI for value in values)
        figures = 30
        end = end + 1
    if ordinal := _ORDINAL.match(text, end):
        return Number(
            values, start, ordinal.end(), step=step, figures=figures, ordinal=True
        )
    if uncertain := _UNCERTAINTY.match(text, end):
        end = uncertain.end()
    number = _with_unit(
        Number(values, start, end, step=step, figures=figures), text, language
    )
    # "8x": a number before a letter that is not a unit is something else.
    return None if number.end == end and re.match(r"[A-Za-z]", text[end:]) else number


def _with_unit(number: Number, text: str, language: str) -> Number:
    """Add the magnitude and unit that follow, or the currency before."""
    end = number.end
    values = number.values
    step = number.step
    before = text[max(0, number.start - 1) : number.start]
    if (myriads := _MYRIADS.match(text, end)) is not None and not number.word:
        values = _multiply_myriads(values, myriads.group())
        step = Decimal(0)
        end = myriads.end()
    paid = _MONEY.search(text[max(0, number.start - 5) : number.start]) is not None
    for _ in range(2):
        word = _MAGNITUDE_WORD.match(text, end)
        form = word[1].casefold() if word else ""
        power = 12 if paid and form == "t" else MAGNITUDES.get(form)
        small = (
            form in tuple("mb") and not word[1].isupper() and not paid
            if word
            else False
        )
        if (
            word is None
            or power is None
            or small
            or (form == "k" and text[end] in " -")
        ):
            break
        if form == "billionen" or (
            form in ("billion", "billones") and language in ("de", "es", "nl")
        ):
            power = 12
        values = tuple(value.scaleb(power) for value in values)
        step = step.scaleb(power)
        end = word.end() + (
            form in _ABBREVIATED and text[word.end() : word.end() + 1] == "."
        )
    if (pairs := _PAIRS.match(text, end)) is not None:
        values = (*(2 * value for value in values), *values)
        end = pairs.end()
    unit = unit_after(text, end)
    if unit is None:
        money = parse_unit(before) if before and before in "$€£¥₹₩" else None
        return replace(number, values=values, step=step, end=end, unit=money)
    if (
        unit[0].dimensions == PERCENT
        and (points := _POINTS.match(text, unit[1])) is not None
    ):
        return replace(
            number, values=values, step=step, end=points.end(), unit=_PERCENTAGE_POINT
        )
    if (
        unit[0].dimensions in _HALVED
        and (half := _HALF.match(text, unit[1])) is not None
    ):
        values = tuple(value + Decimal("0.5") for value in values)
        return replace(number, values=values, step=step, end=half.end(), unit=unit[0])
    # "1m75", "m s^-1": the continuation is not read.
    cut = re.match(r"\d|\s?[a-z]{1,3}\^[-−]", text[unit[1] :]) is not None
    return replace(
        number,
        values=values,
        step=step,
        end=unit[1],
        unit=unit[0],
        bound=number.bound or cut,
    )


def _multiply_myriads(values: tuple[Decimal, ...], text: str) -> tuple[Decimal, ...]:
    """Multiply the values by the characters that follow, and add what comes after.

    Example: the "億2500万" of "1億2500万".
    """
    total = Decimal(0)
    below_myriad = Decimal(0)
    number = values[0]
    for digits, places, myriad in _MYRIAD_STEP.findall(text):
        if digits or places or myriad:
            number = Decimal(digits.replace(",", "")) if digits else number
            below_myriad = below_myriad + number * prod(
                _PLACES[char] for char in places
            )
            number = Decimal(0)
            total, below_myriad = (
                (total + below_myriad * _PLACES[myriad], Decimal(0))
                if myriad
                else (total, below_myriad)
            )
    return (total + below_myriad,)


def _join_neighbours(numbers: Sequence[Number], text: str) -> list[Number]:
    """Join "1 h 30 min" into one number; digits right after a unit ("1m75") make it unreadable."""
    joined: list[Number] = []
    for number in numbers:
        last = joined[-1] if joined else None
        if (
            last is not None
            and last.unit == parse_unit("h")
            and text[: number.end].endswith("m")
            and number.unit == parse_unit("m")
        ):
            number = replace(number, unit=parse_unit("min"))  # "2h 22m"
        if (
            last is not None
            and last.unit is not None
            and _JOINS.fullmatch(text[last.end : number.start])
        ):
            small = (
                number.unit is not None
                and number.unit.dimensions == last.unit.dimensions
                and number.unit.factor < last.unit.factor
            )
            if small and number.unit is not None:
                added = number.unit.of(number.value, last.unit) or Decimal(0)
                values = tuple(value + added for value in last.values)
                joined[-1] = replace(
                    last, values=values, end=number.end, figures=9, step=Decimal(0)
                )
                continue
            if number.start == last.end:
                joined[-1] = replace(last, end=number.end, bound=True)
                continue
        joined.append(number)
    return joined


def _with_context(numbers: Sequence[Number], text: str) -> Iterator[Number]:
    """Add what the words around a number say: a minus, "about", "at least", a range."""
    counters = [
        counter_after(text, number.end) if number.unit is None else None
        for number in numbers
    ]
    ends = [
        counter[1] if counter else number.end
        for number, counter in zip(numbers, counters, strict=True)
    ]
    gaps = [
        text[end : following.start]
        for end, following in zip(ends, numbers[1:], strict=False)
    ]
    ranges = [
        bool(gap.strip())
        and len(gap) <= 8
        and (_COUNTED_RANGE if counter else _RANGE).fullmatch(gap.strip()) is not None
        for gap, counter in zip(gaps, counters, strict=False)
    ]
    for index, number in enumerate(numbers):
        before = text[max(0, number.start - 32) : number.start]
        behind = text[ends[index] : ends[index] + 24]
        bound = number.bound or any(ranges[max(0, index - 1) : index + 1])
        bound = (
            bound
            or _BOUND.search(before) is not None
            or _BOUND_AFTER.match(behind) is not None
        )
        bound = bound or re.search(r"\d:$", before) is not None
        minus = (
            _MINUS.search(before[-12:]) is not None
            or _BELOW_ZERO.match(behind) is not None
        )
        values = (
            tuple(-abs(value) for value in number.values) if minus else number.values
        )
        about = ABOUT.search(before) or _ABOUT_AFTER.match(behind)
        counter = counters[index]
        ordinal = number.ordinal or (counter is not None and counter[0] in ORDINALS)
        yield replace(
            number,
            values=values,
            bound=bound,
            approximate=about is not None,
            ordinal=ordinal,
        )


def _divide(above: str, below: str) -> Decimal:
    with localcontext() as context:
        context.prec = 34
        return Decimal(above) / Decimal(below)


def _possible_values(written: str, spaced: bool, language: str) -> tuple[Decimal, ...]:
    """Return the values of digits with separators, likeliest first; () for a version or date."""
    comma = has_decimal_comma(language)
    text = re.sub(r"[ '_]", "", written)
    if spaced:
        return (Decimal(text.replace(",", ".")),)
    marks = [char for char in text if char in ".,"]
    if not marks:
        return (Decimal(text),)
    last = marks[-1]
    others = set(marks[:-1])
    if len(set(marks)) == 2:
        integer, _, decimals = text.rpartition(last)
        group_mark = (
            next(iter(others)) if len(others) == 1 and last not in others else ""
        )
        return (
            (Decimal(f"{integer.replace(group_mark, '')}.{decimals}"),)
            if group_mark and _is_grouped(integer, group_mark)
            else ()
        )
    grouped = _is_grouped(text, last)
    as_group = Decimal(text.replace(last, ""))
    if len(marks) > 1:
        return (as_group,) if grouped else ()
    as_point = Decimal("0" + text.replace(",", "."))
    if not grouped or text.startswith("0"):
        return (as_point,)
    return (as_point, as_group) if (last == ",") == comma else (as_group, as_point)


def has_decimal_comma(language: str) -> bool:
    """Return whether a language writes 3,5 for three and a half."""
    return language.casefold().replace("_", "-").split("-")[0] in _DECIMAL_COMMA


def _is_grouped(text: str, mark: str) -> bool:
    """Return whether digits are grouped in threes, or as in India in twos above the thousands."""
    first, *middle, last = text.split(mark)
    if not 1 <= len(first) <= 3 or len(last) != 3:
        return False
    return all(len(group) == 3 for group in middle) or (
        mark == "," and len(first) <= 2 and all(len(group) == 2 for group in middle)
    )
