"""Decides which formula of a reply is its answer, and whether it is a target.

What the reply claims decides, else its last sentences with a formula. Numbers with units and
numbers in words are read by `number_reader.py`. No text is ever executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from evalwright.scorers.answers.number_reader import NumberReader
from evalwright.scorers.answers.number_targets import Tolerance, parse_number_targets
from evalwright.scorers.answers.reply import ParsedReply
from evalwright.scorers.answers.verdict import (
    Verdict,
    correct,
    incorrect,
    shortened,
    unreadable,
)
from evalwright.scorers.text import expressions
from evalwright.scorers.text.expressions import (
    Tree,
    Unreadable,
)
from evalwright.scorers.text.formula_shapes import (
    Assigned,
    Equation,
    Shape,
    Values,
    as_intervals,
    real,
)
from evalwright.scorers.text.formulas import (
    MAX_REGION_CHARS,
    FoundFormula,
    equal_shapes,
    find_formulas,
    parse_shapes,
    plain_formula,
)
from evalwright.scorers.text.normalise import last_box, plain
from evalwright.scorers.text.numbers import find_numbers

MAX_SENTENCES = 6
"""In a reply without a claim, the answer is looked for in this many sentences at its end."""

MAX_WORDS_CHARS = 200
"""Numbers in words are looked for in this many characters at a reply's end."""

_SENTENCE_END = re.compile(r"\n+|(?<=[.!?])\s+(?!\d+\s*$)|(?<=[。！？])")

_FORM_ASKED = re.compile(
    r"irr[eé]duc|irredut|irridu|既约|最簡|有理化|factori|因式分解|素因数|소인수|인수분해"
    r"|scientific|científica"
    r"|scientifique|ausmultipl|développ|desarroll|desenvolv|展開|展开|전개|разлож|rahisisha|phân"
    r" tích|khai triển|mixed|mixto|misto|gemischt|partial frac|"
    r"simplif|reduce\b|lowest|rationali|vereinfach|kürze|factor|expand|约分|化简|簡約|簡単に"
    r"|약분|간단"
    r"|сократ|упрост|sederhanakan|rút"
    r" gọn|uprość|sadeleştir|बसरल|सरल|اختصر|بسط",
    re.IGNORECASE,
)
"""A question that asks for a specific form of a number or formula."""

_CURRENCY = re.compile(r"(?<![^\W\d_])(?:Rp|RM|R\$|US\$)\.?\s?(?=\d)")

_OTHER_FORM = "is not in the form that is asked for"

_DENIED = "is said not to be the answer"

_SUPERSEDED = "is a step; another conclusion follows"

_AS_PERCENTAGE = "is a percentage, and none is asked for"

_FINAL_REASONS = (_OTHER_FORM, _DENIED, _SUPERSEDED, _AS_PERCENTAGE)
"""Reasons why a formula equal to the target is still not the answer.

A number elsewhere in the text does not overrule them.
"""

_CHECKING = re.compile(
    r"(?<![^\W_])(?:check(?:ing)?|verif\w*|prob(?:e|ando)\b|überprüf\w*|kontroll\w*|vérif\w*"
    r"|comprob\w*|comprueb\w*|prueba|conferindo|prova|провер\w*|periksa|pemeriksaan|cek\b|thử"
    r" lại|kiểm"
    r" tra|sprawdz\w*|sağlama|substitut\w*|einsetzen|explanation|erklärung|explication"
    r"|explicación|explicação|объяснение|penjelasan|giải"
    r" thích"
    r"|because|since|when|as|weil|denn|da|wenn|parce|car|puisque|porque|pues|cuando|pois|perché"
    r"|karena|sebab|vì|если|так"
    r" как|потому|ponieważ|bo)(?![^\W_])|检验|檢驗|验算|驗算|验证|因为|因為|検算|確認|なぜなら"
    r"|검산|확인|왜냐|जाँच|التحقق",
    re.IGNORECASE,
)

