"""A sentence's clauses, each beside the sentence of the premise that says most of it."""

from __future__ import annotations

from dataclasses import dataclass

from evalwright.models.consistency.lexical.lexicon import CLAUSE_BREAKS
from evalwright.models.consistency.lexical.premise import Premise
from evalwright.models.consistency.lexical.words import Token

_SMALLEST = 2
"""Words of content that a clause has at the least; a smaller one belongs to its neighbour."""


@dataclass(frozen=True, slots=True)
class Clause:
    """tokens: of the clause. best: the number of the sentence of the premise. recall: the share of its words that are there."""

    tokens: tuple[Token, ...]
    best: int
    recall: float


def clauses_of(tokens: tuple[Token, ...], premise: Premise) -> tuple[Clause, ...]:
    """Cut at punctuation and conjunctions."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if (token.is_sign or token.lower in CLAUSE_BREAKS) and _size(parts[-1]) >= _SMALLEST:
            parts.append([])
        parts[-1].append(token)
    if len(parts) > 1 and _size(parts[-1]) < _SMALLEST:
        last = parts.pop()
        parts[-1] += last
    return tuple(_beside(tuple(part), premise) for part in parts if _size(part))


def _size(part: list[Token]) -> int:
    return sum(token.content for token in part)


def _beside(tokens: tuple[Token, ...], premise: Premise) -> Clause:
    matched = [0.0] * len(premise.sentences)
    total = 0.0
    for token in tokens:
        if token.content:
            weight = premise.weight(token)
            total += weight
            for number, how in premise.where(token).items():
                matched[number] += weight * how
    best = max(range(len(matched)), key=lambda number: (matched[number], -number))
    return Clause(tokens, best, matched[best] / total if total else 1.0)
