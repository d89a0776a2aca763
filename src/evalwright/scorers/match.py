"""Where a target's name stands in a text: at word boundaries in any script, after one spelling of
case, accents, articles and punctuation.

What is the same name is decided here (a letter doubled or left out, a surname with fitting given
names, parts in another order); whether the text gives it as its answer is decided in `names.py`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from evalwright.scorers.text.cues import labels, words
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import Words, fold
from evalwright.scorers.text.wordlists import word_set

ARTICLES = word_set(
    "the a an der die das den dem ein eine le la les l un une el los las lo il gli i o"
    " os as um uma het de een ang al"
)
FUNCTION = words("small") | ARTICLES
"""Words without content of their own, in all languages."""
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
CASED = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN")
_PREFACE = re.compile(
    r"^(?:(?:if|unless) i(?:'m| am) (?:not )?(?:mistaken|wrong|correct|right)|if i"
    r" (?:recall|remember)(?: correctly| right)?|to (?:my|the best of my) knowledge|i"
    r" (?:think|believe|guess)(?: that)?|(?:yo )?(?:creo|pienso|diría) que|je"
    r" (?:crois|pense|dirais) que|(?:eu )?(?:acho|creio|penso) que"
    r"|(?:credo|penso) che|ich (?:glaube|denke|meine)(?:,? dass)?|(?:menurut saya|saya"
    r" (?:rasa|kira|pikir))(?: bahwa)?|tôi nghĩ(?: là| rằng)?|(?:я )?думаю,?"
    r" что|sanırım),?\s+",
    re.IGNORECASE,
)
_TAG = re.compile(
    r",\s*(?:(?:is|was|are|were|do|does|did|has|must)n['’]?t"
    r" (?:it|he|she|they)|right|no|oder|nicht wahr|n'est-ce pas|verdad|vero|non [eè]"
    r" vero|n[aã]o [eé]|да|правда)\s?\?"
    r"|(?<=걸)\?|(?<=걸요)\?|(?<=잖아)\?|(?<=잖아요)\?",
    re.IGNORECASE,
)
"""A question at the end that only asks for agreement."""
_SEEMING = re.compile(
    r"(?<=[가-힣])(?:인|일) ?(?:것|거) ?(?:같[가-힣]+|예요|이에요|입니다)"
)
"""The Korean for "it seems to be" behind a name."""
_ENDING = re.compile(rf"(?<=.)(?:{labels('ending')})$|(?<=..)(?:{labels('tail')})$")
_PARTED = re.compile(r"[,;:()–—、，،؛；：。]|\s-\s")
_NOT_WORD = re.compile(r"(?<=\w)n['’]t\b", re.IGNORECASE)
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


class Reading(NamedTuple):
    """A stretch of text as it is matched: its words as written, folded, the folded words between
    spaces, and what stands around each.
    """

    text: str
    cased: list[str]
    tokens: list[str]
    joined: str
    gaps: list[str]

    def clause(self, start: int, end: int) -> tuple[int, int]:
        """Where the clause starts and ends in which the words from start to end stand."""
        while start > 0 and not _PARTED.search(self.gaps[start]):
            start -= 1
        while end < len(self.tokens) and not _PARTED.search(self.gaps[end]):
            end += 1
        return start, end


def read(text: str) -> Reading:
    """A plain text as it is matched; apostrophes divide words, "isn't" is "is not".

    Not to be changed: it is kept.
    """
    return (_kept_reading if len(text) <= _MOST_KEPT else _kept_long_reading)(text)


def _simplified() -> dict[int, str]:
    """Traditional and Japanese characters to simplified ones."""
    table = tomllib.loads(
        (Path(__file__).parent / "text" / "han.toml").read_text(encoding="utf-8")
    )["characters"]
    return dict(zip(map(ord, table["from"].strip()), table["to"].strip(), strict=True))


_SIMPLIFIED = _simplified() | {ord("ब"): "व"}


def simplified(text: str) -> str:
    """A text, or a pattern for read texts, with simplified characters, as `read` writes it."""
    return text if text.isascii() else text.translate(_SIMPLIFIED)


def _reading(text: str) -> Reading:
    text = text if text.isascii() else _SEEMING.sub("입니다", simplified(text))
    text = (
        _NOT_WORD.sub(" not", _PREFACE.sub("", text))
        .replace("'", " ")
        .replace("’", " ")
    )
    found = Words(text)
    tokens = [
        _without_ending(token) if "가" <= token[-1:] <= "힣" else token
        for token in found.folded_tokens
    ]
    edges = [0, *(edge for span in found.spans for edge in span), len(text)]
    gaps = [text[edges[place] : edges[place + 1]] for place in range(0, len(edges), 2)]
    return Reading(text, found.cased, tokens, f" {' '.join(tokens)} ", gaps)


@lru_cache(maxsize=4096)
def _without_ending(token: str) -> str:
    """A Korean word without its particles, the copula and the title behind a name."""
    for _ in range(4):
        token = token if token in FUNCTION else _ENDING.sub("", token)
    return token


# a scorer reads the same sentence once for every option
_kept_reading = lru_cache(maxsize=1024)(_reading)
_kept_long_reading = lru_cache(maxsize=8)(_reading)  # and the same reply
_MOST_KEPT = 1000


def without_tag(text: str) -> str:
    """A text without "isn't it?" and its kind at the end."""
    return _TAG.sub("", text) if "?" in text else text


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


def script_of(text: str) -> str:
    """The script of most letters, as the first word of their Unicode names; "" without letters.

    Kana beside Han counts as Han.
    """
    counts: dict[str, int] = {}
    for char in text[:400]:
        if char.isalpha():
            name = (
                "LATIN"
                if char.isascii()
                else unicodedata.name(char, "").partition(" ")[0]
            )
            name = (
                "KANA"
                if name in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA")
                else name
            )
            counts[name] = counts.get(name, 0) + 1
    if "CJK" in counts and len(counts) <= 2:
        return "CJK"
    return max(counts, key=lambda name: counts[name]) if counts else ""


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


def text_between(reading: Reading, start: int, end: int) -> str:
    """The text from one word up to another, with what stands between."""
    end = min(end, len(reading.tokens))
    pieces = [f"{reading.cased[at]}{reading.gaps[at + 1]}" for at in range(start, end)]
    return "".join(pieces)


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


def likeness(content: Sequence[str], targets: Sequence[Target]) -> str:
    """What makes a name's content like a target, in words: a spelling, an ending, a part, an
    abbreviation; "" where nothing does.

    A name that shares a word with the target, beside words that are plainly others ("Atlantic
    Ocean", "Saint Lucia"), is not like it.
    """
    for target in targets:
        if _differs_in_numeral(content, target):
            return f"the number in '{target.text}' may be written otherwise"
        if not _has_other_words(content, target) and (
            reason := _likeness(content, target)
        ):
            return reason
    return ""


def _likeness(content: Sequence[str], target: Target) -> str:
    shown = " ".join(content)[:MAX_SHOWN_CHARS]
    wanted = [token for token in target.tokens if token not in FUNCTION]
    joined = "".join(target.tokens)
    if not target.text.isascii() and joined in "".join(content):
        return f"'{shown}' holds the target, written together with more"
    if not target.text.isascii() and any(map(str.isdigit, target.text)):
        return f"'{shown}' may be '{target.text}', with its number in another form"
    if target.text[:1].isdigit() and not any(
        any(map(str.isdigit, token)) for token in content
    ):
        return f"'{shown}' may be '{target.text}' in words"
    for token in content:
        for word in wanted:
            is_noun_like = (
                target.text.islower()
                and token.isalpha()
                and min(len(token), len(word)) >= 4
            )
            is_variant = (
                is_noun_like
                and SequenceMatcher(None, token, word).ratio() >= MIN_LIKE_NOUN
            )
            if is_variant or _resembles(token, word):
                how = (
                    "is a word of the target"
                    if token == word
                    else f"may be a form or a spelling of '{word}'"
                )
                return f"'{token}' {how}"
    if (
        SequenceMatcher(None, "".join(content)[:60], joined[:60]).ratio()
        >= MIN_LIKE_PHRASE
    ):
        return f"'{shown}' is spelt nearly as '{target.text}'"
    initials = "".join(token[0] for token in target.tokens if token)
    if len(target.tokens) > 1 and "".join(content) == initials:
        return f"'{shown}' may be short for '{target.text}'"
    is_abbreviation = (
        target.text.isupper() and len(target.text) <= MAX_ABBREVIATION_CHARS
    )
    if is_abbreviation and len(content) > 1 and content[0][:1] == joined[:1]:
        return f"'{shown}' may be what '{target.text}' stands for"
    return ""


_NUMERAL = re.compile(
    r"\d[\d.]*(?:st|nd|rd|th)?|[ivx]{1,5}|one|two|three|four|five|six|seven|eight|nine|ten|first|second|third|fourth|fifth"
    r"|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth"
)
"""A number as a part of a name: "World War II", "Gemini 2", "Frederik the Tenth"."""


def _differs_in_numeral(content: Sequence[str], target: Target) -> bool:
    """Whether a name is the target but for a number in it that is written in another way."""
    wanted = [
        token
        for token in target.tokens
        if token not in FUNCTION or _NUMERAL.fullmatch(token)
    ]
    words = {token for token in wanted if not _NUMERAL.fullmatch(token)}
    numerals = [token for token in content if _NUMERAL.fullmatch(token)]
    has_numeral = len(words) < len(wanted)
    if not has_numeral or not numerals:
        return False
    return {token for token in content if not _NUMERAL.fullmatch(token)} == words


def _has_other_words(content: Sequence[str], target: Target) -> bool:
    """Whether a name and a target each have words of their own that are not alike, beside words
    that they share or not at all.
    """
    core = [token for token in target.tokens if token not in ARTICLES]
    if len(core) < 2 or len(content) < 2:
        return False
    theirs = [
        word for word in core if not any(_resembles(token, word) for token in content)
    ]
    own = [
        token for token in content if not any(_resembles(token, word) for word in core)
    ]
    is_like = (
        SequenceMatcher(None, "".join(own)[:60], "".join(theirs)[:60]).ratio()
        >= MIN_LIKE_PHRASE
    )
    return bool(theirs) and bool(own) and not is_like and len(theirs) < len(core)


MIN_LIKE_WORD = 0.8
"""Similarity above which a word may be a misspelling of another: "Madrit", and not "Manet" for
"Monet".
"""
MIN_LIKE_LONG_WORD = 0.6
MIN_LONG_WORD_CHARS = 6
MIN_LIKE_OTHER_SCRIPT = 0.6
MIN_LIKE_PHRASE = 0.76
MIN_LIKE_NOUN = 0.75
"""The same for words that are no names: "gray" for "grey"."""
MAX_SHOWN_CHARS = 40
MAX_ABBREVIATION_CHARS = 5


def _resembles(one: str, other: str) -> bool:
    """Whether one word may be a spelling, an ending or a short form of another."""
    if one == other:
        return len(one) > 1 or not one.isascii()
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) >= 3 and longer.startswith(shorter):
        return True
    if not 4 <= len(one) <= 40 or (len(other) < 4 and other.isascii()):
        return False
    if len(shorter) >= 4 and longer.startswith(shorter[:-1]):
        return True  # "Gabo" for "Gabriel"
    matcher = SequenceMatcher(None, one, other)
    if not one.isascii() and not other.isascii():
        # endings and spellings of other scripts are less well known
        return one[:3] == other[:3] or matcher.ratio() >= MIN_LIKE_OTHER_SCRIPT
    by_sound = SequenceMatcher(None, _sounds(one), _sounds(other))
    is_long = min(len(one), len(other)) >= MIN_LONG_WORD_CHARS
    least = MIN_LIKE_LONG_WORD if is_long and one[:3] == other[:3] else MIN_LIKE_WORD
    return max(matcher.ratio(), by_sound.ratio()) > least


def is_loosely_near(content: Sequence[str], targets: Sequence[Target]) -> bool:
    """Whether a word of a name's content may be a target's: misspelt, inflected, transliterated, a
    part of it, an abbreviation.

    A name of as many words that differs from the target in one of them, and there plainly, is not
    near ("Atlantic Ocean").
    """
    near = [target for target in targets if _is_loosely_like(content, target)]
    return bool(near) and not all(_one_differs(content, target) for target in near)


def _is_loosely_like(content: Sequence[str], target: Target) -> bool:
    wanted = set(target.tokens) - FUNCTION
    if not target.text.isascii() and "".join(target.tokens) in "".join(content):
        return True
    if any(map(str.isdigit, target.text)) or any(
        _resembles_loosely(token, word) for token in content for word in wanted
    ):
        return True
    if (
        SequenceMatcher(
            None, "".join(content)[:60], "".join(target.tokens)[:60]
        ).ratio()
        >= 0.76
    ):
        return True
    initials = "".join(token[0] for token in target.tokens if token)
    short = target.text.isupper() and len(target.text) <= 5
    return (len(target.tokens) > 1 and "".join(content) == initials) or (
        short and len(content) > 1
    )


def _one_differs(content: Sequence[str], target: Target) -> bool:
    core = [token for token in target.tokens if token not in ARTICLES]
    if len(core) < 2 or len(content) != len(core):
        return False
    pairs = [(one, two) for one, two in zip(content, core, strict=True) if one != two]
    return (
        len(pairs) == 1
        and not _resembles_loosely(*pairs[0])
        and min(map(len, pairs[0])) >= 2
    )


def _resembles_loosely(one: str, other: str) -> bool:
    """Whether one word may be a spelling, an ending or a short form of another."""
    if one == other or (
        min(len(one), len(other)) >= 3
        and (one.startswith(other) or other.startswith(one))
    ):
        return True
    if not 4 <= len(one) <= 40 or (len(other) < 4 and other.isascii()):
        return False
    return one[:3] == other[:3] or SequenceMatcher(None, one, other).ratio() >= 0.6


def differs_in_digits(tokens: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a text is a target with another number in it: "World War I", "H2O2", "Carbon-12"."""
    one, other = (
        "".join(part for part in given if part not in ARTICLES)
        for given in (tokens, wanted)
    )
    letters = re.sub(r"\d", "", one)
    return (
        one != other
        and letters == re.sub(r"\d", "", other)
        and letters != one
        and letters != other
    )