_CONCLUDING = re.compile(
    r"(?<![^\W_])(?:so|thus|hence|therefore|then|finally|rounds? to|which"
    r" gives|also|daher|somit|folglich|dann|donc|alors|puis|luego|entonces|por (?:lo"
    r" )?tanto|así que|portanto|logo|então|quindi|dunque|jadi|maka|nên|vậy|suy"
    r" ra|значит|следовательно|поэтому|итого|więc|zatem|kwa"
    r" hiyo)(?![^\W_])|所以|因此|故|于是|よって|したがって|ゆえに|따라서|그러므로|그래서|इसलिए"
    r"|لذلك|إذن|ดังนั้น",
    re.IGNORECASE,
)

_NUMBER_ASKED = re.compile(
    r"(?<![^\W_])(?:how many|how much money|wie ?viele|combien"
    r" d|cuánt[oa]s|quant[oa]s|quant[ie]|berapa (?:banyak|jumlah)|bao"
    r" nhiêu|сколько|ile|kaç|ngapi|ilan)|几个|几|幾|多少|いくつ|何(?:個|人|本|枚|匹|円)|몇"
    r"|कितने|كم",
    re.IGNORECASE,
)

_SAME_AGAIN = re.compile(
    r"(?<![^\W_])(?:or|that is|that['’]s|i\.?e|equivalently|in other words|which"
    r" is|remainder|oder|das (?:sind|ist)|also etwa|soit|c['’]est-à-dire|ou|o sea|es"
    r" decir|ou seja|cioè|ovvero|atau|yaitu|hay|tức là|то"
    r" есть|или|czyli|lub|yani|veya)(?![^\W_])|也就是|即|或|つまり|すなわち|または|즉|또는|या"
    r"|أي|أو|หรือ",
    re.IGNORECASE,
)
"""Words that introduce the same value again, in other units or rounded."""

_PERCENT_ASKED = re.compile(
    r"%|％|percent|per cent|prozent|pour ?cent|por ?ciento|porcentaje|por"
    r" ?cento|porcentagem|percentuale|persen|phần"
    r" trăm|процент|procent|yüzde|asilimia|百分|パーセント|割合|퍼센트|백분|प्रतिशत|بالمئة|نسبة"
    r"|เปอร์เซ็นต์"
    r"|ร้อยละ",
    re.IGNORECASE,
)


_DECIMALS = re.compile(r"(?<![\w.])\d+[.,](\d+)(?![\d.,])")


