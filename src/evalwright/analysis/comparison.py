"""Two runs side by side: paired by item, task by task, with what flipped and what differs in how they were made.

Where the runs share no item of a task they are compared as two independent samples, and the result says so. The estimand is
always the mean difference for items drawn like these, with the tasks fixed. Whether the two are the same up to a margin named
beforehand is tested by two one-sided tests (TOST) at 5%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.context_gain import ContextGain, context_gains
from evalwright.analysis.differing import configuration_differences
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.core.plain import Plain, plain_fields
from evalwright.runs.measures import UNIT_RANGE, Matrix, Measure, half_of, matrices, paired_of, unpaired_of
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult, unscored
from evalwright.runs.scores import hashed
from evalwright.runs.slices import SliceComparison, compare_slices
from evalwright.statistics import (
    MacroDifference,
    PairedComparison,
    UnpairedComparison,
    equivalence_paired,
    macro_difference,
)
from evalwright.statistics.equivalence import Equivalence
from evalwright.statistics.macro import TasksAre
from evalwright.statistics.multiplicity import Adjustment
from evalwright.statistics.task_sample import FEWEST, sampled_difference

LEVEL = 0.9
"""Of the interval that must lie inside the margin: 1 - 2 x 5%."""


@dataclass(frozen=True, slots=True)
class TaskEquivalence(Plain):
    """Whether the difference lies inside +-margin. p_value is nan where the test has none of its own."""

    difference: float
    low: float
    high: float
    margin: float
    p_value: float
    equivalent: bool
    method: str
    sentence: str


def equivalence_of(found: Matrix, margin: float, names: tuple[str, str]) -> TaskEquivalence:
    """TOST of the first two runs of a matrix: paired on common items, else as independent samples.

    Raises ConfigurationError for a margin that is not above 0, or not below the range of the scores.
    """
    common, bounded = found.common(), found.measure.bounded
    if not math.isfinite(margin) or margin <= 0 or (bounded and margin >= 1):
        raise ConfigurationError(
            f"The margin of equivalence is the smallest difference that would matter, such as 0.03 for 3 points of "
            f"accuracy, not {margin:g}."
        )
    if not common.any():
        apart = unpaired_of(found, level=LEVEL)
        return _result(apart, margin, math.nan, f"TOST, {apart.interval_method}", names, bounded)
    values, clusters = found.part(common)
    span = found.measure.value_range
    same = equivalence_paired(values[0], values[1], margin=margin, clusters=clusters, value_range=span)
    return _result(same, margin, same.p_value, same.method, names, bounded)


def overall_equivalence(
    found: Sequence[Matrix], margin: float, names: tuple[str, str], tasks_are: TasksAre = "fixed"
) -> TaskEquivalence:
    """TOST of the mean over tasks, each with the same weight; all must be bounded and have common items."""
    parts = [paired_of(one, level=LEVEL) for one in found]
    whole = overall_difference(found, parts, tasks_are)
    method = f"TOST, mean over {len(parts)} {'fixed tasks' if tasks_are == 'fixed' else 'tasks as a sample'}"
    return _result(whole, margin, math.nan, method, (f"Over all tasks {names[0]}", names[1]), True)


def _result(
    found: MacroDifference | UnpairedComparison | Equivalence,
    margin: float,
    p_value: float,
    method: str,
    names: tuple[str, str],
    bounded: bool,
) -> TaskEquivalence:
    low, high = found.low, found.high
    inside = bool(low >= -margin and high <= margin)
    scale, unit, decimals = (100.0, " points", 2) if bounded else (1.0, "", 4)
    said = "are equivalent" if inside else "were not shown to be equivalent"
    ends = f"90% interval {low * scale:.{decimals}f} to {high * scale:.{decimals}f}"
    text = (
        f"{names[0]} and {names[1]} {said} within {margin * scale:g}{unit} (two one-sided tests at 5%, "
        f"{'no interval' if math.isnan(low) else ends})."
    )
    return TaskEquivalence(found.difference, low, high, margin, p_value, inside, method, text)


MOST_READ = 200_000
"""Records in which flipped items are looked for by name."""


@dataclass(frozen=True, slots=True)
class Flip:
    """An item on which the two runs disagree: its id and both scores."""

    task: str
    id: str
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class TaskComparison(Plain):
    """One task of two runs. Exactly one of paired and unpaired is there; unpaired where the runs share no item.

    only_a, only_b: items that one run alone has; n_differing: items whose scores differ, n_a_higher and n_b_higher by
    direction. bounded: scores lie between 0 and 1 and are shown in points of 100. warnings: what limits the comparison.
    sentence: what the numbers mean, filled in by `reports.conclusions`.
    """

    task: str
    metric: str
    scorer: str
    bounded: bool
    lower_is_better: bool
    paired: PairedComparison | None
    unpaired: UnpairedComparison | None
    only_a: int
    only_b: int
    n_differing: int
    n_a_higher: int
    n_b_higher: int
    flips: tuple[Flip, ...]
    slices: tuple[SliceComparison, ...]
    equivalence: TaskEquivalence | None
    warnings: tuple[str, ...]
    sentence: str = ""

    @property
    def result(self) -> PairedComparison | UnpairedComparison:
        """The comparison that was made: difference, interval, p and both means."""
        found = self.paired or self.unpaired
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs over all tasks that both have.

    overall: every task counts the same; None with a single task, where tasks are measured in different units or directions,
    and where one of them is not paired. labels: what the runs are called in sentences. context_gains: of runs that have a
    task with passages and the same without. conclusion: in words, filled in by `reports.conclusions`.
    """

    a: str
    b: str
    labels: tuple[str, str]
    tasks: tuple[TaskComparison, ...]
    overall: MacroDifference | None
    overall_equivalence: TaskEquivalence | None
    estimand: str
    differences: tuple[str, ...]
    context_gains: tuple[ContextGain, ...] = ()
    conclusion: str = ""

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return plain_fields(self, ("labels", *(() if self.context_gains else ("context_gains",))))


