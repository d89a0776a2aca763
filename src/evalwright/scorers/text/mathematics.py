"""Whether two short mathematical answers are the same: plain numbers here, everything else by math-verify (the extra `math`).

Numbers, percents, fractions and units are compared exactly, as `scorers/number.py` reads them. Sets, intervals, tuples, roots and formulas are
compared by math-verify in the process of `bounded.py`, with a limit of time; without the extra, or where one of them cannot be read, there
is no verdict. Nothing of a text is run.
"""

from __future__ import annotations

import logging
import re
import sys
import unicodedata
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from evalwright import bounded
from evalwright.scorers.number import Number, find_numbers
from evalwright.scorers.quantity import Numbers, Tolerance, goals_of
from evalwright.scorers.text.cues import cues
from evalwright.scorers.text.locate import Said, last_box
from evalwright.scorers.text.marks import SPACELESS, alternatives
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.units import PERCENT
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

SECONDS = 1.0
"""Processor time that one comparison may take, and the library's start twenty times of it."""
_MOST_CHARACTERS = 300
_FRACTION = re.compile(r"\\[dt]?frac\s*(\d)\s*\{?(\d)\}?(?!\d*\})")
_RANGE = re.compile(r"\d+(?:\s?-\s?\d+)+")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_SIGNS = {
    "−": "-", "–": "-", "×": "\\times ", "⋅": "\\cdot ", "·": "\\cdot ", "∙": "\\cdot ", "÷": "/", "π": "\\pi ", "∞": "\\infty ", "≤": "\\le ",
    "≥": "\\ge ", "<=": "\\le ", ">=": "\\ge ", "±": "\\pm ", "∪": "\\cup ", "∈": "\\in ", "°": "^\\circ ", "≠": "\\ne ", "**": "^", "，": ",", "；": ";",
}  # fmt: skip
_ROOT = re.compile(r"√\s*(?:\(([^()]*)\)|(\d+(?:\.\d+)?|\w))")
_SEGMENT = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_ASSIGNED = re.compile(
    r"^\s*(?:[a-zA-Z](?:_?\{?\d\}?)?(?:\([a-z]\))?|[A-Z]\([^()]{1,12}\))\s*(?:=|\\in|은|는|は|等于)\s*(?=[^=])"
)
_OR = "|".join(one for one in alternatives("or").split("|") if len(one) > 1)
_SEVERAL = re.compile(rf"\s*(?:[,;、]|\b(?:{_OR})\b|(?<=\d)\s[yoe]\s(?=-?\d)|[或和と와과])\s*", re.IGNORECASE)
_PROSE = re.compile(
    rf"(?<![\\a-zA-Z])(?!(?:sqrt|frac|sin|cos|tan|log|pi|ln|{_OR})\b)(?:(?!π)[^\W\d_]){{2,}}[,:]?(?= |$)|(?!(?:{_OR})(?:\s|$))[^\W\d_a-zA-Zπ]{{2,}}|(?:(?!\d)[\u0900-\u0dff{SPACELESS}])+",
    re.IGNORECASE,
)
_KNOWN = word_set(
    "sqrt frac dfrac tfrac sin cos tan cot sec log ln exp pi or and inf infty cup cap text left right circ cdot times pm le ge leq geq in"
)
_FORM_ASKED = re.compile(
    r"simplif|expand|factor|reduce|lowest|rationali|vereinfach|kürze|evaluate|compute|calculate",
    re.IGNORECASE,
)
_FORMULA = re.compile(
    r"[=^√π±∞\\<>≤≥]|[A-Za-z0-9)]\s?[*+]\s?[A-Za-z0-9(]|^[-−][A-Za-z0-9]|^[(\[{].*,|\d[xyzabn]\b|\b(?:sin|cos|tan|ln|log)\b"
)
_INEQUALITY = re.compile(
    r"^(?:([^<>]+?)\s*(\\le|<))?\s*[a-zA-Z]\s*(\\le|\\ge|<|>)\s*([^<>\\]+|-?\\infty|\\s?frac.*|\\sqrt.*)$"
)
_BUILDER = re.compile(r"\\?\{\s*[a-zA-Z]\s*(?:\\mid|\||:)\s*([^{}|]+?)\\?\}")
"""A set by its condition: {x | x > 3}."""
_INTERVAL = re.compile(r"([\[\](])\s*([^\[\](){},]+),\s*([^\[\](){},]+)\s*([\])\[])")
_CLOSED, _LEAST = ("\\le", "\\ge"), "-\\infty"
_SIGNED = re.compile(
    r"[√π∞^±<>≤≥!]|\\(?:sqrt|binom|pi|pm|infty|le|ge|sin|cos|log|ln)|[a-zA-Z]\d|\d[a-zA-Z](?![a-zA-Z])|[-+*/]\s*[a-zA-Z](?![a-zA-Z])"
)
"""What makes a number a part of a formula."""
_TEN = re.compile(r"(?:\\times|\\cdot|[×x*·])\s?10\s?\^\s?(?:\{-?\d{1,3}\}|-?\d{1,3})")
"""The power of ten of a number in scientific notation, which is none."""
_SHAPE = re.compile(r"\\pm|\\le|\\ge|\\cup|\\in|[<>,;\[{](?![^{}]{0,9}\})")
"""What makes an answer several numbers, an interval or a set."""
_UNFINISHED = re.compile(r"(?:[=+×÷/−-]|\\(?:times|cdot|div))\s*$")
_ABOUT = re.compile(r"\\approx|≈|\\simeq|~")