@dataclass(frozen=True)
class FormulaReader:
    """Judges replies against the target formulas of one sample."""

    targets: tuple[str, ...]
    question: str
    language: str = "en"

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge whether a reply, neither empty nor declining, gives a target formula."""
        targets = tuple(last_box(target) or target for target in self.targets)
        target_shapes = [
            shape for target in targets for shape in parse_shapes(target, self.language)
        ]
        verdict = _judge_formulas(
            reply, targets, target_shapes, self.question, self.language
        )
        if verdict.label == "correct" and _in_another_unit(
            reply, targets, self.language
        ):
            return incorrect(verdict.why + ", in another unit", "another unit")
        if verdict.label == "correct" or verdict.why.endswith(_FINAL_REASONS):
            return verdict
        if all(
            _is_number(target, self.language) for target in targets
        ) and not _has_operations(reply.text):
            goals = parse_number_targets(targets, "", self.question, self.language)
            tail = _CURRENCY.sub("", reply.text.rpartition("=")[2])
            if not reply.marked:
                sentences = _SENTENCE_END.split(tail[-4 * MAX_REGION_CHARS :])
                tail = next(
                    (
                        sentence
                        for sentence in reversed(sentences)
                        if find_numbers(sentence, self.language)
                    ),
                    tail,
                )
            last = (
                reply._replace(text=tail)
                if find_numbers(tail[:MAX_REGION_CHARS], self.language)
                else reply
            )
            if (
                goals
                and NumberReader(goals, Tolerance(), self.question, self.language)
                .judge(last)
                .label
                == "correct"
            ):
                return correct("the target number", verdict.unsure)
        return verdict


def _in_another_unit(reply: ParsedReply, targets: Sequence[str], language: str) -> bool:
    """Return whether the only number of a reply has a unit that no target has."""
    numbers = find_numbers(reply.text[:MAX_REGION_CHARS], language)
    target_units = [
        number.unit
        for target in targets
        for number in find_numbers(plain(target), language)
    ]
    if (
        len(numbers) != 1
        or numbers[0].unit is None
        or None in target_units
        or not target_units
    ):
        return False
    return numbers[0].unit not in target_units


def _is_number(target: str, language: str) -> bool:
    return len(find_numbers(plain(target), language)) == 1 and not (
        _has_operations(target) or _PAIR.search(target[:MAX_REGION_CHARS])
    )


_PAIR = re.compile(r"[(\[\]][^()\[\]]*[,;][^()\[\]]*[)\]\[]|\\\{")
"""A pair, an interval or a set; it is not a number, although "1,2" could be read as one."""


def _has_operations(text: str) -> bool:
    return (
        re.search(
            r"[√π∞^±<>≤≥!]|\\(?:sqrt|binom|pi|pm|infty|le|ge|sin|cos|log|ln)", text
        )
        is not None
    )


def _judge_formulas(
    reply: ParsedReply,
    targets: Sequence[str],
    target_shapes: Sequence[Shape],
    question: str,
    language: str,
) -> Verdict:
    """Judge the formulas of a reply, region by region, the likeliest first."""
    seen: list[FoundFormula] = []
    later: list[FoundFormula] = []
    rounded = ""
    denied = ""
    for region, is_final in _answer_regions(reply):
        formulas = find_formulas(region, language)
        bold = [index for index, formula in enumerate(formulas) if formula.bold]
        if bold and not reply.marked:
            formulas = formulas[bold[0] :]
        equal_indices = [
            index
            for index, formula in enumerate(formulas)
            if equal_shapes(target_shapes, formula.shapes)
            and (is_final or not isinstance(formula.shapes[0], Equation))
        ]
        matching = [index for index in equal_indices if not formulas[index].denied]
        refused = [index for index in equal_indices if formulas[index].denied]
        if refused:
            denied = denied or formulas[refused[-1]].text

        if matching:
            last = matching[-1]
            formula = formulas[last]
            following = formulas[last + 1 :] + later
            step = _conclusion_behind(
                formula, following, target_shapes, question, reply.marked
            )
            if step is not None:
                return incorrect(
                    f"'{shortened(formula.text)}' {_SUPERSEDED}",
                    f"'{shortened(step.text)}' follows",
                )
            doubt = _doubt_about(formulas, last, is_final=is_final and not seen)
            return _judge_equal_formula(
                formula, targets, target_shapes, question, doubt
            )
        if any(_gives_parts_one_by_one(formulas, target) for target in target_shapes):
            return correct(
                "the parts of the target, one by one", "its parts stand apart"
            )

        rounded = rounded or _find_rounded_target(formulas, target_shapes, targets)
        later = formulas + later
        seen += [
            formula
            for formula in formulas
            if len(formula.text) > 1 or formula.text.isdigit()
        ]
    if denied:
        return incorrect(f"'{shortened(denied)}' {_DENIED}")
    if rounded:
        return correct(
            f"'{shortened(rounded)}' is the target, rounded", "a rounded value"
        )
    return _judge_other_formulas(reply, seen, targets, target_shapes, language)


def _judge_equal_formula(
    formula: FoundFormula,
    targets: Sequence[str],
    target_shapes: Sequence[Shape],
    question: str,
    doubt: str,
) -> Verdict:
    """Judge the formula that equals a target and is the reply's conclusion."""
    quoted = f"'{shortened(formula.text)}'"
    is_unasked_percentage = _is_unasked_percentage(formula, target_shapes, question)
    if is_unasked_percentage and _NUMBER_ASKED.search(question):
        return incorrect(
            f"{quoted} {_AS_PERCENTAGE}", "the target's number, as a percentage"
        )
    if not _in_asked_form(formula, target_shapes, question):
        return incorrect(f"{quoted} {_OTHER_FORM}", "the value is the target's")

    if is_unasked_percentage:
        doubt = doubt or "a percentage, which the target is not"
    if formula.approximate and all(target.strip("$ ").isdigit() for target in targets):
        doubt = doubt or "said to be about that"
    return correct(f"{quoted} is the target formula", doubt)


