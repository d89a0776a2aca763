"""Two runs side by side: paired by item, task by task, with what flipped and what differs in how
they were made.

Where the runs share no item of a task they are compared as two independent samples, and the result
says so. The estimand is always the mean difference for items drawn like these, over these tasks or,
if asked for, tasks like these. Whether the two are the same up to a margin named beforehand is
tested by two one-sided tests (TOST) at 5%.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.claims import ClaimRobustness, ClaimSide, robustness_of_claim
from evalwright.analysis.context_gain import ContextGain, context_gains
from evalwright.analysis.differing import configuration_differences
from evalwright.analysis.next_step import (
    NextStep,
    OpenComparison,
    design_of,
    next_steps,
)
from evalwright.analysis.pairs import other_questions, pairing_notes
from evalwright.analysis.robustness import (
    Robustness,
    how_to_fill,
    one_sided_judge,
    provisional_reason,
    robustness_of,
    verdict_sign,
)
from evalwright.analysis.same_answers import without_same_answers
from evalwright.analysis.trees import (
    Average,
    GroupDifference,
    average_of,
    group_differences,
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
from evalwright.runs.reader import Run, check_named_once
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
"""Of the interval that must lie inside the margin: 1 - 2 x 5%."""


@dataclass(frozen=True, slots=True)
class TaskEquivalence(Plain):
    """Whether the difference lies inside +-margin.

    Args:
        p_value: nan where the test has none of its own.
        provisional: why an equivalence is no final one, "" where it is.
        missing, unsure: how many missing answers would have to go against an equivalence, and how
        many unsure ones would have to be
            misread in one direction; None where there are none, or nothing was shown.
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


def equivalence_of(
    found: Matrix, margin: float, names: tuple[str, str], provisional: str = ""
) -> TaskEquivalence:
    """TOST of the first two runs of a matrix: paired on common items, else as independent samples.

    provisional: why a verdict on the two is no final one, "" where it is.

    Raises ConfigurationError for a margin that is not above 0, or not below the range of the
    scores.
    """
    common = found.common()
    bounded = found.measure.bounded
    if not math.isfinite(margin) or margin <= 0 or (bounded and margin >= 1):
        raise ConfigurationError(
            "The margin of equivalence is the smallest difference that would matter,"
            f" such as 0.03 for 3 points of accuracy, not {margin:g}."
        )
    if not common.any():
        apart = unpaired_of(found, level=LEVEL)
        method = f"TOST, {apart.interval_method}"
        return _result(
            apart, margin, math.nan, method, names, bounded, provisional=provisional
        )
    part = found.part(common)
    same = equivalence_paired(
        part.values[0],
        part.values[1],
        margin=margin,
        missing=part.missing[:2],
        missing_policy=found.missing_policy,
        clusters=part.clusters,
        value_range=found.measure.value_range,
    )
    whole = Average((found,))
    robustness = (
        _robustness_inside(whole, margin)
        if _is_inside(same, margin)
        else ClaimRobustness()
    )
    return _result(
        same,
        margin,
        same.p_value,
        same.method,
        names,
        bounded,
        provisional=provisional,
        robustness=robustness,
    )


def overall_equivalence(
    whole: Average, margin: float, names: tuple[str, str], provisional: str = ""
) -> TaskEquivalence:
    """TOST of an average over tasks; all must be bounded and have common items. provisional: as of
    `equivalence_of`.
    """
    found = whole.difference(level=LEVEL)
    method = f"TOST, {whole.words}"
    names = (f"Over all tasks {names[0]}", names[1])
    robustness = (
        _robustness_inside(whole, margin)
        if _is_inside(found, margin)
        else ClaimRobustness()
    )
    return _result(
        found,
        margin,
        math.nan,
        method,
        names,
        True,
        provisional=provisional,
        robustness=robustness,
    )


