"""Names in an answer: where a target or one of its accepted spellings stands, always at word boundaries.

Spellings are tried from the strictest to the loosest, and the first that is found decides: as written (case and punctuation
aside), without accents, without a title or generic head ("Mount Everest" is "Everest"), with or without middle initials,
with initials for first names, written together or apart ("brain rot" is "brainrot"), with numbers in words or digits, with a
Korean particle. A name that is only a part of another name ("Guinea" in "Papua New Guinea") is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple

from evalwright.scorers.numbers.words import STARTS, spelled_numbers
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.text.wordlists import word_set


class Match(NamedTuple):
    """A target in an answer: tokens from start to end, and by which rule."""

    start: int
    end: int
    rule: str


_ARTICLES = frozenset(("the", "a", "an"))
_FUNCTION_WORDS = word_set(
    "who what which it he she they we you i this that these those one other others same end only and or of in on to is was are "
    "were by as at from for with but so if then all both each when where while after before during since until although though "
    "because however there here his her its their our my your no not yes answer correct called named artist author actor "
    "director writer poet king queen according later earlier first also"
)
_HEADS = word_set(
    "mount lake river hurricane typhoon cyclone king queen emperor empress pope sir dame lady president chancellor dr doctor prof "
    "professor mr mrs ms senator cardinal archbishop bishop captain colonel prince princess duke baron sultan shah tsar pharaoh "
    "comet asteroid planet operation project the"
)
_HEADS_OF = word_set(
    "republic kingdom commonwealth state city island isle gulf bay university principality sultanate empire"
)
_TAILS = word_set("river desert ocean language")
_NOT_ALONE = _FUNCTION_WORDS | word_set(
    "korea china congo man wales strange black white red yellow green blue dead great big little new old north south east west "
    "indian artic salt sign programming america states district superior"
)
_MODIFIERS = word_set("new papua north south east west northern southern equatorial american")
_HONORIFICS = _HEADS | word_set(
    "minister actor actress director author writer saint lord mathematician physicist chemist laureate professor economist "
    "astronaut singer runner architect politician engineer star player champion swimmer sprinter"
)
_ROMAN = re.compile(r"(?:[VX]|[IVX]{2,6})$")
_HANGUL = re.compile("[가-힣]$")
_PARTICLES = (
    "은|는|이|가|을|를|의|에|에서|에게|로|으로|와|과|랑|이랑|도|만|부터|까지|"
    "(?:이|)(?:다|에요|예요|야|라고|라는|며|고|었다|였다|었습니다|였습니다|지만)|입니다|이다|이라고"
)
_MOST_COMPACT = 40
_FEWEST_COMPACT = 5


class Names:
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
            elif len(tokens) > 1 and tokens[0] in _HEADS and tokens[1] not in ("of", "the"):
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

    def contains(self, words: Words, start: int, end: int) -> bool:
        """Whether a target stands among the tokens from start to end."""
        part = f" {' '.join(words.tokens[start:end])} "
        if any(form in part for form in self.forms):
            return True
        part = fold(part)
        return any(form in part for form in self.folded) or any(form in part for form in self.reduced)

    def find(self, words: Words, strict: bool = False) -> list[Match]:
        """Every place where a target stands, by the first rule that finds any; strict: as written or without accents only."""
        for rule in _RULES[:2] if strict else _RULES:
            found = [match for match in rule(self, words) if not self._other_name(words, match)]
            if found:
                return sorted(found)
        return []

    def _other_name(self, words: Words, match: Match) -> bool:
        """Whether the place belongs to a longer name of something else."""
        tokens, cased, (start, end, _) = words.tokens, words.cased, match
        after = cased[end] if end < len(cased) else ""
        if after and _ROMAN.match(after) and after.casefold() not in self.tokens and words.gap(end) == " ":
            return True
        if end - start > 1 and start:
            return False
        before = cased[start - 1] if start else ""
        if after and words.gap(end) == "-" and after[:1].isupper() and cased[end - 1][:1].isupper():
            return fold(tokens[end]) not in self.tokens
        if not before or words.gap(start) not in (" ", "-", ". "):
            return False
        earlier = fold(tokens[start - 1])
        if earlier in self.tokens:
            return False
        if earlier in _MODIFIERS and words.gap(start) == " ":
            return before[:1].isupper() or len(tokens) <= 2
        return (
            before[:1].isupper() and cased[start][:1].isupper() and self._other_person(words, start, earlier)
        )

    def _other_person(self, words: Words, start: int, earlier: str) -> bool:
        """Whether a surname follows a first name that none of the full names has."""
        surname = fold(words.tokens[start])
        full = [tokens for tokens in self.people if tokens[-1] == surname and len(tokens) > 1]
        if (
            not full
            or earlier in _FUNCTION_WORDS
            or earlier in _HONORIFICS
            or words.cased[start - 1].endswith("'s")
        ):
            return False
        if words.gap(start) == ". " and len(earlier) > 1:
            return False  # a sentence ended there
        return not (
            len(earlier) == 1 and any(token.startswith(earlier) for tokens in full for token in tokens[:-1])
        )


_GERMAN = {ord("ä"): "ae", ord("ö"): "oe", ord("ü"): "ue", ord("ø"): "oe", ord("å"): "aa"}


@lru_cache(maxsize=2048)
def prepare(targets: tuple[str, ...]) -> Names:
    """The accepted forms of some targets."""
    return Names(targets)


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
    if len(tokens) > 1 and tokens[0] in _ARTICLES and not (len(tokens) == 2 and tokens[1] in _FUNCTION_WORDS):
        return tokens[1:]
    return tokens


def _places(words: Words, hay: str, forms: tuple[str, ...], rule: str) -> Iterator[Match]:
    for form in forms:
        position = hay.find(form)
        while position >= 0:
            start = words.index(position)
            yield Match(start, start + form.count(" ") - 1, rule)
            position = hay.find(form, position + 1)


def _as_written(names: Names, words: Words) -> Iterator[Match]:
    return _places(words, words.joined, names.forms, "as written")


def _unaccented(names: Names, words: Words) -> Iterator[Match]:
    if words.joined.isascii() and all(form.isascii() for form in names.forms):
        return iter(())
    return _places(words, words.folded, names.folded, "accents aside")


def _without_head(names: Names, words: Words) -> Iterator[Match]:
    for match in _places(words, words.folded, names.reduced, "without its title or generic part"):
        first = words.cased[match.start]
        whole = match.start == 0 and match.end == len(words.tokens)
        if whole or not first.islower():
            yield match


def _middle_initials(names: Names, words: Words) -> Iterator[Match]:
    if names.without_initials:
        yield from _places(words, words.folded, names.without_initials, "middle initials aside")
    tokens = words.folded.split()
    kept = _without_middle_initials(words, tokens)
    if len(kept) == len(tokens):
        return
    hay = f" {' '.join(tokens[i] for i in kept)} "
    for form in names.folded:
        if len(form.split()) < 2 or any(len(token) == 1 for token in form.split()):
            continue
        position = hay.find(form)
        if position >= 0:
            first = hay.count(" ", 0, position) if position else 0
            last = first + form.count(" ") - 2
            yield Match(kept[first], kept[last] + 1, "middle initials aside")


def _first_initials(names: Names, words: Words) -> Iterator[Match]:
    """ "G. Hinton" for "Geoffrey Hinton", and "John Ronald Reuel Tolkien" for "J. R. R. Tolkien"."""
    tokens = words.folded.split()
    everything = list(range(len(tokens)))
    outer = _without_middle_initials(words, tokens)
    for person in names.people:
        if person[-1] in tokens:
            yield from _person(person, tokens, everything)
            if len(outer) < len(tokens):
                yield from _person(person, tokens, outer)


def _without_middle_initials(words: Words, tokens: list[str]) -> list[int]:
    """The places of all tokens but single capital letters inside the text."""
    last = len(tokens) - 1
    return [
        i
        for i, token in enumerate(tokens)
        if len(token) > 1 or i in (0, last) or not words.cased[i].isupper()
    ]


def _person(person: tuple[str, ...], tokens: list[str], places: list[int]) -> Iterator[Match]:
    """Where the tokens at `places` are a person's name with initials for some of its first names."""
    size = len(person)
    initials = sum(len(token) == 1 for token in person[:-1])
    for end in range(size, len(places) + 1):
        if tokens[places[end - 1]] != person[-1]:
            continue
        pairs = [
            (tokens[place], part) for place, part in zip(places[end - size : end - 1], person, strict=False)
        ]
        shorter = all(said == part or (len(said) == 1 and part.startswith(said)) for said, part in pairs)
        longer = initials >= 2 and all(
            said == part or (len(part) == 1 and said.startswith(part) and said not in _FUNCTION_WORDS)
            for said, part in pairs
        )
        if shorter or longer:
            yield Match(places[end - size], places[end - 1] + 1, "initials for first names")


