"""Whether a reply gives a target formula: what in it is the answer, and whether that is the same
(`expressions.py`, `formula_shapes.py`).

What the reply claims decides, else its last sentences with a formula. Plain numbers with
units and in words are read by `scorers/quantity.py`. Nothing of a text is run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from evalwright.scorers.number import find_numbers
from evalwright.scorers.quantity import Numbers, Tolerance, goals_of
from evalwright.scorers.text import expressions
from evalwright.scorers.text.expressions import (
    Token,
    Tree,
    Unreadable,
    in_signs,
    names_in,
    readings,
)
from evalwright.scorers.text.formula_shapes import (
    Assigned,
    Equation,
    Shape,
    Values,
    as_intervals,
    real,
    same_shape,
    shape_of,
)
from evalwright.scorers.text.languages import short_code
from evalwright.scorers.text.locate import Said, last_box
from evalwright.scorers.text.marks import alternatives
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.wordlists import word_set
from evalwright.scorers.verdict import (
    Verdict,
    correct,
    incorrect,
    shortened,
    unreadable,
)

MAX_REGION_CHARS = 1_500
"""Characters of a claim, or of a sentence, in which formulas are looked for."""
MAX_SENTENCES = 6
"""Sentences at the end of a reply without a claim in which its answer is looked for."""
MAX_CHUNKS = 24
MAX_WORDS_CHARS = 200
"""Characters of a reply's end in which numbers in words are looked for."""
_KNOWN = word_set(
    "sqrt frac dfrac tfrac sin cos tan cot sec log ln exp pi or and inf infty cup cap"
    " text left right circ cdot times pm le ge leq geq in"
)
_FORMULA = re.compile(
    r"[=^√π±∞\\<>≤≥]|[A-Za-z0-9)]\s?[*+]\s?[A-Za-z0-9(]|^[-−][A-Za-z0-9]|^[(\[{].*,|\d[xyzabn]\b|\b(?:sin|cos|tan|ln|log)\b"
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
"""Words of one letter between two answers."""
_ALWAYS_JOINING = frozenset("иіو와과と")
_BOLD = re.compile(
    r"(?<![A-Za-z0-9)*])\*\*(?=[^\s*])([^*\n]{1,200}?)\*\*(?![A-Za-z0-9(*])"
)
_SENTENCE_END = re.compile(r"\n+|(?<=[.!?])\s+(?!\d+\s*$)|(?<=[。！？])")
_FORM_ASKED = re.compile(
    r"irr[eé]duc|irredut|irridu|既约|最簡|有理化|factori|因式分解|素因数|소인수|인수분해|scientific|científica|scientifique|ausmultipl|développ|desarroll|desenvolv|展開|展开|전개|разлож|rahisisha|phân"
    r" tích|khai triển|mixed|mixto|misto|gemischt|partial frac|"
    r"simplif|reduce\b|lowest|rationali|vereinfach|kürze|factor|expand|约分|化简|簡約|簡単に|약분|간단|сократ|упрост|sederhanakan|rút"
    r" gọn|uprość|sadeleştir|बसरल|सरल|اختصر|بسط",
    re.IGNORECASE,
)
"""A question for one form of a number or formula."""
_CURRENCY = re.compile(r"(?<![^\W\d_])(?:Rp|RM|R\$|US\$)\.?\s?(?=\d)")
_OTHER_FORM = "is not in the form that is asked for"
_DENIED = "is said not to be the answer"
_SUPERSEDED = "is a step; another conclusion follows"
_AS_PERCENTAGE = "is a percentage, and none is asked for"
_FINAL_REASONS = (_OTHER_FORM, _DENIED, _SUPERSEDED, _AS_PERCENTAGE)
"""Why a formula that is the target in value is not the answer; a number in the text does not change
that.
"""
_CONTEXT_CHARS = 60
"""Characters beside a formula in which it is denied, or said to be about right."""
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
    r"|(?:并)?不(?:是|对|對|正确|正確)|是错|是錯|是错误|(?:では|じゃ)(?:な|あり)|でなく|は(?:間違|違|誤|正しく)|(?:은|는|이|가)?\s?(?:아니|아닙|아닌|틀|오답|답이 아))",
    re.IGNORECASE,
)
_ABOUT = re.compile(
    r"(?<![^\W_])(?:about|around|roughly|approximately|circa|etwa|ungefähr|rund|environ|aproximadamente|unos|cerca"
    r" de|sekitar|kira-kira|khoảng|примерно|около|yaklaşık|około|ongeveer)\s?[$*]*$|(?:约|約|大约|大約|およそ|약|대략)\s?[$*]*$",
    re.IGNORECASE,
)
_CHECKING = re.compile(
    r"(?<![^\W_])(?:check(?:ing)?|verif\w*|prob(?:e|ando)\b|überprüf\w*|kontroll\w*|vérif\w*|comprob\w*|comprueb\w*|prueba|conferindo|prova|провер\w*|periksa|pemeriksaan|cek\b|thử"
    r" lại|kiểm"
    r" tra|sprawdz\w*|sağlama|substitut\w*|einsetzen|explanation|erklärung|explication|explicación|explicação|объяснение|penjelasan|giải"
    r" thích"
    r"|because|since|when|as|weil|denn|da|wenn|parce|car|puisque|porque|pues|cuando|pois|perché|karena|sebab|vì|если|так"
    r" как|потому|ponieważ|bo)(?![^\W_])|检验|檢驗|验算|驗算|验证|因为|因為|検算|確認|なぜなら|검산|확인|왜냐|जाँच|التحقق",
    re.IGNORECASE,
)
_CONCLUDING = re.compile(
    r"(?<![^\W_])(?:so|thus|hence|therefore|then|finally|rounds? to|which"
    r" gives|also|daher|somit|folglich|dann|donc|alors|puis|luego|entonces|por (?:lo"
    r" )?tanto|así que|portanto|logo|então|quindi|dunque|jadi|maka|nên|vậy|suy"
    r" ra|значит|следовательно|поэтому|итого|więc|zatem|kwa"
    r" hiyo)(?![^\W_])|所以|因此|故|于是|よって|したがって|ゆえに|따라서|그러므로|그래서|इसलिए|لذلك|إذن|ดังนั้น",
    re.IGNORECASE,
)
_TWO_SETS = re.compile(r"(\{[^{}]*,[^{}]*\}\s*)[,，;]\s*(?=[A-Za-z][^,{}=]{0,12}=)")
"""Two sets by their names, one behind the other."""
_TORN_BEFORE = re.compile(r"(?:[\d^_]|\d[.,])$")
_TORN_BEHIND = re.compile(r"[.,]\d")
_NUMBER_ASKED = re.compile(
    r"(?<![^\W_])(?:how many|how much money|wie ?viele|combien"
    r" d|cuánt[oa]s|quant[oa]s|quant[ie]|berapa (?:banyak|jumlah)|bao"
    r" nhiêu|сколько|ile|kaç|ngapi|ilan)|几个|几|幾|多少|いくつ|何(?:個|人|本|枚|匹|円)|몇|कितने|كم",
    re.IGNORECASE,
)
_SAME_AGAIN = re.compile(
    r"(?<![^\W_])(?:or|that is|that['’]s|i\.?e|equivalently|in other words|which"
    r" is|remainder|oder|das (?:sind|ist)|also etwa|soit|c['’]est-à-dire|ou|o sea|es"
    r" decir|ou seja|cioè|ovvero|atau|yaitu|hay|tức là|то"
    r" есть|или|czyli|lub|yani|veya)(?![^\W_])|也就是|即|或|つまり|すなわち|または|즉|또는|या|أي|أو|หรือ",
    re.IGNORECASE,
)
"""What says the same once more, in other units or rounded."""
_PERCENT_ASKED = re.compile(
    r"%|％|percent|per cent|prozent|pour ?cent|por ?ciento|porcentaje|por"
    r" ?cento|porcentagem|percentuale|persen|phần"
    r" trăm|процент|procent|yüzde|asilimia|百分|パーセント|割合|퍼센트|백분|प्रतिशत|بالمئة|نسبة|เปอร์เซ็นต์|ร้อยละ",
    re.IGNORECASE,
)
_UNFINISHED = re.compile(r"(?:[=+×÷/−-]|\\(?:times|cdot|div))\s*$")
_DECIMALS = re.compile(r"(?<![\w.])\d+[.,](\d+)(?![\d.,])")


