"""Computes a run's numbers again from its recorded scores, without sending any request.

Slices, confidence level and metrics may be others than before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.tasks import MetricSpec
from evalwright.engine.counts import Counts
from evalwright.evaluation.derived import Derived
from evalwright.metrics.registry import registry
from evalwright.runs.aggregation import TaskTally, derived_task, rules_record
from evalwright.runs.images import KeptImages
from evalwright.runs.measures import check_bounded
from evalwright.runs.reader import Run
from evalwright.runs.score_tables import keep_scores
from evalwright.runs.writer import RunWriter


@dataclass(frozen=True, slots=True)
class _TaskAggregation:
    """One task of the run: its record, the metrics and slices to compute, and the scores read."""

    record: Mapping[str, Any]
    metrics: tuple[MetricSpec, ...]
    slices: tuple[str, ...]
    tally: TaskTally


def aggregate_run(
    run: Run | str | Path,
    *,
    metrics: Sequence[MetricSpec] = (),
    slices: Sequence[str] | None = None,
    level: float | None = None,
    name: str = "",
    out: str | Path | None = None,
) -> Run:
    """Compute a run's numbers again from its recorded scores, and write them as a new run.

    No request is sent, and no answer is scored again.

    Args:
        run: the run, its folder or its name in the folder "runs".
        metrics: metrics in place of the run's own, for all its tasks; a spec whose scorer is ""
            uses each task's first scorer.
        slices: metadata keys in place of the run's own.
        level: confidence level of all intervals, between 0 and 1.
        name: name of the new run; without it, the old name with ".aggregated".
        out: the new run's parent folder; without it, that of the old run.

    Returns:
        The new run.

    Raises:
        UnknownName: there is no such metric, scorer or slice.
        ConfigurationError: the level is not between 0 and 1, the name is taken by another kind of
            run, or the numbers come from another program's arithmetic.
        RunError: the samples were changed after the run.
    """
    if level is not None and not (isinstance(level, int | float) and 0 < level < 1):
        raise ConfigurationError(
            f"The confidence level must be between 0 and 1, such as 0.95, not {level}."
        )
    new = Derived(run, name or "{}.aggregated", out, "aggregated_from")
    old = new.old
    aggregations = {
        task["name"]: _aggregate_task(task, metrics, slices, level)
        for task in old.data["tasks"]
    }
    _check_slices(old, slices or ())
    with RunWriter(new.folder) as writer:
        writer.keep_images(KeptImages(old.folder, old.data))
        for position, record in enumerate(old.samples()):
            aggregations[record.task].tally.add(record)
            writer.add(position, record)
        for aggregation in aggregations.values():
            _check_scores(old, aggregation)
        tasks = [_task_record(aggregation) for aggregation in aggregations.values()]
        rules = [[task["metric_specs"], task["slice_keys"]] for task in tasks]
        identity = {"scores": old.samples_sha256, "rules": rules}
        tallies = {
            name: aggregation.tally for name, aggregation in aggregations.items()
        }
        # Scores are taken as recorded, so what an earlier version left out is still left out.
        same_schema = {"schema": old.data["schema"]}
        new_run = new.finish(
            writer, tasks, tallies, identity, usage=Counts().as_dict(), **same_schema
        )
    keep_scores(
        new_run,
        {name: aggregation.tally.table() for name, aggregation in aggregations.items()},
    )
    return new_run


def _check_scores(old: Run, aggregation: _TaskAggregation) -> None:
    """Raise RunError for scores outside the range that a metric over them needs."""
    import numpy as np

    for spec in aggregation.metrics:
        check_bounded(
            old,
            spec,
            np.frombuffer(aggregation.tally.scores[spec.scorer].values, np.float64),
        )


def _check_slices(old: Run, slices: Sequence[str]) -> None:
    """Raise UnknownName for a key that no sample has, before anything is written."""
    missing = set(slices)
    seen = set[str]()
    for row in old.rows() if missing else ():
        seen.update(row.get("metadata", ()))
        missing -= seen
        if not missing:
            return
    for key in slices:
        if key in missing:
            hint = f"The samples have: {', '.join(sorted(seen)) or 'none'}."
            raise UnknownName("metadata key to slice by", key, seen, hint)


def _aggregate_task(
    task: Mapping[str, Any],
    metrics: Sequence[MetricSpec],
    slices: Sequence[str] | None,
    level: float | None,
) -> _TaskAggregation:
    dialect = task["definition"].get("dialect")
    if dialect:
        raise ConfigurationError(
            f"The numbers of the task '{task['name']}' are made by the arithmetic of"
            f" another framework ({dialect}): `evalwright score` makes those of its"
            " tasks again, and `evalwright import` those of its results."
        )
    scorers = [scorer["name"] for scorer in task["scorers"]]
    specs = metrics or [MetricSpec(**spec) for spec in task["metric_specs"]]
    task_metrics = tuple(_spec(spec, task["name"], scorers, level) for spec in specs)
    labels = [spec.label for spec in task_metrics]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ConfigurationError(
            f"Two metrics have the label '{twice}'; give one another, as"
            " LABEL=METRIC:SCORER."
        )
    keys = tuple(task["slice_keys"] if slices is None else slices)
    return _TaskAggregation(task, task_metrics, keys, TaskTally(scorers, keys))


def _spec(
    spec: MetricSpec, task: str, scorers: Sequence[str], level: float | None
) -> MetricSpec:
    """Return the metric over one of the task's scorers, at the level.

    Raises:
        UnknownName: the task has no such scorer.
    """
    scorer = spec.scorer or scorers[0]
    if scorer not in scorers:
        hint = f"It has: {', '.join(scorers)}."
        raise UnknownName(f"scorer of the task '{task}'", scorer, scorers, hint)
    options = dict(spec.options)
    if level is not None:
        options["level"] = level
    registry.check_options(spec.kind, options)
    return replace(spec, scorer=scorer, options=options)


def _task_record(aggregation: _TaskAggregation) -> dict[str, Any]:
    record = derived_task(aggregation.record, aggregation.tally, aggregation.metrics)
    specs = rules_record((), aggregation.metrics)["metric_specs"]
    return {**record, "slice_keys": list(aggregation.slices), "metric_specs": specs}
