"""Units as a table: what a unit is called, what it measures, and how many base units it is.

A unit is a factor, an offset (temperatures only) and dimensions, a product of powers of base dimensions; so "km/h",
"kilometres per hour" and "m s^-1" are composed from rows of the table and convert into each other without rows of their own.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.numbers.words import SCALES
from evalwright.scorers.text.wordlists import word_set

Dimensions = tuple[tuple[str, int], ...]


class Unit(NamedTuple):
    """value in base units = number * factor + offset. scale: the part of `factor` that is a word such as "million"."""

    factor: Decimal
    dimensions: Dimensions
    offset: Decimal = Decimal(0)
    scale: Decimal = Decimal(1)


# symbols (case counts; ~ before one: takes SI prefixes) | names (case does not count; ~: takes prefixes) | dimensions | factor
_TABLE = """
~m | ~metre ~meter ~mètre ~metro ~metri mét ~मीटर மீட்டர் เมตร 米 公尺 メートル 미터 | length 1 | 1
in ″ | inch inches | length 1 | 0.0254
ft | foot feet | length 1 | 0.3048
yd | yard | length 1 | 0.9144
mi | mile miles | length 1 | 1609.344
nmi NM | nautical_mile | length 1 | 1852
au AU | astronomical_unit | length 1 | 149597870700
ly | light_year light-year lightyear | length 1 | 9460730472580800
~pc | ~parsec | length 1 | 30856775814913673
Å | angstrom ångström | length 1 | 0.0000000001
fathom | fathom | length 1 | 1.8288
km | chilometro chilometri quilómetro quilômetro kilómetro kilomètre cây_số ki-lô-mét กิโลเมตร किलोमीटर கிலோமீட்டர் 公里 千米 キロメートル 킬로미터 | length 1 | 1000
cm | centímetro centimètre centimetro centimetri 厘米 公分 センチメートル センチ 센티미터 เซนติเมตร | length 1 | 0.01
~g | 克 グラム 그램 กรัม ~gram ~gramme | mass 1 | 0.001
kilo kilos | kilo kilos chilo chili kilogramo kilogramme chilogrammo chilogrammi quilograma quilogramme 公斤 千克 キログラム 킬로그램 กิโลกรัม किलोग्राम கிலோகிராம் | mass 1 | 1
~t | 吨 噸 トン 톤 ตัน tonelada tonnellata tonnellate ~tonne metric_ton metric_tonne | mass 1 | 1000
lb lbs | pound_mass pounds_mass lb lbs pound pounds | mass 1 | 0.45359237
oz | ounce | mass 1 | 0.028349523125
st | stone | mass 1 | 6.35029318
ct | carat | mass 1 | 0.0002
Da u ~Da | dalton ~dalton atomic_mass_unit amu | mass 1 | 0.00000000000000000000000000166053906660
ton tons | ton | mass 1 | 1000
~s sec secs | sekunde sekunden segundo secondi segundos seconde secondes detik giây วินาที 秒 초 ~second sec secs | time 1 | 1
min mins | minuten minuto minutos minuti menit minit phút นาที मिनट நிமிடம் நிமிடங்கள் 分钟 分鐘 分間 分 분 minute min mins | time 1 | 60
h hr hrs | stunde stunden heure heures hora horas ore giờ jam ชั่วโมง घंटे घंटा மணிநேரம் 小时 小時 時間 시간 hour hr hrs | time 1 | 3600
d | tag tage tagen jour jours día días dias giorno giorni hari ngày araw วัน दिन நாள் நாட்கள் 天 日間 일간 day | time 1 | 86400
wk | week | time 1 | 604800
fortnight | fortnight | time 1 | 1209600
mo | month | month 1 | 1
yr yrs | jahr jahre jahren ans année années año años ano anos anno anni tahun năm taon ปี वर्ष साल ஆண்டு ஆண்டுகள் 年 年間 년 year yr yrs | month 1 | 12
decade | decade | month 1 | 120
century | century centuries | month 1 | 1200
millennium | millennium millennia | month 1 | 12000
Myr Ma | | month 1 | 12000000
Gyr Ga | | month 1 | 12000000000
°C ℃ degC | degree_celsius degrees_celsius celsius degree_centigrade degrees_centigrade centigrade deg_c °c | temperature 1 | 1 | 273.15
°F ℉ degF | degree_fahrenheit degrees_fahrenheit fahrenheit deg_f °f | temperature 1 | 0.5555555555555555555555555556 | 255.3722222222222222222222222
~K | ~kelvin degrees_kelvin | temperature 1 | 1
° deg | degree degrees deg | degree 1 | 1
rad | radian | angle 1 | 1
~A amp amps | ~ampere amp | current 1 | 1
~C | ~coulomb | current 1 time 1 | 1
~mol | ~mole | amount 1 | 1
~cd | candela | luminosity 1 | 1
ha | hectare | length 2 | 10000
ac | acre | length 2 | 4046.8564224
~L ~l ltr | ~litre ~liter | length 3 | 0.001
gal | gallon us_gallon | length 3 | 0.003785411784
pt | pint us_pint | length 3 | 0.000473176473
bbl | barrel | length 3 | 0.158987294928
cc | | length 3 | 0.000001
kn kt kts | knot | length 1 time -1 | 0.5144444444444444444444444444
mph | | length 1 time -1 | 0.44704
kph kmh | | length 1 time -1 | 0.2777777777777777777777777778
~N | ~newton | mass 1 length 1 time -2 | 1
~Pa | ~pascal | mass 1 length -1 time -2 | 1
~bar | ~bar | mass 1 length -1 time -2 | 100000
atm | atmosphere | mass 1 length -1 time -2 | 101325
psi | | mass 1 length -1 time -2 | 6894.757293168
mmHg | | mass 1 length -1 time -2 | 133.322387415
~J | ~joule | mass 1 length 2 time -2 | 1
~Wh | ~watt_hour ~watt-hour ~watthour | mass 1 length 2 time -2 | 3600
~eV | ~electronvolt electron_volt | mass 1 length 2 time -2 | 0.0000000000000000001602176634
~cal | ~calorie | mass 1 length 2 time -2 | 4.184
BTU Btu | | mass 1 length 2 time -2 | 1055.05585262
~W | ~watt | mass 1 length 2 time -3 | 1
hp | horsepower | mass 1 length 2 time -3 | 745.69987158227022
~V | ~volt | mass 1 length 2 time -3 current -1 | 1
~Ω ~ohm | ~ohm | mass 1 length 2 time -3 current -2 | 1
~F | ~farad | mass -1 length -2 time 4 current 2 | 1
~T | ~tesla | mass 1 time -2 current -1 | 1
~Hz | ~hertz | time -1 | 1
rpm | | time -1 | 0.01666666666666666666666666667
~bit ~b | ~bit | data 1 | 1
~B | ~byte | data 1 | 8
KB | | data 1 | 8000
Kb | | data 1 | 1000
KiB | kibibyte | data 1 | 8192
MiB | mebibyte | data 1 | 8388608
GiB | gibibyte | data 1 | 8589934592
TiB | tebibyte | data 1 | 8796093022208
qubit | qubit | qubit 1 | 1
dB | decibel | decibel 1 | 1
pH | ph | acidity 1 | 1
% ٪ | prozent pour_cent por_ciento por_cento per_cento persen peratus phần_trăm porsyento เปอร์เซ็นต์ ร้อยละ प्रतिशत சதவீதம் パーセント 퍼센트 percent per_cent pct percentage percentage_point percentage_points | percent 1 | 1
‰ | permille per_mille | percent 1 | 0.1
ppm | | percent 1 | 0.0001
$ US$ USD | us_dollar american_dollar united_states_dollar dollar | usd 1 | 1
¢ | cent | usd 1 | 0.01
€ EUR | euro | eur 1 | 1
£ GBP | pound_sterling british_pound pounds_sterling | gbp 1 | 1
¥ JPY 円 | yen japanese_yen | jpy 1 | 1
CNY RMB 元 | yuan renminbi | cny 1 | 1
₩ KRW 원 | won korean_won | krw 1 | 1
₹ INR Rs | rupee indian_rupee | inr 1 | 1
₿ BTC | bitcoin | btc 1 | 1
CHF | franc swiss_franc | chf 1 | 1
SEK NOK DKK CZK kr | crown krona kronor krone kroner koruna | crown 1 | 1
IDR Rp | rupiah indonesian_rupiah | idr 1 | 1
THB ฿ | baht thai_baht | thb 1 | 1
VND ₫ | dong vietnamese_dong | vnd 1 | 1
PHP ₱ | peso philippine_peso | php 1 | 1
MYR RM | ringgit malaysian_ringgit | myr 1 | 1
SGD S$ | singapore_dollar | sgd 1 | 1
RUB ₽ | rouble ruble | rub 1 | 1
A$ AUD | australian_dollar | aud 1 | 1
C$ CAD | canadian_dollar | cad 1 | 1
BC BCE | b.c b.c. b.c.e b.c.e. | before_christ 1 | 1
AD CE | a.d a.d. c.e c.e. | anno_domini 1 | 1
"""
_PREFIXES = {
    "Q": 30, "R": 27, "Y": 24, "Z": 21, "E": 18, "P": 15, "T": 12, "G": 9, "M": 6, "k": 3, "h": 2, "da": 1, "d": -1, "c": -2,
    "m": -3, "µ": -6, "μ": -6, "u": -6, "n": -9, "p": -12, "f": -15, "a": -18,
}  # fmt: skip
_PREFIX_NAMES = {
    "exa": 18, "peta": 15, "tera": 12, "giga": 9, "mega": 6, "kilo": 3, "hecto": 2, "deca": 1, "deci": -1, "centi": -2,
    "milli": -3, "micro": -6, "nano": -9, "pico": -12, "femto": -15,
}  # fmt: skip
_SYMBOL_SCALES = {
    "k": 3,
    "K": 3,
    "M": 6,
    "mn": 6,
    "mln": 6,
    "mio": 6,
    "Mio": 6,
    "bn": 9,
    "B": 9,
    "Mrd": 9,
    "tn": 12,
    "trn": 12,
}
_USUAL = "km cm mm kg ml kWh MWh GWh TWh kW GW kJ GJ kB MB GB TB kHz MHz GHz Hz eV keV kPa hPa mph min hr yr lb oz ft"
_CASELESS = {symbol.casefold(): symbol for symbol in _USUAL.split(" ")}
CURRENCY_SIGNS = frozenset("$€£¥₩₹₿฿₫₱₽¢")


def _rows() -> tuple[dict[str, Unit], dict[str, Unit], frozenset[str], frozenset[str]]:
    symbols: dict[str, Unit] = {}
    names: dict[str, Unit] = {}
    prefixable_symbols: set[str] = set()
    prefixable_names: set[str] = set()
    for line in _TABLE.strip().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        powers = cells[2].split()
        dimensions = tuple(sorted((powers[i], int(powers[i + 1])) for i in range(0, len(powers), 2)))
        unit = Unit(Decimal(cells[3]), dimensions, Decimal(cells[4]) if len(cells) > 4 else Decimal(0))
        for table, cell, prefixable in (
            (symbols, cells[0], prefixable_symbols),
            (names, cells[1], prefixable_names),
        ):
            for name in cell.split():
                bare = name.removeprefix("~").replace("_", " ")
                table[bare] = unit
                if name.startswith("~"):
                    prefixable.add(bare)
    return symbols, names, frozenset(prefixable_symbols), frozenset(prefixable_names)


_SYMBOLS, _NAMES, _PREFIXABLE, _PREFIXABLE_NAMES = _rows()
_POWER = re.compile(r"\^?\(?([-+]?[1-9])\)?$")
_PER = re.compile(r"\s*(?:/|\bper\b|\ba\b|\ban\b)\s*")
_TIMES = re.compile(r"\s*[·×*⋅]\s*|\s+(?=\S+\^-)|(?<=[a-zA-Z])-(?=[a-zA-Z])")
_LONGEST = 48


@lru_cache(maxsize=8192)
def parse_unit(text: str) -> Unit | None:
    """The unit that a text names as a whole, e.g. "km", "metres per second", "million US dollars"; None if it names none."""
    text = " ".join(text.split())
    if not text or len(text) > _LONGEST:
        return None
    whole = _simple(text)
    if whole is not None:
        return whole
    if text.startswith("per ") and text != "per cent":
        return None
    parts = _PER.split(text.replace("per cent", "percent"))
    if len(parts) > 3 or not all(parts):
        return None
    result: Unit | None = None
    for position, part in enumerate(parts):
        product = _product(part)
        if product is None:
            return None
        result = product if result is None else _times(result, product, -1 if position else 1)
    return result


def target_unit(text: str) -> Unit | None:
    """The unit of a task's target. A word that the table lacks is a unit of its own kind; "" is no unit."""
    text = text.strip()
    if not text:
        return None
    known = parse_unit(text)
    return known or Unit(Decimal(1), ((_singular(text.casefold()), 1),))


