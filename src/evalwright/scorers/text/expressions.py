"""Parses short mathematical expressions, in LaTeX or as they are typed, and compares their values.

Two expressions are the same if they have the same value at several points, in exact fractions as
long as there are no roots or functions. It reads numbers, tuples, sets, intervals, matrices,
equations and inequalities. No text is ever executed.
"""

from __future__ import annotations

import cmath
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

MAX_CHARS = 300
MAX_BITS = 4_000
"""Most bits of an exact number; larger ones are computed in floating point."""
MAX_DEPTH = 60
TOLERANCE = 1e-9

Tree = tuple[Any, ...]
"""An operation and its operands."""
Number = Fraction | complex


class Unreadable(Exception):
    """The text is not an expression."""


class Interval(NamedTuple):
    """The numbers between two ends; `closed` says for each whether it belongs to the interval."""

    ends: tuple[Tree, Tree]
    closed: tuple[bool, bool]


# -- tables for reading -----------------------------------------------------------------

_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉ₙ]+")
_SIGNS = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "—": "-",
        "×": "*",
        "⋅": "*",
        "·": "*",
        "∙": "*",
        "÷": "/",
        "π": "\\pi ",
        "∞": "\\infty ",
        "≤": "\\le ",
        "≥": "\\ge ",
        "≦": "\\le ",
        "≧": "\\ge ",
        "⩽": "\\le ",
        "⩾": "\\ge ",
        "±": "\\pm ",
        "∓": "\\pm ",
        "∪": "\\cup ",
        "∈": "\\in ",
        "°": " ",
        "≠": "\\ne ",
        "≈": "\\approx ",
        "、": ",",
        "；": ";",
        "√": "\\sqrt ",
        "∛": "\\cbrt ",
        "′": "'",
        "’": "'",
        "∶": ":",
        "θ": "\\theta ",
        "α": "\\alpha ",
        "β": "\\beta ",
        "⟨": "(",
        "⟩": ")",
        "⇒": "=>",
        "→": "=>",
        "\u00a0": " ",
        "\u202f": " ",
        "\u2009": " ",
        "\u3000": " ",
        "⁄": "/",
        "∕": "/",
        "ℝ": "R",
        "，": ",",
        "。": ".",
        "◦": " ",
    }
)
_FRACTIONS = {
    sign: unicodedata.normalize("NFKD", sign).replace("⁄", "/")
    for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
}
_DROPPED = re.compile(
    r"\\(?:left|right|displaystyle|bigl|bigr|Bigl|Bigr|big|Big|limits|quad|qquad|hline"
    r"|mathstrut|textstyle|degree)(?![a-zA-Z])|(?<!\\)\\[,;!:>"
    r" ]|~|\^\s*\{?\s*\\circ\s*\}?"
    r"|&(?=\s*(?:=|\\le|\\ge))"
)
_TIMES = re.compile(r"(?<=[\d)])\s[xX]\s(?=[\d(])")
_UNIT_POWER = re.compile(
    r"(?<![a-zA-Z])((?:\\text\s?\{\s?)?(?:[ckmd]?m|ft|in|yd|mi|см|мм|км|м"
    r"|дм)\s?\}?)\s?\^\s?[({]?\s?[23]\s?[)}]?"
)
_WORDING = re.compile(
    r"\\(?:text|mathrm|mathbf|textbf|mathbb|mathit|textit|operatorname|mbox|rm|bf)\s*\{([^{}]*)\}"
)
_MATRIX = re.compile(
    r"\\begin\s*\{[pbBvV]?matrix\}(.*?)\\end\s*\{[pbBvV]?matrix\}", re.DOTALL
)
_CASES = re.compile(
    r"\\(?:begin|end)\s*\{(?:cases|aligned|align\*?|array|gathered|equation\*?)\}(?:\{[lcr|]*\})?"
)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3}(?!\w|\.\d))?)|"
    r"(?P<command>\\[a-zA-Z]+|\\[{}|])|(?P<word>[^\W\d_]+'*)|(?P<sign><=|>=|!=|=>|\*\*|\|\|"
    r"|[-+*/^_=<>!%(){}\[\]|,;:&'?$€£¥₹#~\"·.]))"
)
_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d,])")
_DOTTED_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?:\.\d{3})+)(?![\d.])")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3})((?: \d{3})+)(?![\d])")
_DECIMAL_COMMA = re.compile(r"(?<=\d)\s?,(?=\d)")
COMMA_LANGUAGES = frozenset(
    [
        "de",
        "fr",
        "es",
        "pt",
        "it",
        "nl",
        "pl",
        "ru",
        "uk",
        "tr",
        "id",
        "vi",
        "cs",
        "sv",
        "fi",
        "no",
        "da",
        "ro",
        "hu",
        "bg",
        "el",
        "jv",
        "su",
        "hr",
        "sk",
        "sl",
        "sr",
        "lt",
        "lv",
        "et",
        "ca",
        "be",
    ]
)
"""Languages that write a half as 0,5."""
FUNCTIONS: Mapping[str, Callable[[complex], complex]] = {
    "sin": cmath.sin,
    "cos": cmath.cos,
    "tan": cmath.tan,
    "ln": cmath.log,
    "exp": cmath.exp,
    "arcsin": cmath.asin,
    "arccos": cmath.acos,
    "arctan": cmath.atan,
    "sinh": cmath.sinh,
    "cosh": cmath.cosh,
    "tanh": cmath.tanh,
    "sqrt": cmath.sqrt,
    "asin": cmath.asin,
    "acos": cmath.acos,
    "atan": cmath.atan,
    "sen": cmath.sin,
    "tg": cmath.tan,
    "log": cmath.log10,
    "lg": cmath.log10,
    "lb": lambda argument: cmath.log(argument, 2),
    "cot": lambda argument: 1 / cmath.tan(argument),
    "ctg": lambda argument: 1 / cmath.tan(argument),
    "sec": lambda argument: 1 / cmath.cos(argument),
    "csc": lambda argument: 1 / cmath.sin(argument),
    "abs": abs,
    "cbrt": lambda argument: argument ** (1 / 3),
}
_RELATIONS = {
    "=": "=",
    "<": "<",
    ">": ">",
    "<=": "<=",
    ">=": ">=",
    "\\le": "<=",
    "\\leq": "<=",
    "\\leqslant": "<=",
    "\\lt": "<",
    "\\ge": ">=",
    "\\geq": ">=",
    "\\geqslant": ">=",
    "\\gt": ">",
    "\\ne": "!=",
    "\\neq": "!=",
    "!=": "!=",
    "\\in": "in",
    "\\approx": "~",
    "\\simeq": "~",
    "\\equiv": "=",
    "=>": "=>",
    "\\Rightarrow": "=>",
    "\\implies": "=>",
    "\\to": "=>",
    "\\rightarrow": "=>",
    "\\iff": "=>",
    "\\Leftrightarrow": "=>",
}
_VARIABLES = {
    "\\theta",
    "\\alpha",
    "\\beta",
    "\\gamma",
    "\\lambda",
    "\\phi",
    "\\varphi",
    "\\omega",
    "\\mu",
    "\\sigma",
    "\\rho",
    "\\delta",
    "\\epsilon",
    "\\tau",
}
AND = "and"
"""The operation that stands for a word such as "and" or "or" between answers."""
_JOINING = {"\\lor", "\\vee", "\\land", "\\wedge"}
SEPARATORS = {",", ";", AND}
_LETTER = re.compile("[a-zA-Z\u0391-\u03c9ء-ي]")
"""Letters that stand for numbers when they are alone."""
_LOOKALIKES = str.maketrans("хуХУ", "xyXY")


