"""What a stopping rule looks at: one running record for each kind of question and score.

Each record is fed units in their order and says at a look what is settled about this benchmark. Failed scores enter
twice, as the worst and the best that they could be: `low` and `high` always come from the filling that pulls them
outwards.

Of pairs of right-or-wrong answers there is an e-value, too: a bet against "no difference" that no strategy can win on average while that holds. So the
chance that it ever reaches 1 / alpha is at most alpha (Ville 1939), however often one looks and whenever
one stops.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from evalwright.statistics.confidence_sequences import AsymptoticSequence, BettingSequence
from evalwright.statistics.full_run import OPTIMUM, Outlook, binary_outlook, graded_outlook, kept_counts
from evalwright.statistics.stopping_rules import Rule
from evalwright.statistics.units import F64

Settled = Literal["open", "a better", "b better", "no difference seen", "close", "precise enough"]


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
        """The next unit's scores (nan = failed), item by item."""

    def look(self) -> LookResult:
        """What is settled by the units so far."""


def evidence_for(rule: Rule, scored: Scored) -> Evidence:
    """The record that fits the rule and the scores."""
    exact = scored.binary and not scored.clustered
    if rule.kind == "precision":
        return _ExactShare(rule, scored) if exact else _Mean(rule, scored)
    return _BinaryPairs(rule, scored) if exact else _GradedPairs(rule, scored)


class _ExactShare:
    """Right-or-wrong items: which numbers of right answers among all are not refuted."""

    method = "exact confidence sequence without replacement"

    def __init__(self, rule: Rule, scored: Scored) -> None:
        self._margin, self._scored = rule.margin or 0.0, scored
        self._n = self._least = self._most = 0
        self._low, self._high = 0.0, 1.0
        # The mixture bets best near the number of items that the wanted width needs, on the clock n N / (N - n).
        needed = min(2.5 / self._margin**2, 4 * scored.n_total)
        self._weight = max(1.0, needed / OPTIMUM)

    def add(self, a: list[float], b: list[float]) -> None:
        self._n += 1
        self._least += int(a[0] == 1.0)
        self._most += int(a[0] == 1.0 or math.isnan(a[0]))

    def look(self) -> LookResult:
        total, alpha = self._scored.n_total, self._scored.alpha
        low = kept_counts(self._least, self._n, [total], alpha, self._weight)[0][0] / total
        high = kept_counts(self._most, self._n, [total], alpha, self._weight)[1][0] / total
        if max(low, self._low) <= min(high, self._high):
            self._low, self._high = max(low, self._low), min(high, self._high)
        return _precise(self._low, self._high, self._margin)


class _Mean:
    """The mean of one model's scores: betting where single items are bounded, asymptotic otherwise.

    There is one confidence sequence, and from the first failure on two: failures at their worst and at their best.
    """

    def __init__(self, rule: Rule, scored: Scored) -> None:
        self._margin, self._ends = rule.margin or 0.0, scored.ends
        total, alpha = scored.n_total, scored.alpha
        self._worst: BettingSequence | AsymptoticSequence
        if scored.value_range is not None and not scored.clustered:
            self._worst = BettingSequence(total, alpha=alpha, value_range=scored.value_range)
            self.method = "betting confidence sequence without replacement"
        else:
            self._worst = AsymptoticSequence(total, alpha=alpha)
            self.method = "asymptotic confidence sequence without replacement"
        self._best = self._worst
        self._limited = True
        self._waiting: list[tuple[float, float, int]] = []

    def add(self, a: list[float], b: list[float]) -> None:
        low, high = self._ends
        self._waiting.append((_total(a, low), _total(a, high), len(a)))

    def look(self) -> LookResult:
        self._feed()
        if not self._limited:
            return _precise(-math.inf, math.inf, self._margin)
        low, high = self._worst.interval()[0], self._best.interval()[1]
        return _precise(min(low, high), max(low, high), self._margin)

    def _feed(self) -> None:
        if not self._waiting or not self._limited:
            return
        rows = np.array(self._waiting)
        self._waiting = []
        if not np.isfinite(rows).all():
            self._limited = False
            return
        if self._best is self._worst:
            unlike = np.flatnonzero(rows[:, 0] != rows[:, 1])
            first = int(unlike[0]) if len(unlike) else len(rows)
            _feed(self._worst, rows[:first, 0], rows[:first, 2])
            if first == len(rows):
                return
            self._best = copy.deepcopy(self._worst)
            rows = rows[first:]
        _feed(self._worst, rows[:, 0], rows[:, 2])
        _feed(self._best, rows[:, 1], rows[:, 2])