def is_formula(text: str) -> bool:
    """Whether a target is a formula rather than a number or words."""
    if _FORMULA.search(text) is not None:
        words = re.findall(r"[^\W\d_]{3,}", text)
        return "\\" in text or (
            all(word.casefold() in _KNOWN for word in words)
            and any(map(str.isalnum, text))
        )
    several = len(re.findall(r"\d+", text)) > 1 and not re.fullmatch(
        r"\D{0,3}\d+(?:[.,' ]\d+)*(?:\s?/\s?\d+)?\D*", text
    )
    # "3:4", "2, 3 and 5"
    return several and not re.search(
        r"[^\W\d_]{2,}", re.sub(r"\b(?:and|or)\b", "", text)
    )


class Candidate(NamedTuple):
    """A formula of a reply: as it is written, and what it says in each reading of its commas.

    bold: whether it is in bold. denied: whether the text says that it is not the answer. about:
    whether it is said to be about that. aside: whether it stands in brackets. torn: whether it is a
    part of a longer number, or a raised one. before: the text in front of it, from the formula
    before it on.
    """

    text: str
    shapes: tuple[Shape, ...]
    bold: bool = False
    denied: bool = False
    about: bool = False
    aside: bool = False
    torn: bool = False
    before: str = ""


@lru_cache(maxsize=4096)
def same(one: str, other: str, language: str = "en") -> bool | None:
    """Whether two short answers are the same in form or value; None where one of them cannot be
    read.
    """
    left, right = (
        _shapes_of(last_box(text) or text, language) for text in (one, other)
    )
    if not left or not right:
        return True if bare(one) == bare(other) and bare(one) else None
    return _equal(left, right)