class Token(NamedTuple):
    """A token of a formula.

    `kind` is "number", "name" (a variable), "function", "word", "command" or "sign"; `spaced` is
    set if a space precedes it.
    """

    kind: str
    text: str
    spaced: bool
    start: int


def write_with_signs(text: str) -> str:
    """Write a text with one spelling for each sign.

    It uses ASCII digits and operators, and `^` for raised digits.
    """
    text = _RAISED.sub(
        lambda run: f"^({unicodedata.normalize('NFKC', run.group())})", text
    )
    text = _LOWERED.sub(
        lambda run: f"_({unicodedata.normalize('NFKC', run.group())})", text
    )
    for sign, fraction in _FRACTIONS.items():
        text = text.replace(sign, f"({fraction})") if sign in text else text
    text = text.translate(_SIGNS)
    if not text.isascii():
        text = "".join(map(_plain_sign, text))
        text = text.translate(_SIGNS)
    text = _UNIT_POWER.sub(r"\1 ", _TIMES.sub("*", text))
    text = _DROPPED.sub(
        " ", text.replace("\\%", "%").replace("{,}", ",").replace("\\$", "$")
    )
    text = re.sub(r"\\[dtc]frac", r"\\frac", text)
    return _CASES.sub(" ", text)


def _plain_sign(char: str) -> str:
    if char.isascii():
        return char
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    wide = "\uff01" <= char <= "\uff5e" or "\U0001d400" <= char <= "\U0001d7ff"
    return unicodedata.normalize("NFKC", char) if wide else char


