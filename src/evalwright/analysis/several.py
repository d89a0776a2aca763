"""Compares three or more runs: all pairs, or each against a baseline, with Holm's adjustment.

The tables of several tasks share their error rate too: each is made at a level at which all
hold together (Bonferroni), with p-values multiplied accordingly. The mean over tasks is a
family of its own, tested first. Slices are treated likewise with Holm; otherwise every pair in
every slice is a test of its own, adjusted by Benjamini-Hochberg.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from evalwright.analysis.comparison import (
    caveats,
    describe_estimand,
    other_matrices,
    read_matrices,
)
from evalwright.analysis.differing import configuration_differences
from evalwright.analysis.pairs import note_other_questions_by_pair, pairing_notes
from evalwright.analysis.ranking import Pair, PairVerdict, rank
from evalwright.analysis.robustness import (
    explain_one_sided_judge,
    explain_provisional,
    how_to_fill,
)
from evalwright.analysis.trees import Average, make_average, overall_node
from evalwright.analysis.words import counted, listed, merge_remarks, warn_few_clusters
from evalwright.core.errors import RunError, UnknownName
from evalwright.core.plain import Plain
from evalwright.core.shown import Shown
from evalwright.metrics.tree import Node
from evalwright.runs.confirmed import confirm_all, published_from, published_notes
from evalwright.runs.measures import (
    Matrix,
    common_counts,
    group_notes,
    paired_of,
    unpaired_of,
)
from evalwright.runs.reader import Run, called, check_named_once
from evalwright.runs.slices import adjustment_text, agreeing
from evalwright.statistics import Estimate
from evalwright.statistics.macro import TasksAre
from evalwright.statistics.multiplicity import (
    Adjustment,
    adjusted_p_values,
    interval_level,
)
from evalwright.statistics.pairwise import MissingPolicy

_SHARE = 0.05
MOST_EXACT = 300
"""Most pairs for which the visible difference, and provisional verdicts, are computed exactly."""


@dataclass(frozen=True, slots=True)
class PairTable(Plain):
    """All pairs on one task, on one slice of it, or over all tasks (task "").

    Args:
        task: the task's name.
        slice: the slice, as "key: value".
        metric: the metric's label.
        bounded: whether scores are between 0 and 1.
        lower_is_better: whether lower values are better.
        means: each run's mean on its own items with its own 95% interval, in the order of the runs.
        pairs: the comparisons.
        ranks: as in `Ranking`, empty against a baseline.
        letters: likewise.
        level: 1 minus the chance of any false finding in this table.
        correction: over which tests the error is controlled.
        method: how pairs were tested.
    """

    task: str
    slice: str
    metric: str
    bounded: bool
    lower_is_better: bool
    means: tuple[Estimate, ...]
    pairs: tuple[Pair, ...]
    ranks: tuple[tuple[int, int], ...]
    letters: tuple[str, ...]
    level: float
    correction: str
    method: str


@dataclass(frozen=True, slots=True, repr=False)
class SeveralComparison(Shown, Plain):
    """Runs compared with each other, referred to by number in the order passed.

    Args:
        runs: the runs' ids.
        labels: what they are called.
        baseline: the number of the run that the others are compared with; None for all pairs.
        overall: the table of the mean over tasks.
        tasks: the tables by task.
        others: tables by the tasks' further metrics, each controlled separately.
        slices: the tables by slice.
        estimand: what the numbers are about, in a sentence.
        warnings: what limits the comparison.
        other_questions: sentences on ids that stand for different questions, by task.
        differences: by run, what was set differently than in the first run (or the baseline).
        how_to_fill: what to do about missing answers.
        caveats: what a reader must know before the verdicts.
        numbers_from: by run, what its numbers were computed from if not from its samples.
        conclusion: the verdicts in words, filled in by `reports.conclusions`.
    """

    runs: tuple[str, ...]
    labels: tuple[str, ...]
    baseline: int | None
    overall: PairTable | None
    tasks: tuple[PairTable, ...]
    others: tuple[PairTable, ...]
    slices: tuple[PairTable, ...]
    estimand: str
    warnings: tuple[str, ...]
    other_questions: tuple[str, ...]
    differences: dict[str, tuple[str, ...]]
    how_to_fill: str = ""
    caveats: tuple[str, ...] = ()
    numbers_from: Mapping[str, str] = field(default_factory=dict)
    conclusion: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        baseline = None if self.baseline is None else self.runs[self.baseline]
        fields = {**Plain.as_dict(self), "baseline": baseline}
        return (
            fields
            if self.numbers_from
            else {key: fields[key] for key in fields if key != "numbers_from"}
        )


def compare_several(
    runs: Sequence[Run],
    *,
    baseline: Run | None = None,
    slices: Sequence[str] = (),
    slices_adjust: Adjustment = "bh",
    metric: str | None = None,
    tasks_are: TasksAre = "fixed",
    missing: MissingPolicy = "scored",
) -> SeveralComparison:
    """Compare three or more runs on the tasks that all have.

    Args:
        runs: the runs.
        baseline: one of the runs, to compare every other with; by default all pairs are compared.
        slices: as in `compare_runs`, like the further arguments.
        slices_adjust: likewise.
        metric: a label or TASK.LABEL to compare by; by default each task's main metric in the first
            run.
        tasks_are: likewise.
        missing: likewise.

    Raises:
        RunError: fewer than two runs, and as `compare_runs`.
        UnknownName: the baseline is not among the runs.
    """
    if len(runs) < 2:
        raise RunError("A comparison needs at least two runs.")
    check_named_once(runs)
    runs = confirm_all(runs)
    ids = [run.id for run in runs]
    folders = [run.folder.resolve() for run in runs]
    baseline_index = None
    if baseline is not None:
        if baseline.folder.resolve() not in folders:
            raise UnknownName(
                "baseline",
                baseline.id,
                ids,
                "It must be one of the runs that are compared.",
            )
        baseline_index = folders.index(baseline.folder.resolve())
    task_matrices = read_matrices(runs, slices, metric, missing)
    also = (
        []
        if metric
        else [
            matrix
            for task_others in other_matrices(runs, task_matrices, missing).values()
            for matrix in task_others
        ]
    )
    node = overall_node(runs, [matrix.measure.task for matrix in task_matrices])
    many = node or len(task_matrices) > 1 or tasks_are == "sample"
    average = make_average(task_matrices, node, tasks_are) if many else None
    labels = tuple(called(runs))
    tables = tuple(
        _mark_one_sided_judges(
            _make_table(
                Average((matrix,)), baseline_index, len(task_matrices), "tasks", labels
            ),
            runs,
            [matrix.measure.task],
            labels,
        )
        for matrix in task_matrices
    )
    overall = None
    if average is not None:
        tasks_of_mean = [matrix.measure.task for matrix in average.samples]
        overall = _mark_one_sided_judges(
            _make_table(average, baseline_index, 1, "", labels, name="overall"),
            runs,
            tasks_of_mean,
            labels,
        )
    against = (
        "of each pair" if baseline_index is None else "of each run from the baseline"
    )
    how = "each pair on the items that both answered"
    first = runs[baseline_index or 0]
    others = {
        run.id: tuple(configuration_differences(first, run))
        for run in runs
        if run is not first
    }
    return SeveralComparison(
        runs=tuple(ids),
        labels=labels,
        baseline=baseline_index,
        overall=overall,
        tasks=tables,
        others=tuple(
            _make_table(Average((matrix,)), baseline_index, 1, "", labels)
            for matrix in also
        ),
        slices=tuple(
            table
            for key in slices
            for matrix in task_matrices
            for table in _make_slice_tables(
                matrix, key, baseline_index, slices_adjust, labels
            )
        ),
        estimand=describe_estimand(
            task_matrices, f"the mean difference {against}", how, node, tasks_are
        ),
        warnings=tuple(
            _list_warnings(
                task_matrices, tables, labels, baseline_index, node if average else None
            )
        ),
        other_questions=tuple(
            question_note
            for matrix in task_matrices
            if (
                question_note := note_other_questions_by_pair(
                    matrix, labels, baseline_index
                )
            )
        ),
        differences={name: lines for name, lines in others.items() if lines},
        how_to_fill=how_to_fill(runs),
        caveats=(*caveats(runs, task_matrices), *published_notes(runs)),
        numbers_from=published_from(runs),
    )


def _mark_one_sided_judges(
    table: PairTable, runs: Sequence[Run], tasks: Sequence[str], labels: Sequence[str]
) -> PairTable:
    """Mark pairs of a table provisional if a judge scored only one of the two runs.

    Args:
        table: the table.
        runs: the runs.
        tasks: the tasks that the table is about.
        labels: what the runs are called.
    """
    pairs = []
    for pair in table.pairs:
        judge = explain_one_sided_judge(
            (runs[pair.a], runs[pair.b]), tasks, (labels[pair.a], labels[pair.b])
        )
        pairs.append(
            replace(pair, provisional=" ".join(filter(None, [pair.provisional, judge])))
        )
    return replace(table, pairs=tuple(pairs))


def _make_table(
    average: Average,
    baseline: int | None,
    families: int,
    scope: str,
    labels: Sequence[str],
    *,
    name: str = "",
) -> PairTable:
    """Make the table of one task, slice or average.

    Args:
        average: the samples.
        baseline: number of the run to compare with; None for all pairs.
        families: how many tables share the 5%.
        scope: what these tables are, in words.
        labels: what the runs are called.
        name: of the slice, or "overall" for the average over tasks.
    """
    level = 1 - _SHARE / families
    ranking = rank(
        average.samples,
        weights=average.weights,
        level=level,
        tasks_are=average.tasks_are,
    )
    measure = average.samples[0].measure
    is_overall = name == "overall"
    pairs = ranking.pairs(baseline, families)
    if len(pairs) <= MOST_EXACT:
        pair_level = ranking.level_of_a_pair(baseline)
        pairs = tuple(
            (
                replace(
                    pair,
                    visible=average.difference(
                        (pair.a, pair.b), pair_level
                    ).smallest_visible_difference,
                )
                if pair.n
                else pair
            )  # compared as two independent samples
            for pair in pairs
        )
        pairs = tuple(
            (
                replace(
                    pair,
                    provisional=explain_provisional(
                        average, (labels[pair.a], labels[pair.b]), (pair.a, pair.b)
                    ),
                )
                if pair.n_missing
                else pair
            )
            for pair in pairs
        )
    sampled = ", for tasks like these" if average.tasks_are == "sample" else ""
    against = (
        "all pairs"
        if baseline is None
        else f"{len(pairs)} comparisons with the baseline"
    )
    further = f" of all {families} {scope} (Bonferroni)" if families > 1 else ""

    return PairTable(
        task="" if is_overall else measure.task,
        slice="" if is_overall else name,
        metric=_describe_mean(average) if is_overall else measure.metric,
        bounded=measure.bounded,
        lower_is_better=measure.lower_is_better,
        means=tuple(average.mean(row) for row in range(len(average.samples[0].values))),
        pairs=pairs,
        ranks=ranking.ranks if baseline is None else (),
        letters=ranking.letters if baseline is None else (),
        level=level,
        correction=f"Holm-adjusted for {against}{further}, 95%{sampled}",
        method=ranking.differences.method,
    )


def _describe_mean(average: Average) -> str:
    if average.tasks_are == "sample":
        return "mean over tasks like these"
    return average.words if average.weights else "mean over tasks"


def _make_slice_tables(
    matrix: Matrix,
    key: str,
    baseline: int | None,
    how: Adjustment,
    labels: Sequence[str],
) -> list[PairTable]:
    codes = matrix.slices.get(key)
    if codes is None:
        return []
    subsets = {name: matrix.slice(key, name) for name in sorted(codes.names)}
    used = {name: subset for name, subset in subsets.items() if subset is not None}
    values = f"values of '{key}'"
    families, of = (len(used), values) if how == "holm" else (1, "")
    tables = [
        _make_table(
            Average((subset,)), baseline, families, of, labels, name=f"{key}: {name}"
        )
        for name, subset in used.items()
    ]
    if how == "holm":
        return tables
    p_values = np.array([pair.p_value for table in tables for pair in table.pairs])
    level = interval_level(p_values, how, _SHARE)
    adjusted = iter(adjusted_p_values(p_values, how).tolist())
    tests = (
        f"{len(p_values)} tests, {counted(len(tables[0].pairs), 'pair')} in each of"
        f" {len(used)} {values}"
    )
    return [
        replace(
            table,
            pairs=tuple(
                _compare_pair_alone(
                    subset, pair, level, next(adjusted), table.lower_is_better
                )
                for pair in table.pairs
            ),
            ranks=(),
            letters=(),
            level=level,
            correction=adjustment_text(how, tests),
            method="score test" if subset.scores is None else "jackknife t",
        )
        for table, subset in zip(tables, used.values(), strict=True)
    ]


def _compare_pair_alone(
    matrix: Matrix, pair: Pair, level: float, p_adjusted: float, lower_is_better: bool
) -> Pair:
    """Give a pair its own interval at a level, and the verdict of its adjusted p-value."""
    rows = pair.a, pair.b
    if pair.n:
        comparison: Any = agreeing(
            paired_of(matrix, rows=rows, level=level), p_adjusted
        )
        visible = comparison.smallest_visible_difference
    else:
        comparison = unpaired_of(matrix, rows=rows, level=level)
        visible = pair.visible
    differs = p_adjusted < _SHARE and not comparison.low <= 0 <= comparison.high
    verdict: PairVerdict = (
        "not compared" if math.isnan(p_adjusted) else "no difference seen"
    )
    if differs:
        verdict = "better" if (comparison.low >= 0) != lower_is_better else "worse"
    return replace(
        pair,
        low=comparison.low,
        high=comparison.high,
        p_adjusted=p_adjusted,
        visible=visible,
        verdict=verdict,
    )


def _list_warnings(
    task_matrices: Sequence[Matrix],
    tables: Sequence[PairTable],
    labels: Sequence[str],
    baseline: int | None,
    node: Node | None,
) -> Iterator[str]:
    tasks = [matrix.measure.task for matrix in task_matrices]
    missing = node.missing(tasks) if node else ()
    if node and missing:
        yield (
            f"The mean over all tasks is without {listed(missing, 5)}, which"
            f" '{node.name}' names too."
        )
    for matrix in task_matrices:
        name = matrix.measure.task
        table = common_counts(matrix).tolist()
        apart = list[str]()
        few = list[str]()
        for b, a in combinations(range(len(labels)), 2):
            if baseline is None or baseline in (a, b):
                n = table[a][b]
                pair = f"{labels[b]} and {labels[a]}"
                apart += [] if n else [pair]
                few += (
                    [f"{pair} ({n:,})"]
                    if 0 < 2 * n < max(table[a][a], table[b][b])
                    else []
                )
        if apart:
            yield (
                f"{name}: no item in common, so compared as independent samples, where"
                " a difference in their difficulty counts as a difference between the"
                f" models: {listed(apart, 5)}."
            )
        if few:
            yield f"{name}: under half of the items are common to {listed(few, 5)}."
    remarks = []
    for matrix, table in zip(task_matrices, tables, strict=True):
        fewest = min(
            (
                mean.effective_clusters
                for mean in table.means
                if mean.effective_clusters
            ),
            default=None,
        )
        notes = (
            *pairing_notes(matrix, labels),
            *group_notes(matrix),
            warn_few_clusters(fewest),
        )
        remarks += [(matrix.measure.task, note) for note in notes]
    yield from (f"{names}: {note}" for names, note in merge_remarks(remarks) if note)