def _equal(targets: Sequence[Shape], answers: Sequence[Shape]) -> bool:
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


def _without_units(shape: Shape, other: Shape) -> Shape:
    """A number times letters that are units ("20 m/s") as the number, where the other has none."""
    if not (
        isinstance(shape, Values)
        and isinstance(other, Values)
        and len(shape.trees) == len(other.trees) == 1
    ):
        return shape
    names = names_in(shape.trees[0])
    if names and names <= _UNITS and not names_in(other.trees[0]):
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
def _shapes_of(text: str, language: str) -> tuple[Shape, ...]:
    """What a whole text says, in each reading of its commas; () where it is no formula."""
    shapes = []
    for reading in readings(
        in_signs(text.strip().strip("$").rstrip(" .")), short_code(language)
    ):
        with suppress(
            Unreadable, RecursionError, OverflowError, ZeroDivisionError, ValueError
        ):
            shapes.append(shape_of(_trimmed(reading, language)))
    return tuple(shapes)


def _trimmed(text: str, language: str) -> Tree:
    """The tree of a text without words around it. Raises Unreadable."""
    joining = joining_words(language)
    with suppress(Unreadable):
        return expressions.parse(text.replace("$", " "), joining)
    read = expressions.tokens(expressions.without_wording(text), joining)
    parts = list(_chunks(read))
    if len(parts) != 1:
        raise Unreadable
    return expressions.parse_tokens(parts[0])


@lru_cache(maxsize=64)
def joining_words(language: str) -> frozenset[str]:
    """The words that stand between several answers ("x = 2 or x = 3")."""
    return (
        _JOINING
        | _ALWAYS_JOINING
        | frozenset(_JOINING_LETTERS.get(short_code(language), ""))
    )


