"""Item-by-item scores of a metric for several runs side by side, the basis of comparisons.

Items are matched by their ids and questions (`pair_items`). A run that was not asked an item,
or has no score on it, has nan there, and every pair of runs is compared on the items that both
have. Where a metric is the mean of its items' scores, or that mean negated or subtracted from 1
(an error rate over scores of what is right), items are shown in the metric's own direction.
Other metrics (perplexities, F1 over classes) have pseudo-values of groups of items in place of
items (`pseudo_values`), on all items of each run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from evalwright.core.errors import RunError
from evalwright.core.tasks import MetricSpec
from evalwright.metrics.registry import (
    BOUNDED,
    LOWER_IS_BETTER,
    OF_BOUNDED,
    Groups,
    is_of_items,
    is_of_sums,
    metric_range,
)
from evalwright.runs.pairing import Pairing, pair_items
from evalwright.runs.pseudo_values import SAME, Grouped, Record, records_of
from evalwright.runs.reader import Run
from evalwright.runs.results import ROUNDED, MetricResult
from evalwright.runs.score_tables import item_scores
from evalwright.runs.scores import ItemScores, SliceCodes, unit_codes, with_items_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from evalwright.statistics import Estimate, PairedComparison, UnpairedComparison
    from evalwright.statistics.jackknife import SharedGroups
    from evalwright.statistics.paired import Paired
    from evalwright.statistics.pairwise import MissingPolicy

Form = Literal["score", "negated", "complement", "other"]
"""How a metric derives from the mean of its items' scores; "other": it does not."""

UNIT_RANGE = (0.0, 1.0)


HALF_TENTH = 0.05
"""How far rounding to one decimal moves a number."""


@dataclass(frozen=True, slots=True)
class Measure:
    """The metric of one task.

    Attributes:
        task: the task's name.
        metric: the metric's label.
        scorer: the column of scores.
        kind: the registered metric.
        bounded: whether item scores are between 0 and 1.
        lower_is_better: about the scores as shown.
        form: how the metric derives from the scores.
        declared_range: that of the scores as shown, where the task declares one for a metric that
            has none by its kind.
        has_direction: whether it is known which values are better; where it is not,
            `lower_is_better` is false.
        metric_range: the least and the greatest value of a bounded metric, None if unknown.
        rounding: how far the recorded values may be from the mean of the items' scores, because
            another program rounded them; the scores are not rounded.
    """

    task: str
    metric: str
    scorer: str
    kind: str
    bounded: bool
    lower_is_better: bool
    form: Form
    declared_range: tuple[float, float] | None = None
    has_direction: bool = True
    metric_range: tuple[float, float] | None = None
    rounding: float = 0.0

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The range of an item's score, None where it is unknown; a pseudo-value has none."""
        if not self.is_mean:
            return None
        return UNIT_RANGE if self.bounded else self.declared_range

    @property
    def known_range(self) -> tuple[float, float] | None:
        """The range of a run's number, None where it is unknown."""
        return self.value_range or self.metric_range

    @property
    def width(self) -> float:
        """The greatest possible difference of two runs; nan if unknown."""
        known_range = self.known_range
        return math.nan if known_range is None else known_range[1] - known_range[0]

    @property
    def is_mean(self) -> bool:
        """Whether the metric is the mean of the items' scores as they are shown."""
        return self.form != "other"


