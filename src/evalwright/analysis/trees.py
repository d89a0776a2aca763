"""Averages over the tasks of several runs: overall, and at each node of the tree that the runs have
in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.metrics.tree import Node, coverage, distinct
from evalwright.runs.measures import Matrix, Measure, paired_of, pooled
from evalwright.runs.reader import Run
from evalwright.runs.results import trees_of
from evalwright.statistics import (
    Estimate,
    MacroDifference,
    PairedComparison,
    macro_average,
    macro_difference,
    mean_interval,
)
from evalwright.statistics.macro import TasksAre
from evalwright.statistics.shared_units import UnitSums, unit_sums
from evalwright.statistics.task_sample import (
    FEWEST,
    Values,
    sampled_average,
    sampled_difference,
)


@dataclass(frozen=True, slots=True)
class Average:
    """A weighted mean over tasks: of samples, each a task or several pooled. weights: None where
    each counts the same.

    tasks_are: whether it is about these tasks or, each of at least three counting the same, about
    tasks like these.
    """

    samples: tuple[Matrix, ...]
    weights: tuple[float, ...] | None = None
    tasks_are: TasksAre = "fixed"

    @property
    def words(self) -> str:
        """What it is the mean of."""
        how = "mean" if self.weights is None else "weighted mean"
        sampled = " as a sample of tasks" if self.tasks_are == "sample" else ""
        return (
            f"{how} of {len(self.samples)} tasks{sampled}"
            if len(self.samples) > 1
            else "pooled items"
        )

    @property
    def paired(self) -> bool:
        """Whether two runs have common items in every sample."""
        return all(one.common().any() for one in self.samples)

    def parts(
        self, rows: tuple[int, int] = (0, 1), level: float = 0.95
    ) -> list[PairedComparison]:
        """The paired comparison of two runs on each sample."""
        return [paired_of(one, rows=rows, level=level) for one in self.samples]

    def difference(
        self, rows: tuple[int, int] = (0, 1), level: float = 0.95
    ) -> MacroDifference:
        """The difference of two runs, with the covariance of samples that share units."""
        units = list[UnitSums]()
        gaps = list[Values]()
        for one in self.samples:
            both = one.was_asked[rows[0]] & one.was_asked[rows[1]]
            a, b = (one.values[row][both] for row in rows)
            gaps.append((a - b, one.units[both]))
            units.append(unit_sums(a - b, one.units[both]))
        parts = self.parts(rows, level)
        span = shared_range(self.samples)
        made = macro_difference(
            parts, weights=self.weights, units=units, value_range=span
        )
        if self.tasks_are == "fixed":
            return made
        return sampled_difference(parts, gaps, value_range=span, fixed=made)

    def mean(
        self, row: int, level: float = 0.95, own: Sequence[Estimate] | None = None
    ) -> Estimate:
        """A run's average over the items that it was asked. own: the estimates of the samples, if
        they are known.
        """
        span = shared_range(self.samples)
        parts = list[Estimate]()
        units = list[UnitSums]()
        for one in self.samples:
            asked = one.counted(row)
            made = mean_interval(
                asked.values[row],
                clusters=asked.clusters,
                level=level,
                value_range=one.measure.value_range,
            )
            # Of a metric that is no mean over items its own number.
            parts.append(
                one.estimates[row] if one.estimates and level == 0.95 else made
            )
            units.append(unit_sums(one.values[row], one.units))
        made = macro_average(
            own or parts, weights=self.weights, units=units, value_range=span
        )
        if self.tasks_are == "fixed":
            return made
        scores = [(one.values[row], one.units) for one in self.samples]
        return sampled_average(own or parts, scores, value_range=span, fixed=made)


@dataclass(frozen=True, slots=True)
class GroupDifference(Plain):
    """A node of the tree of two runs. difference: None where a task has no number, or the tasks
    cannot be averaged or paired.

    missing: tasks of the node that the comparison lacks, of n_tasks. average: how its parts are
    averaged.
    """

    name: str
    average: str
    n_tasks: int
    missing: tuple[str, ...]
    difference: MacroDifference | None

    @property
    def coverage(self) -> str:
        """How many tasks have a number."""
        return coverage(self.n_tasks, self.missing)


def shared_range(found: Sequence[Matrix]) -> tuple[float, float] | None:
    """The range of the scores of all; None where one has no range, or they differ."""
    spans = {one.measure.value_range for one in found}
    return spans.pop() if len(spans) == 1 else None


def can_average(measures: Sequence[Measure]) -> bool:
    """Whether a mean over these tasks means anything: all in points, and all in the same direction."""
    return (
        all(one.bounded for one in measures)
        and len({one.lower_is_better for one in measures}) == 1
    )


def common_trees(runs: Sequence[Run]) -> tuple[Node, ...]:
    """The trees that all runs have; none where they differ."""
    found = [trees_of(run.groups) for run in runs]
    return found[0] if all(one == found[0] for one in found) else ()


def overall_node(runs: Sequence[Run], tasks: Sequence[str]) -> Node | None:
    """The node that stands for everything: the root of the declared tree, else the last of the
    trees that have all of the tasks.
    """
    trees = common_trees(runs)
    if len(trees) == 1 and all(run.data["configuration"].get("tree") for run in runs):
        return trees[0]
    return next((one for one in reversed(trees) if {*tasks} <= {*one.tasks}), None)


def outer_first(level: Sequence[Node]) -> Iterator[Node]:
    """The nodes of trees, level by level: a reader finds totals before their parts."""
    while level:
        yield from level
        level = [part for one in level for part in one.parts if isinstance(part, Node)]


def average_of(
    found: Sequence[Matrix], node: Node | None = None, tasks_are: TasksAre = "fixed"
) -> Average | None:
    """The average over matrices by a node, without one each task the same; None where it has no
    number.

    Raises ConfigurationError where the tasks are to be a sample, and are fewer than three or do not
    count the same.
    """
    made = _average_of(found, node)
    if tasks_are == "fixed":
        return made
    there = 0 if made is None else len(made.samples)
    if made is None or there < FEWEST:
        said = f"there is one over {there}" if there > 1 else "there is none"
        raise ConfigurationError(
            f"Tasks as a sample of tasks need a mean over at least {FEWEST} tasks, but"
            f" {said}: how far so few lie apart says nothing of others. Use --tasks-are"
            " fixed, or runs of more tasks."
        )
    if made.weights is not None:
        raise ConfigurationError(
            "Tasks as a sample of tasks count the same each, but the tree weighs them."
            " Use --tasks-are fixed."
        )
    return replace(made, tasks_are=tasks_are)


def _average_of(found: Sequence[Matrix], node: Node | None) -> Average | None:
    by_task = {one.measure.task: one for one in found}
    if node is None:
        return (
            Average(tuple(found))
            if can_average([one.measure for one in found])
            else None
        )
    made = node.samples({task: len(one.keys) for task, one in by_task.items()})
    inside = [by_task[task] for sample in made for task in sample.tasks]
    if not made or not can_average([one.measure for one in inside]):
        return None
    if any(len(sample.tasks) > 1 for sample in made) and not all(
        one.measure.is_mean for one in inside
    ):
        return None
    samples = tuple(
        pooled([by_task[task] for task in sample.tasks], node.name) for sample in made
    )
    weights = tuple(sample.weight for sample in made)
    return Average(samples, None if len(set(weights)) == 1 else weights)


def group_differences(
    runs: Sequence[Run], found: Sequence[Matrix]
) -> tuple[GroupDifference, ...]:
    """Each node of the trees that two runs have in common once, inner ones first."""
    sizes = {one.measure.task: len(one.keys) for one in found}
    out = []
    for node in distinct(node for tree in common_trees(runs) for node in tree.nodes()):
        made = average_of(found, node)
        difference = made.difference() if made is not None and made.paired else None
        out.append(
            GroupDifference(
                node.name,
                node.average,
                len(node.tasks),
                node.missing(sizes),
                difference,
            )
        )
    return tuple(out)
