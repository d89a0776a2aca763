"""Evidence from where a clause says the contrary of, or more than, the sentence of the premise beside it.

Each is weighted by how much of the clause that sentence has: what is not about the same thing cannot contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator

from evalwright.models.judges.lexical.clauses import Clause, Reading
from evalwright.models.judges.lexical.evidence import Evidence, about, beside, words
from evalwright.models.judges.lexical.lexicon import (
    ABSOLUTES,
    CONTRASTED,
    HEDGES,
    NEGATIVES,
    ROLE_PREPOSITIONS,
    SINGLE_CAUSES,
    UNITS,
)
from evalwright.models.judges.lexical.premise import Premise
from evalwright.models.judges.lexical.words import SIDES, Token

_REACH, _HEDGE_REACH = 8, 3
"""Tokens around the matched ones in which a negation, and a hedge, of the premise is looked for."""
_SCOPE, _DENIED = 6, 2
"""Tokens, and words of content among them, that a negation is about."""
_CAUSE_LENGTH = 10
_OPPOSITE = 0.7
_HEDGE = 0.6
"""What a dropped hedge counts beside an added "all" or "never"."""
_BE = frozenset(["was", "were", "been", "be", "is", "are", "being"])


def negations(reading: Reading) -> Iterator[Evidence]:
    """A word of both that is denied in one of them only, while no opposite word makes up for it."""
    for clause in reading.clauses:
        there = reading.premise.sentences[clause.aligned[0]]
        here, beyond = _denied(clause.tokens), _denied(there)
        stems = {token.stem for token in there if token.content}
        shared = [token for token in clause.tokens if token.content and token.stem in stems]
        differ = [token.text for token in shared if (token.stem in here) != (token.stem in beyond)]
        if differ and not _opposites(clause, reading.premise):
            yield Evidence("negation differs", about(clause), " ".join(differ), beside(reading, clause))


def _denied(tokens: tuple[Token, ...]) -> set[str]:
    """Stems that a negation stands before, or, where nothing follows, after."""
    out: set[str] = set()
    for place, token in enumerate(tokens):
        if token.lower not in NEGATIVES and not token.lower.endswith("n't"):
            continue
        near = _until_sign(tokens[place + 1 : place + 1 + _SCOPE])
        out ^= set(near or _until_sign(tokens[max(0, place - _SCOPE) : place][::-1]))
    return out


def _until_sign(tokens: tuple[Token, ...]) -> list[str]:
    out: list[str] = []
    for token in tokens:
        if token.is_sign or len(out) == _DENIED:
            break
        if token.content and token.value is None:
            out.append(token.stem)
    return out


def antonyms(reading: Reading) -> Iterator[Evidence]:
    """Words whose opposite, and not they themselves, stands in the premise's sentence, and neither of them is denied."""
    for clause in reading.clauses:
        denied = bool(_denied(clause.tokens)) != bool(_denied(_around(clause, reading.premise)))
        if not denied and (found := _opposites(clause, reading.premise)):
            yield Evidence(
                "opposite",
                max(about(clause), min(_OPPOSITE, clause.likeness)),
                ", ".join(found),
                beside(reading, clause),
            )


def hedges(reading: Reading) -> Iterator[Evidence]:
    """The premise says "may", "suspects" or "on condition", and the whole sentence does not."""
    if _hedge(reading.tokens):
        return
    for clause in reading.clauses:
        lost = _hedge(_around(clause, reading.premise, _HEDGE_REACH))
        if lost:
            said = f"{words(clause)} (without {lost!r})"
            yield Evidence("overstated", _HEDGE * about(clause) ** 2, said, beside(reading, clause))


def _hedge(tokens: tuple[Token, ...]) -> str:
    """The first hedge; "May" is a month."""
    return next((token.text for token in tokens if token.lower in HEDGES and token.text != "May"), "")


def absolutes(reading: Reading) -> Iterator[Evidence]:
    """The clause says "all", "never", "proved", and the premise's sentences do not."""
    for clause in reading.clauses:
        there = {token.lower for number in clause.aligned for token in reading.premise.sentences[number]}
        for token in clause.tokens:
            if token.lower in ABSOLUTES and token.lower not in there:
                yield Evidence("overstated", about(clause), token.text, beside(reading, clause))


def causes(reading: Reading) -> Iterator[Evidence]:
    """A cause that the premise has far from what it is said to have caused, or does not have as a cause."""
    premise = reading.premise
    for place, token in enumerate(reading.tokens):
        if token.lower not in SINGLE_CAUSES:
            continue
        after = reading.tokens[place + 1 : place + 1 + _CAUSE_LENGTH]
        before = reading.tokens[max(0, place - _CAUSE_LENGTH) : place]
        cause, effect = _place(after, premise), _place(before, premise)
        if cause is None:
            continue
        near = premise.around([cause[0]])
        said = any(_count(premise.sentences[number], SINGLE_CAUSES) for number in near)
        other = effect is not None and effect[0] != cause[0]
        apart = other and effect is not None and abs(cause[0] - effect[0]) > 1
        own = other and effect is not None and _count(premise.sentences[effect[0]], SINGLE_CAUSES) > 0
        strength = min(1.0, 0.4 * (not said) + 0.3 * apart + 0.3 * (1 - cause[1]) + 0.7 * own)
        text = " ".join(each.text for each in (token, *after))
        yield Evidence("cause added", strength, text, premise.texts[cause[0]])


