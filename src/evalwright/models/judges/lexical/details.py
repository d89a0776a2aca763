"""Evidence from what the premise lacks or has elsewhere: words, numbers, units, dates, names."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from evalwright.models.judges.lexical.clauses import Clause, Reading
from evalwright.models.judges.lexical.evidence import Evidence, beside, words
from evalwright.models.judges.lexical.lexicon import CALENDAR, DAYTIMES
from evalwright.models.judges.lexical.numbers import Quantity, close, follows, quantities_of
from evalwright.models.judges.lexical.premise import Premise, Where
from evalwright.models.judges.lexical.words import Token

_PARAPHRASED = 0.4
"""The share of words that a faithful text may put otherwise than its source does; only what is beyond counts against it."""
_RELATED, _UNRELATED = 0.42, 0.3
"""The share of words from which on a text is about the premise, and up to which it is not."""
_LONG_RUN = 5.0
_COUNTED_BY_EYE = 3
_PLACED, _DISTANT = 0.4, 2
"""The share of its words by which a clause has its place, and how many sentences apart two places are distant."""
_UNKNOWN_NAME, _CLAUSE = 1.0, 0.4
_ELSEWHERE, _FAR = 0.5, 0.4
"""What a date or number counts that the premise has, but elsewhere; and a neighbour that stands one sentence further."""
_SIDE = 2
"""Words of content on each side of a name or number by which its place in the premise is known."""


def unlike(readings: Sequence[Reading]) -> Iterator[Evidence]:
    """A text most of whose words the premise does not have where its clauses seem to come from."""
    found = total = 0.0
    for reading in readings:
        for clause in reading.clauses:
            size = sum(token.content for token in clause.tokens)
            found += size * clause.recall
            total += size
    share = found / total if total else 1.0
    lacking = min(1.0, max(0.0, (_RELATED - share) / (_RELATED - _UNRELATED)))
    if lacking:
        yield Evidence("other words", lacking, " ".join(reading.text for reading in readings), "")


def invented(reading: Reading) -> Iterator[Evidence]:
    """The longest run of words, one after another, that the premise has nowhere: an invented detail is in one piece."""
    best: list[Token] = []
    run: list[Token] = []
    for token in reading.tokens:
        if not token.content:
            continue
        run = [] if reading.premise.where(token) else [*run, token]
        if len(run) > len(best):
            best = run
    if len(best) > 1:
        said = " ".join(token.text for token in best)
        yield Evidence("invented detail", min(1.0, (len(best) - 1) / _LONG_RUN), said, "")


def strange_clauses(reading: Reading) -> Iterator[Evidence]:
    """Clauses of which the premise has little, in a sentence of which it has more."""
    for clause in reading.clauses:
        lacking = _beyond(1 - clause.recall)
        if lacking:
            yield Evidence("invented detail", _CLAUSE * lacking, words(clause), "")


def numbers(reading: Reading) -> Iterator[Evidence]:
    """Numbers and units that the aligned sentences have otherwise, and that follow from none of their numbers."""
    for quantity in quantities_of(reading.tokens):
        clause = _clause_at(reading, quantity.place)
        if clause is not None:
            yield from _judge(quantity, clause, reading)


def _judge(quantity: Quantity, clause: Clause, reading: Reading) -> Iterator[Evidence]:
    premise = reading.premise
    near = [each for number in premise.around(clause.aligned) for each in premise.quantities(number)]
    own = [each for number in clause.aligned for each in premise.quantities(number)]
    same = [each for each in near if close(quantity, each.value) and _may_be(quantity, each, near)]
    said = f"{quantity.text} {quantity.unit}".strip()
    kind = "date differs" if quantity.kind == "year" else "number differs"
    there = beside(reading, clause)
    if same:
        if quantity.unit and not any(each.unit in ("", quantity.unit) for each in same):
            yield Evidence("unit differs", 1.0, said, there)
        elif quantity.rate and not any(each.rate in ("", quantity.rate) for each in same):
            yield Evidence("unit differs", 1.0, f"{said} a {quantity.rate}", there)
        elif quantity.unit and not any(each.unit == quantity.unit for each in same):
            yield Evidence("unit differs", 0.3, said, there)
        return
    if follows(quantity, own) or follows(quantity, near):
        return
    small = quantity.value <= _COUNTED_BY_EYE and not quantity.text[0].isdigit()
    if small and quantity.kind == "number" and not quantity.unit:
        return
    elsewhere = any(premise.having(quantity.value)) or follows(quantity, premise.all_quantities())
    yield Evidence(kind, _ELSEWHERE if elsewhere else 1.0, said, there)


def _may_be(one: Quantity, other: Quantity, near: list[Quantity]) -> bool:
    """ "Sixty per cent" is not "60 lamps"; it may be a 60 beside other percentages."""
    if one.unit != "percent" or other.unit:
        return True
    return any(each.unit == "percent" for each in near)


def dates(reading: Reading) -> Iterator[Evidence]:
    """Months, weekdays, seasons and times of day that the premise does not have, or not near."""
    premise = reading.premise
    for clause in reading.clauses:
        near = premise.around(clause.aligned)
        for token in clause.tokens:
            if token.lower not in CALENDAR and token.lower not in DAYTIMES:
                continue
            where = premise.where(token)
            if not any(where.get(number) == 1.0 for number in near):
                strength = _ELSEWHERE if premise.has(token.stem) else 1.0
                yield Evidence("date differs", strength, token.text, beside(reading, clause))


def names_missing(reading: Reading) -> Iterator[Evidence]:
    """Names that the premise does not have."""
    for token in reading.tokens:
        if token.name and not reading.premise.has(token.stem) and not reading.premise.where(token):
            yield Evidence("invented detail", _UNKNOWN_NAME, token.text, "")


def bound_elsewhere(reading: Reading) -> Iterator[Evidence]:
    """Names and numbers whose neighbours stand, in the premise, beside other names and numbers."""
    content = [token for token in reading.tokens if token.content]
    premise = reading.premise
    place = 0
    while place < len(content):
        end = place + 1
        name = premise.names(content[place])
        while name and end < len(content) and premise.names(content[end]):
            end += 1
        if name or content[place].value is not None:
            here = {number for token in content[place:end] for number in premise.where(token)}
            others = [
                other
                for other in (*content[max(0, place - _SIDE) : place], *content[end : end + _SIDE])
                if other.value is None and not premise.names(other) and premise.where(other)
            ]
            if here and others and (apart := _apart(here, others, premise)):
                said = " ".join(token.text for token in (*content[place:end], *others))
                yield Evidence("name of another" if name else "number of another", apart, said, "")
        place = end


def _apart(here: set[int], others: list[Token], premise: Premise) -> float:
    """The weighted share of a word's neighbours that no sentence has together with it, or next to one with it."""
    total = far = 0.0
    for other in others:
        weight = premise.weight(other)
        there = premise.where(other)
        total += weight
        if not here & there.keys():
            near = any(number + step in there for number in here for step in (-1, 1))
            far += weight * (_FAR if near else 1.0)
    return far / total


