"""Compares two runs: paired by item, task by task, with flipped items and differing settings.

Where the runs share no item of a task they are compared as two independent samples, and the
output says so. The estimand is always the mean difference for items drawn like these, over
these tasks or, on request, tasks like these. Equivalence within a margin named beforehand is
tested by two one-sided tests (TOST) at 5%.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.claims import (
    ClaimRobustness,
    ClaimSide,
    measure_claim_robustness,
)
from evalwright.analysis.context_gain import ContextGain, measure_context_gains
from evalwright.analysis.differing import configuration_differences
from evalwright.analysis.next_step import (
    NextStep,
    OpenComparison,
    find_next_steps,
    make_design,
)
from evalwright.analysis.pairs import note_other_questions, pairing_notes
from evalwright.analysis.robustness import (
    Robustness,
    explain_one_sided_judge,
    explain_provisional,
    how_to_fill,
    measure_robustness,
    verdict_sign,
)
from evalwright.analysis.same_answers import without_same_answers
from evalwright.analysis.trees import (
    Average,
    GroupDifference,
    group_differences,
    make_average,
    overall_node,
)
from evalwright.analysis.words import count, counted, listed, plural, points
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.core.plain import Plain, plain_fields
from evalwright.core.shown import Shown
from evalwright.metrics.registry import BOUNDED, MEANS
from evalwright.metrics.tree import Node
from evalwright.runs.confirmed import confirm_all, published_from, published_notes
from evalwright.runs.measures import (
    Matrix,
    Measure,
    common_counts,
    group_notes,
    matrices,
    paired_of,
    unpaired_of,
)
from evalwright.runs.reader import Run, check_named_once, ids_or_folders
from evalwright.runs.results import (
    MetricResult,
    TaskResult,
    faults_in_words,
    model_faults,
)
from evalwright.runs.scores import hashed
from evalwright.runs.simulations import refuse_shards
from evalwright.runs.slices import SliceComparison, compare_slices
from evalwright.runs.stopping import task_ended_early
from evalwright.statistics import (
    MacroDifference,
    PairedComparison,
    UnpairedComparison,
    equivalence_paired,
)
from evalwright.statistics.macro import TasksAre
from evalwright.statistics.multiplicity import Adjustment
from evalwright.statistics.paired import Equivalence
from evalwright.statistics.pairwise import MissingPolicy
from evalwright.statistics.tipping import TippingPoint

LEVEL = 0.9
"""Level of the interval that must lie inside the margin: 1 - 2 x 5%."""


@dataclass(frozen=True, slots=True)
class TaskEquivalence(Plain):
    """The test whether the difference is inside +-margin.

    Args:
        difference: the difference of the two means.
        low: low end of its 90% interval.
        high: high end.
        margin: the smallest difference that would matter.
        p_value: nan if the test has no p-value of its own.
        equivalent: whether the interval is inside the margin.
        method: the name of the test.
        sentence: the conclusion in words.
        provisional: why an equivalence is not final, "" if it is.
        missing: how many missing answers would have to go against an equivalence; None without
            missing answers or equivalence.
        unsure: how many unsure answers would have to be wrong in one direction; None likewise.
    """

    difference: float
    low: float
    high: float
    margin: float
    p_value: float
    equivalent: bool
    method: str
    sentence: str
    provisional: str = ""
    missing: TippingPoint | None = None
    unsure: TippingPoint | None = None


def assess_equivalence(
    matrix: Matrix, margin: float, names: tuple[str, str], provisional: str = ""
) -> TaskEquivalence:
    """Test equivalence of the first two runs of a matrix by TOST, paired on common items if any.

    Args:
        matrix: the item scores.
        margin: the smallest difference that would matter.
        names: what the two runs are called.
        provisional: why a verdict on the two is not final, "" if it is.

    Raises:
        ConfigurationError: the margin is not above 0, or not below the range of the scores.
    """
    common = matrix.common()
    bounded = matrix.measure.bounded
    if not math.isfinite(margin) or margin <= 0 or (bounded and margin >= 1):
        raise ConfigurationError(
            "The margin of equivalence is the smallest difference that would matter,"
            f" such as 0.03 for 3 points of accuracy, not {margin:g}."
        )
    if not common.any():
        apart = unpaired_of(matrix, level=LEVEL)
        method = f"TOST, {apart.interval_method}"
        return _task_equivalence(
            apart, margin, math.nan, method, names, bounded, provisional=provisional
        )
    common_items = matrix.part(common)
    same = equivalence_paired(
        common_items.values[0],
        common_items.values[1],
        margin=margin,
        missing=common_items.missing[:2],
        missing_policy=matrix.missing_policy,
        clusters=common_items.clusters,
        value_range=matrix.measure.value_range,
    )
    average = Average((matrix,))
    robustness = (
        _measure_inside_robustness(average, margin)
        if _is_inside(same, margin)
        else ClaimRobustness()
    )
    return _task_equivalence(
        same,
        margin,
        same.p_value,
        same.method,
        names,
        bounded,
        provisional=provisional,
        robustness=robustness,
    )


def assess_overall_equivalence(
    average: Average, margin: float, names: tuple[str, str], provisional: str = ""
) -> TaskEquivalence:
    """Test equivalence of an average over tasks by TOST; all bounded and with common items.

    Args:
        average: the tasks.
        margin: the smallest difference that would matter.
        names: what the two runs are called.
        provisional: as in `assess_equivalence`.
    """
    difference = average.difference(level=LEVEL)
    method = f"TOST, {average.words}"
    names = (f"Over all tasks {names[0]}", names[1])
    robustness = (
        _measure_inside_robustness(average, margin)
        if _is_inside(difference, margin)
        else ClaimRobustness()
    )
    return _task_equivalence(
        difference,
        margin,
        math.nan,
        method,
        names,
        True,
        provisional=provisional,
        robustness=robustness,
    )


def _measure_inside_robustness(average: Average, margin: float) -> ClaimRobustness:
    """Measure how robust it is that the interval of the difference is inside +-margin."""

    def interval(moved: Average) -> tuple[float, float]:
        if len(moved.samples) == 1:
            paired = paired_of(moved.samples[0], level=LEVEL)
            return paired.low, paired.high
        overall = moved.difference(level=LEVEL)
        return overall.low, overall.high

    above_least = ClaimSide(1, lambda moved: interval(moved)[0] >= -margin)
    below_most = ClaimSide(-1, lambda moved: interval(moved)[1] <= margin)
    return measure_claim_robustness(average, [above_least, below_most])


def _is_inside(
    comparison: MacroDifference | UnpairedComparison | Equivalence, margin: float
) -> bool:
    return bool(comparison.low >= -margin and comparison.high <= margin)


def _task_equivalence(
    comparison: MacroDifference | UnpairedComparison | Equivalence,
    margin: float,
    p_value: float,
    method: str,
    names: tuple[str, str],
    bounded: bool,
    *,
    provisional: str,
    robustness: ClaimRobustness = ClaimRobustness(),  # noqa: B008 - it is frozen
) -> TaskEquivalence:
    low = comparison.low
    high = comparison.high
    inside = _is_inside(comparison, margin)
    scale, unit, decimals = (100.0, " points", 1) if bounded else (1.0, "", 4)
    nearest = max(abs(low), abs(high)) * scale
    if math.isfinite(nearest) and round(nearest, decimals) == round(
        margin * scale, decimals
    ):
        # So that an end just outside the margin does not look equal to it.
        decimals += 1
    mark = "provisionally " if provisional else ""
    verdict = f"are {mark}equivalent" if inside else "were not shown to be equivalent"
    ends = f"90% interval {low * scale:.{decimals}f} to {high * scale:.{decimals}f}"
    text = (
        f"{names[0]} and {names[1]} {verdict} within {margin * scale:g}{unit} (two"
        f" one-sided tests at 5%, {'no interval' if math.isnan(low) else ends})."
    )
    if inside and robustness.sentence:
        text += f" {robustness.sentence}"
    return TaskEquivalence(
        difference=comparison.difference,
        low=low,
        high=high,
        margin=margin,
        p_value=p_value,
        equivalent=inside,
        method=method,
        sentence=text,
        provisional=provisional if inside else "",
        missing=robustness.missing,
        unsure=robustness.unsure,
    )


GROUP_KEYS = ("competency", "category", "language")
"""Metadata of tasks by which boards are grouped."""

NOT_FROM_ITEMS = "none: the items do not give this number"
"""The test of a metric whose recorded number its items do not reproduce."""

NOT_FOR_STOPPING = "Stopped early: this interval and p do not allow for that."

MAX_VALID_INTERVALS = 3
"""Most tasks for which the conclusion on a mean lists the interval valid under early stopping."""

MOST_READ = 200_000
"""Most records in which flipped items are looked up by name."""


_HASH_ID = re.compile(r"[0-9a-f]{16}")
"""The id of a sample that has none of its own."""
MOST_QUESTION_CHARS = 400
"""Characters of a question that are kept to recognise it."""


@dataclass(frozen=True, slots=True)
class Flip:
    """An item on which the two runs have different scores.

    `question` is the beginning of its input, where its id is a hash that tells a reader nothing.
    """

    task: str
    id: str
    a: float
    b: float
    question: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON; the question only where it is needed."""
        return plain_fields(self, () if self.question else ("question",))


