"""A finding of a check, and the wording of findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.core.plain import Plain

CheckVerdict = Literal["ok", "note", "skipped", "fault"]
"""The kinds of finding.

note: worth knowing, but no fault. skipped: it cannot be determined here, and the text says why.
"""

_LISTED = 5
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Finding(Plain):
    """One finding on a task.

    Args:
        verdict: its kind.
        check: the check that made it, such as "shots".
        text: the finding in words.
        samples: ids of all samples concerned.
    """

    verdict: CheckVerdict
    check: str
    text: str
    samples: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the finding is not a fault."""
        return self.verdict != "fault"


@dataclass(frozen=True, slots=True)
class Check:
    """A check; its name is part of its findings."""

    name: str

    def ok(self, text: str) -> Finding:
        """Create the finding that all is well."""
        return Finding("ok", self.name, text)

    def note(self, text: str, samples: Sequence[str] = ()) -> Finding:
        """Create a finding that is worth knowing but no fault."""
        return Finding("note", self.name, text, tuple(samples))

    def skipped(self, text: str) -> Finding:
        """Create the finding that the check is not possible here."""
        return Finding("skipped", self.name, text)

    def fault(self, text: str, samples: Sequence[str] = ()) -> Finding:
        """Create a fault; its text ends with the first of its samples."""
        named = ", ".join(samples[:_LISTED]) + (
            ", ..." if len(samples) > _LISTED else ""
        )
        return Finding(
            "fault", self.name, f"{text}: {named}" if samples else text, tuple(samples)
        )

    def verdicts(self, faults: Sequence[Finding], well: str) -> Iterator[Finding]:
        """Yield the faults, or the finding that all is well."""
        yield from faults
        if not faults:
            yield self.ok(well)


def quoted(text: str) -> str:
    """Quote a text on one line, shortened if it is long."""
    flat = " ".join(text.split())
    return f"'{flat if len(flat) <= _SHOWN else flat[: _SHOWN - 3] + '...'}'"


def points(share: float) -> str:
    """Format a share in percentage points."""
    return f"{100 * share:.0f}"