class _Pairs:
    """Differences of pairs, at the worst and at the best for a."""

    def __init__(self, rule: Rule, scored: Scored) -> None:
        self._rule, self._scored = rule, scored

    def _differences(self, a: list[float], b: list[float]) -> tuple[float, float]:
        low, high = self._scored.ends
        return _total(a, low) - _total(b, high), _total(a, high) - _total(b, low)

    def _finding(self, worst: Outlook, best: Outlook, e_value: float | None = None) -> LookResult:
        low, high, margin = worst.low, best.high, self._rule.margin
        verdict: Settled = "open"
        if worst.verdict == best.verdict and worst.verdict in ("a better", "b better"):
            verdict = worst.verdict
        elif self._rule.kind == "differs" and margin is not None and -margin < low <= high < margin:
            verdict = "close"
        elif worst.verdict == best.verdict == "no difference seen" and self._rule.kind == "beats":
            verdict = "no difference seen"
        return LookResult(verdict, low, high, e_value)


class _BinaryPairs(_Pairs):
    """Wins and losses among right-or-wrong pairs, for both fillings."""

    method = "full-run verdict, exact without replacement"

    def __init__(self, rule: Rule, scored: Scored) -> None:
        super().__init__(rule, scored)
        self._n = 0
        self._worst, self._best = [0, 0], [0, 0]

    def add(self, a: list[float], b: list[float]) -> None:
        self._n += 1
        for counts, difference in zip((self._worst, self._best), self._differences(a, b), strict=True):
            counts[0] += int(difference > 0)
            counts[1] += int(difference < 0)

    def look(self) -> LookResult:
        worst = self._outlook(*self._worst)
        best = worst if self._worst == self._best else self._outlook(*self._best)
        return self._finding(worst, best, min(pair_e_value(*self._worst), pair_e_value(*self._best)))

    def _outlook(self, wins: int, losses: int) -> Outlook:
        total, alpha = self._scored.n_total, self._scored.alpha
        if self._n == total:  # nothing is open; the ordinary comparison says the verdict
            difference = (wins - losses) / total
            return Outlook("open", difference, difference)
        directed = self._rule.kind == "beats"
        return binary_outlook(
            wins, losses, self._n, total, level=self._rule.level, alpha=alpha, directed=directed
        )


class _GradedPairs(_Pairs):
    """Differences of graded scores, or of clusters, for both fillings."""

    method = "full-run verdict, asymptotic without replacement"

    def __init__(self, rule: Rule, scored: Scored) -> None:
        super().__init__(rule, scored)
        self._rows: list[tuple[float, float, int]] = []

    def add(self, a: list[float], b: list[float]) -> None:
        self._rows.append((*self._differences(a, b), len(a)))

    def look(self) -> LookResult:
        rows = np.array(self._rows)
        if not np.isfinite(rows).all():
            return LookResult("open", -math.inf, math.inf)
        worst = self._outlook(rows[:, 0], rows[:, 2])
        failures = (rows[:, 0] != rows[:, 1]).any()
        return self._finding(worst, self._outlook(rows[:, 1], rows[:, 2]) if failures else worst)

    def _outlook(self, differences: F64, sizes: F64) -> Outlook:
        total, items, alpha = self._scored.n_total, self._scored.n_items, self._scored.alpha
        return graded_outlook(differences, sizes, total, items, level=self._rule.level, alpha=alpha)


def _feed(sequence: BettingSequence | AsymptoticSequence, totals: F64, items: F64) -> None:
    if isinstance(sequence, BettingSequence):
        sequence.update(totals)
    else:
        sequence.update(totals, items)


def _precise(low: float, high: float, margin: float) -> LookResult:
    return LookResult("precise enough" if high - low <= 2 * margin else "open", low, high)


def _total(scores: list[float], instead: float) -> float:
    return math.fsum(instead if math.isnan(score) else score for score in scores)


# -- e values ------------------------------------------------------------------------------------------------


def log_pair_e_value(wins: npt.ArrayLike, losses: npt.ArrayLike) -> F64:
    """Natural logarithm of the e-value against "a discordant item favours either model alike".

    e = B(p + w, p + l) / B(p, p) 2^(w + l) with p = 1/2, the mixture of all shares with a Beta(p, p) prior. `wins` and
    `losses` are counts of discordant items (only a right, only b right), numbers or arrays of one shape; the result
    has that shape. Items on which both agree carry no evidence. Assumes that items come in an order that does not
    depend on the answers.

    Source: Robbins (1970), "Statistical methods related to the law of the iterated logarithm"; Ramdas et
    al. (2023), "Game-theoretic statistics and safe anytime-valid inference".
    """
    from scipy.special import betaln

    w, lost = np.asarray(wins, dtype=np.float64), np.asarray(losses, dtype=np.float64)
    total: Any = betaln(0.5 + w, 0.5 + lost) - betaln(0.5, 0.5) + (w + lost) * math.log(2.0)
    return np.asarray(total, dtype=np.float64)


def pair_e_value(wins: int, losses: int) -> float:
    """The e-value of `log_pair_e_value` itself; infinite where it is too large for a float. Stop at 1 / alpha."""
    log_value = float(log_pair_e_value(wins, losses))
    return math.exp(log_value) if log_value < 700.0 else math.inf
