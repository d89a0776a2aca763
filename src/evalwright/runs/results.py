"""The results of a run as typed records: metrics of a task, overall and by slice, and failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalwright.core.outcomes import NO_ANSWER, WORDS, Outcome
from evalwright.core.plain import plain_fields
from evalwright.metrics.registry import LOWER_IS_BETTER, Direction, direction_of
from evalwright.metrics.tree import AVERAGES, Node, coverage
from evalwright.statistics import Estimate

ROUNDED = "rounded to one decimal"
"""End of an estimate's method where its value is rounded as another program publishes it.

Shares are rounded as percentages.
"""


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One number of a task, and how it was computed.

    Args:
        label: the name shown.
        kind: the metric.
        scorer: the column that it summarises.
        estimate: the number, with n, the interval and what is missing.
        lower_is_better: set where lower values are better and the kind does not imply it; of the
            items' scores, higher is still better.
        has_direction: whether it is known which values are better. Records do not state it: it
            follows from the task's metrics and scorers.
    """

    label: str
    kind: str
    scorer: str
    estimate: Estimate
    lower_is_better: bool = False
    has_direction: bool = True

    @property
    def less_is_better(self) -> bool:
        """Whether lower values of the metric are better, by its kind or its definition."""
        return self.lower_is_better or self.kind in LOWER_IS_BETTER

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON: names and the estimate's fields at one level."""
        names = {"label": self.label, "kind": self.kind, "scorer": self.scorer}
        less = {"lower_is_better": True} if self.lower_is_better else {}
        return {**names, **self.estimate.as_dict(), **less}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MetricResult:
        """Rebuild the result from `as_dict`. Raises ValueError for a value that is no number."""
        names = ("label", "kind", "scorer", "lower_is_better")
        fields = {key: value for key, value in data.items() if key not in names}
        for name in ("value", "low", "high"):
            if fields[name] is None:
                fields[name] = float("nan")
            elif not isinstance(fields[name], (int, float)) or isinstance(
                fields[name], bool
            ):
                raise ValueError(
                    f"the {name} of {data['label']} is {fields[name]!r}, not a number"
                )
        for name in ("bounds", "unsure_range"):
            if fields.get(name) is not None:
                fields[name] = _ends(fields[name], f"{name} of {data['label']}")
        less = bool(data.get("lower_is_better"))
        return cls(
            data["label"], data["kind"], data["scorer"], Estimate(**fields), less
        )


def is_lower_by_class(kind: str, options: Mapping[str, Any]) -> bool:
    """Whether the metric is the share of a class of answers of which less is better."""
    return kind not in LOWER_IS_BETTER and direction_of(kind, options) == "lower"


def _ends(ends: Any, name: str) -> tuple[float, float]:
    """Check the lower and the upper end of a range. Raises ValueError for anything else."""
    numbers = isinstance(ends, (list, tuple)) and all(
        type(end) in (int, float) for end in ends
    )
    if not numbers or len(ends) != 2:
        raise ValueError(f"the {name} is {ends!r:.100}, not two numbers")
    low, high = sorted(ends)
    return low, high


def _metrics_from(
    metrics: Any, direction_by_label: Mapping[str, Direction]
) -> tuple[MetricResult, ...]:
    """Rebuild metrics, with the directions that the task's definition shows."""
    return tuple(
        _with_direction(
            MetricResult.from_dict(metric), direction_by_label.get(metric["label"])
        )
        for metric in metrics
    )


def _with_direction(metric: MetricResult, direction: Direction | None) -> MetricResult:
    if metric.less_is_better:
        return metric
    if direction == "lower":
        return replace(metric, lower_is_better=True)
    has_direction = direction != "unknown"
    if metric.has_direction == has_direction:
        return metric
    return replace(metric, has_direction=has_direction)


WORD_COUNT = "words"
"""The kind of scorer that counts words: neither more nor fewer of them are better."""


def _directions(record: Mapping[str, Any]) -> dict[str, Direction]:
    """Find which values of each metric are better, by its label, from a task's record."""
    word_counts = {
        scorer["name"]
        for scorer in record.get("scorers") or ()
        if scorer.get("kind") == WORD_COUNT
    }
    directions: dict[str, Direction] = {}
    for spec in record.get("metric_specs") or ():
        direction = direction_of(spec["kind"], spec.get("options") or {})
        if spec["scorer"] in word_counts:
            direction = "unknown"
        directions[spec["label"]] = direction
    return directions


Slices = Mapping[str, Mapping[str, tuple[MetricResult, ...]]]
"""Slice key ("domain") -> its values ("geography") -> metrics."""