def _robustness_inside(whole: Average, margin: float) -> ClaimRobustness:
    """How robust it is that the interval of the difference lies inside +-margin."""

    def interval(moved: Average) -> tuple[float, float]:
        if len(moved.samples) == 1:
            paired = paired_of(moved.samples[0], level=LEVEL)
            return paired.low, paired.high
        overall = moved.difference(level=LEVEL)
        return overall.low, overall.high

    above_least = ClaimSide(1, lambda moved: interval(moved)[0] >= -margin)
    below_most = ClaimSide(-1, lambda moved: interval(moved)[1] <= margin)
    return robustness_of_claim(whole, [above_least, below_most])


def _is_inside(
    found: MacroDifference | UnpairedComparison | Equivalence, margin: float
) -> bool:
    return bool(found.low >= -margin and found.high <= margin)


def _result(
    found: MacroDifference | UnpairedComparison | Equivalence,
    margin: float,
    p_value: float,
    method: str,
    names: tuple[str, str],
    bounded: bool,
    *,
    provisional: str,
    robustness: ClaimRobustness = ClaimRobustness(),  # noqa: B008 - it is frozen
) -> TaskEquivalence:
    low = found.low
    high = found.high
    inside = _is_inside(found, margin)
    scale, unit, decimals = (100.0, " points", 1) if bounded else (1.0, "", 4)
    nearest = max(abs(low), abs(high)) * scale
    if math.isfinite(nearest) and round(nearest, decimals) == round(
        margin * scale, decimals
    ):
        decimals += 1  # so that an end just beyond the margin does not look like it
    mark = "provisionally " if provisional else ""
    said = f"are {mark}equivalent" if inside else "were not shown to be equivalent"
    ends = f"90% interval {low * scale:.{decimals}f} to {high * scale:.{decimals}f}"
    text = (
        f"{names[0]} and {names[1]} {said} within {margin * scale:g}{unit} (two"
        f" one-sided tests at 5%, {'no interval' if math.isnan(low) else ends})."
    )
    if inside and robustness.sentence:
        text += f" {robustness.sentence}"
    return TaskEquivalence(
        difference=found.difference,
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


NOT_FOR_STOPPING = "Stopped early: this interval and p do not allow for that."

MAX_VALID_INTERVALS = 3
"""Tasks of which the conclusion on a mean repeats the interval that allows for stopping early."""

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
    """One task of two runs.

    Exactly one of paired and unpaired is there; unpaired where the runs share no item.

    only_a, only_b: items that one run alone has; n_differing: items whose scores differ, n_a_higher
    and n_b_higher by direction. bounded: scores lie between 0 and 1 and are shown in points of 100.
    warnings: what limits the comparison. other_questions: a clause on ids that stand for other
    questions in each run, "" where none does. robustness: what missing answers and unsure readings
    could change, None where the runs share no item. provisional: why the verdict is no final one,
    "" where it is. one_sided_judge: the part of it that is about a judge of one side only.
    stopped_early: what the interval does not allow for, and the one that does. next_steps: what
    could settle it, the cheapest first, where it is open and the only task. others: by the task's
    other metrics, where another number than this one was recorded. sentence: what the numbers mean,
    filled in by `reports.conclusions`.
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

    @property
    def result(self) -> PairedComparison | UnpairedComparison:
        """The comparison that was made: difference, interval, p and both means."""
        found = self.paired or self.unpaired
        assert found is not None
        return found


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Shown):
    """Two runs over all tasks that both have.

    overall: by the tree that both runs have, else every task counts the same; None with a single
    task, where tasks are measured in different units or directions, where one of them is not paired
    or is missing. groups: the tree's nodes. labels: what the runs are called in sentences.
    context_gains: of runs that have a task with passages and the same without. robustness,
    provisional, next_steps: of the mean over tasks, as of `TaskComparison`; how_to_fill: what to do
    about missing answers. caveats: what a reader must know before the verdict. numbers_from: by
    run, what its numbers were made of, where that is not its samples. conclusion: in words, filled
    in by `reports.conclusions`.
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
        """A plain mapping for JSON."""
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
    """Compare two runs on the tasks that both have, paired by sample id, on the main metric that
    each task has in A.

    metric: compare by this one, a label or TASK.LABEL, and by no other; else each task has its
    other metrics beside the main one.

    most_flips: flipped items named, in each direction. slices: metadata keys by whose values the
    tasks are compared too, slices_adjust: how that is adjusted for how many they are
    (`multiplicity`). equivalent: the smallest difference that would matter, in the metric's own
    unit; then two one-sided tests are made. tasks_are: whether the mean over tasks is about these
    tasks or, at least three being there, about tasks like these. missing: what verdicts rest on,
    the items that both runs have a score for ("scored") or the worst that the others could be
    ("worst-case"). Raises RunError where they are one run, share no task, have a task scored by
    different scorers, or no task has such a key, and ConfigurationError for a margin that is none.
    """
    check_named_once([a, b])
    a, b = confirm_all([a, b])
    names = (a.label, b.label) if a.label != b.label else (a.id, b.id)
    matrices = read_matrices([a, b], slices, metric, missing)
    tasks = tuple(
        _compare(a, b, found, names, most_flips, slices_adjust, equivalent)
        for found in matrices
    )
    if metric is None:
        others = other_matrices([a, b], matrices, missing)
        also = [
            [
                _compare(a, b, one, names, 0, slices_adjust, None)
                for one in others[task.task]
            ]
            for task in tasks
        ]
        tasks = tuple(
            replace(task, others=tuple(own))
            for task, own in zip(tasks, also, strict=True)
        )
    paired = [task.paired for task in tasks if task.paired]
    node = overall_node([a, b], [one.measure.task for one in matrices])
    many = node or len(tasks) > 1 or tasks_are == "sample"
    whole = average_of(matrices, node, tasks_are) if many else None
    groups = group_differences([a, b], matrices)
    overall = same = None
    if whole is not None and whole.paired:
        of_node = (
            {one.name: one.difference for one in reversed(groups)}
            if node and tasks_are == "fixed"
            else {}
        )
        overall = (
            of_node[node.name] if node and node.name in of_node else whole.difference()
        )
    if whole is None and len(tasks) == 1:
        tasks = (
            replace(tasks[0], next_steps=_steps_of_task(a, b, matrices[0], tasks[0])),
        )
    how = (
        "paired by item"
        if len(paired) == len(tasks)
        else "paired by item where items are shared"
    )
    how = how if paired else "two independent samples of items"
    about = estimand(matrices, "the mean difference A - B", how, node, tasks_are)
    gains = (*context_gains(a), *context_gains(b))
    found = tuple(configuration_differences(a, b))
    judge = stopped_early = ""
    robustness = None
    provisional = ""
    steps = tuple[NextStep, ...]()
    if whole is not None and overall is not None:
        sign = verdict_sign(overall.low, overall.high)
        robustness = robustness_of(whole, sign)
        names_of_tasks = [sample.measure.task for sample in whole.samples]
        judge = one_sided_judge((a, b), names_of_tasks, names)
        provisional = " ".join(filter(None, [provisional_reason(whole, names), judge]))
        if equivalent is not None:
            same = overall_equivalence(whole, equivalent, names, provisional)
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
            steps = next_steps(
                whole, (a, b), _open_comparison(overall, same, bounded=True)
            )
    elif len(tasks) == 1:
        provisional = tasks[0].provisional
        judge = tasks[0].one_sided_judge
    return Comparison(
        a=a.id,
        b=b.id,
        labels=names,
        tasks=tasks,
        overall=overall,
        overall_equivalence=same,
        estimand=about,
        differences=found,
        context_gains=gains,
        groups=groups,
        robustness=robustness,
        provisional=provisional,
        one_sided_judge=judge,
        stopped_early=stopped_early,
        next_steps=steps,
        how_to_fill=how_to_fill((a, b)),
        caveats=(*left_out_caveats([a, b]), *published_notes([a, b])),
        numbers_from=published_from([a, b]),
    )


def _steps_of_task(
    a: Run, b: Run, found: Matrix, task: TaskComparison
) -> tuple[NextStep, ...]:
    """What could settle the only task, where it is open."""
    paired = task.paired
    same = task.equivalence
    if (
        paired is None
        or paired.verdict != "no difference seen"
        or (same is not None and same.equivalent)
    ):
        return ()
    comparison = _open_comparison(paired, same, bounded=task.bounded)
    return next_steps(
        Average((found,)), (a, b), replace(comparison, design=design_of(found, paired))
    )


def _open_comparison(
    comparison: PairedComparison | MacroDifference,
    equivalence: TaskEquivalence | None,
    *,
    bounded: bool,
) -> OpenComparison:
    """What the next steps go by."""
    margin = None if equivalence is None else equivalence.margin
    unit = " points" if bounded else ""
    return OpenComparison(
        difference=comparison.difference,
        standard_error=comparison.standard_error,
        n=comparison.n,
        visible=comparison.smallest_visible_difference,
        shown=f"{points(abs(comparison.difference), bounded)}{unit}",
        margin=margin,
        margin_shown=(
            "" if margin is None else f"{100 * margin if bounded else margin:g}{unit}"
        ),
        half_width_90=(
            math.nan
            if equivalence is None
            else (equivalence.high - equivalence.low) / 2
        ),
    )


def left_out_caveats(runs: Sequence[Run]) -> Iterator[str]:
    """What a reader must know before any verdict of answers that an older version left out."""
    for run in runs:
        if run.n_left_out:
            yield (
                f"'{run.id}' was recorded by an earlier version, which left"
                f" {counted(run.n_left_out, 'answer')} without a score; here they are"
                f" missing. `evalwright score {run.name}` scores them from the record,"
                " without a request."
            )


def caveats(runs: Sequence[Run], found: Sequence[Matrix]) -> Iterator[str]:
    """What a reader must know before any verdict: answers that an older version left out, and
    judges that read one side only.
    """
    yield from left_out_caveats(runs)
    for one in found:
        having = [
            run
            for run in runs
            if any(task["name"] == one.measure.task for task in run.data["tasks"])
        ]
        sides = {run.id: run.task(one.measure.task).n_judged > 0 for run in having}
        if len(set(sides.values())) < 2:
            continue
        judged = [name for name, is_judged in sides.items() if is_judged]
        alone = [run for run in having if not sides[run.id]]
        n_unsure = sum(run.task(one.measure.task).n_unsure for run in alone)
        if not n_unsure:
            continue
        yield (
            f"On '{one.measure.task}' a judge read the unsure answers of"
            f" {listed(judged)}, but not those of "
            f"{listed([run.id for run in alone])} ({count(n_unsure)} unsure): part of a"
            " difference may be the judge's. Score all "
            "alike:"
            f" {listed([f'`evalwright score {run.name} --judge provider/name`' for run in alone])}."
        )


def common_results(
    runs: Sequence[Run], metric: str | None = None
) -> dict[str, tuple[MetricResult, ...]]:
    """By task, the results that the runs have in common: the main metric of the first run, or the
    one of that label or TASK.LABEL.

    Raises RunError where there is no such task, or a run was scored otherwise, and UnknownName for
    a metric that no task has.
    """
    first = runs[0]
    by_name = [{task.name: task for task in run.tasks} for run in runs]
    out: dict[str, tuple[MetricResult, ...]] = {}
    for task in first.tasks:
        chosen = task.metric(metric)
        if chosen is None or not all(task.name in names for names in by_name):
            continue
        for run in runs[1:]:
            _check_scorer(first, run, task.name, chosen.scorer)
        out[task.name] = tuple(
            _same_metric(names[task.name].metrics, chosen) for names in by_name
        )
        for run, own in zip(runs, out[task.name], strict=True):
            _check_unit(first, run, task.name, chosen, own)
    if not out and metric is not None:
        raise unknown_metric(metric, first.tasks)
    if not out:
        there = " against ".join(
            ", ".join(sorted(names)) or "none" for names in by_name
        )
        who = " and ".join(f"'{run.id}'" for run in runs)
        raise RunError(f"The runs {who} have no task in common: {there}.")
    return out


def read_matrices(
    runs: Sequence[Run],
    slices: Sequence[str] = (),
    metric: str | None = None,
    missing: MissingPolicy = "scored",
) -> list[Matrix]:
    """The runs' item scores side by side, a matrix per task that all have.

    Errors as `common_results`, and for slices.

    Of two runs, what both answered in the same words is not unsure: it cannot change their
    difference.
    """
    if missing not in get_args(MissingPolicy):
        raise ConfigurationError(
            f"missing must be 'scored' or 'worst-case', not '{missing}'."
        )
    refuse_shards(runs)
    results = common_results(runs, metric)
    found = [one.with_policy(missing) for one in matrices(runs, results, slices)]
    _check_slices(runs[0], slices, found)
    return without_same_answers((runs[0], runs[1]), found) if len(runs) == 2 else found


def unknown_metric(metric: str, tasks: Sequence[TaskResult]) -> UnknownName:
    """The error for a metric that none of these tasks has."""
    labels = dict.fromkeys(one.label for task in tasks for one in task.metrics)
    named = [f"{task.name}.{one.label}" for task in tasks for one in task.metrics]
    return UnknownName(
        "metric",
        metric,
        [*labels, *named],
        f"The runs have: {', '.join(labels) or 'none'}.",
    )


def other_matrices(
    runs: Sequence[Run], found: Sequence[Matrix], missing: MissingPolicy = "scored"
) -> dict[str, list[Matrix]]:
    """By task, the metrics that all runs have beside those of `found`, but for those with the same
    numbers as one before, and those without an interval.

    Of more than MOST_READ items only means of scores, for which no record has to be read again.
    """
    out: dict[str, list[Matrix]] = {}
    for one in found:
        results = [run.task(one.measure.task) for run in runs]
        shown = [[task.metric(one.measure.metric) for task in results]]
        out[one.measure.task] = []
        for main in results[0].metrics:
            own = [task.metric(main.label) for task in results]
            kept = [
                one
                for one in own
                if one and one.scorer == main.scorer and _one_unit(one, main)
            ]
            values = [each.estimate.value for each in kept]
            if (
                len(kept) < len(runs)
                or not np.isfinite([each.estimate.low for each in kept]).any()
            ):
                continue  # without an interval in any run there is nothing to say
            if any(
                values == [each.estimate.value for each in before if each]
                for before in shown
            ):
                continue
            shown.append(own)
            if len(one.of_items.keys) <= MOST_READ or main.kind in MEANS:
                more = matrices(runs, {one.measure.task: kept}, of_scores=False)
                out[one.measure.task] += [other.with_policy(missing) for other in more]
    return out


def _same_metric(metrics: Sequence[MetricResult], chosen: MetricResult) -> MetricResult:
    """A run's own result of the metric, else the first by the same scorer, else the other run's."""
    same = [one for one in metrics if one.scorer == chosen.scorer]
    return next(
        (one for one in same if one.label == chosen.label), same[0] if same else chosen
    )


def _check_scorer(a: Run, b: Run, task: str, scorer: str) -> None:
    """Both runs must have a score by the scorer that is compared."""
    there = [found["name"] for found in b.record(task)["scorers"]]
    if scorer not in there:
        raise RunError(
            f"On '{task}' the run '{a.id}' was scored by '{scorer}' and the run"
            f" '{b.id}' by {', '.join(there)}. Score one of them again with `evalwright"
            " score`."
        )


def _check_unit(
    a: Run, b: Run, task: str, first: MetricResult, other: MetricResult
) -> None:
    """One name may stand for two numbers: as published (0 to 100, of no item), and of items' scores
    between 0 and 1.
    """
    if other.label == first.label and not _one_unit(first, other):
        made = [
            run.record(task)["definition"].get("scoring", "scored here")
            for run in (a, b)
        ]
        raise RunError(
            f"On '{task}' '{first.label}' is another number in '{a.id}' ({made[0]})"
            f" than in '{b.id}' ({made[1]}), so they are not compared. Make both with"
            " the same --scoring (stored answers are used), or name a metric that both"
            " have (--metric)."
        )


def _one_unit(a: MetricResult, b: MetricResult) -> bool:
    return (a.kind in BOUNDED) == (b.kind in BOUNDED)


def _check_slices(run: Run, slices: Sequence[str], found: Sequence[Matrix]) -> None:
    for key in slices:
        if not any(key in matrix.slices for matrix in found):
            known = sorted(
                {
                    name
                    for row in islice(run.score_rows(), 1000)
                    for name in row.get("metadata", {})
                }
            )
            more = (
                f"The samples have {', '.join(known)}."
                if known
                else "The samples have no metadata."
            )
            raise UnknownName(
                "slice",
                key,
                known,
                f"{more} A key with more than 200 values makes no slices.",
            )


# -- one task --------------------------------------------------------------------------


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
    items = found.of_items
    judge = one_sided_judge((a, b), [measure.task], names)
    higher = items.values[0] > items.values[1]
    lower = items.values[0] < items.values[1]
    paired = paired_of(found) if found.common().any() else None
    whole = Average((found,))
    of_missing = provisional_reason(whole, names) if paired else ""
    provisional = " ".join(filter(None, [of_missing, judge]))
    return TaskComparison(
        task=measure.task,
        metric=measure.metric,
        scorer=measure.scorer,
        bounded=measure.bounded,
        lower_is_better=measure.lower_is_better,
        paired=paired,
        unpaired=None if paired else unpaired_of(found),
        only_a=int((items.was_asked[0] & ~items.was_asked[1]).sum()),
        only_b=int((items.was_asked[1] & ~items.was_asked[0]).sum()),
        n_differing=int(higher.sum() + lower.sum()),
        n_a_higher=int(higher.sum()),
        n_b_higher=int(lower.sum()),
        flips=_flips(a, items, higher, lower, most_flips),
        slices=tuple(compare_slices(found, key, adjust) for key in found.slices),
        equivalence=(
            None
            if equivalent is None
            else equivalence_of(found, equivalent, names, provisional)
        ),
        warnings=tuple(_warnings(a, b, found, paired)),
        other_questions=other_questions(found),
        robustness=(
            robustness_of(whole, verdict_sign(paired.low, paired.high))
            if paired
            else None
        ),
        provisional=provisional,
        one_sided_judge=judge,
        stopped_early=_stopped_early(a, b, measure),
    )


def _warnings(
    a: Run, b: Run, found: Matrix, paired: PairedComparison | None
) -> list[str]:
    counts = {run.id: _counts(run.task(found.measure.task)) for run in (a, b)}
    warnings = [f"'{name}' has {words}." for name, words in counts.items() if words]
    if found.unbounded.any():
        warnings.append(
            f"'{found.measure.metric}' has no known range, so nothing bounds what the"
            " missing answers would have scored: in the worst case there is no"
            " verdict."
        )
    warnings += _unknown_robustness(found)
    scored = int(np.diag(common_counts(found)).max(initial=0))
    if paired is None:
        warnings.append(
            "The runs share no item, so they are compared as two independent samples: a"
            " difference in the items' difficulty counts as a difference between the"
            " models."
        )
        if (
            found.clusters is not None
            and np.intersect1d(*(found.clusters[one] for one in found.was_asked)).size
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
        found, has_interval=paired is None or not math.isnan(paired.low)
    )
    return [*warnings, *pairing_notes(found, [f"'{run.id}'" for run in (a, b)]), *notes]


def _unknown_robustness(found: Matrix) -> list[str]:
    """That nothing is known of what missing and unsure answers could change, for a metric without a
    range; none elsewhere.
    """
    items = found.of_items
    if found.measure.value_range is not None or found.unbounded.any():
        return []
    kinds = [
        kind
        for kind, cells in (("missing", items.missing), ("unsure", items.unsure))
        if cells[:2].any()
    ]
    if not kinds:
        return []
    text = (
        f"'{found.measure.metric}' has no known range, so what the {listed(kinds)}"
        " answers could change is unknown."
    )
    if found.measure.kind == "mean":
        text += (
            " Declare it in the task: `mean: {value_range: [0, 1]}`, with the least and"
            " greatest score."
        )
    return [text]


def _stopped_early(a: Run, b: Run, measure: Measure) -> str:
    """What the interval of a task does not allow for where a run ended early, and the one that
    does; "" where neither did.
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
        shown = "" if low > 0 else ", which includes 0: no difference is shown"
        return (
            f"{NOT_FOR_STOPPING} The valid interval is that of the rule"
            f" '{decision['rule']}', on all {count(decision['n_total'])}"
            f" {decision['unit']}: {higher} minus {lower} is {ends}"
            f" ({100 * decision['level']:g}%){shown}."
        )
    return NOT_FOR_STOPPING


def _counts(task: TaskResult) -> str:
    """What a task has besides ordinary answers: "3 missing answers, 9 unsure answers"; "" where
    there is nothing.
    """
    parts = []
    if task.n_missing:
        parts.append(counted(task.n_missing, "missing answer"))
    if task.n_unsure:
        parts.append(counted(task.n_unsure, "unsure answer"))
    n_faults = sum(model_faults([task]).values())
    if n_faults:
        more = "more " if task.n_missing else ""
        replies = plural(n_faults, "reply that was", "replies that were")
        parts.append(
            f"{count(n_faults)} {more}{replies} no answer ({faults_in_words([task])})"
        )
    return listed(parts)


def _flips(
    run: Run,
    found: Matrix,
    higher: NDArray[np.bool_],
    lower: NDArray[np.bool_],
    most: int,
) -> tuple[Flip, ...]:
    """The first `most` items of each direction, in the order of the run, whose scores differ."""
    left = {True: min(most, int(higher.sum())), False: min(most, int(lower.sum()))}
    flips: list[Flip] = []
    if not any(left.values()):
        return ()
    order = np.argsort(found.keys, kind="stable")
    seen: set[str] = set()
    for row in islice(run.score_rows(), MOST_READ):
        if row["task"] != found.measure.task or row["id"] in seen:
            continue
        seen.add(row["id"])
        key = hashed(row["id"])
        place = order[
            min(int(np.searchsorted(found.keys, key, sorter=order)), len(order) - 1)
        ]
        if found.keys[place] != key:
            continue
        if (higher[place] or lower[place]) and left[side := bool(higher[place])]:
            left[side] -= 1
            flips.append(
                Flip(found.measure.task, row["id"], *map(float, found.values[:, place]))
            )
            if not any(left.values()):
                break
    return tuple(flips)


def estimand(
    found: Sequence[Matrix],
    what: str,
    how: str,
    node: Node | None = None,
    tasks_are: TasksAre = "fixed",
) -> str:
    """What the numbers are about, in a sentence. what: is estimated; how: runs are held against
    each other.
    """
    weights = "each with the same weight"
    if node is not None:
        lacks = [
            one.measure.task for one in found if one.measure.task not in node.tasks
        ]
        found = [one for one in found if one.measure.task in node.tasks]
        weights = (
            "averaged by the tree"
            f" '{node.name}'{f', which lacks {listed(lacks, 5)}' if lacks else ''}"
        )
    which = (
        f"these {len(found)} tasks"
        if tasks_are == "fixed"
        else f"tasks like these {len(found)}"
    )
    over = f"over {which}, {weights}, " if len(found) > 1 else ""
    units = (
        "; items of a cluster count as one unit"
        if any(one.clusters is not None for one in found)
        else ""
    )
    return (
        f"The estimate is {what} {over}for items drawn like these, {how}{units}."
        " Intervals are 95%."
    )
