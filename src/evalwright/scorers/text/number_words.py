"""Numbers in words: each language's words for 0 to 999 and round numbers, and how they combine.

The table is made by rule for English, Hindi and Swahili and by the library num2words for other
languages (`pip install 'evalwright[numbers]'`); Chinese, Japanese and Korean characters are
computed. Languages without a table are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from evalwright.core.lazy import lazy_pattern
from evalwright.scorers.text.han_numerals import DIGITS, MYRIADS, PLACES, read_numerals
from evalwright.scorers.text.marks import SPACELESS
from evalwright.scorers.text.tokens import fold, word_list, word_set
from evalwright.scorers.text.units import number_table

_ONES = word_list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen"
    " fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = word_list("twenty thirty forty fifty sixty seventy eighty ninety")
_SCALES = {
    "hundred": 10**2,
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "lakh": 10**5,
    "crore": 10**7,
    "dozen": 12,
}
_ALIKE = {"ms": "id", "fil": "tl", "nb": "no", "nn": "no"}
_ARTICLES = word_set("un une uno una um uma ein eine en een et se")
_HALVES = {
    "half": Decimal("0.5"),
    "a half": Decimal("0.5"),
    "a quarter": Decimal("0.25"),
    "einhalb": Decimal("0.5"),
    "anderthalb": Decimal("1.5"),
}
_PARTS = {
    name: Decimal(1) / int(below)
    for below, names in number_table("parts").items()
    for name in names.split()
}
_PART = lazy_pattern(
    r"(?:([ -](?:and|et|y|e|und)[ -])(?:an? |un |una )?|[ -])([^\W\d_]+)"
)
_POINT = lazy_pattern(rf"[ -]point((?:[ -](?:{'|'.join(_ONES[:10])}))+)(?!\w)")
_WORD = lazy_pattern(
    r"[^\W\d_](?:[^\W\d_]|'(?=[а-яіїє])|[\u0900-\u0dff\u0e30-\u0e4f])*"
)
_GAP = lazy_pattern(
    r"[ -]{0,2}|[ -](?:and|und|y|e|et|na|og|och|i|și|va|lẻ|linh)[ -]|, "
)
_AFTER = lazy_pattern(r"[ -](?:(?:and|et|y|e|und) )?([^\W\d_]{2,30})")
_BEFORE = lazy_pattern(r"([^\W\d_]{3,30})(?: (?:and|et|y|e|und))?[ -]$")
_GOES_ON = word_set(
    "komma virgule coma virgula point nonante septante huitante octante", *_PARTS
)

_SIGNS = "".join((*DIGITS, *PLACES, *MYRIADS))
_CHARACTERS = lazy_pattern(f"[{_SIGNS}]+(?:(?<=[만억조]) [{_SIGNS}]+)*")
_RATIO = lazy_pattern(r"分之|分の|분의 ?")
_COUNTED = "个個年人天月日本次万亿种座米克公厘分斤百篇位名只条で点個つ匹頭冊枚階歳岁歲层張张辆隻台"
_KOREAN_COUNTED = lazy_pattern(
    r"\s?(?:개|명|년|원|도|층|회|초|분|시간|일|미터|센|킬|그램|살|번|권|마리|곳|가지|위|점|장"
    r"|대|입니다|이다|이에요|이며|이고|이지|이요|이라|\W|$)"
)
_NATIVE_ONES = {
    word: digit
    for digit, words in enumerate(
        word_list("하나|한 둘|두 셋|세 넷|네 다섯 여섯 일곱 여덟 아홉"), 1
    )
    for word in words.split("|")
}
_NATIVE_TENS = {
    word: number
    for number, words in zip(
        range(10, 100, 10),
        word_list("열 스물|스무 서른 마흔 쉰 예순 일흔 여든 아흔"),
        strict=True,
    )
    for word in words.split("|")
}
_NATIVE = _NATIVE_ONES | _NATIVE_TENS | {"첫": 1}
_NATIVE_COUNTED = (
    r"(?=\s?(?:개|명|마리|살|번|가지|곳|달|시간|권|장|대|병|잔|그루|송이|켤레|쌍|사람|째)"
    r"|(?:입니다|이다|이에요|예요|이요|이고|이며|이지요|이죠)|[\s.,]|$)"
)
_NATIVE_RUN = lazy_pattern(
    rf"(?<![가-힣\d])(?:({'|'.join(_NATIVE_TENS)})"
    rf" ?)?({'|'.join(_NATIVE_ONES)}){_NATIVE_COUNTED}"
    rf"|(?<![가-힣])({'|'.join(_NATIVE_TENS)}){_NATIVE_COUNTED}|(?<![가-힣])(첫)(?="
    r" ?번째|째)"
)
_COPULA_BEHIND = lazy_pattern(r"이(?=다(?![가-힣])|에요|며|고|지|요|라)")
"""The copula of a number in words, which begins like the word for two.

