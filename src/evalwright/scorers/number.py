"""Numbers: reading them in a text, in digits and words, and whether a reply surely gives the target number, or another.

Digits with separators of both conventions ("1,234.5", "1.234,5", "1 234", "12,34,567"), signs, fractions, powers of ten, magnitudes
("1.5 million", "3万", "5 lakh"), number words (`number_words`) and units (`units`). A number that has two readings has both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from functools import lru_cache
from typing import Any, NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.scorers.dates import find_dates
from evalwright.scorers.number_words import goes_on as _goes_on
from evalwright.scorers.number_words import spelled
from evalwright.scorers.text.cues import cues, last_revision
from evalwright.scorers.text.locate import Said
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.units import Unit, parse_unit, unit_after
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

_DIGITS = re.compile(
    r"(?<![\w.,/^√])(?<!\^[-−])(?:(?P<grouped>\d{1,3}(?:[ '_]\d{3}){1,6}(?![\d'_])(?:[.,]\d{1,20}(?!\d))?)|(?P<plain>\d{1,40}(?:[.,_']\d{1,40}){0,12})|(?P<point>\.\d{1,30}))"
    r"|(?<=[$€£¥₹±~≈=(\[\u3000-\u9fff\uac00-\ud7af\u0e00-\u0e7f'])(?P<after>\d{1,40}(?:[.,_']\d{1,40}){0,12})"
)
_POWER = re.compile(r"\s?[×x*·]\s?10\s?(?:\^|\*\*)\s?\(?([-+−]?\d{1,3})\)?|[eE]([-+]?\d{1,3})(?![\w.])")
_OF_TEN = re.compile(r"\s?(?:\^|\*\*)\s?\(?([-+−]?\d{1,3})\)?")
_FRACTION = re.compile(r"\s?/\s?([1-9]\d{0,5})(?![\d.,]*\d|\w|/)")
_MIXED = re.compile(r"[ ](\d{1,3})\s?/\s?([1-9]\d{0,3})(?![\d/])")
_ORDINAL = re.compile(r"(?:st|nd|rd|th|º|ª|er|ème|-м|-й|-го)(?!\w)")
_MINUS = re.compile(
    r"(?:^|[\s(=:≈~,])[-−]\s?$|(?:\b(?:minus|negative|moins|menos|meno|min|âm)|负|マイナス|영하)\s?$",
    re.IGNORECASE,
)
_MAGNITUDES = {
    3: "thousand tausend mille mil mila duizend тысяч тыс тысячи tysięcy tysiące bin ribu nghìn ngàn elfu ألف हज़ार พัน k 千 천",
    6: "million millions mio mln m millionen millones millón milhões milhão milioni milione miljoen миллион миллиона миллионов млн milion miliony milionów milyon juta triệu مليون ล้าน mn",
    9: "billion billions bn b milliarden milliarde mrd milliard milliards miliardi miliardo miljard миллиард миллиарда миллиардов млрд miliard miliardy milyar tỷ مليار",
    12: "trillion trillions tn billionen",
    5: "lakh lakhs lac लाख", 7: "crore crores करोड़", 2: "hundred", 4: "万 萬 만", 8: "亿 億 억",
}  # fmt: skip
_MAGNITUDE = {word: power for power, words in _MAGNITUDES.items() for word in words.split()}
_MAGNITUDE_WORD = re.compile(r"[ -]?([^\W\d_](?:[^\W\d_]|[\u0900-\u0dff\u0e00-\u0eff]){0,12})\.?")
_DECIMAL_COMMA = frozenset(
    [
        "de",
        "es",
        "fr",
        "it",
        "pt",
        "nl",
        "id",
        "vi",
        "tr",
        "pl",
        "ru",
        "uk",
        "sv",
        "da",
        "no",
        "nb",
        "fi",
        "cs",
        "sk",
        "el",
        "ro",
        "hu",
        "bg",
        "sr",
        "hr",
        "sl",
        "ca",
    ]
)
_PAIRS = re.compile(r"\s?(?:pairs?|couples?|paare?|paires?|pares|paia|пар)(?!\w)", re.IGNORECASE)
_RANGE = re.compile(
    r"^\s?(?:-|–|~|to|bis|à|a|до|至|から|and|und|et|y|e|or|oder|ou|o|или|або|lub|veya|atau|hoặc|或|または|또는)\s?[$€£]?$|^\s?±\s?$",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:before|after|until|since|prior to|minimum of|maximum of|more than|over|less than|under|fewer than|at least|at most|up to|above|below|between|from|greater than|nearly|almost|exceed\w*|no more than|mehr als|weniger als|mindestens|höchstens|"
    r"über|unter|zwischen|fast|bis zu|plus de|moins de|au moins|au plus|entre|presque|más de|menos de|al menos|hasta|casi|più di|meno di|almeno|fino a|tra|mais de|meer dan|minder dan|bijna|"
    r"более|менее|больше|меньше|почти|от|lebih dari|kurang dari|sekitar antara|hampir|hơn|gần|ít nhất|超过|多于|少于|不到|至少|以上|約束|>|<|≥|≤|±)\s?[$€£~]?$",
    re.IGNORECASE,
)
_BOUND_AFTER = re.compile(
    r"^\s?(?:\+|bce?\b|b\.c|v\. ?chr|av\. j|a\.c\b|点\S|點|점|or more|or less|or so|plus|and more|oder mehr|ou plus|o más|以上|以下|多|余|几|이상|이하)",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?:about|around|roughly|approximately|approx\.?|circa|ca\.?|some|~|≈|etwa|rund|ungefähr|environ|à peu près|unos|unas|aproximadamente|alrededor de|circa|cerca de|ongeveer|около|примерно|приблизительно|"
    r"sekitar|khoảng|大约|约|約|およそ|약|ประมาณ|लगभग)\s?[$€£]?$",
    re.IGNORECASE,
)
_TOTAL = re.compile(
    r"=|\b(?:total|altogether|in all|sum|so|therefore|thus|hence|zusammen|insgesamt|also|ergibt|total|donc|tutto|totale|итого|всего|значит|razem|toplam|jadi|tổng)\b|合計|一共|共|总共|だから|따라서|모두",
    re.IGNORECASE,
)
_MORE = re.compile(r"\s?(\d{1,4})(?!\d)([万萬만千천]?)")
_BELOW_ZERO = re.compile(
    r"\s?(?:below (?:zero|freezing)|unter null|sous zéro|bajo cero|sotto zero|abaixo de zero)", re.IGNORECASE
)
_DATE_NEAR = re.compile(
    r"\b(?:in|since|by|until|from|en|im|seit|depuis|desde|nel|dal|em|sinds|в|w|sejak|pada tahun|năm|of|\()\s?$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?<!\d)[,;:.!?(—、，。；：]|[,;:.!?(—、，。；：](?!\d)|\n|\s[–-]\s")
_LIST_ITEM = re.compile(r"(?m)^[ \t]{0,4}\d{1,2}[.)](?=\s)")
_PERCENT = (("percent", 1),)
_BUDDHIST = 543
"""Years of the Thai era count from 543 BC."""
_SLACK = Decimal("1e-9")
AS_TARGET = -1
"""A tolerance of as many significant figures as the target shows."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text: its readings, its place (with the unit), its unit, the worth of its last digit, its significant digits.

    ordinal: "5th". word: written in words. about, bound: with "about", with "at least" or as a part of a range.
    """

    values: tuple[Decimal, ...]
    start: int
    end: int
    unit: Unit | None = None
    step: Decimal = Decimal(1)
    figures: int = 0
    ordinal: bool = False
    word: bool = False
    about: bool = False
    bound: bool = False

    @property
    def value(self) -> Decimal:
        """The likeliest reading."""
        return self.values[0]


def find_numbers(text: str, language: str = "en") -> list[Number]:
    """All numbers of a plain text in order, at most 200."""
    found: list[Number] = []
    for match in _DIGITS.finditer(text):
        if found and match.start() < found[-1].end:
            continue
        number = _digits(match, text, language)
        if number is not None:
            found.append(number)
        if len(found) == 200:
            break
    taken = [(one.start, one.end) for one in found]
    for value, start, end in spelled(text, language):
        if not any(first < end and start < last for first, last in taken):
            cut = _goes_on(text, start, end, language)
            if value == 1 and re.match(r" (?:of|or|another)\b", text[end:]):
                continue
            number = Number((value,), start, end, figures=len(str(value).rstrip("0")), word=True, bound=cut)
            found.append(_with_unit(number, text, language))
    found.sort(key=lambda one: one.start)
    return [_in_context(one, found, place, text) for place, one in enumerate(_together(found, text))]


_JOINS = re.compile(r",? (?:and |und |et |y |e )?|\s?")


def _together(found: Sequence[Number], text: str) -> list[Number]:
    """With "1 h 30 min" as one number, and digits right after a unit ("1m75") as one that cannot be read."""
    out: list[Number] = []
    for one in found:
        last = out[-1] if out else None
        if last is not None and last.unit is not None and _JOINS.fullmatch(text[last.end : one.start]):
            if (
                one.unit is not None
                and one.unit.dimensions == last.unit.dimensions
                and one.unit.factor < last.unit.factor
            ):
                added = one.unit.of(one.value, last.unit) or Decimal(0)
                out[-1] = replace(
                    last,
                    values=tuple(value + added for value in last.values),
                    end=one.end,
                    figures=9,
                    step=Decimal(0),
                )
                continue
            if one.start == last.end:
                out[-1] = replace(last, end=one.end, bound=True)
                continue
        out.append(one)
    return out


def _digits(match: re.Match[str], text: str, language: str) -> Number | None:
    written = match["grouped"] or match["plain"] or match["point"] or match["after"]
    readings = _readings(written, match["grouped"] is not None, language)
    end = match.end()
    if (
        not readings
        or text[end : end + 1] in ("π", "√")
        or (text[end : end + 1] == "s" and len(written) == 4 and written.endswith("0"))
        or (len(written) == 2 and text[match.start() - 1 : match.start()] == "'")
        or (
            text[end : end + 1].isalpha()
            and text[end : end + 2].isupper()
            and text[end : end + 2].isalnum()
            and len(text[end : end + 2]) == 2
        )
    ):
        return None
    decimals = max(-int(value.as_tuple().exponent) for value in readings)
    step = Decimal(1).scaleb(-decimals)
    figures = len(written.replace(",", "").replace(".", "").lstrip("0 '_").replace(" ", ""))
    values = readings
    if (mixed := _MIXED.match(text, end)) is not None and len(written) <= 4:
        values, end = (values[0] + _ratio(mixed[1], mixed[2]),), mixed.end()
    elif (below := _FRACTION.match(text, end)) is not None and written.isdecimal():
        values, end = (_ratio(written, below[1]),), below.end()
    if (power := _POWER.match(text, end)) is not None:
        exponent = int((power[1] or power[2]).replace("−", "-"))
        values, step, end = (
            tuple(value.scaleb(exponent) for value in values),
            step.scaleb(exponent),
            power.end(),
        )
    elif (power := _OF_TEN.match(text, end)) is not None:
        exponent = int(power[1].replace("−", "-"))
        if written != "10":
            return None  # an expression that is not worked out
        values, end = (Decimal(1).scaleb(exponent),), power.end()
    ordinal = _ORDINAL.match(text, end) is not None
    number = Number(values, match.start(), end, step=step, figures=figures, ordinal=ordinal)
    if ordinal:
        return number
    number = _with_unit(number, text, language)
    # "8x", "3D": a letter that is no unit makes it something else.
    return None if number.end == end and re.match(r"[A-Za-z]", text[end:]) else number


def _with_unit(number: Number, text: str, language: str) -> Number:
    """With the magnitude and the unit that follow, or the currency before."""
    end, values, step = number.end, number.values, number.step
    for _ in range(2):
        word = _MAGNITUDE_WORD.match(text, end)
        if word is None:
            break
        form = word[1].casefold()
        spaced = text[end : end + 1] in " -"
        power = _MAGNITUDE.get(word[1][:1]) if word[1][:1] in "万萬만亿億억千천" else _MAGNITUDE.get(form)
        if (
            power is None
            or (len(form) == 1 and form.isascii() and spaced)
            or (form == "m" and not _is_money(text, number.start))
        ):
            break
        if form in ("billion", "billionen") and language in ("de", "es", "nl"):
            power = 12
        values, step = tuple(value.scaleb(power) for value in values), step.scaleb(power)
        end = (
            word.start(1) + 1
            if word[1][:1] in "万萬만亿億억千천"
            else word.end()
            if text[word.end() - 1 : word.end()] != "." or form in ("mio", "mrd", "mln", "тыс", "млн", "млрд")
            else word.end(1)
        )
        while word[1][:1] in "万萬만亿億억" and (more := _MORE.match(text, end)):
            added = Decimal(more[1]).scaleb({"万": 4, "萬": 4, "만": 4, "千": 3, "천": 3}.get(more[2], 0))
            values, end = tuple(value + added for value in values), more.end()
    if (pairs := _PAIRS.match(text, end)) is not None:
        values, end = tuple(dict.fromkeys((*values, *(2 * value for value in values)))), pairs.end()
    unit = unit_after(text, end)
    if unit is None and (before := text[max(0, number.start - 1) : number.start]) in (
        "$",
        "€",
        "£",
        "¥",
        "₹",
    ):
        found = parse_unit(before)
        return replace(number, values=values, step=step, end=end, unit=found)
    if unit is None:
        return replace(number, values=values, step=step, end=end)
    # "1m75", "m s^-1": what goes on is not read.
    cut = re.match(r"\d|\s?[a-z]{1,3}\^[-−]", text[unit[1] :]) is not None
    return replace(number, values=values, step=step, end=unit[1], unit=unit[0], bound=number.bound or cut)


def _is_money(text: str, start: int) -> bool:
    return text[max(0, start - 1) : start] in ("$", "€", "£")


def _in_context(one: Number, found: Sequence[Number], place: int, text: str) -> Number:
    """With what the words around say: "about", "at least", a range."""
    before = text[max(0, one.start - 24) : one.start]
    bound = (
        one.bound
        or _BOUND.search(before) is not None
        or _BOUND_AFTER.match(text[one.end : one.end + 10]) is not None
    )
    for other, gap in (
        (found[place - 1] if place else None, text[found[place - 1].end : one.start] if place else ""),
        (
            found[place + 1] if place + 1 < len(found) else None,
            text[one.end : found[place + 1].start] if place + 1 < len(found) else "",
        ),
    ):
        bound = bound or (
            other is not None and len(gap) <= 8 and _RANGE.match(gap.strip() or "x") is not None
        )
    behind = text[one.end : one.end + 24]
    minus = _MINUS.search(before[-12:]) is not None or _BELOW_ZERO.match(behind) is not None
    values = tuple(-abs(value) for value in one.values) if minus else one.values
    return replace(one, values=values, bound=bound, about=_ABOUT.search(before) is not None)


def _ratio(above: str, below: str) -> Decimal:
    with localcontext() as context:
        context.prec = 34
        return Decimal(above) / Decimal(below)


def _readings(written: str, grouped: bool, language: str) -> tuple[Decimal, ...]:
    """The values that digits with separators may have; none for what is no number (a version, a date)."""
    comma = language.casefold().replace("_", "-").split("-")[0] in _DECIMAL_COMMA
    text = (
        re.sub(r"(?<=\d)[ '_](?=\d)", "", written) if grouped else written.replace("_", "").replace("'", "")
    )
    if grouped:
        return (Decimal(text.replace(",", ".")),)
    dots, commas = text.count("."), text.count(",")
    if not dots and not commas:
        return (Decimal(text),)
    if dots and commas:
        mark = "." if text.rfind(".") > text.rfind(",") else ","
        other = "," if mark == "." else "."
        whole, _, rest = text.rpartition(mark)
        if text.count(mark) > 1 or not _is_grouped(whole, other):
            return ()
        return (Decimal(f"{whole.replace(other, '')}.{rest}"),)
    mark = "." if dots else ","
    groups = _is_grouped(text, mark)
    if text.count(mark) > 1:
        return (Decimal(text.replace(mark, "")),) if groups else ()
    as_point = Decimal(text.replace(",", ".") if not text.startswith(".") else f"0{text}")
    if not groups or text.startswith(("0", ".")):
        return (as_point,)
    as_group = Decimal(text.replace(mark, ""))
    if mark == "," and not comma:
        return (as_group,)
    if mark == "," or (mark == "." and comma):
        return (as_point, as_group) if mark == "," else (as_group, as_point)
    return (as_point,)


def _is_grouped(text: str, mark: str) -> bool:
    """Whether a text is grouped in threes, or as in India in twos above the thousands."""
    parts = text.split(mark)
    if len(parts) == 1:
        return True
    first, middle, last = parts[0], parts[1:-1], parts[-1]
    if not 1 <= len(first) <= 3 or len(last) != 3:
        return False
    return all(len(part) == 3 for part in middle) or (
        mark == "," and len(first) <= 2 and all(len(part) == 2 for part in middle)
    )


# -- targets ------------------------------------------------------------------------------------------------------------


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
    r"\b(?:in|en|in the|how many|wie viele|combien d['e]|cuántos|cuántas|quanti|quante|quantos|hoeveel)\s*((?:degrees\s)?[^\W\d_]+(?:[ /](?:per )?[^\W\d_]+){0,3})",
    re.IGNORECASE,
)


def _asked_unit(unit: str, question: str) -> tuple[Decimal, Unit | None]:
    """The magnitude and the unit that a number without one has: the sample's `unit`, else the one in the question."""
    if unit:
        factor = Decimal(1)
        first, _, rest = unit.partition(" ")
        if first.casefold() in _MAGNITUDE and len(first) > 1:
            factor, unit = Decimal(1).scaleb(_MAGNITUDE[first.casefold()]), rest
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
        self.bounds = re.search(
            r"\b(?:at least|at most|minimum|maximum|limit|up to|more than|less than|how far|range)\b",
            question,
            re.IGNORECASE,
        )

    def judge(self, said: Said) -> Verdict:
        """What a reply is worth. It is not empty and does not decline."""
        text = said.text if len(_LIST_ITEM.findall(said.text)) < 2 else _LIST_ITEM.sub(" ", said.text)
        if said.marked:
            verdict = self._one_of(text)
            return (
                undecided("a change of mind after the answer")
                if said.after and last_revision(said.after)
                else verdict
            )
        change = last_revision(text)
        if change is not None and find_numbers(text[change[1] :], self.language):
            return self._one_of(text[change[1] :])
        verdict = self._one_of(text)
        if verdict.label != "undecided" or verdict.why == NO_NUMBER:
            return verdict
        if len(said.bold) == 1 and find_numbers(said.bold[0], self.language):
            return self._one_of(said.bold[0])
        clauses = [clause for clause in _CLAUSE.split(text) if any(map(str.isalnum, clause))]
        totals = [clause for clause in clauses if _TOTAL.search(clause)]
        first = clauses[0] if clauses else ""
        number_clauses = [clause for clause in clauses if find_numbers(clause, self.language)]
        if totals and number_clauses[-1:] != totals[-1:] and "=" not in totals[-1]:
            return verdict
        if totals and not re.fullmatch(r"\s*[a-zA-Z]\s?=\s?\S+\s*", first):
            return self._one_of(totals[-1])
        opening = find_numbers(first, self.language)
        if (
            len(clauses) > 1
            and len(first.split()) <= 3
            and opening
            and not set(opening[0].values) & self.asked
        ):
            return self._one_of(first)
        return verdict

    def _one_of(self, text: str) -> Verdict:
        """The verdict on a stretch of text that gives one number, in whatever units."""
        numbers = self._answers(text)
        if not numbers:
            return undecided(NO_NUMBER)
        shown = f"'{text[numbers[0].start : numbers[0].end].strip()}'"
        states = {self._state(one) for one in numbers}
        if (
            "≠" in text
            or "!=" in text
            or "?" in text
            or (any(one.bound for one in numbers) and not self.bounds)
        ):
            return undecided(f"{shown} is a bound, a range or a question")
        around = fold(text[max(0, numbers[0].start - 16) : numbers[0].start].casefold()).split()
        after = text[numbers[0].end : numbers[0].end + 12]
        if (
            self.cues.denies(around, "".join(around)[-4:])
            or (not text.isascii() and self.cues.denies(after.casefold().split(), after[:6]))
            or self.cues.denies(after.casefold().split()[:2], "")
        ):
            alone = (
                len(numbers) == 1
                and len(text.split()) <= 8
                and states == {"right"}
                and not self.cues.turn_in(around)
            )
            return (
                incorrect(f"{shown} is denied")
                if alone and self.cues.denies(around[-2:], "")
                else undecided(f"a denial beside {shown}")
            )
        if len(states) > 1 or (states == {"wrong"} and len({one.value for one in numbers}) > 1):
            return undecided(f"several numbers, among them {shown}")
        state = states.pop()
        if state == "right":
            return correct(f"{shown} is the target number")
        return (
            incorrect(f"{shown} is another number")
            if state == "wrong"
            else undecided(f"{shown} may be the target, rounded or in another form")
        )

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
        kept = [one for one in numbers if not one.ordinal and (year or not self._is_year(one, text))]
        rest = [one for one in kept if not set(one.values) & self.asked]
        kept = rest or kept or [one for one in numbers if not one.ordinal]
        digits = [one for one in kept if not one.word or one.value > 10]
        small = [one for one in kept if one.word and one.value <= 3]
        return digits if digits and len(small) + len(digits) == len(kept) and len(kept) > 1 else kept

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
