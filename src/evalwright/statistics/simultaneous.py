"""All models at once: intervals that hold together and adjusted p-values, from one shared resample of the units.

With 20 models there are 190 pairs, and a 95% interval each leaves some ten of them wrong. Here the critical value is
that of the *largest* deviation among all pairs (max-|t|, Westfall & Young 1993). Every resample reweights the same
units for all models, so what the models share (hard items, passages) lowers it below Bonferroni's.

The resample is the Gaussian multiplier bootstrap (Chernozhukov, Chetverikov & Kato 2013): independent normal weights
on the units' influences. Given the data, the weighted sums are normal with the covariance of the models' totals, so
for complete scores the draws are made from that small matrix and their cost does not depend on the number of items.
Where models lack items each pair has influences of its own; then the units are put into at most `GROUPS` random
groups, which estimates the same covariance. A score that failed is in the middle of its range for the resample, which only
weighs what the pairs have in common; the intervals themselves hold whatever it would have been (`pairwise.AllPairs`).

The critical value then stands for a level, and each pair has the interval and the test of `compare_paired` at that level, with
the pair's own degrees of freedom. Pairs without spread count as if they were independent of all others, which is the worst case.

`rank_sets`: a rank read off point estimates says nothing of chance. Mogstad, Romano, Shaikh & Wilhelm (2024, "Inference for ranks
with applications to mobility across neighbourhoods and academic achievement across countries") turn simultaneous
intervals of the pairwise differences into sets of ranks: a model's best rank is one more than the number of models
that are significantly better, its worst leaves out those that are significantly worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import mean_interval
from evalwright.statistics.multiplicity import holm
from evalwright.statistics.pairwise import (
    AllPairs,
    Bools,
    Pairs,
    checked_missing,
    common_differences,
    common_influences,
    grouped,
)
from evalwright.statistics.units import F64, I64, Clusters, Range, check_range, cluster_codes, cluster_ids

DRAWS = 2000
GROUPS = 1024
CELLS = 4_000_000  # draws x pairs held at a time: 32 MB
F32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SimultaneousDifferences(Plain):
    """Every pair of models: row minus column, all arrays (models, models).

    [`low`, `high`] hold all true differences together with probability `level`. `own_low` and `own_high` hold those
    of one model's row together: the family of a single model's questions. `p_value` is a pair alone, `p_adjusted`
    adjusted for all pairs (step-down). `critical` is the normal critical value of the largest deviation, `n` and
    `units` are the common items and clusters of a pair. `n_missing` items of a pair failed; all of this holds whatever their
    scores would have been, and [`scored_low`, `scored_high`] is what [`low`, `high`] would be on the scored items alone. nan on
    the diagonal and where a pair has no answer.
    """

    difference: F64
    low: F64
    high: F64
    own_low: F64
    own_high: F64
    p_value: F64
    p_adjusted: F64
    standard_error: F64
    n: I64
    units: I64
    level: float
    critical: float
    draws: int
    method: str
    n_missing: I64
    scored_low: F64
    scored_high: F64


def simultaneous_differences(
    scores: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    missing: npt.ArrayLike | None = None,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    draws: int = DRAWS,
    seed: int = 0,
) -> SimultaneousDifferences:
    """Simultaneous intervals and adjusted p-values of all paired differences (idea at the top of this module).

    `scores`: (models, items), item means, nan = no score. `missing`: (models, items), which of those failed (None: all of
    them); the others were never asked, and a pair rests on the items that both models were asked. `clusters`: (items,)
    integers. `value_range`: the range of a score, None if not known; then a pair without spread, or with a failed item, has
    no interval. At least 2,000 `draws`. Raises ValueError for other shapes, fewer than two models, scores outside
    the range, fewer draws, or a level outside (0, 1).
    """
    check_level(level)
    rows, codes = checked_scores(scores, clusters, value_range, draws)
    lost = checked_missing(missing, rows)
    found = common_differences(rows, codes, value_range, lost)
    pairs = np.triu_indices(len(rows), 1)
    spread = np.nan_to_num(found.widest_error[pairs]) > 0
    rng = np.random.default_rng(seed)
    rows, difference = middle_filled(rows, lost, found, value_range)
    if np.isnan(rows).any():
        deviations = _grouped_deviations(rows, codes, difference, pairs, spread, draws, rng)
        how = "on common items"
    else:
        deviations = _deviations(_covariance(rows, codes), pairs, spread, draws, rng)
        how = "on shared items"
    over = "items" if codes is None else "clusters"
    method = f"max-|t|, {draws} Gaussian multiplier draws over {over} {how}"
    return assembled(found, deviations, rng, level, draws, method)


def simultaneous_means(
    scores: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Estimate]:
    """The mean of every model with intervals that hold all of them together with probability `level`.

    Arguments and errors as in `simultaneous_differences`, but one model will do. Each interval is that of
    `mean_interval` at the level that the largest deviation among the models asks for.
    """
    check_level(level)
    rows, codes = checked_scores(scores, clusters, value_range, draws, least=1)
    there = ~np.isnan(rows)
    means = np.where(there, rows, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    residuals = np.where(there, rows - means[:, None], 0.0)
    totals = residuals if codes is None else _cluster_totals(residuals, codes)
    errors = np.sqrt(np.einsum("mi,mi->m", totals, totals))
    spread = errors > 1e-12 * max(float(np.abs(np.nan_to_num(rows)).max(initial=0.0)), 1e-300)
    rng = np.random.default_rng(seed)
    largest = np.zeros(draws)
    if spread.any():
        kept = totals[spread] / errors[spread][:, None]
        largest = np.abs(_normal(kept @ kept.T, draws, rng)).max(axis=1)
    largest = np.maximum(largest, _largest_of_independent(int(np.count_nonzero(~spread)), draws, rng))
    # Draws know the quantile up to a few hundredths; that of one mean alone is its least.
    own_level = level
    if len(rows) > 1:
        own_level = max(level, 1.0 - float(_two_sided(np.quantile(largest, level))))
    found = [mean_interval(row, clusters=clusters, value_range=value_range, level=own_level) for row in rows]
    return [
        replace(each, level=level, method=f"{each.method}, simultaneous for {len(rows)} models")
        for each in found
    ]


# --- one resample for all ---------------------------------------------------------------------------------------------


def _covariance(rows: F64, codes: I64 | None) -> F64:
    """The covariance of the models' totals, up to a factor that no standardised deviation shows."""
    residuals = rows - rows.mean(axis=0)  # what all share is in no difference
    residuals -= residuals.mean(axis=1, keepdims=True)
    totals = residuals if codes is None else _cluster_totals(residuals, codes)
    gram: F64 = totals @ totals.T
    return gram


