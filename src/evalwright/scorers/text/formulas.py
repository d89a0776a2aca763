"""Formulas in a text: where they stand, and whether two of them are the same.

What a formula states is read in `expressions.py` and `formula_shapes.py`. No text is ever executed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from evalwright.scorers.text import expressions
from evalwright.scorers.text.expressions import (
    Token,
    Tree,
    Unreadable,
    names_in,
    possible_readings,
    write_with_signs,
)
from evalwright.scorers.text.formula_shapes import (
    Equation,
    Shape,
    Values,
    same_shape,
    shape_of,
)
from evalwright.scorers.text.languages import short_code
from evalwright.scorers.text.marks import alternatives
from evalwright.scorers.text.normalise import last_box
from evalwright.scorers.text.tokens import word_set

MAX_REGION_CHARS = 1_500
"""Formulas are looked for in this many characters of a claim or a sentence."""
MAX_CHUNKS = 24
_KNOWN = word_set(
    "sqrt frac dfrac tfrac sin cos tan cot sec log ln exp pi or and inf infty cup cap"
    " text left right circ cdot times pm le ge leq geq in"
)
_FORMULA = re.compile(
    r"[=^√π±∞\\<>≤≥]|[A-Za-z0-9)]\s?[*+]\s?[A-Za-z0-9(]|^[-−][A-Za-z0-9]|^[(\[{].*,"
    r"|\d[xyzabn]\b|\b(?:sin|cos|tan|ln|log)\b"
)
_JOINING = frozenset(
    word for word in alternatives("or").split("|") if len(word) > 1 and word != "na"
)
_JOINING_LETTERS = {
    "es": "yoeu",
    "it": "eo",
    "pt": "eo",
    "pl": "i",
    "ca": "io",
    "gl": "eo",
}
"""Words of one letter between two answers, by language."""
_ALWAYS_JOINING = frozenset("иіو와과と")
_BOLD = re.compile(
    r"(?<![A-Za-z0-9)*])\*\*(?=[^\s*])([^*\n]{1,200}?)\*\*(?![A-Za-z0-9(*])"
)
_CONTEXT_CHARS = 60
"""Characters next to a formula that may deny it, or call it approximate."""
_DENIED_BEFORE = re.compile(
    r"(?:(?<![^\W_])(?:(?:is|are|was|can|do|does|did|could|would)(?:n['’]?t|"
    r" ?not)|not|never|nicht|kein\w*|pas|jamais|no es|y"
    r" no|ni|não|non|nem|bukan(?:lah)?|tidak|không|не|nie|hindi|sio?|siyo|ليست?|niet|geen)"
    r"(?:\s(?:be|equal(?:s| to)?|is|là|phải(?: là)?|é|è|est|egal|равно|jest|sama"
    r" dengan))*"
    r"|不是|不等于|不等於|并非|並非|ไม่ใช่|ไม่เท่ากับ|≠|\\neq?)\s?[$`*(]*\s?(?:x\s?=\s?)?$",
    re.IGNORECASE,
)
_DENIED_BEHIND = re.compile(
    r"^[$`*)]*\s?(?:(?:is|was|would be|seems|must be|are)"
    r" (?:wrong|incorrect|false|mistaken|not (?:the|right|correct|it\b|true|possible|a"
    r" (?:solution|valid|possible)))|(?:isn['’]?t|can['’]?t be|cannot be|doesn['’]?t"
    r" work) ?(?:the|right|correct|it\b|true|possible|a (?:solution|valid))?"
    r"|ist (?:falsch|nicht|inkorrekt|keine? lösung)|(?:est|serait)"
    r" (?:faux|fausse|incorrect\w*|erroné\w*)|n['’]est pas|no es|(?:es|está)"
    r" (?:incorrect\w*|mal\b|fals\w+|equivocad\w+)|não é|(?:é|está)"
    r" (?:incorret\w*|errad\w+|fals\w+)|non è|è (?:sbagliat\w+|errat\w+|fals\w+)"
    r"|[-–—]?\s?(?:не\b|неверн\w*|неправильн\w*|это неверно)|(?:adalah |itu"
    r" )?(?:bukan|salah)\b|(?:là )?(?:không phải|sai\b|không đúng)|(?:jest błędn\w*|nie"
    r" jest)|değil|(?:yanlış)|नहीं|गलत"
    r"|(?:并)?不(?:是|对|對|正确|正確)|是错|是錯|是错误|(?:では|じゃ)(?:な|あり)|でなく|は"
    r"(?:間違|違|誤|正しく)|(?:은|는|이|가)?\s?"
    r"(?:아니|아닙|아닌|틀|오답|답이 아))",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?<![^\W_])(?:about|around|roughly|approximately|circa|etwa|ungefähr|rund|environ"
    r"|aproximadamente|unos|cerca"
    r" de|sekitar|kira-kira|khoảng|примерно|около|yaklaşık|około|ongeveer)\s?[$*]*$|(?:约|約|大约"
    r"|大約|およそ|약|대략)\s?[$*]*$",
    re.IGNORECASE,
)
_TWO_SETS = re.compile(r"(\{[^{}]*,[^{}]*\}\s*)[,，;]\s*(?=[A-Za-z][^,{}=]{0,12}=)")
"""Two sets with their names, one after the other."""
_TORN_BEFORE = re.compile(r"(?:[\d^_]|\d[.,])$")
_TORN_BEHIND = re.compile(r"[.,]\d")


def is_formula(text: str) -> bool:
    """Return whether a target is a formula rather than a number or words."""
    if _FORMULA.search(text) is not None:
        words = re.findall(r"[^\W\d_]{3,}", text)
        return "\\" in text or (
            all(word.casefold() in _KNOWN for word in words)
            and any(map(str.isalnum, text))
        )
    has_several_numbers = len(re.findall(r"\d+", text)) > 1 and not re.fullmatch(
        r"\D{0,3}\d+(?:[.,' ]\d+)*(?:\s?/\s?\d+)?\D*", text
    )
    # "3:4", "2, 3 and 5"
    return has_several_numbers and not re.search(
        r"[^\W\d_]{2,}", re.sub(r"\b(?:and|or)\b", "", text)
    )


class FoundFormula(NamedTuple):
    """A formula in a text, and what the text says about it.

    Args:
        text: the formula as it is written.
        shapes: what it states, in each reading of its commas.
        bold: whether it is in bold.
        denied: whether the text says that it is not the answer.
        approximate: whether the text calls it approximate.
        aside: whether it stands in brackets.
        torn: whether it is part of a longer number, or raised.
        before: the text since the formula before it.
    """

    text: str
    shapes: tuple[Shape, ...]
    bold: bool = False
    denied: bool = False
    approximate: bool = False
    aside: bool = False
    torn: bool = False
    before: str = ""


@lru_cache(maxsize=4096)
def is_same_formula(first: str, second: str, language: str = "en") -> bool | None:
    """Return whether two short answers are equal in form or value; None if one cannot be read."""
    left, right = (
        parse_shapes(last_box(text) or text, language) for text in (first, second)
    )
    if not left or not right:
        return (
            True
            if plain_formula(first) == plain_formula(second) and plain_formula(first)
            else None
        )
    return equal_shapes(left, right)


def equal_shapes(targets: Sequence[Shape], answers: Sequence[Shape]) -> bool:
    return any(
        _same_or_in_units(target, answer) for target in targets for answer in answers
    )


def _same_or_in_units(target: Shape, answer: Shape) -> bool:
    try:
        if (
            isinstance(answer, Equation)
            and names_in(answer.left) == names_in(answer.right) <= _UNITS
        ):
            answer = Values((answer.right,))  # "300 m = 0.3 m"
        return same_shape(target, answer) or same_shape(
            _without_units(target, answer), _without_units(answer, target)
        )
    except (Unreadable, RecursionError, OverflowError, ZeroDivisionError):
        return False


_UNITS = frozenset(
    ["m", "s", "h", "g", "l", "L", "N", "J", "W", "V", "A", "K", "C", "t", "R", "F"]
)


def _without_units(shape: Shape, other_shape: Shape) -> Shape:
    """Drop letters that are units ("20 m/s") if the other number has none."""
    if not (
        isinstance(shape, Values)
        and isinstance(other_shape, Values)
        and len(shape.trees) == len(other_shape.trees) == 1
    ):
        return shape
    names = names_in(shape.trees[0])
    if names and names <= _UNITS and not names_in(other_shape.trees[0]):
        return shape._replace(trees=(_unitless(shape.trees[0]),))
    return shape


def _unitless(tree: Any) -> Any:
    if isinstance(tree, tuple):
        return (
            ("number", Fraction(1))
            if tree[:1] == ("name",)
            else tuple(map(_unitless, tree))
        )
    return tree


@lru_cache(maxsize=512)
def parse_shapes(text: str, language: str) -> tuple[Shape, ...]:
    """Parse a whole text, in each reading of its commas; () if it is not a formula."""
    shapes = []
    for reading in possible_readings(
        write_with_signs(text.strip().strip("$").rstrip(" .")), short_code(language)
    ):
        with suppress(
            Unreadable, RecursionError, OverflowError, ZeroDivisionError, ValueError
        ):
            shapes.append(shape_of(_parse_without_words(reading, language)))
    return tuple(shapes)


def _parse_without_words(text: str, language: str) -> Tree:
    """Parse a text after removing the words around its formula.

    Raises:
        Unreadable: there is no formula in it.
    """
    joining = words_between_answers(language)
    with suppress(Unreadable):
        return expressions.parse(text.replace("$", " "), joining)
    read = expressions.tokenize_formula(expressions.without_wording(text), joining)
    chunks = list(_split_into_chunks(read))
    if len(chunks) != 1:
        raise Unreadable
    return expressions.parse_tokens(chunks[0])


@lru_cache(maxsize=64)
def words_between_answers(language: str) -> frozenset[str]:
    """Return words that separate several answers ("x = 2 or x = 3")."""
    return (
        _JOINING
        | _ALWAYS_JOINING
        | frozenset(_JOINING_LETTERS.get(short_code(language), ""))
    )


# -- formulas in a text ----------------------------------------------------------------


def find_formulas(text: str, language: str) -> list[FoundFormula]:
    """Find the formulas of a text, in order."""
    text = text[-MAX_REGION_CHARS:].replace("$", " ")
    formulas: list[FoundFormula] = []
    copied_to = 0
    for bold in _BOLD.finditer(text):
        formulas += _plain_candidates(
            text[copied_to : bold.start()], language, bold=False
        )
        formulas += _plain_candidates(bold[1], language, bold=True)
        copied_to = bold.end()
    return formulas + _plain_candidates(text[copied_to:], language, bold=False)


def _plain_candidates(text: str, language: str, *, bold: bool) -> list[FoundFormula]:
    text = (
        re.sub(r"\\[()\[\]](?!\d)|\*\*|`", " ", text)
        if "\\" in text or "*" in text or "`" in text
        else text
    )
    text = _TWO_SETS.sub(r"\1 . ", text)
    by_text: dict[str, list[Shape]] = {}
    places: dict[str, int] = {}
    around: dict[str, tuple[str, str, str]] = {}
    for matrix in re.finditer(
        r"\\begin\s*\{[pbBvV]?matrix\}.*?\\end\s*\{[pbBvV]?matrix\}", text, re.DOTALL
    ):
        by_text[matrix.group()] = list(parse_shapes(matrix.group(), language))
        places[matrix.group()] = matrix.start()
    text = re.sub(
        r"\\begin\s*\{[pbBvV]?matrix\}.*?\\end\s*\{[pbBvV]?matrix\}",
        " ; ",
        text,
        flags=re.DOTALL,
    )
    for reading in possible_readings(write_with_signs(text), short_code(language)):
        read = expressions.tokenize_formula(
            expressions.without_wording(reading), words_between_answers(language)
        )
        end = 0
        for chunk in list(_split_into_chunks(read))[-MAX_CHUNKS:]:
            for formula_tokens in _parse_chunk(chunk):
                between = reading[end : formula_tokens[0].start]
                near = reading[
                    max(0, formula_tokens[0].start - _CONTEXT_CHARS) : formula_tokens[
                        0
                    ].start
                ]
                end = formula_tokens[-1].start + len(formula_tokens[-1].text)
                written = reading[formula_tokens[0].start : end]
                around[written] = near, between, reading[end : end + _CONTEXT_CHARS]
                with suppress(
                    Unreadable,
                    RecursionError,
                    OverflowError,
                    ZeroDivisionError,
                    ValueError,
                ):
                    shape = shape_of(expressions.parse_tokens(formula_tokens))
                    by_text.setdefault(written, []).append(shape)
                    places[written] = formula_tokens[0].start
    in_order = sorted(by_text, key=lambda written: places[written])
    return [
        _describe_context(
            written, tuple(by_text[written]), bold, *around.get(written, ("", "", ""))
        )
        for written in in_order
        if by_text[written]
    ]


def _describe_context(
    written: str,
    shapes: tuple[Shape, ...],
    bold: bool,
    near: str,
    between: str,
    behind: str,
) -> FoundFormula:
    denied = (
        _DENIED_BEFORE.search(near) is not None
        or _DENIED_BEHIND.match(behind) is not None
    )
    opening = max(between.rfind("("), between.rfind("（"))
    aside = opening > max(between.rfind(")"), between.rfind("）"))
    torn = (
        _TORN_BEFORE.search(near) is not None or _TORN_BEHIND.match(behind) is not None
    )
    about = _ABOUT.search(near) is not None
    return FoundFormula(written, shapes, bold, denied, about, aside, torn, between)


_EDGES = frozenset({",", ";", ":", "'", '"', ".", "?", "&", "and", "=", "*", "=>", "~"})


_ENDS = _EDGES | {"(", "{", "-", "+", "\\{"}
_BEGINNINGS = _EDGES | {"%", "!", ")", "}", "/", "^", "_", "|", "\\}"}


def _split_into_chunks(read: Sequence[Token]) -> Iterator[list[Token]]:
    """Split tokens at words; separators at the ends of a chunk are dropped."""
    chunk: list[Token] = []
    for token in [*read, Token("word", "", True, 0)]:
        breaks = (
            token.kind == "word" and token.text != expressions.AND
        ) or token.text in (
            ".",
            "?",
            '"',
            "#",
            "'",
        )
        if not breaks and chunk and chunk[-1].kind == "number" == token.kind:
            yield from _trim_chunk(chunk)
            chunk = [token]
        elif not breaks:
            chunk.append(token)
        else:
            yield from _trim_chunk(chunk)
            chunk = []


def _trim_chunk(chunk: list[Token]) -> Iterator[list[Token]]:
    if len(chunk) == 2 and chunk[0].text == "/":
        return  # of a unit in words, "km/h"
    end = len(chunk)
    while end and (
        chunk[end - 1].text in _ENDS
        or (chunk[end - 1].text == "[" and chunk[0].text not in ("]", "[", "("))
    ):
        end -= 1
    start = 0
    while start < end and chunk[start].text in _BEGINNINGS:
        start += 1
    trimmed = chunk[start:end]
    if any(token.kind != "sign" for token in trimmed):
        yield trimmed


def _parse_chunk(chunk: list[Token]) -> Iterator[list[Token]]:
    """Parse a chunk as a whole; else its parts between separators and the result of an equation."""
    with suppress(Unreadable):
        expressions.parse_tokens(chunk)
        yield chunk
        return
    for section in _split_at(chunk, expressions.SEPARATORS):
        with suppress(Unreadable):
            expressions.parse_tokens(section)
            yield section
            continue
        last = list(_split_at(section, {"=", "=>", "\\approx"}))[-1:]
        for tail in last:
            with suppress(Unreadable):
                expressions.parse_tokens(tail)
                yield tail


def _split_at(chunk: Sequence[Token], separators: set[str]) -> Iterator[list[Token]]:
    section: list[Token] = []
    for token in [*chunk, Token("sign", next(iter(separators)), True, 0)]:
        if token.text in separators:
            yield from _trim_chunk(section)
            section = []
        else:
            section.append(token)


# -- comparing whole replies ---------------------------------------------------------------


def plain_formula(text: str) -> str:
    """Write a formula without spaces, grouping brackets and the name of its variable."""
    text = write_with_signs(last_box(text) or text)
    text = expressions.without_wording(text).replace("$", "")
    return re.sub(
        r"\s|[.。]+$", "", re.sub(r"^\s*[a-zA-Z]\s*=(?!=)", "", text)
    ).casefold()


def compare_with_math_verify(
    response: str, reference: str, latex: bool = True, expression: bool = True
) -> tuple[Any, ...]:
    """Compare two texts with the library math-verify, without any rule of ours.

    Returns:
        What it reads in each text (None if it fails), and whether it finds them equal.
    """
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    configs = [LatexExtractionConfig()] * latex + [ExprExtractionConfig()] * expression
    read: list[Any] = [None, None]
    right = False
    with suppress(Exception):
        read[0] = parse(response, extraction_config=configs)
    with suppress(Exception):
        read[1] = parse(reference, extraction_config=configs)
        right = read[0] is not None and bool(verify(read[1], read[0]))
    return *(
        parsed and [str(expression) for expression in parsed] for parsed in read
    ), right