def compare_runs(
    a: Run,
    b: Run,
    *,
    most_flips: int = 20,
    slices: Sequence[str] = (),
    slices_adjust: Adjustment = "bh",
    equivalent: float | None = None,
    tasks_are: TasksAre = "fixed",
) -> Comparison:
    """Compare two runs on the tasks that both have, paired by sample id, on the main metric that each task has in A.

    most_flips: flipped items named, in each direction. slices: metadata keys by whose values the tasks are compared too,
    slices_adjust: how that is adjusted for how many they are (`multiplicity`).
    equivalent: the smallest difference that would matter, in the metric's own unit; then two one-sided tests are made.
    tasks_are: whether the mean over tasks is about these tasks or, at least three being there, about tasks like these.
    Raises RunError where they share no task, have a task scored by different scorers, or no task has such a key, and
    ConfigurationError for a margin that is none.
    """
    names = (a.label, b.label) if a.label != b.label else (a.id, b.id)
    matrices = read_matrices([a, b], slices)
    tasks = tuple(_compare(a, b, found, names, most_flips, slices_adjust, equivalent) for found in matrices)
    measures = [found.measure for found in matrices]
    paired = [task.paired for task in tasks if task.paired]
    overall = same = None
    averaged = len(paired) == len(tasks) > 1 and can_average(measures)
    check_tasks_are(tasks_are, len(tasks) if averaged else 0)
    if averaged:
        overall = overall_difference(matrices, paired, tasks_are)
        same = overall_equivalence(matrices, equivalent, names, tasks_are) if equivalent is not None else None
    how = "paired by item" if len(paired) == len(tasks) else "paired by item where items are shared"
    how = how if paired else "two independent samples of items"
    about = estimand(matrices, "the mean difference A - B", how, tasks_are)
    gains = (*context_gains(a), *context_gains(b))
    found = tuple(configuration_differences(a, b))
    return Comparison(a.id, b.id, names, tasks, overall, same, about, found, gains)


