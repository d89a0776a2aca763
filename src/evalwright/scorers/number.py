"""Numbers: reading them in a text, in digits and words, and whether a reply surely gives the target number, or another.

Digits with separators of both conventions ("1,234.5", "1.234,5", "1 234", "12,34,567"), signs, fractions, powers of ten, magnitudes
("1.5 million", "3万", "5 lakh"), number words (`number_words`) and units (`units`). A number that has two readings has both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext

from evalwright.scorers.number_words import goes_on as _goes_on
from evalwright.scorers.number_words import spelled
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.units import Unit, parse_unit, unit_after

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
MAGNITUDE = {word: power for power, words in _MAGNITUDES.items() for word in words.split()}
_MAGNITUDE_WORD = re.compile(r"[ -]?([^\W\d_](?:[^\W\d_]|[\u0900-\u0dff\u0e00-\u0eff]){0,12})\.?")
_DECIMAL_COMMA = word_set("de es fr it pt nl id vi tr pl ru uk sv da no nb fi cs sk el ro hu bg sr hr sl ca")
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
ABOUT = re.compile(
    r"(?:about|around|roughly|approximately|approx\.?|circa|ca\.?|some|~|≈|etwa|rund|ungefähr|environ|à peu près|unos|unas|aproximadamente|alrededor de|circa|cerca de|ongeveer|около|примерно|приблизительно|"
    r"sekitar|khoảng|大约|约|約|およそ|약|ประมาณ|लगभग)\s?[$€£]?$",
    re.IGNORECASE,
)
_MORE = re.compile(r"\s?(\d{1,4})(?!\d)([万萬만千천]?)")
_BELOW_ZERO = re.compile(
    r"\s?(?:below (?:zero|freezing)|unter null|sous zéro|bajo cero|sotto zero|abaixo de zero)", re.IGNORECASE
)


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
        power = MAGNITUDE.get(word[1][:1]) if word[1][:1] in "万萬만亿億억千천" else MAGNITUDE.get(form)
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
    return replace(one, values=values, bound=bound, about=ABOUT.search(before) is not None)


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
