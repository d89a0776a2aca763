"""Names in an answer: where a target or one of its accepted spellings stands, always at word boundaries.

Spellings are tried from the strictest to the loosest, and the first that is found decides: as written (case and punctuation
aside), without accents, without a title or generic head ("Mount Everest" is "Everest"), with or without middle initials,
with initials for first names, with middle names, surname first, by a part that the task allows, written together or apart
("brain rot" is "brainrot"), with numbers in words, digits or Roman numerals, with a Korean particle, in another spelling of the same
name or word, in the singular or plural. A name that is only a part of another name ("Guinea" in "Papua New Guinea") is not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.clock import find_times
from evalwright.scorers.forms import FUNCTION_WORDS, HEADS, Forms, Parts, in_digits, roman_to_digits
from evalwright.scorers.polarity import SENTENCE_END
from evalwright.scorers.text.countries import COUNTRIES
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.text.transliteration import spelled_alike
from evalwright.scorers.text.wordlists import word_set

_MODIFIERS = word_set("new papua north south east west northern southern equatorial american")
_HONORIFICS = HEADS | word_set(
    "minister actor actress director author writer saint lord mathematician physicist chemist laureate professor economist "
    "madame madam monsieur mme mlle miss maestro comrade general admiral marshal saint sister brother father "
    "astronaut singer runner architect politician engineer star player champion swimmer sprinter"
)
_REGIONS = word_set("state city county province region prefecture district")
_ROMAN = re.compile(r"(?:[VX]|[IVX]{2,6})$")
_FEWEST_COMPACT = 5


class Match(NamedTuple):
    """A target in an answer: tokens from start to end, and by which rule."""

    start: int
    end: int
    rule: str


class Names(Forms):
    """The targets of a sample, and where they stand in an answer."""

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
        if self._goes_on(words, start, end, after):
            return True
        if after and _ROMAN.match(after) and after.casefold() not in self.tokens and words.gap(end) == " ":
            return True
        if end - start > 1 and start:
            return False
        if end - start == 1 and tokens[start] in self.acronyms and not cased[start].isupper():
            return len(tokens) > 2
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

    def _goes_on(self, words: Words, start: int, end: int, after: str) -> bool:
        """Whether the words after the place make it a name of something else."""
        for other in self.confusable:
            around = max(0, start - other.count(" ")), end + other.count(" ")
            if other in f" {' '.join(words.tokens[slice(*around)])} ":
                return True
        gap = words.gap(end)
        if gap[:1] == "^":
            return True  # "2x²" is not "2x"
        if not after or gap not in (" ", ", "):
            return False
        following = fold(words.tokens[end])
        if following in self.tokens:
            return False
        if following in ("junior", "senior") and end - start > 1:
            return True
        # "George Washington Carver": one more capitalised word, and nothing after it.
        last = end + 1 == len(words.tokens) or SENTENCE_END.search(words.gap(end + 1)) is not None
        return (
            last
            and gap == " "
            and end - start > 1
            and after.isalpha()
            and after[:1].isupper()
            and not after.isupper()
            and words.cased[end - 1][:1].isupper()
            and following not in FUNCTION_WORDS | COUNTRIES | _REGIONS
            and any(tuple(map(fold, words.tokens[start:end])) == person for person in self.people)
        )

    def _other_person(self, words: Words, start: int, earlier: str) -> bool:
        """Whether a surname follows a first name that none of the full names has."""
        surname = fold(words.tokens[start])
        full = [tokens for tokens in self.people if tokens[-1] == surname and len(tokens) > 1]
        if (
            not full
            or earlier in FUNCTION_WORDS
            or earlier in _HONORIFICS
            or words.cased[start - 1].endswith("'s")
        ):
            return False
        if words.gap(start) == ". " and len(earlier) > 1:
            return False  # a sentence ended there
        return not (
            len(earlier) == 1 and any(token.startswith(earlier) for tokens in full for token in tokens[:-1])
        )


@lru_cache(maxsize=2048)
def prepare(targets: tuple[str, ...], parts: Parts = "full", confusable: tuple[str, ...] = ()) -> Names:
    """The accepted forms of some targets. confusable: names of others that hold a target."""
    return Names(targets, parts, confusable)


def _places(hay: str, forms: tuple[str, ...], rule: str) -> Iterator[Match]:
    for form in forms:
        position = hay.find(form)
        while position >= 0:
            # Counted in the text that was searched: without accents, "æ" is two letters.
            start = hay.count(" ", 0, position)
            yield Match(start, start + form.count(" ") - 1, rule)
            position = hay.find(form, position + 1)


def _as_written(names: Names, words: Words) -> Iterator[Match]:
    return _places(words.joined, names.forms, "as written")


def _unaccented(names: Names, words: Words) -> Iterator[Match]:
    if words.joined.isascii() and all(form.isascii() for form in names.forms):
        return iter(())
    return _places(words.folded, names.folded, "accents aside")


def _without_head(names: Names, words: Words) -> Iterator[Match]:
    for match in _places(words.folded, names.reduced, "without its title or generic part"):
        first = words.cased[match.start]
        whole = match.start == 0 and match.end == len(words.tokens)
        if whole or not first.islower():
            yield match


def _middle_initials(names: Names, words: Words) -> Iterator[Match]:
    if names.without_initials:
        yield from _places(words.folded, names.without_initials, "middle initials aside")
    tokens = words.folded_tokens
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
    tokens = words.folded_tokens
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
        # One initial is written out only inside a name: "O. Vent" may be Olga or Otto.
        longer = (initials >= 2 or (initials == 1 and len(person[0]) > 1)) and all(
            said == part or (len(part) == 1 and said.startswith(part) and said not in FUNCTION_WORDS)
            for said, part in pairs
        )
        if shorter or longer:
            yield Match(places[end - size], places[end - 1] + 1, "initials for first names")


def _middle_names(names: Names, words: Words) -> Iterator[Match]:
    """ "Donald John Trump" for "Donald Trump": capitalised names between the first and the last."""
    tokens = words.folded_tokens
    for person in names.people:
        if len(person) != 2 or person[1] not in tokens:
            continue
        for start, token in enumerate(tokens):
            for end in range(start + 2, min(start + 5, len(tokens))) if token == person[0] else ():
                between = range(start + 1, end)
                if tokens[end] == person[1] and all(_middle_name(words, index) for index in between):
                    yield Match(start, end + 1, "middle names aside")


def _middle_name(words: Words, index: int) -> bool:
    shown = words.cased[index]
    gaps = {words.gap(index), words.gap(index + 1)}
    return (
        shown[:1].isupper()
        and shown.isalpha()
        and words.tokens[index] not in FUNCTION_WORDS
        and gaps <= {" ", "-", ' "', '" ', " (", ") "}
    )


def _surname_first(names: Names, words: Words) -> Iterator[Match]:
    """ "Trump, Donald", "Tolkien, J. R. R."."""
    if "," not in words.text:
        return
    tokens = words.folded_tokens
    for person in names.people:
        size = len(person)
        for start in range(len(tokens) - size + 1):
            if (
                tokens[start] == person[-1]
                and "," in words.gap(start + 1)
                and all(
                    said == part or (len(said) == 1 and part.startswith(said))
                    for said, part in zip(tokens[start + 1 : start + size], person[:-1], strict=True)
                )
            ):
                yield Match(start, start + size, "with the surname first")


def _name_part(names: Names, words: Words) -> Iterator[Match]:
    for match in _places(words.folded, names.partial, "as the part of the name that is enough"):
        if _stands_alone(names, words, match):
            yield match


def _stands_alone(names: Names, words: Words, match: Match) -> bool:
    """Whether no other first name stands before a surname, and no other surname after a first name."""
    if not (words.cased[match.start][:1].isupper() or len(words.tokens) <= 3):
        return False
    first_name = fold(words.tokens[match.start]) in {person[0] for person in names.people}
    if first_name and match.end < len(words.tokens) and words.gap(match.end) == " ":
        after = words.cased[match.end]
        if after[:1].isupper() and fold(words.tokens[match.end]) not in names.tokens | FUNCTION_WORDS:
            return False
    if (
        not first_name
        and match.start
        and words.gap(match.start) in (" ", ". ")
        and words.cased[match.start - 1][:1].isupper()
    ):
        earlier = fold(words.tokens[match.start - 1])
        return earlier in names.tokens | FUNCTION_WORDS | _HONORIFICS or any(
            len(earlier) == 1 and person[0].startswith(earlier) for person in names.people
        )
    return True


def _singular_or_plural(names: Names, words: Words) -> Iterator[Match]:
    for match in _places(words.folded, names.plurals, "in the singular or plural"):
        # A capital inside a sentence makes it a name: "Williams" is not "William".
        if match.start == 0 or words.cased[match.start][:1].islower():
            yield match


def _other_spelling(names: Names, words: Words) -> Iterator[Match]:
    if not names.spellings:
        return
    places = [index for index, token in enumerate(words.tokens) if token not in ("al", "el") or index == 0]
    keys = [spelled_alike(words.tokens[index]) for index in places]
    for form, part in names.spellings:
        size = len(form)
        for start in range(len(keys) - size + 1):
            if all(
                not one.isdisjoint(two) for one, two in zip(form, keys[start : start + size], strict=True)
            ):
                match = Match(places[start], places[start + size - 1] + 1, "in another spelling")
                if not part or _stands_alone(names, words, match):
                    yield match


def _same_time(names: Names, words: Words) -> Iterator[Match]:
    for time in find_times(words.text) if names.times else ():
        inside = [i for i, (start, end) in enumerate(words.spans) if start < time.end and end > time.start]
        if time.minutes in names.times and inside:
            yield Match(inside[0], inside[-1] + 1, "as a time of day")


def _together(names: Names, words: Words) -> Iterator[Match]:
    hay = words.folded.replace(" ", "")
    starts: dict[int, int] = {}
    for form in names.compact:
        position = hay.find(form)
        if position < 0:
            continue
        if not starts:
            length = 0
            for index, token in enumerate(words.folded_tokens):
                starts[length] = index
                length += len(token)
            starts[length] = len(words.tokens)
        while position >= 0:
            first, last = starts.get(position), starts.get(position + len(form))
            if (
                first is not None
                and last is not None
                and (len(form) >= _FEWEST_COMPACT or not form.isalpha() or _acronym(words, first, last))
                and not any(
                    words.tokens[i - 1][-1].isdigit() and words.tokens[i][0].isdigit()
                    for i in range(first + 1, last)
                )
            ):
                yield Match(first, last, "written together or apart")
            position = hay.find(form, position + 1)


def _acronym(words: Words, first: int, last: int) -> bool:
    """Whether tokens are letters of an acronym, "U.S." or "US": only capitals, so that the word "us" is none."""
    return all(word.isupper() for word in words.cased[first:last])


def _numbers(names: Names, words: Words) -> Iterator[Match]:
    if not names.numbered:
        return
    hay = f" {' '.join(in_digits(words.folded_tokens))} "
    roman = f" {' '.join(in_digits(roman_to_digits(words.cased)))} "
    for form in names.numbered:
        if form in hay or form in roman or form in hay.replace(" the ", " "):
            # Token places shift where several words became one number, so the place is found by the first plain word.
            tokens = words.folded_tokens
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
    _middle_names,
    _surname_first,
    _name_part,
    _together,
    _numbers,
    _with_particle,
    _same_time,
    _other_spelling,
    _singular_or_plural,
)
