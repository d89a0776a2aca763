"""Whether two short mathematical answers are the same: formulas in LaTeX or plain notation, sets of solutions, intervals, tuples.

Formulas are evaluated, not transformed: without variables exactly where they are rational, with variables at two points. Nothing of a
text is run; what cannot be read as a formula has no value, and is compared as it is spelled.
"""

from __future__ import annotations

import ast
import cmath
import operator
import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

from evalwright.scorers.text.cues import cues
from evalwright.scorers.text.locate import Said
from evalwright.scorers.text.tokens import fold
from evalwright.scorers.units import parse_unit
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

_MOST_CHARACTERS = 300
_POINTS = (Fraction(7, 5), Fraction(11, 13))
_WRAPPED = re.compile(r"\\(?:text|mathrm|textbf|mathbf|mbox|operatorname|textit)\s*\{([^{}]*)\}")
_DROPPED = re.compile(
    r"\\[,;:!> ]|\\q?quad(?![a-zA-Z])|\\(?:left|right|[bB]igg?)(?![a-zA-Z])|\\[()\[\]]|[$~]"
)
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:(\d)|\{([^{}]*)\})\s*(?:(\d)|\{([^{}]*)\})")
_ROOT = re.compile(r"(?:\\sqrt|√)\s*(?:\{([^{}]*)\}|\(([^()]*)\)|(\d+|\w))")
_SCRIPT = re.compile(r"\^\{([^{}]*)\}")
_THOUSANDS = re.compile(r"(?<=\d)(?:,|\{,\})(?=\d{3}(?:,\d{3})*(?!\d))")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_SIGNS = {
    "−": "-", "–": "-", "×": "*", "⋅": "*", "·": "*", "∙": "*", "÷": "/", "\\cdot": "*", "\\times": "*", "\\div": "/", "π": " pi ",
    "\\pi": " pi ", "∞": " inf ", "\\infty": " inf ", "\\leq": "≤", "\\le": "≤", "<=": "≤", "\\geq": "≥", "\\ge": "≥", ">=": "≥",
    "\\pm": "±", "∪": "U", "\\cup": "U", "∈": "=", "\\in ": "=", "\\degree": "°", "^\\circ": "°", "^{\\circ}": "°", "\\%": "%",
}  # fmt: skip
_UNIT = re.compile(
    r"(?<=[\d)])\s*(°|%|dollars?|cents?|units?|(?:°\s?C|[a-z]{2,}(?:/[a-z]+)?|(?<=\s)[mgsl](?:/[sh])?)(?:\^?\(?[23]\)?)?)$",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"^(?:[a-zA-Z](?:'|\([a-z]\))?|d[a-z]?/d[a-z]\s?\S{1,12})\s*=\s*(?=[^=])")
_SPLIT = re.compile(r"\s*(?:[,;]|\b(?:or|and|oder|und|et|ou|y|o)\b|或|和|или|и|または)\s*", re.IGNORECASE)
_BOUNDS = re.compile(r"(?:([^<>≤≥]+)([<≤]))?[a-z]([<≤>≥])([^<>≤≥]+)")
_PROSE = re.compile(
    r"(?<![\\a-zA-Z])(?!(?:sqrt|frac|sin|cos|tan|log|pi|and|or|und|oder|et|ln)\b)[^\W\d_]{2,}[,:]?(?= |$)|[^\W\d_a-zπ]{2,}",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+|\\?[a-zA-Z]+|[-+*/^()])")
_FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "sqrt": cmath.sqrt, "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan, "ln": cmath.log, "log": cmath.log10, "exp": cmath.exp,
}  # fmt: skip
_CONSTANTS = {"pi": cmath.pi, "e": cmath.e, "i": 1j, "inf": 1e300}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_FORM_ASKED = re.compile(
    r"simplif|expand|factor|reduce|lowest|rationali|vereinfach|kürze|evaluate|compute|calculate",
    re.IGNORECASE,
)
_FORMULA = re.compile(
    r"[=^√π±∞\\<>≤≥]|[A-Za-z0-9)]\s?[*+]\s?[A-Za-z0-9(]|^[-−][A-Za-z0-9]|^[(\[{].*,|\d[xyzabn]\b|\b(?:sin|cos|tan|ln|log)\b"
)
Number = Fraction | complex
Value = tuple[Number, ...]
"""What an expression comes to at each point."""
Item = tuple[str, tuple[Value, ...]]
"""A value (the kind is ""), or a tuple or an interval (the kind is its brackets) with its values."""


