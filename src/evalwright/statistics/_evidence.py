"""What a stopping rule looks at: one running record for each kind of question, score and estimand.

Each record is fed units in their order and says at a look what is settled. Failed scores enter twice, as
the worst and the best that they could be: `low` and `high` below always come from the filling that pulls
them outwards.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from evalwright.statistics.asymptotic import AsymptoticSequence
from evalwright.statistics.confidence_sequences import BettingSequence
from evalwright.statistics.e_values import pair_e_value
from evalwright.statistics.finite_counts import OPTIMUM, kept_counts
from evalwright.statistics.full_run import Outlook, binary_outlook, graded_outlook
from evalwright.statistics.stopping_rules import Rule

Settled = Literal["open", "a better", "b better", "no difference seen", "close", "precise enough"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a record must know about the task (see `stopping.Monitor`); `here`: the estimand is this
    benchmark."""

    n_total: int
    here: bool
    binary: bool
    clustered: bool
    value_range: tuple[float, float] | None
    n_items: int | None
    alpha: float

    @property
    def population(self) -> int | None:
        """Units there are, for a mean over exactly these."""
        return self.n_total if self.here else None


@dataclass(frozen=True, slots=True)
class Finding:
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

    def look(self) -> Finding:
        """What is settled by the units so far."""


def evidence_for(rule: Rule, settings: Settings) -> Evidence:
    """The record that fits the rule, the scores and the estimand."""
    if rule.kind == "precision":
        if settings.binary and settings.here and not settings.clustered:
            return _ExactShare(rule, settings)
        return _Mean(rule, settings)
    if settings.here:
        exact = settings.binary and not settings.clustered
        return _BinaryFullRun(rule, settings) if exact else _GradedFullRun(rule, settings)
    exact = settings.binary and not settings.clustered
    return _PairsByEValue(rule, settings) if exact else _PairsByInterval(rule, settings)


class _ExactShare:
    """Right-or-wrong items of this benchmark: which numbers of right answers among N are not refuted."""

    method = "exact confidence sequence without replacement"

    def __init__(self, rule: Rule, settings: Settings) -> None:
        self._margin, self._settings = rule.margin or 0.0, settings
        self._n = self._least = self._most = 0
        self._low, self._high = 0.0, 1.0
        # The mixture bets best near the number of items that the wanted width needs, on the clock n N / (N - n).
        needed = min(2.5 / self._margin**2, 4 * settings.n_total)
        self._weight = max(1.0, needed / OPTIMUM)

    def add(self, a: list[float], b: list[float]) -> None:
        self._n += 1
        self._least += int(a[0] == 1.0)
        self._most += int(a[0] == 1.0 or math.isnan(a[0]))

    def look(self) -> Finding:
        total = self._settings.n_total
        low = kept_counts(self._least, self._n, [total], self._settings.alpha, self._weight)[0][0] / total
        high = kept_counts(self._most, self._n, [total], self._settings.alpha, self._weight)[1][0] / total
        if max(low, self._low) <= min(high, self._high):
            self._low, self._high = max(low, self._low), min(high, self._high)
        return _precise(self._low, self._high, self._margin)


