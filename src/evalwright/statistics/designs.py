"""Predicts a comparison with another design: more items, more repeats of each, or more prompts.

The variance of a paired difference has parts: items differ in how much better one model is on
them; a repeated draw of an answer comes out differently; another wording of the prompt changes
single items, and shifts all of them together. With n items, K repeats and P prompts of each the
squared standard error of the mean difference is

    item / n  +  (shift + (prompt + draw / K) / n) / P

`variance_parts` estimates the parts by the analysis of variance of items x prompts x draws.
`Design` is a completed comparison (with the very numbers of `compare_paired`), scaled to other
n and K: its effective counts and degrees of freedom grow with the items, and shrink with the
ratio of the variances. So for the design that was run, the prediction equals the comparison.
With several prompts, the mean over them is treated as over a sample of prompts (`task_sample`).
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
    """The parts of the variance of one item's paired difference, with limits.

    A part is nan if the data cannot separate it from the item's.

    Args:
        item: variance of the true difference over items.
        draw: variance of one draw of both models.
        prompt: variance of an item's difference over prompts.
        shift: variance of the mean difference over prompts.
        items: number of items measured.
        repeats: draws of each.
        prompts: number of prompts.
        noise: what the draws that were made add to the variance of an item's difference.
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

    def answer_variance(self, repeats: float) -> float:
        """The variance of an item's difference that is due to draws and prompts."""
        return self.noise * self.repeats / repeats + (
            0.0 if math.isnan(self.prompt.value) else self.prompt.value
        )

    def ratio(self, repeats: float) -> float:
        """The variance with `repeats` draws per item, relative to that with the measured number."""
        if repeats == self.repeats:
            return 1.0
        measured_variance = self.clustered + self.answer_variance(self.repeats)
        return (
            (self.clustered + self.answer_variance(repeats)) / measured_variance
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
    """Estimate the parts of the variance of a - b by analysis of variance.

    Items that lack a prompt are left out. Each part is the mean over items of an unbiased quantity,
    so its limits are those of a (clustered) t interval, cut at 0; those of `shift` are of the
    variance of P normal values (chi-squared).

    Args:
        a: (items, prompts, draws), nan is missing.
        b: likewise, with the same items and prompts; the number of draws may differ.
        clusters: (items,) integers; items that share one are not independent.
        level: confidence level of the limits.
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
    has_both = [np.count_nonzero(present, axis=2).min(axis=1) > 0 for present in has]
    is_whole = has_both[0] & has_both[1]
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
    # draw: (items,), nan where a model has a single draw
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
    """Compute one model's means (items, prompts), and by item two variances.

    They are the variance of a draw, and of the mean of the draws.
    """
    has_score = ~np.isnan(scores)
    counts = has_score.sum(axis=2)
    means = np.where(has_score, scores, 0.0).sum(axis=2) / counts
    squares = np.where(has_score, (scores - means[:, :, None]) ** 2, 0.0).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        draw_variance = np.where(counts > 1, squares / (counts - 1), np.nan)
    if not np.isfinite(draw_variance).any():
        return means, np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    draw_variance = np.where(
        np.isfinite(draw_variance), draw_variance, np.nanmean(draw_variance)
    )
    return means, draw_variance.mean(axis=1), (draw_variance / counts).mean(axis=1)


def _shift_limits(seen: float, noise: float, prompts: int, level: float) -> Limits:
    """The variance between prompts, with chi-squared limits.

    Args:
        seen: the variance of the prompts' means.
        noise: what the items add to it.
        prompts: number of prompts.
        level: confidence level.
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
        pairs: the comparison's numbers, from `paired.paired_differences`.
        asked: number of items that both models were asked, including those without a score.
        level: confidence level of the intervals.
        power: the probability with which a visible difference is detected.
        parts: the parts of the variance, None if unknown.
        added_visible: what missing answers add to the smallest visible difference.
        added_half_width: what they add to half the width of the interval.
        clusters: the design effect of the whole task relative to the measured items.
    """

    pairs: AllPairs
    asked: int
    level: float = 0.95
    power: float = 0.8
    parts: VarianceParts | None = None
    added_visible: float = 0.0
    added_half_width: float = 0.0
    clusters: float = 1.0

    @property
    def repeats(self) -> float:
        """Draws per item in the comparison that was measured."""
        return self.parts.repeats if self.parts else 1.0

    def half_width(
        self,
        items: float,
        repeats: float | None = None,
        prompts: int = 1,
        ratio: float = 1.0,
    ) -> float:
        """Predict half the width of the interval of the difference.

        Args:
            items: number of items.
            repeats: draws of each; as measured if None.
            prompts: number of prompts.
            ratio: the variance relative to the measured one.
        """
        if prompts > 1:
            error, freedom, _ = self._prompts(items, repeats, prompts)
            return t_quantile(0.5 + self.level / 2, freedom) * error
        low, high = self._scaled(items, repeats, ratio).limits(1 - self.level)
        return float(high - low) / 2 + self.added_half_width

    def visible(
        self,
        items: float,
        repeats: float | None = None,
        prompts: int = 1,
        ratio: float = 1.0,
    ) -> float:
        """Predict the smallest difference that is detected with probability `power`."""
        if prompts > 1:
            error, freedom, _ = self._prompts(items, repeats, prompts)
            return (
                t_quantile(0.5 + self.level / 2, freedom)
                + t_quantile(self.power, freedom)
            ) * error
        seen = (
            float(self._scaled(items, repeats, ratio).visible(self.level, self.power))
            + self.added_visible
        )
        return seen if self.pairs.counts is None else min(seen, self.pairs.span)

    def items_for(
        self,
        difference: float,
        repeats: float | None = None,
        prompts: int = 1,
        ratio: float = 1.0,
    ) -> int | None:
        """Find the fewest items with which `difference` is visible; None if out of reach."""
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
            effective_units=pairs.effective_units[0, 1] * times,
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
        )  # some lack a score, and so will the same share of further items
        between = (
            parts.shift.value + parts.answer_variance(repeats or parts.repeats) / items
        )
        shared = parts.clustered * self.clusters / items
        return sampled_spread(
            between,
            prompts,
            shared,
            max(1.0, (parts.freedom + 1) * items / parts.items - 1),
        )


def fewest(enough: Callable[[float], bool]) -> int | None:
    """Find the smallest whole number from 2 on for which `enough` holds, by bisection.

    `enough` must stay true from there on. None if it does not hold up to a thousand million.
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
