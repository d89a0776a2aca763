"""What another design of a comparison would show: more items, more repeats of each, more prompts.

The variance of a paired difference has parts: items differ in how much better one model is on them;
a repeated draw of an answer comes out otherwise; another wording of the prompt changes single
items, and shifts all of them together. With n items, K repeats and P prompts of each the squared
standard error of the mean difference is

    item / n  +  (shift + (prompt + draw / K) / n) / P

`variance_parts` estimates the parts by the analysis of variance of items x prompts x draws.
`Design` is a comparison that was made (the very numbers of `compare_paired`), scaled to other n and
K: its effective counts and degrees of freedom grow with the items, and shrink with the ratio of the
variances. So what it says of the design that was run is what the comparison says. Of several
prompts the mean over them is taken as over a sample of prompts (`task_sample`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evalwright.statistics._quantiles import t_quantile
from evalwright.statistics.pairwise import ADDED, AllPairs
from evalwright.statistics.power import Limits
from evalwright.statistics.task_sample import sampled_spread
from evalwright.statistics.units import (
    F64,
    Clusters,
    Spread,
    kept_codes,
    standard_error,
)

_NONE = Limits(math.nan, math.nan, math.nan)
MOST_ITEMS = 1e9


@dataclass(frozen=True, slots=True)
class VarianceParts:
    """Parts of the variance of one item's paired difference, with limits.

    A part is nan if the data cannot separate it from the item's.

    Args:
        item: of the true difference over items.
        draw: of one draw of both models.
        prompt: of how an item's difference changes with the prompt.
        shift: of how the mean difference changes with the prompt.
        items, repeats, prompts: how much was measured.
        noise: what the draws that were made add to an item's difference.
        clustered: the item part including the effect of clusters.
        freedom: degrees of freedom of the error of the mean.
    """

    item: Limits
    draw: Limits
    prompt: Limits
    shift: Limits
    items: int
    repeats: float
    prompts: int
    noise: float
    clustered: float
    freedom: float

    def own(self, repeats: float) -> float:
        """What one prompt's answers add to an item's difference, beside the item part."""
        return self.noise * self.repeats / repeats + (
            0.0 if math.isnan(self.prompt.value) else self.prompt.value
        )

    def ratio(self, repeats: float) -> float:
        """The variance with so many repeats of one prompt, relative to the repeats measured."""
        if repeats == self.repeats:
            return 1.0
        measured_variance = self.clustered + self.own(self.repeats)
        return (
            (self.clustered + self.own(repeats)) / measured_variance
            if measured_variance > 0
            else 1.0
        )


def variance_parts(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    clusters: Clusters = None,
    level: float = 0.95,
) -> VarianceParts:
    """The parts of the variance of a - b.

    `a`, `b`: (items, prompts, draws), nan = missing; the numbers of draws may differ.

    Items that lack a prompt are left out. A part is the mean over items of a quantity that is right
    on average, so its limits are those of a (clustered) t interval, not below 0; those of `shift`
    are of a variance of P normal values (chi-squared).
    """
    scores = [np.asarray(side, dtype=np.float64) for side in (a, b)]
    if (
        any(side.ndim != 3 for side in scores)
        or scores[0].shape[:2] != scores[1].shape[:2]
    ):
        raise ValueError(
            "scores must have the shape (items, prompts, draws), the same items and"
            " prompts for both"
        )
    has = [~np.isnan(side) for side in scores]
    every = [np.count_nonzero(present, axis=2).min(axis=1) > 0 for present in has]
    is_whole = every[0] & every[1]
    scores = [side[is_whole] for side in scores]
    codes, n_clusters = kept_codes(clusters, is_whole)
    n, prompts = scores[0].shape[:2]
    if n < 2:
        return VarianceParts(_NONE, _NONE, _NONE, _NONE, n, 1.0, prompts, 0.0, 0.0, 1.0)

    def mean(values: F64) -> Limits:
        spread = standard_error(values, codes, n_clusters)
        value = float(values.mean())
        half = t_quantile(0.5 + level / 2, max(spread.freedom, 1.0)) * spread.error
        return Limits(max(0.0, value), max(0.0, value - half), max(0.0, value + half))

    (ours, of_a, mean_of_a), (theirs, of_b, mean_of_b) = (
        _within_items(side) for side in scores
    )
    # draw: (items,), nan where a model has one draw
    means = ours - theirs
    draw = of_a + of_b
    noise = np.nan_to_num(mean_of_a + mean_of_b)
    repeated = bool(np.isfinite(draw).all())
    item_means = means.mean(axis=1)
    squares = (item_means - item_means.mean()) ** 2 * (n / (n - 1))
    spread = standard_error(item_means, codes, n_clusters)
    prompt = shift = _NONE
    noise_of_items = noise
    if prompts > 1:
        column = means.mean(axis=0)
        residuals = means - item_means[:, None] - column + item_means.mean()
        noise_of_items = (residuals**2).sum(axis=1) / (prompts - 1) * (n / (n - 1))
        prompt = mean(noise_of_items - noise)
        shift = _shift_limits(
            float(column.var(ddof=1)), float(noise_of_items.mean()) / n, prompts, level
        )
    return VarianceParts(
        item=mean(squares - (noise_of_items / prompts)),
        draw=mean(draw) if repeated else _NONE,
        prompt=prompt,
        shift=shift,
        items=n,
        repeats=sum(side.shape[2] for side in scores) / 2,
        prompts=prompts,
        noise=float(noise.mean()),
        clustered=(
            max(0.0, spread.error**2 * n - float(noise_of_items.mean()) / prompts)
            if spread.error > 0
            else 0.0
        ),
        freedom=max(spread.freedom, 1.0),
    )


def _within_items(scores: F64) -> tuple[F64, F64, F64]:
    """One model's means (items, prompts), and by item the variance of a draw and of their mean."""
    there = ~np.isnan(scores)
    counts = there.sum(axis=2)
    means = np.where(there, scores, 0.0).sum(axis=2) / counts
    squares = np.where(there, (scores - means[:, :, None]) ** 2, 0.0).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        draw_variance = np.where(counts > 1, squares / (counts - 1), np.nan)
    if not np.isfinite(draw_variance).any():
        return means, np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    draw_variance = np.where(
        np.isfinite(draw_variance), draw_variance, np.nanmean(draw_variance)
    )
    return means, draw_variance.mean(axis=1), (draw_variance / counts).mean(axis=1)