def is_formula(text: str) -> bool:
    """Whether a target is a formula rather than a number or words."""
    if _FORMULA.search(text) is not None:
        words = re.findall(r"[^\W\d_]{3,}", text)
        return "\\" in text or (
            all(word.casefold() in _KNOWN for word in words) and any(map(str.isalnum, text))
        )
    several = len(re.findall(r"\d+", text)) > 1 and not re.fullmatch(
        r"\D{0,3}\d+(?:[.,' ]\d+)*(?:\s?/\s?\d+)?\D*", text
    )
    # "3:4", "2, 3 and 5"
    return several and not re.search(r"[^\W\d_]{2,}", re.sub(r"\b(?:and|or)\b", "", text))


@lru_cache(maxsize=4096)
def same(one: str, other: str, language: str = "en") -> bool | None:
    """Whether two short answers are the same in form or value; None where one of them cannot be read."""
    if max(len(one), len(other)) > _MOST_CHARACTERS:
        return None
    left, right = bare(one), bare(other)
    if left == right:
        return bool(left)
    first, second = _plain_number(one, language), _plain_number(other, language)
    if first is not None and second is not None:
        return _equal(first, second)
    if not all(any(map(str.isalnum, text)) and not _RANGE.fullmatch(text) for text in (left, right)):
        return None  # "1939-1945" is no difference
    return _verified(latex(one), latex(other))


def judge_formula(
    said: Said, targets: tuple[str, ...], question: str, language: str = "en", *, form: bool = True
) -> Verdict:
    """Whether a reply gives a target formula, or surely another. form: whether one in another form than the question asks for is open."""
    targets = tuple(last_box(target) or target for target in targets)
    number = all(_plain_number(one, language) and not _SIGNED.search(_TEN.sub("", one)) for one in targets)
    raw = said.raw or said.text
    if _UNFINISHED.search(raw):
        return undecided("the reply breaks off")
    if number:
        second = Numbers(goals_of(targets, "", question, language), Tolerance(), question, language).judge(
            said
        )
        formula = _SIGNED.search(_TEN.sub("", raw)) or _SHAPE.search(latex(raw[:_MOST_CHARACTERS]))
        if not second.unsure and not (formula and second.label == "incorrect"):
            return second
    found = _judge(said, targets, question if form else "", language, number)
    measured = number and any(one.unit for one in find_numbers(said.text, language))
    if measured and found.label == "correct" and second.label == "incorrect":
        return undecided("the target number, perhaps in another unit")
    return found


def _judge(said: Said, targets: tuple[str, ...], question: str, language: str, number: bool) -> Verdict:
    raw = said.raw or said.text
    if cues(language).denies(Words(fold(raw[:_MOST_CHARACTERS])).folded_tokens, raw):
        return undecided("a denial beside a formula")
    found: list[bool | None] = []
    wanted = [sorted(bare(target)) for target in targets]
    parts, alone = stated(raw)
    if not parts:
        return undecided("no formula")
    for part in parts if _plain_number(parts[0], language) is None else parts[:1]:
        for target in targets:
            found.append(same(part, target, language))
            if found[-1]:
                if number and not _plain_number(part, language):
                    return undecided(f"'{part[:60]}' is not worked out")
                if _FORM_ASKED.search(question) and sorted(bare(part)) not in wanted:
                    return undecided(f"'{part[:60]}' is equal to the target, in another form")
                return correct(f"'{part[:60]}' is the target formula")
    return _another(raw, said, targets, alone=alone and False in found)


