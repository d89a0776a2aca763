"""Units as a small table: what a unit is called, what it measures and how many base units it is.

"km/h", "kilometres per hour" and "m²" are composed from rows of the table.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

# dimension | factor | names; those that begin with ~ also with the prefixes kilo, mega, giga, milli, micro, nano, centi
_TABLE = """
length|1|~m ~meter ~metre ~metern ~mètre ~metro ~metri метр метров м 米 公尺 メートル 미터 mét เมตร मीटर
length|1000|км километров километра 公里 千米 キロメートル 킬로미터 กิโลเมตร किलोमीटर kilómetro kilomètre chilometri quilómetro quilômetro
length|0.0254|inch inches zoll
length|0.3048|foot feet ft
length|0.9144|yard yards yd
length|1609.344|mile miles mi
length|1852|nautical_mile nautical_miles nmi
length|149597870700|AU astronomical_unit astronomical_units
length|9460730472580800|light_year light_years ly lightyears
length|30856775814913673|~pc ~parsec
mass|0.001|~g ~gram ~gramme ~gramm г грамм 克 グラム 그램
mass|1|кг кило kilo kilos 公斤 千克 キログラム 킬로그램 kilogramo quilograma
mass|1000|t tonne tonnes tonnen ton tons metric_tons metric_tonnes 吨 トン 톤 тонн tonnellate toneladas
mass|0.45359237|pound pounds lb lbs
mass|0.028349523125|ounce ounces oz
time|1|~s ~second ~sec sekunde sekunden seconde secondes segundo segundos secondi detik giây 秒 초 секунд วินาที
time|60|minute minutes min mins minuten minuto minutos minuti menit phút 分 分钟 분 минут นาที
time|3600|hour hours h hr hrs stunde stunden heure heures hora horas ore jam giờ 小时 時間 시간 часов часа ชั่วโมง
time|86400|day days tag tage tagen jour jours día días dia dias giorno giorni hari ngày 天 日間 дней วัน
time|604800|week weeks woche wochen semaine semaines semana semanas settimane minggu tuần 周
year|0.083333333333333333333333333333|month months monat monate mois mes meses mesi bulan tháng 个月
year|1000000|Myr Ma
year|1000000000|Gyr Ga
year|1|year years yr yrs jahr jahre jahren ans année années año años ano anos anni tahun năm 年 年間 년 лет годов ปี वर्ष साल
year|10|decade decades
year|100|century centuries
year|1000|millennium millennia
temperature|1|k kelvin kelvins
celsius|1|°c celsius degree_celsius degrees_celsius degrees_centigrade grad_celsius degrés_celsius grados_celsius 摄氏度 ℃
fahrenheit|1|°f fahrenheit degree_fahrenheit degrees_fahrenheit ℉
angle|1|° degree degrees grad degrés grados gradi graus градусов
angle|57.295779513082320876798154814|radian radians rad
volume|0.001|~l ~liter ~litre ~litro litri 升 リットル 리터 литров
volume|0.003785411784|gallon gallons gal
volume|0.158987294928|barrel barrels
area|10000|hectare hectares ha hektar hectáreas
area|4046.8564224|acre acres
frequency|1|~hz ~hertz
force|1|~n ~newton
energy|1|~j ~joule
energy|4.184|~cal ~calorie
energy|3600000|kwh kilowatt_hour kilowatt_hours kilowattstunden
energy|1.602176634e-19|~ev ~electronvolt
power|1|~w ~watt
pressure|1|~pa ~pascal
pressure|101325|atm atmosphere atmospheres
voltage|1|~v ~volt
current|1|~ampere ~amp
resistance|1|~ohm Ω
data|1|~b ~byte
data|0.125|~bit
amount|1|~mol mole moles
speed|0.514444444444444444444444444444|knot knots kn
speed|0.44704|mph
percent|0.1|‰
percent|1|% percent per_cent prozent pourcent por_ciento per_cento por_cento procent процентов процента persen phần_trăm 퍼센트 パーセント ％
usd|1|$ dollar dollars usd us_dollars
eur|1|€ euro euros eur
gbp|1|£ gbp pounds_sterling
jpy|1|¥ yen jpy 円
inr|1|₹ rupee rupees inr
"""
_PREFIXES = {
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "m": -3,
    "µ": -6,
    "μ": -6,
    "u": -6,
    "n": -9,
    "c": -2,
    "d": -1,
    "h": 2,
}
_LONG_PREFIXES = {
    "kilo": 3,
    "mega": 6,
    "giga": 9,
    "tera": 12,
    "milli": -3,
    "micro": -6,
    "nano": -9,
    "centi": -2,
    "deci": -1,
    "hecto": 2,
}
_POWERS = {"²": 2, "³": 3, "^2": 2, "^3": 3, "2": 2, "3": 3}
_PIECE = re.compile(r"[^\W\d_]+(?:_[^\W\d_]+)*|[%°$€£¥₹℃℉％Ω]")
_WORD = re.compile(
    r"[ -]?((?:square|cubic|sq|quadrat)[ -]?)?(°\s?[CFcf](?!\w)|[^\W\d_²³]{1,24}|[%‰°$€£¥₹℃℉％Ω])(\^?[23²³](?!\d))?",
    re.IGNORECASE,
)


class Unit(NamedTuple):
    """factor: base units in one. dimensions: name and power of each, sorted. Temperatures have an offset by their dimension's name."""

    factor: Decimal
    dimensions: tuple[tuple[str, int], ...]

    def of(self, value: Decimal, other: Unit) -> Decimal | None:
        """`value` of this unit in another; None where they do not measure the same."""
        mine, theirs = self.dimensions, other.dimensions
        if mine == theirs:
            return value * self.factor / other.factor
        if {mine, theirs} <= _SCALES.keys():
            ratio, offset = _SCALES[mine]
            kelvin = value * ratio + offset
            ratio, offset = _SCALES[theirs]
            return (kelvin - offset) / ratio
        return None