# -- formulas in a text ----------------------------------------------------------------


def candidates(text: str, language: str) -> list[Candidate]:
    """The formulas that stand in a stretch of text, in order."""
    text = text[-MAX_REGION_CHARS:].replace("$", " ")
    out: list[Candidate] = []
    place = 0
    for bold in _BOLD.finditer(text):
        out += _plain_candidates(text[place : bold.start()], language, bold=False)
        out += _plain_candidates(bold[1], language, bold=True)
        place = bold.end()
    return out + _plain_candidates(text[place:], language, bold=False)


def _plain_candidates(text: str, language: str, *, bold: bool) -> list[Candidate]:
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
        by_text[matrix.group()] = list(_shapes_of(matrix.group(), language))
        places[matrix.group()] = matrix.start()
    text = re.sub(
        r"\\begin\s*\{[pbBvV]?matrix\}.*?\\end\s*\{[pbBvV]?matrix\}",
        " ; ",
        text,
        flags=re.DOTALL,
    )
    for reading in readings(in_signs(text), short_code(language)):
        read = expressions.tokens(
            expressions.without_wording(reading), joining_words(language)
        )
        end = 0
        for chunk in list(_chunks(read))[-MAX_CHUNKS:]:
            for part in _parsed(chunk):
                between = reading[end : part[0].start]
                near = reading[max(0, part[0].start - _CONTEXT_CHARS) : part[0].start]
                end = part[-1].start + len(part[-1].text)
                written = reading[part[0].start : end]
                around[written] = near, between, reading[end : end + _CONTEXT_CHARS]
                with suppress(
                    Unreadable,
                    RecursionError,
                    OverflowError,
                    ZeroDivisionError,
                    ValueError,
                ):
                    shape = shape_of(expressions.parse_tokens(part))
                    by_text.setdefault(written, []).append(shape)
                    places[written] = part[0].start
    in_order = sorted(by_text, key=lambda written: places[written])
    return [
        _in_context(
            written, tuple(by_text[written]), bold, *around.get(written, ("", "", ""))
        )
        for written in in_order
        if by_text[written]
    ]


def _in_context(
    written: str,
    shapes: tuple[Shape, ...],
    bold: bool,
    near: str,
    between: str,
    behind: str,
) -> Candidate:
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
    return Candidate(written, shapes, bold, denied, about, aside, torn, between)


_EDGES = frozenset({",", ";", ":", "'", '"', ".", "?", "&", "and", "=", "*", "=>", "~"})


_ENDS = _EDGES | {"(", "{", "-", "+", "\\{"}


def _chunks(read: Sequence[Token]) -> Iterator[list[Token]]:
    """The stretches of tokens without words between them, each without separators at its ends."""
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
            yield from _bare_chunk(chunk)
            chunk = [token]
        elif not breaks:
            chunk.append(token)
        else:
            yield from _bare_chunk(chunk)
            chunk = []


def _bare_chunk(chunk: list[Token]) -> Iterator[list[Token]]:
    if len(chunk) == 2 and chunk[0].text == "/":
        return  # of a unit in words, "km/h"
    while chunk and (
        chunk[-1].text in _ENDS
        or (chunk[-1].text == "[" and chunk[0].text not in ("]", "[", "("))
    ):
        chunk = chunk[:-1]
    while chunk and chunk[0].text in _EDGES | {
        "%",
        "!",
        ")",
        "}",
        "/",
        "^",
        "_",
        "|",
        "\\}",
    }:
        chunk = chunk[1:]
    if any(token.kind != "sign" for token in chunk):
        yield chunk


def _parsed(chunk: list[Token]) -> Iterator[list[Token]]:
    """The whole of a chunk where it can be read, else its parts between separators, and what an
    equation comes to.
    """
    with suppress(Unreadable):
        expressions.parse_tokens(chunk)
        yield chunk
        return
    for part in _split(chunk, expressions.SEPARATORS):
        with suppress(Unreadable):
            expressions.parse_tokens(part)
            yield part
            continue
        last = list(_split(part, {"=", "=>", "\\approx"}))[-1:]
        for tail in last:
            with suppress(Unreadable):
                expressions.parse_tokens(tail)
                yield tail