@dataclass(frozen=True, slots=True)
class Matrix:
    """Scores of several runs on one task, in the metric's own direction.

    For a metric that is no mean over items, the values are pseudo-values, and keys and items those
    of groups.

    Attributes:
        measure: the metric.
        keys: (items,), hashed ids.
        values: (runs, items), nan where there is none.
        was_asked: (runs, items), whether the run has the item at all.
        missing: (runs, items), whether it has no value through no fault of the model.
        unsure: (runs, items), whether a careful reader might dispute the value.
        clusters: (items,), None where every item is independent.
        slices: a code per item, by metadata key.
        pairing: how items were matched, None where they are not items of records.
        scores: for pseudo-values, the scores of the underlying items.
        estimates: for pseudo-values, each run's own number.
        within: for pseudo-values, the same matrix for each value of the slices.
        problems: for pseudo-values, which runs have none, and why.
        missing_policy: what verdicts are based on: the items that both runs have, or the worst that
            the missing ones could be.
    """

    measure: Measure
    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    was_asked: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    unsure: NDArray[np.bool_]
    clusters: NDArray[np.int64] | None
    slices: dict[str, SliceCodes]
    pairing: Pairing | None = None
    scores: Matrix | None = None
    estimates: tuple[Estimate, ...] = ()
    within: Mapping[tuple[str, str], Matrix] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    missing_policy: MissingPolicy = "scored"

    @property
    def units(self) -> NDArray[np.int64]:
        """The units that share errors, (items,), with the same codes in every task.

        See `unit_codes`. For groups these are the keys.
        """
        if self.scores is not None:
            return self.keys
        contents = self.keys * 0 if self.pairing is None else self.pairing.contents
        clusters = ~self.keys if self.clusters is None else self.clusters
        return unit_codes(self.measure.task, self.keys, contents, clusters)

    def other_questions(self, a: int = 0, b: int = 1) -> tuple[int, int]:
        """Count ids that two runs have in common but with different questions, and all common ids.

        The former are not compared.
        """
        item_matrix = self.of_items
        n = (
            0
            if item_matrix.pairing is None
            else int(item_matrix.pairing.differing[a, b])
        )
        return n, n + int((item_matrix.was_asked[a] & item_matrix.was_asked[b]).sum())

    @property
    def of_items(self) -> Matrix:
        """The item-by-item scores: this matrix, or the one behind pseudo-values."""
        return self.scores or self

    @property
    def unbounded(self) -> NDArray[np.bool_]:
        """(runs,), whether missing answers have unbounded effects that the policy counts."""
        import numpy as np

        lacking: NDArray[np.bool_] = np.asarray(self.of_items.missing.any(axis=1))
        bounded = (
            self.missing_policy == "scored" or self.measure.value_range is not None
        )
        return np.zeros_like(lacking) if bounded else lacking

    def with_policy(self, missing_policy: MissingPolicy) -> Matrix:
        """Return the same scores under another policy for missing answers."""
        within = {
            name: slice_matrix.with_policy(missing_policy)
            for name, slice_matrix in self.within.items()
        }
        return replace(self, missing_policy=missing_policy, within=within)

    def slice(self, key: str, name: str) -> Matrix | None:
        """Select the items with this value of a metadata key; None where there are none."""
        if self.scores is not None:
            return self.within.get((key, name))
        inside: NDArray[np.bool_] = self.slices[key].codes == self.slices[
            key
        ].names.index(name)
        return self.part(inside) if inside.any() else None

    def common(self) -> NDArray[np.bool_]:
        """Return a mask of the items that all runs were asked, (items,)."""
        asked_by_all: NDArray[np.bool_] = self.was_asked[0].copy()
        for row in self.was_asked[1:]:
            asked_by_all &= row
        return asked_by_all

    def part(self, items: NDArray[np.bool_]) -> Matrix:
        """Select some of the items."""
        import numpy as np

        if items.all():
            return self
        chosen = np.flatnonzero(items)
        return replace(
            self,
            keys=self.keys[chosen],
            values=self.values[:, chosen],
            was_asked=self.was_asked[:, chosen],
            missing=self.missing[:, chosen],
            unsure=self.unsure[:, chosen],
            clusters=None if self.clusters is None else self.clusters[chosen],
            slices={
                key: SliceCodes(slice_codes.names, slice_codes.codes[chosen])
                for key, slice_codes in ({} if self.scores else self.slices).items()
            },
            # The pairing of groups stays, because it is about the underlying items.
            pairing=self.pairing
            and (self.pairing if self.scores else self.pairing.only(chosen)),
        )

    def counted(self, row: int) -> Matrix:
        """Select the items that count for one run: those that have a value, or should have one."""
        return self.part((self.values[row] == self.values[row]) | self.missing[row])