def possible_readings(text: str, language: str) -> list[str]:
    """Return the ways to read a text: with decimal commas, if the language has them, and points."""
    text = _SPACED_THOUSANDS.sub(lambda run: run.group().replace(" ", ""), text)
    english = (
        _THOUSANDS.sub(lambda run: run.group().replace(",", ""), text)
        if not re.search(r"[(\[{]", text)
        else text
    )
    possible_texts = [english]
    if (
        "," in text
        and re.search(r"\d\s?,\d", text)
        and (language in COMMA_LANGUAGES or ";" in text)
    ):
        possible_texts.insert(
            0,
            _DECIMAL_COMMA.sub(
                ".",
                _DOTTED_THOUSANDS.sub(lambda run: run.group().replace(".", ""), text),
            ),
        )
    elif language in COMMA_LANGUAGES and _DOTTED_THOUSANDS.search(text):
        possible_texts.insert(
            0, _DOTTED_THOUSANDS.sub(lambda run: run.group().replace(".", ""), text)
        )
    return list(dict.fromkeys(possible_texts))


def tokenize_formula(text: str, joining: frozenset[str]) -> list[Token]:
    """Split a text into tokens; `joining` are words between several answers."""
    tokens_so_far: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            position += 1
            continue
        kind = match.lastgroup or ""
        word = match.group(kind)
        spaced = match.start(kind) > match.start() or position == 0
        tokens_so_far.extend(
            _classify_word(
                Token(kind, word, spaced, match.start(kind)),
                joining,
                tokens_so_far,
                text[match.end() : match.end() + 4],
            )
        )
        position = match.end()
    return tokens_so_far


def _classify_word(
    token: Token, joining: frozenset[str], before: list[Token], behind: str
) -> list[Token]:
    """Decide whether letters in a row are a function, words or variables."""
    word = token.text
    if token.kind == "command":
        if word in _JOINING:
            return [token._replace(kind="word", text=AND)]
        if word in _VARIABLES:
            return [token._replace(kind="name")]
        if word[1:] in FUNCTIONS and word not in ("\\sqrt", "\\cbrt"):
            return [token._replace(kind="function", text=word[1:])]
        return [token]
    if word == ":" and not (
        before and before[-1].kind == "number" and behind.lstrip()[:1].isdigit()
    ):
        return [token._replace(kind="word")]
    if token.kind != "word":
        return [token._replace(text="^") if word == "**" else token]
    letters = word.rstrip("'").translate(_LOOKALIKES)
    small = letters.casefold()
    if small in joining and (
        len(letters) > 1 or not letters.isascii() or _parts(token, before, behind)
    ):
        return [token._replace(text=AND)]
    if len(letters) == 1 and _LETTER.match(letters):
        return [token._replace(kind="name", text=word.translate(_LOOKALIKES))]
    if small in ("sqrt", "cbrt"):
        return [token._replace(kind="command", text=f"\\{small}")]
    if small in FUNCTIONS:
        return [token._replace(kind="function", text=small)]
    if small in _CONSTANTS:
        return [token._replace(kind="command", text=_CONSTANTS[small])]
    if len(letters) == 2 and letters[0] == "و" and _LETTER.match(letters[1]):
        return [token._replace(text=AND), token._replace(kind="name", text=letters[1])]
    tied = (
        not token.spaced
        and before
        and (before[-1].kind == "number" or before[-1].text in _BEFORE_NAMES)
    )
    if (
        letters.isascii()
        and len(letters) <= 4
        and letters.islower()
        and (tied or behind[:1] in ("^", "*"))
    ):
        return [
            Token("name", letter, token.spaced and not at, token.start + at)
            for at, letter in enumerate(letters)
        ]
    return [token]


