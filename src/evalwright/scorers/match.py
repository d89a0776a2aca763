"""Names: does a reply give a target, or surely something else?

A target is found at word boundaries in any script, after one spelling of signs, case, accents, articles and punctuation. Then only
what a reader would not argue about is decided: a target that stands alone or is the only thing a sentence offers is correct; a
short, committed answer that shares nothing with any target is incorrect; everything else is undecided.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.text.wordlists import word_set

ARTICLES = word_set(
    "the a an der die das den dem ein eine le la les l un une el los las lo il gli i o os as um uma het de een ang al"
)
HEADS = word_set(
    "mount mt lake river ocean sea desert island islands mountains strait gulf falls planet sir dame lady lord dr doctor prof",
    "professor mr mrs ms president king queen pope saint pres emperor prince princess chancellor senator general captain",
    "colonel madame ir",
)
_PLACES = word_set("mount lake river planet hurricane comet")
_TAILS = word_set("ocean sea river desert lake island islands mountains")
FUNCTION = word_set(
    "it is was are were be been that this these those he she they his her its their i we you there here who which what in on",
    "at by of to for from with as and so then according most sources generally widely sind ist sono son eram sao zijn byli jest there total altogether exactly only count number insgesamt zusammen total tutto would think believe guess suppose say d ll s m re ve my your our has have had",
    "does did do know sure well yes ok okay certainly indeed course fact called answer capital name city country town person",
    "correct right question looking one known also just simply probably likely maybe perhaps es ist war das dies er sie wurde",
    "von im am zu auf c est etait ce il elle par dans du des es fue era son por en se llama e foi era ele ela pelo pela no na",
    "di da del della fu era nel dit is het werd door van это был была by to jest byl jest adalah ialah itu yang oleh la do ni",
    "ya",
)
_PREFACE = re.compile(
    r"^(?:(?:if|unless) i(?:'m| am|’m) (?:not )?(?:mistaken|wrong|correct|right)|if i (?:recall|remember)(?: correctly| right)?|to (?:my|the best of my) knowledge),?\s+",
    re.IGNORECASE,
)
_PARTICLE = re.compile(
    r"(?:이라고|라고|입니다|이에요|예요|이었습니다|였습니다|이다|이며|이고|이지만|에서|에게|으로|까지|부터|이|가|은|는|을|를|의|에|로|와|과|도|만|랑|야|다)$"
)
_NOT_WORD = re.compile(r"(?<=\w)n['’]t\b", re.IGNORECASE)
_MOST_MENTIONS = 30
"""A reply that names the target more often is not read further."""
Parts = str


class Reading(NamedTuple):
    """A stretch of text as it is matched: its words as written, folded, the folded words between spaces, and what stands around each."""

    text: str
    cased: list[str]
    tokens: list[str]
    joined: str
    gaps: list[str]


def read(text: str) -> Reading:
    """A plain text as it is matched; apostrophes divide words, "isn't" is "is not"."""
    text = _NOT_WORD.sub(" not", _PREFACE.sub("", text)).replace("'", " ").replace("’", " ")
    words = Words(text)
    tokens = [
        _numeral(token, word, place)
        for place, (token, word) in enumerate(zip(words.folded_tokens, words.cased, strict=True))
    ]
    tokens = [_PARTICLE.sub("", token) or token if "가" <= token[-1:] <= "힣" else token for token in tokens]
    edges = [0, *(edge for span in words.spans for edge in span), len(text)]
    gaps = [text[edges[place] : edges[place + 1]] for place in range(0, len(edges), 2)]
    return Reading(text, words.cased, tokens, f" {' '.join(tokens)} ", gaps)


def repaired(reading: Reading, targets: Sequence[Target]) -> Reading:
    """The reading with words that misspell a word of a target as that word: a letter doubled, left out inside, or two swapped."""
    wanted = {token for target in targets for token in target.tokens if len(token) >= 6}
    tokens = [next((word for word in wanted if _slip(token, word)), token) for token in reading.tokens]
    return (
        reading._replace(tokens=tokens, joined=f" {' '.join(tokens)} ")
        if tokens != reading.tokens
        else reading
    )


def _slip(token: str, word: str) -> bool:
    if abs(len(token) - len(word)) > 1 or len(token) < 6 or token == word or token[0] != word[0]:
        return False
    place = next(
        (i for i, (a, b) in enumerate(zip(token, word, strict=False)) if a != b), min(len(token), len(word))
    )
    if len(token) == len(word):
        return (
            token[place + 2 :] == word[place + 2 :]
            and token[place : place + 2] == word[place : place + 2][::-1]
        )
    longer, shorter = (token, word) if len(token) > len(word) else (word, token)
    doubled = longer[place] == longer[place - 1]
    return longer[:place] + longer[place + 1 :] == shorter and (
        doubled or (1 < place < len(longer) - 1 and (longer is word or len(word) >= 8))
    )


_NUMERALS = {
    word: str(value)
    for words in (
        "one two three four five six seven eight nine ten eleven twelve",
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
        "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th 11th 12th 13th 14th 15th 16th 17th 18th 19th 20th 21st",
        "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx xxi",
    )
    for value, word in enumerate(words.split(), 1)
}


def _numeral(token: str, word: str, place: int) -> str:
    """A small number in words, as an ordinal or in Roman numerals as digits; Roman ones only in capitals and not first."""
    if token not in _NUMERALS or (set(token) <= set("ivx") and (not word.isupper() or not place)):
        return token
    return _NUMERALS[token]


@dataclass(frozen=True)
class Target:
    """One accepted form. tokens: folded; alone: forms that are enough as a whole answer; given: first names of a person."""

    text: str
    tokens: tuple[str, ...]
    forms: tuple[str, ...]
    given: tuple[str, ...]
    surname: str
    script: str


@lru_cache(maxsize=2048)
def targets_of(targets: tuple[str, ...], parts: Parts = "full") -> tuple[Target, ...]:
    """The targets prepared for matching."""
    return tuple(_target(target, parts) for target in targets)


def _target(text: str, parts: Parts) -> Target:
    reading = read(plain(text))
    tokens = tuple(reading.tokens)
    core = tokens[1:] if len(tokens) > 1 and tokens[0] in ARTICLES else tokens
    forms = [" ".join(core), "".join(core)]
    german = fold(text.casefold().translate(_GERMAN)).split()
    if any(char in text for char in "äöüÄÖÜøØåÅ"):
        forms.append(" ".join(german))
    if len(core) == 2 and (core[0] in _PLACES or core[1] in _TAILS):
        forms.append(core[1] if core[0] in _PLACES else core[0])
    words = [word for word in reading.cased if word]
    is_name = len(core) > 1 and all(word[:1].isupper() or word.casefold() in NAME_PARTICLES for word in words)
    given: tuple[str, ...] = ()
    surname = ""
    if is_name and not any(map(str.isdigit, text)) and not {"of", "the", "and"} & set(core):
        first = next(
            (place for place, token in enumerate(core) if place and token in NAME_PARTICLES), len(core) - 1
        )
        given, surname = core[:first], " ".join(core[first:])
        forms.append(f"{surname} {' '.join(given)}")
        forms += [surname] if parts in ("surname", "any") else []
        forms += [given[0]] if parts in ("given", "any") else []
    return Target(
        text, tokens, tuple(dict.fromkeys(form for form in forms if form)), given, surname, script_of(text)
    )


_GERMAN = {ord(char): other for char, other in zip("äöüøå", ("ae", "oe", "ue", "oe", "aa"), strict=True)}
NAME_PARTICLES = word_set(
    "l d van von der den de da di del della la le du dos das ten ter bin ibn al el af av zu"
)


def script_of(text: str) -> str:
    """The script of most letters, as the first word of their Unicode names; "" without letters. Kana beside Han counts as Han."""
    counts: dict[str, int] = {}
    for char in text[:400]:
        if char.isalpha():
            name = "LATIN" if char.isascii() else unicodedata.name(char, "").partition(" ")[0]
            name = "KANA" if name in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else name
            counts[name] = counts.get(name, 0) + 1
    if "CJK" in counts and len(counts) <= 2:
        return "CJK"
    return max(counts, key=lambda name: counts[name]) if counts else ""


class Mention(NamedTuple):
    """Where a target stands in a reading: token places; sure: it is the target and not a part of another name."""

    start: int
    end: int
    sure: bool


def mentions(reading: Reading, targets: Sequence[Target], confusable: Sequence[str] = ()) -> list[Mention]:
    """Where targets stand, in order; of several at one place the longest."""
    found: dict[int, Mention] = {}
    taken = [span for name in confusable for span in _spans(reading, " ".join(read(plain(name)).tokens))]
    for target in targets:
        for form in target.forms:
            for start, end in _spans(reading, form):
                if any(first <= start and end <= last for first, last in taken):
                    continue
                start, sure = _with_given_names(reading, start, end, target)
                best = found.get(end)
                if best is None or (sure, best.start) > (best.sure, start):
                    found[end] = Mention(start, end, sure)
        if target.surname:
            for start, end in _spans(reading, target.surname):
                first, sure = _with_given_names(reading, start, end, target)
                if end not in found and first < start:
                    found[end] = Mention(first, end, sure)
    kept = [
        one
        for one in found.values()
        if not any(o.start <= one.start and one.end < o.end for o in found.values())
    ]
    return sorted(kept)


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
            if not token or not form.startswith(token) or token == form:
                continue
            whole, end = token, start + 1
            while end < len(tokens) and len(whole) < len(form):
                whole, end = whole + tokens[end], end + 1
            if whole == form:
                out.append((start, end))
    return out


def _with_given_names(reading: Reading, start: int, end: int, target: Target) -> tuple[int, bool]:
    """Where a name begins with the given names before it, and whether they may be the target's.

    "Theo van Gogh" is not Vincent van Gogh; "V. van Gogh" and "Sir Alexander Fleming" are whom they seem.
    """
    whole = " ".join(reading.tokens[start:end])
    full = whole == " ".join(target.tokens) or (
        len(target.tokens) > 1 and " " in whole and whole != target.surname
    )
    first = start
    while (
        first > 0
        and not (full and reading.tokens[first - 1] in NAME_PARTICLES)
        and _is_name_word(reading, first - 1)
        and _touch(reading, first - 1)
    ):
        first -= 1
    own = [
        token for token in reading.tokens[first:start] if token not in HEADS and token not in NAME_PARTICLES
    ]
    after = end < len(reading.tokens) and _is_name_word(reading, end) and _touch(reading, end - 1)
    if not own:
        return start, not after
    if full or not target.given or whole not in (target.surname, *target.forms):
        return start, not after and first == start
    middles, more = target.given[1:], own[1:]
    fits = _initial(own[0], target.given[0]) and all(
        any(_initial(one, middle) for one in more) for middle in middles if more
    )
    return first, fits and not after and (not middles or len(more) <= len(middles))


def _initial(one: str, other: str) -> bool:
    """Whether two given names may be the same: equal, or one is the other's first letters."""
    return (
        other.startswith(one)
        or one.startswith(other)
        or (len(one) > 1 and other.startswith(one[0]) and len(one) <= 2)
    )


