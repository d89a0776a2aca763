"""What a stopping rule looks at: one running record for each kind of question and score.

Each record is fed units in their order and says at a look what is settled about this benchmark. A
missing score is left out, and with it the item for both models: what is scored is then a draw
without replacement from all units, as before, where answers are missing at random.

Of pairs of right-or-wrong answers there is an e-value, too: a bet against "no difference" that no
strategy can win on average while that holds. So the chance that it ever reaches 1 / alpha is at
most alpha (Ville 1939), however often one looks and whenever one stops.
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
    """What a record must know about the scores of a task (see `stopping.Monitor`)."""

    n_total: int
    binary: bool
    clustered: bool
    value_range: tuple[float, float] | None
    n_items: int | None
    alpha: float

    @property
    def ends(self) -> tuple[float, float]:
        """The least and greatest score, infinite where nothing limits it."""
        return self.value_range or (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class LookResult:
    """What is settled, the interval, and the e-value where there is one."""

    verdict: Settled
    low: float
    high: float
    e_value: float | None = None


class Evidence(Protocol):
    """A running record of one rule."""

    method: str

    def add(self, a: list[float], b: list[float]) -> None:
        """The next unit's scores (nan = missing), item by item."""

    def look(self) -> LookResult:
        """What is settled by the units so far."""


def make_evidence(rule: Rule, scored: Scored) -> Evidence:
    """The record that fits the rule and the scores."""
    exact = scored.binary and not scored.clustered
    if rule.kind == "precision":
        return _ExactShare(rule, scored) if exact else _MeanEvidence(rule, scored)
    return (
        _BinaryPairEvidence(rule, scored)
        if exact
        else _GradedPairEvidence(rule, scored)
    )


class _ExactShare:
    """Right-or-wrong items: which numbers of right answers among all are not refuted."""

    method = "exact confidence sequence without replacement"

    def __init__(self, rule: Rule, scored: Scored) -> None:
        self._margin = rule.margin or 0.0
        self._scored = scored
        self._n = self._right = 0
        self._low = 0.0
        self._high = 1.0
        # The mixture bets best near the number of items that the wanted width needs, on the clock n
        # N / (N - n).
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
    """The mean of one model's scores: betting for bounded single items, asymptotic otherwise."""

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


class _PairEvidence:
    """Differences of pairs; the full run is that of units not yet known to be missing."""

    def __init__(self, rule: Rule, scored: Scored) -> None:
        self._rule = rule
        self._scored = scored
        self._missing = 0

    @property
    def _total(self) -> int:
        return self._scored.n_total - self._missing

    def _differences(self, a: list[float], b: list[float]) -> list[float]:
        """Of the items that both have a score for."""
        return [x - y for x, y in zip(a, b, strict=True) if not math.isnan(x - y)]

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


class _BinaryPairEvidence(_PairEvidence):
    """Wins and losses among right-or-wrong pairs."""

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
        return self._finding(self._outlook(), pair_e_value(self._wins, self._losses))

    def _outlook(self) -> Outlook:
        alpha = self._scored.alpha
        if (
            self._n == self._total
        ):  # nothing is open; the ordinary comparison says the verdict
            difference = (self._wins - self._losses) / self._n if self._n else math.nan
            return Outlook("open", difference, difference)
        return binary_outlook(
            self._wins,
            self._losses,
            self._n,
            self._total,
            level=self._rule.level,
            alpha=alpha,
            directed=self._rule.kind == "beats",
        )


class _GradedPairEvidence(_PairEvidence):
    """Differences of graded scores, or of clusters."""

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
        totals, sizes = np.array(self._rows, dtype=np.float64).T
        items = self._scored.n_items
        outlook = graded_outlook(
            totals,
            sizes,
            self._total,
            None if items is None else items - self._missing_items,
            level=self._rule.level,
            alpha=self._scored.alpha,
        )
        return self._finding(outlook)


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


# -- e values --------------------------------------------------------------------------


def log_pair_e_value(wins: npt.ArrayLike, losses: npt.ArrayLike) -> F64:
    """Natural logarithm of the e-value against "a discordant item favours either model alike".

    e = B(p + w, p + l) / B(p, p) 2^(w + l) with p = 1/2, the mixture of all shares with a Beta(p,
    p) prior. `wins` and `losses` are counts of discordant items (only a right, only b right),
    numbers or arrays of one shape; the result has that shape. Items on which both agree carry no
    evidence. Assumes that items come in an order that does not depend on the answers.

    Source: Robbins (1970), "Statistical methods related to the law of the iterated logarithm";
    Ramdas et al. (2023), "Game-theoretic statistics and safe anytime-valid inference".
    """
    from scipy.special import betaln

    w = np.asarray(wins, dtype=np.float64)
    lost = np.asarray(losses, dtype=np.float64)
    total: Any = (
        betaln(0.5 + w, 0.5 + lost) - betaln(0.5, 0.5) + (w + lost) * math.log(2.0)
    )
    return np.asarray(total, dtype=np.float64)


def pair_e_value(wins: int, losses: int) -> float:
    """The e-value of `log_pair_e_value` itself; infinite where it is too large for a float.

    Stop at 1 / alpha.
    """
    log_value = float(log_pair_e_value(wins, losses))
    return math.exp(log_value) if log_value < 700.0 else math.inf