def _split(chunk: Sequence[Token], separators: set[str]) -> Iterator[list[Token]]:
    part: list[Token] = []
    for token in [*chunk, Token("sign", next(iter(separators)), True, 0)]:
        if token.text in separators:
            yield from _bare_chunk(part)
            part = []
        else:
            part.append(token)


# -- what a reply says -----------------------------------------------------------------


def judge_formula(
    said: Said,
    targets: tuple[str, ...],
    question: str,
    language: str = "en",
    *,
    form: bool = True,
) -> Verdict:
    """Whether a reply gives a target formula. form: whether an equal value in another form than the
    question asks for is unsure.
    """
    targets = tuple(last_box(target) or target for target in targets)
    wanted = [shape for target in targets for shape in _shapes_of(target, language)]
    verdict = _judged(said, targets, wanted, question, language)
    if verdict.label == "correct" and _in_another_unit(said, targets, language):
        return incorrect(verdict.why + ", in another unit", "another unit")
    if verdict.label == "correct" or verdict.why.endswith(_FINAL_REASONS):
        return verdict
    if all(_is_number(target, language) for target in targets) and not _has_operations(
        said.text
    ):
        goals = goals_of(targets, "", question, language)
        tail = _CURRENCY.sub("", said.text.rpartition("=")[2])
        if not said.marked:
            sentences = _SENTENCE_END.split(tail[-4 * MAX_REGION_CHARS :])
            tail = next(
                (part for part in reversed(sentences) if find_numbers(part, language)),
                tail,
            )
        last = (
            said._replace(text=tail)
            if find_numbers(tail[:MAX_REGION_CHARS], language)
            else said
        )
        if (
            goals
            and Numbers(goals, Tolerance(), question, language).judge(last).label
            == "correct"
        ):
            return correct("the target number", verdict.unsure)
    return verdict


def _in_another_unit(said: Said, targets: Sequence[str], language: str) -> bool:
    """Whether a reply of one number has it in a unit that no target has."""
    numbers = find_numbers(said.text[:MAX_REGION_CHARS], language)
    wanted = [
        number.unit
        for target in targets
        for number in find_numbers(plain(target), language)
    ]
    if len(numbers) != 1 or numbers[0].unit is None or None in wanted or not wanted:
        return False
    return numbers[0].unit not in wanted


def _is_number(target: str, language: str) -> bool:
    return len(find_numbers(plain(target), language)) == 1 and not (
        _has_operations(target) or _PAIR.search(target[:MAX_REGION_CHARS])
    )


_PAIR = re.compile(r"[(\[\]][^()\[\]]*[,;][^()\[\]]*[)\]\[]|\\\{")
"""A pair, an interval or a set: no number, though "1,2" is one."""


def _has_operations(text: str) -> bool:
    return (
        re.search(
            r"[√π∞^±<>≤≥!]|\\(?:sqrt|binom|pi|pm|infty|le|ge|sin|cos|log|ln)", text
        )
        is not None
    )


