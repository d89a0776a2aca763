"""All kinds of evidence by name, and what was found for a text."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.models.consistency.lexical import contrasts, details
from evalwright.models.consistency.lexical.clauses import Reading
from evalwright.models.consistency.lexical.evidence import Evidence, Finder

FINDERS: tuple[Finder, ...] = (
    details.invented,
    details.strange_clauses,
    details.numbers,
    details.dates,
    details.names_missing,
    details.bound_elsewhere,
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
    "clause without source",
    "number differs",
    "unit differs",
    "date differs",
    "unknown name",
    "name of another",
    "number of another",
    "negation differs",
    "opposite",
    "hedge dropped",
    "overstated",
    "cause added",
    "roles swapped",
)
"""The kinds of evidence; the weights carry the same names."""


def evidence_in(readings: Sequence[Reading]) -> list[Evidence]:
    """All evidence against a text as a whole, and against its sentences one after another, in the order of `FINDERS`."""
    out = list(details.unlike(readings))
    for reading in readings:
        out += [found for finder in FINDERS for found in finder(reading) if found.strength > 0]
    return out


def strongest(found: list[Evidence]) -> list[float]:
    """The strongest evidence of each kind, in the order of `KINDS`; 0 where there is none."""
    return [max((each.strength for each in found if each.kind == kind), default=0.0) for kind in KINDS]
