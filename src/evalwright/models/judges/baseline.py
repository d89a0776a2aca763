"""`baseline/<name>`: judges that need no download. They are baselines: what a real judge has to be better than.

    baseline/lexical       by words alone, in milliseconds

They know no grammar and no meaning: a sentence taken from its source is supported, and one that is about something else is not, but
a single error in a text that puts things in its own words is mostly missed. Their numbers say how far words alone go; they are not
for publishing hallucination rates.
"""

from __future__ import annotations

from evalwright.core.errors import UnknownName
from evalwright.models.base import Model
from evalwright.models.judges.lexical.judge import LexicalJudge

NAMES = ("lexical",)


def baseline_model(name: str) -> Model:
    """The baseline of that name. Raises UnknownName."""
    if name not in NAMES:
        raise UnknownName("baseline judge", name, NAMES, f"Known: {', '.join(NAMES)}.")
    return LexicalJudge(name)