@dataclass(frozen=True, slots=True)
class TaskComparison(Plain):
    """The comparison of two runs on one task.

    Exactly one of `paired` and `unpaired` is set: `unpaired` if the runs share no item.

    Args:
        task: the task's name.
        metric: the metric's label.
        scorer: the column of scores.
        bounded: whether scores are between 0 and 1 and are shown in percentage points.
        lower_is_better: whether lower values are better.
        paired: the comparison on common items.
        unpaired: the comparison as independent samples.
        only_a: how many items only A has.
        only_b: how many items only B has.
        n_differing: how many items differ in score.
        n_a_higher: how many of them have a higher score in A.
        n_b_higher: how many have a higher score in B.
        flips: examples of items that differ.
        slices: comparisons by metadata value.
        equivalence: the test of equivalence, if requested.
        warnings: what limits the comparison.
        other_questions: a clause on ids that stand for different questions in the two runs.
        robustness: what missing and unsure answers could change; None without common items.
        provisional: why the verdict is not final, "" if it is.
        one_sided_judge: the part of `provisional` about a judge of one side only.
        stopped_early: what the interval ignores after an early stop, and the interval that does
            not.
        next_steps: what could settle an open comparison, the cheapest first, if it is the only
            task.
        others: the same task by its other metrics, where their numbers differ.
        sentence: what the numbers mean, filled in by `reports.conclusions`.
        has_direction: whether it is known which values of the metric are better.
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
    other_questions: str = ""
    robustness: Robustness | None = None
    provisional: str = ""
    one_sided_judge: str = ""
    stopped_early: str = ""
    next_steps: tuple[NextStep, ...] = ()
    others: tuple[TaskComparison, ...] = ()
    sentence: str = ""
    has_direction: bool = True

    @property
    def result(self) -> PairedComparison | UnpairedComparison:
        """The comparison: difference, interval, p-value and both means."""
        comparison = self.paired or self.unpaired
        assert comparison is not None
        return comparison


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """The comparison of two runs over all tasks that both have.

    Args:
        a: the first run's id.
        b: the second run's id.
        labels: what the runs are called in sentences.
        tasks: the comparisons by task.
        overall: the mean over tasks, by the runs' common tree or with equal weights; None for a
            single task, mixed units or directions, and tasks that are missing or not paired.
        overall_equivalence: the test of equivalence of this mean, if requested.
        estimand: what the numbers are about, in a sentence.
        differences: differences between the runs' settings.
        context_gains: gains of runs that have a task both with and without its passages.
        groups: the nodes of the tree.
        robustness: of the mean over tasks, as in `TaskComparison`.
        provisional: likewise.
        one_sided_judge: likewise.
        stopped_early: likewise.
        next_steps: likewise.
        how_to_fill: what to do about missing answers.
        caveats: what a reader must know before the verdict.
        numbers_from: by run, what its numbers were computed from if not from its samples.
        conclusion: the verdict in words, filled in by `reports.conclusions`.
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
    groups: tuple[GroupDifference, ...] = ()
    robustness: Robustness | None = None
    provisional: str = ""
    one_sided_judge: str = ""
    stopped_early: str = ""
    next_steps: tuple[NextStep, ...] = ()
    how_to_fill: str = ""
    caveats: tuple[str, ...] = ()
    numbers_from: Mapping[str, str] = field(default_factory=dict)
    conclusion: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        seldom = (
            "context_gains",
            "groups",
            "robustness",
            "one_sided_judge",
            "stopped_early",
            "next_steps",
            "how_to_fill",
            "caveats",
            "numbers_from",
        )
        empty = [name for name in seldom if not getattr(self, name)]
        return plain_fields(self, ("labels", *empty))


