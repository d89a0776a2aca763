"""Early stopping for several pairs of runs: Holm's verdicts of the full run, known early.

Once all pairs are compared in full, Holm's procedure (1979) tests the clearest of n at alpha / n,
the next at alpha / (n - 1), and so on. A pair's verdict thus depends on how many others differ,
and an early decision has to hold whatever these still turn out to be. At a look each pair has a
set of outcomes of the full run that are not refuted (`full_run`), each with a share 1 / n of the
chance of error, so all sets hold the truth at all looks with probability at least 1 - alpha. Two
step-down procedures are then run:

- with the pairs that differ in every outcome left: these are rejected by Holm for certain;
- with the pairs that differ in any outcome left: no others can be rejected.

A pair that the first rejects is decided, and so is one that the second does not. With one pair
it is the question of `stopping`, and `Monitor` is the sharper tool, whose bets know the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evalwright.statistics._evidence import LookResult, PairEvidence
from evalwright.statistics._evidence import Settled as SettledByRule
from evalwright.statistics.full_run import Settled
from evalwright.statistics.paired import compare_paired
from evalwright.statistics.stopping import Decision, Monitor
from evalwright.statistics.stopping_rules import Rule

_DIFFERENT: tuple[Settled, ...] = ("a better", "b better")


class PairMonitor(Monitor):
    """Monitors one of several pairs; its `PairFamily` decides.

    Args:
        rule: a rule about two runs.
        n_total: units of the full run.
        n_pairs: pairs among which the chance of error is divided.
        tasks: number of tasks monitored side by side, likewise.
        scores: what `Monitor` must know about the scores.
    """

    def __init__(
        self,
        rule: Rule,
        n_total: int,
        *,
        n_pairs: int,
        tasks: int = 1,
        **scores: Any,
    ) -> None:
        super().__init__(rule, n_total, tasks=tasks * n_pairs, **scores)
        self.n_pairs = n_pairs
        self.settled: SettledByRule = "open"
        """What is known of this pair."""
        self.withdrawn = False
        """Whether a score made its rule impossible: it stays open, and no other waits for it."""

    @property
    def is_complete(self) -> bool:
        """Whether all units are there."""
        return self._prefix == self.n_total

    @property
    def has_new_units(self) -> bool:
        """Whether units were added since the last look."""
        return self._looked < self._prefix

    def decision(self) -> Decision:
        """Return the decision at the family's last look."""
        return self._last

    def verdict_at(self, level: float) -> Settled:
        """What is known of the full run's verdict at a confidence level."""
        if not self.is_complete:
            assert isinstance(self._evidence, PairEvidence)
            return self._evidence.outlook_at(level, interval=False).verdict
        scored = self._scored
        verdict = compare_paired(
            self._a,
            self._b,
            clusters=np.array(self._unit) if scored.clustered else None,
            binary=None if scored.binary else False,
            level=level,
            value_range=scored.value_range,
        ).verdict
        if verdict == "no difference seen":
            return verdict
        return "a better" if verdict == "better" else "b better"

    def conclude(self, verdict: Settled) -> None:
        """Note a look at which the family's verdict on this pair is this one."""
        evidence = self._evidence
        assert isinstance(evidence, PairEvidence)
        outlook = evidence.outlook_at(self.rule.level)
        margin = self.rule.margin
        self.settled = verdict
        if verdict not in _DIFFERENT and self.rule.kind == "differs":
            inside = (
                margin is not None and -margin < outlook.low <= outlook.high < margin
            )
            self.settled = "close" if inside else "open"
        self._looks += 1
        self._looked = self._prefix
        method = "full comparison" if self.is_complete else evidence.method
        look_result = LookResult(
            self.settled, outlook.low, outlook.high, evidence.e_value()
        )
        self._last = self._decision(
            look_result, f"{method}, Holm over {self.n_pairs} pairs"
        )


class PairFamily:
    """The pairs of runs on one task whose verdicts are Holm's over all of them.

    The chance that any decision differs from what Holm's procedure says of the full run is at most
    1 - level (exactly for right-or-wrong items, for large n otherwise).

    Args:
        monitors: one for each pair, with rules of one level.

    Raises:
        ValueError: no monitors, another number of pairs than theirs, or several levels.
    """

    def __init__(self, monitors: Sequence[PairMonitor]) -> None:
        levels = {monitor.rule.level for monitor in monitors}
        if len(levels) != 1:
            raise ValueError("a family needs monitors whose rules have one level")
        if any(monitor.n_pairs != len(monitors) for monitor in monitors):
            raise ValueError(f"each monitor must be one of {len(monitors)} pairs")
        self.monitors = tuple(monitors)
        self._alpha = 1 - levels.pop()
        self._known: dict[tuple[int, int], Settled] = {}

    def look(self) -> None:
        """Look once at the units so far, and decide what can be decided."""
        waiting = [
            number
            for number, monitor in enumerate(self.monitors)
            if not monitor.decision().decided and not monitor.withdrawn
        ]
        if not any(self.monitors[number].has_new_units for number in waiting):
            return
        self._known = {}
        rejected = self._step_down(_DIFFERENT)
        possible = self._step_down((*_DIFFERENT, "open"))
        at_the_end = all(self.monitors[number].is_complete for number in waiting)
        for number in waiting:
            verdict: Settled = "open"
            if number in rejected:
                verdict = self._verdict(number, rejected[number])
            elif number not in possible or at_the_end:
                verdict = "no difference seen"
            self.monitors[number].conclude(verdict)

    def _step_down(self, counts_as_different: Sequence[Settled]) -> dict[int, int]:
        """Holm's procedure on the pairs that are open, after those that are known to differ.

        A pair whose difference is known to be small is one of the open ones: it may be a clear
        one, nevertheless.

        Returns:
            By number of each rejected pair, how many pairs were left when it was tested.
        """
        n_pairs = len(self.monitors)
        settled = [monitor.settled for monitor in self.monitors]
        n_different = sum(verdict in _DIFFERENT for verdict in settled)
        untested = [
            number
            for number, verdict in enumerate(settled)
            if verdict in ("open", "close")
        ]
        rejected: dict[int, int] = {}
        while untested:
            n_left = n_pairs - n_different - len(rejected)
            newly_rejected = [
                number
                for number in untested
                if self._verdict(number, n_left) in counts_as_different
            ]
            if not newly_rejected:
                break
            rejected |= dict.fromkeys(newly_rejected, n_left)
            untested = [number for number in untested if number not in rejected]
        return rejected

    def _verdict(self, number: int, n_left: int) -> Settled:
        """What is known of a pair that Holm's procedure tests at alpha / n_left."""
        if (number, n_left) not in self._known:
            level = 1 - self._alpha / n_left
            self._known[number, n_left] = self.monitors[number].verdict_at(level)
        return self._known[number, n_left]
