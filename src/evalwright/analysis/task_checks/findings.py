"""One verdict, and the words that verdicts share."""

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
    """One verdict on a task. check: what was looked at, e.g. "shots". samples: ids of all samples
    that show it.
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
    """What is looked at, by the name that its verdicts have."""

    name: str

    def ok(self, text: str) -> Finding:
        """All is well."""
        return Finding("ok", self.name, text)

    def note(self, text: str, samples: Sequence[str] = ()) -> Finding:
        """Worth knowing, no fault."""
        return Finding("note", self.name, text, tuple(samples))

    def skipped(self, text: str) -> Finding:
        """Cannot be known here."""
        return Finding("skipped", self.name, text)

    def fault(self, text: str, samples: Sequence[str] = ()) -> Finding:
        """A fault; the text ends with the first of its samples."""
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