_CONSTANTS = {"pi": "\\pi", "inf": "\\infty", "infinity": "\\infty", "oo": "\\infty"}
_BEFORE_NAMES = ("^", "*", ")", "/", "+", "-", "{")


def _parts(token: Token, before: list[Token], behind: str) -> bool:
    """Return whether a single letter is a word between two answers ("2 y 3"), not a variable."""
    if not token.spaced or behind[:1] not in (" ", "") or not before:
        return False
    complete = before[-1].kind in ("number", "name") or before[-1].text in (
        ")",
        "}",
        "]",
        "!",
        "%",
    )
    following = behind.strip()[:1]
    return complete and following not in tuple("=+*/^<>)")


class _Parser:
    """A recursive-descent parser of tokens; each token is read once."""

    def __init__(self, read: Sequence[Token]) -> None:
        self.read = read
        self.place = 0
        self.depth = 0
        self.brackets = 0

    def peek(self) -> str:
        return self.read[self.place].text if self.place < len(self.read) else ""

    def kind(self) -> str:
        return self.read[self.place].kind if self.place < len(self.read) else ""

    def take(self) -> Token:
        if self.place >= len(self.read):
            raise Unreadable
        self.place += 1
        return self.read[self.place - 1]

    def expect(self, text: str) -> None:
        if self.take().text != text:
            raise Unreadable

    def parse_all(self) -> Tree:
        """Parse all tokens: an expression, a relation, or several."""
        tree = self.parse_several()
        if self.place < len(self.read):
            raise Unreadable
        return tree

    def parse_several(self, closing: Sequence[str] = ()) -> Tree:
        relations = [self.relation()]
        while self.peek() in SEPARATORS:
            while self.peek() in SEPARATORS:
                self.take()
            if self.place >= len(self.read) or (
                self.peek() in closing and self.peek() != "["
            ):
                break
            relations.append(self.relation())
        return relations[0] if len(relations) == 1 else ("several", relations)

    def relation(self) -> Tree:
        sides = [self.sum()]
        signs = []
        while self.peek() in _RELATIONS:
            signs.append(_RELATIONS[self.take().text])
            sides.append(self.sum())
        return sides[0] if not signs else ("relation", signs, sides)

    def sum(self) -> Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable
        sign = ""
        while self.peek() in ("+", "-") or self.peek() == "\\pm":
            text = self.take().text
            if "\\pm" in (text, sign):
                sign = "\\pm"
            elif (text == "-") is (sign != "-"):
                sign = "-"
            else:
                sign = ""
        tree = self.product()
        if sign:
            tree = (
                ("negative", tree)
                if sign == "-"
                else ("plus or minus", ("number", Fraction(0)), tree)
            )
        while self.peek() in ("+", "-", "\\pm", "\\cup", "\\cap", "\\setminus"):
            operation = self.take().text
            names = {
                "\\pm": "plus or minus",
                "\\cup": "union",
                "\\cap": "intersection",
                "\\setminus": "without",
            }
            tree = (names.get(operation, operation), tree, self.product())
        self.depth -= 1
        return tree

    def product(self) -> Tree:
        tree = self.signed_factor()
        while True:
            text = self.peek()
            if text in ("*", "\\times", "\\cdot"):
                self.take()
                tree = ("*", tree, self.signed_factor())
            elif text in ("/", "\\div", ":"):
                self.take()
                tree = ("ratio" if text == ":" else "/", tree, self.signed_factor())
            elif self.starts_factor():
                tree = self._beside(tree)
            else:
                return tree

    def _beside(self, tree: Tree) -> Tree:
        """Parse a product without a sign; a number before a numeric fraction is a sum ("1 1/2")."""
        mixed = tree[0] == "number" and tree[1].denominator == 1
        if self.kind() == "number":
            ahead = [token.text for token in self.read[self.place : self.place + 3]]
            if not (
                mixed
                and self.read[self.place].spaced
                and len(ahead) == 3
                and ahead[1] == "/"
                and ahead[2].isdigit()
            ):
                raise Unreadable
            top = self.take()
            _ = self.take()
            bottom = self.take()
            return (
                "+",
                tree,
                (
                    "/",
                    ("number", Fraction(top.text)),
                    ("number", Fraction(bottom.text)),
                ),
            )
        is_fraction = self.peek() == "\\frac"
        factor = self.power()
        if (
            mixed
            and is_fraction
            and factor[0] == "/"
            and factor[1][0] == factor[2][0] == "number"
        ):
            return ("+", tree, factor)
        return ("*", tree, factor)

    def starts_factor(self) -> bool:
        kind = self.kind()
        text = self.peek()
        if kind in ("number", "name", "function"):
            return True
        if kind == "command":
            return text in (
                "\\frac",
                "\\sqrt",
                "\\pi",
                "\\infty",
                "\\{",
                "\\binom",
                "\\cbrt",
                "\\log",
            )
        return text in ("(", "{") or (text == "[" and not self.brackets)

    def signed_factor(self) -> Tree:
        if self.peek() in ("-", "+"):
            negative = self.take().text == "-"
            factor = self.power()
            return ("negative", factor) if negative else factor
        return self.power()

    def power(self) -> Tree:
        base = self.postfix()
        if self.peek() == "^":
            self.take()
            exponent = self.exponent()
            return ("^", base, exponent)
        return base

    def exponent(self) -> Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable
        if self.peek() in ("-", "+"):
            negative = self.take().text == "-"
            exponent = self.power()
            exponent = ("negative", exponent) if negative else exponent
        else:
            exponent = self.power()
        self.depth -= 1
        return exponent

    def postfix(self) -> Tree:
        tree = self.primary()
        while self.peek() in ("!", "%"):
            tree = ("factorial", tree) if self.take().text == "!" else ("percent", tree)
        return tree

    def group(self, closing: str) -> Tree:
        tree = self.parse_several((closing,))
        self.expect(closing)
        return tree

    def argument(self) -> Tree:
        """One argument of a LaTeX command: a group in braces, or a single digit or letter."""
        if self.peek() == "{":
            self.take()
            return self.group("}")
        token = self.take()
        if token.kind == "number" and len(token.text) > 1 and token.text.isdigit():
            # "\\frac12": the tokens are put back digit by digit.
            later_digits = [
                Token("number", digit, False, token.start) for digit in token.text[1:]
            ]
            self.read = [
                *self.read[: self.place],
                *later_digits,
                *self.read[self.place :],
            ]
            token = Token("number", token.text[0], False, token.start)
        if token.kind == "number":
            return ("number", Fraction(token.text))
        if token.kind == "name":
            return ("name", token.text)
        if token.text == "\\pi":
            return ("constant", math.pi)
        if token.text == "\\sqrt":
            return self.root()
        raise Unreadable

    def root(self) -> Tree:
        degree: Tree = ("number", Fraction(2))
        if self.peek() == "[":
            self.take()
            degree = self.group("]")
        if self.peek() in ("(", "{"):
            closing = ")" if self.take().text == "(" else "}"
            under = self.group(closing)
        elif self.kind() == "number":
            under = ("number", Fraction(self.take().text))
        else:
            under = self.argument()
        return ("root", under, degree)

    def primary(self) -> Tree:
        token = self.take()
        if token.kind == "number":
            return _number(token.text)
        if token.kind == "name":
            return self._name(token)
        if token.kind == "function":
            return self._function(token.text)
        if token.kind == "command":
            return self._command(token.text)
        if token.text in ("(", "[", "{"):
            return self._bracketed(token.text)
        if token.text == "|":
            tree = ("function", "abs", self.sum())
            self.expect("|")
            return tree
        if token.text == "]":
            return self._bracketed("]")
        if token.text in ("$", "€", "£", "¥", "₹"):
            return self.primary()
        raise Unreadable

    def _name(self, token: Token) -> Tree:
        name = token.text
        if self.peek() == "_":
            self.take()
            if self.peek() in ("{", "("):
                closing = "}" if self.take().text == "{" else ")"
                inside = []
                while self.peek() != closing:
                    inside.append(self.take().text)
                self.take()
                name += "_" + "".join(inside)
            else:
                name += "_" + self.take().text
        if name == "e":
            return ("constant", math.e)
        return ("name", name)

    def _function(self, name: str) -> Tree:
        base: Tree | None = None
        exponent: Tree | None = None
        if name == "log" and self.peek() == "_":
            self.take()
            if self.peek() == "(":
                self.take()
                base = self.group(")")
            else:
                base = self.argument()
        if self.peek() == "^":
            self.take()
            exponent = self.exponent()
        argument = self._applied()
        tree: Tree
        if base is not None:
            tree = ("/", ("function", "ln", argument), ("function", "ln", base))
        elif exponent == ("negative", ("number", Fraction(1))):
            return ("function", f"arc{name}", argument)
        else:
            tree = ("function", name, argument)
        return tree if exponent is None else ("^", tree, exponent)

    def _applied(self) -> Tree:
        """Parse what a function is applied to: a bracket, or the factors that follow."""
        if self.peek() in ("(", "[", "{"):
            return self.power()
        if self.kind() == "function":
            return self.power()
        if self.peek() == "-":
            self.take()
            return ("negative", self._applied())
        tree = self.power()
        while self.kind() in ("number", "name") or self.peek() in ("\\pi", "/"):
            if self.peek() == "/":
                self.take()
                tree = ("/", tree, self.power())
            elif self.kind() == "number":
                raise Unreadable
            else:
                tree = ("*", tree, self.power())
        return tree

    def _command(self, name: str) -> Tree:
        if name == "\\frac":
            top = self.argument()
            return ("/", top, self.argument())
        if name == "\\binom":
            above = self.argument()
            return ("choose", above, self.argument())
        if name == "\\sqrt":
            return self.root()
        if name == "\\cbrt":
            return (
                "root",
                self.argument() if self.peek() == "{" else self.primary(),
                ("number", Fraction(3)),
            )
        if name == "\\pi":
            return ("constant", math.pi)
        if name == "\\infty":
            return ("infinity",)
        if name in ("\\emptyset", "\\varnothing"):
            return ("list", "{", "}", [])
        if name == "\\{":
            return self._bracketed("{", "\\}")
        if name == "\\|":
            tree = ("function", "abs", self.sum())
            self.expect("\\|")
            return tree
        raise Unreadable

    def _bracketed(self, opening: str, closing: str = "") -> Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable
        ends = (
            (closing,)
            if closing
            else {
                "{": ("}",),
                "(": (")", "]", "["),
                "[": ("]", ")", "["),
                "]": ("[", "]", ")"),
            }[opening]
        )
        if self.peek() in ends and self.peek() != "[":
            return ("list", opening, self.take().text, [])
        self.brackets += 1
        inside = self.parse_several(ends)
        if self.peek() in ("|", ":", "\\mid") and opening == "{":
            self.take()
            inside = self.parse_several(ends)
        self.brackets -= 1
        last = self.take().text
        if last not in ends:
            raise Unreadable
        self.depth -= 1
        if inside[0] == "several":
            return (
                "list",
                "(" if opening == "]" else opening,
                ")" if last == "[" else last,
                inside[1],
            )
        if opening == "{" and closing:
            return ("list", "{", "}", [inside])
        if inside[0] == "list" and opening == "[":
            return ("list", "[", "]", [inside])
        if inside[0] == "relation":
            return inside if opening == "{" else ("group", inside)
        return inside


