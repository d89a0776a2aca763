"""Early stopping: ends a run as soon as its question is answered, with valid repeated looks.

A `Monitor` gets the units of one task in an order that was fixed at random before the run, and
may return a `Decision` after any of them. It uses the longest completed prefix of that order
only: what finishes first is not a random sample (long answers take longer and are wrong more
often).

- accuracy +-0.02: the score over all N units is known to +-0.02
- A beats B: the verdict of the full run is known (`full_run`)
- A differs from B or not by 0.03: as above, or the full run's difference is known to be below 0.03

A run that is not stopped early ends with the ordinary comparison of all N units
(`paired.compare_paired`), so a decision is wrong only if an early one differs from what the
full run would have said; for each rule the probability of that is at most alpha = 1 - level,
whatever the models and the number of looks (exactly for right-or-wrong items, for large n
otherwise). For "differs" both answers may be true of the full run (a small difference, clearly
detected): the one that is known first is given.

A missing score is not wrong: the item is left out for both models, and the full run is that of
the units with scores. Where answers are missing at random these are in random order too, so
that everything above applies to them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evalwright.core.plain import Plain
from evalwright.statistics._evidence import LookResult, Scored, make_evidence
from evalwright.statistics.paired import compare_paired
from evalwright.statistics.stopping_rules import Rule

ESTIMAND = "this benchmark"
"""What the mean or difference of a decision refers to, as recorded."""
Score = float | None


@dataclass(frozen=True, slots=True)
class Decision(Plain):
    """What is known at an interim look.

    Args:
        decided: whether the rule's question is answered.
        verdict: if decided, "A better", "B better" (with the rule's names), "no difference seen",
            "no difference of 0.03 or more" or "precise enough"; else "undecided".
        early: whether the decision came before the last unit.
        looks: number of looks so far.
        units: how many of `n_total` units were used.
        n_total: units of the full run.
        failed: how many units (or items of them) have no score and are left out.
        value: the mean, or the difference a - b, of the items with scores.
        low: low end of its anytime-valid interval at `level`, over exactly this benchmark.
        high: its high end.
        level: confidence level.
        e_value: the evidence against "no difference", None if there is none.
        estimand: what the value refers to.
        method: how the interval was computed.
    """

    decided: bool
    verdict: str
    early: bool
    looks: int
    units: int
    n_total: int
    failed: int
    value: float
    low: float
    high: float
    level: float
    e_value: float | None
    estimand: str
    method: str


class Monitor:
    """Monitors one stopping rule on one task.

    Submit each unit with its position in the order; ask for the decision at any time.

    Args:
        rule: the stopping rule.
        n_total: units of the full run.
        binary: whether all scores are 0 or 1.
        value_range: of one score, None if unlimited.
        clustered: whether a unit is a cluster of items; means are over items, not over clusters.
        n_items: the number of items of all clusters, where known (it sharpens the interval).
        tasks: number of tasks monitored side by side, over which alpha is divided.
    """

    def __init__(
        self,
        rule: Rule,
        n_total: int,
        *,
        binary: bool = True,
        value_range: tuple[float, float] | None = (0.0, 1.0),
        clustered: bool = False,
        n_items: int | None = None,
        tasks: int = 1,
    ) -> None:
        if n_total < 1 or tasks < 1:
            raise ValueError("n_total and tasks must be at least 1")
        if binary and value_range != (0.0, 1.0):
            raise ValueError(
                "binary scores have the value_range (0.0, 1.0); give binary=False for"
                " others"
            )
        self.rule = rule
        self.n_total = n_total
        self._scored = Scored(
            n_total, binary, clustered, value_range, n_items, (1 - rule.level) / tasks
        )
        self._evidence = make_evidence(rule, self._scored)
        self._waiting: dict[int, tuple[list[float], list[float]]] = {}
        self._a: list[float] = []
        self._b: list[float] = []
        self._unit: list[int] = []
        self._prefix = self._looked = self._looks = self._failed = 0
        self._last = self._decision(
            LookResult("open", -math.inf, math.inf), "no unit yet"
        )

    def submit(
        self,
        place: int,
        a: Score | Sequence[Score],
        b: Score | Sequence[Score] | None = None,
    ) -> None:
        """Add a completed unit.

        Args:
            place: its position in the order, 0 to n_total - 1.
            a: its score, or the scores of its items; None or nan is a missing score.
            b: the second model's, for rules about two.

        Raises:
            ValueError: a position outside the order or submitted twice, scores outside the range,
                sides of unequal length, or several items without `clustered`.
        """
        if not 0 <= place < self.n_total:
            raise ValueError(
                f"place must be between 0 and {self.n_total - 1}, but is {place}"
            )
        if place < self._prefix or place in self._waiting:
            raise ValueError(f"the unit at place {place} was submitted before")
        first = self._scores(a)
        second = (
            self._scores(b) if self.rule.kind != "precision" else [0.0] * len(first)
        )
        if len(first) != len(second):
            raise ValueError(
                f"both models need a score for each item of unit {place}; give None"
                " where it is missing"
            )
        self._waiting[place] = (first, second)
        while self._prefix in self._waiting:
            self._take(*self._waiting.pop(self._prefix))

    def decision(self) -> Decision:
        """Return the decision, looking again if units were added since the last look.

        Once decided, it does not change.
        """
        if self._last.decided or self._looked == self._prefix:
            return self._last
        self._looks += 1
        self._looked = self._prefix
        finding = self._evidence.look()
        self._last = self._decision(finding, self._evidence.method)
        if self._prefix == self.n_total and not self._last.decided:
            self._last = self._at_the_end(self._last)
        return self._last

    def _scores(self, scores_given: Score | Sequence[Score] | None) -> list[float]:
        item_scores: Sequence[Any] = (
            scores_given
            if isinstance(scores_given, Sequence | np.ndarray)
            else [scores_given]
        )
        scores = [math.nan if score is None else float(score) for score in item_scores]
        if len(scores) != 1 and not (self._scored.clustered and scores):
            raise ValueError(
                f"a unit has one score unless clustered=True, but {len(scores)} were"
                " given"
            )
        valid = self._scored.ends
        for score in scores:
            if math.isinf(score) or not (
                math.isnan(score) or valid[0] <= score <= valid[1]
            ):
                raise ValueError(f"the score {score:g} is outside the range {valid}")
            if self._scored.binary and score == score and score not in (0.0, 1.0):
                raise ValueError(
                    f"the score {score:g} is neither 0 nor 1; give binary=False for"
                    " graded scores"
                )
        return scores

    def _take(self, first: list[float], second: list[float]) -> None:
        self._failed += sum(
            math.isnan(x) or math.isnan(y) for x, y in zip(first, second, strict=True)
        )
        self._a += first
        self._b += second
        self._unit += [self._prefix] * len(first)
        self._prefix += 1
        self._evidence.add(first, second)

    def _decision(self, finding: LookResult, method: str) -> Decision:
        rule = self.rule
        verdict = {
            "open": "undecided",
            "a better": f"{rule.a} better",
            "b better": f"{rule.b} better",
            "close": f"no difference of {rule.margin:g} or more" if rule.margin else "",
        }.get(finding.verdict, finding.verdict)
        a = np.array(self._a)
        b = np.array(self._b)
        has_both = ~np.isnan(a - b)
        return Decision(
            decided=finding.verdict != "open",
            verdict=verdict,
            early=self._prefix < self.n_total,
            looks=self._looks,
            units=self._prefix,
            n_total=self.n_total,
            failed=self._failed,
            value=float((a - b)[has_both].mean()) if has_both.any() else math.nan,
            low=finding.low,
            high=finding.high,
            level=rule.level,
            e_value=finding.e_value,
            estimand=ESTIMAND,
            method=method,
        )

    def _at_the_end(self, last: Decision) -> Decision:
        """With all units complete, decide by the ordinary comparison what is still open."""
        if self.rule.kind == "precision":
            return last
        scored = self._scored
        full = compare_paired(
            self._a,
            self._b,
            clusters=np.array(self._unit) if scored.clustered else None,
            binary=None if scored.binary else False,
            level=self.rule.level,
            value_range=scored.value_range,
        )
        method = f"full comparison ({full.test})"
        if full.verdict != "no difference seen":
            winner = self.rule.a if full.verdict == "better" else self.rule.b
            return replace(
                last, decided=True, verdict=f"{winner} better", method=method
            )
        if self.rule.kind == "beats":
            return replace(
                last, decided=True, verdict="no difference seen", method=method
            )
        return replace(last, method=method)
