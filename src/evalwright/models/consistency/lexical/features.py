"""What a sentence has against it, given a premise: numbers from 0 (nothing) to 1, each with a name a person can read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalwright.models.consistency.lexical.clauses import Clause, clauses_of
from evalwright.models.consistency.lexical.contrasts import (
    antonyms,
    causes_added,
    hedges_removed,
    negation_differs,
    overstated,
    roles_swapped,
)
from evalwright.models.consistency.lexical.lexicon import CALENDAR, ORDINALS, ROUNDING, UNITS
from evalwright.models.consistency.lexical.premise import Premise, ngrams, unit
from evalwright.models.consistency.lexical.words import Token

_REACH = 4
"""Tokens after a number in which its unit may stand."""
_LONG_RUN = 6.0
_BETWEEN = 2
"""Words of content that may stand between two neighbours of a word that was put in their place."""
_PARAPHRASED = 0.6
"""The share of words that a faithful text may put otherwise than its source does; only what is beyond counts against it."""
_COUNTED_BY_EYE = 4
_EXACT, _ROUGH = 0.001, 0.05
"""By how much of itself a number may differ, without and with a word such as "about" before it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the hypothesis beside the premise. best: the window of the premise that says most of it."""

    tokens: tuple[Token, ...]
    text: str
    premise: Premise
    best: tuple[int, ...]
    clauses: tuple[Clause, ...]

    @property
    def content(self) -> list[Token]:
        """The tokens that say what it is about."""
        return [token for token in self.tokens if token.content]


def read_sentence(text: str, tokens: tuple[Token, ...], premise: Premise) -> Sentence:
    """The sentence with the window that supports it best."""
    content = [token for token in tokens if token.content]
    best = max(
        range(len(premise.windows)),
        key=lambda place: (
            recall(content, premise, premise.windows[place]) - 0.03 * len(premise.windows[place]),
            -place,
        ),
    )
    return Sentence(tokens, text, premise, premise.windows[best], clauses_of(tokens, premise))


def recall(content: Sequence[Token], premise: Premise, window: Sequence[int] | None = None) -> float:
    """The weighted share of tokens that the window (None: the whole premise) has; 1 where there are none."""
    total = have = 0.0
    for token in content:
        weight = premise.weight(token)
        found = premise.where(token)
        total += weight
        if found:
            matched = found.values() if window is None else [found.get(number, 0.0) for number in window]
            have += weight * max(matched, default=0.0)
    return have / total if total else 1.0


def words_missing(sentence: Sentence) -> float:
    """The weighted share of its words that the premise has nowhere, from the share on that a paraphrase may lack."""
    return _beyond(1 - recall(sentence.content, sentence.premise), _PARAPHRASED)


def words_scattered(sentence: Sentence) -> float:
    """The weighted share of its words that the best window does not have, from the same share on."""
    return _beyond(1 - recall(sentence.content, sentence.premise, sentence.best), _PARAPHRASED)


def clause_missing(sentence: Sentence) -> float:
    """The same of its worst clause, each against its own best window."""
    return max((_beyond(1 - clause.recall, _PARAPHRASED) for clause in sentence.clauses), default=0.0)


def run_missing(sentence: Sentence) -> float:
    """The longest run of words one after another that the premise has nowhere: an invented detail is in one piece."""
    longest = run = 0
    for token in sentence.content:
        run = 0 if sentence.premise.where(token) else run + 1
        longest = max(longest, run)
    return min(1.0, longest / _LONG_RUN)


def pairs_missing(sentence: Sentence) -> float:
    """The share of neighbouring words, both in the premise, that no two neighbouring sentences of it have together."""
    content = sentence.content
    seen = apart = 0
    for one, other in itertools.pairwise(content):
        here, there = sentence.premise.where(one), sentence.premise.where(other)
        if here and there and one.stem != other.stem:
            seen += 1
            apart += not any(abs(a - b) <= 1 for a in here for b in there)
    return apart / seen if seen else 0.0


def words_substituted(sentence: Sentence) -> float:
    """Words between two neighbours that one sentence of the premise has with something else between them."""
    content, premise = sentence.content, sentence.premise
    found = 0
    for before, token, after in zip(content, content[1:], content[2:], strict=False):
        both = premise.where(before).keys() & premise.where(after).keys()
        found += any(
            premise.has_between(number, before, after, _BETWEEN)
            for number in both - premise.where(token).keys()
        )
    return _several(found)


def words_apart(sentence: Sentence) -> float:
    """Clauses whose words that one sentence of the premise alone has come from sentences far from each other."""
    apart = 0
    for clause in sentence.clauses:
        alone = [
            place
            for token in clause.tokens
            if token.content and (place := sentence.premise.only(token)) is not None
        ]
        apart += bool(alone) and max(alone) - min(alone) > 1
    return _several(apart)


def letters_differ(sentence: Sentence) -> float:
    """1 less the cosine of hashed character n-grams with the nearest window, from the same share on."""
    vector = unit(ngrams(sentence.text))
    return _beyond(float(1 - (sentence.premise.vectors() @ vector).max(initial=0.0)), _PARAPHRASED)


def numbers_missing(sentence: Sentence) -> float:
    """Numbers, months and weekdays that the premise neither has nor gives as the sum or difference of two of its own.

    Fractions, multiples, ordinals and the smallest counts are left out: writers make them of what they read.
    """
    premise, lacking = sentence.premise, 0
    for place, token in enumerate(sentence.tokens):
        if token.value is not None and (token.text[0].isdigit() or token.value >= _COUNTED_BY_EYE):
            rounded = {each.lower for each in sentence.tokens[max(0, place - 2) : place]} & ROUNDING
            lacking += token.lower not in ORDINALS and not premise.gives(
                token.value, _ROUGH if rounded else _EXACT
            )
        else:
            lacking += token.lower in CALENDAR and not premise.has(token.stem)
    return _several(lacking)


def units_differ(sentence: Sentence) -> float:
    """Numbers that the premise has, but with other units only."""
    wrong = 0
    for value, unit_here in _measures(sentence.tokens):
        there = [
            other
            for tokens in sentence.premise.sentences
            for number, other in _measures(tokens)
            if number == value
        ]
        wrong += bool(there) and unit_here not in there
    return _several(wrong)


def numbers_moved(sentence: Sentence) -> float:
    """Numbers whose neighbouring words stand nowhere near them in the premise."""
    content = sentence.content
    moved = 0
    for place, token in enumerate(content):
        if token.value is None or not (here := sentence.premise.where(token)):
            continue
        near = [each for each in content[max(0, place - 2) : place + 3] if each.value is None]
        known = [found for each in near if (found := sentence.premise.where(each))]
        moved += bool(known) and not any(number in found for found in known for number in here)
    return _several(moved)


def names_missing(sentence: Sentence) -> float:
    """Names that the premise does not have."""
    return _several(sum(token.name and not sentence.premise.has(token.stem) for token in sentence.tokens))


def names_apart(sentence: Sentence) -> float:
    """Clauses whose names and numbers come from sentences of the premise that are far from each other."""
    apart = 0
    for clause in sentence.clauses:
        anchors = [
            token for token in clause.tokens if sentence.premise.names(token) or token.value is not None
        ]
        places = [found for token in anchors if (found := sentence.premise.where(token))]
        apart += any(
            not any(abs(a - b) <= 1 for a in one for b in other)
            for number, one in enumerate(places)
            for other in places[:number]
        )
    return _several(apart)


def _over_clauses(count: Callable[[Clause, Premise], float]) -> Callable[[Sentence], float]:
    def feature(sentence: Sentence) -> float:
        return _several(sum(count(clause, sentence.premise) for clause in sentence.clauses))

    return feature


FEATURES: dict[str, Callable[[Sentence], float]] = {
    "words missing": words_missing,
    "words scattered": words_scattered,
    "clause missing": clause_missing,
    "run missing": run_missing,
    "pairs missing": pairs_missing,
    "words substituted": words_substituted,
    "words apart": words_apart,
    "letters differ": letters_differ,
    "numbers missing": numbers_missing,
    "numbers moved": numbers_moved,
    "units differ": units_differ,
    "names missing": names_missing,
    "names apart": names_apart,
    "negation differs": _over_clauses(negation_differs),
    "antonyms": _over_clauses(antonyms),
    "hedges removed": _over_clauses(hedges_removed),
    "overstated": _over_clauses(overstated),
    "causes added": _over_clauses(causes_added),
    "roles swapped": _over_clauses(roles_swapped),
}
"""By name; the weights carry the same names."""


def _beyond(share: float, free: float) -> float:
    """What of a share lies beyond the part that is free, from 0 to 1."""
    return max(0.0, share - free) / (1 - free)


def _several(count: float) -> float:
    """0 for none, 1/2 for one, 3/4 for two, ..."""
    return float(1 - 0.5**count)


def _measures(tokens: Sequence[Token]) -> list[tuple[float, str]]:
    """(number, unit) of every number with a unit close behind it, or a sign of money before it."""
    out: list[tuple[float, str]] = []
    for place, token in enumerate(tokens):
        if token.value is None:
            continue
        before = tokens[place - 1].lower if place else ""
        if before in "$€£" and before:
            out.append((token.value, UNITS[before]))
            continue
        for other in tokens[place + 1 : place + 1 + _REACH]:
            if other.value is not None:
                break
            if (kind := UNITS.get(other.lower)) is not None or other.lower == "cent":
                out.append((token.value, kind or "percent"))
                break
    return out
