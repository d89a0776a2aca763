"""What a judge said of all items and people of some: checked, weighted, in clusters or strata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import F64, I64, Clusters, Range, at_ends, cluster_ids, kept_codes

Scheme = Literal["random", "stratified"]


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """The judged items: verdicts and labels (nan = none), normalised inverse-probability weights, clusters, strata."""

    judge: F64
    human: F64
    labelled: npt.NDArray[np.bool_]
    weights: F64
    codes: I64 | None
    n_clusters: int | None
    strata: I64 | None
    n_left_out: int

    @property
    def scheme(self) -> Scheme:
        return "random" if self.strata is None else "stratified"

    @property
    def labelled_units(self) -> int:
        if self.codes is None:
            return int(np.count_nonzero(self.labelled))
        return len(np.unique(self.codes[self.labelled]))

    def stratum_means(self, values: F64) -> F64:
        """For each labelled item the mean of `values` (labelled,) over the labelled items of its stratum."""
        assert self.strata is not None
        rows = self.strata[self.labelled]
        means: F64 = (np.bincount(rows, weights=values) / np.maximum(np.bincount(rows), 1))[rows]
        return means

    def two_valued(self, value_range: Range | None) -> bool:
        """Whether all labels and verdicts stand at the ends of the range."""
        if value_range is None:
            return False
        return at_ends(self.human[self.labelled], value_range) and at_ends(self.judge, value_range)


def judged_sample(
    judge: npt.ArrayLike, human: npt.ArrayLike, clusters: Clusters, strata: Clusters
) -> JudgedSample:
    """The items with a verdict, checked. Raises ValueError for shapes and values that do not fit (each says which)."""
    verdicts, labels = vector(judge, "judge"), vector(human, "human")
    n = len(verdicts)
    if len(labels) != n:
        raise ValueError(
            f"human must have one label (or nan) for each of the {n} verdicts, but has {len(labels)} entries"
        )
    groups = None if strata is None else cluster_ids(strata, n)
    there = ~np.isnan(verdicts)
    verdicts, labels = verdicts[there], labels[there]
    labelled = ~np.isnan(labels)
    codes, n_clusters = kept_codes(clusters, there)
    weights = np.ones(len(labels))
    if groups is not None:
        groups = np.unique(groups[there], return_inverse=True)[1].astype(np.int64)
        weights = _stratum_weights(groups, labelled)
    return JudgedSample(verdicts, labels, labelled, weights, codes, n_clusters, groups, n - len(verdicts))


def vector(values: npt.ArrayLike, name: str) -> F64:
    """A finite float vector with nan for missing. Raises ValueError for anything else."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or np.isinf(array).any():
        raise ValueError(f"{name} must be a vector of finite numbers, nan where one is missing")
    return array


def _stratum_weights(groups: I64, labelled: npt.NDArray[np.bool_]) -> F64:
    sizes = np.bincount(groups)
    drawn = np.bincount(groups[labelled], minlength=len(sizes))
    if (drawn < 2).any() and ((drawn < sizes) & (drawn < 2)).any():
        raise ValueError(
            "every stratum needs at least two labels (or a label on each of its items): with fewer, "
            "their variance is unknown; label more, or merge strata"
        )
    weights: F64 = (sizes / np.maximum(drawn, 1))[groups]
    return weights
