"""The evidence that a stopping rule monitors: a running record per kind of question and score.

Each record is fed units in their order and reports at an interim look what is settled about
this benchmark. A unit with a missing score is left out for both models: if answers are missing
at random, the scored ones are still a draw without replacement from all units.

For pairs of right-or-wrong answers there is an e-value, too: the wealth of a bet against "no
difference", which cannot grow on average while that holds. So the chance that it ever reaches 1
/ alpha is at most alpha (Ville 1939), however often one looks and whenever one stops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from evalwright.statistics.confidence_sequences import (
    AsymptoticSequence,
    BettingSequence,
)
from evalwright.statistics.full_run import (
    OPTIMUM,
    Outlook,
    binary_outlook,
    graded_outlook,
    kept_counts,
)
from evalwright.statistics.stopping_rules import Rule
from evalwright.statistics.units import F64

Settled = Literal[
    "open", "a better", "b better", "no difference seen", "close", "precise enough"
]


@dataclass(frozen=True, slots=True)
class Scored:
    """What a record must know about the scores of a task (see `stopping.Monitor`).

    Attributes:
        n_total: number of units.
        binary: whether every score is right or wrong.
        clustered: whether units are clusters of items.
        value_range: least and greatest possible score, None if unlimited.
        n_items: number of items in all units, None if unknown.
        alpha: allowed probability of a wrong decision.
    """

    n_total: int
    binary: bool
    clustered: bool
    value_range: tuple[float, float] | None
    n_items: int | None
    alpha: float

    @property
    def ends(self) -> tuple[float, float]:
        """The least and greatest possible score; infinite where there is no limit."""
        return self.value_range or (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class LookResult:
    """The outcome of one look: what is settled, the interval, and the e-value if there is one."""

    verdict: Settled
    low: float
    high: float
    e_value: float | None = None


class Evidence(Protocol):
    """A running record of the evidence for one stopping rule."""

    method: str

    def add(self, a: list[float], b: list[float]) -> None:
        """Add the next unit: the scores of both models, item by item; nan is missing."""

    def look(self) -> LookResult:
        """Decide what is settled by the units so far."""


def make_evidence(rule: Rule, scored: Scored) -> Evidence:
    """Create the record that fits the rule and the scores."""
    exact = scored.binary and not scored.clustered
    if rule.kind == "precision":
        return _ExactShare(rule, scored) if exact else _MeanEvidence(rule, scored)
    return (
        _BinaryPairEvidence(rule, scored)
        if exact
        else _GradedPairEvidence(rule, scored)
    )


class _ExactShare:
    """One model's share of right items, with an exact confidence sequence."""

    method = "exact confidence sequence without replacement"

    def __init__(self, rule: Rule, scored: Scored) -> None:
        self._margin = rule.margin or 0.0
        self._scored = scored
        self._n = self._right = 0
        self._low = 0.0
        self._high = 1.0
        # The mixture bets best near one number of items: here that at which the interval reaches
        # the required width, on the clock n N / (N - n) of sampling without replacement.
        needed = min(2.5 / self._margin**2, 4 * scored.n_total)
        self._weight = max(1.0, needed / OPTIMUM)

    def add(self, a: list[float], b: list[float]) -> None:
        if math.isnan(a[0]):
            return
        self._n += 1
        self._right += int(a[0] == 1.0)

    def look(self) -> LookResult:
        total = self._scored.n_total
        alpha = self._scored.alpha
        fewest, most = kept_counts(self._right, self._n, [total], alpha, self._weight)
        low = fewest[0] / total
        high = most[0] / total
        if max(low, self._low) <= min(high, self._high):
            self._low, self._high = max(low, self._low), min(high, self._high)
        return _is_precise(self._low, self._high, self._margin)


class _MeanEvidence:
    """The mean of one model's scores, with a confidence sequence.

    It is by betting for bounded scores of single items, and asymptotic otherwise.
    """

    def __init__(self, rule: Rule, scored: Scored) -> None:
        self._margin = rule.margin or 0.0
        total = scored.n_total
        alpha = scored.alpha
        self._sequence: BettingSequence | AsymptoticSequence
        if scored.value_range is not None and not scored.clustered:
            self._sequence = BettingSequence(
                total, alpha=alpha, value_range=scored.value_range
            )
            self.method = "betting confidence sequence without replacement"
        else:
            self._sequence = AsymptoticSequence(total, alpha=alpha)
            self.method = "asymptotic confidence sequence without replacement"
        self._waiting: list[tuple[float, int]] = []

    def add(self, a: list[float], b: list[float]) -> None:
        scores = [score for score in a if not math.isnan(score)]
        if scores:
            self._waiting.append((math.fsum(scores), len(scores)))

    def look(self) -> LookResult:
        if self._waiting:
            totals, sizes = np.array(self._waiting, dtype=np.float64).T
            self._waiting = []
            _feed(self._sequence, totals, sizes)
        low, high = self._sequence.interval()
        return _is_precise(low, high, self._margin)


