"""Target names: which spellings count as the same name, and where a target stands in a text.

What is the same name is decided here (a letter doubled or left out, a surname with fitting
given names, parts in another order); whether the text gives it as its answer is decided in
`name_sentences.py`.
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
    FUNCTION_WORDS,
    FoldedText,
    fold_text,
    script_of,
    text_between,
)
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import fold, word_set

NAME_HEADS = word_set(
    "mount mt lake river ocean sea desert island islands mountains strait gulf falls"
    " planet sir dame lady lord dr doctor prof",
    "professor mr mrs ms president king queen pope saint pres emperor prince princess"
    " chancellor senator general captain",
    "colonel madame miss republic kingdom federative federal commonwealth ir mlima ziwa"
    " sungai song kota thanh pho vua buyuk",
)
NAME_PARTICLES = word_set(
    "l d van von der den de da di del della la le du dos das ten ter bin ibn al el af"
    " av zu"
)
"""Small words inside a name."""
_PLACES = word_set("mount lake river planet hurricane comet mlima")
_GENERIC = word_set(
    "ocean sea river desert lake island islands mountain mountains city state empire"
)
_GERMAN = {
    ord(char): replacement
    for char, replacement in zip("äöüøå", ("ae", "oe", "ue", "oe", "aa"), strict=True)
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
"""Letter groups that transliterations and slips confuse with each other."""
MAX_MENTIONS = 30
"""Most mentions of a target that are looked at in one reply."""
MAX_GIVEN_NAMES = 12
"""Most words before a name that may be given names."""


@dataclass(frozen=True)
class NameTarget:
    """An accepted name, prepared for matching.

    `tokens` are its folded words; `forms` are texts each of which suffices as a whole answer.
    `given_names` and `surname` are set for persons; `script` is the script of most letters.
    """

    text: str
    tokens: tuple[str, ...]
    forms: tuple[str, ...]
    given_names: tuple[str, ...]
    surname: str
    script: str


@lru_cache(maxsize=2048)
def parse_name_targets(
    targets: tuple[str, ...], name_parts: str = "full"
) -> tuple[NameTarget, ...]:
    """Prepare targets for matching.

    Args:
        targets: accepted names, the canonical one first.
        name_parts: which part of a person's name is enough: "full", "surname", "given" or "any".
    """
    parsed = [_parse_name_target(target, name_parts) for target in targets]
    latin = [
        target.text.casefold().translate(_CYRILLIC).title()
        for target in parsed
        if target.script == "CYRILLIC"
    ]
    return (*parsed, *(_parse_name_target(text, name_parts) for text in latin))


def _parse_name_target(text: str, name_parts: str) -> NameTarget:
    folded = fold_text(plain(text))
    tokens = tuple(folded.tokens)
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
    cased = [word for word in folded.cased if word]
    named = len(core) > 1 and all(
        word[:1].isupper() or word.casefold() in NAME_PARTICLES for word in cased
    )
    given_names: tuple[str, ...] = ()
    surname = ""
    if (
        named
        and not generic
        and not any(map(str.isdigit, text))
        and not {"of", "the", "and"} & set(core)
    ):
        first = next(
            (at for at, token in enumerate(core) if at and token in NAME_PARTICLES),
            len(core) - 1,
        )
        given_names = core[:first]
        surname = " ".join(core[first:])
        forms.append(f"{surname} {' '.join(given_names)}")
        forms += [surname] if name_parts in ("surname", "any") else []
        forms += [given_names[0]] if name_parts in ("given", "any") else []
    distinct_forms = tuple(dict.fromkeys(form for form in forms if form))
    return NameTarget(
        text, tokens, distinct_forms, given_names, surname, script_of(text)
    )


# -- one name in several spellings -----------------------------------------------------


def align_with_targets(
    folded: FoldedText, targets: Sequence[NameTarget], inflected: bool = False
) -> FoldedText:
    """Replace words that are another spelling or inflection of a target's word by that word.

    Args:
        folded: the folded text.
        targets: the targets whose words are looked for.
        inflected: whether a target's word may be followed by an ending of up to three letters.
    """
    target_words = {
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
    known_words = target_words | FUNCTION_WORDS
    tokens = [
        (
            token
            if len(token) < 4 or token in known_words
            else next(
                (
                    word
                    for word in target_words
                    if is_same_word(token, word)
                    or (inflected and _is_inflected(token, word))
                    or (word in plural and token in (f"{word}s", f"{word}es"))
                ),
                token,
            )
        )
        for token in folded.tokens
    ]
    if tokens == folded.tokens:
        return folded
    return folded._replace(tokens=tokens, joined=f" {' '.join(tokens)} ")


def _is_inflected(token: str, word: str) -> bool:
    """Return whether a word is a target's with an ending ("Kiven", "Marii") or an Arabic prefix."""
    if token[:1] in "بولفك" and token[1:] == word:
        return True
    if any(map(str.isdigit, word)):
        return False  # 2016 is not a form of 2012
    return token.startswith(word[:-1]) and len(token) <= len(word) + 3