def _number(text: str) -> Tree:
    digits, _, exponent = text.lower().partition("e")
    if not exponent:
        return ("number", Fraction(digits))
    power: Tree = ("number", Fraction(exponent.lstrip("+-")))
    power = ("negative", power) if exponent[0] == "-" else power
    return ("*", ("number", Fraction(digits)), ("^", ("number", Fraction(10)), power))


@lru_cache(maxsize=2048)
def parse(text: str, joining: frozenset[str] = frozenset()) -> Tree:
    """Parse a text.

    Raises:
        Unreadable: the text is not an expression.
    """
    if len(text) > MAX_CHARS:
        raise Unreadable
    matrix = _MATRIX.search(text)
    if matrix is not None:
        return _matrix(matrix[1], joining)
    return parse_tokens(tokenize_formula(without_wording(text), joining))


def without_wording(text: str) -> str:
    r"""Replace `\text{...}` and similar commands by their content."""
    return _WORDING.sub(r" \1 ", text) if "\\" in text else text


def parse_tokens(read: Sequence[Token]) -> Tree:
    """Parse tokens.

    Raises:
        Unreadable: the tokens are not an expression.
    """
    if not read or len(read) > MAX_CHARS:
        raise Unreadable
    try:
        return _Parser(read).parse_all()
    except (RecursionError, ZeroDivisionError, ValueError):
        raise Unreadable from None


