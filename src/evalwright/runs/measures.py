"""What runs are compared by: a task's metric item by item, in the metric's own direction, for several runs at once.

Items are put side by side by their ids. A run that was not asked an item, or has no score on it, has nan there, and every
pair of runs is compared on the items that both have. Where a metric is the mean of its items' scores, or that mean negated
or taken from 1 (an error rate over scores of what is right), items are shown as the metric is. Other metrics (perplexities,
F1 over classes) have no item scores of their own: such runs are compared by the mean of the scores beneath.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalwright.core.errors import RunError
from evalwright.metrics.registry import BOUNDED, LOWER_IS_BETTER
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.runs.scores import ItemScores, SliceCodes, item_scores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import PairedComparison, UnpairedComparison

Form = Literal["score", "negated", "complement", "other"]
"""How a metric comes from the mean of its items' scores; "other": in no such way."""

UNIT_RANGE = (0.0, 1.0)
_SAME = 1e-6


@dataclass(frozen=True, slots=True)
class Measure:
    """The metric of one task. bounded: item scores lie between 0 and 1. lower_is_better: said of the scores as shown."""

    task: str
    metric: str
    scorer: str
    kind: str
    bounded: bool
    lower_is_better: bool
    form: Form

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The range of an item's score, None where it is not known."""
        return UNIT_RANGE if self.bounded else None

    @property
    def is_mean(self) -> bool:
        """Whether the metric is the mean of the items' scores as they are shown."""
        return self.form != "other"

    @property
    def unit(self) -> str:
        """What differences are counted in: "points" of 100, else "units"."""
        return "points" if self.bounded else "units"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Scores of several runs on one task, as the measure shows them.

    values: (runs, items), nan where there is none. asked: (runs, items), whether the run has the item at all. keys and
    clusters: (items,); clusters is None where every item stands alone. slices: a code per item, by metadata key.
    """

    measure: Measure
    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    asked: NDArray[np.bool_]
    clusters: NDArray[np.int64] | None
    slices: dict[str, SliceCodes]

    def common(self) -> NDArray[np.bool_]:
        """Items that all runs were asked, (items,)."""
        every: NDArray[np.bool_] = self.asked[0].copy()
        for row in self.asked[1:]:
            every &= row
        return every

    @property
    def units(self) -> NDArray[np.int64]:
        """Codes of what is independent, which mean the same in every task: clusters, else items."""
        return ~self.keys if self.clusters is None else self.clusters

    def part(self, items: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
        """Values and clusters of some items."""
        return self.values[:, items], None if self.clusters is None else self.clusters[items]


def make_matrix(
    task: str, results: Sequence[MetricResult], scores: Sequence[ItemScores], slices: Sequence[str] = ()
) -> Matrix:
    """Put the runs' item scores side by side. results: the metric of each run, in the same order as scores."""
    import numpy as np

    keys = np.unique(np.concatenate([one.keys for one in scores]))
    values = np.full((len(scores), len(keys)), np.nan)
    asked = np.zeros(values.shape, dtype=bool)
    clusters = ~keys  # an item without a cluster is alone: `cluster_code`
    for row, one in enumerate(scores):
        places = np.searchsorted(keys, one.keys)
        values[row, places], asked[row, places] = one.values, True
        if one.clustered:
            clusters[places] = one.clusters
    form = _form(results, [one.values for one in scores])
    main = results[0]
    values = -values if form == "negated" else 1.0 - values if form == "complement" else values
    less = _less(main) and form != "other"
    bounded = main.kind in BOUNDED
    measure = Measure(task, main.label, main.scorer, main.kind, bounded, less, form)
    found = {key: codes for key in slices if (codes := _slice_codes(key, keys, scores)) is not None}
    clustered = any(one.clustered for one in scores)
    return Matrix(measure, keys, values, asked, clusters if clustered else None, found)


def matrices(
    runs: Sequence[Run], results: Mapping[str, Sequence[MetricResult]], slices: Sequence[str] = ()
) -> list[Matrix]:
    """A matrix for each task. results: by task, the metric of each run."""
    scores = [
        item_scores(run, {task: found[row].scorer for task, found in results.items()}, slices)
        for row, run in enumerate(runs)
    ]
    for task, found in results.items():
        for run, metric, one in zip(runs, found, scores, strict=True):
            values = one[task].values
            if metric.kind in BOUNDED and ((values < -_SAME) | (values > 1 + _SAME)).any():
                raise RunError(
                    f"The record of '{run.id}' has scores of '{metric.scorer}' outside of 0 to 1, which '{metric.label}' cannot "
                    "have: it was changed, or another program wrote it."
                )
    return [
        make_matrix(task, found, [one[task] for one in scores], slices) for task, found in results.items()
    ]