@lru_cache(maxsize=4096)
def is_same_word(word: str, target_word: str) -> bool:
    """Return whether a word is another one misspelt, transliterated or, in Cyrillic, inflected.

    A different vowel makes a different word.
    """
    if (
        abs(len(word) - len(target_word)) > 3
        or word[:1].isdigit()
        or any(map(str.isdigit, word + target_word))
    ):
        return False
    if "а" <= target_word[0] <= "ї":
        common = next(
            (
                at
                for at, (a, b) in enumerate(zip(word, target_word, strict=False))
                if a != b
            ),
            min(len(word), len(target_word)),
        )
        return common >= max(4, len(target_word) - 2) and len(word) - common <= 3
    if (
        not (word.isascii() and target_word.isascii() and word[0] == target_word[0])
        and write_by_sound(word)[0] != write_by_sound(target_word)[0]
    ):
        return False
    return write_by_sound(word) == write_by_sound(target_word) or (
        min(len(word), len(target_word)) >= 5 and _is_slip(word, target_word)
    )


@lru_cache(maxsize=4096)
def write_by_sound(word: str) -> str:
    for letters, sound in _SOUNDS:
        word = word.replace(letters, sound)
    return re.sub(r"(.)\1+", r"\1", re.sub(r"(?<=.)h", "", word))


def _is_slip(word: str, target_word: str) -> bool:
    """Return whether words differ in one slip.

    Two letters are swapped, or one inside the word is doubled, missing or added.
    """
    if abs(len(word) - len(target_word)) > 1 or word[0] != target_word[0]:
        return False
    at = next(
        (i for i, (a, b) in enumerate(zip(word, target_word, strict=False)) if a != b),
        min(len(word), len(target_word)),
    )
    if len(word) == len(target_word):
        return (
            word[at + 2 :] == target_word[at + 2 :]
            and word[at : at + 2] == target_word[at : at + 2][::-1]
        )
    longer, shorter = (
        (word, target_word) if len(word) > len(target_word) else (target_word, word)
    )
    inside = 1 < at < len(longer) - 1 and len(longer) >= 7
    return longer[:at] + longer[at + 1 :] == shorter and (
        longer[at] == longer[at - 1] or inside
    )


# -- the text around words


def text_behind(folded: FoldedText, mention: Mention, reach: int = 8) -> str:
    """Return the text right after a mention, including the ending of its last word.

    `reach` is its length in words; in scripts without spaces, in characters.
    """
    text = text_between(folded, mention.end - 1, mention.end + reach)
    word = folded.cased[mention.end - 1]
    token = folded.tokens[mention.end - 1]
    if not "가" <= word[-1:] <= "힣":
        return text[len(word) :]
    pairs = zip(word.casefold(), token, strict=False)
    stem = next(
        (index for index, (char, token_char) in enumerate(pairs) if char != token_char),
        min(len(word), len(token)),
    )
    return text[stem:]


# -- Vietnamese tones


def order_tone_marks(word: str) -> str:
    """Write the marks of a Vietnamese word in one order, so that "hoà" equals "hòa"."""
    decomposed = unicodedata.normalize("NFD", word.casefold())
    return "".join(
        char for char in decomposed if not unicodedata.combining(char)
    ) + "".join(sorted(char for char in decomposed if unicodedata.combining(char)))


def tone_forms_of(targets: Sequence[NameTarget]) -> dict[str, set[str]]:
    """Return the words of the targets with their tone marks, by their folded form."""
    tones: dict[str, set[str]] = {}
    for target in targets:
        folded = fold_text(plain(target.text))
        for word, token in zip(folded.cased, folded.tokens, strict=True):
            tones.setdefault(token, set()).add(order_tone_marks(word))
    return tones


# -- where a target stands -------------------------------------------------------------


class Mention(NamedTuple):
    """Where a target stands in a text, as token positions.

    `is_exact` is set if it is the target itself, not part of a longer name.
    """

    start: int
    end: int
    is_exact: bool