def pooled(matrices: Sequence[Matrix], name: str) -> Matrix:
    """Combine several tasks into one sample of all their items; items of one unit are a cluster.

    The measure is that of the first task.
    """
    import numpy as np

    if len(matrices) == 1:
        return matrices[0]
    clusters = np.concatenate([matrix.units for matrix in matrices])
    keys = np.concatenate([matrix.keys for matrix in matrices])
    rows = [
        (matrix.values, matrix.was_asked, matrix.missing, matrix.unsure)
        for matrix in matrices
    ]
    values, was_asked, missing, unsure = (
        np.concatenate(side, axis=1) for side in zip(*rows, strict=True)
    )
    measure = replace(matrices[0].measure, task=name)
    return Matrix(
        measure,
        keys,
        values,
        was_asked,
        missing,
        unsure,
        clusters,
        {},
        missing_policy=matrices[0].missing_policy,
    )


def make_matrix(
    task: str,
    results: Sequence[MetricResult],
    scores: Sequence[ItemScores],
    slices: Sequence[str] = (),
    declared_range: tuple[float, float] | None = None,
    known_range: tuple[float, float] | None = None,
) -> Matrix:
    """Arrange the runs' item scores side by side.

    Args:
        task: the task's name.
        results: the metric of each run, in the same order as scores.
        scores: the item scores of each run.
        slices: metadata keys to include.
        declared_range: of the scores as recorded, as the runs' tasks declare it.
        known_range: of the metric's values, where it is bounded.
    """
    import numpy as np

    pairing = pair_items(scores)
    keys = pairing.keys
    values = np.full((len(scores), len(keys)), np.nan)
    was_asked, missing, unsure = (np.zeros(values.shape, dtype=bool) for _ in range(3))
    clustered = any(item_scores.clustered for item_scores in scores)
    clusters = (
        ~keys if clustered else None
    )  # an item without a cluster is a unit by itself: `cluster_code`
    for row, (run_scores, places) in enumerate(
        zip(scores, pairing.places, strict=True)
    ):
        values[row, places], was_asked[row, places] = run_scores.values, True
        missing[row, places], unsure[row, places] = (
            run_scores.missing,
            run_scores.unsure,
        )
        if clusters is not None and run_scores.clustered:
            named = run_scores.clusters != ~run_scores.keys
            clusters[places[named]] = run_scores.clusters[named]
    form = _form(results, [run_scores.values for run_scores in scores])
    main = results[0]
    values = _as_shown(form, values)
    bounded = main.kind in BOUNDED
    shown_range = _range_as_shown(form, declared_range, values)
    measure = Measure(
        task,
        main.label,
        main.scorer,
        main.kind,
        bounded,
        main.less_is_better,
        form,
        shown_range,
        all(metric.has_direction for metric in results),
        known_range,
        _rounding_of(results) if form != "other" else 0.0,
    )
    codes_by_key = {
        key: codes
        for key in slices
        if (codes := _slice_codes(key, pairing, scores)) is not None
    }
    return Matrix(
        measure,
        keys,
        values,
        was_asked,
        missing,
        unsure,
        clusters,
        codes_by_key,
        pairing,
    )


def matrices(
    runs: Sequence[Run],
    results: Mapping[str, Sequence[MetricResult]],
    slices: Sequence[str] = (),
    *,
    of_scores: bool = True,
) -> list[Matrix]:
    """Build a matrix for each task.

    Args:
        runs: the runs, in the order of the rows.
        results: by task, the metric of each run.
        slices: metadata keys to include.
        of_scores: whether the metrics are known to use the scores' values rather than a part of
            them.

    Raises:
        RunError: a score that such a metric cannot have.
    """
    scores = list[dict[str, ItemScores]]()
    for row, run in enumerate(runs):
        run_scores = item_scores(
            run,
            {task: task_metrics[row].scorer for task, task_metrics in results.items()},
            slices,
        )
        first_scores = scores[0] if scores else run_scores
        scores.append(
            {
                task: with_items_of(first_scores[task], of_task)
                for task, of_task in run_scores.items()
            }
        )
    matrix_by_task = {
        task: make_matrix(
            task,
            task_metrics,
            [scores_by_task[task] for scores_by_task in scores],
            slices,
            _declared_range(runs, task, task_metrics),
            _metric_range(runs, task, task_metrics),
        )
        for task, task_metrics in results.items()
    }
    for task, task_metrics in results.items():
        for run, metric, scores_by_task in zip(runs, task_metrics, scores, strict=True):
            is_of_values = matrix_by_task[task].measure.is_mean or not _options(
                run, task, metric
            ).get("part")
            if of_scores and is_of_values:
                check_bounded(run, metric, scores_by_task[task].values)
    others = {
        task: results[task]
        for task, matrix in matrix_by_task.items()
        if not matrix.measure.is_mean
    }
    if others:
        matrix_by_task |= _others(runs, others, matrix_by_task, scores, slices)
    return list(matrix_by_task.values())