def paired_of(
    found: Matrix,
    items: NDArray[np.bool_] | None = None,
    *,
    rows: tuple[int, int] = (0, 1),
    level: float = 0.95,
    power: float = 0.8,
) -> PairedComparison:
    """Two rows of a matrix compared on the items that all were asked, or on some items."""
    from evalwright.statistics import compare_paired

    values, clusters = found.part(found.common() if items is None else items)
    return compare_paired(
        *(values[row] for row in rows), clusters=clusters, level=level, power=power,
        value_range=found.measure.value_range,
    )  # fmt: skip


def unpaired_of(
    found: Matrix,
    items: NDArray[np.bool_] | None = None,
    *,
    rows: tuple[int, int] = (0, 1),
    level: float = 0.95,
) -> UnpairedComparison:
    """Two rows of a matrix compared as independent samples, each on the items (or on those of some) that it was asked."""
    from evalwright.statistics import compare_unpaired

    (left, left_ids), (right, right_ids) = (
        found.part(found.asked[row] if items is None else found.asked[row] & items) for row in rows
    )
    return compare_unpaired(
        left[rows[0]], right[rows[1]], clusters_a=left_ids, clusters_b=right_ids, level=level,
        value_range=found.measure.value_range,
    )  # fmt: skip


def common_counts(found: Matrix) -> NDArray[np.int64]:
    """Items with a score from both, (runs, runs); on the diagonal those of one run."""
    import numpy as np

    there = (~np.isnan(found.values)).astype(np.float64)
    counts: NDArray[np.int64] = (there @ there.T).astype(np.int64)
    return counts


def half_of(run: Run, other: Run, common: int, most: int) -> str:
    """A warning where pairing keeps under half of the scored items of the larger run; "" where it does not."""
    if 2 * common >= most:
        return ""
    return (
        f"Pairing keeps {common:,} of {most:,} items that '{run.id}' or '{other.id}' has a score on: "
        f"the conclusion is for items drawn like these {common:,} only."
    )


def _form(results: Sequence[MetricResult], items: Sequence[NDArray[np.float64]]) -> Form:
    """The form that fits the recorded values of all runs."""
    import numpy as np

    main = results[0]
    best: Form = "other"
    least, known = math.inf, False
    for form in _forms(main):
        missed = 0.0
        for result, values in zip(results, items, strict=True):
            there = values[~np.isnan(values)]
            if len(there) and math.isfinite(result.estimate.value):
                mean = float(there.mean())
                shown = -mean if form == "negated" else 1.0 - mean if form == "complement" else mean
                gap = abs(result.estimate.value - shown)
                missed = max(missed, gap / max(1.0, abs(result.estimate.value)))
                known = True
        if missed < least:
            best, least = form, missed
    if least > _SAME or (not known and main.kind in LOWER_IS_BETTER and main.kind not in BOUNDED):
        return "other"
    return best


def _forms(main: MetricResult) -> tuple[Form, ...]:
    """The forms that a metric may have, likely ones first.

    Scores are better when higher by their contract, so a metric of which less is better is their opposite if it can be.
    """
    if main.kind in ("balanced-accuracy", "macro-f1"):
        return ()
    if not _less(main):
        return ("score",)
    return ("complement", "score", "negated") if main.kind in BOUNDED else ("negated", "score")


def _less(main: MetricResult) -> bool:
    return main.lower_is_better or main.kind in LOWER_IS_BETTER


def _slice_codes(key: str, keys: NDArray[np.int64], scores: Sequence[ItemScores]) -> SliceCodes | None:
    """The codes of one metadata key over all items, None where no run has it; the first run that has a value counts."""
    import numpy as np

    names: dict[str, int] = {}
    codes = np.full(len(keys), -1, np.int32)
    for one in reversed(scores):
        found = one.slices.get(key)
        if found is None:
            continue
        renamed = np.array([names.setdefault(name, len(names)) for name in found.names], np.int32)
        there = found.codes >= 0
        codes[np.searchsorted(keys, one.keys[there])] = renamed[found.codes[there]]
    return SliceCodes(tuple(names), codes) if names else None
