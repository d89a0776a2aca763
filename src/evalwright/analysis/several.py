"""Three or more runs compared: all pairs, or every other against a baseline, with simultaneous error control.

The tables of several tasks share their error too: each is made at a level that holds them together (Bonferroni), and its
adjusted p-values are multiplied accordingly. The mean over tasks is a family of its own, asked first. Slices likewise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from evalwright.analysis.comparison import can_average, estimand, no_mean, read_matrices
from evalwright.analysis.differing import configuration_differences
from evalwright.analysis.pairs import other_questions_by_pair, pairing_notes
from evalwright.analysis.ranking import Pair, rank
from evalwright.analysis.words import few_clusters, listed
from evalwright.core.errors import RunError, UnknownName
from evalwright.core.plain import Plain
from evalwright.runs.measures import Matrix, common_counts, paired_of
from evalwright.runs.reader import Run
from evalwright.statistics import Estimate, macro_average, macro_difference, mean_interval

_SHARE = 0.05
MOST_EXACT = 300
"""Pairs for which the smallest visible difference is worked out one by one; past that from their standard errors."""

_MORE_DRAWS = 10_000
"""Where many families share 5%, the critical values lie further out and need more draws."""


@dataclass(frozen=True, slots=True)
class PairTable(Plain):
    """All pairs on one task, on one slice of it, or over all tasks (task "").

    means: each run's mean on its own items, in the order of the runs, with its own 95% interval. ranks and letters: as in
    `Ranking`, empty against a baseline. correction: over what the error is controlled.
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


@dataclass(frozen=True, slots=True)
class SeveralComparison(Plain):
    """Runs by number, in the order given. baseline: the number of the run that the others are held against, None: all pairs.

    other_questions: sentences on ids that stand for other questions, by task. differences: what was made otherwise than in the first run (or the baseline), by run. conclusion: in words, filled in by
    `reports.conclusions`.
    """

    runs: tuple[str, ...]
    labels: tuple[str, ...]
    baseline: int | None
    overall: PairTable | None
    tasks: tuple[PairTable, ...]
    slices: tuple[PairTable, ...]
    estimand: str
    warnings: tuple[str, ...]
    other_questions: tuple[str, ...]
    differences: dict[str, tuple[str, ...]]
    conclusion: str = ""

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        baseline = None if self.baseline is None else self.runs[self.baseline]
        return {**Plain.as_dict(self), "baseline": baseline}


def compare_several(
    runs: Sequence[Run], *, baseline: Run | None = None, slices: Sequence[str] = ()
) -> SeveralComparison:
    """Compare three or more runs on the tasks that all have, on the main metric that each task has in the first run.

    baseline: one of the runs; then every other is compared with it, else all pairs are. Raises RunError for fewer than two
    runs, and as `compare_runs`; UnknownName for a baseline that is not among the runs.
    """
    if len(runs) < 2:
        raise RunError("A comparison needs at least two runs.")
    ids = [run.id for run in runs]
    folders = [run.folder.resolve() for run in runs]
    if twice := [run.id for run, folder in zip(runs, folders, strict=True) if folders.count(folder) > 1]:
        raise RunError(f"The run '{twice[0]}' is named more than once. Name each run of a comparison once.")
    place = None
    if baseline is not None:
        if baseline.folder.resolve() not in folders:
            raise UnknownName("baseline", baseline.id, ids, "It must be one of the runs that are compared.")
        place = folders.index(baseline.folder.resolve())
    found = read_matrices(runs, slices)
    whole = len(found) > 1 and can_average([one.measure for one in found])
    names = [run.label for run in runs]
    labels = tuple(
        name if names.count(name) == 1 else f"{name} ({run})" for name, run in zip(names, ids, strict=True)
    )
    tables = tuple(_table([one], place, len(found), "tasks") for one in found)
    few = [(table.task, few_clusters(_fewest(table))) for table in tables]
    against = "of each pair" if place is None else "of each run from the baseline"
    first = runs[place or 0]
    others = {run.id: tuple(configuration_differences(first, run)) for run in runs if run is not first}
    return SeveralComparison(
        runs=tuple(ids),
        labels=labels,
        baseline=place,
        overall=_table(found, place, 1, "") if whole else None,
        tasks=tables,
        slices=tuple(table for key in slices for one in found for table in _slices(one, key, place)),
        estimand=estimand(
            found, f"the mean difference {against}", "each pair on the items that both answered"
        ),
        warnings=(*_warnings(found, labels, place), *(f"{task}: {text}" for task, text in few if text)),
        other_questions=tuple(said for one in found if (said := other_questions_by_pair(one, labels, place))),
        differences={name: lines for name, lines in others.items() if lines},
    )


