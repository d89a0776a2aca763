"""What a run found, as typed records: metrics of a task, whole and by slice, and the failures beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.core.outcomes import NO_ANSWER, WORDS
from evalwright.core.plain import plain_fields
from evalwright.metrics.registry import LOWER_IS_BETTER
from evalwright.metrics.tree import AVERAGES, Node, coverage
from evalwright.statistics import Estimate


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One number: `label` is the name shown, `kind` the metric, `scorer` the column that it summarises.

    lower_is_better: said where the kind does not say it; the scores of its items are better when higher all the same.
    """

    label: str
    kind: str
    scorer: str
    estimate: Estimate
    lower_is_better: bool = False

    @property
    def less_is_better(self) -> bool:
        """Whether less of the metric is better, by its kind or because it says so."""
        return self.lower_is_better or self.kind in LOWER_IS_BETTER

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON: the estimate's fields beside the names."""
        names = {"label": self.label, "kind": self.kind, "scorer": self.scorer}
        less = {"lower_is_better": True} if self.lower_is_better else {}
        return {**names, **self.estimate.as_dict(), **less}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MetricResult:
        """The inverse of `as_dict`. Raises ValueError for a value that is no number."""
        names = ("label", "kind", "scorer", "lower_is_better")
        fields = {key: value for key, value in data.items() if key not in names}
        for name in ("value", "low", "high"):
            if fields[name] is None:
                fields[name] = float("nan")
            elif not isinstance(fields[name], (int, float)) or isinstance(fields[name], bool):
                raise ValueError(f"the {name} of {data['label']} is {fields[name]!r}, not a number")
        if fields.get("bounds") is not None:
            fields["bounds"] = tuple(sorted(fields["bounds"]))
        less = bool(data.get("lower_is_better"))
        return cls(data["label"], data["kind"], data["scorer"], Estimate(**fields), less)


def _metrics_from(found: Any) -> tuple[MetricResult, ...]:
    return tuple(map(MetricResult.from_dict, found))


Slices = Mapping[str, Mapping[str, tuple[MetricResult, ...]]]
"""Slice key ("domain") -> its values ("geography") -> metrics."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What a run found on one task.

    n_samples: samples asked; n_failed: those without an answer or score; failures: how many answers and scores failed, by kind
    ("judge: " before those of judges). outcomes: how many answers, draws told apart, had which outcome (`core/outcomes`).
    slices_left_out: slice keys with too many values to show. n_undecided: samples that rules left undecided.
    """

    name: str
    version: str
    n_samples: int
    n_failed: int
    metrics: tuple[MetricResult, ...]
    slices: Slices = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    slices_left_out: tuple[str, ...] = ()
    n_undecided: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)

    @property
    def main(self) -> MetricResult | None:
        """The metric that a board shows: the first."""
        return self.metrics[0] if self.metrics else None

    def metric(self, name: str | None) -> MetricResult | None:
        """The metric of that label or TASK.LABEL, the main one for None; None where there is none."""
        if name is None:
            return self.main
        return next((one for one in self.metrics if name in (one.label, f"{self.name}.{one.label}")), None)

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        found, seldom = plain_fields(self), ("slices_left_out", "n_undecided")
        always = ("name", "version", "n_samples", "n_failed", "outcomes", "failures", "metrics", "slices")
        return {key: found[key] for key in (*always, *seldom) if found[key] or key in always}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TaskResult:
        """The inverse of `as_dict`."""
        return cls(
            **{key: data[key] for key in ("name", "version", "n_samples", "n_failed", "failures")},
            metrics=_metrics_from(data["metrics"]),
            slices={
                key: {value: _metrics_from(metrics) for value, metrics in by_value.items()}
                for key, by_value in data["slices"].items()
            },
            slices_left_out=tuple(data.get("slices_left_out", ())),
            n_undecided=data.get("n_undecided", 0),
            outcomes=data.get("outcomes", {}),
        )


def unscored(tasks: Sequence[TaskResult], *, failed_alone: bool = False, empty: bool = False) -> str:
    """Why samples have no score: "40 cut before any answer, 20 filtered by the provider, 3 failed".

    "" where all have one, and where requests or scorers failed and nothing else, unless failed_alone. empty: say, too, which
    replies without an answer have the score of an empty one.
    """
    counts = dict.fromkeys(NO_ANSWER, 0)
    failed = 0
    for task in tasks:
        failed += task.n_failed
        for outcome in NO_ANSWER:
            counts[outcome] += task.failures.get(outcome, 0)
    failed -= sum(counts.values())
    parts = [f"{n:,} {WORDS[outcome]}" for outcome, n in counts.items() if n]
    parts += [f"{failed:,} failed"] if failed > 0 and (parts or failed_alone) else []
    for outcome in NO_ANSWER if empty else ():
        scored = sum(task.outcomes.get(outcome, 0) - task.failures.get(outcome, 0) for task in tasks)
        parts += [f"{scored:,} {WORDS[outcome]} and scored as empty"] if scored > 0 else []
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """Averages over several tasks of a run: a node of a tree of tasks. label: the name shown; tasks: their names, those that the run has.

    average: how they are averaged, "" for an average that runs of older versions made. parts: what stands directly below, tasks and
    nodes. missing: tasks below that have no number, of n_tasks; ignores_missing: whether the average is over the others.
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
        """How many tasks have a number."""
        return coverage(max(self.n_tasks, len(self.tasks)), self.missing)

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return plain_fields(self, without=() if self.ignores_missing else ("ignores_missing",))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GroupResult:
        """The inverse of `as_dict`; runs of older versions lack some of it."""
        lists: dict[str, Any] = {key: tuple(data.get(key, ())) for key in ("tasks", "parts", "missing")}
        rest = {key: data[key] for key in ("average", "n_tasks", "ignores_missing") if key in data}
        metrics = _metrics_from(data["metrics"])
        return cls(name=data["name"], label=data["label"], metrics=metrics, **lists, **rest)


def trees_of(groups: Sequence[GroupResult]) -> tuple[Node, ...]:
    """The trees whose nodes the groups are, outermost nodes only; none of runs of older versions."""
    made: dict[str, Node] = {}
    for one in groups:
        if one.average in AVERAGES:
            parts = tuple(made.get(part, part) for part in one.parts)
            made[one.name] = Node(one.name, parts, one.average, one.ignores_missing)
    inner = {part.name for node in made.values() for part in node.parts if isinstance(part, Node)}
    return tuple(node for name, node in made.items() if name not in inner)
