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
length|1|~m ~meter ~metre metern metri metros ~metro mètre mètres метр метра метров метрах м 米 公尺 メートル 미터 mét เมตร मीटर metr metrów متر مترا متراً
length|1000|км километр километра километров 公里 千米 キロメートル キロ 킬로미터 กิโลเมตร किलोमीटर kilómetro kilómetros kilomètre kilomètres chilometri quilómetro quilômetro quilómetros quilômetros كم كيلومتر ki-lô-mét
length|0.01|см сантиметр сантиметров 厘米 センチ センチメートル 센티미터 เซนติเมตร सेंटीमीटर centymetr centymetrów centímetros centimètres santimetre
length|0.001|мм миллиметров 毫米 ミリ ミリメートル 밀리미터 มิลลิเมตร
length|0.0254|inch inches zoll
length|0.3048|foot feet ft
length|0.9144|yard yards yd
length|1609.344|mile miles mi meilen milles millas miglia milhas
length|1852|nautical_mile nautical_miles nmi
length|149597870700|AU astronomical_unit astronomical_units
length|9460730472580800|light_year light_years ly lightyears lichtjahre
length|30856775814913673|~pc ~parsec
mass|0.001|~g ~gram ~gramme ~gramm gramos grammi gramas г грамм граммов 克 グラム 그램 กรัม ग्राम gam جرام غرام
mass|1|кг кило kilo kilos килограмм килограммов 公斤 千克 キログラム 킬로그램 กิโลกรัม किलोग्राम kilogramo kilogramos quilograma quilogramas chilogrammi كيلوغرام
mass|0.5|斤
mass|1000|t tonne tonnes tonnen ton tons metric_tons metric_tonnes 吨 トン 톤 тонн tonnellate toneladas
mass|0.45359237|pound pounds lb lbs
mass|0.028349523125|ounce ounces oz
time|1|~s ~second ~sec sekunde sekunden seconde secondes segundo segundos secondi detik giây 秒 秒間 초 секунд วินาที saniye sekund ثانية
time|60|minute minutes min mins minuten minuto minutos minuti menit phút 分 分钟 分間 분 минут минуты นาที dakika minut دقيقة मिनट
time|3600|hour hours h hr hrs stunde stunden heure heures hora horas ore jam giờ 小时 小時 時間 시간 час часа часов ชั่วโมง saat godzin ساعة घंटे
time|86400|day days tag tage tagen jour jours día días dia dias giorno giorni hari ngày 天 日間 일 день дня дней วัน gün dni dzień يوم يوما يومًا أيام दिन
time|604800|week weeks woche wochen semaine semaines semana semanas settimane minggu tuần 周 недель
year|0.083333333333333333333333333333|month months monat monate mois mes meses mesi bulan tháng 个月 か月 ヶ月 개월 месяцев
year|1000000|Myr Ma
year|1000000000|Gyr Ga
year|1|year years yr yrs jahr jahre jahren ans année années año años ano anos anni tahun năm 年 年間 년 год года лет годов ปี वर्ष साल yıl lat سنة
year|10|decade decades
year|100|century centuries
year|1000|millennium millennia
temperature|1|k kelvin kelvins
celsius|1|°c celsius degree_celsius degrees_celsius degrees_centigrade grad_celsius degrés_celsius grados_celsius 摄氏度 ℃
fahrenheit|1|°f fahrenheit degree_fahrenheit degrees_fahrenheit ℉
angle|1|° degree degrees grad degrés grados gradi graus градусов 度 도
angle|57.295779513082320876798154814|radian radians rad
volume|0.001|~l ~liter ~litre ~litro litri litros litrów 升 リットル 리터 литр литра литров ลิตร लीटर
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
charge|1|coulomb coulombs
resistance|1|~ohm Ω
data|1|~b ~byte
data|0.125|~bit
amount|1|~mol mole moles
speed|0.514444444444444444444444444444|knot knots kn
speed|0.44704|mph
percent|0.1|‰
percent|1|% percent per_cent prozent pourcent por_ciento per_cento por_cento procent процент процента процентов persen phần_trăm 퍼센트 パーセント yüzde
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
    "kilo": 3, "mega": 6, "giga": 9, "tera": 12, "milli": -3, "micro": -6, "nano": -9, "centi": -2, "zenti": -2, "deci": -1, "hecto": 2,
}  # fmt: skip
_POWERS = {
    "square": 2,
    "sq": 2,
    "quadrat": 2,
    "cubic": 3,
    "kubik": 3,
    "平方": 2,
    "立方": 3,
    "²": 2,
    "³": 3,
    "2": 2,
    "3": 3,
}
_WORD = re.compile(
    r"[ -]?(?:(?P<power>square|sq|quadrat|cubic|kubik|平方|立方)[ -]?)?"
    r"(?P<name>°\s?[CFcf](?![A-Za-z])|[A-Za-zÀ-ɏΩµμ]{1,24}|[^\W\d_²³]{1,16}|[%‰°$€£¥₹])(?:\^?(?P<raised>[23²³])(?!\d))?",
    re.IGNORECASE,
)
_SECOND = re.compile(r"[ -]([^\W\d_]{1,16})")
_PER = re.compile(r"\s?/\s?| per (?:an? )?| pro | par | por | a(?=s )")
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

