"""Short mathematical answers in one spelling: LaTeX and plain notation of the same value become equal text or equal numbers.

Equality of form and of rational numbers only: `x + 1` is not recognised as `1 + x`, nor `\\sqrt{8}` as `2\\sqrt{2}`.
"""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction

_WORDS = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|operatorname|textit)\s*\{([^{}]*)\}")
_SPACES = re.compile(r"\\[,;:!> ]|\\q?quad(?![a-zA-Z])|\s+|~")
_SIZES = re.compile(r"\\(?:left|right|big|Big|bigg|Bigg)(?![a-zA-Z])")
_FRACTION_SHORT = re.compile(r"\\frac\s*(?:(\d)|\{([^{}]*)\})\s*(?:(\d)|\{([^{}]*)\})")
_ROOT_SHORT = re.compile(r"\\sqrt\s*(\w)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))|(?<=\d)\{,\}(?=\d{3})")
_ASSIGNED = re.compile(r"^[a-zA-Z]\s*(?:=|\\in)\s*(?=.)")
_UNIT = re.compile(
    r"(?:\^\{?\\circ\}?|\\degree|°|degrees?|\\%|%|percent|dollars?|cents?|units?|cm|km|mm|inch(?:es)?|feet|miles?|hours?|minutes?)"
    r"(?:\^\{?\d\}?)?$",
    re.IGNORECASE,
)
_POWER = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ]+")
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)")
_LAST = re.compile(r"(?<![\w.])[-+−±√$]?[\dπ√][^\s,;:(（]{0,40}$")
_RATIO = re.compile(r"([-+]?)\(?([-+]?[\d.]+)\)?/\(?([-+]?[\d.]+)\)?")


def same(one: str, other: str) -> bool:
    """Whether two short answers are the same in value or, after normalisation, in form."""
    left, right = normalised(one), normalised(other)
    if left == right:
        return bool(left)
    value = number(left)
    return value is not None and value == number(right)


def stated(text: str) -> list[str]:
    """What of a sentence may be its formula: all of it, what an equation comes to, what stands before a bracket or after words."""
    line = text.strip().rstrip(".。")
    after = _LAST.search(line)
    parts = [line, line.rpartition("=")[2], re.split(r"[(（]", line.rpartition("=")[2])[0]]
    return list(
        dict.fromkeys(part.strip() for part in [*parts, after.group() if after else ""] if part.strip())
    )


def normalised(text: str) -> str:
    """One spelling: no dollar signs, sizes, spaces, words' wrappers, units at the end, or thousands separators."""
    text = _POWER.sub(lambda run: "^" + unicodedata.normalize("NFKC", run.group()), text)
    text = text.strip().rstrip(".").replace("$", "").replace("\\(", "").replace("\\)", "").replace("\\[", "")
    text = text.replace("\\]", "").replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").replace("−", "-")
    text = _WORDS.sub(r"\1", _SIZES.sub("", text))
    text = re.sub(r"(?<=\w)\s*[*·](?=\s*[a-zA-Z(])", "", text)
    text = _SPACES.sub("", _THOUSANDS.sub("", text))
    text = _ROOT_SHORT.sub(r"\\sqrt{\1}", text)
    for _ in range(8):
        changed = _FRACTION_SHORT.sub(
            lambda found: f"({found[1] or found[2]})/({found[3] or found[4]})", text
        )
        if changed == text:
            break
        text = changed
    text = _ASSIGNED.sub("", text)
    for _ in range(3):
        shorter = _UNIT.sub("", text)
        if shorter == text or not shorter:
            break
        text = shorter
    return text.rstrip(".").casefold()


def number(text: str) -> Fraction | None:
    """The rational number that a normalised text is, or None."""
    text = text.replace("\\$", "").replace(",", "") if _THOUSANDS.search(text) else text
    if _NUMBER.fullmatch(text):
        return Fraction(text)
    if found := _RATIO.fullmatch(text):
        sign, above, below = found.groups()
        try:
            value = Fraction(above) / Fraction(below)
        except (ValueError, ZeroDivisionError):
            return None
        return -value if sign == "-" else value
    return None
