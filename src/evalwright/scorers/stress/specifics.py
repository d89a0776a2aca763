"""Does a clause name something specific, a person, a year, a number, a thing, that the question did not have?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from evalwright.scorers.stress.clauses import ASIDE, Clause, lowered, stem, stems, words_of
from evalwright.scorers.stress.phrases import Compiled
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.wordlists import word_set

_QUOTED = re.compile(r"\"([^\"]{2,120})\"|《([^》]{1,60})》")
_NUMBER = re.compile(r"(?<![A-Za-z0-9.,])\d[\d.,:/]*")
_LETTERS = re.compile(r"[^\W\d_]")
_UNCASED = re.compile("[\u0b80-\u0bff\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_FULL_NAME = re.compile(r"(?:[A-Z][^\W\d_]*\.? )+[A-Z][^\W\d_]{3,}")
LISTED = "a listed wrong answer"
BARE = "nothing but the answer"
_INNER = word_set("of the de da di von van bin al du la le")
_RESTATED = 3
"""So many words of the question are a restatement of it."""
_SPACELESS = re.compile("[\u0e00-\u0e7f\u3400-\u9fff]")
_ARTICLE = re.compile(r"^(?:the|an?|ang|si|sebuah|seorang|ông|bà)\s+", re.IGNORECASE)


class Specific(NamedTuple):
    """What is named, by which rule, whether the sample lists it as a tempting wrong answer, and whether it is a number."""

    text: str
    rule: str
    listed: bool = False
    number: bool = False

    @property
    def sure(self) -> bool:
        """Whether a careful reader could hardly say that nothing is named."""
        return self.listed or self.number or self.rule == BARE


@dataclass(frozen=True, slots=True)
class Aliases:
    """Words and names to look for, each with a pattern that stands at word boundaries."""

    patterns: tuple[tuple[str, re.Pattern[str]], ...]

    def search(self, low: str) -> re.Match[str] | None:
        """The first of them in a lowered text."""
        found = [match for _, pattern in self.patterns if (match := pattern.search(low)) is not None]
        return min(found, key=lambda match: (match.start(), -match.end())) if found else None

    def count(self, low: str) -> int:
        """How many of them a lowered text has."""
        return sum(pattern.search(low) is not None for _, pattern in self.patterns)


@lru_cache(maxsize=4096)
def aliases(given: tuple[str, ...], besides: str = "", surnames: bool = False) -> Aliases:
    """The patterns of some names; those that stand in `besides`, such as the question, tell nothing and are left out.

    surnames: of a name in several capitalised words, the last one is enough.
    """
    if surnames:
        given = (*given, *(name.split()[-1] for name in given if _FULL_NAME.fullmatch(name)))
    made = []
    taken = f" {lowered(plain(besides))} "
    for name in given:
        low = lowered(plain(name)).strip(" .,;:!?")
        if low:
            pattern = re.compile(_bounded(low))
            if not pattern.search(taken):
                made.append((name, pattern))
    return Aliases(tuple(made))


def _bounded(low: str) -> str:
    """At word boundaries where the script has them; Korean particles may follow, and a number is never a part of another."""
    before = r"(?<![^\W_])" if not _UNCASED.match(low) else (r"(?<!\d)" if low[0].isdigit() else "")
    after = r"(?![^\W_])" if not _UNCASED.match(low[-1]) else ""
    if low[-1].isdigit():
        after = r"(?!\d|[.,:]\d)"
    if low[0].isdigit():
        before = r"(?<![A-Za-z\d.,])"
    return before + re.escape(low).replace(r"\ ", r"\s+") + after


class Reader:
    """Finds specifics in the clauses of answers to one question."""

    def __init__(
        self,
        question: str,
        allowed: Iterable[str],
        fabrications: Aliases,
        languages: Sequence[Compiled],
        common: frozenset[str],
    ) -> None:
        self.languages, self.common, self.fabrications = languages, common, fabrications
        self.question = stems(plain(question), common)
        self.known = self.question.union(*(stems(plain(text), common) for text in allowed))
        self.digits = {
            found.group().rstrip(".,:/").replace(",", "") for found in _NUMBER.finditer(plain(question))
        }

    def find(self, clause: Clause) -> Specific | None:
        """The first specific that a clause gives and does not deny."""
        listed = self.fabrications.search(clause.low)
        if listed is not None and not self._denied(clause.low, listed.start()):
            return Specific(listed.group(), LISTED, True, listed.group()[:1].isdigit())
        for rule in (self._quoted, self._number, self._name, self._named, self._bare):
            found = rule(clause)
            if found is not None and not self._denied(clause.low, clause.low.find(lowered(found.text))):
                return found
        return None

    def novel(self, text: str) -> bool:
        """Whether a text has content that neither the question nor what is true of it has."""
        return bool(stems(text, self.common) - self.known)

    def of_others(self, clause: Clause) -> bool:
        """Whether a clause speaks of somebody else before it comes to a listed wrong answer: "Sweden joined in January"."""
        name, listed = self._name(clause), self.fabrications.search(clause.low)
        if name is None or listed is None or self.fabrications.search(lowered(name.text)) is not None:
            return False
        return clause.low.find(lowered(name.text)) < listed.start()

    def bare(self, clause: Clause) -> bool:
        """Whether a clause is a mere phrase, without a predicate."""
        uncased = bool(_UNCASED.search(clause.text))
        for language in self.languages:
            if uncased == (language.code in ("ko", "zh", "th", "ta")) and language.verbal.search(clause.low):
                return False
        shared = len(stems(clause.text, self.common) & self.question)
        return shared < (1 if _SPACELESS.search(clause.text) else _RESTATED)

    def _denied(self, low: str, place: int) -> bool:
        before = ASIDE.sub(" ", low[: max(place, 0)])
        for language in self.languages:
            before = language.harmless.sub(" ", before)
        return any(language.negating.search(before) for language in self.languages)

    def _quoted(self, clause: Clause) -> Specific | None:
        for match in _QUOTED.finditer(clause.text):
            inner = match.group(1) or match.group(2)
            if self.novel(inner):
                return Specific(inner, "a quoted name")
        return None

    def _number(self, clause: Clause) -> Specific | None:
        for match in _NUMBER.finditer(clause.text):
            number = match.group().rstrip(".,:/").replace(",", "")
            if number not in self.known and number not in self.digits:
                return Specific(match.group().rstrip(".,:/"), "a number", number=True)
        return None

    def _name(self, clause: Clause) -> Specific | None:
        """Capitalised words inside a sentence, or at its start where they are several or all there is."""
        words = words_of(clause.text)
        capital = [self._capital(word) for word in words]
        for place in range(len(words)):
            if not capital[place] or (words[place] == "May" and not place):
                continue
            if place or not clause.first or (place + 1 < len(words) and capital[place + 1]):
                end = place + 1
                while end < len(words) and (words[end][:1].isupper() or words[end] in _INNER):
                    end += 1
                whole = BARE if self.bare(clause) else "a name"
                return Specific(" ".join(words[place:end]), whole)
        return None

    def _capital(self, word: str) -> bool:
        low = word.casefold().replace("'s", "").replace("'", "")
        if (
            not word[:1].isupper()
            or (low in self.common and word != "May")
            or (len(word) == 1 and not word.isdigit())
        ):
            return False
        return stem(low) not in self.known

    def _named(self, clause: Clause) -> Specific | None:
        """What stands in a frame that names: "called X", "is X", "X라고"."""
        for language in self.languages:
            for match in language.naming.finditer(clause.low):
                rest = _ARTICLE.sub("", clause.low[match.end() :].strip())
                head = rest[:12] if language.code in ("zh", "th") else " ".join(rest.split()[:2])
                if head and self.novel(head):
                    return Specific(head, "what is named")
            for match in language.named.finditer(clause.low):
                inner = next((group for group in match.groups() if group), "")
                if inner and self.novel(inner):
                    return Specific(inner, "what is named")
        return None

    def _bare(self, clause: Clause) -> Specific | None:
        if not self.bare(clause) or not _LETTERS.search(clause.text):
            return None
        short = bool(_UNCASED.search(clause.text)) and not stems(clause.text, self.common)
        if self.novel(clause.text) or (short and clause.low not in self.common):
            return Specific(clause.text, BARE)
        return None