def _together(names: Names, words: Words) -> Iterator[Match]:
    hay = words.folded.replace(" ", "")
    starts: dict[int, int] = {}
    for form in names.compact:
        position = hay.find(form)
        if position < 0:
            continue
        if not starts:
            length = 0
            for index, token in enumerate(words.folded.split()):
                starts[length] = index
                length += len(token)
            starts[length] = len(words.tokens)
        while position >= 0:
            first, last = starts.get(position), starts.get(position + len(form))
            if (
                first is not None
                and last is not None
                and (len(form) >= _FEWEST_COMPACT or _acronym(words, first, last))
            ):
                yield Match(first, last, "written together or apart")
            position = hay.find(form, position + 1)


def _acronym(words: Words, first: int, last: int) -> bool:
    """Whether tokens are letters of an acronym, "U.S." or "US": only capitals, so that the word "us" is none."""
    return all(word.isupper() for word in words.cased[first:last])


def _numbers(names: Names, words: Words) -> Iterator[Match]:
    if not names.numbered:
        return
    hay = f" {' '.join(in_digits(words.folded.split()))} "
    for form in names.numbered:
        if form in hay:
            # Token places shift where several words became one number, so the place is found by the first plain word.
            tokens = words.folded.split()
            anchor = next(
                (token for token in form.split() if not token[0].isdigit() and token in tokens), None
            )
            start = tokens.index(anchor) if anchor is not None else 0
            yield Match(start, min(start + len(form.split()), len(tokens)), "numbers in words or digits")


def _with_particle(names: Names, words: Words) -> Iterator[Match]:
    if names.korean is None:
        return
    for found in names.korean.finditer(words.joined):
        start = words.index(found.start())
        yield Match(start, start + found.group().count(" ") - 1, "with a Korean particle")


_RULES = (
    _as_written,
    _unaccented,
    _without_head,
    _middle_initials,
    _first_initials,
    _together,
    _numbers,
    _with_particle,
)
