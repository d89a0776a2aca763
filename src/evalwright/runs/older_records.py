"""Converts records of schema 1 to the form of schema 2.

Schema 1 left answers without a score where rules could not decide, and counted replies without
an answer (cut, refused) as failed. Both are read as missing, because the record does not say
what they are worth; `evalwright score RUN` scores the recorded answers again, without a
request, and gives each a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.core.outcomes import FAILED, NO_ANSWER

UNDECIDED = "undecided"
"""The kind of failure by which schema 2 represents an answer that schema 1 left without a score."""


def upgrade_run(run: dict[str, Any]) -> dict[str, Any]:
    """Convert `run.json` of schema 1 to the names and counts of schema 2.

    The schema's number is kept, as a mark of its origin.
    """
    if run.get("schema") != 1:
        return run
    tasks = [
        _upgrade_task(task) if isinstance(task, dict) else task
        for task in _list(run, "tasks")
    ]
    upgraded = {**run, "tasks": tasks}
    if "groups" in run:
        upgraded["groups"] = [
            (
                {**group, "metrics": _upgrade_metrics(group.get("metrics"))}
                if isinstance(group, dict)
                else group
            )
            for group in _list(run, "groups")
        ]
    return upgraded


def _list(run: Mapping[str, Any], key: str) -> list[Any]:
    entries = run.get(key)
    return entries if isinstance(entries, list) else []


def _upgrade_task(task: dict[str, Any]) -> dict[str, Any]:
    upgraded = _upgrade_counts(task)
    n_undecided = _count(task, "n_undecided")
    if n_undecided:
        failures = task.get("failures")
        upgraded["failures"] = {
            **(failures if isinstance(failures, dict) else {}),
            UNDECIDED: n_undecided,
        }
    _move_faults(upgraded)
    if "metrics" in task:
        upgraded["metrics"] = _upgrade_metrics(task["metrics"])
    slices = task.get("slices")
    if isinstance(slices, dict):
        upgraded["slices"] = {
            key: (
                {name: _upgrade_metrics(metrics) for name, metrics in by_name.items()}
                if isinstance(by_name, dict)
                else by_name
            )
            for key, by_name in slices.items()
        }
    return upgraded


def _move_faults(task: dict[str, Any]) -> None:
    """Count replies without an answer as failed, in place: they are missing until they are scored.

    Schema 1 listed them among both outcomes and failures.
    """
    outcomes = task.get("outcomes")
    failures = task.get("failures")
    if not (isinstance(outcomes, dict) and isinstance(failures, dict)):
        return
    moved = {
        outcome: min(_count(outcomes, outcome), _count(failures, outcome))
        for outcome in NO_ANSWER
        if outcome in outcomes and outcome in failures
    }
    counts = {
        outcome: count - moved[outcome] if outcome in moved else count
        for outcome, count in outcomes.items()
    }
    counts[FAILED] = _count(counts, FAILED) + sum(moved.values())
    task["outcomes"] = {outcome: count for outcome, count in counts.items() if count}


def _upgrade_metrics(metrics: Any) -> Any:
    if not isinstance(metrics, list):
        return metrics
    return [
        _upgrade_counts(metric) if isinstance(metric, dict) else metric
        for metric in metrics
    ]


def _upgrade_counts(counted: dict[str, Any]) -> dict[str, Any]:
    """Combine n_failed and n_undecided into one number, n_missing."""
    upgraded = {
        key: figure
        for key, figure in counted.items()
        if key not in ("n_failed", "n_undecided")
    }
    if "n_failed" in counted:
        failed = counted["n_failed"]
        upgraded["n_missing"] = (
            failed + _count(counted, "n_undecided")
            if isinstance(failed, int)
            else failed
        )
    return upgraded


def _count(counted: Mapping[str, Any], key: str) -> int:
    count = counted.get(key, 0)
    return count if isinstance(count, int) else 0


def upgrade_row(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a line of `samples.jsonl` of any schema.

    Undecided scores become failures of the scorer.
    """
    undecided = row.pop(UNDECIDED, None)
    if not undecided:
        return row
    failures = row.get("score_failures", {})
    row["score_failures"] = failures | {
        scorer: {
            "kind": UNDECIDED,
            "party": "scorer",
            "message": (
                "Left without a score by the version that recorded it:"
                f" {reason.get('explanation', '')}"
            ),
            "retryable": False,
            "status": None,
            "attempts": 1,
        }
        for scorer, reason in undecided.items()
    }
    return row


def left_out(run: Mapping[str, Any]) -> int:
    """Count the answers without a score that `evalwright score` would score; 0 from schema 2 on."""
    if run.get("schema") != 1:
        return 0
    count = 0
    for task in run["tasks"]:
        scored_as_empty = task.get("score_as_empty", ())
        kinds = [
            UNDECIDED,
            *(outcome for outcome in NO_ANSWER if outcome not in scored_as_empty),
        ]
        count += sum(
            task.get("failures", {}).get(failure_kind, 0) for failure_kind in kinds
        )
    return count
