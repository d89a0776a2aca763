"""The accepted forms of a sample's targets: each spelling of a name that counts as that name, worked out when first needed."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Literal

from evalwright.scorers.clock import time_of_day
from evalwright.scorers.numbers.words import STARTS, spelled_numbers
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.text.transliteration import spelled_alike
from evalwright.scorers.text.wordlists import word_set

Parts = Literal["full", "surname", "given", "any"]
"""Which part of a person's name is enough."""

PARTS: tuple[Parts, ...] = ("full", "surname", "given", "any")

_PARTICLES_OF_NAMES = word_set(
    "van von der den de da di del della la le du dos das ten ter bin ibn al el st saint mc mac af av zu"
)
_ARTICLES = frozenset(("the", "a", "an"))
FUNCTION_WORDS = word_set(
    "who what which it he she they we you i this that these those one other others same end only and or of in on to is was are "
    "were by as at from for with but so if then all both each when where while after before during since until although though "
    "because however there here his her its their our my your no not yes answer correct called named artist author actor "
    "director writer poet king queen according later earlier first also"
)
HEADS = word_set(
    "mount lake river hurricane typhoon cyclone king queen emperor empress pope sir dame lady president chancellor dr doctor prof "
    "professor mr mrs ms senator cardinal archbishop bishop captain colonel prince princess duke baron sultan shah tsar pharaoh "
    "comet asteroid planet operation project the"
)
_HEADS_OF = word_set(
    "republic kingdom commonwealth state city island isle gulf bay university principality sultanate empire"
)
_TAILS = word_set("river desert ocean language")
_NOT_ALONE = FUNCTION_WORDS | word_set(
    "korea china congo man wales strange black white red yellow green blue dead great big little new old north south east west "
    "indian artic salt sign programming america states district superior"
)
_NAMESAKES = tuple(
    f" {name} "
    for name in (
        "john quincy adams",
        "john q adams",
        "george herbert walker bush",
        "george h w bush",
        "george washington carver",
        "martin luther king",
        "michael b jordan",
    )
)
"""People whose names hold the whole name of another."""
_WHOLE = re.compile(r"(?<=\d)\.0+$")
_TWO_DIGITS = re.compile(r"\d \d")
"""Numbers side by side must not become one: "2^3" is not "23"."""
_ROMAN = re.compile(r"(?:X{0,2})(?:IX|IV|V?I{0,3})$")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10}
_COUNTED = word_set("war symphony amendment crusade republic congress dynasty concerto law")
_HANGUL = re.compile("[가-힣]$")
_PARTICLES = (
    "은|는|이|가|을|를|의|에|에서|에게|로|으로|와|과|랑|이랑|도|만|부터|까지|"
    "(?:이|)(?:다|에요|예요|야|라고|라는|며|고|었다|였다|었습니다|였습니다|지만)|입니다|이다|이라고"
)
_MOST_COMPACT = 40
_GERMAN = {ord("ä"): "ae", ord("ö"): "oe", ord("ü"): "ue", ord("ø"): "oe", ord("å"): "aa"}


