"""Ranks several runs: tests of all pairs, ranks as sets, and letters for ties.

A pair differs significantly if Holm's adjusted p-value, over all pairs, is below 5%. On one
task a pair without common items is compared as two independent samples (`all_differences`);
over several tasks `all_macro_differences` leaves such a pair open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from evalwright.analysis.trees import ranges_of_tasks, shared_range
from evalwright.core.plain import Plain
from evalwright.runs.measures import Matrix, common_counts, common_units
from evalwright.statistics import (
    AllDifferences,
    all_differences,
    rank_sets,
    smallest_visible_difference,
)
from evalwright.statistics.macro import TasksAre
from evalwright.statistics.many_models_macro import all_macro_differences
from evalwright.statistics.task_sample import all_sampled_differences
from evalwright.statistics.units import F64, Bools

PairVerdict = Literal["better", "worse", "no difference seen", "not compared"]

MOST_LETTERS = 26
"""Most groups for which letters are given; more would not be readable."""


@dataclass(frozen=True, slots=True)
class Pair(Plain):
    """The difference of run number `a` minus run number `b`.

    Args:
        a: number of the first run.
        b: number of the second run.
        difference: a minus b.
        low: low end of the interval at `level`.
        high: its high end.
        p_value: of the pair by itself.
        p_adjusted: Holm's, over all pairs.
        visible: the smallest difference that the pair would have shown with a power of 80%, else
            nan.
        n: common items.
        units: common items or clusters.
        verdict: about a, in the direction of the metric.
        n_missing: items without a score from one of the two, or both.
        level: the level at which Holm's procedure tested the pair.
        provisional: why the verdict is not final, "" if it is.
    """

    a: int
    b: int
    difference: float
    low: float
    high: float
    p_value: float
    p_adjusted: float
    visible: float
    n: int
    units: int
    verdict: PairVerdict
    n_missing: int = 0
    level: float = math.nan
    provisional: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranks of runs, which are referred to by number.

    Args:
        differences: the tests of all pairs.
        span: the range of a score.
        lower_is_better: whether lower values are better.
        ranks: rank sets that hold simultaneously for all runs.
        own_ranks: the rank set of each run, if only this one had been chosen beforehand.
        letters: runs that share a letter are tied; "" for a run that could not be compared, and ()
            if there would be too many letters.
    """

    differences: AllDifferences
    span: float
    lower_is_better: bool
    ranks: tuple[tuple[int, int], ...]
    own_ranks: tuple[tuple[int, int], ...]
    letters: tuple[str, ...]

    def level_of_a_pair(self, baseline: int | None) -> float:
        """The strictest level at which a pair is tested (Bonferroni), for planning."""
        models = len(self.differences.difference)
        pairs = models * (models - 1) // 2 if baseline is None else models - 1
        return 1 - (1 - self.differences.level) / max(1, pairs)

    def pairs(self, baseline: int | None = None, family: int = 1) -> tuple[Pair, ...]:
        """List all pairs, or every other run minus the baseline.

        Against a baseline, intervals and Holm's adjustment are for its pairs only.

        Args:
            baseline: number of the run to compare with; None for all pairs.
            family: the number of such families, by which p-values are multiplied.
        """
        differences = self.differences
        level = self.level_of_a_pair(baseline)
        runs = range(len(differences.difference))
        if baseline is None:
            places = list(combinations(runs, 2))
            low = differences.low
            high = differences.high
            pair_level = differences.pair_level
            adjusted = [float(differences.p_adjusted[pair]) for pair in places]
        else:
            places = [(run, baseline) for run in runs if run != baseline]
            # The baseline's family of tests: its own row, with signs reversed.
            low = -differences.own_high.T
            high = -differences.own_low.T
            pair_level = differences.own_level.T
            adjusted = [
                float(differences.own_p_adjusted[baseline, run]) for run, _ in places
            ]
        return tuple(
            Pair(
                a=pair[0],
                b=pair[1],
                difference=float(differences.difference[pair]),
                low=float(low[pair]),
                high=float(high[pair]),
                p_value=float(differences.p_value[pair]),
                p_adjusted=math.nan if math.isnan(p) else min(1.0, family * p),
                visible=_smallest_visible(differences, pair, level, self.span),
                n=int(differences.n[pair]),
                units=int(differences.units[pair]),
                verdict=_verdict_of(
                    float(low[pair]), float(high[pair]), self.lower_is_better
                ),
                n_missing=int(differences.n_missing[pair]),
                level=float(pair_level[pair]),
            )
            for pair, p in zip(places, adjusted, strict=True)
        )

    @property
    def isolated(self) -> tuple[int, ...]:
        """Runs that could not be compared with any other."""
        return tuple(
            np.flatnonzero(np.isnan(self.differences.low).all(axis=1)).tolist()
        )

    def common(self, run: int) -> bool:
        """Tell whether a run has an item in common with any other."""
        return bool(np.delete(self.differences.n[run], run).any())


