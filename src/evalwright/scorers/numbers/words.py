"""English number words: "three hundred and five", "twenty-first", "one and a half million", "nineteen eighty-four"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

from evalwright.scorers.text.wordlists import word_list, word_set

_SMALL = {
    word: number
    for number, word in enumerate(
        word_list(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
            "eighteen nineteen"
        )
    )
}
_TENS = {
    word: 10 * number
    for number, word in enumerate(word_list("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
} | {"fourty": 40}
SCALES = {
    "thousand": Decimal(1000), "million": Decimal(10) ** 6, "billion": Decimal(10) ** 9, "trillion": Decimal(10) ** 12,
    "quadrillion": Decimal(10) ** 15, "lakh": Decimal(10) ** 5, "crore": Decimal(10) ** 7,
}  # fmt: skip
_BARE_SCALES = frozenset(SCALES)
"""Scale words that may begin a number; "thousands" by itself is no number."""
SCALES |= {f"{word}s": value for word, value in SCALES.items()}
_GROUPS = {"hundred": Decimal(100), "hundreds": Decimal(100), "dozen": Decimal(12)}
_ORDINALS = {
    word: number
    for number, word in enumerate(
        word_list(
            "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
            "fifteenth sixteenth seventeenth eighteenth nineteenth"
        )
    )
} | {
    word: 10 * number
    for number, word in enumerate(
        word_list("twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"), start=2
    )
}
_ORDINAL_SCALES = {
    "hundredth": Decimal(100),
    "thousandth": Decimal(1000),
    "millionth": Decimal(10) ** 6,
    "billionth": Decimal(10) ** 9,
}
_PARTS = {"half": 2, "halves": 2, "quarter": 4, "quarters": 4} | {
    f"{word}{ending}": number for word, number in _ORDINALS.items() if number > 2 for ending in ("", "s")
} | {"hundredth": 100, "hundredths": 100, "thousandth": 1000, "thousandths": 1000, "tenths": 10}  # fmt: skip
_DURATIONS = word_set("hour minute day week month year")
_NOT_A_COUNT_BEFORE = word_set("no any every some each this that which the another no-one")

WORDS = (
    frozenset(_SMALL)
    | frozenset(_TENS)
    | frozenset(_ORDINALS)
    | frozenset(_GROUPS)
    | frozenset(SCALES)
    | frozenset(_PARTS)
)
"""Every word that can begin or stand in a number (apart from "a", "and", "point")."""

STARTS = WORDS | {"a", "an"}


class Spelled(NamedTuple):
    """A number in words: its value and the tokens from start to end."""

    value: Decimal
    start: int
    end: int
    ordinal: bool = False


def spelled_numbers(tokens: Sequence[str], ends_clause: Callable[[int], bool]) -> list[Spelled]:
    """All numbers in words among casefolded tokens, left to right, as long as possible.

    ends_clause: whether punctuation stands between token i - 1 and i; a number does not reach over it, apart from
    the comma after a scale word ("two thousand, three hundred").
    """
    found = []
    index, size = 0, len(tokens)
    while index < size:
        if tokens[index] in STARTS and (number := _number(tokens, index, ends_clause)) is not None:
            found.append(number)
            index = number.end
        else:
            index += 1
    return found


def _number(tokens: Sequence[str], start: int, ends_clause: Callable[[int], bool]) -> Spelled | None:
    word = tokens[start]
    if word == "one" and _is_pronoun(tokens, start):
        return None
    reader = _Reader(tokens, start, ends_clause)
    if word in ("half", "quarter"):
        return reader.half()
    if word in ("a", "an"):
        following = reader.peek(1)
        if following in ("half", "third", "quarter", "fifth", "tenth", "hundredth", "thousandth"):
            reader.at += 1
            return reader.fraction(Decimal(1))
        if following in _DURATIONS and reader.peek(2) == "and":
            return Spelled(Decimal(1), start, start + 1)
        if following not in _GROUPS and following not in SCALES:
            return None
    return reader.number()


def _is_pronoun(tokens: Sequence[str], index: int) -> bool:
    """Whether "one" stands for a thing or person: "no one", "the one", "one of them"."""
    before = tokens[index - 1] if index else ""
    after = tokens[index + 1] if index + 1 < len(tokens) else ""
    return (before in _NOT_A_COUNT_BEFORE and after not in _GROUPS and after not in SCALES) or after in (
        "of",
        "another",
    )


class _Reader:
    """Reads one number from `origin` on; every method leaves `at` after what it read.

    Punctuation before the token `linked` belongs to the number.
    """

    def __init__(self, tokens: Sequence[str], start: int, ends_clause: Callable[[int], bool]) -> None:
        self.tokens = tokens
        self.origin = self.linked = self.at = start
        self.ends_clause = ends_clause
        self.ordinal = False

    def peek(self, ahead: int = 0) -> str:
        """A token further on, "" past the end or past punctuation."""
        index = self.at + ahead
        if index >= len(self.tokens):
            return ""
        for place in range(max(self.at, self.linked + 1), index + 1):
            if self.ends_clause(place):
                return ""
        return self.tokens[index]

    def half(self) -> Spelled | None:
        """ "half", "half a million", "quarter of a million"."""
        value = Decimal(1) / _PARTS[self.tokens[self.at]]
        self.at += 1
        ahead = 1 if self.peek() == "of" else 0
        if self.peek(ahead) in ("a", "an") and self.peek(ahead + 1) in SCALES | _GROUPS:
            word = self.peek(ahead + 1)
            self.at += ahead + 2
            return self._done(value * (SCALES.get(word) or _GROUPS[word]))
        return self._done(value)

    def number(self) -> Spelled | None:
        """A cardinal, ordinal, decimal or mixed number."""
        year = self._year()
        if year is not None:
            return self._done(year)
        total = Decimal(0)
        limit = Decimal("Infinity")
        read = False
        while True:
            mark = self.at
            group = self._under_thousand(allow_article=not read)
            if group is None:
                break
            if not self.ordinal and (scale := SCALES.get(self.peek())) is not None and scale < limit:
                self.at += 1
                group, limit, read = group * scale, scale, True
                while (again := SCALES.get(self.peek())) is not None:  # "hundred thousand million"
                    self.at += 1
                    group *= again
            elif not self.ordinal and self.peek() in _ORDINAL_SCALES and group > 1 and not read:
                return self.fraction(group)
            elif read and group >= limit:
                self.at = mark
                break
            else:
                total += group
                read = True
                break
            total += group
            if self.ordinal or not self._continues():
                break
        if not read:
            return None
        if self.ordinal:
            return self._done(total)
        return self._tail(total)

    def _continues(self) -> bool:
        """Step over "and" or a comma after a scale word where more of the number follows."""
        index = self.at
        if index < len(self.tokens) and self.tokens[index] == "and":
            index += 1
        if index < len(self.tokens) and (self.tokens[index] in _SMALL or self.tokens[index] in _TENS):
            self.linked = self.at = index
            return True
        if index < len(self.tokens) and self.tokens[index] in _ORDINALS and index > self.at:
            self.at = index
            return True
        return False

    def _tail(self, value: Decimal) -> Spelled | None:
        """Decimals ("point five"), "and a half", or a fraction's lower part."""
        following = self.peek()
        if following == "point" and self.peek(1) in _SMALL:
            self.at += 1
            digits = ""
            while (digit := _SMALL.get(self.peek())) is not None and digit < 10:
                digits += str(digit)
                self.at += 1
            value += Decimal(f"0.{digits}") if digits else 0
            return self._scaled(value)
        if following == "and":
            upper = 1 if self.peek(1) in ("a", "an", "one") else _SMALL.get(self.peek(1), 0)
            if upper and (part := _PARTS.get(self.peek(2))) and self.peek(2) not in ("second",):
                self.at += 3
                return self._scaled(value + Decimal(upper) / part)
        if value == value.to_integral_value() and 0 < value < 100 and following in _PARTS:
            plural = following.endswith(("s", "halves"))
            if plural or value == 1:
                return self.fraction(value)
        return self._done(value)

    def fraction(self, upper: Decimal) -> Spelled | None:
        """The lower part of a fraction whose upper part was read."""
        part = _PARTS.get(self.peek())
        if part is None:
            return self._done(upper)
        self.at += 1
        return self._scaled(upper / part)

    def _scaled(self, value: Decimal) -> Spelled | None:
        ahead = 1 if self.peek() == "of" else 0
        ahead = ahead + 1 if self.peek(ahead) in ("a", "an") else 0
        scale = SCALES.get(self.peek(ahead))
        if scale is not None:
            self.at += ahead + 1
            value *= scale
        return self._done(value)

    def _under_thousand(self, allow_article: bool) -> Decimal | None:
        word = self.peek()
        if allow_article and word in ("a", "an"):
            self.at += 1
            if self.peek() in _GROUPS:
                group = _GROUPS[self.peek()]
                self.at += 1
                return self._after_hundred(group) if group == 100 else group
            return Decimal(1)
        if allow_article and (word in _BARE_SCALES or word in ("hundred", "dozen")):
            if word in _BARE_SCALES:
                return Decimal(1)
            self.at += 1
            return self._after_hundred(_GROUPS[word]) if word == "hundred" else _GROUPS[word]
        if (ordinal := _ORDINALS.get(word)) is not None:
            self.at += 1
            self.ordinal = True
            return Decimal(ordinal)
        value = self._under_hundred()
        if value is None or self.ordinal:
            return value
        if (times := _GROUPS.get(self.peek())) is not None:
            self.at += 1
            return self._after_hundred(value * times) if times == 100 else value * times
        if self.peek() == "hundredth" and value < 100:
            self.at += 1
            self.ordinal = True
            return value * 100
        return value

    def _after_hundred(self, value: Decimal) -> Decimal:
        ahead = 1 if self.peek() == "and" else 0
        word = self.peek(ahead)
        if word in _ORDINALS:
            self.at += ahead + 1
            self.ordinal = True
            return value + _ORDINALS[word]
        # "a hundred and a half" and "a hundred and one half" are left to the fraction.
        if (word in _SMALL and self.peek(ahead + 1) not in _PARTS) or word in _TENS:
            self.at += ahead
            return value + (self._under_hundred() or Decimal(0))
        return value

    def _under_hundred(self) -> Decimal | None:
        word = self.peek()
        if (small := _SMALL.get(word)) is not None:
            self.at += 1
            return Decimal(small)
        if (tens := _TENS.get(word)) is None:
            return None
        self.at += 1
        following = self.peek()
        if 0 < _SMALL.get(following, 0) < 10:
            self.at += 1
            return Decimal(tens + _SMALL[following])
        if 0 < _ORDINALS.get(following, 0) < 10 and following != "second":
            self.at += 1
            self.ordinal = True
            return Decimal(tens + _ORDINALS[following])
        if following == "second":
            self.at += 1
            self.ordinal = True
            return Decimal(tens + 2)
        return Decimal(tens)

    def _year(self) -> Decimal | None:
        """ "nineteen eighty-four", "twenty twenty-four", "eighteen oh five": two halves of a year."""
        mark = self.at
        first = self._under_hundred()
        if first is not None and 10 <= first <= 29 and not self.ordinal:
            if self.peek() in ("oh", "o") and 0 < _SMALL.get(self.peek(1), 0) < 10:
                value = first * 100 + _SMALL[self.peek(1)]
                self.at += 2
                return value
            word = self.peek()
            if (word in _TENS or _SMALL.get(word, 0) >= 10) and self.peek(1) != "hundred":
                second = self._under_hundred()
                if second is not None and not self.ordinal and self.peek() not in SCALES:
                    return first * 100 + second
        self.at, self.ordinal = mark, False
        return None

    def _done(self, value: Decimal) -> Spelled | None:
        return Spelled(value, self.origin, self.at, self.ordinal) if self.at > self.origin else None
