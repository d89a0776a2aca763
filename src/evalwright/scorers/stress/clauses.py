"""An answer as clauses, with the words that a question and a clause share: what the rules look at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from evalwright.core.sentences import sentences
from evalwright.scorers.stress.phrases import Compiled
from evalwright.scorers.text.normalise import answer_region, plain

_SPLIT = re.compile(r";\s|\s[–—-]\s|—|[；，](?=\S)|:\s(?=[\"'A-Z\d])|,\s(?=(?:and|so) )")
ASIDE = re.compile(r", (?:which|who|whose|where|an? \w+ (?:that|which|who))\b[^,;.]*")
"""A relative clause or the like: what it denies is not what the sentence denies."""
_HAN, _THAI = re.compile("[\u3400-\u9fff\uf900-\ufaff]+"), re.compile("[\u0e00-\u0e7f]+")
_WORD = re.compile(r"[^\W_][\w\u0b80-\u0bff'’]*(?:[.,](?=\d)\d+)*")
_PREFIX = ((re.compile("[\uac00-\ud7a3]"), 2), (re.compile("[\u0b80-\u0bff]"), 4))
_LATIN_PREFIX = 5
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Clause:
    """A stretch of an answer. text: as written. low: in lower case, without apostrophes. sentence: its sentence's number.

    turns: begins with "but" or its like. first: begins its sentence. asks: its sentence is a question.
    """

    text: str
    low: str
    sentence: int
    turns: bool
    first: bool
    asks: bool


def lowered(text: str) -> str:
    """A text as the tables of phrases are written: lower case, no apostrophes, single spaces."""
    return " ".join(text.casefold().replace("'", "").split())


def clauses_of(answer: str, languages: Sequence[Compiled]) -> list[Clause]:
    """The clauses of the part of a reply that counts as its answer, in order."""
    found: list[Clause] = []
    text = plain(answer_region(answer, paragraphs=True))
    lines = [line for line in text.split("\n") if line.strip()]
    parts = [part for line in lines for part in sentences(line)]
    for number, sentence in enumerate(parts):
        asks = sentence.rstrip("\"') ").endswith(("?", "？"))
        first = True
        for piece, turns in _pieces(sentence, languages):
            low = lowered(piece).strip(" ,;:-–—")
            if any(map(str.isalnum, low)):
                found.append(Clause(piece.strip(" ,;:"), low, number, turns, first, asks))
                first = False
    return found


def _pieces(sentence: str, languages: Sequence[Compiled]) -> list[tuple[str, bool]]:
    """A sentence cut at its stronger marks and before words such as "but"; whether each piece begins with one."""
    low = sentence.casefold().replace("'", "\u2060")  # keeps places; no pattern has that sign
    low = low if len(low) == len(sentence) else sentence.lower()
    cuts = {found.end(): False for found in _SPLIT.finditer(sentence)}
    for language in languages:
        kept = [found.span() for found in language.harmless.finditer(low)]  # "no one but Louis"
        cuts |= {
            place: True
            for place in (found.start() for found in language.contrast.finditer(low))
            if not any(start < place < end for start, end in kept)
        }
        cuts |= {found.end(): True for found in language.ending.finditer(low)}
    if (opening := min((place for place, turns in cuts.items() if turns), default=-1)) >= 0:
        # "Although there was no post, he sent it": what follows the comma turns.
        comma = sentence.find(", ", opening)
        if comma >= 0 and not any(map(str.isalnum, sentence[:opening])):
            cuts.setdefault(comma + 1, True)
    places = [0, *sorted(place for place in cuts if 0 < place < len(sentence)), len(sentence)]
    return [(sentence[start:end], cuts.get(start, False)) for start, end in pairwise(places)]


def words_of(text: str) -> list[str]:
    """The words of a text as written, numbers with their separators."""
    return _WORD.findall(text)


@lru_cache(maxsize=4096)
def stems(text: str, common: frozenset[str]) -> frozenset[str]:
    """What a text talks about: the beginnings of its words, pairs of Han signs, fours of Thai; without `common` words."""
    found: set[str] = set()
    low = text.casefold().replace("'s ", " ").replace("'", "")
    for run in _HAN.findall(low):
        found.update(run[place : place + 2] for place in range(len(run) - 1))
    for run in _THAI.findall(low):
        found.update(run[place : place + 4] for place in range(len(run) - 3))
    for word in _WORD.findall(_THAI.sub(" ", _HAN.sub(" ", low))):
        if word not in common and (len(word) > 2 or word.isdigit() or not word.isascii()):
            found.add(stem(word))
    return frozenset(found)


def stem(word: str) -> str:
    """The beginning of a word that its forms share."""
    if (number := _DIGITS.match(word)) is not None:
        return number.group().replace(",", "")
    for script, size in _PREFIX:
        if script.match(word):
            return word[:size]
    return word[:_LATIN_PREFIX]


def common_words(languages: Sequence[Compiled]) -> frozenset[str]:
    """The words that name nothing, of all these languages."""
    return frozenset().union(*(language.common for language in languages))


def without_next_word(text: str, place: int) -> str:
    """What follows a place, less the end of the word that stands there, in scripts with spaces."""
    rest = text[place:]
    if not rest or rest[0].isspace() or _HAN.match(rest) or _THAI.match(rest):
        return rest
    return rest.partition(" ")[2]
