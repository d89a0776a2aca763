"""Numbers in running text, in digits and in words, each with its value, unit and place.

Readings: "1,234" is one thousand two hundred and thirty-four; "48,2" is 48.2 (two digits cannot be a group); "1.234.567" is
grouped; "1.234" is a decimal number, in languages with a decimal comma also a grouped one. Clock times, versions, dates
and words with digits in them ("3I", "KM3NeT") are no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from evalwright.scorers.numbers.characters import character_numbers, mixed_value
from evalwright.scorers.numbers.spoken import said_numbers, scale_after
from evalwright.scorers.numbers.units import (
    CURRENCY_SIGNS,
    Unit,
    is_money,
    parse_unit,
    symbol_scale,
    target_unit,
)
from evalwright.scorers.numbers.words import SCALES, STARTS, spelled_numbers
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.wordlists import word_set

_DIGITS = re.compile(
    r"(?<![A-Za-z0-9_À-\u0dff\u1100-\u16ff])(?<!\d[.,:])(?<!\^)(?<!\^-)"
    r"(?:(?P<grouped>[1-9]\d{0,2}(?:[ '_]\d{3}){1,9}(?![\d'_])(?:[.,]\d{1,30}(?!\d))?)"
    r"|(?P<plain>\d{1,60}(?:[.,_']\d{1,60}){0,20})"
    r"|(?P<point>(?<![.\d])\.\d{1,40}))"
)
_POWER_OF_TEN = re.compile(r"\s?[×x*]\s?10\s?(?:\^|\*\*)\s?\(?([-+−]?\d{1,4})\)?|[eE]([-+]?\d{1,4})(?![\w.])")
_AFTER_TEN = re.compile(r"\s?(?:\^|\*\*)\s?\(?([-+−]?\d{1,4})\)?")
_INDIAN = re.compile(r"[1-9]\d?(?:,\d\d)+,\d{3}")
"""Groups of two above the thousands: "12,34,567"."""
_FRACTION = re.compile(r"\s?/\s?([1-9]\d{0,5})(?![\d.,]*\d|\w|/)")
_MIXED = re.compile(r" (\d{1,3})\s?/\s?([1-9]\d{0,3})(?![\d/])")
_AND_PART = re.compile(r" (?:and|&) (?:a |an |one |)(half|quarter|third)\b", re.IGNORECASE)
_THREE_QUARTERS = re.compile(r" and three[ -]quarters\b", re.IGNORECASE)
_SCALE_WORD = re.compile(
    r"[ -]?(hundred|thousand|million|billion|trillion|quadrillion|lakh|crore|dozen)s?\b(?: of(?= [a-zA-Z$€£]))?",
    re.IGNORECASE,
)
_PLACES = "十百千万萬億亿兆십백천만억조"
_MIXED_RUN = re.compile(rf"(?:\d[\d,]*(?:\.\d+)?[{_PLACES}]{{1,3}})+(?:\d{{1,4}}(?!\d))?")
_LETTERS = re.compile(r"[^\W\d_]{1,12}")
_HOURS = re.compile(r"\s?h\s?([0-5]\d)(?:\s?min)?(?![\w.])")
"""The rest of "1h30"."""
_METRES = re.compile(r"\s?m(\d\d)(?![\w.])")
"""The rest of "1m75"."""
_UNIT_AND_PART = re.compile(r" and (?:a |one )?(half|quarter)\b", re.IGNORECASE)
_ORDINAL = frozenset(("st", "nd", "rd", "th"))
_SIGN = re.compile(r"(?:^|[\s(=:≈~,\"'])[-−]\s?$")
_SIGN_WORD = re.compile(r"\b(?:minus|negative)\s$", re.IGNORECASE)
_MINUS_BEFORE = re.compile(
    r"(?:\b(?:moins|menos|meno|minus|negatif|negativo|âm|tolak)\s|负|負|マイナス|영하\s?|마이너스\s?|ลบ|माइनस\s|மைனஸ்\s)$",
    re.IGNORECASE,
)
_BELOW_ZERO = re.compile(r"[^.,;!?\n]{0,24}?\bbelow (?:zero|freezing)\b", re.IGNORECASE)
_TAIL = re.compile(
    r"[ -]?([^\s\d,;:!?()\[\]\"=][^\s,;:!?()\[\]\"=]{0,24}(?: [^\s\d,;:!?()\[\]\"=][^\s,;:!?()\[\]\"=]{0,24}){0,4})"
)
_CODE_BEFORE = re.compile(r"(?:^|\s)([A-Z]{2,3}\$?)\s?$")
_ZERO_POINT = re.compile(r"\b(?:below|above) (?:absolute )?$", re.IGNORECASE)
_JOINS = re.compile(r",? and |,? ?")
_DECIMAL_COMMA = word_set("de es fr it pt nl id vi tr pl ru uk sv da no nb fi cs sk el ro hu bg sr hr sl ca")
_MOST = 60
_MOST_EXPONENT = 400


@dataclass(slots=True)
class Number:
    """A number in a text. start and end: its place in the text, without the unit; unit_end: with it.

    values: its readings, the likeliest first. unit: None where none follows. decimals: digits after the point as written;
    digits: significant digits as written. ordinal: "5th", "fifth". compound: put together ("1 h 10 min"). weak: a word that
    mostly means something else ("ein", "une").
    """

    values: tuple[Decimal, ...]
    start: int
    end: int
    unit: Unit | None = None
    unit_end: int = 0
    ordinal: bool = False
    decimals: int = 0
    digits: int = 0
    compound: bool = False
    weak: bool = False

    @property
    def value(self) -> Decimal:
        """The likeliest reading."""
        return self.values[0]


def find_numbers(words: Words, language: str = "en", skip: Iterable[tuple[int, int]] = ()) -> list[Number]:
    """All numbers of a text in order, at most the first 60. skip: character ranges that are not read (dates)."""
    text = words.text
    skipped = tuple(skip)
    found = [number for number in _in_digits(text, language) if not _inside(number, skipped)]
    if not language.startswith("en") or not text.isascii():
        found += _in_other_words(words, language, found, skipped)
    if not STARTS.isdisjoint(words.tokens):
        found += _in_words(words, found, skipped)
        found.sort(key=lambda number: number.start)
    if any(number.weak for number in found):
        found = [number for number in found if not number.weak] or found
    return _joined(text, found)


def _in_digits(text: str, language: str) -> list[Number]:
    found: list[Number] = []
    position = 0
    while len(found) < _MOST and (match := _DIGITS.search(text, position)) is not None:
        position = match.end()
        number = _number_at(text, match, language)
        if number is not None:
            found.append(number)
            position = max(number.end, match.end())
    return found


def _number_at(text: str, match: re.Match[str], language: str) -> Number | None:
    start, end = match.span()
    following = text[end : end + 1]
    if following == ":" and text[end + 1 : end + 2].isdigit():
        return None
    written = match.group()
    values = _readings(written, language)
    if not values:
        return None
    number = Number(
        values, start, end, decimals=_decimals(written), digits=len(re.sub(r"\D", "", written).lstrip("0"))
    )
    if not _extend(text, number, language):
        return None
    _sign(text, number)
    _read_unit(text, number)
    if number.values[0] > 0 and _BELOW_ZERO.match(text, number.end) is not None:
        number.values = tuple(-value for value in number.values)
    return number


def _readings(written: str, language: str) -> tuple[Decimal, ...]:
    """What digits with separators can mean; empty for what is no number (a version, an address)."""
    bare = written.replace(" ", "").replace("_", "").replace("'", "")
    points, commas = bare.count("."), bare.count(",")
    if not points and not commas:
        return (Decimal(bare),)
    if points and commas:
        decimal = "." if bare.rfind(".") > bare.rfind(",") else ","
        group = "," if decimal == "." else "."
        whole, _, fraction = bare.rpartition(decimal)
        if decimal in whole or not _grouped(whole.split(group)):
            return ()
        return (Decimal(f"{whole.replace(group, '')}.{fraction}"),)
    separator = "." if points else ","
    parts = bare.split(separator)
    if not parts[0]:
        return (Decimal(f"0{bare}"),) if points == 1 else ()
    if separator == "," and _INDIAN.fullmatch(bare) is not None:
        return (Decimal("".join(parts)),)
    if len(parts) > 2:  # a version, an address, or a list without spaces where not in groups of three
        return (Decimal("".join(parts)),) if _grouped(parts) else ()
    decimal_reading = Decimal(f"{parts[0]}.{parts[1]}")
    if " " in written or "_" in written or "'" in written or not _grouped(parts):
        return (decimal_reading,)
    grouped_reading = Decimal("".join(parts))
    if language[:2] in _DECIMAL_COMMA:
        return (grouped_reading, decimal_reading) if separator == "." else (decimal_reading, grouped_reading)
    return (decimal_reading,) if separator == "." else (grouped_reading,)


def _grouped(parts: list[str]) -> bool:
    return 0 < len(parts[0]) <= 3 and parts[0][0] != "0" and all(len(part) == 3 for part in parts[1:])


def _decimals(written: str) -> int:
    found = re.search(r"[.,](\d+)$", written)
    return len(found.group(1)) if found and (len(found.group(1)) != 3 or "." in written) else 0


def _extend(text: str, number: Number, language: str) -> bool:
    """Take in what belongs to the number after its digits: exponent, fraction, magnitude, ordinal ending.

    False where letters follow that make it another word.
    """
    if (power := _POWER_OF_TEN.match(text, number.end)) is not None:
        return _scale(number, power.end(), _ten_to(power.group(1) or power.group(2)))
    if number.values[0] == 10 and (power := _AFTER_TEN.match(text, number.end)) is not None:
        exponent = _ten_to(power.group(1))
        number.values = (Decimal(1),)
        return _scale(number, power.end(), exponent)
    if (mixed := _MIXED.match(text, number.end)) is not None and int(mixed.group(1)) < int(mixed.group(2)):
        number.values = (number.value + Decimal(mixed.group(1)) / Decimal(mixed.group(2)),)
        number.end = mixed.end()
    elif (
        fraction := _FRACTION.match(text, number.end)
    ) is not None and number.value == number.value.to_integral_value():
        number.values = (number.value / Decimal(fraction.group(1)),)
        number.end = fraction.end()
    elif (part := _AND_PART.match(text, number.end)) is not None:
        number.values = (
            number.value + Decimal(1) / {"half": 2, "quarter": 4, "third": 3}[part.group(1).lower()],
        )
        number.end = part.end()
    elif (part := _THREE_QUARTERS.match(text, number.end)) is not None:
        number.values = (number.value + Decimal("0.75"),)
        number.end = part.end()
    if (spoken := scale_after(text, number.end, language)) is not None:
        return _scale(number, spoken[1], spoken[0])
    if (word := _SCALE_WORD.match(text, number.end)) is not None:
        _scale(number, word.end(), _scale_of(word.group(1)))
        if (word := _SCALE_WORD.match(text, number.end)) is not None:  # "1.4 thousand million"
            _scale(number, word.end(), _scale_of(word.group(1)))
        return True
    return _letters(text, number)


def _scale_of(word: str) -> Decimal:
    return {"hundred": Decimal(100), "dozen": Decimal(12)}.get(word.lower()) or SCALES[word.lower()]


def _letters(text: str, number: Number) -> bool:
    letters = _LETTERS.match(text, number.end)
    if letters is None:
        # "8²" is a power that nobody has worked out, not the number 8.
        return text[number.end : number.end + 1] != "^"
    if (metres := _METRES.match(text, number.end)) is not None:
        number.values = (number.value + Decimal(metres.group(1)) / 100,)
        number.end, number.unit, number.compound = metres.end(), parse_unit("m"), True
        return True
    if (clock := _HOURS.match(text, number.end)) is not None:
        number.values = (number.value + Decimal(clock.group(1)) / 60,)
        number.end, number.unit, number.compound = clock.end(), parse_unit("h"), True
        return True
    word = letters.group()
    if word[0] in _PLACES and (run := _MIXED_RUN.match(text, number.start)) is not None:
        value = mixed_value(run.group())
        number.values, number.end = (value,), run.end()
        return True
    if ord(word[0]) >= 0x0E00:
        return True  # a script without spaces, or with endings on the number ("5개")
    if word.lower() in _ORDINAL:
        number.ordinal, number.end = True, letters.end()
        return True
    money = text[number.start - 1 : number.start] in CURRENCY_SIGNS and number.start > 0
    if money and word in ("m", "b", "t"):
        return _scale(number, letters.end(), Decimal(10) ** {"m": 6, "b": 9, "t": 12}[word])
    after = text[letters.end() : letters.end() + 1]
    if (scale := symbol_scale(word)) is not None and not after.isdigit():
        return _scale(number, letters.end(), scale)
    if word == "s" and number.digits in (2, 4) and number.value % 10 == 0:
        return False  # a decade
    tail = _TAIL.match(text, number.end)
    return tail is not None and _unit_in(tail.group(1)) is not None


def _ten_to(exponent: str) -> Decimal | None:
    power = int(exponent.replace("−", "-"))
    return Decimal(10) ** power if abs(power) <= _MOST_EXPONENT else None


def _scale(number: Number, end: int, factor: Decimal | None) -> bool:
    if factor is None:
        return False
    number.values = tuple(value * factor for value in number.values)
    number.end = end
    return True


def _sign(text: str, number: Number) -> None:
    before = text[max(0, number.start - 12) : number.start]
    if not before:
        return
    stripped = before.rstrip() if before[-1:] == " " else before
    if stripped[-1:] == "%" and not text[number.end : number.end + 1].isalnum():
        number.unit = parse_unit("%")  # "%71", as Turkish and Arabic write
        before = stripped[:-1]
    elif stripped[-1:] in CURRENCY_SIGNS and stripped[-1:]:
        number.unit = parse_unit(stripped[-1])
        before = stripped[:-1].removesuffix("US")
    elif (code := _CODE_BEFORE.search(before)) is not None:
        unit = parse_unit(code.group(1))
        if unit is not None and unit.dimensions == ((code.group(1).lower().rstrip("$"), 1),):
            number.unit = unit
            before = before[: code.start(1)]
    if before[-1:] in "-−" or before[-2:] in ("- ", "− "):
        tight = before[-1:] in "-−"
        if _SIGN.search(before) is not None and (tight or before.strip() in "-−"):
            number.values = tuple(-value for value in number.values)
    elif _SIGN_WORD.search(before) is not None:
        number.values = tuple(-value for value in number.values)


def _read_unit(text: str, number: Number) -> None:
    number.unit_end = number.end
    tail = None if number.compound else _TAIL.match(text, number.end)
    if tail is None:
        return
    found = _unit_in(tail.group(1))
    if found is None:
        return
    unit, length = found
    if number.unit is None or unit.dimensions != number.unit.dimensions:
        if number.unit is not None:  # "$5 per barrel": the currency before the number stays
            return
        number.unit = unit
    number.unit_end = tail.start(1) + length
    rate = _RATE.search(text, tail.start(1), number.unit_end)
    if (
        rate is not None
        and (paid := parse_unit(text[tail.start(1) : rate.start()])) is not None
        and is_money(paid)
    ):
        number.unit = paid  # "300 billion dollars a year": over which time is the question's matter
    elif (part := _UNIT_AND_PART.match(text, number.unit_end)) is not None:
        number.values = (
            number.value + (Decimal("0.5") if part.group(1).lower() == "half" else Decimal("0.25")),
        )
        number.end = number.unit_end = part.end()  # "an hour and a half"


_RATE = re.compile(r"(?: (?:per|a|an|each|every) |/)(?:year|annum|yr|month|week|day)\b", re.IGNORECASE)
_NEVER_AFTER_NUMBER = frozenset(("in", "a", "an", "u", "st", "at", "C", "F"))


def _unit_in(tail: str) -> tuple[Unit, int] | None:
    """The longest unit at the start of what follows a number, and its length."""
    pieces = tail.split(" ")
    for count in range(min(5, len(pieces)), 0, -1):
        name = " ".join(pieces[:count])
        for candidate in (name, name.rstrip(".'\"*")):
            if count == 1 and candidate in _NEVER_AFTER_NUMBER and (candidate not in "CF" or len(pieces) > 1):
                continue
            unit = parse_unit(f"°{candidate}" if candidate in ("C", "F") else candidate)
            if unit is not None:
                return unit, len(candidate)
    if (
        pieces[0] and ord(pieces[0][0]) >= 0x0E00
    ):  # scripts without spaces: the unit is the start of what follows
        for size in range(min(8, len(pieces[0])), 0, -1):
            if (unit := parse_unit(pieces[0][:size])) is not None:
                return unit, size
    head = re.match(r"[^\W\d_]+", pieces[0])
    if (
        head is not None
        and head.group() != pieces[0]
        and pieces[0][head.end()] in "-'/"
        and len(head.group()) > 2
    ):
        unit = parse_unit(head.group())  # "100-metre-long"
        return None if unit is None else (unit, head.end())
    return None


def _in_words(words: Words, digits: list[Number], skipped: tuple[tuple[int, int], ...]) -> list[Number]:
    text = words.text

    def ends_clause(index: int) -> bool:
        gap = words.gap(index)
        return gap not in (" ", "-") and any(sign in ",;:.!?()\n/" for sign in gap)

    found: list[Number] = []
    for spelled in spelled_numbers(words.tokens, ends_clause)[:_MOST]:
        start, end = words.spans[spelled.start][0], words.spans[spelled.end - 1][1]
        number = Number(
            (spelled.value,), start, end, ordinal=spelled.ordinal, digits=len(spelled.value.as_tuple().digits)
        )
        if spelled.value == 0 and _ZERO_POINT.search(text[max(0, start - 16) : start]) is not None:
            continue
        # "1.5 million" and "3rd" were read with their digits.
        taken = any(
            other.start <= start < other.unit_end or other.start < end <= other.end
            for other in (*digits, *found)
        )
        if taken or _inside(number, skipped):
            continue
        if _SIGN_WORD.search(text[max(0, start - 10) : start]) is not None:
            number.values = (-spelled.value,)
        _read_unit(text, number)
        if number.value > 0 and _BELOW_ZERO.match(text, end) is not None:
            number.values = (-number.value,)
        found.append(number)
    return found


def _in_other_words(
    words: Words, language: str, digits: list[Number], skipped: tuple[tuple[int, int], ...]
) -> list[Number]:
    """Numbers in the words of `language`, and of every script that has number words of its own."""
    text = words.text
    found: list[Number] = []
    spans = [
        (words.spans[said.start][0], words.spans[said.end - 1][1], said.value, said.ordinal, said.weak)
        for said in said_numbers(
            words.tokens,
            language,
            lambda i: any(sign in ",;:.!?()\n/" for sign in words.gap(i)),
            lambda i: words.gap(i) == ", ",
        )
    ]
    spans += [
        (one.start, one.end, one.value, one.ordinal, False) for one in character_numbers(text, language)
    ]
    for start, end, value, ordinal, weak in spans[:_MOST]:
        number = Number((value,), start, end, ordinal=ordinal, weak=weak, digits=len(value.as_tuple().digits))
        taken = any(one.start < end and start < max(one.end, one.unit_end) for one in (*digits, *found))
        if taken or _inside(number, skipped):
            continue
        _read_unit(text, number)
        if _MINUS_BEFORE.search(text[max(0, start - 12) : start]) is not None:
            number.values = (-value,)
        found.append(number)
    return found


def _inside(number: Number, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(start <= number.start < end for start, end in ranges)


def _joined(text: str, numbers: list[Number]) -> list[Number]:
    """Put together what is one quantity: "1 h 10 min", "5 feet 11 inches"."""
    out: list[Number] = []
    for number in numbers:
        last = out[-1] if out else None
        if last is not None and last.unit is not None and number.unit is not None:
            gap = text[last.unit_end : number.start]
            if (last.unit, number.unit) == (parse_unit("h"), parse_unit("m")) and not gap.strip():
                number.unit = target_unit("min") or number.unit  # "2h 22m"
            same = last.unit.dimensions == number.unit.dimensions and not last.unit.offset
            if (
                same
                and number.unit.factor < last.unit.factor
                and number.value >= 0
                and _JOINS.fullmatch(gap) is not None
            ):
                rest = number.value * number.unit.factor / last.unit.factor
                if rest < 1 and last.unit.dimensions[0][0] not in ("usd", "percent"):
                    last.values = (last.value + rest,)
                    last.unit_end, last.end, last.compound = number.unit_end, number.end, True
                    continue
        out.append(number)
    return out