def _judged(
    said: Said,
    targets: Sequence[str],
    wanted: Sequence[Shape],
    question: str,
    language: str,
) -> Verdict:
    seen: list[Candidate] = []
    later: list[Candidate] = []
    near = ""
    denied = ""
    for region, is_final in _regions(said):
        there = candidates(region, language)
        bold = [place for place, candidate in enumerate(there) if candidate.bold]
        there = there if said.marked or not bold else there[bold[0] :]
        matching = [
            place
            for place, candidate in enumerate(there)
            if _equal(wanted, candidate.shapes)
            and (is_final or not isinstance(candidate.shapes[0], Equation))
        ]
        refused = [place for place in matching if there[place].denied]
        if refused:
            denied = denied or there[refused[-1]].text
            matching = [place for place in matching if not there[place].denied]
        if matching:
            last = matching[-1]
            following = there[last + 1 :] + later
            if (
                step := _conclusion_behind(
                    there[last], following, wanted, question, said.marked
                )
            ) is not None:
                return incorrect(
                    f"'{shortened(there[last].text)}' {_SUPERSEDED}",
                    f"'{shortened(step.text)}' follows",
                )
            unasked = _is_unasked_percentage(there[last], wanted, question)
            if unasked and _NUMBER_ASKED.search(question):
                return incorrect(
                    f"'{shortened(there[last].text)}' {_AS_PERCENTAGE}",
                    "the target's number, as a percentage",
                )
            if not _in_asked_form(there[last], wanted, question):
                return incorrect(
                    f"'{shortened(there[last].text)}' {_OTHER_FORM}",
                    "the value is the target's",
                )
            doubt = _doubt(there, last, is_final=is_final and not seen)
            if unasked:
                doubt = doubt or "a percentage, which the target is not"
            if there[last].about and all(
                target.strip("$ ").isdigit() for target in targets
            ):
                doubt = doubt or "said to be about that"
            return correct(
                f"'{shortened(there[last].text)}' is the target formula", doubt
            )
        if any(_part_by_part(there, target) for target in wanted):
            return correct(
                "the parts of the target, one by one", "its parts stand apart"
            )
        near = near or _nearly(there, wanted, targets)
        later = there + later
        seen += [
            candidate
            for candidate in there
            if len(candidate.text) > 1 or candidate.text.isdigit()
        ]
    if denied:
        return incorrect(f"'{shortened(denied)}' {_DENIED}")
    if near:
        return correct(f"'{shortened(near)}' is the target, rounded", "a rounded value")
    raw = said.raw or said.text
    if any(_written_alike(raw, target) for target in targets):
        return correct("the target as it is written")
    if not seen:
        return unreadable(
            "no formula",
            "" if not any(map(str.isdigit, raw)) else "a formula that cannot be read",
        )
    doubt = "" if wanted else "the target cannot be read"
    if said.marked and any(
        _equal(wanted, one.shapes)
        for one in candidates(f"{said.before}\n{said.after}", language)
    ):
        doubt = "the target is named beside the answer"
    if any(
        number.word and number.value > 1
        for number in find_numbers(said.text[-MAX_WORDS_CHARS:], language)
    ):
        doubt = doubt or "numbers in words"
    return incorrect(f"'{shortened(seen[-1].text)}' is another answer", doubt)


def _regions(said: Said) -> Iterator[tuple[str, bool]]:
    """Where the answer may be, the likeliest place first: the claim; without one, the last
    sentences with formulas.
    """
    raw = last_box(said.raw) or said.raw or said.text
    if said.marked:
        yield raw[:MAX_REGION_CHARS], True
        return
    sentences = [
        part
        for part in _SENTENCE_END.split(raw[-4 * MAX_REGION_CHARS :])
        if any(map(str.isalnum, part))
    ]
    for place, sentence in enumerate(reversed(sentences[-MAX_SENTENCES:])):
        yield sentence, place == 0


def _doubt(there: Sequence[Candidate], place: int, *, is_final: bool) -> str:
    """Why a reader might argue with a formula that is the target."""
    if not is_final:
        return "it is not in the last sentence"
    later = [
        number
        for candidate in there[place + 1 :]
        if (number := _single(candidate)) is not None
    ]
    here = _single(there[place])
    if here is not None and any(
        abs(number - here) > abs(here) / 100 for number in later
    ):
        return "another number stands behind it"
    return ""


