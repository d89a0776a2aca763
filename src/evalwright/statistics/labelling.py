"""Draws the verdicts that people should label, with known probabilities so that corrections hold.

Labelling only what looks doubtful, without known probabilities, biases every correction. With
them, doubtful verdicts may be chosen more often, and each label is weighted by the inverse of
its probability.

`JudgedSample` holds what a judge said of all items and people of some: checked, weighted, with
clusters or strata.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from evalwright.statistics.units import (
    F64,
    I64,
    Clusters,
    Range,
    at_ends,
    cluster_ids,
    kept_codes,
)

Design = Literal["random", "stratified"]
DESIGNS: tuple[Design, ...] = ("random", "stratified")
_MOST_STRATA = 5
_LEAST_DOUBT = 0.1
"""Least share of doubtful verdicts that is assumed for any stratum.

Stated certainty is often false, so a stratum of confident verdicts still gets labels as if one
in ten were doubtful.
"""

_MOSTLY = 0.5
"""Least share of labels of exactly 0 or 1 at which labels say right or wrong, and are no grades."""


@dataclass(frozen=True, slots=True)
class LabellingSet:
    """The items to label.

    Attributes:
        indices: (chosen,), in the order drawn.
        probabilities: (items,), of being chosen; 0 without a verdict.
        strata: (items,) integers for `corrected_mean`, -1 without a verdict; one stratum for a
            simple random set.
    """

    indices: tuple[int, ...]
    probabilities: tuple[float, ...]
    strata: tuple[int, ...]


def draw_labelling_set(
    verdicts: npt.ArrayLike,
    size: int,
    *,
    design: Design = "random",
    confidence: npt.ArrayLike | None = None,
    seed: int = 0,
) -> LabellingSet:
    """Draw the items to label from a judge's verdicts.

    "random": each judged item with the same probability. "stratified": strata by verdict (graded
    ones in fifths), each split at its median confidence where given; the number of labels follows
    Neyman's rule, in proportion to items times the root of c(1 - c) for mean confidence c, at least
    two in each stratum; within a stratum at random. A longer set drawn with the same seed need not
    contain a shorter one.

    Args:
        verdicts: (items,), nan where the judge gave none.
        size: number of items to draw.
        design: "random" or "stratified".
        confidence: (items,) in [0, 1], the judge's confidence in each verdict.
        seed: seeds the draw.

    Raises:
        ValueError: an unknown design, a size that cannot be drawn, or confidence outside [0, 1].
    """
    if design not in DESIGNS:
        raise ValueError(f"unknown design {design!r}; there are {', '.join(DESIGNS)}")
    verdict_values = np.asarray(verdicts, dtype=np.float64)
    if verdict_values.ndim != 1 or np.isinf(verdict_values).any():
        raise ValueError(
            "verdicts must be a vector of finite numbers, nan where the judge gave none"
        )
    judged = np.flatnonzero(~np.isnan(verdict_values))
    if not 1 <= size <= len(judged):
        raise ValueError(
            f"{size} labels cannot be drawn from {len(judged)} judged items"
        )
    confidence_values = _confidence(confidence, verdict_values)
    strata = np.full(len(verdict_values), -1, dtype=np.int64)
    strata[judged] = (
        0
        if design == "random"
        else make_strata(
            verdict_values[judged],
            None if confidence_values is None else confidence_values[judged],
        )
    )
    groups = [np.flatnonzero(strata == code) for code in range(int(strata.max()) + 1)]
    doubts = np.array(
        [
            1.0 if confidence_values is None else _mean_doubt(confidence_values[group])
            for group in groups
        ]
    )
    sizes = _allot_labels(np.array([len(group) for group in groups]), doubts, size)
    rng = np.random.default_rng(seed)
    probabilities = np.zeros(len(verdict_values))
    chosen = []
    for group, number in zip(groups, sizes, strict=True):
        probabilities[group] = number / len(group)
        chosen.append(rng.choice(group, int(number), replace=False))
    order = rng.permutation(
        np.concatenate(chosen)
    )  # shuffled, because people tire: no stratum may always come last
    return LabellingSet(
        tuple(order.tolist()), tuple(probabilities.tolist()), tuple(strata.tolist())
    )


def _confidence(confidence: npt.ArrayLike | None, verdicts: F64) -> F64 | None:
    if confidence is None:
        return None
    confidence_values = np.asarray(confidence, dtype=np.float64)
    if confidence_values.shape != verdicts.shape:
        raise ValueError(
            f"confidence must have one number for each of the {len(verdicts)} verdicts"
        )
    # a verdict without a confidence counts as maximally doubtful
    confidence_values = np.where(np.isnan(confidence_values), 0.5, confidence_values)
    if not ((confidence_values >= 0) & (confidence_values <= 1)).all():
        raise ValueError("confidence must be between 0 and 1")
    return confidence_values


def make_strata(verdicts: F64, confidence_values: F64 | None = None) -> I64:
    """Number strata by verdict and confidence; those with fewer than four items are not split."""
    values, codes = np.unique(verdicts, return_inverse=True)
    if len(values) > _MOST_STRATA:
        edges = np.unique(
            np.quantile(verdicts, np.arange(1, _MOST_STRATA) / _MOST_STRATA)
        )
        codes = np.searchsorted(edges, verdicts, side="right")
    cut = np.zeros(len(verdicts), dtype=np.int64)
    if confidence_values is not None:
        for code in np.unique(codes):
            has_code = codes == code
            is_low = has_code & (
                confidence_values < np.median(confidence_values[has_code])
            )
            if min(np.count_nonzero(is_low), np.count_nonzero(has_code & ~is_low)) >= 2:
                cut[is_low] = 1
    _, combined = np.unique(codes * 2 + cut, return_inverse=True)
    strata: I64 = combined.astype(np.int64)
    return strata


def _mean_doubt(confidence_values: F64) -> float:
    mean = float(
        np.clip(confidence_values.mean(), _LEAST_DOUBT / 2, 1 - _LEAST_DOUBT / 2)
    )
    return float(np.sqrt(mean * (1 - mean)))


def _allot_labels(sizes: I64, doubts: F64, total: int) -> I64:
    """Decide how many labels each stratum gets, in proportion to size times doubt.

    Each gets at least two (or all it has), and no more than it has.
    """
    least = np.minimum(sizes, 2 if len(sizes) > 1 else 1)
    if least.sum() > total:
        raise ValueError(
            f"{total} labels are too few for {len(sizes)} strata, which need two each;"
            " draw more labels, or at random"
        )
    allotted: I64 = least.astype(np.int64)
    while allotted.sum() < total:
        room = allotted < sizes
        share = np.where(room, sizes * doubts, 0.0)
        gap = np.where(room, share / share.sum() * total - allotted, -np.inf)
        allotted[int(np.argmax(gap))] += 1
    return allotted


# -- judged items ----------------------------------------------------------------------


Scheme = Literal["random", "stratified"]


@dataclass(frozen=True, slots=True)
class JudgedSample:
    """The judged items: verdicts and labels (nan is none), weights, clusters and strata.

    The weights are inverse probabilities of having a label.
    """

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
        """Compute for each labelled item the mean of `values` (labelled,) over its stratum."""
        assert self.strata is not None
        rows = self.strata[self.labelled]
        means: F64 = (
            np.bincount(rows, weights=values) / np.maximum(np.bincount(rows), 1)
        )[rows]
        return means

    def labels_at_ends(self, value_range: Range) -> bool:
        """Whether most labels are at the ends of the range; those between are people who differ."""
        labels = self.human[self.labelled]
        ends = (labels == value_range[0]) | (labels == value_range[1])
        return bool(len(labels)) and float(ends.mean()) >= _MOSTLY

    def two_valued(self, value_range: Range | None) -> bool:
        """Whether all verdicts and most labels are at the ends of the range."""
        if value_range is None:
            return False
        return self.labels_at_ends(value_range) and at_ends(self.judge, value_range)


def judged_sample(
    judge: npt.ArrayLike, human: npt.ArrayLike, clusters: Clusters, strata: Clusters
) -> JudgedSample:
    """Check verdicts and labels, and keep the items with a verdict.

    Args:
        judge: (n,), verdicts, nan where the judge gave none.
        human: (n,), labels, nan where there is none.
        clusters: (n,), items that share a code are not independent.
        strata: (n,), the stratum from which each item was drawn; None for a random draw.

    Raises:
        ValueError: shapes or values that do not fit; the message says which.
    """
    verdicts = vector(judge, "judge")
    labels = vector(human, "human")
    n = len(verdicts)
    if len(labels) != n:
        raise ValueError(
            f"human must have one label (or nan) for each of the {n} verdicts, but has"
            f" {len(labels)} entries"
        )
    groups = None if strata is None else cluster_ids(strata, n)
    has_verdict = ~np.isnan(verdicts)
    verdicts = verdicts[has_verdict]
    labels = labels[has_verdict]
    labelled = ~np.isnan(labels)
    codes, n_clusters = kept_codes(clusters, has_verdict)
    weights = np.ones(len(labels))
    if groups is not None:
        groups = np.unique(groups[has_verdict], return_inverse=True)[1].astype(np.int64)
        weights = _stratum_weights(groups, labelled)
    return JudgedSample(
        verdicts,
        labels,
        labelled,
        weights,
        codes,
        n_clusters,
        groups,
        n - len(verdicts),
    )


def vector(values: npt.ArrayLike, name: str) -> F64:
    """Convert to a finite float vector, with nan for missing.

    Raises ValueError for anything else.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or np.isinf(array).any():
        raise ValueError(
            f"{name} must be a vector of finite numbers, nan where one is missing"
        )
    return array


def _stratum_weights(groups: I64, labelled: npt.NDArray[np.bool_]) -> F64:
    sizes = np.bincount(groups)
    drawn = np.bincount(groups[labelled], minlength=len(sizes))
    if (drawn < 2).any() and ((drawn < sizes) & (drawn < 2)).any():
        raise ValueError(
            "every stratum needs at least two labels (or a label on each of its items):"
            " with fewer, their variance is unknown; label more, or merge strata"
        )
    weights: F64 = (sizes / np.maximum(drawn, 1))[groups]
    return weights
