"""What differs between a planned run and the record that its folder has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.core.secrets import without_address
from evalwright.core.tasks import Task
from evalwright.core.text import printable
from evalwright.models.model_interface import Model, fingerprint_of
from evalwright.tasks.panels import is_panel_metric

NO_MODEL = "none"
MAX_TASKS_NAMED = 5


def describe_changes(
    record: Mapping[str, Any],
    *,
    model: Model,
    roles: Mapping[str, Model],
    tasks: tuple[Task, ...],
    configuration: Mapping[str, Any],
) -> list[str]:
    """Say what changed, such as "judge: openai/judge-1, now openai/judge-2".

    Args:
        record: the `run.json` in the folder, which may come from an earlier version.
        model: the model under test of the planned run.
        roles: the models beside it.
        tasks: its tasks.
        configuration: its settings, as they are recorded.

    Returns:
        A phrase for each difference; none where it is in something else, such as a rule.
    """
    recorded_roles = _mapping(record.get("roles"))
    changes = [_describe_model("model", _mapping(record.get("model")), model)]
    for role in dict.fromkeys([*recorded_roles, *roles]):
        recorded = _mapping(recorded_roles.get(role))
        changes.append(_describe_model(role, recorded, roles.get(role)))
    before = _mapping(record.get("configuration"))
    changes.append(_describe_panel(before, configuration))
    changes += _describe_tasks(record, tasks)
    for key in ("limit", "seed"):
        if key in before and before[key] != configuration.get(key):
            changes.append(f"{key}: {before[key]}, now {configuration.get(key)}")
    return [printable(change) for change in changes if change]


def _describe_model(role: str, recorded: Mapping[str, Any], model: Model | None) -> str:
    """Say how the model in a role changed; "" where it did not."""
    name = without_address(str(recorded.get("name", NO_MODEL)))
    present = NO_MODEL if model is None else without_address(model.name)
    if name != present:
        return f"{role}: {name}, now {present}"
    if model is None or recorded.get("fingerprint") == model.fingerprint:
        return ""
    return f"{role}: {name} with other arguments, version or address"


def _describe_panel(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Say how several judges decided, and decide now; "" if it is the same."""
    recorded, present = (
        ", ".join(
            f"{key} {setting}"
            for key, setting in _mapping(configuration.get("panel")).items()
            if key != "judges"
        )
        or "the usual"
        for configuration in (before, now)
    )
    return "" if recorded == present else f"judges decide by {recorded}, now {present}"


def _describe_tasks(
    record: Mapping[str, Any], tasks: tuple[Task, ...]
) -> Iterator[str]:
    listed = record.get("tasks")
    recorded = {
        str(task.get("name")): task
        for task in (listed if isinstance(listed, list) else [])
        if isinstance(task, Mapping)
    }
    present = {task.name: task for task in tasks}
    if recorded.keys() != present.keys():
        yield f"tasks: {_list_names(recorded)}, now {_list_names(present)}"
    for name in recorded.keys() & present.keys():
        if recorded[name].get("content_hash") != present[name].samples.content_hash:
            yield f"the data of '{name}'"
        elif _definition(recorded[name].get("definition")) != _definition(
            present[name].definition
        ):
            yield f"the definition of '{name}'"


_OF_PANELS = frozenset(("judges", "combine", "needs"))
"""Options of scorers that say who is in a panel, and how it decides."""


def _definition(definition: Any) -> str:
    """Compute a digest of a task's definition without its judges, which are listed by role."""
    content = dict(_mapping(definition))
    scorers = content.get("scorers")
    if isinstance(scorers, list):
        content["scorers"] = [_without_judge(scorer) for scorer in scorers]
    metrics = content.get("metrics")
    if isinstance(metrics, list):
        content["metrics"] = [
            metric for metric in metrics if not is_panel_metric(_mapping(metric))
        ]
    return fingerprint_of(content)


def _without_judge(scorer: Any) -> Any:
    options = _mapping(_mapping(scorer).get("options"))
    of_judges = {"unsure"} | (_OF_PANELS if "judges" in options else set())
    if of_judges.isdisjoint(options):
        return scorer
    kept = {name: option for name, option in options.items() if name not in of_judges}
    return {**scorer, "options": kept}


def _list_names(tasks: Mapping[str, Any]) -> str:
    names = list(tasks)
    if len(names) > MAX_TASKS_NAMED:
        names = [*names[:MAX_TASKS_NAMED], f"{len(tasks) - MAX_TASKS_NAMED} more"]
    return ", ".join(names)


def _mapping(content: Any) -> Mapping[str, Any]:
    return content if isinstance(content, Mapping) else {}