def _matrix(inside: str, joining: frozenset[str]) -> Tree:
    rows = [row for row in re.split(r"\\\\", inside) if row.strip()]
    cells = [[parse(cell.strip(), joining) for cell in row.split("&")] for row in rows]
    if not cells or len({len(row) for row in cells}) != 1:
        raise Unreadable
    return ("list", "[", "]", [("list", "[", "]", row) for row in cells])


# -- the value of an expression ---------------------------------------------------------

_POINTS = tuple(
    tuple(
        Fraction(17 + 7 * index * turn + 3 * turn, 13 + 2 * index + turn)
        for index in range(12)
    )
    for turn in (1, 2, 3)
)
"""Values of the variables, in alphabetical order, at which expressions are compared."""


def names_in(tree: Any) -> set[str]:
    """Return the variables of an expression."""
    if isinstance(tree, tuple):
        if tree and tree[0] == "name":
            return set() if tree[1] == "i" else {tree[1]}
        return {name for branch in tree[1:] for name in names_in(branch)}
    if isinstance(tree, list):
        return {name for branch in tree for name in names_in(branch)}
    return set()


def evaluate(tree: Tree, values: Mapping[str, Fraction]) -> Number:
    """Evaluate an expression.

    Raises:
        Unreadable: the expression has no value.
    """
    try:
        return _evaluate(tree, values)
    except (OverflowError, ZeroDivisionError, ValueError, RecursionError):
        raise Unreadable from None


