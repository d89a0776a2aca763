"""Which answers to label next, so that ranks by corrected scores become narrower.

Labels are worth most where they could settle a pair of models that is still open: of neighbours,
on strata of verdicts in which the judge errs often. The number of labels in each stratum of each
model follows from a greedy search. Every further label goes where it adds most to the expected
number of settled pairs,

    sum over open pairs of P(|d| / SE - z > 0),     SE^2 = V_a + V_b,
    V = sum_h W_h^2 (1 - n_h / N_h) s_h^2 / n_h + Var(y) / N

with W_h the share of stratum h, s_h the spread of its labels so far (with ten assumed labels,
so that a few without an error are no proof), and z Holm's strictest quantile.

Within a stratum answers are drawn at random among those not drawn before. So each has a known
chance of having a label, old or new, and the correction by strata holds (Horvitz & Thompson
1952). The numbers themselves depend on earlier labels, as in any two-phase design; simulations of
whole boards count that too (docs/reference/coverage.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import normal_cdf, normal_quantile
from evalwright.statistics.corrected_ranks import (
    FEWEST_LABELS,
    LabelledModel,
    correct_scores,
)
from evalwright.statistics.labelling import make_strata
from evalwright.statistics.units import F64, I64, Clusters

FEWEST_IN_STRATUM = 10
"""Least labels in a stratum of a model from which labels are drawn, if it has as many answers."""
PLANNED_CHANCE = 0.8
"""Chance to settle a pair at which its number of labels is called enough."""
_ASSUMED_LABELS = 10.0
"""Weight, in labels, of the spread that is assumed before there are any.