class PairEvidence:
    """Base of records of paired differences.

    The full run consists of units not known to be missing.
    """

    method: str

    def __init__(self, rule: Rule, scored: Scored) -> None:
        self._rule = rule
        self._scored = scored
        self._missing = 0

    @property
    def _total(self) -> int:
        return self._scored.n_total - self._missing

    def _differences(self, a: list[float], b: list[float]) -> list[float]:
        """Compute the differences of the items for which both models have a score."""
        return [x - y for x, y in zip(a, b, strict=True) if not math.isnan(x - y)]

    def add(self, a: list[float], b: list[float]) -> None:
        """Add the next unit, as `Evidence.add`."""
        raise NotImplementedError

    def look(self) -> LookResult:
        """Decide what is settled by the units so far, as `Evidence.look`."""
        raise NotImplementedError

    def outlook_at(self, level: float, *, interval: bool = True) -> Outlook:
        """What the full run will conclude at a confidence level.

        What it says of any number of levels, its interval included, is wrong with probability at
        most alpha together: what is refuted does not depend on the level. Without `interval` only
        the verdict is computed, which is faster.
        """
        raise NotImplementedError

    def e_value(self) -> float | None:
        """The e-value against "no difference", where there is one."""
        return None

    def _finding(self, outlook: Outlook, e_value: float | None = None) -> LookResult:
        low = outlook.low
        high = outlook.high
        margin = self._rule.margin
        verdict: Settled = "open"
        if outlook.verdict in ("a better", "b better"):
            verdict = outlook.verdict
        elif (
            self._rule.kind == "differs"
            and margin is not None
            and -margin < low <= high < margin
        ):
            verdict = "close"
        elif outlook.verdict == "no difference seen" and self._rule.kind == "beats":
            verdict = "no difference seen"
        return LookResult(verdict, low, high, e_value)


class _BinaryPairEvidence(PairEvidence):
    """Right-or-wrong pairs: counts of the items that only one of the two models got right."""

    method = "full-run verdict, exact without replacement"

    def __init__(self, rule: Rule, scored: Scored) -> None:
        super().__init__(rule, scored)
        self._n = self._wins = self._losses = 0

    def add(self, a: list[float], b: list[float]) -> None:
        differences = self._differences(a, b)
        if not differences:
            self._missing += 1
            return
        self._n += 1
        self._wins += int(differences[0] > 0)
        self._losses += int(differences[0] < 0)

    def look(self) -> LookResult:
        outlook = self._outlook(self._rule.level, directed=self._rule.kind == "beats")
        return self._finding(outlook, self.e_value())

    def outlook_at(self, level: float, *, interval: bool = True) -> Outlook:
        return self._outlook(level, directed=False, interval=interval)

    def e_value(self) -> float | None:
        return pair_e_value(self._wins, self._losses)

    def _outlook(
        self, level: float, *, directed: bool, interval: bool = True
    ) -> Outlook:
        alpha = self._scored.alpha
        if (
            self._n == self._total
        ):  # all units are known: the ordinary comparison decides
            difference = (self._wins - self._losses) / self._n if self._n else math.nan
            return Outlook("open", difference, difference)
        return binary_outlook(
            self._wins,
            self._losses,
            self._n,
            self._total,
            level=level,
            alpha=alpha,
            directed=directed,
            interval=interval,
        )


class _GradedPairEvidence(PairEvidence):
    """Pairs of graded scores or of clusters: sums of differences by unit."""

    method = "full-run verdict, asymptotic without replacement"

    def __init__(self, rule: Rule, scored: Scored) -> None:
        super().__init__(rule, scored)
        self._rows: list[tuple[float, int]] = []
        self._missing_items = 0

    def add(self, a: list[float], b: list[float]) -> None:
        differences = self._differences(a, b)
        self._missing_items += len(a) - len(differences)
        if not differences:
            self._missing += 1
            return
        self._rows.append((math.fsum(differences), len(differences)))

    def look(self) -> LookResult:
        if not self._rows:
            return LookResult("open", -math.inf, math.inf)
        return self._finding(self.outlook_at(self._rule.level))

    def outlook_at(self, level: float, *, interval: bool = True) -> Outlook:
        if not self._rows:
            return Outlook("open", -math.inf, math.inf)
        totals, sizes = np.array(self._rows, dtype=np.float64).T
        items = self._scored.n_items
        return graded_outlook(
            totals,
            sizes,
            self._total,
            None if items is None else items - self._missing_items,
            level=level,
            alpha=self._scored.alpha,
        )


def _feed(
    sequence: BettingSequence | AsymptoticSequence, totals: F64, items: F64
) -> None:
    if isinstance(sequence, BettingSequence):
        sequence.update(totals)
    else:
        sequence.update(totals, items)


def _is_precise(low: float, high: float, margin: float) -> LookResult:
    return LookResult(
        "precise enough" if high - low <= 2 * margin else "open", low, high
    )


# -- e-values --------------------------------------------------------------------------


def log_pair_e_value(wins: npt.ArrayLike, losses: npt.ArrayLike) -> F64:
    """Natural log of the e-value against "a discordant item favours either model equally often".

    e = B(p + w, p + l) / B(p, p) 2^(w + l) with p = 1/2: a mixture over all win rates with a
    Beta(p, p) prior. Items on which both models agree carry no evidence. Assumes that the order of
    the items does not depend on the answers.

    Source: Robbins (1970), "Statistical methods related to the law of the iterated logarithm";
    Ramdas et al. (2023), "Game-theoretic statistics and safe anytime-valid inference".

    Args:
        wins: number of items that only a got right, a number or an array.
        losses: number of items that only b got right, of the same shape.

    Returns:
        The logarithms, of the same shape.
    """
    from scipy.special import betaln

    w = np.asarray(wins, dtype=np.float64)
    lost = np.asarray(losses, dtype=np.float64)
    total: Any = (
        betaln(0.5 + w, 0.5 + lost) - betaln(0.5, 0.5) + (w + lost) * math.log(2.0)
    )
    return np.asarray(total, dtype=np.float64)


def pair_e_value(wins: int, losses: int) -> float:
    """The e-value itself, see `log_pair_e_value`; infinite where it is too large for a float.

    It is safe to stop as soon as it reaches 1 / alpha.
    """
    log_value = float(log_pair_e_value(wins, losses))
    return math.exp(log_value) if log_value < 700.0 else math.inf