def _evaluate(tree: Tree, values: Mapping[str, Fraction]) -> Number:
    operation = tree[0]
    if operation == "number":
        return tree[1]  # type: ignore[no-any-return]
    if operation == "constant":
        return complex(tree[1])
    if operation == "name":
        if tree[1] == "i" and "i" not in values:
            return 1j
        return values[tree[1]] if tree[1] in values else _refuse_value()
    if operation == "group":
        return _refuse_value()
    if operation == "function":
        return _applied(tree[1], _evaluate(tree[2], values))
    if operation == "negative":
        return -_evaluate(tree[1], values)
    if operation == "percent":
        return _evaluate(tree[1], values) / 100
    if operation == "factorial":
        return _factorial(_evaluate(tree[1], values))
    if operation not in ("+", "-", "*", "/", "ratio", "^", "root", "choose"):
        return _refuse_value()
    left = _evaluate(tree[1], values)
    right = _evaluate(tree[2], values)
    if operation == "+":
        return left + right
    if operation == "-":
        return left - right
    if operation == "*":
        return left * right
    if operation in ("/", "ratio"):
        return left / right
    if operation == "^":
        return _raise_to_power(left, right)
    if operation == "root":
        return _root(left, right)
    return _binomial(left, right)


def _refuse_value() -> Number:
    raise Unreadable


def _applied(name: str, argument: Number) -> Number:
    if name == "abs" and isinstance(argument, Fraction):
        return abs(argument)
    function = FUNCTIONS.get(name)
    if function is None:
        raise Unreadable
    return complex(function(complex(argument)))


def _factorial(number: Number) -> Number:
    if isinstance(number, Fraction) and number.denominator == 1 and 0 <= number <= 400:
        return Fraction(math.factorial(int(number)))
    raise Unreadable