def _product(text: str) -> Unit | None:
    whole = _simple(text)
    if whole is not None:
        return whole
    parts = [part for part in _TIMES.split(text) if part]
    if not 2 <= len(parts) <= 4:
        return None
    result: Unit | None = None
    for part in parts:
        unit = _simple(part)
        if unit is None:
            return None
        result = unit if result is None else _times(result, unit, 1)
    return result


def _times(left: Unit, right: Unit, power: int) -> Unit:
    dimensions = dict(left.dimensions)
    for name, exponent in right.dimensions:
        dimensions[name] = dimensions.get(name, 0) + power * exponent
    kept = tuple(sorted((name, exponent) for name, exponent in dimensions.items() if exponent))
    return Unit(left.factor * right.factor**power, kept, Decimal(0), left.scale)


def _simple(text: str) -> Unit | None:
    """One unit with its power and scale words: "km", "square miles", "m^2", "cubic metres", "billion dollars"."""
    unit = _named(text)
    if unit is not None:
        return unit
    first, _, rest = text.partition(" ")
    lowered = first.casefold()
    if rest:
        power = {"square": 2, "sq": 2, "sq.": 2, "cubic": 3, "cu": 3}.get(lowered)
        if power is not None:
            inner = _named(rest)
            return None if inner is None else _power(inner, power)
        scale = SCALES.get(lowered) or _symbol_scale(first)
        if scale is not None:
            inner = _simple(rest.removeprefix("of "))
            return (
                None
                if inner is None
                else inner._replace(factor=inner.factor * scale, scale=inner.scale * scale)
            )
        if rest in ("squared", "cubed"):
            inner = _named(first)
            return None if inner is None else _power(inner, 2 if rest == "squared" else 3)
    found = _POWER.search(text)
    if found is not None and found.start():
        inner = _named(text[: found.start()].strip())
        return (
            None if inner is None or inner.dimensions[0][0] == "month" else _power(inner, int(found.group(1)))
        )
    return None