def compare_runs(
    a: Run,
    b: Run,
    *,
    metric: str | None = None,
    most_flips: int = 20,
    slices: Sequence[str] = (),
    slices_adjust: Adjustment = "bh",
    equivalent: float | None = None,
    tasks_are: TasksAre = "fixed",
    missing: MissingPolicy = "scored",
) -> Comparison:
    """Compare two runs on the tasks that both have, paired by sample id.

    Args:
        a: the first run.
        b: the second run.
        metric: a label or TASK.LABEL to compare by; by default each task's main metric in A, with
            its other metrics beside it.
        most_flips: how many flipped items to list in each direction.
        slices: metadata keys; the tasks are also compared for each of their values.
        slices_adjust: how p-values of slices are adjusted (see `multiplicity`).
        equivalent: the smallest difference that would matter, in the metric's unit; adds two
            one-sided tests.
        tasks_are: whether the mean is about these tasks, or about tasks like these (three at
            least).
        missing: "scored" bases verdicts on items for which both runs have a score, "worst-case" on
            the worst that the missing ones could be.

    Raises:
        RunError: both are one run, share no task, have different scorers, or lack a slice key.
        ConfigurationError: the margin of equivalence is not usable.
    """
    check_named_once([a, b])
    a, b = confirm_all([a, b])
    id_a, id_b = ids_or_folders([a, b])
    names = (a.label, b.label) if a.label != b.label else (id_a, id_b)
    matrices = read_matrices([a, b], slices, metric, missing)
    tasks = tuple(
        _compare_task(a, b, matrix, names, most_flips, slices_adjust, equivalent)
        for matrix in matrices
    )
    if metric is None:
        others = other_matrices([a, b], matrices, missing)
        also = [
            [
                _compare_task(a, b, matrix, names, 0, slices_adjust, None)
                for matrix in others[task.task]
            ]
            for task in tasks
        ]
        tasks = tuple(
            replace(task, others=tuple(task_others))
            for task, task_others in zip(tasks, also, strict=True)
        )
    paired = [task.paired for task in tasks if task.paired]
    node = overall_node([a, b], [matrix.measure.task for matrix in matrices])
    many = node or len(tasks) > 1 or tasks_are == "sample"
    average = make_average(matrices, node, tasks_are) if many else None
    groups = group_differences([a, b], matrices)
    overall = same = None
    if average is not None and average.paired:
        of_node = (
            {group.name: group.difference for group in reversed(groups)}
            if node and tasks_are == "fixed"
            else {}
        )
        overall = (
            of_node[node.name]
            if node and node.name in of_node
            else average.difference()
        )
    if average is None and len(tasks) == 1:
        tasks = (
            replace(
                tasks[0], next_steps=_next_steps_of_task(a, b, matrices[0], tasks[0])
            ),
        )
    how = (
        "paired by item"
        if len(paired) == len(tasks)
        else "paired by item where items are shared"
    )
    how = how if paired else "two independent samples of items"
    estimand = describe_estimand(
        matrices, "the mean difference A - B", how, node, tasks_are
    )
    gains = (*measure_context_gains(a), *measure_context_gains(b))
    differences = tuple(configuration_differences(a, b))
    judge = stopped_early = ""
    robustness = None
    provisional = ""
    steps = tuple[NextStep, ...]()
    if average is not None and overall is not None:
        sign = verdict_sign(overall.low, overall.high)
        robustness = measure_robustness(average, sign)
        names_of_tasks = [sample.measure.task for sample in average.samples]
        judge = explain_one_sided_judge((a, b), names_of_tasks, names)
        provisional = " ".join(
            filter(None, [explain_provisional(average, names), judge])
        )
        if equivalent is not None:
            same = assess_overall_equivalence(average, equivalent, names, provisional)
        if early := [
            task.task
            for task in tasks
            if task.stopped_early and task.task in names_of_tasks
        ]:
            stopped_early = (
                f"Stopped early on {listed(early, 5)}: the interval and p of this mean"
                " do not allow for that."
            )
            for task in tasks:
                interval = task.stopped_early.removeprefix(NOT_FOR_STOPPING).strip()
                if interval and task.task in early[:MAX_VALID_INTERVALS]:
                    stopped_early += f" On {task.task}: {interval}"
        if sign == 0 and not (same and same.equivalent):
            steps = find_next_steps(
                average, (a, b), _open_comparison(overall, same, bounded=True)
            )
    elif len(tasks) == 1:
        provisional = tasks[0].provisional
        judge = tasks[0].one_sided_judge
    return Comparison(
        a=id_a,
        b=id_b,
        labels=names,
        tasks=tasks,
        overall=overall,
        overall_equivalence=same,
        estimand=estimand,
        differences=differences,
        context_gains=gains,
        groups=groups,
        robustness=robustness,
        provisional=provisional,
        one_sided_judge=judge,
        stopped_early=stopped_early,
        next_steps=steps,
        how_to_fill=how_to_fill((a, b)),
        caveats=(
            *left_out_caveats([a, b]),
            *published_notes([a, b]),
            *([] if overall is None or node else _weights_note(a, tasks)),
        ),
        numbers_from=published_from([a, b]),
    )