def _judge_other_formulas(
    reply: ParsedReply,
    seen: Sequence[FoundFormula],
    targets: Sequence[str],
    target_shapes: Sequence[Shape],
    language: str,
) -> Verdict:
    """Judge a reply in which no formula equals a target."""
    written = reply.as_written or reply.text
    if any(_written_alike(written, target) for target in targets):
        return correct("the target as it is written")
    if not seen:
        has_digits = any(map(str.isdigit, written))
        return unreadable(
            "no formula", "a formula that cannot be read" if has_digits else ""
        )

    doubt = "" if target_shapes else "the target cannot be read"
    if reply.marked and any(
        equal_shapes(target_shapes, formula.shapes)
        for formula in find_formulas(f"{reply.before}\n{reply.after}", language)
    ):
        doubt = "the target is named beside the answer"
    if any(
        number.word and number.value > 1
        for number in find_numbers(reply.text[-MAX_WORDS_CHARS:], language)
    ):
        doubt = doubt or "numbers in words"
    return incorrect(f"'{shortened(seen[-1].text)}' is another answer", doubt)


def _answer_regions(reply: ParsedReply) -> Iterator[tuple[str, bool]]:
    """Yield the regions where the answer may be, the likeliest first, and whether each is final.

    That is the claim, or without one the last sentences with formulas.
    """
    raw = last_box(reply.as_written) or reply.as_written or reply.text
    if reply.marked:
        yield raw[:MAX_REGION_CHARS], True
        return
    sentences = [
        sentence
        for sentence in _SENTENCE_END.split(raw[-4 * MAX_REGION_CHARS :])
        if any(map(str.isalnum, sentence))
    ]
    for index, sentence in enumerate(reversed(sentences[-MAX_SENTENCES:])):
        yield sentence, index == 0


def _doubt_about(
    formulas: Sequence[FoundFormula], index: int, *, is_final: bool
) -> str:
    """Return why a careful reader might argue with a formula that equals the target."""
    if not is_final:
        return "it is not in the last sentence"
    later = [
        number
        for candidate in formulas[index + 1 :]
        if (number := _single_number(candidate)) is not None
    ]
    here = _single_number(formulas[index])
    if here is not None and any(
        abs(number - here) > abs(here) / 100 for number in later
    ):
        return "another number stands behind it"
    return ""


def _conclusion_behind(
    here: FoundFormula,
    following: Sequence[FoundFormula],
    target_shapes: Sequence[Shape],
    question: str,
    is_claim: bool,
) -> FoundFormula | None:
    """Return the conclusion after a formula that equals the target, which was then only a step.

    A check, a reason, an aside, a denial, the same value in other units and numbers of the question
    are not conclusions. A claim, a formula in bold, and two numbers from which nothing is computed
    keep their place unless a word such as "so" introduces a conclusion.
    """
    numbers_asked = set(re.findall(r"\d+(?:[.,]\d+)*", question))
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
        if equal_shapes(target_shapes, candidate.shapes) or equal_shapes(
            here.shapes, candidate.shapes
        ):
            continue
        if re.split(r"[=\s]", candidate.text.strip())[-1].strip("$ ") in numbers_asked:
            continue
        concluding = _CONCLUDING.search(candidate.before) is not None
        if not concluding and (stands or not (computed or _is_computed(candidate))):
            continue
        if (
            _is_rounded_form(candidate, here)
            or candidate.approximate
            or _SAME_AGAIN.search(candidate.before)
        ):
            continue
        return candidate
    return None


def _is_computed(candidate: FoundFormula) -> bool:
    """Return whether a formula is the result of an operation on numbers ("5+1 = 6")."""
    left, equals, _ = candidate.text.rpartition("=")
    return bool(equals) and len(re.findall(r"\d+", left)) > 1


def _is_of_kind(candidate: FoundFormula, here: FoundFormula) -> bool:
    """Return whether two formulas are both numbers, or both lists of values or intervals."""
    number = _single_number(candidate)
    target_number = _single_number(here)
    if number is not None or target_number is not None:
        return number is not None and target_number is not None
    shape = candidate.shapes[0]
    two = here.shapes[0]
    if isinstance(shape, Values) and isinstance(two, Values):
        return len(shape.trees) == len(two.trees) > 1
    return type(shape) is type(two) and not isinstance(shape, Values | Equation)


def _is_rounded_form(candidate: FoundFormula, here: FoundFormula) -> bool:
    """Return whether a number equals another within one percent ("9π, that is 28.27")."""
    number = _single_number(candidate)
    target_number = _single_number(here)
    return (
        number is not None
        and target_number is not None
        and abs(number - target_number) <= abs(target_number) / 100
    )


