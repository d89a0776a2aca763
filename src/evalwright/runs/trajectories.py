"""What became of a run's trajectories: what ended them, and which were started anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from evalwright.core.samples import SampleRecord

KEY = "trajectories"
"""The part of a run's usage of answers with the tally, where it has trajectories."""
ATTEMPTS = "attempts"
ENDED = "ended"
STARTED_ANEW = "started_anew"


class TrajectoryTally:
    """Counts trajectories as their records come."""

    def __init__(self) -> None:
        self._ended: Counter[str] = Counter()
        self._n_anew = 0
        self._dollars = 0.0
        self._unpriced = 0

    def add(self, record: SampleRecord) -> None:
        """Add a record; those without a trajectory count nowhere."""
        strategy = {} if record.answer is None else record.answer.strategy
        if ATTEMPTS in strategy and ENDED in strategy:
            self._ended[str(strategy[ENDED])] += 1
        given_up = strategy.get(STARTED_ANEW, ())
        self._n_anew += bool(given_up)
        for attempt in given_up:
            if attempt.get("dollars") is None:
                self._unpriced += 1
            else:
                self._dollars += attempt["dollars"]

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON; empty where there are no trajectories."""
        tally: dict[str, Any] = {}
        if self._ended:
            tally[ENDED] = dict(sorted(self._ended.items()))
        if self._n_anew:
            anew: dict[str, Any] = {"samples": self._n_anew}
            if self._dollars:
                anew["dollars"] = round(self._dollars, 12)
            if self._unpriced:
                anew["unpriced"] = self._unpriced
            tally[STARTED_ANEW] = anew
        return tally


def trajectory_words(tally: Mapping[str, Any]) -> str:
    """Say what ended a run's trajectories, "" if it has none.

    Args:
        tally: what `TrajectoryTally.as_dict` returned.
    """
    return ", ".join(
        f"{count:,} {_ENDINGS.get(ended, f'by {ended}')}"
        for ended, count in tally.get(ENDED, {}).items()
    )


_ENDINGS = {
    "answer": "ended with an answer",
    "dollars": "at the limit of dollars",
    "exit": "ended by themselves",
    "messages": "at the limit of messages",
    "seconds": "at the limit of seconds",
    "submit": "submitted",
    "tokens": "at the limit of tokens",
}


def anew_sentence(tally: Mapping[str, Any]) -> str:
    """Return the sentence on samples that were started anew, "" if there are none.

    Args:
        tally: what `TrajectoryTally.as_dict` returned.
    """
    anew = tally.get(STARTED_ANEW)
    if not anew:
        return ""
    n_samples = anew["samples"]
    samples = "sample was" if n_samples == 1 else "samples were"
    dollars = anew.get("dollars")
    cost = (
        ""
        if dollars is None
        else f" Their replies until then had cost ${dollars:,.4f}; those that fit were used"
        " again."
    )
    return (
        f"{n_samples:,} {samples} started anew, because the state of an interrupted"
        f" trajectory could not be had again.{cost}"
    )