def _weights_note(run: Run, tasks: Sequence[TaskComparison]) -> Iterator[str]:
    """Say that a board may weigh tasks otherwise, where groups of them differ in size.

    Args:
        run: one of the runs.
        tasks: the tasks of the mean.
    """
    for key in GROUP_KEYS:
        values = [
            str((run.record(task.task).get("metadata") or {}).get(key, ""))
            for task in tasks
        ]
        if len(set(Counter(filter(None, values)).values())) > 1:
            yield (
                "The mean counts every task the same. A leaderboard by --preset or --by"
                f" averages groups of tasks first, such as each {key}, so its order may be"
                " another: see `evalwright leaderboard`."
            )
            return


def _next_steps_of_task(
    a: Run, b: Run, matrix: Matrix, task: TaskComparison
) -> tuple[NextStep, ...]:
    """Find what could settle the only task if it is open."""
    paired = task.paired
    same = task.equivalence
    if (
        paired is None
        or paired.verdict != "no difference seen"
        or (same is not None and same.equivalent)
    ):
        return ()
    comparison = _open_comparison(paired, same, bounded=task.bounded)
    return find_next_steps(
        Average((matrix,)),
        (a, b),
        replace(comparison, design=make_design(matrix, paired)),
    )


def _open_comparison(
    comparison: PairedComparison | MacroDifference,
    equivalence: TaskEquivalence | None,
    *,
    bounded: bool,
) -> OpenComparison:
    """Collect the facts of an open comparison from which next steps are chosen."""
    margin = None if equivalence is None else equivalence.margin
    unit = " points" if bounded else ""
    return OpenComparison(
        difference=comparison.difference,
        standard_error=comparison.standard_error,
        n=comparison.n,
        visible=comparison.smallest_visible_difference,
        difference_text=f"{points(abs(comparison.difference), bounded)}{unit}",
        margin=margin,
        margin_text=(
            "" if margin is None else f"{100 * margin if bounded else margin:g}{unit}"
        ),
        half_width_90=(
            math.nan
            if equivalence is None
            else (equivalence.high - equivalence.low) / 2
        ),
    )