def _symbol_scale(text: str) -> Decimal | None:
    exponent = _SYMBOL_SCALES.get(text)
    return None if exponent is None else Decimal(10) ** exponent


def symbol_scale(text: str) -> Decimal | None:
    """What a magnitude written as letters after a number stands for: "k", "M", "bn"; None for anything else."""
    return _symbol_scale(text)


_PHYSICAL = word_set(
    "length mass time month temperature degree angle current amount luminosity data qubit decibel acidity percent before_christ anno_domini"
)


def is_money(unit: Unit) -> bool:
    """Whether a unit is a currency (or a kind of its own that no table has)."""
    return len(unit.dimensions) == 1 and unit.dimensions[0][0] not in _PHYSICAL


def _power(unit: Unit, power: int) -> Unit | None:
    if not -4 <= power <= 4 or unit.offset:
        return None
    return Unit(unit.factor**power, tuple((name, exponent * power) for name, exponent in unit.dimensions))


def _named(text: str) -> Unit | None:
    unit = _symbol(text if text != "mb" else "MB")
    if unit is not None:
        return unit
    lowered = text.casefold()
    for name in (lowered, _singular(lowered)):
        if (unit := _NAMES.get(name)) is not None:
            return unit
        for prefix, exponent in _PREFIX_NAMES.items():
            if name.startswith(prefix) and name[len(prefix) :].lstrip("-") in _PREFIXABLE_NAMES:
                return _prefixed(_NAMES[name[len(prefix) :].lstrip("-")], exponent)
    # "KM" and "kwh" are how people write; only the forms of this list, because "MW" is not "mW".
    usual = _CASELESS.get(lowered)
    return None if usual is None else _symbol(usual)


def _symbol(text: str) -> Unit | None:
    if (unit := _SYMBOLS.get(text)) is not None:
        return unit
    for size in (1, 2):
        exponent = _PREFIXES.get(text[:size])
        if exponent is not None and text[size:] in _PREFIXABLE:
            return _prefixed(_SYMBOLS[text[size:]], exponent)
    return None


def _prefixed(unit: Unit, exponent: int) -> Unit:
    return unit._replace(factor=unit.factor.scaleb(exponent))


def _singular(word: str) -> str:
    if word.endswith("ss") or len(word) < 4:
        return word
    if " per " in word:
        head, _, tail = word.partition(" per ")
        return f"{_singular(head)} per {tail}"
    return word[:-2] if word.endswith(("ches", "xes")) else word.removesuffix("s")


def convert(value: Decimal, unit: Unit, into: Unit) -> Decimal:
    """A number of one unit as a number of another of the same dimensions."""
    if unit == into:
        return value
    return (value * unit.factor + unit.offset - into.offset) / into.factor
