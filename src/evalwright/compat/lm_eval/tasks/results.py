"""A finished run's numbers in the published form: `{task: {"acc,none": 0.5, "acc_stderr,none": 0.1, ...}}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evalwright.compat.lm_eval.tasks.groups import Group, group_results


class _Run(Protocol):
    """What is read of a run (`runs.reader.Run`)."""

    @property
    def data(self) -> Mapping[str, Any]: ...


def task_results(run: _Run) -> dict[str, dict[str, Any]]:
    """The results of a run's tasks of this dialect, under their own names."""
    return results_of_tasks(run.data["tasks"])


def results_of_tasks(tasks: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """As `task_results`, from the tasks of `run.json`."""
    out: dict[str, dict[str, Any]] = {}
    for task in tasks:
        definition = task["definition"]
        if definition.get("dialect") != "lm-eval":
            continue
        name = definition["task"]
        found: dict[str, Any] = {"name": name, "alias": definition["alias"]}
        found["sample_len"] = max((metric["n"] for metric in task["metrics"]), default=0)
        for metric in task["metrics"]:
            pipeline = metric["scorer"]
            label = metric["label"].removesuffix(f",{pipeline}")
            error = metric["standard_error"]
            found[f"{label},{pipeline}"] = metric["value"]
            found[f"{label}_stderr,{pipeline}"] = "N/A" if error is None else error
        out[name] = found
    return out


def groups_of(run: _Run) -> dict[str, Group]:
    """The groups that a run's tasks were asked for through, inner ones first."""
    return groups_of_tasks(run.data["tasks"])


def groups_of_tasks(tasks: Sequence[Mapping[str, Any]]) -> dict[str, Group]:
    """As `groups_of`, from the tasks of `run.json`."""
    groups: dict[str, Group] = {}
    for task in tasks:
        if task["definition"].get("dialect") == "lm-eval":
            for group in task["definition"]["groups"]:
                groups.setdefault(group["name"], Group.from_dict(group))
    return groups


def all_results(run: _Run) -> dict[str, dict[str, Any]]:
    """As `task_results`, with the averages of groups."""
    results = task_results(run)
    for name, group in groups_of(run).items():
        results[name] = group_results(group, results)
    return results