_ROUNDING = 1e-9
"""How far rounding may take a score out of its range, as in `statistics.units.check_range`."""


def check_bounded(
    run: Run, metric: MetricResult | MetricSpec, values: NDArray[np.float64]
) -> None:
    """Raise RunError if a metric of scores in [0, 1] has others.

    A metric over a part of the scores is not checked, since it says nothing about their values.
    """
    if isinstance(metric, MetricSpec) and metric.options.get("part"):
        return
    if (
        metric.kind in OF_BOUNDED
        and ((values < -_ROUNDING) | (values > 1 + _ROUNDING)).any()
    ):
        raise RunError(
            f"The record of '{run.id}' has scores of '{metric.scorer}' outside of 0 to"
            f" 1, which '{metric.label}' cannot have: it was changed, or another"
            " program wrote it."
        )


def _others(
    runs: Sequence[Run],
    results: Mapping[str, Sequence[MetricResult]],
    item_matrices: Mapping[str, Matrix],
    scores: Sequence[Mapping[str, ItemScores]],
    slices: Sequence[str],
) -> dict[str, Matrix]:
    """Build the matrices of metrics that are not means of their scores.

    The records of only one run are in memory at a time.
    """
    cuts = {task: _cuts(item_matrices[task]) for task in results}
    values: dict[str, list[ItemScores | None]] = {task: [] for task in results}
    groups: dict[str, list[list[Grouped]]] = {
        task: [[] for _ in runs] for task in results
    }

    def grouped(row: int, task: str, record: Record) -> None:
        groups_by_slice = {
            name: Groups(cut.items, len(cut.keys[cut.sides[row]]))
            for name, cut in cuts[task].items()
        }
        pairing = item_matrices[task].pairing
        places = None if pairing is None else pairing.places[row]
        groups[task][row] = record.grouped(
            scores[row][task].keys, places, groups_by_slice
        )

    for row, run in enumerate(runs):
        for task, record in records_of(
            run, {task: task_metrics[0] for task, task_metrics in results.items()}
        ).items():
            run_scores = scores[row][task]
            item_values = record.item_values(run_scores.keys)
            if item_values is None:
                values[task].append(None)
                grouped(row, task, record)
            else:
                values[task].append(
                    replace(
                        run_scores,
                        values=item_values,
                        missing=run_scores.missing & (item_values != item_values),
                    )
                )
    matrix_by_task = {}
    for task, task_metrics in results.items():
        known_scores = [
            maybe_scores for maybe_scores in values[task] if maybe_scores is not None
        ]
        if len(known_scores) == len(runs):
            matrix_by_task[task] = make_matrix(task, task_metrics, known_scores, slices)
            continue
        for row, run in enumerate(runs):
            if (
                values[task][row] is not None
            ):  # only one run has them, so there is nothing to compare
                grouped(row, task, records_of(run, {task: task_metrics[0]})[task])
        matrix_by_task[task] = _of_groups(
            item_matrices[task], cuts[task], groups[task], [run.id for run in runs]
        )
    return matrix_by_task


def _cuts(matrix: Matrix) -> dict[tuple[str, str], SharedGroups]:
    """Form the groups of all items, under ("", ""), and of those of each slice."""
    import numpy as np

    from evalwright.statistics.jackknife import MOST_GROUPS, MOST_REMADE, shared_groups

    most = MOST_GROUPS if is_of_sums(matrix.measure.kind) else MOST_REMADE
    codes = matrix.units
    inside = {("", ""): np.ones(len(matrix.keys), dtype=bool)} | {
        (key, name): there.codes == code
        for key, there in matrix.slices.items()
        for code, name in enumerate(there.names)
    }
    there = {name: is_inside for name, is_inside in inside.items() if is_inside.any()}
    return {
        name: shared_groups(codes, matrix.was_asked & is_inside, most)
        for name, is_inside in there.items()
    }