def joined_otherwise(reading: Reading) -> Iterator[Evidence]:
    """Neighbouring words, both in the premise, that no two neighbouring sentences of it have together."""
    content = [token for token in reading.tokens if token.content]
    apart = []
    for one, other in itertools.pairwise(content):
        here, there = reading.premise.where(one), reading.premise.where(other)
        if here and there and one.stem != other.stem and not _near(here, there):
            apart.append(f"{one.text} {other.text}")
    if apart:
        yield Evidence("words joined otherwise", 1 - 0.5 ** len(apart), ", ".join(apart), "")


def scattered(reading: Reading) -> Iterator[Evidence]:
    """A sentence whose clauses, one after another, come from distant places of the premise."""
    known = [clause for clause in reading.clauses if clause.best_recall > _PLACED]
    far = [
        f"{words(one)} | {words(other)}"
        for one, other in itertools.pairwise(known)
        if abs(one.aligned[0] - other.aligned[0]) > _DISTANT
    ]
    if far:
        yield Evidence("clauses from afar", min(1.0, len(far) / 3), far[0], beside(reading, known[0]))


def _near(here: Where, there: Where) -> bool:
    few, many = (here, there) if len(here) <= len(there) else (there, here)
    return any(number in many or number - 1 in many or number + 1 in many for number in few)


def _clause_at(reading: Reading, place: int) -> Clause | None:
    for clause in reading.clauses:
        if clause.start <= place < clause.start + len(clause.tokens):
            return clause
    return None


def _beyond(share: float) -> float:
    return max(0.0, share - _PARAPHRASED) / (1 - _PARAPHRASED)