def _cluster_totals(residuals: F64, codes: I64) -> F64:
    """Sums over clusters, (models, clusters)."""
    order, starts = grouped(codes)
    totals: F64 = np.add.reduceat(residuals[:, order], starts, axis=1)
    return totals


def _normal(covariance: F64, draws: int, rng: np.random.Generator) -> F64:
    """Draws (draws, models) of a centred normal; the covariance may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    drawn: F64 = (rng.standard_normal((draws, len(values))) * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return drawn


def _deviations(
    covariance: F64, pairs: Pairs, spread: Bools, draws: int, rng: np.random.Generator
) -> Iterator[F32]:
    """|deviation| of every pair in units of its standard error, (some draws, pairs); 0 for a pair without spread."""
    first, second = pairs
    variances = np.diag(covariance)
    squares = variances[first] + variances[second] - 2 * covariance[first, second]
    scale = np.where(spread & (squares > 0), 1 / np.sqrt(np.where(squares > 0, squares, 1.0)), 0.0)
    drawn = _normal(covariance, draws, rng) / max(math.sqrt(float(variances.max())), 1e-300)
    drawn, scale = drawn.astype(np.float32), (scale * math.sqrt(float(variances.max()))).astype(np.float32)
    step = max(1, CELLS // len(first))
    for begin in range(0, draws, step):
        part = drawn[begin : begin + step]
        yield np.abs(part[:, first] - part[:, second]) * scale


def _grouped_deviations(
    rows: F64,
    codes: I64 | None,
    difference: F64,
    pairs: Pairs,
    spread: Bools,
    draws: int,
    rng: np.random.Generator,
) -> Iterator[F32]:
    """The same where models lack items: normal weights on the influences of groups of units."""
    units = codes if codes is not None else np.arange(rows.shape[1])
    size = int(units.max()) + 1
    if size > GROUPS:
        units = (rng.permutation(size) % GROUPS)[units]
    influences = common_influences(rows, units, difference, pairs)
    influences *= spread
    yield from multiplied(influences, draws, rng)


def multiplied(influences: F32, draws: int, rng: np.random.Generator) -> Iterator[F32]:
    """|sums| of influences (groups, pairs) under normal weights, in units of their standard error: (some draws, pairs)."""
    norm = np.sqrt(np.einsum("gp,gp->p", influences, influences))
    influences *= (1 / np.where(norm > 0, norm, 1.0)).astype(np.float32)
    step = max(1, CELLS // influences.shape[1])
    for begin in range(0, draws, step):
        weights = rng.standard_normal((min(step, draws - begin), len(influences)), dtype=np.float32)
        yield np.abs(weights @ influences)


def _largest_of_independent(count: int, draws: int, rng: np.random.Generator) -> F64:
    """The largest of `count` independent |normal| variables, (draws,); 0 for none."""
    from scipy.special import ndtri

    if count == 0:
        return np.zeros(draws)
    largest: F64 = ndtri(0.5 + 0.5 * rng.random(draws) ** (1.0 / count))
    return largest


# --- from deviations to intervals -------------------------------------------------------------------------------------


def assembled(
    found: AllPairs,
    deviations: Iterator[F32],
    rng: np.random.Generator,
    level: float,
    draws: int,
    method: str,
) -> SimultaneousDifferences:
    models = len(found.difference)
    pairs = np.triu_indices(models, 1)
    p_value = found.p_values()
    score = _normal_score(p_value[pairs])
    alike = (found.widest_error == 0) & (found.units + found.n_missing > 1) & ~np.eye(models, dtype=bool)
    extra = _largest_of_independent(int(np.count_nonzero(alike)) // 2, draws, rng)
    largest, own, exceeded = _largest(deviations, score, extra, models)
    own_extra = [_largest_of_independent(int(count), draws, rng) for count in alike.sum(axis=1)]
    own = np.maximum(own, np.stack(own_extra, axis=1))
    # Draws know a quantile up to a few hundredths. One pair's is known exactly, and that of several is never below it.
    single = float(_normal_score(1 - level))
    critical = single if models == 2 else max(float(np.quantile(largest, level)), single)
    shares = _two_sided(np.maximum(np.quantile(own, level, axis=0), single))
    shares = np.full(models, float(_two_sided(single))) if models == 2 else shares
    share = float(_two_sided(critical))
    low, high = found.limits(share)
    scored_low, scored_high = (low, high) if found.worst is None else found.scored_limits(share)
    own_low, own_high = found.limits(shares[:, None])
    for own_answer in (p_value, low, high, own_low, own_high, scored_low, scored_high):
        np.fill_diagonal(own_answer, np.nan)
    adjusted = np.full((models, models), np.nan)
    adjusted[pairs] = _step_down(p_value[pairs], score, exceeded, draws)
    return SimultaneousDifferences(
        difference=found.difference,
        low=low,
        high=high,
        own_low=own_low,
        own_high=own_high,
        p_value=p_value,
        p_adjusted=np.fmax(adjusted, adjusted.T),
        standard_error=found.error,
        n=found.n,
        units=found.units,
        level=level,
        critical=critical,
        draws=draws,
        method=method,
        n_missing=found.n_missing,
        scored_low=scored_low,
        scored_high=scored_high,
    )


def _largest(
    deviations: Iterator[F32], score: F64, extra: F64, models: int
) -> tuple[F64, F64, npt.NDArray[np.int64]]:
    """The largest deviation of each draw, (draws,), and of each model's row, (draws, models); and for each pair how
    many draws have a pair of the same or a lower score whose deviation reaches its score (step-down)."""
    second = np.triu_indices(models, 1)[1]
    order = np.argsort(np.nan_to_num(score), kind="stable")
    exceeded = np.zeros(len(score), dtype=np.int64)
    # The pairs of a model are a block of rows where it comes first, and where it comes second one after sorting.
    turn = np.argsort(second, kind="stable")
    begins = np.concatenate([[0], np.cumsum(np.arange(models - 1, 1, -1))])
    largest, own, begin = [], [], 0
    for part in deviations:
        here = extra[begin : begin + len(part), None]
        begin += len(part)
        most = np.zeros((len(part), models), dtype=part.dtype)
        most[:, :-1] = np.maximum.reduceat(part, begins, axis=1)
        later = np.maximum.reduceat(part[:, turn], np.arange(models - 1) * np.arange(1, models) // 2, axis=1)
        most[:, 1:] = np.maximum(most[:, 1:], later)
        own.append(most)
        running = np.maximum(np.maximum.accumulate(part[:, order], axis=1), here)
        exceeded[order] += np.count_nonzero(running >= score[order], axis=0)
        largest.append(running[:, -1])
    return np.concatenate(largest).astype(np.float64), np.concatenate(own).astype(np.float64), exceeded


def _step_down(p_value: F64, score: F64, exceeded: npt.NDArray[np.int64], draws: int) -> F64:
    """Step-down adjusted p-values (Westfall & Young 1993), never above Holm's, never below the pair's own."""
    order = np.argsort(np.nan_to_num(score), kind="stable")[::-1]
    counted = (exceeded[order] + 1.0) / (draws + 1.0)
    adjusted = np.empty_like(counted)
    adjusted[order] = np.maximum.accumulate(counted)
    adjusted[np.isnan(p_value)] = np.nan
    # Beyond the largest draw counting says no more than 1 / draws; Holm's bound does.
    bounded: F64 = np.maximum(np.minimum(adjusted, holm(p_value)), p_value)
    return bounded


def _two_sided(z: npt.ArrayLike) -> F64:
    """P(|Z| >= z)."""
    from scipy.special import ndtr

    return 2.0 * np.asarray(ndtr(-np.asarray(z, dtype=np.float64)))


def _normal_score(p_value: npt.ArrayLike) -> F64:
    """The |z| that has this two-sided p."""
    from scipy.special import ndtri

    score: F64 = -ndtri(np.maximum(p_value, 1e-300) / 2)
    return score


# --- what came in -----------------------------------------------------------------------------------------------------


def checked_scores(
    scores: npt.ArrayLike, clusters: Clusters, value_range: Range | None, draws: int, least: int = 2
) -> tuple[F64, I64 | None]:
    """Scores as (models, items that anyone has) and cluster codes of these items."""
    rows = np.asarray(scores, dtype=np.float64)
    if draws < 2000:
        raise ValueError(f"draws must be at least 2,000 for a stable 95% critical value, but is {draws}")
    if rows.ndim != 2 or len(rows) < least:
        raise ValueError(
            f"scores must have the shape (models, items) with at least {least} models, not {rows.shape}"
        )
    if np.isinf(rows).any():
        raise ValueError("scores must be finite numbers, or nan where a score is missing")
    check_range(rows, value_range)
    ids = None if clusters is None else cluster_ids(clusters, rows.shape[1])
    return rows, cluster_codes(ids)[0]


def middle_filled(rows: F64, missing: Bools, found: AllPairs, value_range: Range | None) -> tuple[F64, F64]:
    """Scores with the middle of the range where one failed, and their differences; as they are where nothing can be filled."""
    if found.worst is None or value_range is None:
        return rows, found.difference
    # Halfway between both fillings.
    filled = (found.worst.difference - found.worst.difference.T) / 2
    np.fill_diagonal(filled, 0.0)
    return np.where(missing, sum(value_range) / 2, rows), filled


# -- ranks ---------------------------------------------------------------------------------------------------


class RankSets(NamedTuple):
    """The ranks `low`..`high` (models,) that each model can have; 1 is the best.

    Models of the same true score share ranks: every rank that some order of them would give is a true one.
    """

    low: I64
    high: I64


def rank_sets(
    differences: SimultaneousDifferences, *, simultaneous: bool = True, higher_is_better: bool = True
) -> RankSets:
    """rank(j) in [1 + #{k significantly better}, M - #{k significantly worse}] (Mogstad, Romano, Shaikh & Wilhelm 2024).

    `simultaneous`: True for a whole leaderboard: all sets hold all true ranks together with probability `level`. False for
    one model chosen beforehand, whose set is narrower because only its own M - 1 differences must hold. A pair without an
    answer (nan) never differs significantly.
    """
    low = differences.low if simultaneous else differences.own_low
    high = differences.high if simultaneous else differences.own_high
    above, below = low > 0, high < 0  # the row's model scores significantly more, significantly less
    better, worse = (below, above) if higher_is_better else (above, below)
    return RankSets(1 + np.count_nonzero(better, axis=1), len(low) - np.count_nonzero(worse, axis=1))