def _is_unasked_percentage(
    candidate: FoundFormula, target_shapes: Sequence[Shape], question: str
) -> bool:
    """Return whether a formula is the target with a percent sign that nobody asked for."""
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
        for target in target_shapes
    )


def _equal_in_value(target: Values, shape: Values) -> bool:
    here = real(target.trees[0])
    there = real(shape.trees[0])
    return (
        here is not None
        and there is not None
        and abs(here - there) <= 1e-9 * max(1.0, abs(here))
    )


def _gives_parts_one_by_one(formulas: Sequence[FoundFormula], target: Shape) -> bool:
    """Return whether the numbers of a sentence are the values of the target, in its order.

    Examples: "from -4 to 4" for an interval, "x is 2 and y is 5".
    """
    interval = as_intervals(target)
    if interval is not None and len(interval.parts) == 1:
        target_trees: Sequence[Tree] = interval.parts[0][:2]
    elif isinstance(target, Values):
        target_trees = target.trees
    elif isinstance(target, Assigned):
        target_trees = [tree for _, tree in target.values]
    else:
        return False
    numbers = [
        number
        for candidate in formulas
        if (number := _single_number(candidate)) is not None
    ]
    target_numbers = [real(tree) for tree in target_trees]
    if (
        len(target_numbers) < 2
        or None in target_numbers
        or len(numbers) < len(target_numbers)
    ):
        return False
    if isinstance(target, Values) and not target.ordered and interval is None:
        return set(numbers) == set(target_numbers)
    return numbers[-len(target_numbers) :] == target_numbers


def _single_number(candidate: FoundFormula) -> float | None:
    shape = candidate.shapes[0]
    return (
        real(shape.trees[0])
        if isinstance(shape, Values) and len(shape.trees) == 1
        else None
    )


def _find_rounded_target(
    formulas: Sequence[FoundFormula],
    target_shapes: Sequence[Shape],
    targets: Sequence[str],
) -> str:
    """Return the last formula if it is a target rounded to at least three figures; else ""."""
    for candidate in formulas[-1:]:
        for shape in candidate.shapes:
            for target in target_shapes:
                if _is_rounded_target(shape, candidate.text, target, targets):
                    return candidate.text
    return ""


def _is_rounded_target(
    shape: Shape, text: str, target: Shape, targets: Sequence[str]
) -> bool:
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
    for written, number in [
        (text, here),
        *((target_text, there) for target_text in targets),
    ]:
        decimals = _DECIMALS.findall(written)
        if decimals and len(str(abs(number)).replace(".", "").lstrip("0")) >= 3:
            return abs(here - there) <= 0.5000001 * 10.0 ** -len(decimals[-1])
    return False


def _in_asked_form(
    candidate: FoundFormula, target_shapes: Sequence[Shape], question: str
) -> bool:
    """Return whether a formula equal to the target is simplified as far as the question asks."""
    if not _FORM_ASKED.search(question):
        return True
    targets = [_numbers_in_shape(shape) for shape in target_shapes]
    return any(_numbers_in_shape(shape) in targets for shape in candidate.shapes)


def _numbers_in_shape(shape: Shape) -> list[str]:
    """List all numbers of an answer except 1, sorted; powers are written out as factors."""
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
        return [leaf for branch in tree for leaf in _numbers_in(branch)]
    return []


def _written_alike(raw: str, target: str) -> bool:
    left = plain_formula(raw)
    right = plain_formula(target)
    return bool(right) and left == right


def write_formula(reply: ParsedReply, language: str = "en") -> str:
    """Write a reply's formula in canonical form; a number as a fraction in lowest terms."""
    for region, _ in _answer_regions(reply):
        formulas = find_formulas(region, language)
        if not formulas:
            continue
        chosen = formulas[-1]
        shape = chosen.shapes[0]
        if isinstance(shape, Values) and len(shape.trees) == 1:
            with suppress(Unreadable):
                number = expressions.evaluate(shape.trees[0], {})
                if isinstance(number, Fraction):
                    return str(number)
        return plain_formula(chosen.text)
    return (
        plain_formula(reply.as_written or reply.text)
        if len(reply.as_written or reply.text) <= 120
        else ""
    )