def _another(raw: str, said: Said, targets: tuple[str, ...], *, alone: bool) -> Verdict:
    """No target was found: is it surely another answer? A number in words, or a set for a pair of equations, is not compared."""
    shapes = {frozenset(_SHAPE.findall(latex(one))) for one in (raw, *targets)}
    alike = len(shapes) == 1 and any(map(str.isdigit, raw))
    about = _ABOUT.search(raw) or any(one.about for one in find_numbers(said.text))
    if alone and alike and (len(raw) <= 80 or said.marked) and not about:
        return incorrect(f"'{raw.strip()[:60]}' is another answer")
    return undecided("a formula in another form")


def stated(text: str) -> tuple[list[str], bool]:
    """What of a sentence may be its formula, and whether it has no other beside it.

    What stands between dollar signs, else all of it or what stands after its words; what an equation comes to.
    """
    segments = [
        (one.start(), one.end(), next(filter(None, one.groups()))) for one in _SEGMENT.finditer(text[:4000])
    ]
    if segments:
        pieces = [segments[-1][2]]
        for (_, end, content), (after, _, _) in reversed(list(pairwise(segments))):
            if not _SEVERAL.fullmatch(text[end:after]):
                break
            pieces.insert(0, content)
        line = ", ".join(_ASSIGNED.sub("", piece) for piece in pieces) if len(pieces) > 1 else pieces[0]
    else:
        line = re.sub(r"\s+", " ", re.sub(r"\$|\\[()\[\]]", " ", text[:4000])).strip()
    line = line.strip().rstrip(".。। ")
    line = _ABOUT.split(line)[0] or line
    rest = [piece.strip(" :,").rstrip(".") for piece in _PROSE.split(line)]
    pieces = [piece for piece in rest if any(map(str.isalnum, piece))] or [line]
    out = [line, pieces[-1]]
    if len(_SEVERAL.split(line)) == 1:
        out += [pieces[-1].rpartition("=")[2], line.rpartition("=")[2]]
    if head := re.search(r"[(（](?=\D|$)", pieces[0]):
        out.append(pieces[0][: head.start()])
    alone = bool(segments) or sum(any(map(str.isdigit, piece)) for piece in pieces) <= 1
    return list(dict.fromkeys(part.strip(" $:,") for part in out if part.strip(" $:,"))), alone


def latex(text: str) -> str:
    """Plain notation as LaTeX: roots, powers, signs, digits of one script."""
    text = _RAISED.sub(
        lambda run: f"^{{{unicodedata.normalize('NFKC', run.group())}}}",
        text.strip().strip("$").rstrip(".。। "),
    )
    text = "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)
    text = _LOWERED.sub(lambda run: f"_{{{unicodedata.normalize('NFKC', run.group())}}}", text)
    text = _BUILDER.sub(r"\1", text).replace(";", ",")
    text = _INTERVAL.sub(
        lambda one: f"{'[' if one[1] == '[' else '('}{one[2]},{one[3]}{']' if one[4] == ']' else ')'}", text
    )
    text = _ROOT.sub(lambda found: f"\\sqrt{{{found[1] or found[2]}}}", text)
    for sign, other in _SIGNS.items():
        text = text.replace(sign, other)
    text = re.sub(r"(?<![\\a-zA-Z])(sqrt|sin|cos|tan|ln|log|pi)(?![a-zA-Z])", r"\\\1 ", text)
    text = re.sub(r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    return re.sub(
        r"\s+",
        " ",
        re.sub(
            r"\\left|\\right|(?<!\\)\\[,;!: ]|\\text\{\s*or\s*\}",
            lambda found: " or " if "text" in found[0] else "",
            text,
        ),
    ).strip()


def bare(text: str) -> str:
    """A text without spaces, brackets that group, the name of a variable and other ways to write the same."""
    text = _ASSIGNED.sub("", latex(last_box(text) or text))
    text = re.sub(
        r"\\[dt]frac",
        r"\\frac",
        re.sub(r"\\(?:text|mathrm|mathbf|textbf|operatorname)\s*\{([^{}]*)\}", r"\1", text),
    )
    text = re.sub(r"\\(begin|end)\s*\{[bB]matrix\}", r"\\\1{pmatrix}", text)
    text = re.sub(
        r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}", re.sub(r"\\sqrt\s*(\d)(?!\d)", r"\\sqrt{\1}", text)
    )
    return re.sub(r"[\s$]|\\%|%(?=$)", "", text).casefold() + ("%" if text.rstrip().endswith("%") else "")