A stratum whose first labels show no error by chance would get few more, and its error would stay
underestimated: with a weight of 2, 5.5% of boards of equal models have a false finding, with 10 2%.
"""
_LEAST_DOUBT = 0.1
"""Least share of a stratum's verdicts that is assumed to be wrong before there are labels."""
_ROUNDS = 60
"""Most rounds of the greedy search; each shares out at least one label."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannedLabels:
    """The answers of one model that people should label next.

    Args:
        indices: (drawn,), items, in the order drawn.
        strata: (items,), the stratum of each item, -1 without a verdict.
        labels: number of labels so far.
        half_width: half the width of the 95% interval so far; nan without labels.
        expected_half_width: with the new labels.
    """

    indices: tuple[int, ...]
    strata: I64
    labels: int
    half_width: float
    expected_half_width: float


@dataclass(frozen=True, slots=True)
class PairNeed:
    """How many labels should settle an open pair of neighbours.

    Args:
        models: their positions, the better one first.
        gap: the expected difference of their scores, from 0 to 1.
        labels: labels of each of the two, those so far included, with which the pair is settled
            with a chance of 80%; None if all of their answers are too few.
    """

    models: tuple[int, int]
    gap: float
    labels: int | None


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """What to label next on a board.

    Args:
        models: one for each model.
        open_pairs: number of pairs that the labels so far leave open.
        expected_settled: how many of them the new labels should settle.
        needs: what the open pairs of neighbours need, those with the fewest labels first.
    """

    models: tuple[PlannedLabels, ...]
    open_pairs: int
    expected_settled: float
    needs: tuple[PairNeed, ...] = ()


def plan_labels(
    models: Sequence[LabelledModel],
    size: int,
    *,
    clusters: Clusters = None,
    drawn: Sequence[npt.NDArray[np.bool_]] = (),
    level: float = 0.95,
    seed: int = 0,
    top: int | None = None,
    lower_is_better: bool = False,
) -> LabelPlan:
    """Choose the answers to label next, so that as many pairs as possible are settled.

    Args:
        models: verdicts and labels of each model so far.
        size: number of answers to draw, over all models.
        clusters: (items,) integers; items that share one are not independent.
        drawn: for each model, which items were drawn before (labelled or not); these are not
            drawn again.
        level: 1 minus the chance of any false finding.
        seed: seeds the draw.
        top: settle only the ranks among this many of the best models; None for all.
        lower_is_better: whether a model with a lower score is better.

    Raises:
        ValueError: no pair is open, or the size is too small for two models.
    """
    states = [
        _State.of(model, drawn[index] if drawn else ~np.isnan(model.human))
        for index, model in enumerate(models)
    ]
    sign = 1.0 if lower_is_better else -1.0
    order = sorted(range(len(states)), key=lambda index: sign * states[index].value)
    considered = {*order[:top]}
    pairs = [
        (a, b)
        for a, b in _open_pairs(models, clusters, level)
        if a in considered and b in considered
    ]
    if not len(pairs):
        raise ValueError(
            "no pair of these models is open: every rank is settled by the labels so far"
        )
    count = len(models)
    critical = normal_quantile(1 - (1 - level) / (count * (count - 1)))
    needs = _needs_of(states, pairs, order, critical)
    before = [state.variance() for state in states]
    spent = _share_out_base(states, pairs, size, needs)
    _share_out_rest(states, pairs, size - spent, critical)
    rng = np.random.default_rng(seed)
    planned = []
    for state, variance in zip(states, before, strict=True):
        planned.append(
            PlannedLabels(
                indices=state.draw(rng),
                strata=state.strata,
                labels=int(state.labelled.sum()),
                half_width=(
                    1.96 * float(np.sqrt(variance)) if state.labelled.any() else np.nan
                ),
                expected_half_width=1.96 * float(np.sqrt(state.variance())),
            )
        )
    settled = sum(
        _chance_to_settle(
            states[a].value - states[b].value,
            states[a].variance() + states[b].variance(),
            critical,
        )
        for a, b in pairs
    )
    return LabelPlan(tuple(planned), len(pairs), float(settled), needs)


def _needs_of(
    states: Sequence[_State],
    pairs: Sequence[tuple[int, int]],
    order: Sequence[int],
    critical: float,
) -> tuple[PairNeed, ...]:
    """How many labels each open pair of neighbours needs, in the order of the number."""
    open_pairs = {frozenset(pair) for pair in pairs}
    needs = []
    for a, b in itertools.pairwise(order):
        if frozenset((a, b)) in open_pairs:
            gap = abs(states[a].value - states[b].value)
            labels = _labels_to_settle(states[a], states[b], gap, critical)
            needs.append(PairNeed((a, b), gap, labels))
    needs.sort(key=lambda need: math.inf if need.labels is None else need.labels)
    return tuple(needs)


def _labels_to_settle(
    first: _State, second: _State, gap: float, critical: float
) -> int | None:
    """Find the least number of labels of each of two models with which they probably differ."""

    def is_enough(labels: int) -> bool:
        variance = first.variance_with(labels) + second.variance_with(labels)
        return _chance_to_settle(gap, variance, critical) >= PLANNED_CHANCE

    most = int(min(first.sizes.sum(), second.sizes.sum()))
    least = FEWEST_LABELS
    if most < least or not is_enough(most):
        return None
    while least < most:
        middle = (least + most) // 2
        if is_enough(middle):
            most = middle
        else:
            least = middle + 1
    return least


def _chance_to_settle(difference: float, variance: float, critical: float) -> float:
    return normal_cdf(abs(difference) / float(np.sqrt(variance)) - critical)


class _State:
    """A model's strata, and the labels that they have and get.

    Attributes:
        strata: (items,), -1 without a verdict.
        sizes: (strata,), number of items.
        labelled: (strata,), labels so far.
        free: (strata,), items that can be drawn.
        added: (strata,), new labels.
        spread: (strata,), expected variance of a label.
        value: expected score.
    """

    def __init__(
        self, strata: I64, may_draw: npt.NDArray[np.bool_], model: LabelledModel
    ) -> None:
        count = int(strata.max()) + 1
        has_stratum = strata >= 0
        has_label = has_stratum & ~np.isnan(model.human)

        def tally(which: npt.NDArray[np.bool_], weights: F64 | None = None) -> F64:
            chosen = None if weights is None else weights[which]
            sums = np.bincount(strata[which], weights=chosen, minlength=count)
            return np.asarray(sums, dtype=np.float64)

        self.strata = strata
        self.may_draw = may_draw & has_stratum
        self.sizes = tally(has_stratum)
        self.labelled = tally(has_label)
        self.free = tally(self.may_draw)
        self.added = np.zeros(count)
        verdicts = tally(has_stratum, model.judge) / self.sizes
        assumed = np.clip(verdicts, _LEAST_DOUBT, 1 - _LEAST_DOUBT)
        weight = self.labelled + _ASSUMED_LABELS
        means = (tally(has_label, model.human) + _ASSUMED_LABELS * assumed) / weight
        squares = np.zeros(len(strata))
        squares[has_label] = (model.human[has_label] - means[strata[has_label]]) ** 2
        self.spread = (
            tally(has_label, squares) + _ASSUMED_LABELS * assumed * (1 - assumed)
        ) / weight
        shares = self.sizes / self.sizes.sum()
        self.value = float(np.dot(shares, means))
        self.item_variance = (
            float(np.dot(shares, self.spread + (means - self.value) ** 2))
            / self.sizes.sum()
        )
        self.shares = shares

    @classmethod
    def of(cls, model: LabelledModel, drawn: npt.NDArray[np.bool_]) -> _State:
        judged = ~np.isnan(model.judge)
        strata = np.full(len(model.judge), -1, dtype=np.int64)
        codes = (
            make_strata(model.judge[judged])
            if model.strata is None
            else model.strata[judged]
        )
        strata[judged] = np.unique(codes, return_inverse=True)[1]
        return cls(strata, ~drawn, model)

    def parts(self, more: float = 0.0) -> F64:
        """Each stratum's part of the variance, with some more labels in it."""
        n = np.minimum(self.labelled + self.added + more, self.sizes)
        unseen = 1 - n / self.sizes
        parts: F64 = self.shares**2 * unseen * self.spread / np.maximum(n, 0.5)
        return parts

    def variance(self) -> float:
        """The expected variance of the corrected score."""
        return float(self.parts().sum()) + float(self.item_variance)

    def variance_with(self, labels: int) -> float:
        """The expected variance with this many labels, shared out as is best for the strata."""
        spread = np.maximum(self.spread, 1e-12)
        weights = self.shares * np.sqrt(spread)
        n = np.minimum(np.maximum(labels * weights / weights.sum(), 1.0), self.sizes)
        unseen = 1 - n / self.sizes
        parts = self.shares**2 * unseen * self.spread / n
        return float(parts.sum()) + float(self.item_variance)

    @property
    def needed(self) -> F64:
        """The labels that each stratum needs before the model can be corrected by strata."""
        n = self.labelled + self.added
        fewest_by_stratum = np.minimum(FEWEST_IN_STRATUM, self.sizes)
        needed: F64 = np.minimum(
            np.maximum(fewest_by_stratum - n, 0), self.free - self.added
        )
        short = FEWEST_LABELS - float((n + needed).sum())
        if short > 0:
            room = self.free - self.added - needed
            needed[int(np.argmax(room))] += min(short, float(room.max()))
        return needed

    def draw(self, rng: np.random.Generator) -> tuple[int, ...]:
        """Draw the new labels at random within each stratum."""
        chosen = list[int]()
        for stratum, number in enumerate(self.added.astype(int).tolist()):
            free = np.flatnonzero(self.may_draw & (self.strata == stratum))
            chosen += rng.choice(free, number, replace=False).tolist()
        return tuple(rng.permutation(chosen).astype(int).tolist())