def _of_groups(
    matrix: Matrix,
    cuts: Mapping[tuple[str, str], SharedGroups],
    grouped_by_run: Sequence[Sequence[Grouped]],
    runs: Sequence[str],
) -> Matrix:
    """Build the matrix of pseudo-values.

    Args:
        matrix: the scores of the underlying items.
        cuts: the groups, by slice.
        grouped_by_run: by run, the pseudo-values for each of the cuts.
        runs: the runs' names.
    """
    import numpy as np

    matrix_by_slice: dict[tuple[str, str], Matrix] = {}
    for cut_index, (name, cut) in enumerate(cuts.items()):
        run_groups = [grouped_cuts[cut_index] for grouped_cuts in grouped_by_run]
        keys = np.concatenate(cut.keys)
        values = np.full((len(run_groups), len(keys)), np.nan)
        was_asked = np.zeros(values.shape, dtype=bool)
        for row, run_group in enumerate(run_groups):
            was_asked[row, cut.place(row)] = True
            if not run_group.problem:
                values[row, cut.place(row)] = run_group.values
        problems = tuple(
            f"{runs[row]}: {run_group.problem}"
            for row, run_group in enumerate(run_groups)
            if run_group.problem
        )
        if problems and len(run_groups) == 2:
            # Only the two numbers are compared, as a single unit without an error.
            keys = keys[:1]
            was_asked = np.ones((2, 1), dtype=bool)
            values = np.array([[run_group.estimate.value] for run_group in run_groups])
        inside = matrix if not name[0] else matrix.part(cut.items >= 0)
        estimates = tuple(run_group.estimate for run_group in run_groups)
        none = np.zeros(was_asked.shape, dtype=bool)
        sides = matrix.measure, keys, values, was_asked, none, none, None
        matrix_by_slice[name] = Matrix(
            *sides, {}, scores=inside, estimates=estimates, problems=problems
        )
    overall = matrix_by_slice.pop(("", ""))
    return replace(overall, slices=matrix.slices, within=matrix_by_slice)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two rows of a matrix, prepared so that they can be compared at any level."""

    rows: tuple[int, int]
    matrix: Matrix
    scores: Paired

    @property
    def p_value(self) -> float:
        """The two-sided p-value of no difference."""
        return math.nan if self._unbounded else self.scores.p_value

    @property
    def _unbounded(self) -> bool:
        """Whether missing answers have an unbounded effect on a metric of groups.

        Only if the policy counts missing answers.
        """
        return self.matrix.scores is not None and bool(
            self.matrix.unbounded[list(self.rows)].any()
        )

    def comparison(self, level: float = 0.95, power: float = 0.8) -> PairedComparison:
        """Build the comparison, on the items that both runs were asked."""
        import numpy as np

        matrix = self.matrix
        comparison = self.scores.comparison(level, power)
        if matrix.scores is None:
            return comparison
        # The comparison counts items; groups are only the means of computing it.
        asked_of_both = matrix.scores.was_asked[list(self.rows)].all(axis=0)
        n = int(common_counts(matrix)[self.rows])
        missing = matrix.scores.missing[list(self.rows)] & asked_of_both
        clusters = matrix.scores.clusters
        if self._unbounded:
            comparison = replace(
                comparison,
                low=math.nan,
                high=math.nan,
                p_value=math.nan,
                verdict="no difference seen",
            )
        if matrix.measure.bounded:  # no difference is beyond the ends of the range
            ends = ("low", "high", "worst_low", "worst_high")
            comparison = replace(
                comparison,
                **{end: min(max(getattr(comparison, end), -1.0), 1.0) for end in ends},
            )
        return replace(
            comparison,
            n=n,
            n_missing=int(missing.any(axis=0).sum()),
            n_missing_a=int(missing[0].sum()),
            n_missing_b=int(missing[1].sum()),
            n_clusters=None
            if clusters is None
            else len(np.unique(clusters[asked_of_both])),
            test=(
                comparison.test.removesuffix(", range not known")
                if comparison.test.startswith("none")
                else f"jackknife t (G = {comparison.n})"
            ),
            discordant=None,
        )


def pair_of(matrix: Matrix, rows: tuple[int, int] = (0, 1)) -> Pair:
    """Prepare two rows of a matrix, on the items that both runs were asked."""
    from evalwright.statistics.paired import paired

    common = matrix.part(matrix.was_asked[rows[0]] & matrix.was_asked[rows[1]])
    pair_scores = paired(
        *(common.values[row] for row in rows),
        missing=common.missing[list(rows)],
        missing_policy=matrix.missing_policy,
        clusters=common.clusters,
        value_range=matrix.measure.value_range,
    )
    return Pair(rows, matrix, pair_scores)


def paired_of(
    matrix: Matrix,
    *,
    rows: tuple[int, int] = (0, 1),
    level: float = 0.95,
    power: float = 0.8,
) -> PairedComparison:
    """Compare two rows of a matrix on the items that both runs were asked.

    Args:
        matrix: the scores.
        rows: the rows of the two runs.
        level: confidence level of the interval.
        power: the probability with which the smallest visible difference is detected.
    """
    return pair_of(matrix, rows).comparison(level, power)


def unpaired_of(
    matrix: Matrix, *, rows: tuple[int, int] = (0, 1), level: float = 0.95
) -> UnpairedComparison:
    """Compare two rows of a matrix as independent samples, each on its own items."""
    from evalwright.statistics import compare_unpaired

    left, right = (matrix.counted(row) for row in rows)
    return compare_unpaired(
        left.values[rows[0]],
        right.values[rows[1]],
        clusters_a=left.clusters,
        clusters_b=right.clusters,
        level=level,
        missing_policy=matrix.missing_policy,
        value_range=matrix.measure.value_range,
    )


def common_counts(matrix: Matrix) -> NDArray[np.int64]:
    """Count items with a score from both runs, (runs, runs); on the diagonal those of one run."""
    return common_units(matrix.of_items)


def common_units(matrix: Matrix) -> NDArray[np.int64]:
    """Like `common_counts`, but counts groups where they replace items."""
    import numpy as np

    has_value = (~np.isnan(matrix.values)).astype(np.float64)
    counts: NDArray[np.int64] = (has_value @ has_value.T).astype(np.int64)
    return counts


MOST_PROBLEMS = 3
"""Most runs of which a note says why a metric has no interval."""


def group_notes(matrix: Matrix, has_interval: bool = True) -> list[str]:
    """Write notes about a jackknifed metric: no interval, too few groups, differing items.

    `has_interval` says whether the comparison has an interval.
    """
    import numpy as np

    from evalwright.statistics.jackknife import FEW_GROUPS

    if matrix.scores is None:
        return []
    name = matrix.measure.metric
    notes = []
    if matrix.problems:
        whys = "; ".join(matrix.problems[:MOST_PROBLEMS])
        more = len(matrix.problems) - MOST_PROBLEMS
        others = f"; and {more:,} more runs" if more > 0 else ""
        notes.append(f"'{name}' has no interval and no test for {whys}{others}.")
    unit_name = "items" if matrix.scores.clusters is None else "clusters"
    groups = int(common_units(matrix).diagonal().min(initial=FEW_GROUPS))
    if not notes and has_interval and groups < FEW_GROUPS:
        notes.append(
            f"the interval of '{name}' rests on {groups} groups of {unit_name} only; with"
            f" fewer than {FEW_GROUPS} it is wide and assumes that these few are"
            " typical."
        )
    if not notes and not has_interval and not matrix.unbounded.any():
        notes.append(
            f"the difference in '{name}' has no interval: without any one of the {unit_name}"
            " it is the same, so its error is unknown."
        )
    was_asked = matrix.scores.was_asked
    if (
        matrix.common().any()
        and not (was_asked == np.logical_or.reduce(was_asked)).all()
    ):
        notes.append(
            f"'{name}' is that of all items of each run, also of those that others were"
            " not asked."
        )
    return notes


def _form(
    results: Sequence[MetricResult], scores_by_run: Sequence[NDArray[np.float64]]
) -> Form:
    """Find the form that fits the recorded values of all runs."""
    import numpy as np

    main = results[0]
    best: Form = "other"
    least = math.inf
    has_scores = False
    for form in _forms(main):
        missed = 0.0
        for metric, values in zip(results, scores_by_run, strict=True):
            known_values = values[~np.isnan(values)]
            if len(known_values) and math.isfinite(metric.estimate.value):
                gap = abs(
                    metric.estimate.value - _as_shown(form, float(known_values.mean()))
                )
                missed = max(missed, gap / max(1.0, abs(metric.estimate.value)))
                has_scores = True
        if missed < least:
            best = form
            least = missed
    if least > SAME + _rounding_of(results) or (
        not has_scores and main.kind in LOWER_IS_BETTER and main.kind not in BOUNDED
    ):
        return "other"
    return best


def _rounding_of(results: Sequence[MetricResult]) -> float:
    """How far recorded values may be from the exact ones, because they are rounded."""
    if not any(metric.estimate.method.endswith(ROUNDED) for metric in results):
        return 0.0
    return HALF_TENTH / 100 if results[0].kind in BOUNDED else HALF_TENTH


def _declared_range(
    runs: Sequence[Run], task: str, results: Sequence[MetricResult]
) -> tuple[float, float] | None:
    """The range that the task declares for the metric (`value_range`), if all runs agree.

    Else None.
    """
    ranges = set[tuple[float, float] | None]()
    for run, metric in zip(runs, results, strict=True):
        declared = _options(run, task, metric).get("value_range")
        ranges.add((float(declared[0]), float(declared[1])) if declared else None)
    return ranges.pop() if len(ranges) == 1 else None


def _metric_range(
    runs: Sequence[Run], task: str, results: Sequence[MetricResult]
) -> tuple[float, float] | None:
    """The least and the greatest value of a bounded metric in any run; None if unknown."""
    if results[0].kind not in BOUNDED:
        return None
    ranges = []
    for run, metric in zip(runs, results, strict=True):
        options = _options(run, task, metric)
        if metric.kind == "chance-normalised" and "chance" not in options:
            return None
        ranges.append(metric_range(metric.kind, options))
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _options(run: Run, task: str, metric: MetricResult) -> Mapping[str, Any]:
    """Return the options of a metric in the run's record."""
    specs = run.record(task).get("metric_specs", ())
    return next(
        (spec["options"] for spec in specs if spec["label"] == metric.label), {}
    )