_SCALES: dict[tuple[tuple[str, int], ...], tuple[Decimal, Decimal]] = {
    (("temperature", 1),): (Decimal(1), Decimal(0)),
    (("celsius", 1),): (Decimal(1), Decimal("273.15")),
    (("fahrenheit", 1),): (Decimal(5) / 9, Decimal("459.67") * 5 / 9),
}
_BASE = {"volume": ("length", 3), "area": ("length", 2)}


@lru_cache(maxsize=1)
def _names() -> dict[str, tuple[Decimal, str]]:
    out: dict[str, tuple[Decimal, str]] = {}
    for row in _TABLE.strip().splitlines():
        dimension, factor, names = row.split("|")
        for name in names.split():
            bare = name.lstrip("~")
            for form in {bare, bare + "s"} if len(bare) > 3 and bare.isascii() else {bare}:
                out.setdefault(form, (Decimal(factor), dimension))
                for prefix, power in (
                    (_LONG_PREFIXES if len(bare) > 3 else _PREFIXES).items() if name != bare else ()
                ):
                    out.setdefault(prefix + form, (Decimal(factor).scaleb(power), dimension))
    return out


def unit_after(text: str, start: int) -> tuple[Unit, int] | None:
    """The unit that begins at a place of a text, and where it ends."""
    found = _one(text, start)
    if found is None:
        return None
    factor, powers, end = found
    while (
        joint := re.compile(r"\s?/\s?| per (?:an? )?| pro | par | por | a(?=s )").match(text, end)
    ) is not None:
        other = _one(text, joint.end())
        if other is None:
            break
        factor /= other[0]
        for name, power in other[1].items():
            powers[name] = powers.get(name, 0) - power
        end = other[2]
    dimensions = tuple(sorted((name, power) for name, power in powers.items() if power))
    return Unit(factor, _speed(dimensions)), end


def _speed(dimensions: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    return (("speed", 1),) if dimensions == (("length", 1), ("time", -1)) else dimensions


def _one(text: str, start: int) -> tuple[Decimal, dict[str, int], int] | None:
    match = _WORD.match(text, start)
    if match is None:
        return None
    names = _names()
    longer = re.compile(r"[ -]([^\W\d_]{1,16})").match(text, match.end(2))
    written = match[2].replace(" ", "")
    for form, end in ([(f"{written}_{longer[1]}".casefold(), longer.end())] if longer else []) + [
        (written, match.end(2)),
        (written.casefold(), match.end(2)),
    ]:
        if form in names:
            factor, dimension = names[form]
            square = (match[1] or "").casefold()
            power = 2 if square.startswith(("sq", "qu")) else 3 if square.startswith("cu") else 1
            if end == match.end(2) and match[3]:
                power, end = _POWERS[match[3]], match.end(3)
            name, times = _BASE.get(dimension, (dimension, 1))
            return factor**power, {name: times * power}, end
    return None


def parse_unit(text: str) -> Unit | None:
    """The unit that a text such as "km/h" names; None where the table does not have it."""
    found = unit_after(text.strip(), 0)
    return found[0] if found and not text.strip()[found[1] :].strip(" .") else None