def _open_pairs(
    models: Sequence[LabelledModel], clusters: Clusters, level: float
) -> list[tuple[int, int]]:
    """The pairs that the labels so far do not settle."""
    corrected = correct_scores(models, clusters=clusters, level=level)
    settled = np.zeros((len(models), len(models)), dtype=np.bool_)
    if corrected.differences is not None:
        compared = np.array(corrected.compared)
        settled[np.ix_(compared, compared)] = corrected.differences.differs
    rows, columns = np.triu_indices(len(models), 1)
    return [
        (a, b)
        for a, b in zip(rows.tolist(), columns.tolist(), strict=True)
        if not settled[a, b]
    ]


def _share_out_base(
    states: Sequence[_State],
    pairs: Sequence[tuple[int, int]],
    size: int,
    needs: Sequence[PairNeed],
) -> int:
    """Give models the labels without which they cannot be corrected.

    Neighbours that few labels settle are first, then pairs by how close they are.
    """
    spent = 0
    labels_by_pair = {frozenset(need.models): need.labels for need in needs}

    def cost_and_distance(pair: tuple[int, int]) -> tuple[float, float]:
        labels = labels_by_pair.get(frozenset(pair))
        distance = abs(states[pair[0]].value - states[pair[1]].value)
        return math.inf if labels is None else labels, distance

    for pair in sorted(pairs, key=cost_and_distance):
        base = {index: states[index].needed for index in pair}
        cost = int(sum(labels.sum() for labels in base.values()))
        if cost and spent + cost <= size:
            spent += cost
            for index, labels in base.items():
                states[index].added += labels
    ready = [
        not states[a].needed.any() and not states[b].needed.any() for a, b in pairs
    ]
    if not any(ready):
        least = min(
            int(states[a].needed.sum() + states[b].needed.sum()) for a, b in pairs
        )
        raise ValueError(
            f"{size} labels are too few: two models need at least {least} more before"
            " they can be compared"
        )
    return spent


def _share_out_rest(
    states: Sequence[_State],
    pairs: Sequence[tuple[int, int]],
    size: int,
    critical: float,
) -> None:
    """Share out `size` labels, a batch at a time, where they add most."""
    ready = [not state.needed.any() for state in states]
    pairs = [(a, b) for a, b in pairs if ready[a] and ready[b]]
    batch = max(1, -(-size // _ROUNDS))
    while size > 0:
        weights = _weights_of_variance(states, pairs, critical)
        best = (0.0, -1, -1)
        for index, state in enumerate(states):
            if not weights[index]:
                continue
            gains = weights[index] * (state.parts() - state.parts(batch))
            gains = np.where(state.free - state.added > 0, gains, -1.0)
            stratum = int(np.argmax(gains))
            best = max(best, (float(gains[stratum]), index, stratum))
        _, index, stratum = best
        if index < 0:
            return
        state = states[index]
        number = min(batch, size, int(state.free[stratum] - state.added[stratum]))
        state.added[stratum] += number
        size -= number


def _weights_of_variance(
    states: Sequence[_State], pairs: Sequence[tuple[int, int]], critical: float
) -> F64:
    """By how much a smaller variance of each model settles more pairs.

    The derivative of the chance to settle. Of pairs without any difference so far half a standard
    error is assumed, so that they get labels where nothing else is open.
    """
    weights = np.zeros(len(states))
    for a, b in pairs:
        variance = states[a].variance() + states[b].variance()
        error = float(np.sqrt(variance))
        ratio = max(0.5, abs(states[a].value - states[b].value) / error)
        density = float(np.exp(-0.5 * (ratio - critical) ** 2))
        weights[[a, b]] += density * ratio / variance
    return weights