def is_formula(text: str) -> bool:
    """Whether a target is a formula rather than a number or words."""
    if _FORMULA.search(text) is not None:
        return _values(text) is not None or "\\" in text
    several = len(re.findall(r"\d+", text)) > 1 and not re.fullmatch(
        r"\D{0,3}\d+(?:[.,' ]\d+)*(?:\s?/\s?\d+)?\D*", text
    )
    return several and not re.search(
        r"[^\W\d_]{2,}", re.sub(r"\b(?:and|or)\b", "", text)
    )  # "3:4", "2, 3 and 5"


def same(one: str, other: str) -> bool | None:
    """Whether two short answers are the same in form or value; None where one of them cannot be read."""
    left, right = spelling(one), spelling(other)
    if _bare(left) == _bare(right):
        return bool(_bare(left))
    if "%" in left + right and "%" not in (left[-1:] + right[-1:]).replace("%", "", 1):
        left, right = (f"({text[:-1]})/100" if text.endswith("%") else text for text in (left, right))
    first, second = _values(left), _values(right)
    if first is None or second is None:
        return None
    return len(first) == len(second) and all(any(_alike(item, also) for also in second) for item in first)


def judge_formula(said: Said, targets: tuple[str, ...], question: str, language: str = "en") -> Verdict:
    """Whether a reply gives a target formula, or surely another."""
    raw = said.raw or said.text
    if cues(language).denies(re.findall(r"\w+", fold(raw.casefold().replace("'", ""))), raw):
        return undecided("a denial beside a formula")
    parts = stated(raw)
    wanted = [sorted(_bare(spelling(target))) for target in targets]
    for part in parts:
        if any(same(part, target) for target in targets):
            if _FORM_ASKED.search(question) and sorted(_bare(spelling(part))) not in wanted:
                return undecided(f"'{part[:60]}' is equal to the target, in another form")
            return correct(f"'{part[:60]}' is the target formula")
    if parts and (len(raw) <= 80 or said.marked):
        first = _values(parts[0])
        known = [values for target in targets if (values := _values(target)) is not None]
        if first is not None and known and not any(_rounded(first, values) for values in known):
            return incorrect(f"'{parts[0][:60]}' is another formula")
    return undecided("a formula in another form")


def stated(text: str) -> list[str]:
    """What of a sentence may be its formula: all of it, what stands after words, what an equation comes to, what stands before a bracket."""
    line = re.sub(r"\s+", " ", re.sub(r"\$|\\[()\[\]]", " ", text)).strip().rstrip(".。 ")
    pieces = [piece for piece in _PROSE.split(line) if any(map(str.isalnum, piece))] or [line]
    parts = [
        line,
        pieces[-1],
        pieces[-1].rpartition("=")[2],
        line.rpartition("=")[2],
        pieces[0][: head.start()] if (head := re.search(r"[(（](?=\D|$)", pieces[0])) else "",
    ]
    return list(dict.fromkeys(part.strip(" $:,") for part in parts if part.strip(" $:,")))


def spelling(text: str) -> str:
    """One spelling of signs, without dollar signs, sizes, words' wrappers and thousands separators."""
    text = _RAISED.sub(
        lambda run: f"^({unicodedata.normalize('NFKC', run.group())})",
        text.strip().rstrip(".。")[:_MOST_CHARACTERS],
    )
    text = _WRAPPED.sub(r" \1 ", _DROPPED.sub(" ", text))
    for sign, other in _SIGNS.items():
        text = text.replace(sign, other)
    text = _THOUSANDS.sub("", text)
    for _ in range(8):
        changed = _ROOT.sub(
            lambda found: f" sqrt({found[1] or found[2] or found[3]})", _SCRIPT.sub(r"^(\1)", text)
        )
        changed = _FRACTION.sub(lambda found: f"(({found[1] or found[2]})/({found[3] or found[4]}))", changed)
        if changed == text:
            break
        text = changed
    return re.sub(r"\s*([=<>≤≥])\s*", r"\1", " ".join(text.split()))


def _bare(text: str) -> str:
    text = _without_unit(_ASSIGNED.sub("", text))
    return re.sub(r"\s" if "," in text else r"[\s*()]", "", text).rstrip(".").casefold()


def _without_unit(text: str) -> str:
    found = _UNIT.search(text)
    known = found and (parse_unit(found[1]) or found[1].startswith(("unit", "cent", "°")))
    return text[: found.start()] if found and known else text