SELDOM = ("slices_left_out", "n_unsure", "n_judged", "n_judge_failed")
"""Fields of a task's result that its record leaves out when they are empty."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The results of a run on one task.

    Args:
        name: the task's name.
        version: its version.
        n_samples: number of samples requested.
        n_missing: those without an answer or score, through no fault of the model.
        metrics: the numbers; the first is the main one.
        slices: by metadata key and value, the numbers of those samples.
        failures: how many answers and scores failed, by kind ("judge: " before those of judges).
        slices_left_out: slice keys with too many values to show.
        n_unsure: samples with a score that a careful reader might dispute.
        outcomes: number of answers by outcome (`core/outcomes`), each draw counted.
        n_judged: scores that a judge gave because the rules were unsure, each draw counted.
        n_judge_failed: those for which the judge failed, so that the rules' score remains.
    """

    name: str
    version: str
    n_samples: int
    n_missing: int
    metrics: tuple[MetricResult, ...]
    slices: Slices = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    slices_left_out: tuple[str, ...] = ()
    n_unsure: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    n_judged: int = 0
    n_judge_failed: int = 0

    @property
    def main(self) -> MetricResult | None:
        """The metric that a board shows: the first."""
        return self.metrics[0] if self.metrics else None

    def metric(self, name: str | None) -> MetricResult | None:
        """Find the metric with that label or TASK.LABEL; the main one for None.

        None if there is none.
        """
        if name is None:
            return self.main
        return next(
            (
                metric
                for metric in self.metrics
                if name in (metric.label, f"{self.name}.{metric.label}")
            ),
            None,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        fields = plain_fields(self)
        seldom = SELDOM
        always = (
            "name",
            "version",
            "n_samples",
            "n_missing",
            "outcomes",
            "failures",
            "metrics",
            "slices",
        )
        return {
            key: fields[key]
            for key in (*always, *seldom)
            if fields[key] or key in always
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TaskResult:
        """Rebuild the result from `as_dict`, or from a task's whole record in `run.json`.

        Which values are better follows from the metrics' definitions, since records of older
        versions do not state that less of a class of answers is better.
        """
        directions = _directions(data)
        return cls(
            **{
                key: data[key]
                for key in ("name", "version", "n_samples", "n_missing", "failures")
            },
            metrics=_metrics_from(data["metrics"], directions),
            slices={
                key: {
                    value: _metrics_from(metrics, directions)
                    for value, metrics in by_value.items()
                }
                for key, by_value in data["slices"].items()
            },
            slices_left_out=tuple(data.get("slices_left_out", ())),
            n_unsure=data.get("n_unsure", 0),
            outcomes=data.get("outcomes", {}),
            n_judged=data.get("n_judged", 0),
            n_judge_failed=data.get("n_judge_failed", 0),
        )


def model_faults(tasks: Sequence[TaskResult]) -> dict[Outcome, int]:
    """Count the replies that were no answer through the model's own fault, by outcome.

    Each draw counts.
    """
    counts = dict.fromkeys(NO_ANSWER, 0)
    for task in tasks:
        for outcome in NO_ANSWER:
            counts[outcome] += task.outcomes.get(outcome, 0)
    return {outcome: count for outcome, count in counts.items() if count > 0}


def faults_in_words(tasks: Sequence[TaskResult]) -> str:
    """Describe these replies: "40 cut before any answer, 3 empty"; "" where all were answered."""
    return ", ".join(
        f"{count:,} {WORDS[outcome]}" for outcome, count in model_faults(tasks).items()
    )


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Averages over several tasks of a run: a node of a tree of tasks.

    Attributes:
        name: the node's name.
        label: the name shown.
        tasks: names of the tasks below that the run has.
        metrics: the averages.
        average: how they are averaged, "" for an average from an older version.
        parts: the tasks and nodes directly below.
        missing: tasks below that have no number.
        n_tasks: number of all tasks below.
        ignores_missing: whether the average is over the tasks that have a number.
    """

    name: str
    label: str
    tasks: tuple[str, ...]
    metrics: tuple[MetricResult, ...]
    average: str = ""
    parts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    n_tasks: int = 0
    ignores_missing: bool = False

    @property
    def coverage(self) -> str:
        """How many tasks have a number, in words."""
        return coverage(max(self.n_tasks, len(self.tasks)), self.missing)

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        return plain_fields(
            self, without=() if self.ignores_missing else ("ignores_missing",)
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GroupResult:
        """Rebuild the result from `as_dict`; runs of older versions lack some keys."""
        lists: dict[str, Any] = {
            key: tuple(data.get(key, ())) for key in ("tasks", "parts", "missing")
        }
        optional = {
            key: data[key]
            for key in ("average", "n_tasks", "ignores_missing")
            if key in data
        }
        metrics = tuple(map(MetricResult.from_dict, data["metrics"]))
        return cls(
            name=data["name"], label=data["label"], metrics=metrics, **lists, **optional
        )


def trees_of(groups: Sequence[GroupResult]) -> tuple[Node, ...]:
    """Rebuild the trees whose nodes these groups are, as a list of outermost nodes.

    Empty for runs of older versions.
    """
    nodes_by_name: dict[str, Node] = {}
    for group in groups:
        if group.average in AVERAGES:
            parts = tuple(nodes_by_name.get(part, part) for part in group.parts)
            nodes_by_name[group.name] = Node(
                group.name, parts, group.average, group.ignores_missing
            )
    inner = {
        part.name
        for node in nodes_by_name.values()
        for part in node.parts
        if isinstance(part, Node)
    }
    return tuple(node for name, node in nodes_by_name.items() if name not in inner)