def left_out_caveats(runs: Sequence[Run]) -> Iterator[str]:
    """Write caveats about answers that an older version left without a score."""
    for run in runs:
        if run.n_left_out:
            yield (
                f"'{run.id}' was recorded by an earlier version, which left"
                f" {counted(run.n_left_out, 'answer')} without a score; here they are"
                f" missing. `evalwright score {run.name}` scores them from the record,"
                " without a request."
            )


def caveats(runs: Sequence[Run], task_matrices: Sequence[Matrix]) -> Iterator[str]:
    """Write caveats about answers without a score, and about judges that read one side only."""
    yield from left_out_caveats(runs)
    for matrix in task_matrices:
        having = [
            run
            for run in runs
            if any(task["name"] == matrix.measure.task for task in run.data["tasks"])
        ]
        results = {run.id: run.task(matrix.measure.task) for run in having}
        judged = [run.id for run in having if results[run.id].n_judged]
        # A run that had a judge, or had nothing for one to read, is scored like the judged ones.
        unjudged = [
            run
            for run in having
            if results[run.id].n_unsure and not results[run.id].n_judged
        ]
        n_unsure = sum(results[run.id].n_unsure for run in unjudged)
        if not judged or not unjudged:
            continue
        commands = [
            f"`evalwright score {run.name} --judge provider/name`" for run in unjudged
        ]
        yield (
            f"On '{matrix.measure.task}' a judge read the unsure answers of"
            f" {listed(judged)}, but not those of "
            f"{listed([run.id for run in unjudged])} ({count(n_unsure)} unsure): part of a"
            " difference may be the judge's. Score all "
            "alike:"
            f" {listed(commands)}."
        )


def common_results(
    runs: Sequence[Run], metric: str | None = None
) -> dict[str, tuple[MetricResult, ...]]:
    """Collect the metrics that all runs have in common, by task.

    Args:
        runs: the runs.
        metric: a label or TASK.LABEL; by default the first run's main metric.

    Raises:
        RunError: there is no common task, or a run was scored by another scorer.
        UnknownName: no task has the metric.
    """
    first = runs[0]
    by_name = [{task.name: task for task in run.tasks} for run in runs]
    results_by_task: dict[str, tuple[MetricResult, ...]] = {}
    for task in first.tasks:
        chosen = task.metric(metric)
        if chosen is None or not all(task.name in names for names in by_name):
            continue
        for run in runs[1:]:
            _check_scorer(first, run, task.name, chosen.scorer)
        results_by_task[task.name] = tuple(
            _matching_metric(names[task.name].metrics, chosen) for names in by_name
        )
        for run, metric_result in zip(runs, results_by_task[task.name], strict=True):
            _check_unit(first, run, task.name, chosen, metric_result)
    if not results_by_task and metric is not None:
        raise unknown_metric(metric, first.tasks)
    if not results_by_task:
        there = " against ".join(
            ", ".join(sorted(names)) or "none" for names in by_name
        )
        who = " and ".join(f"'{run.id}'" for run in runs)
        raise RunError(f"The runs {who} have no task in common: {there}.")
    return results_by_task


def read_matrices(
    runs: Sequence[Run],
    slices: Sequence[str] = (),
    metric: str | None = None,
    missing: MissingPolicy = "scored",
) -> list[Matrix]:
    """Arrange the item scores of the runs side by side, a matrix for each common task.

    With two runs, identical answers are not unsure: they cannot change the difference.

    Args:
        runs: the runs.
        slices: metadata keys whose values the matrices keep.
        metric: a label or TASK.LABEL; by default the first run's main metric.
        missing: how missing answers count, "scored" or "worst-case".

    Raises:
        ConfigurationError: an unknown policy, or a shard.
        RunError: as `common_results`.
        UnknownName: no task has the metric or a slice.
    """
    if missing not in get_args(MissingPolicy):
        raise ConfigurationError(
            f"missing must be 'scored' or 'worst-case', not '{missing}'."
        )
    refuse_shards(runs)
    results_by_task = common_results(runs, metric)
    task_matrices = [
        matrix.with_policy(missing)
        for matrix in matrices(runs, results_by_task, slices)
    ]
    _check_slices(runs[0], slices, task_matrices)
    return (
        without_same_answers((runs[0], runs[1]), task_matrices)
        if len(runs) == 2
        else task_matrices
    )