def rank(
    task_matrices: Sequence[Matrix],
    *,
    weights: Sequence[float] | None = None,
    level: float = 0.95,
    tasks_are: TasksAre = "fixed",
) -> Ranking:
    """Rank the runs of some matrices over all of these tasks.

    Args:
        task_matrices: a matrix for each task, with the same runs and direction.
        weights: the tasks' weights, by default equal.
        level: 1 minus the chance of any false finding.
        tasks_are: as in `Average`.
    """
    span = shared_range(task_matrices)
    if len(task_matrices) == 1:
        matrix = task_matrices[0]
        differences = all_differences(
            matrix.values,
            matrix.clusters,
            missing=matrix.missing,
            missing_policy=matrix.missing_policy,
            level=level,
            value_range=span,
        )
    else:
        samples = [(matrix.values, matrix.units) for matrix in task_matrices]
        settings: dict[str, Any] = {
            "missing": [matrix.missing for matrix in task_matrices],
            "missing_policy": task_matrices[0].missing_policy,
            "level": level,
            "value_range": span,
            "ranges": ranges_of_tasks(task_matrices),
        }
        if tasks_are == "sample":
            differences = all_sampled_differences(samples, **settings)
        else:
            differences = all_macro_differences(samples, weights=weights, **settings)
    differences = _adjust_for_groups(
        differences, [matrix for matrix in task_matrices if matrix.scores is not None]
    )
    lower_is_better = task_matrices[0].measure.lower_is_better
    sets = [
        rank_sets(
            differences, simultaneous=together, higher_is_better=not lower_is_better
        )
        for together in (True, False)
    ]
    ranks, own_ranks = (
        tuple(
            (int(best), int(worst))
            for best, worst in zip(rank_set.low, rank_set.high, strict=True)
        )
        for rank_set in sets
    )
    width = math.nan if span is None else span[1] - span[0]
    return Ranking(
        differences,
        width,
        lower_is_better,
        ranks,
        own_ranks,
        letter_groups(
            differences.differs,
            differences.difference,
            np.asarray(~np.isnan(differences.low).all(axis=1)),
            lower_is_better,
        ),
    )


def _adjust_for_groups(
    differences: AllDifferences, grouped_matrices: Sequence[Matrix]
) -> AllDifferences:
    """Correct pairs that come from groups: count their items, and drop unbounded worst cases."""
    if not grouped_matrices:
        return differences
    unbounded = np.logical_or.reduce([matrix.unbounded for matrix in grouped_matrices])
    is_unbounded_pair = unbounded[:, None] | unbounded
    names = (
        "low",
        "high",
        "own_low",
        "own_high",
        "p_value",
        "p_adjusted",
        "own_p_adjusted",
    )
    without_numbers: dict[str, Any] = {
        name: np.where(is_unbounded_pair, np.nan, getattr(differences, name))
        for name in names
    }
    grouped = [
        common_counts(matrix) - common_units(matrix) for matrix in grouped_matrices
    ]
    return replace(differences, n=differences.n + sum(grouped), **without_numbers)


def _verdict_of(low: float, high: float, lower_is_better: bool) -> PairVerdict:
    if math.isnan(low) or math.isnan(high):
        return "not compared"
    if low > 0 or high < 0:
        return "better" if (low > 0) != lower_is_better else "worse"
    return "no difference seen"


def _smallest_visible(
    differences: AllDifferences, pair: tuple[int, int], level: float, span: float
) -> float:
    """Compute the smallest visible difference from the standard error; nan without any spread."""
    error = float(differences.standard_error[pair])
    n_missing = int(differences.n_missing[pair])
    if not error > 0:
        return math.nan
    seen = float(smallest_visible_difference(1, error * error, level=level))
    if not n_missing or differences.missing_policy == "scored":
        return seen
    # n times the difference, minus the whole range for each missing item, must be visible on all.
    missing_share = n_missing / max(1, int(differences.n[pair]))
    return min(span, seen * (1 + missing_share) + missing_share * span)


def letter_groups(
    differs: Bools, difference: F64, compared: Bools, lower_is_better: bool
) -> tuple[str, ...]:
    """Assign letters by "insert and absorb" (Piepho 2004).

    Every pair that differs splits the groups that contain both of its runs.

    Args:
        differs: (runs, runs), which pairs differ significantly.
        difference: (runs, runs), row minus column.
        compared: (runs,), which runs could be compared with any other.
        lower_is_better: whether lower values are better.
    """
    runs = len(difference)
    groups = [sum(1 << i for i in range(runs) if compared[i])]
    if not groups[0]:
        return ("",) * runs
    if _has_many_groups(differs, groups[0]):
        return ()
    for a, b in zip(
        *(side.tolist() for side in np.triu(differs).nonzero()), strict=True
    ):
        pair_bits = (1 << a) | (1 << b)
        holding = [group for group in groups if group & pair_bits == pair_bits]
        groups = [group for group in groups if group & pair_bits != pair_bits]
        for subgroup in (
            cut for group in holding for cut in (group & ~(1 << a), group & ~(1 << b))
        ):
            if not any(subgroup & group == subgroup for group in groups):
                groups = [group for group in groups if group & subgroup != group]
                groups.append(subgroup)
        if len(groups) > 8 * MOST_LETTERS:
            return ()
    if len(groups) > MOST_LETTERS:
        return ()
    score = np.nan_to_num(np.nan_to_num(difference).mean(axis=1)) * (
        -1 if lower_is_better else 1
    )
    members = [[i for i in range(runs) if group >> i & 1] for group in groups]
    members.sort(key=lambda group: tuple(sorted(-score[i] for i in group)))
    names = [chr(ord("a") + index) for index in range(len(members))]
    return tuple(
        "".join(name for name, group in zip(names, members, strict=True) if i in group)
        for i in range(runs)
    )


def _has_many_groups(differs: Bools, members: int) -> bool:
    """Tell whether there certainly are more groups than letters, without finding all of them.

    Args:
        differs: (runs, runs), which pairs differ significantly.
        members: bits of the runs that could be compared.
    """
    alike = [
        members & ~sum(1 << rival for rival in np.flatnonzero(row).tolist())
        for row in differs
    ]
    some_groups = set()
    for run in range(len(differs)):
        if not members >> run & 1:
            continue
        group = 1 << run
        candidates = alike[run] & ~group
        while candidates:
            first = candidates & -candidates
            group |= first
            candidates &= alike[first.bit_length() - 1] & ~first
        some_groups.add(group)
        if len(some_groups) > MOST_LETTERS:
            return True
    return False