class _Filled:
    """One confidence sequence, and from the first failure on two: failures at their worst and at their
    best."""

    def __init__(self, settings: Settings, span: tuple[float, float] | None) -> None:
        self._span = span
        self._sequence: BettingSequence | AsymptoticSequence
        if span is not None and not settings.clustered:
            self._sequence = BettingSequence(
                alpha=settings.alpha, n_total=settings.population, value_range=span
            )
            where = "without replacement" if settings.here else "for items like these"
            self.method = f"betting confidence sequence {where}"
        else:
            best = max(1, settings.n_total // 3)
            self._sequence = AsymptoticSequence(alpha=settings.alpha, n_opt=best, n_total=settings.population)
            self.method = f"asymptotic confidence sequence{' without replacement' if settings.here else ''}"
        self._best = self._sequence
        self._blind = False
        self._pending: list[tuple[float, float, int]] = []

    def add(self, worst: float, best: float, items: int) -> None:
        """The next unit: its total at the worst and at the best; infinite where nothing limits it."""
        self._pending.append((worst, best, items))

    def interval(self) -> tuple[float, float]:
        self._flush()
        if self._blind:
            return -math.inf, math.inf
        low, high = self._sequence.interval()[0], self._best.interval()[1]
        return min(low, high), max(low, high)

    def _flush(self) -> None:
        if not self._pending or self._blind:
            return
        rows = np.array(self._pending)
        self._pending = []
        if not np.isfinite(rows).all():
            self._blind = True
            return
        unlike = np.flatnonzero(rows[:, 0] != rows[:, 1])
        if self._best is self._sequence:
            first = int(unlike[0]) if len(unlike) else len(rows)
            _feed(self._sequence, rows[:first, 0], rows[:first, 2])
            if first == len(rows):
                return
            self._best = copy.deepcopy(self._sequence)
            rows = rows[first:]
        _feed(self._sequence, rows[:, 0], rows[:, 2])
        _feed(self._best, rows[:, 1], rows[:, 2])


class _Mean:
    """The mean of one model's scores: betting where they are bounded, asymptotic otherwise."""

    def __init__(self, rule: Rule, settings: Settings) -> None:
        self._margin, self._range = rule.margin or 0.0, settings.value_range
        self._filled = _Filled(settings, settings.value_range)
        self.method = self._filled.method

    def add(self, a: list[float], b: list[float]) -> None:
        low, high = self._range or (-math.inf, math.inf)
        self._filled.add(_total(a, low), _total(a, high), len(a))

    def look(self) -> Finding:
        return _precise(*self._filled.interval(), self._margin)


class _Pairs:
    """Differences of pairs, at the worst and at the best for a."""

    def __init__(self, rule: Rule, settings: Settings) -> None:
        self._rule, self._settings = rule, settings
        self._ends = settings.value_range or (-math.inf, math.inf)

    def _differences(self, a: list[float], b: list[float]) -> tuple[float, float]:
        low, high = self._ends
        return _total(a, low) - _total(b, high), _total(a, high) - _total(b, low)

    def _close(self, low: float, high: float) -> bool:
        margin = self._rule.margin
        return self._rule.kind == "differs" and margin is not None and -margin < low <= high < margin

    def _finding(self, worst: Outlook, best: Outlook, e_value: float | None = None) -> Finding:
        low, high = worst.low, best.high
        verdict: Settled = "open"
        if worst.verdict == best.verdict and worst.verdict in ("a better", "b better"):
            verdict = worst.verdict
        elif self._close(low, high):
            verdict = "close"
        elif worst.verdict == best.verdict == "no difference seen" and self._rule.kind == "beats":
            verdict = "no difference seen"
        return Finding(verdict, low, high, e_value)


class _CountedPairs(_Pairs):
    """Wins and losses among right-or-wrong pairs, for both fillings."""

    def __init__(self, rule: Rule, settings: Settings) -> None:
        super().__init__(rule, settings)
        self._n = 0
        self._worst, self._best = [0, 0], [0, 0]

    def add(self, a: list[float], b: list[float]) -> None:
        self._n += 1
        for counts, difference in zip((self._worst, self._best), self._differences(a, b), strict=True):
            counts[0] += int(difference > 0)
            counts[1] += int(difference < 0)

    def _e_value(self) -> float:
        return min(pair_e_value(*self._worst), pair_e_value(*self._best))


class _BinaryFullRun(_CountedPairs):
    method = "full-run verdict, exact without replacement"

    def look(self) -> Finding:
        worst = self._outlook(*self._worst)
        best = worst if self._worst == self._best else self._outlook(*self._best)
        return self._finding(worst, best, self._e_value())

    def _outlook(self, wins: int, losses: int) -> Outlook:
        total = self._settings.n_total
        if self._n == total:  # nothing is open; the ordinary comparison says the verdict
            difference = (wins - losses) / total
            return Outlook("open", difference, difference)
        return binary_outlook(
            wins,
            losses,
            self._n,
            total,
            level=self._rule.level,
            alpha=self._settings.alpha,
            directed=self._rule.kind == "beats",
        )


class _GradedFullRun(_Pairs):
    method = "full-run verdict, asymptotic without replacement"

    def __init__(self, rule: Rule, settings: Settings) -> None:
        super().__init__(rule, settings)
        self._rows: list[tuple[float, float, int]] = []
        self._failures = False

    def add(self, a: list[float], b: list[float]) -> None:
        worst, best = self._differences(a, b)
        self._failures = self._failures or worst != best
        self._rows.append((worst, best, len(a)))

    def look(self) -> Finding:
        rows = np.array(self._rows)
        if not np.isfinite(rows).all():
            return Finding("open", -math.inf, math.inf)
        worst = self._outlook(rows[:, 0], rows[:, 2])
        return self._finding(worst, self._outlook(rows[:, 1], rows[:, 2]) if self._failures else worst)

    def _outlook(self, differences: np.ndarray, sizes: np.ndarray) -> Outlook:
        settings = self._settings
        return graded_outlook(
            differences,
            sizes,
            settings.n_total,
            settings.n_items,
            level=self._rule.level,
            alpha=settings.alpha,
        )


class _PairsByEValue(_CountedPairs):
    """Items like these, right or wrong: the e-value says who is better, a betting sequence that neither is
    by much."""

    method = "pair e-value for items like these"

    def __init__(self, rule: Rule, settings: Settings) -> None:
        super().__init__(rule, settings)
        self._filled = _Filled(settings, (-1.0, 1.0))

    def add(self, a: list[float], b: list[float]) -> None:
        super().add(a, b)
        self._filled.add(*self._differences(a, b), 1)

    def look(self) -> Finding:
        bar = 1 / self._settings.alpha
        low, high = self._filled.interval()
        verdict: Settled = "open"
        if self._worst[0] > self._worst[1] and pair_e_value(*self._worst) >= bar:
            verdict = "a better"
        elif self._best[1] > self._best[0] and pair_e_value(*self._best) >= bar:
            verdict = "b better"
        elif self._close(low, high):
            verdict = "close"
        return Finding(verdict, low, high, self._e_value())


class _PairsByInterval(_Pairs):
    """Items like these, graded or in clusters: who is better once the confidence sequence leaves 0 out."""

    def __init__(self, rule: Rule, settings: Settings) -> None:
        super().__init__(rule, settings)
        span = None if settings.value_range is None else settings.value_range[1] - settings.value_range[0]
        self._filled = _Filled(settings, None if span is None else (-span, span))
        self.method = self._filled.method

    def add(self, a: list[float], b: list[float]) -> None:
        self._filled.add(*self._differences(a, b), len(a))

    def look(self) -> Finding:
        low, high = self._filled.interval()
        better: Settled = "a better" if low > 0 else "b better" if high < 0 else "open"
        return Finding("close" if better == "open" and self._close(low, high) else better, low, high)


def _precise(low: float, high: float, margin: float) -> Finding:
    return Finding("precise enough" if high - low <= 2 * margin else "open", low, high)


def _total(scores: list[float], instead: float) -> float:
    return math.fsum(instead if math.isnan(score) else score for score in scores)


def _feed(sequence: BettingSequence | AsymptoticSequence, totals: np.ndarray, items: np.ndarray) -> None:
    if isinstance(sequence, BettingSequence):
        sequence.update(totals)
    else:
        sequence.update(totals, items)
