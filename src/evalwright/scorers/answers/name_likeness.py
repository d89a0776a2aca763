"""Decides whether a wrong name resembles a target so much that a careful reader might accept it.

It does if it is a misspelling, another ending, a part or an abbreviation of the target, or has
another number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from evalwright.scorers.answers.name_targets import NameTarget, write_by_sound
from evalwright.scorers.text.folded import (
    ARTICLES,
    FUNCTION_WORDS,
)


def describe_likeness(content: Sequence[str], targets: Sequence[NameTarget]) -> str:
    """Describe how a name resembles a target; "" if it does not.

    A name that shares a word with the target and plainly differs in another ("Atlantic Ocean",
    "Saint Lucia") does not resemble it.
    """
    for target in targets:
        if _differs_in_numeral(content, target):
            return f"the number in '{target.text}' may be written otherwise"
        if _has_other_words(content, target):
            continue
        reason = _describe_likeness(content, target)
        if reason:
            return reason
    return ""


def _describe_likeness(content: Sequence[str], target: NameTarget) -> str:
    quoted = " ".join(content)[:MAX_SHOWN_CHARS]
    target_words = [token for token in target.tokens if token not in FUNCTION_WORDS]
    joined = "".join(target.tokens)
    if not target.text.isascii() and joined in "".join(content):
        return f"'{quoted}' holds the target, written together with more"
    if not target.text.isascii() and any(map(str.isdigit, target.text)):
        return f"'{quoted}' may be '{target.text}', with its number in another form"
    if target.text[:1].isdigit() and not any(
        any(map(str.isdigit, token)) for token in content
    ):
        return f"'{quoted}' may be '{target.text}' in words"
    for token in content:
        for word in target_words:
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
        return f"'{quoted}' is spelt nearly as '{target.text}'"
    initials = "".join(token[0] for token in target.tokens if token)
    if len(target.tokens) > 1 and "".join(content) == initials:
        return f"'{quoted}' may be short for '{target.text}'"
    is_abbreviation = (
        target.text.isupper() and len(target.text) <= MAX_ABBREVIATION_CHARS
    )
    if is_abbreviation and len(content) > 1 and content[0][:1] == joined[:1]:
        return f"'{quoted}' may be what '{target.text}' stands for"
    return ""


_NUMERAL = re.compile(
    r"\d[\d.]*(?:st|nd|rd|th)?|[ivx]{1,5}|one|two|three|four|five|six|seven|eight|nine|ten"
    r"|first|second|third|fourth|fifth"
    r"|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth"
)
"""A number that is part of a name: "World War II", "Gemini 2", "Frederik the Tenth"."""


def _differs_in_numeral(content: Sequence[str], target: NameTarget) -> bool:
    """Return whether a name is the target with its number written differently ("Gemini Two")."""
    target_words = [
        token
        for token in target.tokens
        if token not in FUNCTION_WORDS or _NUMERAL.fullmatch(token)
    ]
    words = {token for token in target_words if not _NUMERAL.fullmatch(token)}
    numerals = [token for token in content if _NUMERAL.fullmatch(token)]
    has_numeral = len(words) < len(target_words)
    if not has_numeral or not numerals:
        return False
    return {token for token in content if not _NUMERAL.fullmatch(token)} == words


def _has_other_words(content: Sequence[str], target: NameTarget) -> bool:
    """Return whether name and target each have a word that resembles none of the other."""
    core = [token for token in target.tokens if token not in ARTICLES]
    if len(core) < 2 or len(content) < 2:
        return False
    theirs = [
        word for word in core if not any(_resembles(token, word) for token in content)
    ]
    unlike_words = [
        token for token in content if not any(_resembles(token, word) for word in core)
    ]
    is_like = (
        SequenceMatcher(None, "".join(unlike_words)[:60], "".join(theirs)[:60]).ratio()
        >= MIN_LIKE_PHRASE
    )
    return (
        bool(theirs) and bool(unlike_words) and not is_like and len(theirs) < len(core)
    )


MIN_LIKE_WORD = 0.8
"""Least similarity at which a word may be a misspelling of another.