def unknown_metric(metric: str, tasks: Sequence[TaskResult]) -> UnknownName:
    """Create the error for a metric that none of these tasks has."""
    labels = dict.fromkeys(
        label_metric.label for task in tasks for label_metric in task.metrics
    )
    named = [
        f"{task.name}.{label_metric.label}"
        for task in tasks
        for label_metric in task.metrics
    ]
    return UnknownName(
        "metric",
        metric,
        [*labels, *named],
        f"The runs have: {', '.join(labels) or 'none'}.",
    )


def other_matrices(
    runs: Sequence[Run],
    task_matrices: Sequence[Matrix],
    missing: MissingPolicy = "scored",
) -> dict[str, list[Matrix]]:
    """Build matrices of the further metrics that all runs have, by task.

    Metrics with the same numbers as an earlier one are left out, and those without an interval.
    With more than MOST_READ items only means of scores are compared, which need no second read of
    the records.

    Args:
        runs: the runs.
        task_matrices: the main metrics.
        missing: as in `compare_runs`.
    """
    others: dict[str, list[Matrix]] = {}
    for task_matrix in task_matrices:
        task_results = [run.task(task_matrix.measure.task) for run in runs]
        metrics_before = [
            [task.metric(task_matrix.measure.metric) for task in task_results]
        ]
        others[task_matrix.measure.task] = []
        for main in task_results[0].metrics:
            run_metrics = [task.metric(main.label) for task in task_results]
            comparable = [
                candidate
                for candidate in run_metrics
                if candidate
                and candidate.scorer == main.scorer
                and _have_one_unit(candidate, main)
            ]
            values = [candidate.estimate.value for candidate in comparable]
            if (
                len(comparable) < len(runs)
                or not np.isfinite(
                    [candidate.estimate.low for candidate in comparable]
                ).any()
            ):
                continue  # without an interval in any run there is nothing to compare
            if any(
                values == [earlier.estimate.value for earlier in before if earlier]
                for before in metrics_before
            ):
                continue
            metrics_before.append(run_metrics)
            if len(task_matrix.of_items.keys) <= MOST_READ or main.kind in MEANS:
                further = matrices(
                    runs, {task_matrix.measure.task: comparable}, of_scores=False
                )
                others[task_matrix.measure.task] += [
                    matrix.with_policy(missing) for matrix in further
                ]
    return others


def _matching_metric(
    metrics: Sequence[MetricResult], chosen: MetricResult
) -> MetricResult:
    """Choose a run's counterpart of a metric.

    The one of the same label, else its first by the same scorer, else the metric itself.
    """
    same = [candidate for candidate in metrics if candidate.scorer == chosen.scorer]
    return next(
        (candidate for candidate in same if candidate.label == chosen.label),
        same[0] if same else chosen,
    )


def _check_scorer(a: Run, b: Run, task: str, scorer: str) -> None:
    """Raise RunError unless both runs have a score by the scorer that is compared."""
    scorer_names = [record["name"] for record in b.record(task)["scorers"]]
    if scorer not in scorer_names:
        raise RunError(
            f"On '{task}' the run '{a.id}' was scored by '{scorer}' and the run"
            f" '{b.id}' by {', '.join(scorer_names)}. Score one of them again with `evalwright"
            " score`."
        )


def _check_unit(
    a: Run, b: Run, task: str, first: MetricResult, second: MetricResult
) -> None:
    """Raise RunError for two metrics with the same name but different units.

    A metric may be as published (0 to 100, not from items) or the mean of scores between 0 and 1.
    """
    if second.label == first.label and not _have_one_unit(first, second):
        scorings = [
            run.record(task)["definition"].get("scoring", "scored here")
            for run in (a, b)
        ]
        raise RunError(
            f"On '{task}' '{first.label}' is another number in '{a.id}' ({scorings[0]})"
            f" than in '{b.id}' ({scorings[1]}), so they are not compared. Make both with"
            " the same --scoring (stored answers are used), or name a metric that both"
            " have (--metric)."
        )


def _have_one_unit(a: MetricResult, b: MetricResult) -> bool:
    return (a.kind in BOUNDED) == (b.kind in BOUNDED)


def _check_slices(
    run: Run, slices: Sequence[str], task_matrices: Sequence[Matrix]
) -> None:
    for key in slices:
        if not any(key in matrix.slices for matrix in task_matrices):
            keys = sorted(
                {
                    name
                    for row in islice(run.score_rows(), 1000)
                    for name in row.get("metadata", {})
                }
            )
            which = (
                f"The samples have {', '.join(keys)}."
                if keys
                else "The samples have no metadata."
            )
            raise UnknownName(
                "slice",
                key,
                keys,
                f"{which} A key with more than 200 values makes no slices.",
            )


# -- one task --------------------------------------------------------------------------