"사십이다" is 40, "사십이이다" 42.
"""
_KOREAN_POINT = lazy_pattern(
    r"(?<![가-힣])([영공일이삼사오육칠팔구십백천]+)점([영공일이삼사오육칠팔구]+?)"
    r"(?=\s|$|[.,]|이다(?![가-힣])|다(?![가-힣])|입니다|이에요|퍼센트|도|미터|초|배)"
)
"""A decimal in words: "영점오"."""
_LONE_DIGIT = lazy_pattern(
    r"[삼오구] (?:개|명|권|원|번|층|회|위|점|장|대|마리)|[일이삼사오구](?:층|개월)"
)
"""A single Korean digit that is not another word, by what follows it."""


N_TABLES = 32
"""Languages whose tables are kept, of about 1 MB each: a task may have its rows in any order, and a
table takes a fifth of a second.
"""


class NumberInWords(NamedTuple):
    """A number in words.

    `cut` is set if a neighbouring word belongs to it but could not be read.
    """

    value: Decimal
    start: int
    end: int
    cut: bool = False


def find_number_words(text: str, language: str) -> list[NumberInWords]:
    """Find the numbers that a plain text writes in words, in order."""
    lowered = text.casefold()
    candidates = [] if text.isascii() else list(_find_east_asian(lowered))
    for code in dict.fromkeys(("en", language)):
        if (table := _load_number_words(code)) is not None:
            candidates += _join_entries(
                lowered, _find_entries(lowered, table), table, code
            )
    numbers: list[NumberInWords] = []
    for number in sorted(
        candidates, key=lambda candidate: (candidate.start, -candidate.end)
    ):
        if not numbers or number.start >= numbers[-1].end:
            numbers.append(number)
    return numbers


class _NumberWords(NamedTuple):
    """The number words of a language.

    `longest` is the most words of an entry, `stems` are how entries begin, `spaceless` finds
    entries in scripts without spaces.
    """

    values: dict[str, Decimal]
    longest: int
    stems: frozenset[str]
    spaceless: re.Pattern[str] | None


@lru_cache(maxsize=N_TABLES)
def _load_number_words(language: str) -> _NumberWords | None:
    """Load the number words of a language; None if it has no table."""
    hand = [
        word.partition("=") for word in number_table("words").get(language, "").split()
    ]
    rows = [
        (word.replace("_", " "), int(written_value or index))
        for index, (word, _, written_value) in enumerate(hand)
    ]
    values: dict[str, Decimal] = {}
    for form, number in (
        _english_forms() if language == "en" else rows or _library_forms(language)
    ):
        words = " ".join(
            fold(form.casefold()).replace("-", " ").replace(",", " ").split()
        )
        values.setdefault(words, Decimal(number))
        values.setdefault(words.replace(" ", ""), Decimal(number))
    for article in ("", *_ARTICLES):
        values.pop(article, None)
    if not values:
        return None
    longest = min(6, max(form.count(" ") for form in values) + 1)
    spaceless = sorted(
        (form for form in values if re.match(f"[{SPACELESS}]", form)),
        key=len,
        reverse=True,
    )
    stems = frozenset(
        word[: 5 if word.isascii() else 4]
        for form in values
        for word in form.split()
        if len(word) > 3
    )
    pattern = re.compile("|".join(map(re.escape, spaceless))) if spaceless else None
    return _NumberWords(values, longest, stems, pattern)


def _english_forms() -> Iterator[tuple[str, Decimal | int]]:
    below = [
        *_ONES,
        *(
            f"{ten} {unit}" if unit != "zero" else ten
            for ten in _TENS
            for unit in _ONES[:10]
        ),
    ]
    for number, form in enumerate(below):
        yield form, number
        if 11 <= number < 22:  # years: "nineteen eighty-four", "twenty oh five"
            for last, later_form in enumerate(below[1:], 1):
                yield (
                    f"{form} {'oh ' if last < 10 else ''}{later_form}",
                    100 * number + last,
                )
    for name, scale in _SCALES.items():
        yield from ((name, scale), (f"a {name}", scale))
    yield from _HALVES.items()
    yield from (("twice", 2), ("thrice", 3))


def _library_forms(language: str) -> Iterator[tuple[str, Decimal | int]]:
    try:
        from num2words import CONVERTER_CLASSES, num2words
    except ImportError:
        return
    code = _ALIKE.get(language, language)
    if code not in CONVERTER_CLASSES or code in ("ja", "ko"):
        return
    for number in (
        *range(1000),
        *range(1100, 2000),
        *range(1000, 10**6, 1000),
        *(10**power * n for power in (6, 9) for n in (1, 2, 5)),
    ):
        try:
            form = str(
                num2words(
                    number, lang=code, to="year" if 1100 < number < 2000 else "cardinal"
                )
            )
        except Exception:  # the library does not have this form
            continue
        yield form, number
        if number >= 10**6:
            scale = 10**6 if number < 10**9 else 10**9
            yield (
                form.removeprefix(str(num2words(number // scale, lang=code))).split()[
                    -1
                ],
                scale,
            )
    if language == "de":
        yield from _HALVES.items()


def _find_entries(text: str, table: _NumberWords) -> list[NumberInWords]:
    """Find the entries of the table in a text, the longest first."""
    if table.spaceless is not None:
        matches = table.spaceless.finditer(text)
        return [
            NumberInWords(table.values[match.group()], *match.span())
            for match in matches
            if len(match.group()) > 2
        ]
    words = [
        (fold(word.group()), word.start(), word.end()) for word in _WORD.finditer(text)
    ]
    entries: list[NumberInWords] = []
    index = 0
    while index < len(words):
        for size in range(min(table.longest, len(words) - index), 0, -1):
            run = [word for word, _, _ in words[index : index + size]]
            start = words[index][1]
            end = words[index + size - 1][2]
            number = table.values.get(" ".join(run)) or table.values.get("".join(run))
            if number is None and run[-1].endswith("as"):  # "cuatrocientas", "duzentas"
                number = table.values.get(" ".join([*run[:-1], f"{run[-1][:-2]}os"]))
            if number is None:
                number = (
                    table.values.get(run[0], _value_of_compound(run[0], table))
                    if size == 1
                    else None
                )
            if number is not None and not re.search(r"[\d.,;:()]", text[start:end]):
                entries.append(NumberInWords(number, start, end))
                index += size - 1
                break
        index += 1
    return entries


def _value_of_compound(word: str, table: _NumberWords) -> Decimal | None:
    """Return the value of a compound of several entries ("dreitausendzwanzig")."""
    total: Decimal | None = None
    while word:
        cut = next(
            (
                size
                for size in range(min(len(word), 60), 2, -1)
                if word[:size] in table.values
            ),
            0,
        )
        number = table.values.get(word[:cut])
        if not cut or number is None:
            return None
        if total is None:
            total = number
        elif number < 1:
            total = total + number
        else:
            total = _combine(total, number)
        if total is None:
            return None
        word = word[cut:].removeprefix("und")
    return total


def _combine(first: Decimal, second: Decimal) -> Decimal | None:
    """Combine two neighbouring entries ("two" "million"); None if they are two numbers."""
    if second in _SCALES.values():
        step = {100: 10, 10**5: 100, 12: 10**9}.get(int(second), 1000)
        low = first % (second * step)
        if 0 < low < second:
            return first - low + low * second
    for power in (12, 9, 6, 3, 2, 1):
        if first >= 10**power and first % 10**power == 0:
            return first + second if 0 < second < 10**power else None
    return None


def _join_entries(
    text: str, entries: list[NumberInWords], table: _NumberWords, language: str
) -> Iterator[NumberInWords]:
    index = 0
    torn = False
    while index < len(entries):
        total_value, start, end, _ = entries[index]
        index = index + 1
        cut = torn
        torn = False
        while index < len(entries) and _GAP.fullmatch(
            gap := text[end : entries[index].start]
        ):
            second = entries[index].value
            total = _combine(total_value, second)
            if language == "sw" and total_value in (100, 1000) and gap == " ":
                total = total_value * second  # the factor comes second
            if gap == ", " and total_value < 1000:
                break
            if total is None or (
                language == "en" and gap == " and " and total_value < 100
            ):
                torn = total is None
                break
            total_value = total
            end = entries[index].end
            index = index + 1
        if (point := _POINT.match(text, end)) is not None:
            digits = "".join(
                str(_ONES.index(digit_word))
                for digit_word in re.split(r"[ -]", point[1])[1:]
            )
            total_value = total_value + Decimal(f"0.{digits}")
            end = point.end()
            index = index + len(digits)
        fraction = _PART.match(text, end)
        if (
            fraction
            and (share := _PARTS.get(fraction[2])) is not None
            and total_value == int(total_value)
        ):
            large = max(
                (scale for scale in (10**9, 10**6) if total_value % scale == 0),
                default=1,
            )  # "a million and a half"
            total_value = (
                total_value + share * large if fraction[1] else total_value * share
            )
            end = fraction.end()
            index += index < len(entries) and entries[index].start < end
            if (
                index < len(entries)
                and entries[index].value in _SCALES.values()
                and text[end : entries[index].start] == " "
            ):
                total_value = total_value * entries[index].value
                end = entries[index].end
                index = index + 1
        yield NumberInWords(
            total_value, start, end, cut or torn or _is_cut(text, start, end, table)
        )


def _is_cut(text: str, start: int, end: int, table: _NumberWords) -> bool:
    """Return whether a neighbouring word belongs to the number but was not read."""
    if table.spaceless is not None:
        return table.spaceless.match(text, end) is not None
    if re.match(r"-[^\W\d_]", text[end : end + 2]):
        return True  # "twenty-first"
    for near in (
        _AFTER.match(text[end : end + 40]),
        _BEFORE.search(text[max(0, start - 40) : start]),
    ):
        word = fold(near[1]).removeprefix("و") if near else ""
        if word in _GOES_ON or (
            len(word) > 3 and word[: 5 if word.isascii() else 4] in table.stems
        ):
            return True
    return False


def _find_east_asian(text: str) -> Iterator[NumberInWords]:
    end = 0
    for characters in _CHARACTERS.finditer(text):
        run = _without_copula(characters, text)
        if run.start() < end or not _is_number(run, text):
            continue
        number = Decimal(read_numerals(run.group()))
        end = run.end()
        ratio = _RATIO.match(text, end)
        if (
            ratio
            and number
            and (above := _CHARACTERS.match(text, ratio.end())) is not None
        ):
            number = read_numerals(above.group()) / number
            end = above.end()
        cut = text[end : end + 1] in tuple("多几点點점余半") or text[
            run.start() - 1 : run.start()
        ] in tuple("第点點점半数几")
        yield NumberInWords(number, run.start(), end, cut)
    for point in _KOREAN_POINT.finditer(text):
        decimals = "".join(str(DIGITS[char]) for char in point[2])
        yield NumberInWords(
            Decimal(f"{read_numerals(point[1])}.{decimals}"), *point.span()
        )
    for native in _NATIVE_RUN.finditer(text):
        addends = [_NATIVE[word] for word in native.groups() if word]
        yield NumberInWords(Decimal(sum(addends)), *native.span())


def _without_copula(run: re.Match[str], text: str) -> re.Match[str]:
    """Drop the copula at the end of a run of number characters."""
    if len(run.group()) < 2 or _COPULA_BEHIND.match(text, run.end() - 1) is None:
        return run
    return _CHARACTERS.match(text, run.start(), run.end() - 1) or run


def _is_number(run: re.Match[str], text: str) -> bool:
    """Return whether digit characters are a number, not part of a word or of a number in digits."""
    signs = run.group()
    before = text[run.start() - 1 : run.start()]
    after = text[run.end() : run.end() + 1]
    if before.isdecimal():
        return False
    if "가" <= signs <= "힣힣":
        is_counted = (
            _KOREAN_COUNTED.match(text, run.end()) is not None
            or _RATIO.match(text, run.end()) is not None
        )
        age = signs == "만" and text[run.end() + 1 : run.end() + 2].isdecimal()
        return (
            is_counted
            and not age
            and not "가" <= before <= "힣"
            and (
                len(signs) > 1
                or signs in "백천만육칠팔"
                or _RATIO.match(text, run.end()) is not None
                or _LONE_DIGIT.match(text, run.start()) is not None
            )
        )
    return (
        len(signs) > 1
        or not "一" <= after <= "鿿"
        or after in _COUNTED
        or text.startswith("番目", run.end())
    )