It accepts "Madrit" for "Madrid", but not "Manet" for "Monet".
"""

MIN_LIKE_LONG_WORD = 0.6

MIN_LONG_WORD_CHARS = 6

MIN_LIKE_OTHER_SCRIPT = 0.6

MIN_LIKE_PHRASE = 0.76

MIN_LIKE_NOUN = 0.75
"""Least similarity for words that are not names: "gray" for "grey"."""

MAX_SHOWN_CHARS = 40

MAX_ABBREVIATION_CHARS = 5


def _resembles(word: str, target_word: str) -> bool:
    """Return whether a word may be a spelling, inflection or short form of a target's word."""
    if word == target_word:
        return len(word) > 1 or not word.isascii()
    shorter, longer = sorted((word, target_word), key=len)
    if len(shorter) >= 3 and longer.startswith(shorter):
        return True
    if not 4 <= len(word) <= 40 or (len(target_word) < 4 and target_word.isascii()):
        return False
    if len(shorter) >= 4 and longer.startswith(shorter[:-1]):
        return True  # a short form: "Gabo" for "Gabriel"
    matcher = SequenceMatcher(None, word, target_word)
    if not word.isascii() and not target_word.isascii():
        # endings and spellings of other scripts are less well known to us
        return word[:3] == target_word[:3] or matcher.ratio() >= MIN_LIKE_OTHER_SCRIPT
    by_sound = SequenceMatcher(None, write_by_sound(word), write_by_sound(target_word))
    is_long = min(len(word), len(target_word)) >= MIN_LONG_WORD_CHARS
    least = (
        MIN_LIKE_LONG_WORD if is_long and word[:3] == target_word[:3] else MIN_LIKE_WORD
    )
    return max(matcher.ratio(), by_sound.ratio()) > least


def is_loosely_like(content: Sequence[str], targets: Sequence[NameTarget]) -> bool:
    """Return whether any word of a name may be a target's.

    It is for languages whose word forms we know less well. A name that plainly differs from the
    target in one of its words ("Atlantic Ocean") is not like it.
    """
    near = [target for target in targets if _is_loosely_like(content, target)]
    return bool(near) and not all(
        _differs_in_one_word(content, target) for target in near
    )


def _is_loosely_like(content: Sequence[str], target: NameTarget) -> bool:
    target_words = set(target.tokens) - FUNCTION_WORDS
    if not target.text.isascii() and "".join(target.tokens) in "".join(content):
        return True
    if any(map(str.isdigit, target.text)) or any(
        _resembles_loosely(token, word) for token in content for word in target_words
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


def _differs_in_one_word(content: Sequence[str], target: NameTarget) -> bool:
    core = [token for token in target.tokens if token not in ARTICLES]
    if len(core) < 2 or len(content) != len(core):
        return False
    pairs = [
        (word, target_word)
        for word, target_word in zip(content, core, strict=True)
        if word != target_word
    ]
    return (
        len(pairs) == 1
        and not _resembles_loosely(*pairs[0])
        and min(map(len, pairs[0])) >= 2
    )


def _resembles_loosely(word: str, target_word: str) -> bool:
    """Like `_resembles`, with a lower bar: three common first letters are enough."""
    if word == target_word or (
        min(len(word), len(target_word)) >= 3
        and (word.startswith(target_word) or target_word.startswith(word))
    ):
        return True
    if not 4 <= len(word) <= 40 or (len(target_word) < 4 and target_word.isascii()):
        return False
    return (
        word[:3] == target_word[:3]
        or SequenceMatcher(None, word, target_word).ratio() >= 0.6
    )


def differs_in_digits(tokens: Sequence[str], target_tokens: Sequence[str]) -> bool:
    """Return whether a text is a target with another number: "World War I", "H2O2", "Carbon-12"."""
    text, target_text = (
        "".join(token for token in words if token not in ARTICLES)
        for words in (tokens, target_tokens)
    )
    letters = re.sub(r"\d", "", text)
    return (
        text != target_text
        and letters == re.sub(r"\d", "", target_text)
        and letters != text
        and letters != target_text
    )