def _raise_to_power(base: Number, exponent: Number) -> Number:
    if (
        isinstance(base, Fraction)
        and isinstance(exponent, Fraction)
        and exponent.denominator == 1
    ):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exponent) <= MAX_BITS:
            return base ** int(exponent)
    if isinstance(base, Fraction) and isinstance(exponent, Fraction) and base >= 0:
        return (
            _root(
                _raise_to_power(base, Fraction(exponent.numerator)),
                Fraction(exponent.denominator),
            )
            if exponent.numerator.bit_length() < 8 and exponent.denominator > 1
            else complex(float(base) ** float(exponent))
        )
    return complex(base) ** complex(exponent)


def _root(under: Number, degree: Number) -> Number:
    if (
        isinstance(under, Fraction)
        and isinstance(degree, Fraction)
        and degree.denominator == 1
        and 2 <= degree <= 20
    ):
        size = int(degree)
        if under < 0 and size % 2:
            return -_root(-under, degree)
        if (
            under >= 0
            and under.numerator.bit_length() < 900
            and under.denominator.bit_length() < 900
        ):
            top, bottom = (
                round(float(part) ** (1 / size))
                for part in (under.numerator, under.denominator)
            )
            if top**size == under.numerator and bottom**size == under.denominator:
                return Fraction(top, bottom)
    if under == 0:
        return Fraction(0)
    return complex(under) ** (1 / complex(degree))


def _binomial(above: Number, below: Number) -> Number:
    if (
        isinstance(above, Fraction)
        and isinstance(below, Fraction)
        and above.denominator == below.denominator == 1
        and 0 <= below <= above <= 400
    ):
        return Fraction(math.comb(int(above), int(below)))
    raise Unreadable


def equal_numbers(first: Number, two: Number) -> bool:
    """Return whether two numbers are equal; fractions must be exactly equal."""
    if isinstance(first, Fraction) and isinstance(two, Fraction):
        return first == two
    first = complex(first)
    two = complex(two)
    if not (cmath.isfinite(first) and cmath.isfinite(two)):
        return False
    return abs(first - two) <= TOLERANCE * max(1e-3, abs(first), abs(two))


def sample_points(*trees: Any) -> list[dict[str, Fraction]]:
    """Values for all variables of some expressions, at several points."""
    names = sorted({name for tree in trees for name in names_in(tree)})
    if len(names) > len(_POINTS[0]):
        raise Unreadable
    return [
        dict(zip(names, row, strict=False))
        for row in (_POINTS if names else _POINTS[:1])
    ]


def same_value(left: Tree, two: Tree) -> bool:
    """Return whether two expressions are equal at all points.

    Raises:
        Unreadable: one of them has no value.
    """
    if left == two:
        return True
    if "infinity" in (left[0], two[0]) or ("negative", ("infinity",)) in (left, two):
        return False
    at = sample_points(left, two)
    if not all(
        equal_numbers(evaluate(left, values), evaluate(two, values)) for values in at
    ):
        return False
    return (
        _same_below_zero(left, two, at[0])
        if _MAY_LOSE_A_SIGN.search(repr((left, two)))
        else True
    )


_MAY_LOSE_A_SIGN = re.compile("'(?:root|abs)'")


def _same_below_zero(left: Tree, two: Tree, values: Mapping[str, Fraction]) -> bool:
    """Return whether two expressions agree for negative variables, wherever both are real."""
    for name, number in values.items():
        negative = {**values, name: -abs(number)}
        if not (_is_real_in(left, negative) and _is_real_in(two, negative)):
            continue
        if not equal_numbers(evaluate(left, negative), evaluate(two, negative)):
            return False
    return True


def _is_real_in(tree: Any, values: Mapping[str, Fraction]) -> bool:
    """Return whether an expression and all its operands are real."""
    if isinstance(tree, list):
        return all(_is_real_in(branch, values) for branch in tree)
    if not isinstance(tree, tuple) or tree[:1] in (
        ("number",),
        ("name",),
        ("constant",),
    ):
        return True
    try:
        number = complex(evaluate(tree, values))
    except (Unreadable, OverflowError, ZeroDivisionError, ValueError):
        return False
    if abs(number.imag) > TOLERANCE * max(1.0, abs(number)):
        return False
    return all(
        _is_real_in(branch, values)
        for branch in tree[1:]
        if isinstance(branch, tuple | list)
    )
