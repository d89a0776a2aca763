"""Number words: a parser for English and for the characters of Chinese, Japanese and Korean; for other languages the library
num2words run backwards, where it is installed (`pip install 'evalwright[numbers]'`). Without it such words are not read, and what
rests on them stays undecided.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

from evalwright.scorers.text.tokens import fold
from evalwright.scorers.text.wordlists import word_list, word_set

_SMALL = {
    word: value
    for value, word in enumerate(
        word_list(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
            "nineteen"
        )
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(word_list("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "lakh": 10**5, "crore": 10**7}  # fmt: skip
_NTHS = word_list("third fourth fifth sixth seventh eighth ninth tenth")
_PARTS = {f"{word}s": Decimal(1) / part for part, word in enumerate(_NTHS, 3)} | {
    word: Decimal(1) / part
    for part, words in ((2, "half halves"), (3, "third"), (4, "quarter quarters"))
    for word in words.split()
}
_OTHERS = {"dozen": 12, "twice": 2, "thrice": 3}
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset({*_SMALL, *_TENS, *_SCALES, *_PARTS, *_OTHERS, "hundred", "and", "a", "point"})

_DIGITS = {
    char: value
    for value, chars in enumerate(
        word_list("零〇영공 一壹일 二贰兩两이 三叁삼 四肆사 五伍오 六陆륙육 七柒칠 八捌팔 九玖구")
    )
    for char in chars
}
_PLACES = {char: 10**power for power, chars in enumerate(("十拾십", "百佰백", "千仟천"), 1) for char in chars}
_MYRIADS = {
    char: 10 ** (4 * power) for power, chars in enumerate(("万萬만", "亿億억", "兆조"), 1) for char in chars
}
_CHARACTERS = re.compile(f"[{''.join((*_DIGITS, *_PLACES, *_MYRIADS))}]+")
_KOREAN = {
    word: value
    for value, words in enumerate(word_list("하나|한 둘|두 셋|세 넷|네 다섯 여섯 일곱 여덟 아홉"), 1)
    for word in words.split("|")
}
_KOREAN_TENS = {
    word: 10 * value
    for value, words in enumerate(word_list("열 스물|스무 서른 마흔 쉰 예순 일흔 여든 아흔"), 1)
    for word in words.split("|")
}
_NATIVE = re.compile(
    rf"(?<![가-힣])(?P<tens>{'|'.join(_KOREAN_TENS)})?(?P<ones>{'|'.join(_KOREAN)})?(?=\s?(?:개|명|마리|살|번|가지|곳)|\s|$)"
)

Found = tuple[Decimal, int, int]
"""A value and its place in the text."""


def spelled(text: str, language: str) -> list[Found]:
    """The numbers that a plain text writes in words, in order."""
    lowered = text.casefold()
    out = _english(lowered)
    if not text.isascii():
        out += _east_asian(lowered)
    if language != "en" and (table := _table(language)) is not None:
        out += _looked_up(lowered, *table)
    kept: list[Found] = []
    for one in sorted(out, key=lambda found: (found[1], -found[2])):
        if not kept or one[1] >= kept[-1][2]:
            kept.append(one)
    return kept


def _english(text: str) -> list[Found]:
    out: list[Found] = []
    run: list[re.Match[str]] = []
    end = 0
    for word in _WORD.finditer(text):
        gap = text[end : word.start()]
        joined = run and (gap.strip(" -") == "" or (gap == ", " and run[-1].group() in _SCALES))
        if run and (not joined or word.group() not in _ENGLISH):
            out += _english_run(run)
            run = []
        if word.group() in _ENGLISH and (run or word.group() not in ("and", "point")):
            run.append(word)
        end = word.end()
    return out + _english_run(run)


def _english_run(run: list[re.Match[str]]) -> list[Found]:
    while run and run[-1].group() in ("and", "a", "point"):
        run = run[:-1]
    while (
        run
        and run[0].group() == "a"
        and (len(run) == 1 or run[1].group() not in ("hundred", *_SCALES, "dozen", "half", "quarter"))
    ):
        run = run[1:]
    if not run:
        return []
    words = [word.group() for word in run]
    value = _english_value(words)
    return [] if value is None else [(value, run[0].start(), run[-1].end())]


def _english_value(words: list[str]) -> Decimal | None:
    if "point" in words:
        place = words.index("point")
        whole, digits = _english_value(words[:place]), words[place + 1 :]
        if whole is None or not digits or any(_SMALL.get(word, 10) > 9 for word in digits):
            return None
        return whole + Decimal("0." + "".join(str(_SMALL[word]) for word in digits))
    if words[-1] in _PARTS:
        whole, last = Decimal(0), words
        if "and" in words:
            place = len(words) - 1 - words[::-1].index("and")
            front, last = _english_value(words[:place]), words[place + 1 :]
            if front is None:
                return None
            whole = front
        count = 1 if last[:-1] in ([], ["a"]) else _SMALL.get(last[0], 0) if len(last) == 2 else 0
        return whole + count * _PARTS[words[-1]] if count else None
    years = _year(words)
    if years is not None:
        return years
    total = current = Decimal(0)
    before = ""
    for word in words:
        if word in _SMALL:
            if before in _SMALL:
                return None  # "one two"
            current += _SMALL[word]
        elif word in _TENS:
            if before in _TENS or before in _SMALL:
                return None
            current += _TENS[word]
        elif word == "hundred":
            current = (current or Decimal(1)) * 100
        elif word in _SCALES:
            total += (current or Decimal(1)) * _SCALES[word]
            current = Decimal(0)
        elif word in _OTHERS:
            current = (current or Decimal(1)) * _OTHERS[word]
        elif word in _PARTS:
            return None
        before = word if word not in ("and", "a") else before
    return total + current


def _year(words: list[str]) -> Decimal | None:
    """ "nineteen eighty-four", "twenty twelve", "eighteen hundred" is read by the general rule."""
    if len(words) not in (2, 3) or any(word not in _SMALL and word not in _TENS for word in words):
        return None
    first = _SMALL.get(words[0], 0) or _TENS.get(words[0], 0)
    rest = words[1:]
    last = sum(_SMALL.get(word, 0) + _TENS.get(word, 0) for word in rest)
    if (
        10 < first <= 21
        and 10 <= last <= 99
        and (len(rest) == 1 or (rest[0] in _TENS and 0 < _SMALL.get(rest[1], 0) < 10))
    ):
        return Decimal(100 * first + last)
    return None


def _east_asian(text: str) -> list[Found]:
    out: list[Found] = []
    for run in _CHARACTERS.finditer(text):
        hangul = "가" <= run.group()[0] <= "힣"
        after = text[run.end() : run.end() + 1]
        if hangul and (
            len(run.group()) < 2
            or "가" <= text[run.start() - 1 : run.start()] <= "힣"
            or ("가" <= after <= "힣" and after not in "개명년원도층회")
        ):
            continue  # a syllable of a word
        if (
            not hangul
            and run.group() in ("一", "千", "万", "百", "三", "十")
            and after
            and "一" <= after <= "鿿"
            and after not in "个個年人天月日本次万亿种座"
        ):
            continue
        value = _characters_value(run.group())
        if value is not None and not (run.start() and text[run.start() - 1].isdecimal()):
            out.append((Decimal(value), *run.span()))
    out += [
        (
            Decimal(_KOREAN_TENS.get(native["tens"] or "", 0) + _KOREAN.get(native["ones"] or "", 0)),
            *native.span(),
        )
        for native in _NATIVE.finditer(text)
        if native["tens"] or native["ones"]
    ]
    return out


def _characters_value(run: str) -> int | None:
    if len(run) > 1 and all(char in _DIGITS for char in run):
        return int("".join(str(_DIGITS[char]) for char in run))  # "一九四七"
    total = part = digit = 0
    for char in run:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _PLACES:
            part += (digit or 1) * _PLACES[char]
            digit = 0
        else:
            total += (part + digit or 1) * _MYRIADS[char]
            part = digit = 0
    return total + part + digit


_ALIKE = {"ms": "id", "fil": "tl", "nb": "no", "nn": "no"}
_SPACELESS = ("th", "ja", "ko", "zh")


@lru_cache(maxsize=8)
def _table(language: str) -> tuple[dict[str, int], int] | None:
    """Number words of a language with their values, and how many words the longest has; None where they are not known."""
    try:
        from num2words import CONVERTER_CLASSES, num2words
    except ImportError:
        return None
    code = _ALIKE.get(language, language)
    if code not in CONVERTER_CLASSES or code in ("ja", "ko", "en"):
        return None
    table: dict[str, int] = {}
    values = [*range(2100), *range(3000, 101000, 1000), *(10**6 * n for n in range(1, 20)), 10**9]
    for value in values:
        for form in _forms(num2words, value, code):
            table.setdefault(form, value)
    for word in ("", "un", "une", "uno", "una", "um", "uma", "ein", "eine", "en", "een", "et", "se"):
        table.pop(word, None)
    return table, max(6, max(form.count(" ") for form in table) + 1)


def _forms(num2words: Any, value: int, code: str) -> list[str]:
    out = []
    for to in ("cardinal", "year") if 1100 <= value < 2100 else ("cardinal",):
        try:
            said = str(num2words(value, lang=code, to=to))
        except Exception:  # the library does not have this form
            continue
        words = " ".join(fold(said.casefold()).replace("-", " ").replace(",", " ").split())
        out += [words, words.replace(" ", "")]
    return out


def _looked_up(text: str, table: dict[str, int], longest: int) -> list[Found]:
    if _is_spaceless(table):
        return _substrings(text, table)
    words = [(fold(word.group()), word.start(), word.end()) for word in _WORD.finditer(text)]
    out: list[Found] = []
    place = 0
    while place < len(words):
        for size in range(min(longest, len(words) - place), 0, -1):
            run = [word for word, _, _ in words[place : place + size]]
            form = " ".join(run) if " ".join(run) in table else "".join(run)
            if form in table:
                out.append((Decimal(table[form]), words[place][1], words[place + size - 1][2]))
                place += size - 1
                break
        place += 1
    return out


_COMPANIONS = word_set(
    "komma virgule coma virgula virgola point demi medio media meio mezzo halb halbe nonante septante huitante octante",
    "anderthalb und et y e and",
)


def goes_on(text: str, start: int, end: int, language: str) -> bool:
    """Whether a number in words has a neighbour that belongs to it and is not read, such as an ordinal or "et demi"."""
    known = _table(language) if language != "en" else None
    after = re.compile(r"[ -]([^\W\d_]{1,30})(?:[ -]([^\W\d_]{2,30}))?").match(text, end)
    before = re.compile(r"([^\W\d_]{3,30})[ -](?:e |y |et |und )?$").search(text[max(0, start - 32) : start])
    words = [fold(word.casefold()) for word in ((after[1], after[2] or "") if after else ())]
    if words and (
        words[0] in _COMPANIONS
        and (words[0] not in ("und", "et", "y", "e", "and") or words[1] in _COMPANIONS)
    ):
        return True
    previous = fold(before[1].casefold()) if before else ""
    if previous in _COMPANIONS and (
        previous not in ("und", "et", "y", "e", "and")
        or (language == "en" and text[start:end].casefold() in ("half", "a half", "quarter", "a quarter"))
    ):
        return True
    if known is None:
        return False
    if _is_spaceless(known[0]):
        return re.match(r"หนึ่ง|สอง|สาม|สี่|ห้า|หก|เจ็ด|แปด|เก้า|แสน|ล้าน|หมื่น|พัน|ร้อย|สิบ", text[end:]) is not None
    near = [word[:5] for word in (*words[:1], previous) if len(word) >= 5]
    return any(form.startswith(start) for start in near for form in known[0])


def _is_spaceless(table: dict[str, int]) -> bool:
    return any("\u0e00" < form[:1] < "\u0eff" for form in list(table)[:3])


def _substrings(text: str, table: dict[str, int]) -> list[Found]:
    pattern = re.compile("|".join(sorted(map(re.escape, table), key=len, reverse=True)))
    return [
        (Decimal(table[found.group()]), *found.span())
        for found in pattern.finditer(text)
        if len(found.group()) > 3
    ]