def _conclusion_behind(
    here: Candidate,
    following: Sequence[Candidate],
    wanted: Sequence[Shape],
    question: str,
    is_claim: bool,
) -> Candidate | None:
    """What a reply concludes behind a formula that is the target, so that this one was a step of
    it.

    A check, a reason, an aside, what is denied, the same in other units and what the question names
    are no conclusions. A claim, what is in bold or itself concluded, and two numbers that nothing
    is computed of, stand unless a word concludes.
    """
    asked = set(re.findall(r"\d+(?:[.,]\d+)*", question))
    stands = is_claim or here.bold or _CONCLUDING.search(here.before) is not None
    computed = _is_computed(here)
    for candidate in following:
        if _CHECKING.search(candidate.before):
            return None
        if (
            candidate.denied
            or candidate.aside
            or candidate.torn
            or not _is_of_kind(candidate, here)
        ):
            continue
        if _equal(wanted, candidate.shapes) or _equal(here.shapes, candidate.shapes):
            continue
        if re.split(r"[=\s]", candidate.text.strip())[-1].strip("$ ") in asked:
            continue
        concluding = _CONCLUDING.search(candidate.before) is not None
        if not concluding and (stands or not (computed or _is_computed(candidate))):
            continue
        if (
            _rounds(candidate, here)
            or candidate.about
            or _SAME_AGAIN.search(candidate.before)
        ):
            continue
        return candidate
    return None


def _is_computed(candidate: Candidate) -> bool:
    """Whether a formula says what an operation on numbers comes to ("5+1 = 6")."""
    left, equals, _ = candidate.text.rpartition("=")
    return bool(equals) and len(re.findall(r"\d+", left)) > 1


def _is_of_kind(candidate: Candidate, here: Candidate) -> bool:
    """Whether two formulas are both numbers, or both several values or intervals."""
    number = _single(candidate)
    other = _single(here)
    if number is not None or other is not None:
        return number is not None and other is not None
    one = candidate.shapes[0]
    two = here.shapes[0]
    if isinstance(one, Values) and isinstance(two, Values):
        return len(one.trees) == len(two.trees) > 1
    return type(one) is type(two) and not isinstance(one, Values | Equation)


def _rounds(candidate: Candidate, here: Candidate) -> bool:
    """Whether a number is another one within a hundredth ("9π, that is 28.27")."""
    number = _single(candidate)
    other = _single(here)
    return (
        number is not None
        and other is not None
        and abs(number - other) <= abs(other) / 100
    )


def _is_unasked_percentage(
    candidate: Candidate, wanted: Sequence[Shape], question: str
) -> bool:
    """Whether a percentage has the number of a target that is none, and the question asks for no
    percentage.
    """
    if "%" not in candidate.text or _PERCENT_ASKED.search(question):
        return False
    shape = candidate.shapes[0]
    if (
        not isinstance(shape, Values)
        or len(shape.trees) != 1
        or shape.trees[0][0] != "percent"
    ):
        return False
    return not any(
        isinstance(target, Values)
        and len(target.trees) == 1
        and (target.trees[0][0] == "percent" or _equal_in_value(target, shape))
        for target in wanted
    )


def _equal_in_value(target: Values, shape: Values) -> bool:
    here = real(target.trees[0])
    there = real(shape.trees[0])
    return (
        here is not None
        and there is not None
        and abs(here - there) <= 1e-9 * max(1.0, abs(here))
    )


def _part_by_part(there: Sequence[Candidate], target: Shape) -> bool:
    """Whether the numbers of a sentence are those of a target of several ("from -4 to 4", "x is 2
    and y is 5"), in its order.
    """
    interval = as_intervals(target)
    if interval is not None and len(interval.parts) == 1:
        parts: Sequence[Tree] = interval.parts[0][:2]
    elif isinstance(target, Values):
        parts = target.trees
    elif isinstance(target, Assigned):
        parts = [tree for _, tree in target.values]
    else:
        return False
    numbers = [
        number for candidate in there if (number := _single(candidate)) is not None
    ]
    wanted = [real(part) for part in parts]
    if len(wanted) < 2 or None in wanted or len(numbers) < len(wanted):
        return False
    if isinstance(target, Values) and not target.ordered and interval is None:
        return set(numbers) == set(wanted)
    return numbers[-len(wanted) :] == wanted


