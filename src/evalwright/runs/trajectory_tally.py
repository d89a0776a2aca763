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
AGAIN = "calls_again"
"""The number of calls that may have been carried out twice."""


class TrajectoryTally:
    """Counts trajectories as their records come."""

    def __init__(self) -> None:
        self._ended: Counter[str] = Counter()
        self._n_anew = 0
        self._dollars = 0.0
        self._unpriced = 0
        self._n_again = 0

    def add(self, record: SampleRecord) -> None:
        """Add a record; those without a trajectory count nowhere."""
        if record.answer is None or not record.answer.strategy:
            return
        strategy = record.answer.strategy
        if ATTEMPTS in strategy and ENDED in strategy:
            self._ended[str(strategy[ENDED])] += 1
        self._n_again += sum(
            bool(call.get("again")) for call in strategy.get("tool_calls", ())
        )
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
        if self._n_again:
            tally[AGAIN] = self._n_again
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


def interruption_sentences(tally: Mapping[str, Any]) -> list[str]:
    """Say what an interruption cost: samples that were started anew, calls that were repeated.

    Args:
        tally: what `TrajectoryTally.as_dict` returned.
    """
    sentences = []
    anew = tally.get(STARTED_ANEW)
    if anew:
        samples = "sample was" if anew["samples"] == 1 else "samples were"
        sentences.append(
            f"{anew['samples']:,} {samples} started again from the beginning, because the"
            " state of an interrupted trajectory could not be restored."
        )
        if anew.get("dollars"):
            sentences.append(
                f"The replies until then had cost ${anew['dollars']:,.4f}; those that fit"
                " were used again."
            )
    n_again = tally.get(AGAIN, 0)
    if n_again:
        calls = "call of a tool" if n_again == 1 else "calls of tools"
        sentences.append(
            f"{n_again:,} {calls} had been begun when the run was interrupted, and"
            f" {'was' if n_again == 1 else 'were'} carried out again."
        )
    return sentences
