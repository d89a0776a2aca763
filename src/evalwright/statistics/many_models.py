"""Comparison of all pairs of models: Holm's adjusted p-values, intervals at matching levels, ranks.

With 20 models there are 190 pairs, and a test at 5% each finds some ten differences where there
are none. Holm (1979) sorts the m p-values and tests the k-th smallest at alpha / (m - k + 1)
until one is not rejected: the chance of any false finding is at most alpha, however the pairs
depend on each other. Verdicts, letters and rank sets come from these adjusted p-values.

The interval beside pair k has the level 1 - alpha / (m - k + 1), and from the first pair that
is not rejected on that pair's level. So it excludes 0 exactly where the pair is found to
differ. It is the pair's own interval at that level: that all of them hold together is not
guaranteed.

`simultaneous_means` has intervals that hold together (Bonferroni). Resampling the items that
are common to all models (the largest |t|, Westfall & Young 1993) found 0.0 to 1.7 points of all
pairs more than Holm, which is not worth its complexity.

`rank_sets`: a rank read off point estimates ignores chance. Mogstad, Romano, Shaikh & Wilhelm
(2024, "Inference for ranks with applications to mobility across neighbourhoods and academic
achievement across countries") turn tests of the pairwise differences, any of which is wrong
with probability alpha at most, into sets of ranks: a model's best rank is one more than the
number of models that are significantly better, its worst leaves out those that are
significantly worse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evalwright.core.plain import Plain
from evalwright.statistics._quantiles import check_level
from evalwright.statistics.estimate import Estimate
from evalwright.statistics.intervals import mean_interval
from evalwright.statistics.multiplicity import holm, holm_rows, holm_shares
from evalwright.statistics.pairwise import (
    AllPairs,
    Bools,
    MissingPolicy,
    checked_missing,
    common_differences,
    worst_case,
)
from evalwright.statistics.units import (
    F64,
    I64,
    Clusters,
    Range,
    check_range,
    cluster_codes,
    cluster_ids,
)
from evalwright.statistics.unpaired import UnpairedComparison, compare_unpaired

Limits = Callable[[F64], tuple[F64, F64]]
"""A function from error rates (models, models) to the interval of each pair at its rate."""


@dataclass(frozen=True, slots=True)
class AllDifferences(Plain):
    """Comparisons of every pair of models: row minus column, all arrays (models, models).

    nan on the diagonal and where a pair cannot be compared. The fields with `own_` are the same
    with the pairs of one row as the family of tests: for questions about a single model (a
    baseline) that was chosen beforehand.

    Attributes:
        difference: row minus column.
        low: low end of the pair's interval at `pair_level`; it excludes 0 exactly where
            `p_adjusted` < 1 - `level`.
        high: its high end.
        pair_level: the level at which Holm's procedure tested the pair.
        p_value: of the pair by itself.
        p_adjusted: Holm's, over all pairs.
        own_low: low end of the interval, adjusted within the row.
        own_high: its high end.
        own_level: the level at which the pair was tested within the row.
        own_p_adjusted: Holm's p-value within the row.
        standard_error: of the difference.
        n: common items of a pair.
        units: common items or clusters of a pair.
        n_missing: items that lack an answer of either model.
        level: 1 minus the chance of any false finding.
        missing_policy: how missing items are treated.
        method: how the differences were tested.
    """

    difference: F64
    low: F64
    high: F64
    pair_level: F64
    p_value: F64
    p_adjusted: F64
    own_low: F64
    own_high: F64
    own_level: F64
    own_p_adjusted: F64
    standard_error: F64
    n: I64
    units: I64
    n_missing: I64
    level: float
    missing_policy: MissingPolicy
    method: str

    @property
    def differs(self) -> Bools:
        """Which pairs differ significantly, adjusted over all pairs."""
        return self._rejected(self.p_adjusted)

    @property
    def own_differs(self) -> Bools:
        """Which pairs differ significantly, adjusted within each row."""
        return self._rejected(self.own_p_adjusted)

    def _rejected(self, adjusted: F64) -> Bools:
        return np.nan_to_num(adjusted, nan=1.0) < 1 - self.level


def all_differences(
    scores: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    missing: npt.ArrayLike | None = None,
    missing_policy: MissingPolicy = "scored",
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
) -> AllDifferences:
    """Compare all pairs of models: paired where they share items, else as independent samples.

    Args:
        scores: (models, items), item means, nan is no score.
        clusters: (items,) integers; items that share one are not independent.
        missing: (models, items), which of the absent scores are missing (None: all of them); the
            others were never requested, and a pair is compared on the items that both models were
            asked.
        missing_policy: as in `compare_paired`.
        level: 1 minus the chance of any false finding.
        value_range: the range of a score, None if unknown; then a pair without spread has no
            interval.

    Returns:
        The pairs; `n` and `units` are 0 for pairs of independent samples. A pair with a cluster but
        no item in common is not independent and cannot be compared (nan), nor can one in which a
        model has no score.

    Raises:
        ValueError: other shapes, fewer than two models, scores outside the range, or a level
            outside (0, 1).
    """
    check_level(level)
    rows, codes = checked_scores(scores, clusters, value_range)
    is_missing = checked_missing(missing, rows)
    pairs = common_differences(rows, codes, value_range, is_missing)
    tested = (
        worst_case(rows, codes, value_range, is_missing, pairs)
        if missing_policy == "worst-case"
        else pairs
    )
    p_value = tested.p_values()
    apart = _IndependentPairs(
        rows, codes, is_missing | ~np.isnan(rows), value_range, missing_policy
    )

    def limits(share: F64) -> tuple[F64, F64]:
        low, high = tested.limits(share)
        for (a, b), comparison in apart.at(share).items():
            low[a, b], high[a, b] = comparison.low, comparison.high
        return low, high

    method = "paired on common items"
    if apart.places:
        method += ", pairs without common items as independent samples"
        pairs = apart.filled(pairs)
        for (a, b), comparison in apart.at(np.full_like(p_value, 1 - level)).items():
            p_value[a, b] = comparison.p_value
    return assemble_differences(
        pairs,
        p_value,
        limits,
        level=level,
        missing_policy=missing_policy,
        method=method,
    )


def assemble_differences(
    pairs: AllPairs,
    p_value: F64,
    limits: Limits,
    *,
    level: float,
    missing_policy: MissingPolicy,
    method: str,
) -> AllDifferences:
    """Adjust by Holm over all pairs and over each row, with intervals at matching levels."""
    models = len(p_value)
    alpha = 1 - level
    upper = np.triu_indices(models, 1)
    p_value = p_value.copy()
    np.fill_diagonal(p_value, np.nan)
    adjusted, share = (np.full((models, models), np.nan) for _ in range(2))
    adjusted[upper], share[upper] = (
        holm(p_value[upper]),
        holm_shares(p_value[upper], alpha),
    )
    adjusted = np.fmax(adjusted, adjusted.T)
    share = np.fmax(share, share.T)
    own_adjusted = holm_rows(p_value)
    own_share = np.stack([holm_shares(row, alpha) for row in p_value])
    low, high = limits(share)
    own_low, own_high = limits(own_share)
    for ends in (low, high, own_low, own_high):
        np.fill_diagonal(ends, np.nan)
    return AllDifferences(
        difference=pairs.difference,
        low=low,
        high=high,
        pair_level=1 - share,
        p_value=p_value,
        p_adjusted=adjusted,
        own_low=own_low,
        own_high=own_high,
        own_level=1 - own_share,
        own_p_adjusted=own_adjusted,
        standard_error=pairs.error,
        n=pairs.n,
        units=pairs.units,
        n_missing=pairs.n_missing,
        level=level,
        missing_policy=missing_policy,
        method=f"{method}, Holm",
    )


class _IndependentPairs:
    """Pairs of models without a common item or cluster, compared as independent samples.

    Both models must have been asked something.
    """

    def __init__(
        self,
        rows: F64,
        codes: I64 | None,
        was_asked: Bools,
        value_range: Range | None,
        missing_policy: MissingPolicy,
    ) -> None:
        self.rows = rows
        self.codes = codes
        self.was_asked = was_asked
        self.value_range = value_range
        self.missing_policy = missing_policy
        common = was_asked.astype(np.float64) @ was_asked.T
        empty = np.argwhere(np.triu(common == 0, 1)).tolist()
        self.places = [(a, b) for a, b in empty if self._independent(a, b)]

    def _independent(self, a: int, b: int) -> bool:
        if not (self.was_asked[a].any() and self.was_asked[b].any()):
            return False
        if self.codes is None:
            return True
        return not np.intersect1d(
            self.codes[self.was_asked[a]], self.codes[self.was_asked[b]]
        ).size

    def at(self, share: F64) -> dict[tuple[int, int], UnpairedComparison]:
        """Compare the pairs, in both directions, at error rates (models, models).

        Skips those that are nan.
        """
        turned = self.places + [(b, a) for a, b in self.places]
        return {
            (a, b): self._compare(a, b, 1 - float(share[a, b]))
            for a, b in turned
            if share[a, b] == share[a, b]
        }

    def _compare(self, a: int, b: int, level: float) -> UnpairedComparison:
        sides = [self.rows[model][self.was_asked[model]] for model in (a, b)]
        ids = [
            None if self.codes is None else self.codes[self.was_asked[model]]
            for model in (a, b)
        ]
        return compare_unpaired(
            *sides,
            clusters_a=ids[0],
            clusters_b=ids[1],
            missing_policy=self.missing_policy,
            level=level,
            value_range=self.value_range,
        )

    def filled(self, pairs: AllPairs) -> AllPairs:
        """Return `pairs` with the results of the independent pairs filled in.

        These are the difference, its error and the number of missing items.
        """
        difference = pairs.difference.copy()
        error = pairs.error.copy()
        n_missing = pairs.n_missing.copy()
        for (a, b), comparison in self.at(np.full(difference.shape, 0.05)).items():
            difference[a, b] = comparison.difference
            error[a, b] = (
                np.nan
                if comparison.standard_error is None
                else comparison.standard_error
            )
            n_missing[a, b] = comparison.n_missing_a + comparison.n_missing_b
        return replace(pairs, difference=difference, error=error, n_missing=n_missing)


def simultaneous_means(
    scores: npt.ArrayLike,
    clusters: Clusters = None,
    *,
    level: float = 0.95,
    value_range: Range | None = (0.0, 1.0),
) -> list[Estimate]:
    """The mean of every model, with intervals that all hold together with probability `level`.

    Each interval is that of `mean_interval` at the level 1 - (1 - level) / models (Bonferroni),
    inside the range of the scores. Arguments and errors as in `all_differences`, but one model is
    enough.
    """
    check_level(level)
    rows, _ = checked_scores(scores, clusters, value_range, least=1)
    own_level = 1 - (1 - level) / len(rows)
    estimates = [
        mean_interval(row, clusters=clusters, value_range=value_range, level=own_level)
        for row in rows
    ]
    return [
        replace(
            estimate,
            level=level,
            method=(
                f"{estimate.method}, simultaneous for {len(rows)} models (Bonferroni)"
            ),
        )
        for estimate in estimates
    ]


def checked_scores(
    scores: npt.ArrayLike, clusters: Clusters, value_range: Range | None, least: int = 2
) -> tuple[F64, I64 | None]:
    """Check scores (models, items), and return them with the items' cluster codes."""
    rows = np.asarray(scores, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < least:
        raise ValueError(
            f"scores must have the shape (models, items) with at least {least} models,"
            f" not {rows.shape}"
        )
    if np.isinf(rows).any():
        raise ValueError(
            "scores must be finite numbers, or nan where a score is missing"
        )
    check_range(rows, value_range)
    ids = None if clusters is None else cluster_ids(clusters, rows.shape[1])
    return rows, cluster_codes(ids)[0]


# -- ranks -----------------------------------------------------------------------------


class RankSets(NamedTuple):
    """The ranks `low`..`high` (models,) that each model can have; 1 is the best.

    Models with the same true score share ranks: every rank that some order of them would give is a
    true one.
    """

    low: I64
    high: I64


def rank_sets(
    differences: AllDifferences,
    *,
    simultaneous: bool = True,
    higher_is_better: bool = True,
) -> RankSets:
    """Rank sets of Mogstad, Romano, Shaikh & Wilhelm (2024) from the tests of all pairs.

    rank(j) is in [1 + #{k significantly better}, M - #{k significantly worse}]. A pair that cannot
    be compared (nan) never differs significantly.

    Args:
        differences: all pairs.
        simultaneous: True for a whole leaderboard: all sets contain all true ranks with probability
            `level`. False for one model chosen beforehand, whose set is narrower because only its
            own M - 1 differences must hold.
        higher_is_better: whether a higher score means a better rank.
    """
    differs = differences.differs if simultaneous else differences.own_differs
    return rank_sets_of(differs, differences.difference, higher_is_better)


def rank_sets_of(differs: Bools, difference: F64, higher_is_better: bool) -> RankSets:
    """`rank_sets` from which pairs differ significantly, and by how much; (models, models)."""
    with np.errstate(invalid="ignore"):
        above = differs & (difference > 0)
        below = differs & (difference < 0)
    better, worse = (below, above) if higher_is_better else (above, below)
    models = len(differs)
    return RankSets(
        1 + np.count_nonzero(better, axis=1), models - np.count_nonzero(worse, axis=1)
    )