class Forms:
    """The accepted forms of a sample's targets."""

    def __init__(
        self, targets: tuple[str, ...], parts: Parts = "full", confusable: tuple[str, ...] = ()
    ) -> None:
        self.raw = targets
        self.parts = parts
        self.targets = tuple(Words(plain(target)) for target in targets)
        forms: dict[str, None] = {}
        for words in self.targets:
            if words.tokens:
                form = f" {' '.join(_without_article(words.tokens))} "
                forms[form] = None
                if " of the " in form:
                    forms[form.replace(" of the ", " of ")] = None  # "the Democratic Republic of Congo"
        self.forms = tuple(forms)
        others = [f" {' '.join(Words(plain(name)).tokens)} " for name in confusable]
        known = {token for form in forms for token in form.split()}
        others += [name for name in _NAMESAKES if name not in forms and not known.isdisjoint(name.split())]
        self.confusable = tuple(others)

    @cached_property
    def folded(self) -> tuple[str, ...]:
        """The forms without accents; ö also as oe."""
        out: dict[str, None] = {}
        for form in self.forms:
            out[fold(form)] = None
            if not form.isascii():
                out[fold(form.translate(_GERMAN))] = None
        return tuple(out)

    @cached_property
    def partial(self) -> tuple[str, ...]:
        """Parts of people's names that are enough where the task says so: surnames with their particles, first names."""
        out: dict[str, None] = {}
        for person in self.people if self.parts != "full" else ():
            first = len(person) - 1
            while first > 1 and person[first - 1] in _PARTICLES_OF_NAMES:
                first -= 1
            if self.parts in ("surname", "any"):
                out[f" {' '.join(person[first:])} "] = None
            if self.parts in ("given", "any"):
                out[f" {person[0]} "] = None
        return tuple(form for form in out if len(form) > 3)

    @cached_property
    def plurals(self) -> tuple[str, ...]:
        """The other grammatical number of a target that is one common noun."""
        out: dict[str, None] = {}
        for form in self.folded:
            word = form.strip()
            if not word.isalpha() or len(word) < 5 or not word.isascii():
                continue
            out[f" {word[:-1]} " if word.endswith("s") and word[-2] not in "sui" else f" {word}s "] = None
            for one, many in (("ion", "ia"), ("ium", "ia"), ("um", "a"), ("us", "i"), ("y", "ies")):
                if word.endswith(many) and len(word) > 6:
                    out[f" {word.removesuffix(many)}{one} "] = None
                if word.endswith(one) and len(word) > 6:
                    out[f" {word.removesuffix(one)}{many} "] = None
        return tuple(out)

    @cached_property
    def times(self) -> frozenset[int]:
        """Targets that are times of day, in minutes."""
        found = (time_of_day(words.text) for words in self.targets if len(words.text) < 16)
        return frozenset(minutes for minutes in found if minutes is not None)

    @cached_property
    def spellings(self) -> tuple[tuple[tuple[frozenset[str], ...], bool], ...]:
        """The forms that are all letters, each word with the keys of its other spellings; whether each is a part of a name."""
        found = [(tuple(form.split()), False) for form in self.forms]
        found += [(tuple(form.split()), True) for form in self.partial if form not in self.folded]
        return tuple(
            (tuple(map(spelled_alike, tokens)), part)
            for tokens, part in found
            if len(tokens) <= 6 and all(map(str.isalpha, tokens)) and max(map(len, tokens)) > 3
        )

    @cached_property
    def tokens(self) -> frozenset[str]:
        """All words of all targets, without accents."""
        return frozenset(token for form in self.folded for token in form.split())

    @cached_property
    def reduced(self) -> tuple[str, ...]:
        """The forms without title or generic head or tail, where what is left can stand alone."""
        out: dict[str, None] = {}
        for form in self.folded:
            tokens = form.split()
            rest = tokens
            if len(tokens) > 2 and tokens[0] in _HEADS_OF and tokens[1] == "of":
                rest = _without_article(tokens[2:])
            elif len(tokens) > 1 and tokens[0] in HEADS and tokens[1] not in ("of", "the"):
                rest = tokens[1:]
            elif len(tokens) > 1 and tokens[-1] in _TAILS:
                rest = tokens[:-1]
            if rest is not tokens and not (len(rest) == 1 and (rest[0] in _NOT_ALONE or len(rest[0]) < 3)):
                out[f" {' '.join(rest)} "] = None
        return tuple(out)

    @cached_property
    def without_initials(self) -> tuple[str, ...]:
        """The forms of people's names that have middle initials, without them."""
        out: dict[str, None] = {}
        for form in self.folded:
            tokens = form.split()
            kept = [
                t
                for i, t in enumerate(tokens)
                if len(t) > 1 or i == 0 or i == len(tokens) - 1 or not t.isalpha()
            ]
            if 1 < len(kept) < len(tokens) and len(kept[0]) > 1:
                out[f" {' '.join(kept)} "] = None
        return tuple(out)

    @cached_property
    def people(self) -> tuple[tuple[str, ...], ...]:
        """Forms of two to five words without digits, which may be people's names."""
        found = (tuple(form.split()) for form in self.folded)
        return tuple(t for t in found if 2 <= len(t) <= 5 and len(t[-1]) > 2 and all(w.isalpha() for w in t))

    @cached_property
    def compact(self) -> tuple[str, ...]:
        """The forms written together, letters only."""
        joined = (form.replace(" ", "") for form in self.folded if _TWO_DIGITS.search(form) is None)
        return tuple(
            dict.fromkeys(
                form
                for form in joined
                if 2 <= len(form) <= _MOST_COMPACT and form.isalnum() and not form.isdigit()
            )
        )

    @cached_property
    def acronyms(self) -> frozenset[str]:
        """Targets in capitals that are common words otherwise: "US", "WHO"."""
        words = (target.cased[0] for target in self.targets if len(target.cased) == 1)
        return frozenset(
            w.casefold()
            for w in words
            if w.isupper() and w.casefold() in FUNCTION_WORDS | {"us", "aids", "am"}
        )

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Targets without any letter or digit, such as "==", as they are."""
        return tuple(
            target.strip() for target in self.raw if target.strip() and not any(map(str.isalnum, target))
        )

    @cached_property
    def numbered(self) -> tuple[str, ...]:
        """The forms that hold a number, with number words as digits."""
        forms = [in_digits(form.split()) for form in self.folded]
        forms += [in_digits(roman_to_digits(words.cased)) for words in self.targets]
        out: dict[str, None] = {}
        for form in forms:
            if any(t[0].isdigit() for t in form):
                out[f" {' '.join(form)} "] = None
                if len(form) > 1 and form[-1].isdigit() and form[-2] in _COUNTED:
                    out[f" {form[-1]} {' '.join(form[:-1])} "] = None  # "the Second World War"
        return tuple(out)

    @cached_property
    def korean(self) -> re.Pattern[str] | None:
        """The forms that end in Hangul, each followed by a particle or copula."""
        forms = [re.escape(form.rstrip()) for form in self.forms if _HANGUL.search(form.rstrip())]
        return re.compile(f"(?:{'|'.join(forms)})(?:{_PARTICLES}){{1,2}} ") if forms else None


def roman_to_digits(cased: list[str]) -> list[str]:
    """Casefolded words without accents, a Roman numeral after another word as digits: "World War II", "Frederik X"."""
    return [
        str(_roman(word)) if place and _is_roman(word) else fold(word.casefold())
        for place, word in enumerate(cased)
    ]


def _is_roman(word: str) -> bool:
    return bool(word) and word.isascii() and word.isupper() and _ROMAN.match(word) is not None


def _roman(text: str) -> int:
    values = [_ROMAN_VALUES[char] for char in text]
    return sum(-one if one < two else one for one, two in zip(values, [*values[1:], 0], strict=True))


def in_digits(tokens: list[str]) -> list[str]:
    """Tokens with number words as digits: ["apollo", "eleven"] is ["apollo", "11"]; ordinals count as their number."""
    tokens = [
        t[:-2]
        if t[:1].isdigit() and t[-2:] in ("st", "nd", "rd", "th")
        else _WHOLE.sub("", t.replace(",", ""))
        for t in tokens
    ]
    if STARTS.isdisjoint(tokens):
        return tokens
    out: list[str] = []
    position = 0
    for number in spelled_numbers(tokens, lambda index: False):
        out += tokens[position : number.start]
        out.append(format(number.value.normalize(), "f"))
        position = number.end
    return out + tokens[position:]


def _without_article(tokens: list[str]) -> list[str]:
    if len(tokens) > 1 and tokens[0] in _ARTICLES and not (len(tokens) == 2 and tokens[1] in FUNCTION_WORDS):
        return tokens[1:]
    return tokens
