"""Three or more runs compared: all pairs, or every other against a baseline, with the error of all
of them controlled (Holm).

The tables of several tasks share their error too: each is made at a level that holds them together
(Bonferroni), and its adjusted p-values are multiplied accordingly. The mean over tasks is a family
of its own, asked first. Slices likewise with Holm; else every pair in every slice is a test of its
own, adjusted by Benjamini-Hochberg.
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
    estimand,
    other_matrices,
    read_matrices,
)
from evalwright.analysis.differing import configuration_differences
from evalwright.analysis.pairs import other_questions_by_pair, pairing_notes
from evalwright.analysis.ranking import Pair, PairVerdict, rank
from evalwright.analysis.robustness import (
    how_to_fill,
    one_sided_judge,
    provisional_reason,
)
from evalwright.analysis.trees import Average, average_of, overall_node
from evalwright.analysis.words import counted, few_clusters, listed, said_once
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
"""Pairs for which the smallest visible difference, and whether they are provisional, are worked out
one by one.
"""


@dataclass(frozen=True, slots=True)
class PairTable(Plain):
    """All pairs on one task, on one slice of it, or over all tasks (task "").

    means: each run's mean on its own items, in the order of the runs, with its own 95% interval.
    ranks and letters: as in `Ranking`, empty against a baseline. correction: over what the error is
    controlled.
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
    """Runs by number, in the order given. baseline: the number of the run that the others are held
    against, None: all pairs.

    others: by the tasks' other metrics, each for itself. other_questions: sentences on ids that
    stand for other questions, by task. differences: what was made otherwise than in the first run
    (or the baseline), by run. how_to_fill: what to do about missing answers. caveats: what a reader
    must know before the verdicts. numbers_from: by run, what its numbers were made of, where that
    is not its samples. conclusion: in words, filled in by `reports.conclusions`.
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
        """A plain mapping for JSON."""
        baseline = None if self.baseline is None else self.runs[self.baseline]
        found = {**Plain.as_dict(self), "baseline": baseline}
        return (
            found
            if self.numbers_from
            else {key: found[key] for key in found if key != "numbers_from"}
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
    """Compare three or more runs on the tasks that all have, on the main metric that each task has
    in the first run.

    metric: compare by this one, a label or TASK.LABEL, and by no other.

    baseline: one of the runs; then every other is compared with it, else all pairs are. slices,
    slices_adjust, tasks_are, missing: as of `compare_runs`. Raises RunError for fewer than two
    runs, and as `compare_runs`; UnknownName for a baseline that is not among the runs.
    """
    if len(runs) < 2:
        raise RunError("A comparison needs at least two runs.")
    check_named_once(runs)
    runs = confirm_all(runs)
    ids = [run.id for run in runs]
    folders = [run.folder.resolve() for run in runs]
    place = None
    if baseline is not None:
        if baseline.folder.resolve() not in folders:
            raise UnknownName(
                "baseline",
                baseline.id,
                ids,
                "It must be one of the runs that are compared.",
            )
        place = folders.index(baseline.folder.resolve())
    found = read_matrices(runs, slices, metric, missing)
    also = (
        []
        if metric
        else [
            one for own in other_matrices(runs, found, missing).values() for one in own
        ]
    )
    node = overall_node(runs, [one.measure.task for one in found])
    many = node or len(found) > 1 or tasks_are == "sample"
    whole = average_of(found, node, tasks_are) if many else None
    labels = tuple(called(runs))
    tables = tuple(
        _with_judges(
            _table(Average((one,)), place, len(found), "tasks", labels),
            runs,
            [one.measure.task],
            labels,
        )
        for one in found
    )
    overall = None
    if whole is not None:
        tasks_of_mean = [one.measure.task for one in whole.samples]
        overall = _with_judges(
            _table(whole, place, 1, "", labels, name="overall"),
            runs,
            tasks_of_mean,
            labels,
        )
    against = "of each pair" if place is None else "of each run from the baseline"
    how = "each pair on the items that both answered"
    first = runs[place or 0]
    others = {
        run.id: tuple(configuration_differences(first, run))
        for run in runs
        if run is not first
    }
    return SeveralComparison(
        runs=tuple(ids),
        labels=labels,
        baseline=place,
        overall=overall,
        tasks=tables,
        others=tuple(_table(Average((one,)), place, 1, "", labels) for one in also),
        slices=tuple(
            table
            for key in slices
            for one in found
            for table in _slices(one, key, place, slices_adjust, labels)
        ),
        estimand=estimand(
            found, f"the mean difference {against}", how, node, tasks_are
        ),
        warnings=tuple(
            _warnings(found, tables, labels, place, node if whole else None)
        ),
        other_questions=tuple(
            said
            for one in found
            if (said := other_questions_by_pair(one, labels, place))
        ),
        differences={name: lines for name, lines in others.items() if lines},
        how_to_fill=how_to_fill(runs),
        caveats=(*caveats(runs, found), *published_notes(runs)),
        numbers_from=published_from(runs),
    )


def _with_judges(
    table: PairTable, runs: Sequence[Run], tasks: Sequence[str], labels: Sequence[str]
) -> PairTable:
    """The table with those pairs provisional, too, of which a judge gave scores of one run only.
    tasks: that the table is about.
    """
    pairs = []
    for pair in table.pairs:
        judge = one_sided_judge(
            (runs[pair.a], runs[pair.b]), tasks, (labels[pair.a], labels[pair.b])
        )
        pairs.append(
            replace(pair, provisional=" ".join(filter(None, [pair.provisional, judge])))
        )
    return replace(table, pairs=tuple(pairs))


def _table(
    found: Average,
    baseline: int | None,
    families: int,
    of: str,
    labels: Sequence[str],
    *,
    name: str = "",
) -> PairTable:
    """labels: of the runs; name: of a slice, "overall" of the average over tasks."""
    level = 1 - _SHARE / families
    made = rank(
        found.samples, weights=found.weights, level=level, tasks_are=found.tasks_are
    )
    measure = found.samples[0].measure
    whole = name == "overall"
    pairs = made.pairs(baseline, families)
    if len(pairs) <= MOST_EXACT:
        pair_level = made.level_of_a_pair(baseline)
        pairs = tuple(
            (
                replace(
                    pair,
                    visible=found.difference(
                        (pair.a, pair.b), pair_level
                    ).smallest_visible_difference,
                )
                if pair.n
                else pair
            )  # two independent samples
            for pair in pairs
        )
        pairs = tuple(
            (
                replace(
                    pair,
                    provisional=provisional_reason(
                        found, (labels[pair.a], labels[pair.b]), (pair.a, pair.b)
                    ),
                )
                if pair.n_missing
                else pair
            )
            for pair in pairs
        )
    sampled = ", for tasks like these" if found.tasks_are == "sample" else ""
    against = (
        "all pairs"
        if baseline is None
        else f"{len(pairs)} comparisons with the baseline"
    )
    more = f" of all {families} {of} (Bonferroni)" if families > 1 else ""

    return PairTable(
        task="" if whole else measure.task,
        slice="" if whole else name,
        metric=_mean_words(found) if whole else measure.metric,
        bounded=measure.bounded,
        lower_is_better=measure.lower_is_better,
        means=tuple(found.mean(row) for row in range(len(found.samples[0].values))),
        pairs=pairs,
        ranks=made.ranks if baseline is None else (),
        letters=made.letters if baseline is None else (),
        level=level,
        correction=f"Holm-adjusted for {against}{more}, 95%{sampled}",
        method=made.differences.method,
    )


def _mean_words(found: Average) -> str:
    if found.tasks_are == "sample":
        return "mean over tasks like these"
    return found.words if found.weights else "mean over tasks"


def _slices(
    found: Matrix,
    key: str,
    baseline: int | None,
    how: Adjustment,
    labels: Sequence[str],
) -> list[PairTable]:
    codes = found.slices.get(key)
    if codes is None:
        return []
    used = {
        name: inside
        for name in sorted(codes.names)
        if (inside := found.slice(key, name)) is not None
    }
    values = f"values of '{key}'"
    families, of = (len(used), values) if how == "holm" else (1, "")
    tables = [
        _table(Average((one,)), baseline, families, of, labels, name=f"{key}: {name}")
        for name, one in used.items()
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
                _alone(one, pair, level, next(adjusted), table.lower_is_better)
                for pair in table.pairs
            ),
            ranks=(),
            letters=(),
            level=level,
            correction=adjustment_text(how, tests),
            method="score test" if one.scores is None else "jackknife t",
        )
        for table, one in zip(tables, used.values(), strict=True)
    ]


def _alone(
    found: Matrix, pair: Pair, level: float, p_adjusted: float, less: bool
) -> Pair:
    """A pair with the interval of that level that is its own, and the verdict of its adjusted
    p-value.
    """
    rows = pair.a, pair.b
    if pair.n:
        own: Any = agreeing(paired_of(found, rows=rows, level=level), p_adjusted)
        visible = own.smallest_visible_difference
    else:
        own = unpaired_of(found, rows=rows, level=level)
        visible = pair.visible
    differs = p_adjusted < _SHARE and not own.low <= 0 <= own.high
    verdict: PairVerdict = (
        "not compared" if math.isnan(p_adjusted) else "no difference seen"
    )
    if differs:
        verdict = "better" if (own.low >= 0) != less else "worse"
    return replace(
        pair,
        low=own.low,
        high=own.high,
        p_adjusted=p_adjusted,
        visible=visible,
        verdict=verdict,
    )


def _warnings(
    found: Sequence[Matrix],
    tables: Sequence[PairTable],
    labels: Sequence[str],
    baseline: int | None,
    node: Node | None,
) -> Iterator[str]:
    if node and (missing := node.missing([one.measure.task for one in found])):
        yield (
            f"The mean over all tasks is without {listed(missing, 5)}, which"
            f" '{node.name}' names too."
        )
    for one in found:
        name = one.measure.task
        table = common_counts(one).tolist()
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
    for one, table in zip(found, tables, strict=True):
        fewest = min(
            (
                mean.effective_clusters
                for mean in table.means
                if mean.effective_clusters
            ),
            default=None,
        )
        notes = (*pairing_notes(one, labels), *group_notes(one), few_clusters(fewest))
        remarks += [(one.measure.task, note) for note in notes]
    yield from (f"{names}: {note}" for names, note in said_once(remarks) if note)