def _values(text: str) -> list[Item] | None:
    """The values of an answer, of each solution or end; None for what cannot be read."""
    text = _ASSIGNED.sub("", spelling(text))
    if len(text) >= _MOST_CHARACTERS or re.fullmatch(r"\d+(?:\s?-\s?\d+)+", text):
        return None  # "1939-1945" is no difference
    if (bounds := _BOUNDS.fullmatch(text)) is not None:
        low, opening, closing, high = bounds.groups()
        if closing in ">≥":
            low, opening, closing, high = high, closing, "", "inf"
        text = (
            f"{'[' if opening in ('≤', '≥') else '('}{low or '-inf'},{high}{']' if closing == '≤' else ')'}"
        )
    if "U" in text:
        items = [_values(part) for part in text.split("U")]
        return [item for one in items for item in one or ()] if all(items) else None
    ordered = text[:1] in ("(", "[") and text[-1:] in (")", "]") and "," in text
    inner = text[1:-1] if ordered else re.sub(r"^\\?\{(.*?)\\?\}$", r"\1", text)
    parts = [_without_unit(_ASSIGNED.sub("", part.strip())) for part in _SPLIT.split(inner)]
    values = [_evaluate(part.replace("±", sign)) for part in parts for sign in ("+-" if "±" in part else "+")]
    known = tuple(value for value in values if value is not None)
    if len(known) < len(values):
        return None
    return [(text[0] + text[-1], known)] if ordered else [("", (value,)) for value in known]


def _alike(one: Item, other: Item) -> bool:
    return one[0] == other[0] and len(one[1]) == len(other[1]) and all(map(_equal, one[1], other[1]))


def _equal(one: Value, other: Value) -> bool:
    """Whether values agree, rational ones exactly."""
    return all(
        a == b if isinstance(a, Fraction) and isinstance(b, Fraction) else _close(a, b, 1e-9)
        for a, b in zip(one, other, strict=True)
    )


def _close(one: Number, other: Number, share: float) -> bool:
    return abs(complex(one) - complex(other)) <= share * abs(complex(other))


def _rounded(one: list[Item], other: list[Item]) -> bool:
    """Whether one number may be another rounded."""
    return (
        len(one) == len(other) == 1
        and one[0][0] == other[0][0] == ""
        and all(_close(a, b, 0.02) for a, b in zip(one[0][1][0], other[0][1][0], strict=True))
    )


def _evaluate(text: str) -> Value | None:
    """What an expression comes to at both points."""
    try:
        tree = ast.parse(_python(text), mode="eval").body
        return tuple(_at(tree, point) for point in _POINTS)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _python(text: str) -> str:
    """An expression with its products and the brackets of its functions written out."""
    if _TOKEN.sub("", text).strip():
        raise ValueError(text)
    out: list[str] = []
    open_functions = 0
    for token in (found[1].removeprefix("\\") for found in _TOKEN.finditer(text)):
        operand = token[0].isalnum() or token[0] in ".("
        last = out[-1] if out else ""
        if open_functions and (token in "+-)" or token in _FUNCTIONS):
            out.append(")" * open_functions)
            open_functions = 0
        if last in _FUNCTIONS and token != "(":
            out.append("(")
            open_functions += 1
        elif operand and last and (last[-1].isalnum() or last[-1] == ")") and last not in _FUNCTIONS:
            out.append("*")
        out.append({"^": "**"}.get(token, token))
    return "".join(out) + ")" * open_functions


def _at(node: ast.expr, point: Fraction) -> Number:
    match node:
        case ast.Constant(value=int() | float()):
            return Fraction(ast.unparse(node))
        case ast.Name(id=name) if name in _CONSTANTS:
            return _CONSTANTS[name]
        case ast.Name(id=name) if len(name) <= 2:  # a variable, or the product of two
            return prod(
                (Fraction(ord(letter) * 37 % 101 + 1, 60) * point for letter in name), start=Fraction(1)
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_at(operand, point)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _at(operand, point)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _raised(_at(left, point), _at(right, point))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](_at(left, point), _at(right, point))
        case ast.Call(func=ast.Name(id=name), args=[argument]) if name in _FUNCTIONS:
            value = _at(argument, point)
            found = _FUNCTIONS[name](complex(value))
            return (
                Fraction(round(found.real))
                if abs(found) < 1e6 and name == "sqrt" and round(found.real) ** 2 == value
                else found
            )
    raise ValueError(ast.dump(node))


def _raised(value: Number, power: Number) -> Number:
    if isinstance(value, Fraction) and isinstance(power, Fraction) and power.denominator == 1:
        if max(abs(value.numerator), value.denominator).bit_length() * abs(power) > 20_000:
            raise ArithmeticError("too large")
        return Fraction(value ** int(power))
    return complex(value) ** complex(power)