Dimensions = tuple[tuple[str, int], ...]
PERCENT: Dimensions = (("percent", 1),)
_SCALES: dict[Dimensions, tuple[Decimal, Decimal]] = {
    (("temperature", 1),): (Decimal(1), Decimal(0)),
    (("celsius", 1),): (Decimal(1), Decimal("273.15")),
    (("fahrenheit", 1),): (Decimal(5) / 9, Decimal("459.67") * 5 / 9),
}
"""Temperatures: kelvins in a degree, and where the scale begins."""
_DERIVED = {"volume": ("length", 3), "area": ("length", 2)}


class Unit(NamedTuple):
    """factor: base units in one. dimensions: name and power of each, sorted."""

    factor: Decimal
    dimensions: Dimensions

    def of(self, value: Decimal, other: Unit) -> Decimal | None:
        """`value` of this unit in another; None where they do not measure the same."""
        mine, theirs = self.dimensions, other.dimensions
        if mine == theirs:
            return value * self.factor / other.factor
        if {mine, theirs} <= _SCALES.keys():
            (ratio, offset), (other_ratio, other_offset) = _SCALES[mine], _SCALES[theirs]
            return (value * ratio + offset - other_offset) / other_ratio
        return None

    def ratios(self) -> set[Decimal]:
        """How many of this unit each unit of the table that measures the same is."""
        return {
            factor / self.factor
            for factor, dimension in _names().values()
            if ((dimension, 1),) == self.dimensions
        }


@lru_cache(maxsize=1)
def _names() -> dict[str, tuple[Decimal, str]]:
    out: dict[str, tuple[Decimal, str]] = {}
    for row in _TABLE.strip().splitlines():
        dimension, factor, names = row.split("|")
        for name in names.split():
            bare = name.lstrip("~")
            prefixes = {} if name == bare else _LONG_PREFIXES if len(bare) > 3 else _PREFIXES
            for form in {bare, bare + "s"} if len(bare) > 3 and bare.isascii() else {bare}:
                out.setdefault(form, (Decimal(factor), dimension))
                for prefix, power in prefixes.items():
                    out.setdefault(prefix + form, (Decimal(factor).scaleb(power), dimension))
    return out


def unit_after(text: str, start: int) -> tuple[Unit, int] | None:
    """The unit that begins at a place of a text, and where it ends."""
    found = _one(text, start)
    if found is None:
        return None
    factor, powers, end = found
    while (joint := _PER.match(text, end)) is not None and (other := _one(text, joint.end())) is not None:
        factor /= other[0]
        for name, power in other[1].items():
            powers[name] = powers.get(name, 0) - power
        end = other[2]
    dimensions = tuple(sorted((name, power) for name, power in powers.items() if power))
    return Unit(factor, (("speed", 1),) if dimensions == (("length", 1), ("time", -1)) else dimensions), end


def _one(text: str, start: int) -> tuple[Decimal, dict[str, int], int] | None:
    match = _WORD.match(text, start)
    if match is None:
        return None
    names, written, end = _names(), match["name"].replace(" ", ""), match.end("name")
    second = _SECOND.match(text, end)
    forms = [(f"{written}_{second[1]}".casefold(), second.end())] if second else []
    forms += [(written, end), (written.casefold(), end)]
    if _SPACELESS.match(written):  # the unit, then a particle or the next word
        forms += [(written[:size], end - len(written) + size) for size in range(len(written) - 1, 0, -1)]
    elif text[end : end + 1].isalpha() and not _SPACELESS.match(text, end):
        return None  # the beginning of a longer word
    for form, stop in forms:
        if form in names:
            factor, dimension = names[form]
            power = _POWERS.get((match["power"] or "").casefold(), 1)
            if match["raised"] and stop == end:
                power, stop = _POWERS[match["raised"]], match.end("raised")
            name, times = _DERIVED.get(dimension, (dimension, 1))
            return factor**power, {name: times * power}, stop
    return None


def parse_unit(text: str) -> Unit | None:
    """The unit that a text such as "km/h" names; None where the table does not have it."""
    found = unit_after(text.strip(), 0)
    return found[0] if found and not text.strip()[found[1] :].strip(" .") else None
