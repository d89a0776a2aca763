"""The part "stopping" of `run.json`, and the intervals of runs that stopped early.

It has the stopping rules, their decisions, and the budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.runs.reader import Run

MOST_NAMES = 6
"""Most models that one note names."""

NOT_ADJUSTED = "not adjusted for ending early"


def task_ended_early(stopping: Mapping[str, Any] | None, task: str) -> bool:
    """Tell whether a task was stopped before its last sample."""
    return any(
        progress["task"] == task and progress["asked"] < progress["of"]
        for progress in (stopping or {}).get("tasks", ())
    )


def ended_early(run: Run) -> bool:
    """Tell whether any task of a run was stopped before its last sample."""
    return any(
        task_ended_early(run.data.get("stopping"), task["name"])
        for task in run.data["tasks"]
    )


def with_valid_intervals(
    task: Mapping[str, Any], stopping: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Make a task's intervals valid despite early stopping, or let them say that they are not.

    The metric of a precision rule gets the rule's own interval; every other interval of a task that
    ended early assumes a number of items fixed beforehand, and its method says so.
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
    """Add notes only, since the rules did not see these scores: no interval is adjusted.

    Otherwise like `with_valid_intervals`.
    """
    return with_valid_intervals(
        task, {**stopping, "decisions": []} if stopping else None
    )


def noted_groups(
    groups: Sequence[Mapping[str, Any]], stopping: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Mark the intervals of averages over tasks if one of the tasks ended early."""
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
    """Write sentences for a page about several runs: which of them ended early, one per reason."""
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