def common_results(runs: Sequence[Run], metric: str | None = None) -> dict[str, tuple[MetricResult, ...]]:
    """By task, the results that the runs have in common: the main metric of the first run, or the one of that label.

    Raises RunError where there is no such task, or a run was scored otherwise.
    """
    first = runs[0]
    by_name = [{task.name: task for task in run.tasks} for run in runs]
    out: dict[str, tuple[MetricResult, ...]] = {}
    for task in first.tasks:
        chosen = task.main if metric is None else next((m for m in task.metrics if m.label == metric), None)
        if chosen is None or not all(task.name in names for names in by_name):
            continue
        for run in runs[1:]:
            _check_scorer(first, run, task.name, chosen.scorer)
        out[task.name] = tuple(_same_metric(names[task.name].metrics, chosen) for names in by_name)
    if not out:
        there = " against ".join(", ".join(sorted(names)) or "none" for names in by_name)
        who = " and ".join(f"'{run.id}'" for run in runs)
        raise RunError(f"The runs {who} have no task in common: {there}.")
    return out


def read_matrices(runs: Sequence[Run], slices: Sequence[str] = (), metric: str | None = None) -> list[Matrix]:
    """The runs' item scores side by side, a matrix per task that all have. Errors as `common_results`, and for slices."""
    results = common_results(runs, metric)
    found = matrices(runs, results, slices)
    _check_slices(runs[0], slices, found)
    return found


def overall_difference(
    found: Sequence[Matrix],
    paired: Sequence[PairedComparison],
    tasks_are: TasksAre = "fixed",
    rows: tuple[int, int] = (0, 1),
) -> MacroDifference:
    """The mean over tasks, each with the same weight, of the paired comparisons of two rows; found: their matrices."""
    if tasks_are == "fixed":
        return macro_difference(paired, value_range=UNIT_RANGE)
    check_tasks_are(tasks_are, len(paired))
    gaps = [(one.values[rows[0]] - one.values[rows[1]], one.units) for one in found]
    return sampled_difference(paired, gaps, value_range=UNIT_RANGE)


def check_tasks_are(tasks_are: TasksAre, tasks: int) -> None:
    """Raise ConfigurationError where there is no mean over enough tasks for them to be a sample; tasks: those in the mean, 0: none."""
    if tasks_are == "sample" and tasks < FEWEST:
        there = f"there is one over {tasks}" if tasks > 1 else "there is none"
        raise ConfigurationError(
            f"Tasks as a sample of tasks need a mean over at least {FEWEST} tasks, but {there}: how far so few lie apart says nothing of "
            "others. Use --tasks-are fixed, or runs of more tasks."
        )


def can_average(measures: Sequence[Measure]) -> bool:
    """Whether a mean over these tasks means anything: all in points, and all in the same direction."""
    return all(one.bounded for one in measures) and len({one.lower_is_better for one in measures}) == 1


def _same_metric(metrics: Sequence[MetricResult], chosen: MetricResult) -> MetricResult:
    """A run's own result of the metric, else the first by the same scorer, else the other run's."""
    same = [one for one in metrics if one.scorer == chosen.scorer]
    return next((one for one in same if one.label == chosen.label), same[0] if same else chosen)


def _check_scorer(a: Run, b: Run, task: str, scorer: str) -> None:
    """Both runs must have a score by the scorer that is compared."""
    record = next(found for found in b.data["tasks"] if found["name"] == task)
    there = [found["name"] for found in record["scorers"]]
    if scorer not in there:
        raise RunError(
            f"On '{task}' the run '{a.id}' was scored by '{scorer}' and the run '{b.id}' by "
            f"{', '.join(there)}. Score one of them again with `evalwright score`."
        )


def _check_slices(run: Run, slices: Sequence[str], found: Sequence[Matrix]) -> None:
    for key in slices:
        if not any(key in matrix.slices for matrix in found):
            known = sorted({name for row in islice(run.rows(), 1000) for name in row.get("metadata", {})})
            more = f"The samples have {', '.join(known)}." if known else "The samples have no metadata."
            raise UnknownName("slice", key, known, f"{more} A key with more than 200 values makes no slices.")


