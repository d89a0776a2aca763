"""What `run.json` says under "stopping": rules, decisions, budget; and the intervals of what
stopped early.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.runs.reader import Run

MOST_NAMES = 6
"""Models that one note names."""

NOT_ADJUSTED = "not adjusted for ending early"


def task_ended_early(stopping: Mapping[str, Any] | None, task: str) -> bool:
    """Whether a task was not asked to its last sample."""
    return any(
        progress["task"] == task and progress["asked"] < progress["of"]
        for progress in (stopping or {}).get("tasks", ())
    )


def ended_early(run: Run) -> bool:
    """Whether any task of a run was not asked to its last sample."""
    return any(
        task_ended_early(run.data.get("stopping"), task["name"])
        for task in run.data["tasks"]
    )


def with_valid_intervals(
    task: Mapping[str, Any], stopping: Mapping[str, Any] | None
) -> dict[str, Any]:
    """A task's record with intervals that are valid whenever one stops, or that say that they are
    not.

    The metric of a precision rule gets the rule's own interval; every other interval of a task that
    ended early was made for a number of items fixed beforehand, and its method says so.
    """
    if not task_ended_early(stopping, task["name"]):
        return dict(task)
    decided = [
        decision
        for decision in (stopping or {}).get("decisions", ())
        if decision["task"] == task["name"]
    ]
    decision_by_metric = {
        decision["metric"]: decision for decision in decided if decision["metric"]
    }
    slices = {
        key: {
            value: [_noted(metric) for metric in metrics]
            for value, metrics in by_value.items()
        }
        for key, by_value in task["slices"].items()
    }
    metrics = [
        _anytime(metric, decision_by_metric[metric["label"]])
        if metric["label"] in decision_by_metric
        else _noted(metric)
        for metric in task["metrics"]
    ]
    return {**task, "metrics": metrics, "slices": slices}


def with_noted_intervals(
    task: Mapping[str, Any], stopping: Mapping[str, Any] | None
) -> dict[str, Any]:
    """As `with_valid_intervals`, for scores that the rules did not see: no interval allows for the
    stopping.
    """
    return with_valid_intervals(
        task, {**stopping, "decisions": []} if stopping else None
    )


def noted_groups(
    groups: Sequence[Mapping[str, Any]], stopping: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Averages over tasks, whose intervals say so where one of the tasks ended early."""
    return [
        (
            {**group, "metrics": [_noted(metric) for metric in group["metrics"]]}
            if any(task_ended_early(stopping, task) for task in group["tasks"])
            else dict(group)
        )
        for group in groups
    ]


def _noted(metric: Mapping[str, Any]) -> dict[str, Any]:
    return {**metric, "method": f"{metric['method']}, {NOT_ADJUSTED}"}


def _anytime(metric: Mapping[str, Any], decision: Mapping[str, Any]) -> dict[str, Any]:
    total = f"all {decision['n_total']:,} {decision['unit']}"
    method = f"{decision['method']}, for {total}, valid at any look"
    return {
        **metric,
        "low": decision["low"],
        "high": decision["high"],
        "level": decision["level"],
        "method": method,
    }


def early_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Sentences for a page about several runs: which of them ended early, and why; one for each
    reason.
    """
    ended_by_cause: dict[tuple[str, str], list[tuple[Run, Mapping[str, Any]]]] = {}
    for run in runs:
        stopping = run.data.get("stopping") or {}
        for progress in stopping.get("tasks", ()):
            if progress["asked"] < progress["of"]:
                ended_by_cause.setdefault(
                    (progress["task"], _cause(stopping, progress["task"])), []
                ).append((run, progress))
    for (task, cause), ended in ended_by_cause.items():
        counts = sorted({(progress["asked"], progress["of"]) for _, progress in ended})
        span = (
            f"{counts[0][0]:,}"
            if len(counts) == 1
            else f"{counts[0][0]:,} to {counts[-1][0]:,}"
        )
        names = [run.label for run, _ in ended]
        others = (
            f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        )
        yield (
            f"Stopped early by {cause}, after {span} of {counts[-1][1]:,} answers on"
            f" {task}: {', '.join(names[:MOST_NAMES])}{others}. Intervals made for a"
            " fixed number of items do not allow for that."
        )


def _cause(stopping: Mapping[str, Any], task: str) -> str:
    decisions = [
        decision for decision in stopping["decisions"] if decision["task"] == task
    ]
    if (
        decisions and all(decision["decided"] for decision in decisions)
    ) or not stopping["budget_reached"]:
        rules = " and ".join(
            dict.fromkeys(f"'{decision['rule']}'" for decision in decisions)
        )
        return f"the rule {rules}"
    return "a spent budget"
