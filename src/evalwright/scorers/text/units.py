"""Units and counters: what stands after a number (`numbers.toml`).

A unit has a name, what it measures, and how many base units it is; "km/h", "kilometres per hour"
and "m²" are composed from rows of the table. A counter says what a Korean, Japanese or Chinese
number counts ("3개", "두 마리", "3番目").
"""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.core.lazy import lazy_pattern

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
    "zenti": -2,
    "deci": -1,
    "hecto": 2,
}
_WORD = lazy_pattern(
    r"[ -]?(?:(?P<power>square|sq|quadrat|cubic|kubik|平方|立方|제곱|세제곱|ตาราง|квадратн\w{2,4}"
    r"|кубическ\w{2,4}|vierkante|kubieke)["
    r" -]?)?"
    r"(?P<name>°\s?[CFcf](?![A-Za-z])|[A-Za-zÀ-ɏΩµμ]{1,24}|[^\W\d_²³]{1,16}|[%‰°$€£¥₹₩])(?:\^?"
    r"(?P<raised>[23²³])(?!\d)|["
    r" -](?P<after>carr[ée]e?s?|cuadrad[oa]s?|quadrat[io]|quadrad[oa]s?|vuông|persegi|cubes?"
    r"|cúbic[oa]s?|cub[io]|khối|kubik)(?!\w))?",
    re.IGNORECASE,
)
_SECOND = lazy_pattern(r"[ -]([^\W\d_]{1,16})")
_PER = lazy_pattern(
    r"\s?/\s?| per (?:an? )?| pro | par | por | al? (?=s |ora)| an?"
    r" (?=hour|minute|second|day|year)| à l'| в | за "
)
_SPACELESS = lazy_pattern(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

Dimensions = tuple[tuple[str, int], ...]
PERCENT: Dimensions = (("percent", 1),)
_SCALES: dict[Dimensions, tuple[Decimal, Decimal]] = {
    (("temperature", 1),): (Decimal(1), Decimal(0)),
    (("celsius", 1),): (Decimal(1), Decimal("273.15")),
    (("fahrenheit", 1),): (Decimal(5) / 9, Decimal("459.67") * 5 / 9),
}
"""Temperature scales: kelvins per degree, and the zero point in kelvins."""
_DERIVED = {"volume": ("length", 3), "area": ("length", 2)}


class Unit(NamedTuple):
    """A unit of measurement.

    Attributes:
        factor: how many base units it is.
        dimensions: name and power of each dimension, sorted.
    """

    factor: Decimal
    dimensions: Dimensions

    def of(self, value: Decimal, unit: Unit) -> Decimal | None:
        """Convert `value` of this unit to another; None if they do not measure the same."""
        mine = self.dimensions
        theirs = unit.dimensions
        if mine == theirs:
            return value * self.factor / unit.factor
        if {mine, theirs} <= _SCALES.keys():
            (ratio, offset), (other_ratio, other_offset) = (
                _SCALES[mine],
                _SCALES[theirs],
            )
            return (value * ratio + offset - other_offset) / other_ratio
        return None

    def ratios(self) -> set[Decimal]:
        """Return how many of this unit each unit of the table is that measures the same."""
        return {
            factor / self.factor
            for factor, dimension in _unit_names().values()
            if ((dimension, 1),) == self.dimensions
        }


@cache
def number_table(name: str) -> dict[str, Any]:
    """Load a part of `numbers.toml`."""
    section: dict[str, Any] = tomllib.loads(
        Path(__file__).with_name("numbers.toml").read_text(encoding="utf-8")
    )[name]
    return section


def sentence_pattern(name: str) -> re.Pattern[str]:
    """Compile a pattern for sentences of `numbers.toml`."""
    return re.compile(number_table("sentence")[name], re.IGNORECASE)


@cache
def _unit_names() -> dict[str, tuple[Decimal, str]]:
    factor_by_name: dict[str, tuple[Decimal, str]] = {}
    rows = [
        (dimension, *row)
        for dimension, factors in number_table("units").items()
        for row in factors.items()
    ]
    for dimension, factor, names in rows:
        for name in names.split():
            stem = name.lstrip("~")
            if name == stem:
                prefixes = {}
            elif len(stem) > 3:
                prefixes = _LONG_PREFIXES
            else:
                prefixes = _PREFIXES
            for form in (
                {stem, stem + "s"} if len(stem) > 3 and stem.isascii() else {stem}
            ):
                factor_by_name.setdefault(form, (Decimal(factor), dimension))
                for prefix, power in prefixes.items():
                    factor_by_name.setdefault(
                        prefix + form, (Decimal(factor).scaleb(power), dimension)
                    )
    return factor_by_name


def unit_after(text: str, start: int) -> tuple[Unit, int] | None:
    """Return the unit that begins at a position of a text, and where it ends; None without one."""
    parsed = _parse_simple_unit(text, start)
    if parsed is None:
        return None
    factor, powers, end = parsed
    while (joint := _PER.match(text, end)) is not None and (
        divisor := _parse_simple_unit(text, joint.end())
    ) is not None:
        factor /= divisor[0]
        for name, power in divisor[1].items():
            powers[name] = powers.get(name, 0) - power
        end = divisor[2]
    dimensions = tuple(sorted((name, power) for name, power in powers.items() if power))
    return (
        Unit(
            factor,
            (
                (("speed", 1),)
                if dimensions == (("length", 1), ("time", -1))
                else dimensions
            ),
        ),
        end,
    )


def _parse_simple_unit(
    text: str, start: int
) -> tuple[Decimal, dict[str, int], int] | None:
    match = _WORD.match(text, start)
    if match is None:
        return None
    names = _unit_names()
    written = match["name"].replace(" ", "")
    end = match.end("name")
    second = _SECOND.match(text, end)
    forms = [(f"{written}_{second[1]}".casefold(), second.end())] if second else []
    forms += [(written, end), (written.casefold(), end)]
    if _SPACELESS.match(written):  # the unit, then a particle or the next word
        forms += [
            (written[:size], end - len(written) + size)
            for size in range(len(written) - 1, 0, -1)
        ]
    elif text[end : end + 1].isalpha() and not _SPACELESS.match(text, end):
        return None  # the beginning of a longer word
    for form, stop in forms:
        if form in names:
            factor, dimension = names[form]
            power = _exponent_of(match["power"] or match["after"] or "")
            stop = match.end("after") if match["after"] and stop == end else stop
            if match["raised"] and stop == end:
                power = 2 if match["raised"] in "2²" else 3
                stop = match.end("raised")
            name, times = _DERIVED.get(dimension, (dimension, 1))
            return factor**power, {name: times * power}, stop
    return None


def _exponent_of(word: str) -> int:
    """Return 2 for "square", 3 for "cubic", in any language of the table, else 1."""
    if not word:
        return 1
    if re.match(r"c[uú]b|kub|куб|立|세|khối", word, re.IGNORECASE):
        return 3
    return 2


def parse_unit(text: str) -> Unit | None:
    """Parse a unit such as "km/h"; None if the table does not have it."""
    parsed = unit_after(text.strip(), 0)
    return parsed[0] if parsed and not text.strip()[parsed[1] :].strip(" .") else None


ORDINALS = frozenset(("번째", "番目"))
"""Counters that turn a number into a position in an order."""


def counter_after(text: str, start: int) -> tuple[str, int] | None:
    """Return the counter at a position of a text, by its group's name, and where it ends."""
    match = None if text.isascii() else _counter_pattern().match(text, start)
    return (_counter_groups()[match[1]], match.end()) if match else None


@cache
def _counter_groups() -> dict[str, str]:
    groups = [
        group.split("/")
        for row in number_table("counters").values()
        for group in row.split()
    ]
    return {name: names[0] for names in groups for name in names}


@cache
def _counter_pattern() -> re.Pattern[str]:
    names = sorted(_counter_groups(), key=len, reverse=True)
    return re.compile(
        rf"\s?({'|'.join(map(re.escape, names))})(?!데|가요|지(?![가-힣]))"
    )
