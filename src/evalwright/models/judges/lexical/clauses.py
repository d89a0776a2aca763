"""A sentence's clauses, each beside the one to three sentences of the premise that say most of it."""

from __future__ import annotations

from dataclasses import dataclass

from evalwright.models.judges.lexical.lexicon import CALENDAR, CLAUSE_BREAKS, UNITS
from evalwright.models.judges.lexical.premise import Premise
from evalwright.models.judges.lexical.words import SIDES, Token

_SMALLEST = 2
"""Words of content that a clause has at the least; a smaller one belongs to its neighbour."""
_MOST = 3
_WORTH = 0.15
"""What a further sentence of the premise must add to the share of the clause's words that the chosen ones have."""
_CONTEXT = 0.3
"""How much the rest of the sentence counts in finding a clause's place."""


@dataclass(frozen=True, slots=True)
class Clause:
    """tokens: of the clause. aligned: numbers of sentences of the premise, the best first. recall: the weighted share of its
    words that they have. best_recall: that the first of them has. likeness: the same without numbers, units, names and opposites.
    start: the place of its first token in its sentence."""

    tokens: tuple[Token, ...]
    aligned: tuple[int, ...]
    recall: float
    best_recall: float
    likeness: float
    start: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A sentence of the hypothesis with its clauses, beside a premise."""

    text: str
    tokens: tuple[Token, ...]
    clauses: tuple[Clause, ...]
    premise: Premise


def read_sentence(tokens: tuple[Token, ...], premise: Premise) -> Reading:
    """Cut at punctuation and conjunctions, and align."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if (token.is_sign or token.lower in CLAUSE_BREAKS) and _size(parts[-1]) >= _SMALLEST:
            parts.append([])
        parts[-1].append(token)
    if len(parts) > 1 and _size(parts[-1]) < _SMALLEST:
        last = parts.pop()
        parts[-1] += last
    context = _scores(tokens, premise)[0]
    clauses, start = [], 0
    for part in parts:
        if _size(part):
            clauses.append(_aligned(tuple(part), context, premise, start))
        start += len(part)
    return Reading(" ".join(token.text for token in tokens), tokens, tuple(clauses), premise)


def sentence_likeness(reading: Reading) -> float:
    """The weighted share of a sentence's words that the nearest single sentence of the premise has.

    Numbers, units, names and opposites are left out: a sentence in which one of them was put for another is still alike.
    """
    plain = _plain(reading.tokens, reading.premise)
    scores, total = _scores(plain, reading.premise)
    return max(scores.values(), default=0.0) / total if total else 0.0


def _plain(tokens: tuple[Token, ...], premise: Premise) -> tuple[Token, ...]:
    return tuple(
        token
        for token in tokens
        if token.content
        and token.value is None
        and token.stem not in SIDES
        and token.lower not in UNITS
        and token.lower not in CALENDAR
        and not premise.names(token)
    )


def _size(part: list[Token]) -> int:
    return sum(token.content for token in part)


def _scores(tokens: tuple[Token, ...], premise: Premise) -> tuple[dict[int, float], float]:
    """By sentence of the premise, the weight of the words that it has; and the weight of all."""
    out: dict[int, float] = {}
    total = 0.0
    for token in tokens:
        if token.content:
            weight = premise.weight(token)
            total += weight
            for number, how in premise.where(token).items():
                out[number] = out.get(number, 0.0) + weight * how
    return out, total


def _aligned(tokens: tuple[Token, ...], context: dict[int, float], premise: Premise, start: int) -> Clause:
    scores, total = _scores(tokens, premise)
    if not scores or not total:
        best = max(context, key=lambda number: (context[number], -number), default=0)
        share = 0.0 if total else 1.0
        return Clause(tokens, (best,), share, share, share, start)
    ranked = sorted(
        scores, key=lambda number: (-scores[number] - _CONTEXT * context.get(number, 0.0), number)
    )
    chosen = [ranked[0]]
    have = scores[ranked[0]]
    content = [(premise.weight(token), premise.where(token)) for token in tokens if token.content]
    while len(chosen) < _MOST:
        best, more = -1, have
        for number in ranked[1:12]:
            both = sum(
                weight * max(found.get(each, 0.0) for each in (*chosen, number)) for weight, found in content
            )
            if both > more + 1e-12:
                best, more = number, both
        if best < 0 or more - have < _WORTH * total:
            break
        chosen.append(best)
        have = more
    best_recall = scores[ranked[0]] / total
    plain = _plain(tokens, premise)
    like, whole = _scores(plain, premise)
    alike = like.get(ranked[0], 0.0) / whole if len(plain) >= _SMALLEST else best_recall
    return Clause(tokens, tuple(chosen), have / total, best_recall, alike, start)