def _range_as_shown(
    form: Form, declared_range: tuple[float, float] | None, values: NDArray[np.float64]
) -> tuple[float, float] | None:
    """Convert a declared range to the metric's direction; None where a score is outside it.

    `values` are in the metric's direction.
    """
    if declared_range is None or form == "other":
        return None
    low, high = sorted(_as_shown(form, end) for end in declared_range)
    if ((values < low) | (values > high)).any():
        return None
    return low, high


def _as_shown(form: Form, scores: Any) -> Any:
    """Convert a score, or an array of scores, to the metric's direction."""
    if form == "negated":
        return -scores
    return 1.0 - scores if form == "complement" else scores


def _forms(main: MetricResult) -> tuple[Form, ...]:
    """List the forms that a metric may have, likely ones first.

    Scores are better when higher by contract, so a metric for which lower is better is tried as
    their opposite first.
    """
    if main.kind in ("balanced-accuracy", "chance-normalised", "macro-f1"):
        return ()
    if not main.less_is_better or is_of_items(main.kind):
        return ("score",)
    return (
        ("complement", "score", "negated")
        if main.kind in BOUNDED
        else ("negated", "score")
    )


def _slice_codes(
    key: str, pairing: Pairing, scores: Sequence[ItemScores]
) -> SliceCodes | None:
    """Combine one metadata key's codes over all items; None where no run has it.

    Where runs differ, the first one with a value counts.
    """
    import numpy as np

    names: dict[str, int] = {}
    codes = np.full(len(pairing.keys), -1, np.int32)
    for run_scores, places in reversed([*zip(scores, pairing.places, strict=True)]):
        run_codes = run_scores.slices.get(key)
        if run_codes is None:
            continue
        renamed = np.array(
            [names.setdefault(name, len(names)) for name in run_codes.names], np.int32
        )
        has_code = run_codes.codes >= 0
        codes[places[has_code]] = renamed[run_codes.codes[has_code]]
    return SliceCodes(tuple(names), codes) if names else None
