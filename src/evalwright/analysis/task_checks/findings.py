"""A finding of a check, and how findings are worded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.core.plain import Plain

CheckVerdict = Literal["ok", "note", "skipped", "fault"]
"""note: worth knowing, and no fault. skipped: it cannot be known here, and the text says why."""

_LISTED = 5
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Finding(Plain):
    """One finding on a task.

    Args:
        check: the check that made it, such as "shots".
        samples: ids of all samples concerned.
    """

    verdict: CheckVerdict
    check: str
    text: str
    samples: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it is no fault."""
        return self.verdict != "fault"


@dataclass(frozen=True, slots=True)
class Check:
    """A check, by the name that its findings have."""

    name: str

    def ok(self, text: str) -> Finding:
        """A finding that all is well."""
        return Finding("ok", self.name, text)

    def note(self, text: str, samples: Sequence[str] = ()) -> Finding:
        """A finding worth knowing that is no fault."""
        return Finding("note", self.name, text, tuple(samples))

    def skipped(self, text: str) -> Finding:
        """A finding that the check is not possible here."""
        return Finding("skipped", self.name, text)

    def fault(self, text: str, samples: Sequence[str] = ()) -> Finding:
        """A fault; its text ends with the first of its samples."""
        named = ", ".join(samples[:_LISTED]) + (
            ", ..." if len(samples) > _LISTED else ""
        )
        return Finding(
            "fault", self.name, f"{text}: {named}" if samples else text, tuple(samples)
        )

    def verdicts(self, faults: Sequence[Finding], well: str) -> Iterator[Finding]:
        """The faults, or that all is well."""
        yield from faults
        if not faults:
            yield self.ok(well)


def quoted(text: str) -> str:
    """A text in quotes and on one line, long ones cut."""
    flat = " ".join(text.split())
    return f"'{flat if len(flat) <= _SHOWN else flat[: _SHOWN - 3] + '...'}'"


def points(share: float) -> str:
    """A share in points of 100."""
    return f"{100 * share:.0f}"