def _shift_limits(seen: float, noise: float, prompts: int, level: float) -> Limits:
    """The variance between prompts of which `seen` is the variance of their means, `noise` what the
    items add to it.
    """
    from scipy.special import chdtri

    freedom = prompts - 1
    low, high = (
        float(seen * freedom / chdtri(freedom, at))
        for at in (0.5 - level / 2, 0.5 + level / 2)
    )
    return Limits(max(0.0, seen - noise), max(0.0, low - noise), max(0.0, high - noise))


@dataclass(frozen=True, slots=True)
class Design:
    """A measured comparison of two models, from which other designs are predicted.

    Args:
        pairs: its numbers, from `paired.paired_differences`.
        asked: items that both models were asked, some perhaps without a score.
        parts: of the variance, None if unknown.
        unknown: what missing answers add to the smallest visible difference.
        wider: what they add to half of the interval.
        clusters: the design effect of the whole task relative to the measured items.
    """

    pairs: AllPairs
    asked: int
    level: float = 0.95
    power: float = 0.8
    parts: VarianceParts | None = None
    unknown: float = 0.0
    wider: float = 0.0
    clusters: float = 1.0

    @property
    def repeats(self) -> float:
        """Draws an item, as made."""
        return self.parts.repeats if self.parts else 1.0

    def half_width(
        self,
        items: float,
        repeats: float | None = None,
        prompts: int = 1,
        ratio: float = 1.0,
    ) -> float:
        """Half of the interval of the difference.

        Args:
            ratio: the variance relative to the measured one.
        """
        if prompts > 1:
            error, freedom, _ = self._prompts(items, repeats, prompts)
            return t_quantile(0.5 + self.level / 2, freedom) * error
        low, high = self._scaled(items, repeats, ratio).limits(1 - self.level)
        return float(high - low) / 2 + self.wider

    def visible(
        self,
        items: float,
        repeats: float | None = None,
        prompts: int = 1,
        ratio: float = 1.0,
    ) -> float:
        """The smallest difference that is seen with probability `power`."""
        if prompts > 1:
            error, freedom, _ = self._prompts(items, repeats, prompts)
            return (
                t_quantile(0.5 + self.level / 2, freedom)
                + t_quantile(self.power, freedom)
            ) * error
        seen = (
            float(self._scaled(items, repeats, ratio).visible(self.level, self.power))
            + self.unknown
        )
        return seen if self.pairs.counts is None else min(seen, self.pairs.span)

    def items_for(
        self,
        difference: float,
        repeats: float | None = None,
        prompts: int = 1,
        ratio: float = 1.0,
    ) -> int | None:
        """The fewest items whose visible difference is small enough; None if out of reach."""
        return fewest(lambda n: self.visible(n, repeats, prompts, ratio) <= difference)

    def _scaled(self, items: float, repeats: float | None, ratio: float) -> AllPairs:
        pairs = self.pairs
        times = items / self.asked
        variance = ratio * (self.clusters if items > self.asked else 1.0)
        if self.parts is not None and repeats is not None:
            variance *= self.parts.ratio(repeats)
        freedom = np.maximum((pairs.freedom[0, 1] + 1) * times - 1, 1.0)
        counts = pairs.counts
        if counts is not None:
            factor = times / variance
            better, worse, size = (
                (float(part[0, 1]) - added) * factor + added
                for part, added in (
                    (counts.better, ADDED),
                    (counts.worse, ADDED),
                    (counts.size, 2 * ADDED),
                )
            )
            stretch = np.broadcast_to(counts.stretch, pairs.n.shape)[0, 1]
            counts = replace(
                counts,
                better=np.asarray(better),
                worse=np.asarray(worse),
                size=np.asarray(size),
                freedom=freedom,
                stretch=stretch,
            )
        return AllPairs(
            difference=pairs.difference[0, 1],
            error=pairs.error[0, 1] * math.sqrt(variance / times),
            freedom=freedom,
            n=pairs.n[0, 1],
            units=pairs.units[0, 1],
            worth=pairs.worth[0, 1] * times,
            counts=counts,
            span=pairs.span,
            n_missing=np.zeros((), np.int64),
            counted=pairs.counted[0, 1],
            differing=pairs.differing[0, 1] * times,
            skewness=pairs.skewness[0, 1] / math.sqrt(times),
        )

    def _prompts(self, items: float, repeats: float | None, prompts: int) -> Spread:
        parts = self.parts
        if parts is None or math.isnan(parts.shift.value):
            raise ValueError(
                "what several prompts show is known only from runs with several prompts"
            )
        items *= (
            parts.items / self.asked
        )  # some lack a score, and the same share of others will
        between = parts.shift.value + parts.own(repeats or parts.repeats) / items
        shared = parts.clustered * self.clusters / items
        return sampled_spread(
            between,
            prompts,
            shared,
            max(1.0, (parts.freedom + 1) * items / parts.items - 1),
        )


def fewest(enough: Callable[[float], bool]) -> int | None:
    """The least whole number from 2 on that is enough, if more always is; None past a thousand
    million.
    """
    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_ITEMS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
