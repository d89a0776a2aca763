"""All kinds of evidence by name, and what was found for a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.models.judges.lexical import contrasts, details
from evalwright.models.judges.lexical.clauses import Reading, sentence_likeness
from evalwright.models.judges.lexical.evidence import Evidence, Finder

FINDERS: tuple[Finder, ...] = (
    details.invented,
    details.strange_clauses,
    details.numbers,
    details.dates,
    details.names_missing,
    details.bound_elsewhere,
    details.joined_otherwise,
    details.scattered,
    contrasts.negations,
    contrasts.antonyms,
    contrasts.hedges,
    contrasts.absolutes,
    contrasts.causes,
    contrasts.roles,
)

KINDS = (
    "other words",
    "invented detail",
    "number differs",
    "unit differs",
    "date differs",
    "name of another",
    "number of another",
    "words joined otherwise",
    "clauses from afar",
    "negation differs",
    "opposite",
    "overstated",
    "cause added",
    "roles swapped",
    "copy altered",
)
"""The kinds of evidence; the weights carry the same names."""


_CONTRADICTIONS = frozenset(
    [
        "number differs",
        "unit differs",
        "date differs",
        "negation differs",
        "opposite",
        "overstated",
        "roles swapped",
    ]
)
_ALIKE = 0.8
"""The likeness from which on a sentence is taken for a copy."""


def evidence_in(readings: Sequence[Reading]) -> list[Evidence]:
    """All evidence against a text as a whole, and against its sentences one after another, in the order of `FINDERS`."""
    out = list(details.unlike(readings))
    for reading in readings:
        found = [each for finder in FINDERS for each in finder(reading) if each.strength > 0]
        out += [*found, *_altered(reading, found)]
    return out


def _altered(reading: Reading, found: list[Evidence]) -> Iterator[Evidence]:
    """A sentence that one sentence of the premise has almost word for word, and contradicts: no paraphrase explains it."""
    alike = sentence_likeness(reading)
    against = [each for each in found if each.kind in _CONTRADICTIONS]
    if against and alike > _ALIKE:
        worst = max(against, key=lambda each: each.strength)
        strength = worst.strength * (alike - _ALIKE) / (1 - _ALIKE)
        yield Evidence("copy altered", strength, worst.said, worst.source)


def strongest(found: list[Evidence]) -> list[float]:
    """The strongest evidence of each kind, in the order of `KINDS`; 0 where there is none."""
    return [max((each.strength for each in found if each.kind == kind), default=0.0) for kind in KINDS]