# -- one task ----------------------------------------------------------------------------------------------------------


def _compare(
    a: Run,
    b: Run,
    found: Matrix,
    names: tuple[str, str],
    most_flips: int,
    adjust: Adjustment,
    equivalent: float | None,
) -> TaskComparison:
    measure = found.measure
    one, other = found.values
    common = found.common()
    higher, lower = one > other, one < other
    paired = paired_of(found) if common.any() else None
    return TaskComparison(
        task=measure.task,
        metric=measure.metric,
        scorer=measure.scorer,
        bounded=measure.bounded,
        lower_is_better=measure.lower_is_better,
        paired=paired,
        unpaired=None if paired else unpaired_of(found),
        only_a=int((found.asked[0] & ~found.asked[1]).sum()),
        only_b=int((found.asked[1] & ~found.asked[0]).sum()),
        n_differing=int(higher.sum() + lower.sum()),
        n_a_higher=int(higher.sum()),
        n_b_higher=int(lower.sum()),
        flips=_flips(a, found, higher, lower, most_flips),
        slices=tuple(compare_slices(found, key, adjust) for key in found.slices),
        equivalence=None if equivalent is None else equivalence_of(found, equivalent, names),
        warnings=tuple(_warnings(a, b, found, paired)),
    )


def _warnings(a: Run, b: Run, found: Matrix, paired: PairedComparison | None) -> list[str]:
    lost = {run.id: unscored([run.task(found.measure.task)]) for run in (a, b)}
    warnings = [
        f"'{name}' has items without a score, left out here: {why}." for name, why in lost.items() if why
    ]
    scored = (~np.isnan(found.values)).sum(axis=1)
    if paired is None:
        warnings.append(
            "The runs share no item, so they are compared as two independent samples: a difference in the items' difficulty "
            "counts as a difference between the models."
        )
        if found.clusters is not None and np.intersect1d(*(found.clusters[one] for one in found.asked)).size:
            warnings.append("Their items share passages, which this comparison does not take into account.")
    elif warning := half_of(a, b, paired.n, int(scored.max(initial=0))):
        warnings.append(warning)
    if not found.measure.is_mean:
        warnings.append(no_mean(found))
    return warnings


def no_mean(found: Matrix) -> str:
    """What a reader must know of a metric that is no mean over items."""
    return (
        f"'{found.measure.metric}' is not a mean over items, so the comparison uses the mean score of "
        f"'{found.measure.scorer}', where more is better."
    )


def _flips(
    run: Run, found: Matrix, higher: NDArray[np.bool_], lower: NDArray[np.bool_], most: int
) -> tuple[Flip, ...]:
    """The first `most` items of each direction, in the order of the run, whose scores differ."""
    places = {int(found.keys[place]): int(place) for side in (higher, lower) for place in side.nonzero()[0]}
    left = {True: min(most, int(higher.sum())), False: min(most, int(lower.sum()))}
    flips: list[Flip] = []
    for row in islice(run.rows(), MOST_READ) if any(left.values()) else ():
        place = places.pop(hashed(row["id"]), None) if row["task"] == found.measure.task else None
        if place is not None and left[side := bool(higher[place])]:
            left[side] -= 1
            flips.append(Flip(found.measure.task, row["id"], *map(float, found.values[:, place])))
            if not any(left.values()):
                break
    return tuple(flips)


def estimand(found: Sequence[Matrix], what: str, how: str, tasks_are: TasksAre = "fixed") -> str:
    """What the numbers are about, in a sentence. what: is estimated; how: runs are held against each other."""
    which = "tasks like these" if tasks_are == "sample" else "these"
    over = (
        f"over {which} {len(found)}{' tasks' * (tasks_are == 'fixed')}, each with the same weight, "
        if len(found) > 1
        else ""
    )
    units = "; items of a cluster count as one unit" if any(one.clusters is not None for one in found) else ""
    return f"The estimate is {what} {over}for items drawn like these, {how}{units}. Intervals are 95%."