def _compare_task(
    a: Run,
    b: Run,
    matrix: Matrix,
    names: tuple[str, str],
    most_flips: int,
    adjust: Adjustment,
    equivalent: float | None,
) -> TaskComparison:
    measure = matrix.measure
    of_items = matrix.of_items
    judge = explain_one_sided_judge((a, b), [measure.task], names)
    higher = of_items.values[0] > of_items.values[1]
    lower = of_items.values[0] < of_items.values[1]
    paired = pair_task(matrix) if matrix.common().any() else None
    average = Average((matrix,))
    of_missing = explain_provisional(average, names) if paired else ""
    provisional = " ".join(filter(None, [of_missing, judge]))
    return TaskComparison(
        task=measure.task,
        metric=measure.metric,
        scorer=measure.scorer,
        bounded=measure.bounded,
        lower_is_better=measure.lower_is_better,
        has_direction=measure.has_direction and not _is_mere_number(measure),
        paired=paired,
        unpaired=None if paired else unpaired_of(matrix),
        only_a=int((of_items.was_asked[0] & ~of_items.was_asked[1]).sum()),
        only_b=int((of_items.was_asked[1] & ~of_items.was_asked[0]).sum()),
        n_differing=int(higher.sum() + lower.sum()),
        n_a_higher=int(higher.sum()),
        n_b_higher=int(lower.sum()),
        flips=_find_flips(a, of_items, higher, lower, most_flips),
        slices=tuple(compare_slices(matrix, key, adjust) for key in matrix.slices),
        equivalence=(
            None
            if equivalent is None
            else assess_equivalence(matrix, equivalent, names, provisional)
        ),
        warnings=tuple(_list_warnings(a, b, matrix, paired)),
        other_questions=note_other_questions(matrix),
        robustness=(
            measure_robustness(average, verdict_sign(paired.low, paired.high))
            if paired
            else None
        ),
        provisional=provisional,
        one_sided_judge=judge,
        stopped_early=_explain_early_stop(a, b, measure),
    )


def pair_task(matrix: Matrix) -> PairedComparison:
    """Compare both runs on their common items, with the number of those items."""
    paired = paired_of(matrix)
    if not matrix.problems or matrix.scores is None:
        return paired
    # The two numbers are compared as a single unit, which is none of the items.
    n_common = int(common_counts(matrix.scores)[0, 1])
    return replace(paired, n=n_common, test=NOT_FROM_ITEMS)


def _is_mere_number(measure: Measure) -> bool:
    """Whether it is the mean of a scorer's numbers, such as words: more need not be better.

    A task that declares the range of its scores means them as scores.
    """
    return measure.kind == "mean" and measure.value_range is None


def _list_warnings(
    a: Run, b: Run, matrix: Matrix, paired: PairedComparison | None
) -> list[str]:
    counts = {run.id: _describe_counts(run.task(matrix.measure.task)) for run in (a, b)}
    warnings = [f"'{name}' has {words}." for name, words in counts.items() if words]
    if matrix.unbounded.any():
        warnings.append(
            f"'{matrix.measure.metric}' has no known range, so nothing bounds what the"
            " missing answers would have scored: in the worst case there is no"
            " verdict."
        )
    warnings += _warn_unknown_robustness(matrix)
    scored = int(np.diag(common_counts(matrix)).max(initial=0))
    if paired is None:
        warnings.append(
            "The runs share no item, so they are compared as two independent samples: a"
            " difference in the items' difficulty counts as a difference between the"
            " models."
        )
        if (
            matrix.clusters is not None
            and np.intersect1d(
                *(matrix.clusters[was_asked] for was_asked in matrix.was_asked)
            ).size
        ):
            warnings.append(
                "Their items share passages, which this comparison does not take into"
                " account."
            )
    elif 0 < 2 * paired.n < scored:
        warnings.append(
            f"Pairing keeps {paired.n:,} of {scored:,} items that '{a.id}' or '{b.id}'"
            " has a score on: the conclusion is for items drawn like these"
            f" {paired.n:,} only."
        )
    notes = group_notes(
        matrix, has_interval=paired is None or not math.isnan(paired.low)
    )
    return [
        *warnings,
        *pairing_notes(matrix, [f"'{run.id}'" for run in (a, b)]),
        *notes,
    ]


def _warn_unknown_robustness(matrix: Matrix) -> list[str]:
    """Warn that missing and unsure answers cannot be bounded, for metrics without a range."""
    of_items = matrix.of_items
    if matrix.measure.value_range is not None or matrix.unbounded.any():
        return []
    kinds = [
        status
        for status, cells in (
            ("missing", of_items.missing),
            ("unsure", of_items.unsure),
        )
        if cells[:2].any()
    ]
    if not kinds:
        return []
    text = (
        f"'{matrix.measure.metric}' has no known range, so what the {listed(kinds)}"
        " answers could change is unknown."
    )
    if matrix.measure.kind == "mean":
        text += (
            " Declare it in the task: `mean: {value_range: [0, 1]}`, with the least and"
            " greatest score."
        )
    return [text]