def roles(reading: Reading) -> Iterator[Evidence]:
    """Words before and after a third one here, and after and before it there, without a change of voice; or an opposite
    (men, women) beside another's words."""
    for clause in reading.clauses:
        for number in clause.aligned[:2]:
            there = reading.premise.sentences[number]
            here = clause.tokens
            found = _swapped(here, there) or _sides_swapped(here, there) or _objects_swapped(here, there)
            if found:
                yield Evidence("roles swapped", max(0.5, about(clause)), found, reading.premise.texts[number])
                break


def _swapped(here: tuple[Token, ...], there: tuple[Token, ...]) -> str:
    """Three words of both in the other order; or in the same order, where only one of the two goes on with "by"."""
    place = _places(there)
    known = [
        number
        for number, token in enumerate(here)
        if token.content and token.stem in place and not _is_noun(here, number) and token.value is None
    ]
    other_voice = _passive(here) != _passive(there)
    for first, second, third in zip(known, known[1:], known[2:], strict=False):
        before, middle, after = (place[here[number].stem] for number in (first, second, third))
        if here[second].lower in UNITS:
            continue
        by = _goes_on_by(here, second) != _goes_on_by(there, middle)
        if (before > middle > after and not other_voice) or (by and before < middle < after):
            return " ".join(here[number].text for number in (first, second, third))
    return ""


def _goes_on_by(tokens: tuple[Token, ...], number: int) -> bool:
    return number + 1 < len(tokens) and tokens[number + 1].lower == "by"


def _is_noun(tokens: tuple[Token, ...], number: int) -> bool:
    """ "the cost of": what is before and after it are in no order."""
    return number + 1 < len(tokens) and tokens[number + 1].lower == "of"


def _sides_swapped(here: tuple[Token, ...], there: tuple[Token, ...]) -> str:
    place = _places(there)
    content = [token for token in here if token.content]
    for number, token in enumerate(content):
        opposite = _opposite_of(token, place)
        if opposite is None or token.stem not in place:
            continue
        for other in content[number + 1 : number + 3]:
            at = place.get(other.stem)
            if at is None or other.stem in (token.stem, opposite):
                continue
            if abs(at - place[opposite]) < abs(at - place[token.stem]):
                return f"{token.text} {other.text}"
    return ""


def _objects_swapped(here: tuple[Token, ...], there: tuple[Token, ...]) -> str:
    """ "against the city" here, and "against" another and the city elsewhere in the sentence there."""
    source = _objects(there)
    stems = {token.stem for token in there if token.content}
    for word, stem in _objects(here):
        others = {each for preposition, each in source if preposition == word}
        if others and stem in stems and stem not in others and any(each == stem for _, each in source):
            return f"{word} {stem}"
    return ""


def _objects(tokens: tuple[Token, ...]) -> list[tuple[str, str]]:
    """(preposition, stem of the first word of content after it)."""
    out = []
    for place, token in enumerate(tokens):
        if token.lower in ROLE_PREPOSITIONS:
            near = _until_sign(tokens[place + 1 : place + 4])
            if near:
                out.append((token.lower, near[0]))
    return out


def _opposite_of(token: Token, place: dict[str, int]) -> str | None:
    own = SIDES.get(token.stem, frozenset())
    wanted = {(number, 1 - side) for number, side in own}
    return next((stem for stem in place if wanted & SIDES.get(stem, frozenset())), None) if wanted else None


def _places(tokens: tuple[Token, ...]) -> dict[str, int]:
    return {token.stem: number for number, token in reversed(list(enumerate(tokens))) if token.content}


def _opposites(clause: Clause, premise: Premise) -> list[str]:
    there = _around(clause, premise)
    stems = {token.stem for number in clause.aligned for token in premise.sentences[number]}
    sides = {
        side
        for token in there
        if token.content or token.lower in CONTRASTED
        for side in SIDES.get(token.stem, ())
    }
    return [
        token.text
        for token in clause.tokens
        if token.stem not in stems
        and (token.content or token.lower in CONTRASTED)
        and any(
            (number, 1 - side) in sides and (number, side) not in sides
            for number, side in SIDES.get(token.stem, ())
        )
    ]


def _around(clause: Clause, premise: Premise, reach: int = _REACH) -> tuple[Token, ...]:
    """The tokens of the premise's sentence around those that the clause has too."""
    number = clause.aligned[0]
    there = premise.sentences[number]
    stems = {token.stem for token in clause.tokens if token.content}
    places = [place for place, token in enumerate(there) if token.content and token.stem in stems]
    if not places:
        return there
    return there[max(0, places[0] - reach) : places[-1] + reach]


def _place(tokens: tuple[Token, ...], premise: Premise) -> tuple[int, float] | None:
    """The sentence of the premise that has most of some words, and the share it has."""
    scores: dict[int, float] = {}
    total = 0.0
    for token in tokens:
        if token.content:
            weight = premise.weight(token)
            total += weight
            for number, how in premise.where(token).items():
                scores[number] = scores.get(number, 0.0) + weight * how
    if not total:
        return None
    best = max(scores, key=lambda number: (scores[number], -number), default=0)
    return best, scores.get(best, 0.0) / total


def _count(tokens: tuple[Token, ...], table: frozenset[str]) -> int:
    return sum(token.lower in table for token in tokens)


def _passive(tokens: tuple[Token, ...]) -> bool:
    return any(
        token.lower == "by" or (token.lower in _BE and _participle(tokens[place + 1 : place + 3]))
        for place, token in enumerate(tokens)
    )


def _participle(tokens: tuple[Token, ...]) -> bool:
    return any(token.lower.endswith(("ed", "en")) for token in tokens)