def _plain_number(text: str, language: str) -> Number | None:
    """The number that a text is, and nothing else; None for anything else."""
    text = _FRACTION.sub(r"\\frac{\1}{\2}", _ASSIGNED.sub("", text.strip().strip("$").strip()))
    text = plain(text).rstrip(" .,:;=").lstrip(" ,:;=")
    found = find_numbers(text, language) if not _RANGE.fullmatch(text) else ()
    if len(found) != 1 or found[0].ordinal or found[0].bound or found[0].about:
        return None
    rest = text[: found[0].start] + " " + text[found[0].end :]
    return None if re.search(r"[^\s()\[\]$€£.°]", re.sub(r"^\s*[-+]", "", rest)) else found[0]


def _equal(one: Number, other: Number) -> bool | None:
    """Whether two numbers are one, in their units; None where a reading or a rounding decides."""
    pairs = [(a, b) for a in _worths(one) for b in _worths(other)]
    if one.unit is not None and other.unit is not None and one.unit != other.unit:
        there = one.unit.of(one.value, other.unit)
        return there is not None and _close(there, other.value)
    if _close(*pairs[0]):
        return True
    if any(_close(a, b) for a, b in pairs):
        # 10% where 10 is asked for: the sign was left out. A separator that may be of thousands is open.
        return True if PERCENT in [unit and unit.dimensions for unit in (one.unit, other.unit)] else None
    decimals = any(0 < number.step < 1 and number.figures >= 2 for number in (one, other))
    rounded = decimals and any(abs(a - b) <= abs(b) / 100 for a, b in pairs)
    return None if rounded else False


def _worths(one: Number) -> list[Decimal]:
    share = one.unit is not None and one.unit.dimensions == PERCENT
    return [value / 100 for value in one.values] + list(one.values) if share else list(one.values)


def _close(one: Decimal, other: Decimal) -> bool:
    return abs(one - other) <= abs(other) * Decimal("1e-25")


def _verified(one: str, other: str) -> bool | None:
    """What math-verify says; None where it is not installed, reads one of them not, or takes too long."""
    try:
        if not bounded.call(_is_ready, seconds=20 * SECONDS):
            return None
        found = bounded.call(_compare, one, other, seconds=SECONDS)
    except (bounded.LimitExceeded, bounded.Raised):
        return None
    return found if isinstance(found, bool) else None


def _is_ready() -> bool:
    """Load the library where it is installed, in the process with limits; what it loads at its first comparison too."""
    if not find_spec("math_verify"):
        return False
    if "math_verify" not in sys.modules:
        _compare("\\sqrt{2}", "(1, 2]")
    return True


def _compare(one: str, other: str) -> bool | None:
    """Run in the process with limits. Both orders must agree that the two are the same."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    configs = [LatexExtractionConfig(), ExprExtractionConfig()]
    read = [parse(f"${text}$", configs, parsing_timeout=None) for text in (_region(one), _region(other))]
    if not all(one and not isinstance(one[0], str) for one in read):
        return None
    options = {"float_rounding": 12, "allow_set_relation_comp": True, "timeout_seconds": None}
    if verify(*read, **options) and verify(read[1], read[0], **options):
        return True
    with suppress(Exception):  # no numbers: sets, formulas with a variable
        here, there = (float(one[0]) for one in read)
        if "." in one + other and abs(here - there) <= abs(there) / 100:
            return None  # "7.07" for the root of 50: rounded
    return False


def library_says(said: str, reference: str, latex: bool = True, expression: bool = True) -> tuple[Any, ...]:
    """What math-verify, as it is, reads in two texts, None where it raises, and whether they are equal. Run in the process with limits."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    configs = [LatexExtractionConfig()] * latex + [ExprExtractionConfig()] * expression
    read: list[Any] = [None, None]
    right = False
    with suppress(Exception):
        read[0] = parse(said, extraction_config=configs)
    with suppress(Exception):
        read[1] = parse(reference, extraction_config=configs)
        right = read[0] is not None and bool(verify(read[1], read[0]))
    return *(one and [str(value) for value in one] for one in read), right


def _region(text: str) -> str:
    """An inequality as the interval of its solutions, several of them as a union; anything else as it is."""
    parts = re.split(r"\s*\bor\b\s*", text)
    found = [_INEQUALITY.fullmatch(part.strip()) for part in parts]
    if not parts or not all(found):
        return text
    out = []
    for one in found:
        assert one is not None
        low, opening, closing, high = one.groups()
        if closing in (">", "\\ge"):
            low, opening, closing, high = high, closing, "", "\\infty"
        start = f"{'[' if opening in _CLOSED else '('}{low or _LEAST}"
        out.append(f"{start},{high}{']' if closing in _CLOSED else ')'}")
    return "\\cup ".join(out)
