"""All kinds of evidence by name, and what was found for a text."""

from __future__ import annotations

from evalwright.models.consistency.lexical import contrasts, details
from evalwright.models.consistency.lexical.clauses import Reading
from evalwright.models.consistency.lexical.evidence import Evidence, Finder

FINDERS: tuple[Finder, ...] = (
    details.unlike,
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
    contrasts.comparisons,
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
    "comparison added",
    "cause added",
    "roles swapped",
)
"""The kinds of evidence; the weights carry the same names."""


def evidence_in(reading: Reading) -> list[Evidence]:
    """All evidence against a sentence, strongest first within nothing: in the order of `FINDERS`."""
    return [found for finder in FINDERS for found in finder(reading) if found.strength > 0]


def strongest(found: list[Evidence]) -> list[float]:
    """The strongest evidence of each kind, in the order of `KINDS`; 0 where there is none."""
    return [max((each.strength for each in found if each.kind == kind), default=0.0) for kind in KINDS]
