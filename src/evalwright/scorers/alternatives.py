"""Whether an answer offers several candidates: "Paris or Lyon", "Paris/Lyon", or nothing but a list.

Alternatives that are all targets ("tungsten or wolfram") are no choice.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from evalwright.scorers.polarity import SENTENCE_END, Occurrence, withdraws
from evalwright.scorers.text.countries import COUNTRIES
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.text.wordlists import word_set

_NOT_ALTERNATIVES = word_set("so more less thereabouts later earlier even also simply just")
_SYNONYM_CUES = word_set("known called aka ie formerly meaning officially named synonym")
_NOT_RIVALS = word_set("not never nor neither rather unlike instead except")
_HEDGES = re.compile(r"\b(?:maybe|perhaps|possibly|might be|could be)\b", re.IGNORECASE)
_ITEM = re.compile(r",|;|/|\band\b|\bor\b|&", re.IGNORECASE)
_OPTION = re.compile(r"(?:^|\s)\(?(?:[A-Ea-e]|[1-9])[).](?=\s)")
_FIRST_OPTION = re.compile(r"\(?[Aa1][).]\s")
_NOT_IN_ITEMS = word_set(
    "is was are were be has have had did does do the a an in on of who which that also by for as with to not"
)


_OR = {
    "de": word_set("or oder beziehungsweise"),
    "fr": word_set("or ou"),
    "es": word_set("or o u"),
    "pt": word_set("or ou"),
    "it": word_set("or o oppure"),
    "id": word_set("or atau"),
    "ms": word_set("or atau"),
    "vi": word_set("or hoặc hay"),
    "tl": word_set("or o"),
    "fil": word_set("or o"),
}
_ENGLISH_OR = word_set("or vs versus")
_OTHER_OR = "还是|還是|或者?|または|もしくは|それとも|หรือ|또는|혹은|या|அல்லது|или|أو"
_OR_AFTER = re.compile(rf"\s*(?:{_OTHER_OR})\s*\w")
_OR_BEFORE = re.compile(rf"\w\s*(?:{_OTHER_OR})\s*$")


def among_alternatives(
    words: Words, occurrence: Occurrence, is_target: Callable[[int, int], bool], language: str = "en"
) -> str:
    """The other candidate that is offered beside the occurrence ("Paris or Lyon"), "" where there is none.

    is_target: whether the tokens from start to end contain a target, so that "tungsten or wolfram" is no choice.
    """
    tokens = words.tokens
    start, end = occurrence
    ors = _OR.get(language.replace("_", "-").split("-")[0].casefold(), _ENGLISH_OR)
    if not ors.isdisjoint(tokens):
        left, right = _sentence(words, start, end)
        if (found := _after_or(words, end, right, is_target, ors)) or (
            found := _before_or(words, start, left, is_target, ors)
        ):
            return found
    if not words.text.isascii() and (found := _other_or(words, start, end, is_target)):
        return found
    if "/" in words.text:
        size = len(tokens)
        if end < size and words.gap(end).strip() == "/" and not is_target(end, min(end + 3, size)):
            return words.quote(start, end + 1)
        if start and words.gap(start).strip() == "/" and not is_target(max(0, start - 3), start):
            return words.quote(start - 1, end)
    return _lone_list(words, occurrence, is_target)


def _sentence(words: Words, start: int, end: int) -> tuple[int, int]:
    """The tokens of the sentence around a range, at most 40 on either side."""
    left = start
    while left > 0 and start - left < 40 and SENTENCE_END.search(words.gap(left)) is None:
        left -= 1
    right = end
    while right < len(words.tokens) and right - end < 40 and SENTENCE_END.search(words.gap(right)) is None:
        right += 1
    return left, right


def _other_or(words: Words, start: int, end: int, is_target: Callable[[int, int], bool]) -> str:
    """A candidate beside the occurrence where the word between is of another script."""
    size = len(words.tokens)
    if _OR_AFTER.match(words.text, words.spans[end - 1][1]) and not is_target(end, min(end + 8, size)):
        return words.quote(start, min(end + 4, size))
    if _OR_BEFORE.search(words.text[: words.spans[start][0]]) and not is_target(max(0, start - 8), start):
        return words.quote(max(0, start - 4), end)
    return ""


def _after_or(
    words: Words, end: int, right: int, is_target: Callable[[int, int], bool], ors: frozenset[str]
) -> str:
    """A candidate after the occurrence: "X or Y", or "X, Y or Z" with short items."""
    tokens = words.tokens
    index, item, listed = end, 0, False
    while index < right:
        if tokens[index] in ors:
            if index > end and not listed:
                return ""
            if index + 1 >= right or tokens[index + 1] in _NOT_ALTERNATIVES or '"' in words.gap(index + 1):
                return ""
            if not _SYNONYM_CUES.isdisjoint(tokens[index + 1 : index + 6]):
                return ""
            return (
                ""
                if is_target(index + 1, min(index + 7, right))
                else words.quote(end - 1, min(index + 4, right))
            )
        if "," in words.gap(index):
            listed, item = True, 0
        item += 1
        if (
            item > 3
            or tokens[index] in _SYNONYM_CUES
            or tokens[index] in _NOT_RIVALS
            or (index == end and not listed)
        ):
            return ""
        index += 1
    return ""


def _before_or(
    words: Words, start: int, left: int, is_target: Callable[[int, int], bool], ors: frozenset[str]
) -> str:
    """A candidate before the occurrence: "Y or X", "Y or maybe the X"."""
    tokens = words.tokens
    for index in range(start - 1, max(left, start - 4), -1):
        if tokens[index] in ors:
            other = max(left, index - 4)
            return "" if is_target(other, index) else words.quote(other, start)
        if tokens[index] not in ("the", "a", "an", "maybe", "perhaps", "possibly", "even"):
            return ""
    return ""


def _lone_list(words: Words, occurrence: Occurrence, is_target: Callable[[int, int], bool]) -> str:
    """The whole answer where it is nothing but a list of short items, some of which are no target."""
    text = words.text.strip().rstrip(".!")
    if (
        _FIRST_OPTION.match(text) is not None
        and 2 < len(parts := _OPTION.split(text[:300])) < 12
        and all(len(part.split()) <= 4 for part in parts)
    ):
        return f"the options {words.quote(0, len(words.tokens))}"
    if withdraws(text[:300]):
        return ""
    if len(text) > 300 or _ITEM.search(text) is None or not _NOT_IN_ITEMS.isdisjoint(words.tokens):
        return ""
    items = _items(words, text)
    joined = "and" in words.tokens
    pair = joined or ";" in text or len(_HEDGES.findall(text)) > 1
    if len(items) < (2 if pair else 3):
        return ""
    start, end = occurrence
    # In "Hydrogen, symbol H" the second item explains; a rival begins with a capital as the target does.
    named = words.cased[start][:1].isupper()
    others = [
        item
        for item in items
        if not is_target(*item)
        and not (item[0] < end and start < item[1])
        and not words.tokens[item[0]].isdigit()
        and not (named and words.cased[_first_word(words, item)][:1].islower())
    ]
    if not others:
        return ""
    apposition = not joined and ";" not in text and len(items) == 3 and is_target(*items[0])
    if apposition and words.tokens[items[-1][1] - 1] in COUNTRIES:
        return ""  # "Austin, Texas, USA" names one place
    return f"the list {words.quote(0, len(words.tokens))}"


def _first_word(words: Words, item: Occurrence) -> int:
    """The first word of an item that is no hedge: "Lyon" of "maybe Lyon"."""
    start, end = item
    while start + 1 < end and words.tokens[start] in ("maybe", "perhaps", "possibly", "probably", "the"):
        start += 1
    return start


def _items(words: Words, text: str) -> list[Occurrence]:
    """The token ranges between commas and conjunctions; none at all where one is longer than a name."""
    items: list[Occurrence] = []
    first = 0
    for part in _ITEM.split(text):
        count = len(Words(part).tokens)
        if count > 4:
            return []
        if count:
            items.append((first, first + count))
        first += count
        while first < len(words.tokens) and words.tokens[first] in ("and", "or"):
            first += 1
    return items