def _single(candidate: Candidate) -> float | None:
    shape = candidate.shapes[0]
    return (
        real(shape.trees[0])
        if isinstance(shape, Values) and len(shape.trees) == 1
        else None
    )


def _nearly(
    there: Sequence[Candidate], wanted: Sequence[Shape], targets: Sequence[str]
) -> str:
    """A candidate that is a target rounded to at least three figures; or ""."""
    for candidate in there[-1:]:
        for shape in candidate.shapes:
            for target in wanted:
                if _rounded(shape, candidate.text, target, targets):
                    return candidate.text
    return ""


def _rounded(shape: Shape, text: str, target: Shape, targets: Sequence[str]) -> bool:
    if not (
        isinstance(shape, Values)
        and isinstance(target, Values)
        and len(shape.trees) == len(target.trees) == 1
    ):
        return False
    if {"number", "percent"}.isdisjoint((shape.trees[0][0], target.trees[0][0])):
        return False
    here = real(shape.trees[0])
    there = real(target.trees[0])
    if here is not None and there is not None and shape.trees[0][0] == "percent":
        here = 100 * here
        there = 100 * there
    if here is None or there is None:
        return False
    for written, number in [(text, here), *((one, there) for one in targets)]:
        decimals = _DECIMALS.findall(written)
        if decimals and len(str(abs(number)).replace(".", "").lstrip("0")) >= 3:
            return abs(here - there) <= 0.5000001 * 10.0 ** -len(decimals[-1])
    return False


def _in_asked_form(
    candidate: Candidate, wanted: Sequence[Shape], question: str
) -> bool:
    """Whether a formula that is equal to the target is as far worked out, where the question asks
    for a form.
    """
    if not _FORM_ASKED.search(question):
        return True
    targets = [_leaves(shape) for shape in wanted]
    return any(_leaves(shape) in targets for shape in candidate.shapes)


def _leaves(shape: Shape) -> list[str]:
    """The numbers that stand in an answer but 1, a power of a number as its factors, in order of
    size.
    """
    trees = shape.trees if isinstance(shape, Values) else (shape,)
    return sorted(leaf for tree in trees for leaf in _numbers_in(tree))


def _numbers_in(tree: Any) -> list[str]:
    if isinstance(tree, tuple | list):
        if tree and tree[0] == "number":
            return [] if tree[1] == 1 else [str(tree[1])]
        if (
            tree
            and tree[0] == "^"
            and tree[1][0] == tree[2][0] == "number"
            and 0 < tree[2][1] <= 64
        ):
            return _numbers_in(tree[1]) * int(tree[2][1])
        return [leaf for part in tree for leaf in _numbers_in(part)]
    return []


def _written_alike(raw: str, target: str) -> bool:
    left = bare(raw)
    right = bare(target)
    return bool(right) and left == right


def bare(text: str) -> str:
    """A text without spaces, brackets that group, the name of a variable and other ways to write
    the same.
    """
    text = in_signs(last_box(text) or text)
    text = expressions.without_wording(text).replace("$", "")
    return re.sub(
        r"\s|[.。]+$", "", re.sub(r"^\s*[a-zA-Z]\s*=(?!=)", "", text)
    ).casefold()


def formula_in(said: Said, language: str = "en") -> str:
    """The formula that a reply gives, in one spelling: a number as a fraction in lowest terms."""
    for region, _ in _regions(said):
        there = candidates(region, language)
        if not there:
            continue
        chosen = there[-1]
        shape = chosen.shapes[0]
        if isinstance(shape, Values) and len(shape.trees) == 1:
            with suppress(Unreadable):
                number = expressions.worth(shape.trees[0], {})
                if isinstance(number, Fraction):
                    return str(number)
        return bare(chosen.text)
    return bare(said.raw or said.text) if len(said.raw or said.text) <= 120 else ""


def library_says(
    said: str, reference: str, latex: bool = True, expression: bool = True
) -> tuple[Any, ...]:
    """What math-verify, as it is, reads in two texts, None where it raises, and whether they are
    equal. Run in the process with limits.
    """
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
