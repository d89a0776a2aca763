"""Where a clause says the contrary of, or more than, the sentence of the premise beside it. Each is weighted by how much of the
clause that sentence has: what is not about the same thing cannot contradict it."""

from __future__ import annotations

from evalwright.models.consistency.lexical.clauses import Clause
from evalwright.models.consistency.lexical.lexicon import ABSOLUTES, CAUSAL, HEDGES, NEGATORS
from evalwright.models.consistency.lexical.premise import Premise
from evalwright.models.consistency.lexical.words import SIDES, Token

_REACH = 12
"""Tokens around the matched ones in which a negation or a hedge of the premise is looked for."""


def negation_differs(clause: Clause, premise: Premise) -> float:
    """One of the two denies and the other does not."""
    here = _has(clause.tokens, NEGATORS)
    there = _has(_beside(clause, premise), NEGATORS)
    return _about(clause) if here != there else 0.0


def antonyms(clause: Clause, premise: Premise) -> float:
    """Words whose opposite, and not they themselves, stands in the premise's sentence."""
    there = premise.sentences[clause.best]
    stems = {token.stem for token in there}
    sides = {side for stem in stems for side in SIDES.get(stem, ())}
    count = 0
    for token in clause.tokens:
        own = SIDES.get(token.stem)
        if own and token.stem not in stems:
            count += any((number, 1 - side) in sides and (number, side) not in sides for number, side in own)
    return _about(clause) * count


def hedges_removed(clause: Clause, premise: Premise) -> float:
    """The premise says "may" or "suspects", and the clause does not."""
    there = _has(_beside(clause, premise), HEDGES)
    return _about(clause) if there and not _has(clause.tokens, HEDGES) else 0.0


def overstated(clause: Clause, premise: Premise) -> float:
    """The clause says "all", "never", "proved", and the premise's sentence does not."""
    there = {token.lower for token in premise.sentences[clause.best]}
    return _about(clause) * sum(
        token.lower in ABSOLUTES and token.lower not in there for token in clause.tokens
    )


def causes_added(clause: Clause, premise: Premise) -> float:
    """The clause gives a cause, and the premise's sentence gives none."""
    there = _has(premise.sentences[clause.best], CAUSAL)
    return 1.0 if _has(clause.tokens, CAUSAL) and not there else 0.0


def roles_swapped(clause: Clause, premise: Premise) -> float:
    """Words that stand before and after a third one here, and after and before it there, without a change of voice."""
    there = premise.sentences[clause.best]
    place = {token.stem: number for number, token in reversed(list(enumerate(there))) if token.content}
    known = [token for token in clause.tokens if token.content and token.stem in place]
    if _passive(clause.tokens) != _passive(there):
        return 0.0
    swapped = sum(
        place[before.stem] > place[middle.stem] > place[after.stem]
        for before, middle, after in zip(known, known[1:], known[2:], strict=False)
    )
    return _about(clause) * min(1, swapped)


def _about(clause: Clause) -> float:
    """0 where the premise's sentence has less than half of the clause's words, 1 where it has all."""
    return max(0.0, 2 * clause.recall - 1)


def _beside(clause: Clause, premise: Premise) -> tuple[Token, ...]:
    """The tokens of the premise's sentence around those that the clause has too."""
    there = premise.sentences[clause.best]
    stems = {token.stem for token in clause.tokens if token.content}
    places = [number for number, token in enumerate(there) if token.content and token.stem in stems]
    if not places:
        return there
    return there[max(0, places[0] - _REACH) : places[-1] + _REACH]


def _has(tokens: tuple[Token, ...], words: frozenset[str]) -> bool:
    return any(
        token.lower in words or (token.lower.endswith("n't") and words is NEGATORS) for token in tokens
    )


def _passive(tokens: tuple[Token, ...]) -> bool:
    return any(token.lower == "by" for token in tokens)