def _fewest(table: PairTable) -> float | None:
    """The fewest effective clusters of any run."""
    return min((mean.effective_clusters for mean in table.means if mean.effective_clusters), default=None)


def _table(
    found: Sequence[Matrix],
    baseline: int | None,
    families: int,
    of: str,
    *,
    items: Any = None,
    name: str = "",
) -> PairTable:
    level = 1 - _SHARE / families
    made = rank(found, level=level, items=items, draws=2000 if families == 1 else _MORE_DRAWS)
    measure = found[0].measure
    whole = len(found) > 1
    pairs = made.pairs(baseline, families)
    if len(pairs) <= MOST_EXACT:
        pair_level = made.level_of_a_pair(baseline)
        pairs = tuple(replace(pair, visible=_visible(found, pair, pair_level, items)) for pair in pairs)
    against = "all pairs" if baseline is None else f"{len(pairs)} comparisons with the baseline"
    more = f" of all {families} {of} (Bonferroni)" if families > 1 else ""

    def mean(one: Matrix, row: int) -> Estimate:
        """A run's mean over all items that it was asked."""
        own = (one if items is None else one.part(items)).counted(row)
        return mean_interval(own.values[row], clusters=own.clusters, value_range=measure.value_range)

    rows = range(len(found[0].values))
    return PairTable(
        task="" if whole else measure.task,
        slice=name,
        metric="mean over tasks" if whole else measure.metric,
        bounded=measure.bounded,
        lower_is_better=measure.lower_is_better,
        means=tuple(
            macro_average([mean(one, row) for one in found], value_range=measure.value_range) for row in rows
        ),
        pairs=pairs,
        ranks=made.ranks if baseline is None else (),
        letters=made.letters if baseline is None else (),
        level=level,
        correction=f"simultaneous for {against}{more}, 95%",
        method=made.differences.method,
    )


def _visible(found: Sequence[Matrix], pair: Pair, level: float, items: Any) -> float:
    """The smallest visible difference as `compare_paired` has it, which does not trust the spread of a few items."""
    if not pair.n:
        return pair.visible  # two independent samples
    parts, rows = [], (pair.a, pair.b)
    for one in found:
        own = one if items is None else one.part(items)
        both = own.asked[pair.a] & own.asked[pair.b]
        parts.append(paired_of(own, both, rows=rows, level=level))
    if len(parts) == 1:
        return parts[0].smallest_visible_difference
    return macro_difference(parts, value_range=found[0].measure.value_range).smallest_visible_difference


def _slices(found: Matrix, key: str, baseline: int | None) -> list[PairTable]:
    codes = found.slices.get(key)
    if codes is None:
        return []
    there = {
        name: codes.codes == code for code, name in sorted(enumerate(codes.names), key=lambda one: one[1])
    }
    used = [(name, inside) for name, inside in there.items() if inside.any()]
    return [
        _table([found], baseline, len(used), f"values of '{key}'", items=inside, name=f"{key}: {name}")
        for name, inside in used
    ]


def _warnings(found: Sequence[Matrix], labels: Sequence[str], baseline: int | None) -> Iterator[str]:
    for one in found:
        name, table = one.measure.task, common_counts(one).tolist()
        apart, few = list[str](), list[str]()
        for b, a in combinations(range(len(labels)), 2):
            if baseline is None or baseline in (a, b):
                n, pair = table[a][b], f"{labels[b]} and {labels[a]}"
                apart += [] if n else [pair]
                few += [f"{pair} ({n:,})"] if 0 < 2 * n < max(table[a][a], table[b][b]) else []
        if apart:
            yield (
                f"{name}: no item in common, so compared as independent samples, where a difference in their difficulty counts as "
                f"a difference between the models: {listed(apart, 5)}."
            )
        if few:
            yield f"{name}: under half of the items are common to {listed(few, 5)}."
        yield from (f"{name}: {note}" for note in pairing_notes(one, labels))
        if not one.measure.is_mean:
            yield f"{name}: {no_mean(one)}"
