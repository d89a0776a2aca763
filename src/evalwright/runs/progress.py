"""How far a run is, as the runner tells it and a report shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evalwright.engine.counts import Counts


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one run is. done counts samples times draws, failed those without an answer or score.

    state: where stopping rules stand, in a few words.
    """

    run: str
    label: str
    total: int
    done: int
    failed: int
    seconds: float
    counts: Counts
    finished: bool = False
    state: str = ""


class ProgressReporter(Protocol):
    """Takes progress a few times a second, and sentences that a person should see."""

    def update(self, progress: Progress) -> None: ...

    def say(self, sentence: str) -> None: ...
