"""What became of the entries of a board in a call of `evalwright entries run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["up to date", "described", "scored again", "published", "failed"]


@dataclass(frozen=True, slots=True)
class EntryOutcome:
    """What became of an entry.

    Attributes:
        entry: its name.
        shown_name: what the board calls it.
        state: "up to date" if it had a result; "described" if only its label and facts changed;
            "scored again" if only the board's judge had changed, and no model was asked.
        sentence: why it was run, or what failed and what to do.
        folder: the result's folder; None without one.
        dollars: what its answers cost, as recorded; None if that is not known.
    """

    entry: str
    shown_name: str
    state: State
    sentence: str
    folder: Path | None = None
    dollars: float | None = None
