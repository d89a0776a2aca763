"""Number words of scripts other than Latin: Han numerals, Japanese and Korean counting words, Thai, Hindi and Tamil.

Where a script writes no spaces, a single numeral is a number only before a counter or as the whole answer: 一 in 一般 is not
one. Digits in Han numerals ("二〇二四") read as digits. Sources: the languages' grammars; Tamil compounds are put together by
their joining rule (a final vowel of the first part yields to the vowel of the second).
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from evalwright.scorers.text.wordlists import word_list


class Character(NamedTuple):
    """A number in a text: its value, its place, and whether it is an ordinal."""

    value: Decimal
    start: int
    end: int
    ordinal: bool = False


_HAN_DIGITS = {
    char: value
    for value, chars in enumerate(
        ["〇零", "一壱壹", "二弐貳贰两兩", "三参參叁", "四肆", "五伍", "六陸陆", "七柒", "八捌", "九玖"]
    )
    for char in chars
}
_HAN_PLACES = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_HAN_SCALES = {"万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8, "兆": 10**12}
_HAN_ALL = "".join((*_HAN_DIGITS, *_HAN_PLACES, *_HAN_SCALES))
_HAN = re.compile(
    f"(?P<first>第)?(?P<number>[{_HAN_ALL}]+)(?:[点點・](?P<point>[{''.join(_HAN_DIGITS)}]+)(?P<scale>[{''.join(_HAN_SCALES)}]?))?(?P<half>半(?=[个個年小]|$))?"
)
_HAN_COUNTERS = frozenset(
    "个個人本枚匹只隻条條颗顆つ名年月日件次回代倍種种座位部岁歳歲度国國州省点點间間架艘辆輛台層层楼樓章页頁元円块塊米公千克吨小分秒时時天週周票张張"
    "头頭席款册冊首幅栋棟所家户戶組组群批段步歩声聲句字行列级級等届屆任世纪紀ヶヵかカ箇番号號曲話巻羽杯足着棟室店社校局"
)
_KANA = {
    word: value
    for value, words in enumerate(
        [
            "ひとつ|一つ",
            "ふたつ|二つ",
            "みっつ|三つ",
            "よっつ|四つ",
            "いつつ|五つ",
            "むっつ|六つ",
            "ななつ|七つ",
            "やっつ|八つ",
            "ここのつ|九つ",
        ],
        1,
    )
    for word in words.split("|")
}

_SINO_DIGITS = {
    char: value
    for value, chars in enumerate(["영공", "일", "이", "삼", "사", "오", "육륙", "칠", "팔", "구"])
    for char in chars
}
_SINO_PLACES = {"십": 10, "백": 100, "천": 1000}
_SINO_SCALES = {"만": 10**4, "억": 10**8, "조": 10**12}
_NATIVE_ONES = word_list("하나/한 둘/두 셋/세 넷/네 다섯 여섯 일곱 여덟 아홉")
_NATIVE_TENS = word_list("열 스물/스무 서른 마흔 쉰 예순 일흔 여든 아흔")
_KOREAN_COUNTERS = "(?:개|명|마리|번|년|월|일|살|세|시간|시|분|초|권|장|대|층|원|달러|유로|미터|킬로|퍼센트|도|배|회|위|곳|사람|가지|채|그루|송이|인|점|호|주|척|편|곡|표|석|점|킬로미터|킬로그램)"
_COUNTED = re.compile(
    r"\s?"
    + _KOREAN_COUNTERS
    + "(?:입니다|이다|이에요|예요|의|에|이|가|을|를|은|는|로|으로|쯤|정도|이며|이고)?(?![가-힣])"
)

_THAI_DIGITS = {
    word: value
    for value, words in enumerate(["ศูนย์", "หนึ่ง|เอ็ด", "สอง|ยี่", "สาม", "สี่", "ห้า", "หก", "เจ็ด", "แปด", "เก้า"])
    for word in words.split("|")
}
_THAI_PLACES = {"สิบ": 10, "ร้อย": 100, "พัน": 1000, "หมื่น": 10**4, "แสน": 10**5}
_THAI_SCALES = {"ล้าน": 10**6}

_HINDI = word_list(
    "शून्य एक दो तीन चार पाँच/पांच छह/छः/छे सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह/पन्द्रह सोलह सत्रह अठारह उन्नीस बीस इक्कीस बाईस/बाइस तेईस/तेइस "
    "चौबीस पच्चीस छब्बीस सत्ताईस/सत्ताइस अट्ठाईस/अट्ठाइस/अठाईस उनतीस/उन्तीस तीस इकतीस/इकत्तीस बत्तीस तैंतीस/तेंतीस चौंतीस पैंतीस छत्तीस सैंतीस अड़तीस "
    "उनतालीस/उन्तालीस चालीस इकतालीस बयालीस/बियालीस तैंतालीस/तेंतालीस चौवालीस/चवालीस पैंतालीस छियालीस सैंतालीस अड़तालीस उनचास/उन्चास पचास "
    "इक्यावन बावन तिरपन/तिरेपन चौवन/चौअन पचपन छप्पन सत्तावन अट्ठावन/अठावन उनसठ साठ इकसठ बासठ तिरसठ/तिरेसठ चौंसठ/चौसठ पैंसठ छियासठ "
    "सड़सठ/सरसठ अड़सठ उनहत्तर सत्तर इकहत्तर/इकत्तर बहत्तर तिहत्तर चौहत्तर पचहत्तर/पिचहत्तर छिहत्तर सतहत्तर अठहत्तर उनासी/उन्यासी अस्सी "
    "इक्यासी बयासी तिरासी चौरासी पचासी छियासी सत्तासी अट्ठासी/अठासी नवासी नब्बे इक्यानवे/इक्यानबे बानवे/बानबे तिरानवे/तिरानबे "
    "चौरानवे/चौरानबे पचानवे/पंचानवे छियानवे/छियानबे सत्तानवे/सत्तानबे अट्ठानवे/अट्ठानबे निन्यानवे/निन्यानबे"
)
_HINDI_SCALES = {
    "सौ": 100,
    "हज़ार": 1000,
    "हजार": 1000,
    "लाख": 10**5,
    "करोड़": 10**7,
    "अरब": 10**9,
    "मिलियन": 10**6,
    "बिलियन": 10**9,
}

_TAMIL_ONES = word_list("ஒன்று/ஒரு இரண்டு/இரு மூன்று நான்கு/நாலு ஐந்து/அஞ்சு ஆறு ஏழு எட்டு ஒன்பது")
_TAMIL_TEENS = word_list(
    "பத்து பதினொன்று/பதினோரு பன்னிரண்டு பதின்மூன்று/பதிமூன்று பதினான்கு/பதினாலு பதினைந்து பதினாறு பதினேழு பதினெட்டு பத்தொன்பது"
)
_TAMIL_TENS = word_list(
    "இருபது/இருபத்து/இருபத்தி முப்பது/முப்பத்து/முப்பத்தி நாற்பது/நாற்பத்து/நாற்பத்தி ஐம்பது/ஐம்பத்து/ஐம்பத்தி அறுபது/அறுபத்து/அறுபத்தி எழுபது/எழுபத்து/எழுபத்தி எண்பது/எண்பத்து/எண்பத்தி தொண்ணூறு/தொண்ணூற்று"
)
_TAMIL_HUNDREDS = word_list(
    "நூறு/நூற்று இருநூறு/இருநூற்று முந்நூறு/முந்நூற்று/முன்னூறு நானூறு/நானூற்று ஐந்நூறு/ஐநூறு/ஐந்நூற்று அறுநூறு/அறுநூற்று எழுநூறு/எழுநூற்று எண்ணூறு/எண்ணூற்று தொள்ளாயிரம்/தொள்ளாயிரத்து"
)
_TAMIL_SCALES = {
    "ஆயிரம்": 1000, "ஆயிரத்து": 1000, "இலட்சம்": 10**5, "லட்சம்": 10**5, "லட்சத்து": 10**5, "கோடி": 10**7, "கோடியே": 10**7,
    "மில்லியன்": 10**6, "பில்லியன்": 10**9,
}  # fmt: skip
_TAMIL_THOUSANDS = {
    "இரண்டாயிரம்": 2000,
    "இரண்டாயிரத்து": 2000,
    "மூவாயிரம்": 3000,
    "நான்காயிரம்": 4000,
    "நாலாயிரம்": 4000,
    "ஐயாயிரம்": 5000,
    "ஐந்தாயிரம்": 5000,
    "ஆறாயிரம்": 6000,
    "ஏழாயிரம்": 7000,
    "எட்டாயிரம்": 8000,
    "ஒன்பதாயிரம்": 9000,
    "பத்தாயிரம்": 10000,
}
_TAMIL_VOWELS = dict(zip("அஆஇஈஉஊஎஏஐஒஓ", ["", "ா", "ி", "ீ", "ு", "ூ", "ெ", "ே", "ை", "ொ", "ோ"], strict=True))
_MOST = 60


def character_numbers(text: str, language: str) -> list[Character]:
    """The numbers of a text in words of those scripts, in order. language: decides Korean's and Han's single signs."""
    if text.isascii():
        return []
    found: list[Character] = []
    top = max(text)
    code = language[:2]
    if any("\u3007" <= char <= "\u9fff" for char in text):
        found += _han(text)
    if top >= "\uac00" and any("가" <= char <= "힣" for char in text):
        found += _korean(text)
    if any("\u0e00" <= char <= "\u0e7f" for char in text):
        found += _by_places(text, _thai_pattern(), _THAI_DIGITS, _THAI_PLACES, _THAI_SCALES)
    if any("\u0900" <= char <= "\u097f" for char in text):
        found += _in_words(text, _hindi(), _HINDI_SCALES, single=code in ("hi", "mr", "ne"))
    if any("\u0b80" <= char <= "\u0bff" for char in text):
        found += _in_words(text, _tamil(), _TAMIL_SCALES, single=code == "ta")
    return sorted(found, key=lambda one: one.start)[:_MOST]


def _whole(text: str, start: int, end: int) -> bool:
    """Whether there is nothing but signs around a range."""
    return not any(map(str.isalnum, text[:start])) and not any(map(str.isalnum, text[end:]))


def _han(text: str) -> list[Character]:
    found = [
        Character(Decimal(value), *match.span())
        for word, value in _KANA.items()
        for match in re.finditer(word, text)
    ]
    taken = {one.start for one in found}
    for match in _HAN.finditer(text):
        digits = match["number"]
        start, end = match.span()
        if start in taken or text[start - 1 : start].isdigit() or len(digits) > 40:
            continue  # the magnitude of digits ("3万") is read with them
        after = text[end : end + 1]
        if (
            len(digits) == 1
            and not match["point"]
            and after not in _HAN_COUNTERS
            and not _whole(text, start, end)
        ):
            continue
        value = _han_value(digits)
        if value is None:
            continue
        total = Decimal(value)
        if match["point"]:
            total += Decimal("0." + "".join(str(_HAN_DIGITS[char]) for char in match["point"]))
            total *= _HAN_SCALES.get(match["scale"] or "", 1)
        if match["half"]:
            total += Decimal("0.5")
        found.append(Character(total, start, end, ordinal=bool(match["first"])))
    return found


def _han_value(digits: str) -> int | None:
    if all(char in _HAN_DIGITS for char in digits):
        return int("".join(str(_HAN_DIGITS[char]) for char in digits))
    return _value(list(digits), _HAN_DIGITS, _HAN_PLACES, _HAN_SCALES)


def _value(
    signs: list[str], digits: dict[str, int], places: dict[str, int], scales: dict[str, int]
) -> int | None:
    """A number by places: "三百二十五万" is (3 × 100 + 2 × 10 + 5) × 10,000; None where the signs are no number."""
    total, group, pending = 0, 0, -1
    place_limit = scale_limit = 10**18
    for sign in signs:
        if sign in digits:
            if pending > 0:
                return None
            pending = digits[sign]
        elif sign in places:
            if places[sign] >= place_limit:
                return None
            group += (pending if pending > 0 else 1) * places[sign]
            pending, place_limit = -1, places[sign]
        else:
            if scales[sign] >= scale_limit:
                return None
            group += max(pending, 0)
            total += (group or 1) * scales[sign]
            group, pending, place_limit, scale_limit = 0, -1, 10**18, scales[sign]
    return total + group + max(pending, 0)


_MIXED = re.compile(r"(\d[\d,]*(?:\.\d+)?)|(\D)")


def mixed_value(run: str) -> Decimal:
    """The value of digits with Han or Hangul places: "2億5000万", "3천만", "2千5百万"."""
    places = _HAN_PLACES | _SINO_PLACES
    scales = _HAN_SCALES | _SINO_SCALES
    total = group = Decimal(0)
    pending: Decimal | None = None
    for digits, sign in _MIXED.findall(run):
        if digits:
            pending = Decimal(digits.replace(",", ""))
        elif sign in places:
            group += (Decimal(1) if pending is None else pending) * places[sign]
            pending = None
        else:
            group += pending or 0
            total += (group or 1) * scales[sign]
            group, pending = Decimal(0), None
    return total + group + (pending or 0)


@cache
def _thai_pattern() -> re.Pattern[str]:
    words = sorted((*_THAI_DIGITS, *_THAI_PLACES, *_THAI_SCALES), key=len, reverse=True)
    return re.compile(
        f"(?P<first>ที่\\s?)?(?P<number>(?:{'|'.join(words)})+)(?P<point>จุด(?:{'|'.join(_THAI_DIGITS)})+)?(?P<half>ครึ่ง)?"
    )


def _by_places(
    text: str,
    pattern: re.Pattern[str],
    digits: dict[str, int],
    places: dict[str, int],
    scales: dict[str, int],
) -> list[Character]:
    sign = re.compile("|".join(sorted((*digits, *places, *scales), key=len, reverse=True)))
    found: list[Character] = []
    for match in pattern.finditer(text):
        if text[: match.start("number")].rstrip()[-1:].isdigit():
            continue
        signs = sign.findall(match["number"])
        value = _value(signs, digits, places, scales)
        # A place alone ("ร้อย" is also a thread) and the forms that only stand inside a number are none by themselves.
        bound = len(signs) == 1 and (signs[0] not in digits or signs[0] in ("ยี่", "เอ็ด"))
        if value is None or (bound and not _whole(text, *match.span())):
            continue
        total = Decimal(value)
        if match["point"]:
            total += Decimal("0." + "".join(str(digits[one]) for one in sign.findall(match["point"])))
        if match["half"]:
            total += Decimal("0.5")
        found.append(Character(total, match.start("number"), match.end(), ordinal=bool(match["first"])))
    return found


@cache
def _korean_patterns() -> tuple[re.Pattern[str], re.Pattern[str], dict[str, int]]:
    native: dict[str, int] = {}
    ones = {name: value for value, names in enumerate(_NATIVE_ONES, 1) for name in names.split("/")}
    tens = {name: value * 10 for value, names in enumerate(_NATIVE_TENS, 1) for name in names.split("/")}
    native |= ones | tens
    native |= {
        ten + one: value + more for ten, value in tens.items() for one, more in ones.items() if ten != "스무"
    }
    words = "|".join(sorted(native, key=len, reverse=True))
    sino = "".join((*_SINO_DIGITS, *_SINO_PLACES, *_SINO_SCALES))
    ending = (
        r"(?=\s?" + _KOREAN_COUNTERS + r"|(?:입니다|이다|이에요|예요|이|가|을|를|은|는|로|으로)?(?![가-힣]))"
    )
    return (
        re.compile(
            f"(?<![가-힣0-9])(?P<first>제\\s?)?(?P<number>[{sino}]+(?:(?<=[만억조]) [{sino}]+)*)(?:점(?P<point>[{''.join(_SINO_DIGITS)}]+))?"
            + ending
        ),
        re.compile(f"(?<![가-힣0-9])(?P<number>{words})" + ending),
        native,
    )


def _korean(text: str) -> list[Character]:
    sino, native_pattern, native = _korean_patterns()
    found: list[Character] = []
    for match in sino.finditer(text):
        signs = match["number"].replace(" ", "")
        whole = _whole(text, match.start(), match.end())
        # A syllable that stands for a number is mostly a word of its own: 이 is "this", 일 is "work".
        if len(signs) == 1 and not match["point"] and not (whole or _COUNTED.match(text, match.end())):
            continue
        if all(sign in _SINO_SCALES for sign in signs) and not whole:
            continue
        value = _value(list(signs), _SINO_DIGITS, _SINO_PLACES, _SINO_SCALES)
        if value is None and all(sign in _SINO_DIGITS for sign in signs):
            value = int("".join(str(_SINO_DIGITS[sign]) for sign in signs))
        if value is None:
            continue
        total = Decimal(value)
        if match["point"]:
            total += Decimal("0." + "".join(str(_SINO_DIGITS[sign]) for sign in match["point"]))
        found.append(Character(total, match.start(), match.end(), ordinal=bool(match["first"])))
    for match in native_pattern.finditer(text):
        word = match["number"]
        if len(word) == 1 and not _whole(text, *match.span()) and not _COUNTED.match(text, match.end()):
            continue
        found.append(Character(Decimal(native[word]), *match.span()))
    return found


@cache
def _hindi() -> dict[str, int]:
    return {name: value for value, names in enumerate(_HINDI) for name in names.split("/")}


@cache
def _tamil() -> dict[str, int]:
    ones = {name: value for value, names in enumerate(_TAMIL_ONES, 1) for name in names.split("/")}
    tens = {name: value * 10 for value, names in enumerate(_TAMIL_TENS, 2) for name in names.split("/")}
    hundreds = {
        name: value * 100 for value, names in enumerate(_TAMIL_HUNDREDS, 1) for name in names.split("/")
    }
    teens = {name: 10 + value for value, names in enumerate(_TAMIL_TEENS) for name in names.split("/")}
    out = {"பூஜ்ஜியம்": 0, "சுழியம்": 0} | ones | teens | tens | hundreds | _TAMIL_THOUSANDS
    for ten, value in tens.items():
        for one, more in ones.items():
            out[_join(ten, one)] = value + more
    below = {name: value for name, value in out.items() if 0 < value < 100}
    for hundred, value in hundreds.items():
        for one, more in below.items():
            out[_join(hundred, one)] = value + more
    return out


def _join(first: str, second: str) -> str:
    """Two Tamil words as one: the final vowel sign of the first yields to the initial vowel of the second."""
    sign = _TAMIL_VOWELS.get(second[0])
    if sign is None or first[-1] not in "ுி":
        return first + second
    return first[:-1] + sign + second[1:]


_WORD = re.compile(r"[^\s,;:!?.()।\"'\d]+")


def _in_words(text: str, small: dict[str, int], scales: dict[str, int], single: bool) -> list[Character]:
    """Numbers in words set apart by spaces: small ones added, each scale word smaller than the one before it.

    single: whether the word for one is a number by itself, and no article.
    """
    found: list[Character] = []
    matches = list(_WORD.finditer(text))
    index = 0
    while index < len(matches) and len(found) < _MOST:
        first, total, group, room, limit = index, 0, 0, 10**9, 10**12
        while index < len(matches):
            word = matches[index].group()
            gap = text[matches[index - 1].end() : matches[index].start()] if index > first else " "
            if gap.strip():
                break
            if word in small and small[word] < room:
                group += small[word]
                room = 1 if small[word] % 10 else 10 if small[word] % 100 else 100
                room = room if small[word] >= 10 else 1
            elif (
                word in scales
                and scales[word] < limit
                and (index > first or scales[word] > 100 or word == "सौ")
            ):
                if scales[word] == 100:
                    group, room = max(group, 1) * 100, 100
                else:
                    total, limit = total + max(group, 1) * scales[word], scales[word]
                    group, room = 0, limit
            else:
                break
            index += 1
        if index == first:
            index += 1
            continue
        start, end = matches[first].start(), matches[index - 1].end()
        alone = index == first + 1
        digits_before = text[:start].rstrip()[-1:].isdigit()
        article = alone and group == 1 and total == 0 and not _whole(text, start, end)
        if not digits_before and not article:
            found.append(Character(Decimal(total + group), start, end))
    return found