def find_mentions(
    folded: FoldedText,
    targets: Sequence[NameTarget],
    confusable: Sequence[str] = (),
    question_beginnings: Collection[str] = (),
) -> list[Mention]:
    """Find where targets stand in a text, in order; of overlapping ones the longest.

    Args:
        folded: the folded text.
        targets: the targets to look for.
        confusable: names of others that contain a target; a target inside one does not count.
        question_beginnings: first letters of the question's words, which are not given names.
    """
    mention_by_end: dict[int, Mention] = {}
    confusable_spans = [
        span
        for name in confusable
        for span in _find_form(folded, " ".join(fold_text(plain(name)).tokens))
    ]
    for target in targets:
        for form in dict.fromkeys((*target.forms, target.surname)):
            for start, end in _find_form(folded, form):
                if any(
                    first <= start and end <= last for first, last in confusable_spans
                ):
                    continue
                first, is_exact = _with_given_names(
                    folded, start, end, target, question_beginnings
                )
                best = mention_by_end.get(end)
                if (
                    form == target.surname
                    and form not in target.forms
                    and (best or first == start)
                ):
                    continue
                if best is None or (is_exact, best.start) > (best.is_exact, first):
                    mention_by_end[end] = Mention(first, end, is_exact)
    spans = list(mention_by_end.values())
    return sorted(
        mention
        for mention in spans
        if not any(o.start <= mention.start and mention.end < o.end for o in spans)
    )


def _find_form(folded: FoldedText, form: str) -> list[tuple[int, int]]:
    """Find a form of a target, also with its words joined or split; returns token spans."""
    spans: list[tuple[int, int]] = []
    position = folded.joined.find(f" {form} ") if form else -1
    while position >= 0 and len(spans) < MAX_MENTIONS:
        start = folded.joined.count(" ", 0, position)
        spans.append((start, start + form.count(" ") + 1))
        position = folded.joined.find(f" {form} ", position + 1)
    if len(form) >= 5 and " " not in form:
        tokens = folded.tokens
        for start, token in enumerate(tokens):
            if len(spans) >= MAX_MENTIONS:
                break
            if not token or not form.startswith(token) or token == form:
                continue
            joined_tokens = token
            end = start + 1
            while end < len(tokens) and len(joined_tokens) < len(form):
                joined_tokens = joined_tokens + tokens[end]
                end = end + 1
            if joined_tokens == form:
                spans.append((start, end))
    return spans


def _with_given_names(
    folded: FoldedText,
    start: int,
    end: int,
    target: NameTarget,
    question_beginnings: Collection[str],
) -> tuple[int, bool]:
    """Extend a name to the given names before it, and say whether they may be the target's.

    "Theo van Gogh" is not Vincent van Gogh; "V. van Gogh" and "Sir Alexander Fleming" may be.
    """
    form = " ".join(folded.tokens[start:end])
    full = " " in form and len(target.tokens) > 1 and form != target.surname
    full = full or form == " ".join(target.tokens)
    first = start
    while (
        first > max(0, start - MAX_GIVEN_NAMES)
        and not (full and folded.tokens[first - 1] in NAME_PARTICLES)
        and _is_name_word(folded, first - 1)
        and _is_joined_to_next(folded, first - 1)
    ):
        first -= 1
    left_out = NAME_HEADS | NAME_PARTICLES
    given_names = [
        token
        for token in folded.tokens[first:start]
        if token not in left_out and token[:5] not in question_beginnings
    ]
    after = (
        end < len(folded.tokens)
        and folded.cased[end][:1].isupper()
        and _is_joined_to_next(folded, end - 1)
    )
    before = folded.cased[start - 1] if start else ""
    if (
        form == target.surname
        and before.istitle()
        and len(before) > 2
        and before.casefold() in NAME_PARTICLES
    ):
        return start, False  # "Van Morrison" is not Toni Morrison
    if not given_names:
        return start, not after
    if full or not target.given_names or form not in (target.surname, *target.forms):
        return start, not after and first == start
    middles = target.given_names[1:]
    middle_names = given_names[1:]
    fits = is_same_given_name(given_names[0], target.given_names[0]) and all(
        any(is_same_given_name(middle, two) for middle in middle_names)
        for two in middles
        if middle_names
    )
    return first, fits and not after and (
        not middles or len(middle_names) <= len(middles)
    )


def is_same_given_name(name: str, target_name: str) -> bool:
    """Return whether two given names may be the same: by initial, spelling or short form."""
    short, long = sorted((name, target_name), key=len)
    return (
        long.startswith(short)
        or is_same_word(name, target_name)
        or (len(short) <= 4 and len(long) >= len(short) + 2 and long[:2] == short[:2])
    )


def _is_name_word(folded: FoldedText, index: int) -> bool:
    word = folded.cased[index]
    token = folded.tokens[index]
    if index == 0 and token in FUNCTION_WORDS and "." not in folded.gaps[1]:
        return False
    return word[:1].isupper() or (
        token in NAME_PARTICLES and index > 0 and folded.cased[index - 1][:1].isupper()
    )


def _is_joined_to_next(folded: FoldedText, index: int) -> bool:
    """Return whether only a space, full stop or hyphen separates a token from the next."""
    return re.fullmatch(r"\.?[ -]?", folded.gaps[index + 1]) is not None
