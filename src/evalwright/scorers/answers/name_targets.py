"""Where a target's name stands in a text: at word boundaries in any script, after one spelling of
case, accents, articles and punctuation.

What is the same name is decided here (a letter doubled or left out, a surname with fitting given
names, parts in another order); whether the text gives it as its answer is decided in `names.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.text.folded import (
    ARTICLES,
    FUNCTION,
    Reading,
    read,
    script_of,
    text_between,
)
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import fold, word_set

HEADS = word_set(
    "mount mt lake river ocean sea desert island islands mountains strait gulf falls"
    " planet sir dame lady lord dr doctor prof",
    "professor mr mrs ms president king queen pope saint pres emperor prince princess"
    " chancellor senator general captain",
    "colonel madame miss republic kingdom federative federal commonwealth ir mlima ziwa"
    " sungai song kota thanh pho vua buyuk",
)
PARTICLES = word_set(
    "l d van von der den de da di del della la le du dos das ten ter bin ibn al el af"
    " av zu"
)
"""Words inside a name."""
_PLACES = word_set("mount lake river planet hurricane comet mlima")
_GENERIC = word_set(
    "ocean sea river desert lake island islands mountain mountains city state empire"
)
_GERMAN = {
    ord(char): other
    for char, other in zip("äöüøå", ("ae", "oe", "ue", "oe", "aa"), strict=True)
}
_CYRILLIC = {
    ord(char): latin
    for char, latin in zip(
        "абвгґдеєёжзиійїклмнопрстуфхцчшщъыьэюя",
        "a b v g g d e e e zh z i i i i k l m n o p r s t u f kh ts ch sh sh . y . e"
        " yu ya".replace(".", " ").split(" "),
        strict=False,
    )
}
_SOUNDS = (
    ("sch", "sh"),
    ("tch", "ch"),
    ("ph", "f"),
    ("ck", "k"),
    ("kh", "k"),
    ("gh", "g"),
    ("qu", "k"),
    ("w", "v"),
    ("y", "i"),
    ("j", "i"),
    ("z", "s"),
    ("q", "k"),
    ("c", "k"),
    ("x", "ks"),
    ("f", "v"),
)
"""Letters that transliterations and slips exchange."""
_MOST_MENTIONS = 30
"""A reply that names the target more often is not read further."""
_MOST_GIVEN = 12
"""Words before a name that may be given names."""


@dataclass(frozen=True)
class Target:
    """One accepted form. tokens: folded; forms: what is enough as a whole answer; given, surname:
    of a person's name.
    """

    text: str
    tokens: tuple[str, ...]
    forms: tuple[str, ...]
    given: tuple[str, ...]
    surname: str
    script: str


@lru_cache(maxsize=2048)
def targets_of(targets: tuple[str, ...], parts: str = "full") -> tuple[Target, ...]:
    """The targets prepared for matching. parts: which part of a person's name is enough ("full",
    "surname", "given", "any").
    """
    made = [_target(target, parts) for target in targets]
    latin = [
        one.text.casefold().translate(_CYRILLIC).title()
        for one in made
        if one.script == "CYRILLIC"
    ]
    return (*made, *(_target(one, parts) for one in latin))


def _target(text: str, parts: str) -> Target:
    reading = read(plain(text))
    tokens = tuple(reading.tokens)
    core = tokens[1:] if len(tokens) > 1 and tokens[0] in ARTICLES else tokens
    forms = [
        " ".join(core),
        "".join(core),
        " ".join(token for token in core if token not in ("the", "de")),
    ]
    if any(char in text for char in "äöüÄÖÜøØåÅ"):
        forms.append(fold(text.casefold().translate(_GERMAN)))
    generic = len(core) == 2 and ((core[0] in _PLACES) + (core[1] in _GENERIC))
    if generic == 1 and "city" not in core:
        forms.append(core[1] if core[0] in _PLACES else core[0])
    cased = [word for word in reading.cased if word]
    named = len(core) > 1 and all(
        word[:1].isupper() or word.casefold() in PARTICLES for word in cased
    )
    given: tuple[str, ...] = ()
    surname = ""
    if (
        named
        and not generic
        and not any(map(str.isdigit, text))
        and not {"of", "the", "and"} & set(core)
    ):
        first = next(
            (at for at, token in enumerate(core) if at and token in PARTICLES),
            len(core) - 1,
        )
        given = core[:first]
        surname = " ".join(core[first:])
        forms.append(f"{surname} {' '.join(given)}")
        forms += [surname] if parts in ("surname", "any") else []
        forms += [given[0]] if parts in ("given", "any") else []
    kept = tuple(dict.fromkeys(form for form in forms if form))
    return Target(text, tokens, kept, given, surname, script_of(text))


# -- one name in several spellings -----------------------------------------------------


def aligned(
    reading: Reading, targets: Sequence[Target], inflected: bool = False
) -> Reading:
    """The reading with the words that are a target's in another spelling or case written as the
    target's.

    inflected: endings of up to three letters may follow a target's word.
    """
    wanted = {
        token
        for target in targets
        for token in target.tokens
        if len(token) >= 5
        or (len(token) > 3 and (inflected or target.text[:1].islower()))
    }
    plural = {
        token
        for target in targets
        for token in target.tokens
        if target.text[:1].islower() and target.script == "LATIN"
    }
    known = wanted | FUNCTION
    tokens = [
        (
            token
            if len(token) < 4 or token in known
            else next(
                (
                    word
                    for word in wanted
                    if same_word(token, word)
                    or (inflected and _ends(token, word))
                    or (word in plural and token in (f"{word}s", f"{word}es"))
                ),
                token,
            )
        )
        for token in reading.tokens
    ]
    if tokens == reading.tokens:
        return reading
    return reading._replace(tokens=tokens, joined=f" {' '.join(tokens)} ")


def _ends(token: str, word: str) -> bool:
    """Whether a word is another with an ending, in place of its last letter too ("Kiven", "Marii"),
    or with an Arabic prefix.
    """
    if token[:1] in "بولفك" and token[1:] == word:
        return True
    return token.startswith(word[:-1]) and len(token) <= len(word) + 3


@lru_cache(maxsize=4096)
def same_word(one: str, other: str) -> bool:
    """Whether a word is a slip, a transliteration or (in Cyrillic) a case of another: never where
    one vowel makes another word.
    """
    if (
        abs(len(one) - len(other)) > 3
        or one[:1].isdigit()
        or any(map(str.isdigit, one + other))
    ):
        return False
    if "а" <= other[0] <= "ї":
        common = next(
            (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
            min(len(one), len(other)),
        )
        return common >= max(4, len(other) - 2) and len(one) - common <= 3
    if (
        not (one.isascii() and other.isascii() and one[0] == other[0])
        and _sounds(one)[0] != _sounds(other)[0]
    ):
        return False
    return _sounds(one) == _sounds(other) or (
        min(len(one), len(other)) >= 5 and _slip(one, other)
    )


@lru_cache(maxsize=4096)
def _sounds(word: str) -> str:
    for letters, sound in _SOUNDS:
        word = word.replace(letters, sound)
    return re.sub(r"(.)\1+", r"\1", re.sub(r"(?<=.)h", "", word))


def _slip(one: str, other: str) -> bool:
    """Whether two letters are swapped, or one inside is doubled, left out or too many."""
    if abs(len(one) - len(other)) > 1 or one[0] != other[0]:
        return False
    at = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    if len(one) == len(other):
        return (
            one[at + 2 :] == other[at + 2 :]
            and one[at : at + 2] == other[at : at + 2][::-1]
        )
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    inside = 1 < at < len(longer) - 1 and len(longer) >= 7
    return longer[:at] + longer[at + 1 :] == shorter and (
        longer[at] == longer[at - 1] or inside
    )


# -- the text around words


def text_behind(reading: Reading, mention: Mention, reach: int = 8) -> str:
    """The text right behind a mention, with the ending of its last word; of `reach` words, which
    without spaces are characters.
    """
    text = text_between(reading, mention.end - 1, mention.end + reach)
    word = reading.cased[mention.end - 1]
    token = reading.tokens[mention.end - 1]
    if not "가" <= word[-1:] <= "힣":
        return text[len(word) :]
    pairs = zip(word.casefold(), token, strict=False)
    stem = next(
        (place for place, (char, other) in enumerate(pairs) if char != other),
        min(len(word), len(token)),
    )
    return text[stem:]


# -- Vietnamese tones


def toned(word: str) -> str:
    """A Vietnamese word with its marks in one order, so that "hoà" is "hòa"."""
    parts = unicodedata.normalize("NFD", word.casefold())
    return "".join(char for char in parts if not unicodedata.combining(char)) + "".join(
        sorted(char for char in parts if unicodedata.combining(char))
    )


def tones_of(targets: Sequence[Target]) -> dict[str, set[str]]:
    """The words of the targets as they are toned, by how they are matched."""
    tones: dict[str, set[str]] = {}
    for target in targets:
        reading = read(plain(target.text))
        for word, token in zip(reading.cased, reading.tokens, strict=True):
            tones.setdefault(token, set()).add(toned(word))
    return tones


# -- where a target stands -------------------------------------------------------------


class Mention(NamedTuple):
    """Where a target stands in a reading: token places; sure: it is the target and not a part of
    another name.
    """

    start: int
    end: int
    sure: bool


def mentions(
    reading: Reading,
    targets: Sequence[Target],
    confusable: Sequence[str] = (),
    asked: Collection[str] = (),
) -> list[Mention]:
    """Where targets stand, in order; of several at one place the longest. asked: beginnings of
    words that are no given names.
    """
    found: dict[int, Mention] = {}
    taken = [
        span
        for name in confusable
        for span in _spans(reading, " ".join(read(plain(name)).tokens))
    ]
    for target in targets:
        for form in dict.fromkeys((*target.forms, target.surname)):
            for start, end in _spans(reading, form):
                if any(first <= start and end <= last for first, last in taken):
                    continue
                first, sure = _with_given_names(reading, start, end, target, asked)
                best = found.get(end)
                if (
                    form == target.surname
                    and form not in target.forms
                    and (best or first == start)
                ):
                    continue
                if best is None or (sure, best.start) > (best.sure, first):
                    found[end] = Mention(first, end, sure)
    spans = list(found.values())
    return sorted(
        one
        for one in spans
        if not any(o.start <= one.start and one.end < o.end for o in spans)
    )


def _spans(reading: Reading, form: str) -> list[tuple[int, int]]:
    """Token places of a form, also where it is written together or apart."""
    out: list[tuple[int, int]] = []
    position = reading.joined.find(f" {form} ") if form else -1
    while position >= 0 and len(out) < _MOST_MENTIONS:
        start = reading.joined.count(" ", 0, position)
        out.append((start, start + form.count(" ") + 1))
        position = reading.joined.find(f" {form} ", position + 1)
    if len(form) >= 5 and " " not in form:
        tokens = reading.tokens
        for start, token in enumerate(tokens):
            if len(out) >= _MOST_MENTIONS:
                break
            if not token or not form.startswith(token) or token == form:
                continue
            whole = token
            end = start + 1
            while end < len(tokens) and len(whole) < len(form):
                whole = whole + tokens[end]
                end = end + 1
            if whole == form:
                out.append((start, end))
    return out


def _with_given_names(
    reading: Reading, start: int, end: int, target: Target, asked: Collection[str]
) -> tuple[int, bool]:
    """Where a name begins with the given names before it, and whether they may be the target's.

    "Theo van Gogh" is not Vincent van Gogh; "V. van Gogh" and "Sir Alexander Fleming" are whom they
    seem.
    """
    whole = " ".join(reading.tokens[start:end])
    full = " " in whole and len(target.tokens) > 1 and whole != target.surname
    full = full or whole == " ".join(target.tokens)
    first = start
    while (
        first > max(0, start - _MOST_GIVEN)
        and not (full and reading.tokens[first - 1] in PARTICLES)
        and _is_name_word(reading, first - 1)
        and _touch(reading, first - 1)
    ):
        first -= 1
    left_out = HEADS | PARTICLES
    own = [
        token
        for token in reading.tokens[first:start]
        if token not in left_out and token[:5] not in asked
    ]
    after = (
        end < len(reading.tokens)
        and reading.cased[end][:1].isupper()
        and _touch(reading, end - 1)
    )
    before = reading.cased[start - 1] if start else ""
    if (
        whole == target.surname
        and before.istitle()
        and len(before) > 2
        and before.casefold() in PARTICLES
    ):
        return start, False  # "Van Morrison" is not Toni Morrison
    if not own:
        return start, not after
    if full or not target.given or whole not in (target.surname, *target.forms):
        return start, not after and first == start
    middles = target.given[1:]
    more = own[1:]
    fits = same_given(own[0], target.given[0]) and all(
        any(same_given(one, two) for one in more) for two in middles if more
    )
    return first, fits and not after and (not middles or len(more) <= len(middles))


def same_given(one: str, other: str) -> bool:
    """Whether two given names may be one: equal, an initial, a spelling, or a short form ("Abe" for
    "Abraham").
    """
    short, long = sorted((one, other), key=len)
    return (
        long.startswith(short)
        or same_word(one, other)
        or (len(short) <= 4 and len(long) >= len(short) + 2 and long[:2] == short[:2])
    )


def _is_name_word(reading: Reading, place: int) -> bool:
    word = reading.cased[place]
    token = reading.tokens[place]
    if place == 0 and token in FUNCTION and "." not in reading.gaps[1]:
        return False
    return word[:1].isupper() or (
        token in PARTICLES and place > 0 and reading.cased[place - 1][:1].isupper()
    )


def _touch(reading: Reading, place: int) -> bool:
    """Whether only a space, a full stop or a hyphen stands between a token and the next."""
    return re.fullmatch(r"\.?[ -]?", reading.gaps[place + 1]) is not None