def _alike(one: str, other: str) -> bool:
    """Whether two given names may be spellings of one: the same first letter, or letters that transliterations exchange."""
    return one[:1] == other[:1] or any(
        {one[:1], other[:1]} <= set(group) for group in ("ijy", "ckqx", "vw", "fp", "sz", "gh", "eyi")
    )


def _is_name_word(reading: Reading, place: int) -> bool:
    word, token = reading.cased[place], reading.tokens[place]
    if place == 0 and len(token) > 1 and (token in FUNCTION or token in ARTICLES):
        return False
    return word[:1].isupper() or (
        token in NAME_PARTICLES and place > 0 and reading.cased[place - 1][:1].isupper()
    )


def _touch(reading: Reading, place: int) -> bool:
    """Whether only a space, a full stop or a hyphen stands between a token and the next."""
    return re.fullmatch(r"\.?[ -]?", reading.gaps[place + 1]) is not None


# -- names that may be something else -----------------------------------------------------------------------------------


def is_anothers(reading: Reading, one: Mention, targets: Sequence[Target]) -> bool:
    """Whether a mention is another person's name: a surname with given names that cannot be the target's."""
    own = [token for token in reading.tokens[one.start : one.end] if token not in HEADS]
    fits = [target for target in targets if target.given and " ".join(own).endswith(target.surname)]
    return bool(fits) and not any(_alike(own[0], given) for target in fits for given in target.given)


def is_near(content: Sequence[str], targets: Sequence[Target]) -> bool:
    """Whether a word of a name's content may be a target's: misspelt, inflected, transliterated, a part of it, an abbreviation."""
    if any(map(str.isdigit, "".join(target.text for target in targets))):
        return True
    words = {token for target in targets for token in target.tokens} - ARTICLES - FUNCTION
    if any(_resembles(token, word, 0.7) for token in content for word in words):
        return True
    initials = {"".join(token[0] for token in target.tokens) for target in targets if len(target.tokens) > 1}
    short = any(target.text.isupper() and len(target.text) <= 5 for target in targets)
    return "".join(content) in initials or (short and len(content) > 1)


def _resembles(one: str, other: str, ratio: float = 0.6) -> bool:
    """Whether one word may be a spelling, an ending or a short form of another."""
    if one == other or (min(len(one), len(other)) >= 3 and (one.startswith(other) or other.startswith(one))):
        return True
    if not 4 <= len(one) <= 40 or (len(other) < 4 and other.isascii()):
        return False
    return one[:4] == other[:4] or SequenceMatcher(None, one, other).ratio() >= ratio
