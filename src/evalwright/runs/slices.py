"""Two runs compared by slice: one paired comparison for each value of a metadata key, corrected over the values (Holm).

A slice that differs and another that does not are no proof that the two slices differ from each other: each line is about
its own items. An item without a value is in no slice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.plain import Plain
from evalwright.runs.measures import Matrix, paired_of
from evalwright.statistics import PairedComparison, holm


@dataclass(frozen=True, slots=True)
class SlicePart:
    """One value of a key. p_adjusted: corrected over all values of the key; the verdict is that after correction."""

    value: str
    paired: PairedComparison
    p_adjusted: float

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        adjusted = None if self.p_adjusted != self.p_adjusted else self.p_adjusted
        return {"value": self.value, **self.paired.as_dict(), "p_adjusted": adjusted}


@dataclass(frozen=True, slots=True)
class SliceComparison(Plain):
    """All values of one metadata key, in the order of their names. without: common items that have no value."""

    key: str
    parts: tuple[SlicePart, ...]
    without: int
    correction: str


def compare_slices(found: Matrix, key: str) -> SliceComparison:
    """Compare the first two runs of a matrix within each value of one of its keys."""
    codes = found.slices[key]
    common = found.of_items.common()
    parts = []
    for name in sorted(codes.names):
        inside = found.slice(key, name)
        if inside is not None and inside.common().any():
            parts.append((name, paired_of(inside)))
    adjusted = holm([paired.p_value for _, paired in parts])
    return SliceComparison(
        key=key,
        parts=tuple(
            SlicePart(name, _corrected(paired, float(p)), float(p))
            for (name, paired), p in zip(parts, adjusted, strict=True)
        ),
        without=int((common & (codes.codes < 0)).sum()),
        correction=f"Holm over the {len(parts)} values of '{key}', 5%",
    )


def _corrected(paired: PairedComparison, p_adjusted: float) -> PairedComparison:
    """The comparison with the verdict that is left after correction."""
    return paired if p_adjusted < 0.05 else replace(paired, verdict="no difference seen")
