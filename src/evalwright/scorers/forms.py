"""The accepted forms of a sample's targets: each spelling of a name that counts as that name, worked out when first needed."""

from __future__ import annotations

import re
from functools import cached_property

from evalwright.scorers.numbers.words import STARTS, spelled_numbers
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.text.wordlists import word_set

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
_HANGUL = re.compile("[가-힣]$")
_PARTICLES = (
    "은|는|이|가|을|를|의|에|에서|에게|로|으로|와|과|랑|이랑|도|만|부터|까지|"
    "(?:이|)(?:다|에요|예요|야|라고|라는|며|고|었다|였다|었습니다|였습니다|지만)|입니다|이다|이라고"
)
_MOST_COMPACT = 40
_GERMAN = {ord("ä"): "ae", ord("ö"): "oe", ord("ü"): "ue", ord("ø"): "oe", ord("å"): "aa"}


class Forms:
    """The accepted forms of a sample's targets."""

    def __init__(self, targets: tuple[str, ...]) -> None:
        self.raw = targets
        self.targets = tuple(Words(plain(target)) for target in targets)
        forms: dict[str, None] = {}
        for words in self.targets:
            if words.tokens:
                forms[f" {' '.join(_without_article(words.tokens))} "] = None
        self.forms = tuple(forms)

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
        joined = (form.replace(" ", "") for form in self.folded)
        return tuple(
            dict.fromkeys(form for form in joined if 2 <= len(form) <= _MOST_COMPACT and form.isalpha())
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
        forms = (in_digits(form.split()) for form in self.folded)
        return tuple(
            dict.fromkeys(f" {' '.join(form)} " for form in forms if any(t[0].isdigit() for t in form))
        )

    @cached_property
    def korean(self) -> re.Pattern[str] | None:
        """The forms that end in Hangul, each followed by a particle or copula."""
        forms = [re.escape(form.rstrip()) for form in self.forms if _HANGUL.search(form.rstrip())]
        return re.compile(f"(?:{'|'.join(forms)})(?:{_PARTICLES}){{1,2}} ") if forms else None


def in_digits(tokens: list[str]) -> list[str]:
    """Tokens with number words as digits: ["apollo", "eleven"] is ["apollo", "11"]; ordinals count as their number."""
    tokens = [
        t[:-2] if t[0].isdigit() and t[-2:] in ("st", "nd", "rd", "th") else t.replace(",", "")
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