def _explain_early_stop(a: Run, b: Run, measure: Measure) -> str:
    """Explain what a task's interval ignores after an early stop, and give the valid one.

    "" without an early stop.
    """
    stoppings = [run.data.get("stopping") or {} for run in (a, b)]
    if not any(task_ended_early(stopping, measure.task) for stopping in stoppings):
        return ""
    names_of_a, names_of_b = (
        {run.label, run.model, run.data["model"].get("label")} for run in (a, b)
    )
    for decision in (
        decision for stopping in stoppings for decision in stopping.get("decisions", ())
    ):
        first = decision["a"]
        second = decision["b"]
        of_pair = (first in names_of_a and second in names_of_b) or (
            first in names_of_b and second in names_of_a
        )
        if decision["task"] != measure.task or not first or not of_pair:
            continue
        if decision["metric"] not in ("", measure.metric) or decision["low"] is None:
            continue
        higher = first
        lower = second
        low = decision["low"]
        high = decision["high"]
        if (decision["value"] or 0.0) < 0:
            higher, lower, low, high = lower, higher, -high, -low
        unit = " points" if decision["bounded"] else ""
        ends = (
            f"{points(low, decision['bounded'])} to"
            f" {points(high, decision['bounded'])}{unit}"
        )
        open_note = "" if low > 0 else ", which includes 0: no difference is shown"
        return (
            f"{NOT_FOR_STOPPING} The valid interval is that of the rule"
            f" '{decision['rule']}', on all {count(decision['n_total'])}"
            f" {decision['unit']}: {higher} minus {lower} is {ends}"
            f" ({100 * decision['level']:g}%){open_note}."
        )
    return NOT_FOR_STOPPING


def _describe_counts(task: TaskResult) -> str:
    """Describe what a task has besides ordinary answers: "3 missing answers, 9 unsure answers"."""
    counts = []
    if task.n_missing:
        counts.append(counted(task.n_missing, "missing answer"))
    if task.n_unsure:
        counts.append(counted(task.n_unsure, "unsure answer"))
    n_faults = sum(model_faults([task]).values())
    if n_faults:
        further = "more " if task.n_missing else ""
        replies = plural(n_faults, "reply that was", "replies that were")
        counts.append(
            f"{count(n_faults)} {further}{replies} no answer ({faults_in_words([task])})"
        )
    return listed(counts)


def _find_flips(
    run: Run,
    matrix: Matrix,
    higher: NDArray[np.bool_],
    lower: NDArray[np.bool_],
    most: int,
) -> tuple[Flip, ...]:
    """Find the first `most` items of each direction whose scores differ, in run order."""
    left = {True: min(most, int(higher.sum())), False: min(most, int(lower.sum()))}
    flips: list[Flip] = []
    if not any(left.values()):
        return ()
    order = np.argsort(matrix.keys, kind="stable")
    seen: set[str] = set()
    for row in islice(run.score_rows(), MOST_READ):
        if row["task"] != matrix.measure.task or row["id"] in seen:
            continue
        seen.add(row["id"])
        key = hashed(row["id"])
        column = order[
            min(int(np.searchsorted(matrix.keys, key, sorter=order)), len(order) - 1)
        ]
        if matrix.keys[column] != key:
            continue
        side = bool(higher[column])
        if (side or lower[column]) and left[side]:
            left[side] -= 1
            flips.append(
                Flip(
                    matrix.measure.task,
                    row["id"],
                    a=float(matrix.values[0, column]),
                    b=float(matrix.values[1, column]),
                    question=_question_of(row),
                )
            )
            if not any(left.values()):
                break
    return tuple(flips)


def _question_of(row: Mapping[str, Any]) -> str:
    """The beginning of a record's input on one line, if its id is a hash; else ""."""
    text = row.get("input")
    if not isinstance(text, str) or not _HASH_ID.fullmatch(row["id"]):
        return ""
    return " ".join(text[:MOST_QUESTION_CHARS].split())


def describe_estimand(
    task_matrices: Sequence[Matrix],
    quantity: str,
    how: str,
    node: Node | None = None,
    tasks_are: TasksAre = "fixed",
) -> str:
    """Describe what the numbers are about, in a sentence.

    Args:
        task_matrices: the item scores by task.
        quantity: what is estimated.
        how: how runs are compared.
        node: the tree by which tasks are averaged, if any.
        tasks_are: as in `compare_runs`.
    """
    weights = "each with the same weight"
    if node is not None:
        lacks = [
            matrix.measure.task
            for matrix in task_matrices
            if matrix.measure.task not in node.tasks
        ]
        task_matrices = [
            matrix for matrix in task_matrices if matrix.measure.task in node.tasks
        ]
        weights = (
            "averaged by the tree"
            f" '{node.name}'{f', which lacks {listed(lacks, 5)}' if lacks else ''}"
        )
    which = (
        f"these {len(task_matrices)} tasks"
        if tasks_are == "fixed"
        else f"tasks like these {len(task_matrices)}"
    )
    over = f"over {which}, {weights}, " if len(task_matrices) > 1 else ""
    units = (
        "; items of a cluster count as one unit"
        if any(matrix.clusters is not None for matrix in task_matrices)
        else ""
    )
    return (
        f"The estimate is {quantity} {over}for items drawn like these, {how}{units}."
        " Intervals are 95%."
    )
